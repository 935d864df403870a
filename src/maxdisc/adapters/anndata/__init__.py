"""AnnData: marker genes, annotation of cell types, and training on cells in memory or on disk."""

from __future__ import annotations

from maxdisc.numerics.installation import pip_line

try:
    import anndata  # noqa: F401  # asked for once, here, with the way out
except ImportError as error:
    raise ImportError(f"maxdisc.adapters.anndata needs anndata: {pip_line('anndata')}") from error

from maxdisc.adapters.anndata.annotating import annotate
from maxdisc.adapters.anndata.fitting import fit
from maxdisc.adapters.anndata.ranking import rank_genes

__all__ = ["annotate", "fit", "rank_genes"]
