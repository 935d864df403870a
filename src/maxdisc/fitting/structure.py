"""``structure="auto"``: joint densities or independent features, whichever suits the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from maxdisc.fitting.data import Labelled, data_of, partly_labelled
from maxdisc.fitting.fitted_model import FittedModel
from maxdisc.fitting.learning import Data, learn
from maxdisc.fitting.semi_supervised import learn_partly
from maxdisc.fitting.settings import Settings
from maxdisc.numerics.matrices import Booleans, is_sparse
from maxdisc.rows.frames import NUMBER, Cells
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.selection.joint_fold_models import FEW_ROWS, MOST_CELLS

#: Tables of fewer cells are fitted in half the time without joint densities, and lose little.
FEW_CELLS = 2**10


def learn_structure(
    settings: Settings, given: Labelled, missing: Booleans | None, frame: Any, groups: Any
) -> FittedModel:
    """Fit rows in memory with the structure that was asked for, or that suits those which have a label.

    With more features than rows features are described jointly: so few rows cannot tell reliably where this
    may be left out of account. Of other small tables both are fitted, and held-out rows decide. Rows without
    a label teach independent features alone.
    """
    known = given if missing is None else given[np.flatnonzero(~missing)]
    n_rows, n_features = known.n_rows, given.X.shape[1]
    is_open = settings.may_join(n_features) and _is_small_table(known)
    is_wide = is_open and n_rows < n_features
    if is_wide and missing is None:
        jointly = settings.jointly
        return learn(jointly, data_of(jointly, replace(given, X=_numbers(given)), frame, groups))
    if missing is None:
        data = data_of(settings, given, frame, groups)
        alone = learn(settings, data)
    else:
        data, both = partly_labelled(settings, given, missing, frame, groups)
        alone = learn_partly(settings, data, both)
    if not is_open or n_rows * n_features < FEW_CELLS or alone.evidence is None:
        return alone
    rows = replace(cast(ArrayRows, data.rows), X=_numbers(known.with_weight()))
    together = learn(settings.jointly, Data(rows, data.plans, data.classes, names=data.names))
    losses = [np.inf if m.evidence is None else m.evidence.log_loss for m in (alone, together)]
    is_better = losses[1] < losses[0] or (is_wide and not alone.unlabelled_weight)
    return replace(together, alone=alone) if is_better else alone


def _is_small_table(given: Labelled) -> bool:
    """Return whether the rows are a dense table of numbers, and few."""
    X = given.X
    if is_sparse(X) or (isinstance(X, Cells) and not (X.kinds == NUMBER).all()):
        return False
    return given.n_rows <= FEW_ROWS and X.shape[1] <= MOST_CELLS // FEW_ROWS


def _numbers(given: Labelled) -> Any:
    """Return the rows as one matrix, shape (N, D)."""
    return given.X.numbers if isinstance(given.X, Cells) else given.X
