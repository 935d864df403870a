"""Marker genes of groups of cells, in the format of scanpy's results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from maxdisc.adapters.anndata.expression import (
    Expression,
    expression_of,
    labels_of,
    nearest,
    require_target,
    require_unique,
)
from maxdisc.numerics.matrices import Booleans, Floats, Integers
from maxdisc.significance.markers import ClassSums, Markers, find_markers

#: As scanpy writes them, so that its readers find what they know.
_TYPES = {"scores": "float32", "logfoldchanges": "float32", "pvals": "float64", "pvals_adj": "float64"}
#: What scanpy adds to both sides of a fold change, so that none is infinite.
_LITTLE = 1e-9


def rank_genes(
    adata: Any,
    groupby: str,
    *,
    layer: str | None = None,
    use_raw: bool | None = None,
    groups: str | Sequence[str] = "all",
    n_genes: int | None = None,
    family: str = "auto",
    smoothing: float = 1.0,
    mask_var: npt.ArrayLike | str | None = None,
    pts: bool = False,
    key_added: str = "rank_genes_groups",
    copy: bool = False,
) -> Any:
    """Rank genes by the divergence of their density in a group from that in all other cells.

    The result in ``adata.uns[key_added]`` has the format of ``scanpy.tl.rank_genes_groups``, so that
    ``scanpy.get.rank_genes_groups_df``, ``scanpy.pl.rank_genes_groups*`` and
    ``scanpy.tl.filter_rank_genes_groups`` read it. Cells are read once, in chunks, from memory or disk.

    Parameters
    ----------
    adata : AnnData
        N cells, in memory or backed.
    groupby : str
        The column of ``obs`` with the groups: categories or text. Cells without a group are ignored.
    layer : str, optional
        Use values of this layer.
    use_raw : bool, optional
        Use values of ``raw``; by default if it exists and no layer is set.
    groups : "all" or sequence of str
        The groups to rank; each is compared with all other cells that have a group.
    n_genes : int, optional
        Number of genes written for each group; by default all.
    family : str
        The family of the densities: "auto", "poisson", "hurdle", "bernoulli", "geometric", "exponential",
        "gaussian" or "gaussian_shared"; "auto" is Poisson, for counts and for their logs, unless values are
        negative, as scaled ones are: then Gaussian with one variance in the group and the rest.
    smoothing : float
        Number of pseudo-cells that express the gene, in each group: more smoothing ranks genes lower that few
        cells express.
    mask_var : array-like of bool of shape (D,) or str, optional
        The genes to rank, or the column of ``var`` that marks them.
    pts : bool
        Also write the shares of cells that express each gene: ``pts`` and ``pts_rest``.
    key_added : str
        Key of the result in ``uns``.
    copy : bool
        Return a copy with the result, and leave ``adata`` unchanged.

    Returns
    -------
    AnnData or None
        The copy, if ``copy``.

    Notes ----- ``scores`` are Jeffreys divergences in nats, negative if the group has less of a gene:
    up-regulated genes come first, and the size of a score does not depend on the number of cells. ``pvals``
    are the probability that the mean of a group is at least as far from that of the rest under permuted
    labels; ``pvals_adj`` are adjusted by Benjamini and Hochberg. ``logfoldchanges`` are scanpy's: log2 of the
    ratio of ``expm1`` of mean log values (to the base in ``uns["log1p"]``). If all values are integers they
    are treated as counts, and it is the ratio of their means; it is NaN if values are negative.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from maxdisc.adapters.anndata import rank_genes
    >>> X = np.array([[0.0, 2.3], [0.4, 2.0], [1.9, 2.2], [2.0, 2.1]], dtype=np.float32)
    >>> obs = pd.DataFrame({"cell_type": ["B", "B", "T", "T"]}, index=list("abcd"), dtype="category")
    >>> adata = anndata.AnnData(X, obs, pd.DataFrame(index=["CD3D", "ACTB"]))
    >>> rank_genes(adata, "cell_type")
    >>> [str(gene) for gene in adata.uns["rank_genes_groups"]["names"]["T"]]
    ['CD3D', 'ACTB']
    """
    require_target(adata, copy)
    values = expression_of(adata, layer, use_raw)
    names, genes = values.names, _mask(values, mask_var)
    require_unique(names)
    codes, categories = labels_of(adata, groupby)
    ranked = _ranked(codes, categories, groups, groupby)
    present, compact = np.unique(codes[codes >= 0], return_inverse=True)
    labels = np.full(len(codes), -1, dtype=np.intp)
    labels[codes >= 0] = compact
    found = find_markers(_sums(values, labels, len(present), genes), family, smoothing)
    if n_genes is not None and n_genes < 1:
        raise ValueError(f"n_genes must be at least 1, got {n_genes}.")
    at = np.searchsorted(present, ranked)
    called = [str(categories[g]) for g in ranked]
    changes, kind = _fold_changes(found, adata.uns.get("log1p"))
    params = {
        "groupby": groupby,
        "reference": "rest",
        "method": "maxdisc",
        "use_raw": values.use_raw,
        "layer": layer,
        "corr_method": "benjamini-hochberg",
        "family": found.family,
        "smoothing": float(smoothing),
        "logfoldchanges": kind,
        "n_unlabelled": int((codes < 0).sum()),
    }
    planes = {"scores": found.scores, "logfoldchanges": changes, "pvals": found.p, "pvals_adj": found.q}
    orders = [found.order(c)[:n_genes] for c in at]
    names = names if genes is None else names[genes]
    result: dict[str, Any] = {"params": params, "names": _records(called, [names[o] for o in orders], "O")}
    for name, plane in planes.items():
        cells = [plane[c][order] for c, order in zip(at, orders, strict=True)]
        result[name] = _records(called, cells, _TYPES[name])
    if pts:
        for name, share in zip(("pts", "pts_rest"), found.shares, strict=True):
            result[name] = pd.DataFrame(share[at].T, index=pd.Index(names), columns=called)
    target = adata.copy() if copy else adata
    target.uns[key_added] = result
    return target if copy else None


def _records(called: list[str], columns: list[npt.NDArray[Any]], kind: str) -> Any:
    return np.rec.fromarrays(columns, dtype=[(name, kind) for name in called])


def _mask(values: Expression, mask: npt.ArrayLike | str | None) -> Booleans | None:
    """Return the genes that are ranked; None for all."""
    if mask is None:
        return None
    if isinstance(mask, str):
        if mask not in values.var:
            raise ValueError(f"var has no column {mask!r}{nearest(mask, list(values.var.columns))}")
        mask = values.var[mask].to_numpy()
    given = np.asarray(mask)
    if given.shape != (values.shape[1],) or given.dtype != np.bool_:
        raise ValueError(
            f"mask_var must be {values.shape[1]:,} truth values, one for each gene, got shape {given.shape} "
            f"of {given.dtype}."
        )
    if not given.any():
        raise ValueError("mask_var leaves no gene to rank.")
    return given


def _ranked(codes: Integers, categories: list[Any], groups: Any, column: str) -> Integers:
    """Codes of the groups that are ranked, in the order of the categories."""
    sizes = np.bincount(codes[codes >= 0], minlength=len(categories))
    if (sizes > 0).sum() < 2:
        only = categories[int(sizes.argmax())]
        raise ValueError(f"all cells with a label are {str(only)!r} in column {column!r}: there is no rest.")
    wanted = np.flatnonzero(sizes)
    if isinstance(groups, str):
        if groups != "all":
            raise ValueError(f"groups must be 'all' or a list of groups, got {groups!r}.")
    else:
        known = {str(name): code for code, name in enumerate(categories)}
        strange = [g for g in groups if str(g) not in known]
        if strange:
            raise ValueError(f"{column!r} has no group {strange[0]!r}{nearest(strange[0], list(known))}")
        wanted = np.array(sorted({known[str(g)] for g in groups}), dtype=np.intp)
        if not len(wanted):
            raise ValueError("groups is empty: name some, or 'all'.")
    few = [str(categories[g]) for g in wanted if sizes[g] < 2]
    if few:
        raise ValueError(
            f"group {few[0]!r} of column {column!r} has {sizes[[str(c) for c in categories].index(few[0])]} "
            "cell(s), and two are needed to tell chance from difference: leave it out with groups=[...], or "
            "merge it with another."
        )
    return wanted


def _sums(values: Expression, labels: Integers, n_groups: int, genes: Booleans | None) -> ClassSums:
    """Return one pass over the cells that have a label."""
    total: ClassSums | None = None
    for some, X in values.chunks():
        kept = labels[some] >= 0
        if not kept.any():
            continue
        X = X if kept.all() else X[np.flatnonzero(kept)]
        X = X if genes is None else X[:, np.flatnonzero(genes)]
        part = ClassSums.of(X, labels[some][kept], n_groups)
        total = part if total is None else total + part
    assert total is not None  # some cell has a label
    return total


def _fold_changes(found: Markers, log1p: Any) -> tuple[Floats, str]:
    """Log2 of what the group has over what the rest has, shape (C, D), and what values were taken for."""
    mean, rest = found.means
    if found.sums.least < 0:
        return np.full(mean.shape, np.nan), "none: values are negative"
    kind = "ratio of mean counts"
    if not found.sums.whole:
        base = log1p.get("base") if isinstance(log1p, dict) else None
        scale = 1.0 if base is None else float(np.log(base))
        with np.errstate(over="ignore"):
            mean, rest = np.expm1(mean * scale), np.expm1(rest * scale)
        kind = "ratio of expm1 of mean logs"
    with np.errstate(invalid="ignore"):
        return np.log2((mean + _LITTLE) / (rest + _LITTLE)), kind
