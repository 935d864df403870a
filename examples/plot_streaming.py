"""
Learning from a stream
======================

All that is learnt is sums, and sums add: batches of any size give the model that all rows at once would give, new classes may appear at any time, and
nothing is ever read again.
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
# In the first 500 digits there is no nine. Then nines come along, and the model learns of them: without being told beforehand, and without forgetting
# anything.

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
# A stream keeps all features and takes their evidence as it is, which makes it far too sure, until some recent rows are there to choose and weigh on:

print(f"log-loss {log_loss(y[test], model.predict_proba(X[test])):.2f}")
model.choose_n_features(X[1500:], y[1500:])
print(
    f"log-loss {log_loss(y[test], model.predict_proba(X[test])):.2f}, evidence now weighed, {model.n_selected_} of 64 pixels kept"
)
