"""What must hold among the arrays of a model, whoever wrote the file."""

from __future__ import annotations

import numpy as np

from maxdisc.decisions.joint import JointDecision
from maxdisc.decisions.joint_average import AveragedDecision
from maxdisc.decisions.linear import LinearDecision
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.model_file.container import ModelFileError
from maxdisc.model_file.fields import Array
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.numerics.matrices import blocks
from maxdisc.numerics.threads import in_threads
from maxdisc.selection.fold_models import SelectionPath


def require_sound(
    ranking: FeatureRanking,
    decision: LinearDecision | MixedDecision | JointDecision | AveragedDecision,
    class_prior: Array,
    prior: Array | None,
    path: SelectionPath | None,
    n_features: int,
) -> None:
    """Raise :class:`ModelFileError` for finite arrays of the right shapes that are no model."""
    size = len(decision.columns)
    with np.errstate(all="ignore"):
        laws = {
            "its ranking is no order of its features": _is_order(ranking, n_features),
            "it does not keep the best of its features": 0 < size <= n_features
            and np.array_equal(decision.columns, ranking.order[:size]),
            "its class probabilities are none": _is_distribution(class_prior)
            and np.allclose(np.exp(decision.log_prior), class_prior, rtol=1e-6, atol=1e-300)
            and (prior is None or _is_distribution(prior)),
            "its average is none": not isinstance(decision, AveragedDecision) or _is_average(decision),
            "its densities do not integrate to 1": isinstance(decision, MixedDecision)
            or is_normalised(decision),
            "its path of accuracies is none": path is None or _is_path(path, n_features),
        }
    for complaint, holds in laws.items():
        if not holds:
            raise ModelFileError(f"{complaint}.")


def _is_order(ranking: FeatureRanking, n_features: int) -> bool:
    """Return whether features are ranked, each once: all of them, or those of a file without moments."""
    known = all(((at >= 0) & (at < n_features)).all() for at in (ranking.order, ranking.unsolved))
    return bool(known and len(np.unique(ranking.order)) == len(ranking.order))


def _is_distribution(values: Array) -> bool:
    return bool((values >= 0).all() and abs(values.sum() - 1) < 1e-8)


def is_normalised(decision: LinearDecision | JointDecision | AveragedDecision) -> bool:
    """Return whether baselines are the log-partitions of the weights, which must then be natural parameters.

    Only of families that translate are weights ever read as natural parameters again; of the others any
    finite numbers make a decision.
    """
    if isinstance(decision, AveragedDecision):
        return _is_joint(decision.density)
    if isinstance(decision, JointDecision):
        return _is_joint(decision)
    if not decision.family.translates:
        return True
    n_statistics, n_classes, n_columns = decision.weights.shape

    def right(block: slice) -> bool:
        weights, baseline = decision.weights[:, :, block], decision.baseline[:, block]
        with np.errstate(all="ignore"):
            gap = decision.family.log_partition(weights)
            gap -= baseline
            if np.abs(gap, out=gap).max() <= 1e-6:
                return True
            size = 1 + np.abs(baseline) + np.abs(weights).sum(axis=0)
            silent = ~(weights.any(axis=(0, 1)) | baseline.any(axis=0))
            return bool((silent | (gap <= 1e-6 * size)).all())

    # Small blocks: a model that is mapped into memory should not be doubled by looking at it.
    return all(in_threads(right, list(blocks(n_columns, 4 * n_statistics * n_classes, cells=2**18))))


def _is_joint(decision: JointDecision) -> bool:
    """Return whether covariances are positive, and there is one of them, or one for each class."""
    products = decision.factor @ np.swapaxes(decision.factor, 1, 2)
    lengths = np.einsum("grr->gr", products).copy()
    np.einsum("grr->gr", products)[:] = 0.0
    return bool(
        len(decision.tail) in (1, decision.n_classes)
        and (decision.tail >= 1).all()
        and (decision.rate >= 0).all()
        and (lengths < 1).all()
        and (np.abs(products) < 1e-6).all()
        and (decision.unit is None or (decision.unit > 0).all())
    )


def _is_average(decision: AveragedDecision) -> bool:
    """Return whether the columns are those of the forms and of the density, and values can be transformed."""
    parts = [decision.density.columns, *(form.columns for form in decision.forms)]
    return bool(
        all(len(np.unique(columns)) == len(columns) for columns in parts)
        and np.array_equal(np.unique(np.concatenate(parts)), np.sort(decision.columns))
        and all((form.rate >= 0).all() for form in decision.forms)
        and all(form.unit is None or (form.unit > 0).all() for form in decision.forms)
    )


def _is_path(path: SelectionPath, n_features: int) -> bool:
    growing = len(path.sizes) > 0 and (np.diff(path.sizes, prepend=0) > 0).all()
    shares = (path.accuracy >= 0).all() and (path.accuracy <= 1).all()
    weighty = len(path.weight) > 0 and (path.weight > 0).all() and (path.n_rows > 0).all()
    return bool(growing and path.sizes[-1] <= n_features and shares and weighty)


def are_moments(moments: ClassMoments) -> bool:
    """Return whether no weight is negative."""
    weights = (moments.weight, moments.observed, moments.nonzero, moments.squared, moments.squares)
    return all(weight is None or bool(np.all(weight >= 0)) for weight in weights)
