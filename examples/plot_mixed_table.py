"""
A mixed table with missing cells
================================

A table of numbers, counts, truth values and categories, with missing cells. Nothing is encoded, scaled or imputed: a family of
densities is selected for each column, and a missing cell carries no evidence.
"""

import numpy as np
import pandas as pd

from maxdisc import MaxDiscClassifier

rng = np.random.default_rng(0)
n = 1500
ill = rng.random(n) < 0.4
patients = pd.DataFrame(
    {
        "age": rng.normal(50 + 8 * ill, 12).round(),
        "visits": rng.poisson(1 + 2 * ill),
        "smokes": rng.random(n) < 0.2 + 0.3 * ill,
        "ward": rng.choice(["north", "south", "west"], n),
        "pain": np.where(
            ill,
            rng.choice(["none", "some", "much"], n, p=[0.2, 0.3, 0.5]),
            rng.choice(["none", "some", "much"], n, p=[0.6, 0.3, 0.1]),
        ),
        "marker": rng.gamma(2 + 2 * ill, 1.5),
    }
)
patients = patients.astype({"visits": float, "smokes": object})
patients = patients.mask(rng.random(patients.shape) < 0.1)  # every tenth cell was not measured
outcome = np.where(ill, "ill", "well")
print(patients.head(4).to_string())

# %%
# Among the families that its values allow, a column gets the one that predicts the classes of held-out rows best.

train, test = patients[:1000], patients[1000:]
model = MaxDiscClassifier().fit(train, outcome[:1000])
for family, columns in model.families_:
    print(f"{family.name:12} {', '.join(patients.columns[columns])}")
print(f"accuracy {model.score(test, outcome[1000:]):.3f}")

# %%
# The densities of a number, and the shares of a category:

import matplotlib.pyplot as plt

from maxdisc.plots import DensityDisplay

_, places = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for place, name in zip(places, ("marker", "pain"), strict=True):
    DensityDisplay.from_estimator(model, name, ax=place)

# %%
# The more cells are missing, the less confident are the probabilities. For comparison, the usual approach: one-hot categories, missing cells imputed by
# the mean, and Gaussian densities.

from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

numbers = pd.get_dummies(patients.astype({"smokes": float}), dtype=float)
usual = make_pipeline(SimpleImputer(), GaussianNB()).fit(numbers[:1000], outcome[:1000])
shares = np.linspace(0, 0.8, 9)
ours, theirs = [], []
for share in shares:
    lost = rng.random(test.shape) < share
    ours.append(log_loss(outcome[1000:], model.predict_proba(test.mask(lost))))
    encoded = pd.get_dummies(test.mask(lost).astype({"smokes": float}), dtype=float)
    theirs.append(log_loss(outcome[1000:], usual.predict_proba(encoded.reindex(columns=numbers.columns))))

_, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(shares, ours, "o-", label="maxdisc: missing cells ignored")
axes.plot(shares, theirs, "s--", label="GaussianNB: imputed means")
axes.set(xlabel="additional share of missing test cells", ylabel="log-loss", ylim=(0, None))
axes.legend(frameon=False)
