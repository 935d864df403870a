"""
Number of features
==================

Each further feature of the ranking adds a term to every score, so one sweep over held-out rows gives the accuracy of *every* number of features. ``fit`` does this on
five folds. The data is handwritten digits, with 64 pixels and 400 columns of noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from maxdisc import MaxDiscClassifier
from maxdisc.plots import PathDisplay

pixels, y = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
X = np.hstack([pixels, rng.normal(8, 4, size=(len(pixels), 400))])
train, test = slice(0, 900), slice(900, None)

model = MaxDiscClassifier("gaussian", evidence="raw").fit(X[train], y[train])
PathDisplay.from_estimator(model)

# %%
# Rules for the number
# --------------------
#
# ``rule="best"`` is the paper's: the smallest number of features with the highest accuracy. ``rule="one_se"`` is the smallest number within one standard error
# of it: use it if features are expensive, or if people read them.

for rule in ("best", "one_se"):
    chosen = MaxDiscClassifier("gaussian", evidence="raw", rule=rule).fit(X[train], y[train])
    noise = (chosen.ranking_[: chosen.n_selected_] >= 64).sum()
    told = f"{chosen.n_selected_:3} columns, {noise} of them noise"
    print(f"{rule:7} {told}, accuracy on new digits {chosen.score(X[test], y[test]):.3f}")

# %%
# With few features redundancy matters, as between neighbouring pixels. ``redundancy`` subtracts what the features selected before explain.

sizes = [2, 4, 8, 16, 32]
_, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
for redundancy, style in ((0.0, "s--"), (1.0, "o-")):
    settings = {"redundancy": redundancy, "evidence": "raw"}
    models = [
        MaxDiscClassifier("gaussian", n_features=size, **settings).fit(X[train], y[train]) for size in sizes
    ]
    axes.plot(sizes, [m.score(X[test], y[test]) for m in models], style, label=f"redundancy={redundancy:g}")
axes.set(
    xlabel="columns selected", ylabel="accuracy on new digits", xscale="log", xticks=sizes, xticklabels=sizes
)
axes.minorticks_off()
axes.legend(frameon=False)

# %%
# Calibrated evidence compares the ends of at most six bands of the ranking, by held-out log-loss. Many features do little harm then, because the weights of late bands are
# small.

calibrated = MaxDiscClassifier("gaussian").fit(X[train], y[train])
print(calibrated.evidence_)
