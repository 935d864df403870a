"""
Calibrated probabilities
========================

Features are not independent, so the sum of their evidence is too large: a naive model is nearly always confident, right or wrong. Calibration on held-out rows
corrects this. Neighbouring pixels of handwritten digits are strongly dependent:
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from maxdisc import MaxDiscClassifier
from maxdisc.plots import ReliabilityDisplay

X, X_new, y, y_new = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)

_, places = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
for place, evidence in zip(places, ("raw", "calibrated"), strict=True):
    model = MaxDiscClassifier(evidence=evidence).fit(X, y)
    probabilities = model.predict_proba(X_new)
    ReliabilityDisplay.from_predictions(y_new, model.predict(X_new), probabilities.max(axis=1), ax=place)
    place.set_title(evidence)
    loss, sure = log_loss(y_new, probabilities), probabilities.max(axis=1) > 0.99
    wrong = (model.predict(X_new) != y_new)[sure].mean()
    print(
        f"{evidence:10} log-loss {loss:.2f}; probability above 99 % for {sure.mean():.0%}, of which {wrong:.1%} are wrong"
    )

# %%
# Points on the line are calibrated. ``evidence_`` shows what was learnt on held-out rows:

print(model.evidence_)
