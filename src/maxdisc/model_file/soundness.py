"""Consistency checks of untrusted model files."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from maxdisc.decisions.joint import JointDecision, LogTransform
from maxdisc.decisions.joint_average import AveragedDecision, LinearForm
from maxdisc.decisions.linear import LinearDecision
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.families import FAMILIES, Categorical, Family
from maxdisc.fitting.settings import Settings
from maxdisc.model_file.container import ModelFileError
from maxdisc.model_file.fields import Array
from maxdisc.moments.class_moments import ClassMoments, ratio
from maxdisc.numerics.matrices import blocks
from maxdisc.numerics.threads import in_threads
from maxdisc.rows.validation import given_jobs
from maxdisc.selection.fold_models import SelectionPath

#: No parameter of a model that was fitted is larger: values are at most 1e140 where they are squared, and the
#: smallest spread is 1e-140. Terms of values that are not beyond all others then do not overflow.
MOST = 1e290
#: No distance that is squared, and nothing that it is measured in.
ROOT = 1e145
#: Nor is the weight of all rows, which is squared.
MOST_WEIGHT = 1e154
#: Nor the number of rows.
MOST_ROWS = 1e15
#: The families whose domain of means is known without a search.
_CLOSED_FORMS = {*map(type, FAMILIES.values()), Categorical}
#: Weights that are 0 are; others are not so much smaller than all together.
LEAST_WEIGHT = 1e-100
#: No unit of logarithms is smaller: it is a share of a deviation, whose square is a number.
LEAST_UNIT = 1e-164
#: A covariance is at most 1e11 times as wide in one direction as in most: see ``WIDEST`` of joint densities.
LEAST_REST = 1e-12
#: What sums over the same rows may differ by.
NEARLY = 1 + 1e-6
#: So far means are drawn into their domain before it is asked whether they are inside.
INWARDS = 1e-6


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
            "its class probabilities are invalid": _is_distribution(class_prior)
            and np.allclose(np.exp(decision.log_prior), class_prior, rtol=1e-6, atol=1e-300)
            and (prior is None or _is_distribution(prior)),
            "its average is invalid": not isinstance(decision, AveragedDecision) or _is_average(decision),
            "its densities do not integrate to 1": isinstance(decision, MixedDecision)
            or is_normalised(decision),
            "its densities have parameters beyond all numbers": _is_moderate(decision),
            "its scores are beyond all numbers": are_moderate(ranking.scores),
            "its path of accuracies is invalid": path is None or _is_path(path, n_features),
        }
    for complaint, holds in laws.items():
        if not holds:
            raise ModelFileError(f"{complaint}.")


def _is_order(ranking: FeatureRanking, n_features: int) -> bool:
    """Return whether features are ranked, each once: all of them, or those of a file without moments."""
    known = all(((at >= 0) & (at < n_features)).all() for at in (ranking.order, ranking.unsolved))
    return bool(known and len(np.unique(ranking.order)) == len(ranking.order))


def _is_moderate(decision: LinearDecision | MixedDecision | JointDecision | AveragedDecision) -> bool:
    """Return whether terms of usual values do not overflow."""
    if isinstance(decision, MixedDecision):
        return all(_is_moderate(part.decision) for part in decision.parts)
    if isinstance(decision, LinearDecision):
        largest = decision.family.largest if decision.family.translates else 0.0
        return are_moderate(decision.weights, decision.baseline) and are_moderate(
            decision.origin, most=largest
        )
    if isinstance(decision, JointDecision):
        return are_moderate(
            decision.origin, decision.rate, decision.center, decision.tail, decision.unit, most=ROOT
        )
    forms = all(
        are_moderate(form.origin, form.rate, form.weights, form.baseline, form.unit, most=ROOT)
        for form in decision.forms
    )
    return forms and _is_moderate(decision.density) and are_moderate(decision.log_shares, most=ROOT)


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
        and (lengths <= 1 - LEAST_REST).all()
        and (np.abs(products) < 1e-6).all()
        and _is_standardised(decision)
        and (decision.unit is None or _are_transforms(_class_means(decision), decision.unit))
    )


def _is_standardised(values: JointDecision | LinearForm) -> bool:
    """Return whether values are divided by numbers that deviations of values can be, after logs of them."""
    rate, unit = values.rate, values.unit
    return bool(
        ((rate == 0) | (rate >= 1 / ROOT)).all()
        and (unit is None or ((unit >= LEAST_UNIT).all() and _are_transforms(values.origin, unit)))
    )


def _class_means(decision: JointDecision) -> Array:
    """Return the means of the classes in the transformed values, shape (C, K)."""
    rate = np.where(decision.rate > 0, decision.rate, np.inf)
    return decision.origin + decision.center / rate


def _are_transforms(values: Array, unit: Array) -> bool:
    """Return whether numbers are logs of values that a fit takes."""
    return bool((np.abs(values) <= NEARLY * LogTransform(unit).largest).all())


def _is_average(decision: AveragedDecision) -> bool:
    """Return whether the columns are those of the forms and of the density, and values can be transformed."""
    parts = [decision.density.columns, *(form.columns for form in decision.forms)]
    return bool(
        all(len(np.unique(columns)) == len(columns) for columns in parts)
        and np.array_equal(np.unique(np.concatenate(parts)), np.sort(decision.columns))
        and all(map(_is_standardised, decision.forms))
    )


def _is_path(path: SelectionPath, n_features: int) -> bool:
    growing = len(path.sizes) > 0 and (np.diff(path.sizes, prepend=0) > 0).all()
    shares = (path.accuracy >= 0).all() and (path.accuracy <= 1).all()
    weighty = len(path.weight) > 0 and (path.weight > 0).all() and (path.n_rows > 0).all()
    # A density may be so narrow that what lies outside costs anything, as long as it could be summed.
    summed = np.isfinite(path.weight @ np.abs(path.log_loss)).all()
    moderate = are_moderate(path.weight, path.n_rows, most=MOST_WEIGHT) and are_moderate(path.log_loss)
    return bool(moderate and summed and growing and path.sizes[-1] <= n_features and shares and weighty)


def are_moderate(*arrays: Array | float | None, most: float = MOST) -> bool:
    """Return whether no number is larger than those of a model that was fitted can be."""
    # Without a copy: of a model that is mapped into memory, this may be nearly all.
    values = [np.asarray(array) for array in arrays if array is not None]
    return all(v.size == 0 or bool(v.max() <= most and v.min() >= -most) for v in values)


def are_weights(values: Array, unit: float = 1.0) -> bool:
    """Return whether numbers are 0, or above it and neither so large nor so small that they are lost."""
    return bool(((values == 0) | ((values >= unit * LEAST_WEIGHT) & (values <= unit * ROOT))).all())


def are_moments(moments: ClassMoments, family: Family) -> bool:
    """Return whether these may be sums over rows: weights that fit each other, and means of values."""
    weight, cells = moments.weight, moments.cells
    with np.errstate(all="ignore"):
        total = weight.sum()
        of_all = np.broadcast_to(cells, moments.sums.shape[1:]).sum(axis=0)
        weighed = (
            bool(((weight >= 0) & (cells.T >= 0) & (weight * NEARLY >= cells.T)).all())
            and 0 < total <= MOST_WEIGHT
            # At most as many rows as floats can count, and at least one.
            and (moments.squares is None or total**2 / MOST_ROWS <= moments.squares <= total**2 * NEARLY)
            and (moments.nonzero is None or _are_between(moments.nonzero, of_all * NEARLY))
            and (moments.nonzero is None or are_weights(moments.nonzero, total))
            and (moments.squared is None or _are_between(moments.squared, np.full(1, np.inf)))
        )
        largest = family.largest if family.translates else 0.0
        if not weighed or not are_moderate(moments.sums) or not are_moderate(moments.origin, most=largest):
            return False
        if type(family) not in _CLOSED_FORMS:
            return True
        neutral = np.asarray(family.neutral, dtype=np.float64)[:, None, None]

        def have_means(block: slice) -> bool:
            n = np.broadcast_to(cells, moments.sums.shape[1:])[:, block]
            sums = moments.sums[:, :, block]
            # The domain is convex: what is on its boundary is inside once it is drawn to the neutral mean.
            mean = np.where(n > 0, (1 - INWARDS) * ratio(sums, n) + INWARDS * neutral, neutral)
            inside = family.interior(mean) & ((n > 0) | (sums == 0).all(axis=0))
            return bool(inside.all()) and are_moderate(mean)

        n_statistics, n_classes, n_columns = moments.sums.shape
        return all(map(have_means, blocks(n_columns, 4 * n_statistics * n_classes, cells=2**16)))


def _are_between(values: Array, high: Array) -> bool:
    """Return whether values are at least 0 and no larger than they may be."""
    return bool(((values >= 0) & (values <= high)).all())


def require_parameters(given: Mapping[str, Any], classes: Array, n_features: int) -> None:
    """Raise :class:`ModelFileError` for parameters with which no classifier of these classes was fitted."""
    cv, verbose = given["cv"], given["verbose"]
    try:
        settings = Settings.of(given)
        settings.size(n_features)
        settings.prior_among(classes)
        given_jobs(given["n_jobs"])
        weights, labels = settings.class_weight, set(classes.tolist())
        if isinstance(weights, Mapping) and not (labels >= weights.keys() or labels <= weights.keys()):
            raise ValueError("class_weight has a label that is no class.")
        check_random_state(given["random_state"])
        is_number = isinstance(cv, numbers.Integral) and not isinstance(cv, bool)
        if not ((is_number and int(cv) >= 2) or (isinstance(cv, str) and cv in ("hash", "holdout"))):
            raise ValueError(f"cv={cv!r} is no number of folds.")
        if not isinstance(verbose, numbers.Integral | np.bool_):
            raise ValueError(f"verbose must be a number, got {verbose!r}.")
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"its parameters are invalid: {' '.join(str(error).split())[:200]}") from None
