"""
Unknown classes
===============

A classifier assigns one of its labels to every row, even to a row of a class that was not in training. ``novelty`` measures how well a row fits the known classes, as a
p-value: about 1 % of the rows of known classes have 0.01 or less.

Here a model of handwritten digits is trained without sevens:
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from maxdisc import MaxDiscClassifier

X, y = load_digits(return_X_y=True)
train = (np.arange(len(y)) % 2 == 0) & (y != 7)
model = MaxDiscClassifier().fit(X[train], y[train])

p = model.novelty(X[~train])
seven = y[~train] == 7
for threshold in (0.01, 0.05, 0.2):
    known, unknown = (p[~seven] <= threshold).mean(), (p[seven] <= threshold).mean()
    print(f"at {threshold:4}: {known:5.1%} of the known digits, {unknown:5.1%} of the sevens")

# %%
# The threshold is the rate of false alarms. The plot shows the share of sevens found for each threshold:

_, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.ecdf(p[seven], label="sevens")
axes.ecdf(p[~seven], linestyle="--", label="digits of known classes")
axes.set(xscale="log", xlabel="threshold", ylabel="share at or below it", xlim=(1e-3, 1))
axes.legend(frameon=False)

# %%
# The rows with the smallest p-values:

strangest = np.argsort(p, kind="stable")[:10]
_, places = plt.subplots(1, 10, figsize=(9, 1.3), layout="constrained")
for place, row in zip(places, strangest, strict=True):
    place.imshow(X[~train][row].reshape(8, 8), cmap="gray_r")
    place.set(xticks=[], yticks=[], title=f"is {y[~train][row]}")

# %%
# On the command line, use ``maxdisc predict model.maxdisc new.csv --unknown 0.01``, which labels such rows ``unknown``.
