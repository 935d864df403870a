"""
Single cells: markers and annotation
====================================

Find marker genes of each cell type, and annotate the cells of a new sample. The data is ``pbmc68k_reduced``, 700 blood cells, which comes with scanpy.

It needs the extra ``anndata``, and scanpy for data and plots: ``python -m pip install '.[anndata]' scanpy``.
"""

import warnings

warnings.filterwarnings("ignore")  # those of scanpy and what it stands on

import matplotlib.pyplot as plt
import numpy as np
import scanpy as sc

from maxdisc.adapters.anndata import annotate, fit, rank_genes

cells = sc.datasets.pbmc68k_reduced()
print(cells.obs["bulk_labels"].value_counts().head(4).to_string())

# %%
# The result has the format of scanpy's own, so its plots can show it. Scores are divergences in nats, whose size does not depend on the number of cells.

rank_genes(cells, "bulk_labels", n_genes=20)
groups = ["CD19+ B", "CD14+ Monocyte", "CD56+ NK"]
sc.pl.rank_genes_groups(cells, groups=groups, n_genes=8, ncols=3, sharey=False)

# %%
# A model is fitted to two thirds of the cells, without B cells, and annotates the others. Cells whose p-value of belonging to a known class is at most 0.05 are ``unknown``.

known = np.arange(cells.n_obs) % 3 > 0
model = fit(cells[known & (cells.obs["bulk_labels"] != "CD19+ B").to_numpy()].copy(), "bulk_labels")
new = cells[~known].copy()
annotate(new, model, unknown=0.05)
b_cell = (new.obs["bulk_labels"] == "CD19+ B").to_numpy()
unknown = (new.obs["maxdisc"] == "unknown").to_numpy()
right = (new.obs["maxdisc"].astype(str) == new.obs["bulk_labels"].astype(str)).to_numpy()
print(f"B cells called unknown: {unknown[b_cell].mean():.0%}; others: {unknown[~b_cell].mean():.0%}")
print(f"of the others that were named, rightly: {right[~b_cell & ~unknown].mean():.0%}")

# %%
_, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for some, label, style in ((~unknown, "named", "."), (unknown, "unknown", "x")):
    axes.plot(*new.obsm["X_umap"][some].T, style, label=label)
axes.plot(*new.obsm["X_umap"][b_cell].T, "o", fillstyle="none", color="black", markersize=9, label="really B")
axes.set(xticks=[], yticks=[], xlabel="UMAP 1", ylabel="UMAP 2")
axes.legend(frameon=False)
