"""
Probabilities to be trusted
===========================

Features are not independent, so their evidence adds up to more than it should: a naive model is nearly always sure, right or wrong. Calibrated evidence, the
default, learns on held-out rows how much each part of the ranking should count. Neighbouring pixels of handwritten digits repeat each other a lot:
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
        f"{evidence:10} log-loss {loss:.2f}; surer than 99 % of {sure.mean():.0%}, wrong in {wrong:.1%} of these"
    )

# %%
# Points on the line are as sure as they are right. What was learnt are a few weights, one for each band of the ranking, and a bias for each class:

print(model.evidence_)
