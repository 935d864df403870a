"""
Fit on Dask
===========

Each worker sums its own rows, and only the sums are sent. The model is that of the same rows in memory, up to rounding of the sums.

It needs the extra ``dask``: ``python -m pip install '.[dask]'``. Here threads of this process do the work; with a ``distributed.Client`` the same code runs on a
cluster.
"""

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from maxdisc import MaxDiscClassifier
from maxdisc.adapters import dask as on_dask

random = da.random.default_rng(0)
y = random.integers(0, 4, size=40_000, chunks=5_000)
shift = 0.4 * (da.arange(200, chunks=200)[None, :] % 10 == y[:, None])
X = random.normal(size=(40_000, 200), chunks=(5_000, 200)) + shift
X, y = dask.persist(X, y)  # rows are read several times
print(X)

# %%
# ``cv="hash"`` assigns rows to folds by a hash of their content, so partitions do not matter.

model = on_dask.fit(MaxDiscClassifier(cv="hash"), X, y)
print(f"{model.n_selected_} of {model.n_features_in_} features selected")

# %%
# Predictions are lazy arrays, computed block by block.

labels = on_dask.predict(model, X)
print(labels)
print(f"accuracy {(labels == y).mean().compute():.3f}")

# %%
# Compare with the same rows in memory:

local = MaxDiscClassifier(cv="hash").fit(X.compute(), y.compute())
sums, local_sums = model.moments_.sums, local.moments_.sums
print(
    f"largest relative difference of the sums: {np.abs(sums - local_sums).max() / np.abs(local_sums).max():.1e}"
)
print(
    f"same features: {np.array_equal(model.ranking_[:40], local.ranking_[:40])}, same number: {model.n_selected_ == local.n_selected_}"
)

_, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(np.sort(model.scores_)[::-1], label="Dask")
axes.plot(np.sort(local.scores_)[::-1], ":", linewidth=3, label="in memory")
axes.set(xlabel="features, best first", ylabel="divergence between the classes, in nats", yscale="log")
axes.legend(frameon=False)
