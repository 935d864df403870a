"""Annotation of cell types by a model."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from maxdisc.adapters.anndata.expression import expression_of, require_target, require_unique
from maxdisc.inspection.matching import MatchedColumns
from maxdisc.inspection.model_view import ModelView
from maxdisc.model_file.persistence import load
from maxdisc.words.scaling import CountScaler


def annotate(
    adata: Any,
    model: Any,
    *,
    layer: str | None = None,
    use_raw: bool | None = None,
    key_added: str = "maxdisc",
    unknown: float | None = 0.01,
    unknown_label: str = "unknown",
    copy: bool = False,
) -> Any:
    """Annotate cells with the classes of a model, or as unknown if they fit none.

    Genes are matched by name, in any order. A gene of the model that ``adata`` lacks counts as missing, and
    carries no evidence; genes that the model does not use are ignored.

    Parameters
    ----------
    adata : AnnData
        N cells, in memory or backed; values on the scale of the training data.
    model : MaxDiscClassifier, Pipeline, str or Path
        A fitted model with gene names, such as :func:`maxdisc.adapters.anndata.fit` returns, or its file.
    layer : str, optional
        Use values of this layer.
    use_raw : bool, optional
        Use values of ``raw``; by default if it exists and no layer is set.
    key_added : str
        Key of the results: ``obs[key_added]``, the labels, as categories in the order of the model's classes;
        ``obs[key_added + "_probability"]``, that of the most probable class; ``obs[key_added + "_novelty"]``,
        the p-value of belonging to a class of the model; and ``uns[key_added]``, the settings.
    unknown : float or None
        Cells with at most this p-value are unknown; so is about this share of cells of known types. None
        computes no p-values.
    unknown_label : str
        The label of unknown cells.
    copy : bool
        Return a copy, and leave ``adata`` unchanged.

    Returns
    -------
    AnnData or None
        The copy, if ``copy``.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> from maxdisc.adapters.anndata import annotate, fit
    >>> rng = np.random.default_rng(0)
    >>> kinds = np.array(["B", "T"])[np.arange(60) % 2]
    >>> X = rng.gamma(2.0, np.where(kinds == "T", 2.0, 0.5)[:, None], (60, 3))
    >>> obs = pd.DataFrame({"cell_type": kinds}, index=[f"cell{i}" for i in range(60)])
    >>> adata = anndata.AnnData(X, obs, pd.DataFrame(index=["CD3D", "CD3E", "LCK"]))
    >>> annotate(adata, fit(adata, "cell_type"), unknown=0.05)
    >>> adata.obs["maxdisc"].cat.categories.tolist()
    ['B', 'T', 'unknown']
    """
    if unknown is not None and not 0 < unknown < 1:
        raise ValueError(
            f"unknown must be a share of the known cells between 0 and 1, or None, got {unknown!r}."
        )
    require_target(adata, copy)
    fitted, path = _loaded(model)
    classes = fitted.classes
    if unknown is not None:
        _require_novelty(fitted, unknown, unknown_label)
    values = expression_of(adata, layer, use_raw)
    names = values.names
    require_unique(names)
    genes = MatchedColumns.of(fitted, names.tolist())
    if genes.missing:
        warnings.warn(f"{genes.told}.", UserWarning, stacklevel=2)
    best = np.empty(adata.n_obs, dtype=np.intp)
    probability, novelty = np.ones((2, adata.n_obs))
    for some, X in values.chunks(genes.width):
        with _named():
            rows = fitted.rows(genes.aligned(X))
            log_p = fitted.classifier.predict_log_proba(rows)
            best[some] = log_p.argmax(axis=1)
            probability[some] = np.exp(log_p.max(axis=1))
            if unknown is not None:
                novelty[some] = fitted.classifier.novelty(rows)
    strange = np.zeros(adata.n_obs, dtype=np.bool_) if unknown is None else novelty <= unknown
    codes = np.where(strange, len(classes), best)
    target = adata.copy() if copy else adata
    called = [*classes, *([] if unknown is None else [unknown_label])]
    target.obs[key_added] = pd.Categorical.from_codes(codes, called)
    target.obs[f"{key_added}_probability"] = probability
    params: dict[str, Any] = {
        "use_raw": values.use_raw,
        "n_genes": len(genes.places),
        "n_genes_kept": int(genes.kept.sum()),
        "n_kept_missing": len(genes.missing),
        "kept_missing": np.array(genes.missing, dtype=object),
    }
    given: dict[str, Any] = {"model": path, "layer": layer}
    if unknown is not None:
        target.obs[f"{key_added}_novelty"] = novelty
        given |= {"unknown": float(unknown), "unknown_label": unknown_label, "n_unknown": int(strange.sum())}
    target.uns[key_added] = params | {name: value for name, value in given.items() if value is not None}
    return target if copy else None


def _loaded(model: Any) -> tuple[ModelView, str | None]:
    """Return the model, and the name of its file, if any."""
    path = None
    if isinstance(model, (str, os.PathLike)):
        path = Path(model).name
        model = load(model)
    fitted = ModelView.of(model)
    first = fitted.classifier if fitted.before is None else fitted.before[0]
    if fitted.before is not None and not isinstance(first, CountScaler):
        raise ValueError(f"the model begins with {type(first).__name__}: one of tables of numbers is needed.")
    if getattr(first, "feature_names_in_", None) is None:
        raise ValueError(
            "the model does not know its genes by name: fit it with maxdisc.adapters.anndata.fit, or on a "
            "frame."
        )
    return fitted, path


def _require_novelty(fitted: ModelView, unknown: float, label: str) -> None:
    if label in fitted.classes:
        raise ValueError(
            f"{label!r} is a class of the model: say what unknown cells are called, unknown_label=..."
        )
    learnt = fitted.classifier._learnt.novelty
    if learnt is None:
        raise ValueError(f"{fitted.classifier._learnt.why_not_novelty()[:-1]}; or give unknown=None.")
    least = float(learnt.p_value[0])
    if least > unknown:
        warnings.warn(
            f"no cell can be unknown: the model was fitted to few cells, and has no p-value below "
            f"{least:.2g}; raise unknown.",
            UserWarning,
            stacklevel=3,
        )


@contextmanager
def _named() -> Iterator[None]:
    """Columns have been matched by name: that a matrix has none is no news."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield
