"""How far to trust a ranking: p-values of what was learnt, by its moments or by rows, as a table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxdisc.decisions.mixed import ranked_model
from maxdisc.divergences.class_divergences import js_gm
from maxdisc.families.blocks import AnyMoments, Columns, MixedMoments
from maxdisc.fitting.fitted_model import FittedModel
from maxdisc.numerics.matrices import Floats
from maxdisc.numerics.user_warnings import notice
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.significance.table import (
    NamedColumns,
    Significance,
    class_columns,
    debiased,
    lucky_rows,
    ranking_columns,
    row_p_values,
)


def told_significance(learnt: FittedModel) -> Significance:
    """P-values as far as moments tell; warn of features that they do not tell of."""
    found = learnt.significance
    if np.isnan(found.p).any():
        notice(
            f"moments do not tell p-values of {int(np.isnan(found.p).sum())} features, whose family "
            "has no test of its own: give ranking_table the rows, X and y."
        )
    return found


def permuted(learnt: FittedModel, rows: ArrayRows, n_permutations: int | None, seed: int) -> Significance:
    """P-values by rows whose labels are dealt out at random."""
    learnt.family.require(rows.X, learnt.names)
    found = row_p_values(learnt.family, rows, n_permutations, seed)
    return Significance.of(found, learnt.stability)


def ranking_table(
    learnt: FittedModel,
    moments: AnyMoments,
    found: Significance,
    names: npt.NDArray[np.object_],
    n: int | None,
) -> NamedColumns:
    """Return the columns of the features best first; see :meth:`maxdisc.MaxDiscClassifier.ranking_table`."""
    ranking, kept = learnt.model[0], np.zeros(learnt.n_features, dtype=np.bool_)
    kept[learnt.decision.columns] = True
    columns = ranking.order[:n]
    beside = class_columns(learnt.family, moments, learnt.classes, columns)
    without_luck = _without_luck(learnt, moments)
    return ranking_columns(names, columns, kept, ranking.scores, without_luck, found, beside)


def _without_luck(learnt: FittedModel, moments: AnyMoments) -> Floats:
    """The js_gm of features, less what luck alone gives, shape (D,)."""
    family, scores = learnt.family, learnt.model[0].scores
    if isinstance(moments, MixedMoments) or isinstance(family, Columns):
        return scores  # those of mixed columns have none of it
    if learnt.divergence is not js_gm:
        scores = ranked_model(family, moments, learnt.choice.smoothing, js_gm, learnt.prior, 1)[0].scores
    return debiased(scores, family.n_statistics, *lucky_rows(moments, learnt.class_prior))
