"""``structure="auto"``: joint densities or independent features, whichever suits the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from maxdisc.fitting.data import Labelled, data_of
from maxdisc.fitting.fitted_model import FittedModel
from maxdisc.fitting.learning import Data, learn
from maxdisc.fitting.settings import Settings
from maxdisc.numerics.matrices import is_sparse
from maxdisc.rows.frames import NUMBER, Cells
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.selection.joint_fold_models import FEW_ROWS, MOST_CELLS

#: Tables of fewer cells are fitted in half the time without joint densities, and lose little.
FEW_CELLS = 2**10


def learn_structure(settings: Settings, given: Labelled, frame: Any, groups: Any) -> FittedModel:
    """Fit rows in memory that all have a label, with the structure that was asked for or that suits them.

    With more features than rows features are described jointly: so few rows cannot tell reliably where this
    may be left out of account. Of other small tables both are fitted, and held-out rows decide.
    """
    n_rows, n_features = given.n_rows, given.X.shape[1]
    if not (
        settings.may_join(n_features, MOST_CELLS // FEW_ROWS) and n_rows <= FEW_ROWS and _is_numeric(given)
    ):
        return learn(settings, data_of(settings, given, frame, groups))
    jointly = settings.jointly
    if n_rows < n_features:
        return learn(jointly, data_of(jointly, replace(given, X=_numbers(given)), frame, groups))
    data = data_of(settings, given, frame, groups)
    alone = learn(settings, data)
    if n_rows * n_features < FEW_CELLS or alone.evidence is None:
        return alone
    rows = replace(cast(ArrayRows, data.rows), X=_numbers(given.with_weight()))
    together = learn(jointly, Data(rows, data.plans, data.classes, names=data.names))
    losses = [np.inf if m.evidence is None else m.evidence.log_loss for m in (alone, together)]
    return replace(together, alone=alone) if losses[1] < losses[0] else alone


def _is_numeric(given: Labelled) -> bool:
    """Return whether the rows are a dense table of numbers."""
    return not is_sparse(given.X) and (
        not isinstance(given.X, Cells) or bool((given.X.kinds == NUMBER).all())
    )


def _numbers(given: Labelled) -> Any:
    """Return the rows as one matrix, shape (N, D)."""
    return given.X.numbers if isinstance(given.X, Cells) else given.X
