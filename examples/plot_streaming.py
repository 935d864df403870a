"""
Learning from a stream
======================

A model is learnt from sums, which add: batches of any size give the model of all rows at once, new classes may appear at any time, and
no row is read twice.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from maxdisc import MaxDiscClassifier

X, y = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order], y[order]
test = slice(1200, 1500)

# %%
# There are no nines among the first 500 digits. When nines appear later, the model learns them without prior notice, and without forgetting other
# classes.

model = MaxDiscClassifier("gaussian", smoothing=1.0)
seen, accuracy, known = [], [], []
for start in range(0, 1200, 50):
    batch = np.arange(start, start + 50)
    if start < 500:
        batch = batch[y[batch] != 9]
    model.partial_fit(X[batch], y[batch])
    seen.append(start + 50)
    accuracy.append(model.score(X[test], y[test]))
    known.append(len(model.classes_))

_, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(seen, accuracy, "o-")
axes.axvline(500, linestyle=":", color="gray")
axes.annotate("nines appear", (500, min(accuracy)), xytext=(6, 0), textcoords="offset points")
axes.set(xlabel="digits seen", ylabel="accuracy on other digits")
print(f"classes known after the first and the last batch: {known[0]}, {known[-1]}")

# %%
# Any other batches give the same sums, and so the same model:

rows = np.array([i for i in range(1200) if i >= 500 or y[i] != 9])
at_once = MaxDiscClassifier("gaussian", smoothing=1.0).partial_fit(X[rows], y[rows])
apart = np.abs(model.moments_.means() - at_once.moments_.means()).max()
print(f"largest difference of the class means: {apart:.1e}")
print(f"same predictions: {(model.predict(X[test]) == at_once.predict(X[test])).all()}")

# %%
# A stream selects all features and has raw evidence, which is overconfident. ``choose_n_features`` selects features and calibrates on recent rows:

print(f"log-loss {log_loss(y[test], model.predict_proba(X[test])):.2f}")
model.choose_n_features(X[1500:], y[1500:])
print(
    f"log-loss {log_loss(y[test], model.predict_proba(X[test])):.2f}, calibrated, {model.n_selected_} of 64 pixels selected"
)
