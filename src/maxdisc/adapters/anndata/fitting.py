"""Training on cells, read in chunks, with folds by a hash of each cell's values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from maxdisc.adapters.anndata.expression import expression_of, labels_of, require_unique
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.engines.labelled_stream import Labelled, LabelledStream


def fit(
    adata: Any,
    label: str,
    estimator: MaxDiscClassifier | None = None,
    *,
    layer: str | None = None,
    use_raw: bool | None = None,
) -> MaxDiscClassifier:
    """Fit a classifier to cells, with genes as named features.

    Cells are read in chunks, a few times, and never held all at once if ``adata`` is backed. The model is
    bitwise the same as for the same cells in memory.

    Parameters
    ----------
    adata : AnnData
        N cells, in memory or backed.
    label : str
        The column of ``obs`` with the labels: categories or text. Cells without a label are ignored.
    estimator : MaxDiscClassifier, optional
        With ``cv="hash"`` or a number of folds; by default ``MaxDiscClassifier(cv="hash")``.
    layer : str, optional
        Use values of this layer.
    use_raw : bool, optional
        Use values of ``raw``; by default if it exists and no layer is set.

    Returns
    -------
    MaxDiscClassifier
        The estimator, fitted; ``maxdisc.save`` writes it to a file.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from maxdisc.adapters.anndata import fit
    >>> rng = np.random.default_rng(0)
    >>> kinds = np.array(["B", "T"])[np.arange(60) % 2]
    >>> X = rng.gamma(2.0, np.where(kinds == "T", 2.0, 0.5)[:, None], (60, 3))
    >>> obs = pd.DataFrame({"cell_type": kinds}, index=[f"cell{i}" for i in range(60)])
    >>> model = fit(anndata.AnnData(X, obs, pd.DataFrame(index=["CD3D", "CD3E", "LCK"])), "cell_type")
    >>> model.feature_names_in_.tolist(), model.classes_.tolist()
    (['CD3D', 'CD3E', 'LCK'], ['B', 'T'])
    """
    values = expression_of(adata, layer, use_raw)
    names = values.names
    require_unique(names)
    codes, categories = labels_of(adata, label)
    classes = np.array(categories)
    if len(np.unique(codes[codes >= 0])) < 2:
        only = classes.tolist()[int(codes.max())]
        raise ValueError(
            f"column {label!r} of obs has only one class, {only!r}: a classifier needs two or more."
        )

    def chunks() -> Iterator[Labelled]:
        for some, X in values.chunks():
            kept = np.flatnonzero(codes[some] >= 0)
            if len(kept):
                whole = len(kept) == X.shape[0]
                yield Labelled(X if whole else X[kept], classes[codes[some][kept]], X.shape[0] - len(kept))

    model = MaxDiscClassifier(cv="hash") if estimator is None else estimator
    stream = LabelledStream(lambda done: islice(chunks(), done, None), names=[str(name) for name in names])
    return stream.fit(model)
