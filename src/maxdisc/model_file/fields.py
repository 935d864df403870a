"""Arrays of a model file and their axes."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from maxdisc.calibration.evidence import Evidence
from maxdisc.calibration.novelty import Novelty
from maxdisc.decisions.by_length import LengthWeights
from maxdisc.decisions.joint import JointDecision
from maxdisc.decisions.joint_average import AveragedDecision, AveragedEvidence, LinearForm
from maxdisc.decisions.linear import LinearDecision
from maxdisc.discriminative import DiscriminativeMaxEnt
from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.fitting.fitted_model import Selected
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.selection.fold_models import SelectionPath

Array: TypeAlias = npt.NDArray[Any]
#: A part of the document.
Node: TypeAlias = dict[str, Any]


class Field(NamedTuple):
    """An array of a model: its axes by letter, and what its numbers are.

    ``single``: written in single precision where that holds all its values, since most of a file is of these.
    """

    axes: str
    dtype: type[np.generic] = np.float64
    optional: bool = False
    finite: bool = True
    single: bool = False


#: The arrays of each value. Axes of one letter have one length throughout a classifier: L statistics,
#: C classes, D features, K kept ones, S sizes, V folds, U unsolved features, G covariances, R rows of their
#: factors, B rows of coefficients, I values of the objective, M models averaged, E bands of
#: evidence, Q features corrected, T places of a table, H numbers of features, Y = 2 weights of each.
#: There are X = 2 unknown classes.
#: The forms and the density of
#: an average have a K (and G, R) of their own.
#: The arrays of the densities of unknown classes; their columns are those of the decision.
BESIDE = ("origin", "weights", "baseline")
FIELDS: dict[type, dict[str, Field]] = {
    ClassMoments: {
        "weight": Field("C"),
        "sums": Field("LCD"),
        "origin": Field("CD", optional=True),
        "observed": Field("CD", optional=True),
        "nonzero": Field("D", optional=True),
        "squared": Field("D", optional=True, finite=False),
    },
    FeatureRanking: {
        "scores": Field("D"),
        "order": Field("D", np.int64),
        "unsolved": Field("U", np.int64),
    },
    Selected: {
        "scores": Field("K"),
        "stability": Field("K", optional=True),
    },
    LinearDecision: {
        "columns": Field("K", np.int64),
        "origin": Field("K"),
        "weights": Field("LCK", single=True),
        "baseline": Field("CK", single=True),
        "log_prior": Field("C", finite=False),
    },
    JointDecision: {
        "columns": Field("K", np.int64),
        "origin": Field("K"),
        "rate": Field("K"),
        "center": Field("CK"),
        "tail": Field("G"),
        "factor": Field("GRK"),
        "log_prior": Field("C", finite=False),
        "unit": Field("K", optional=True),
    },
    AveragedDecision: {"columns": Field("K", np.int64), "log_shares": Field("C", optional=True)},
    LinearForm: {
        "columns": Field("K", np.int64),
        "origin": Field("K"),
        "rate": Field("K"),
        "weights": Field("CK"),
        "baseline": Field("CK"),
        "unit": Field("K", optional=True),
    },
    Evidence: {
        "edges": Field("E", np.int64),
        "weights": Field("E"),
        "bias": Field("C"),
        "columns": Field("Q", np.int64, optional=True),
        "correction": Field("CQ", optional=True, single=True),
    },
    LengthWeights: {"counts": Field("H"), "weights": Field("HY"), "bias": Field("HC")},
    Novelty: {
        "weights": Field("E"),
        "level": Field("C"),
        "unknown": Field("X"),
        "familiarity": Field("T"),
        "p_value": Field("T"),
    },
    AveragedEvidence: {"weights": Field("M"), "trusts": Field("M")},
    SelectionPath: {
        "sizes": Field("S", np.int64),
        "accuracy": Field("VS"),
        "log_loss": Field("VS"),
        "weight": Field("V"),
        "n_rows": Field("V"),
    },
    DiscriminativeMaxEnt: {
        "coef_": Field("BD"),
        "intercept_": Field("B"),
        "objective_path_": Field("I"),
    },
}
