"""A decision as coefficients of the columns of X, where its scores are linear in them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from maxdisc.decisions.by_length import LengthDecision
from maxdisc.decisions.joint import JointDecision
from maxdisc.decisions.joint_average import AveragedDecision
from maxdisc.decisions.linear import LinearDecision
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.families import Family
from maxdisc.numerics.matrices import Floats, Integers

#: Columns, what they are multiplied with (C, k), and what is taken from them before that (k,).
_Term = tuple[Integers, Floats, Floats]


def coefficients(
    decision: LinearDecision | MixedDecision | JointDecision | AveragedDecision | LengthDecision,
    n_features: int,
) -> tuple[Floats, Floats]:
    """Return coefficients (C, D), 0 for columns that were not selected, and intercepts (C,).

    Their scores have the decision's probabilities for rows without missing cells; where evidence is weighed
    by the number of features in a row, for scaled rows of the largest number. Of two classes, one row is the
    difference of the second and the first. Raise ``AttributeError``, and say why, if scores are not linear.
    """
    terms, intercept = _linear_terms(decision)
    coef = np.zeros((decision.n_classes, n_features))
    for columns, weights, origin in terms:
        coef[:, columns] += weights
        intercept = intercept - weights @ origin
    if len(coef) != 2:
        return coef, intercept
    return coef[1:] - coef[:1], intercept[1:] - intercept[:1]


def _linear_terms(
    decision: LinearDecision | MixedDecision | JointDecision | AveragedDecision | LengthDecision,
) -> tuple[Iterable[_Term], Floats]:
    if isinstance(decision, MixedDecision):
        raise AttributeError("coef_ is of one column each, and here columns have families of their own.")
    if isinstance(decision, LengthDecision):
        _require_linear(decision.family)
        weights = np.tensordot(decision.lengths.weights[-1], decision.weights, axes=1)
        intercept = decision.log_prior + decision.lengths.bias[-1]
        return [(decision.columns, weights, np.zeros(len(decision.columns)))], intercept
    if isinstance(decision, LinearDecision):
        _require_linear(decision.family)
        intercept = decision.log_prior - decision.baseline.sum(axis=1)
        return [(decision.columns, decision.weights[0], decision.origin)], intercept
    if isinstance(decision, JointDecision):
        _require_untransformed(decision.linear, [decision.unit])
        half = 0.5 * (decision.weights * decision.center).sum(axis=1)
        term = (decision.columns, decision.weights * decision.rate, decision.origin)
        return [term], decision.log_prior - half
    _require_untransformed(bool(decision.forms), [form.unit for form in decision.forms])
    constants = [form.baseline.sum(axis=1) for form in decision.forms]
    terms = [(form.columns, form.weights * form.rate, form.origin) for form in decision.forms]
    return terms, decision.log_prior + np.sum(constants, axis=0)


def _require_linear(family: Family) -> None:
    probe = np.array([0.25, 0.75])
    if family.n_statistics != 1 or not np.array_equal(family.statistics(probe)[0], probe):
        raise AttributeError(
            f"scores of {family.name} densities are not linear in X, so there is no coef_: explain(X) has "
            "what each feature contributes."
        )


def _require_untransformed(is_linear: bool, units: Iterable[Floats | None]) -> None:
    if not is_linear:
        raise AttributeError("coef_ needs classes with one covariance: structure=Joint('shared').")
    if any(unit is not None for unit in units):
        raise AttributeError(
            "scores are linear in the logs of X, so there is no coef_: structure=Joint(transform=None)."
        )
