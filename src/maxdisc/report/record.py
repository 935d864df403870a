"""What a report says, as plain data: every rendering is made from this and from nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

#: The version of the JSON rendering.
FORMAT = "maxdisc.report/1"


@dataclass(frozen=True)
class Data:
    """The rows that were judged, and the model that judged them."""

    rows: int
    labels: int
    classes: int
    features: int
    kept: int
    family: str
    #: How many features each family describes.
    families: dict[str, int]
    #: Labels of the data that the model does not know, with their rows.
    unknown: dict[str, int]
    #: Classes of the model that the data do not have.
    absent: list[str]
    #: Rows in which no kept feature was observed.
    empty_rows: int


@dataclass(frozen=True)
class Scores:
    """How often the model was right, and what that is to be compared with."""

    right: int
    accuracy: float
    #: Wilson's, 95 %.
    interval: tuple[float, float]
    majority_label: str
    majority_accuracy: float
    macro_f1: float
    #: Over the rows whose label the model knows; None if there are none, or if one was held impossible.
    log_loss: float | None
    prior_log_loss: float | None
    calibration_error: float
    mean_confidence: float


@dataclass(frozen=True)
class Sign:
    """A feature that sets a class apart: by more of it (+1) or less (-1)."""

    feature: str
    direction: int
    divergence: float


@dataclass(frozen=True)
class ClassResult:
    """One label; None where there is nothing to count."""

    label: str
    known: bool
    rows: int
    predicted: int
    precision: float | None
    recall: float | None
    f1: float | None
    signs: list[Sign]


@dataclass(frozen=True)
class Path:
    """Held-out accuracy for each number of features."""

    sizes: list[int]
    folds: int
    #: One list for each fold; none at all where folds are too many to be looked at one by one.
    accuracy: list[list[float]]
    mean: list[float]
    standard_error: list[float]
    chosen: int


@dataclass(frozen=True)
class Curves:
    """The densities of one feature, as drawn; see :class:`maxdisc.inspection.curves.DensityCurves`."""

    kind: Literal["density", "lattice", "bars"]
    classes: list[str]
    x: list[list[float]]
    height: list[list[float]]
    at_zero: list[float]
    left_out: int
    #: Whether the feature is uninformative; then ``constant`` is its only value, if any.
    silent: bool
    constant: float | None
    #: Labels of bars that are not numbers, and the number of further levels.
    levels: list[str]
    levels_left_out: int
    #: How probable a missing cell is in each class, where that says something.
    missing: list[float]


@dataclass(frozen=True)
class Feature:
    """One of the best features, the class it sets apart most and how; curves for the very best."""

    name: str
    divergence: float
    label: str
    direction: int
    curves: Curves | None
    family: str
    #: What the class has more or less of: the feature, a level of it, or missing cells.
    by: str
    #: P-value, share of false discoveries and share of the folds that keep it; None if not known.
    p: float | None = None
    q: float | None = None
    stability: float | None = None


@dataclass(frozen=True)
class Confusion:
    """How often each true label (row) was predicted as each class (column)."""

    labels: list[str]
    classes: list[str]
    #: None for more labels than a page can show.
    counts: list[list[int]] | None
    #: The most frequent mistakes: true label, predicted class, rows.
    pairs: list[tuple[str, str, int]]


@dataclass(frozen=True)
class Reliability:
    """Predictions grouped by how sure they were."""

    confidence: list[float]
    accuracy: list[float]
    rows: list[int]


@dataclass(frozen=True)
class Threshold:
    """Rates if rows are predicted as positive from this probability on."""

    probability: float
    recall: float
    precision: float
    false_positive_rate: float


@dataclass(frozen=True)
class TwoClasses:
    """All thresholds between two classes, drawn, and some of them as numbers."""

    positive: str
    #: The share of the positive class among the rows whose label the model knows.
    share: float
    area: float
    average_precision: float
    #: Points of the ROC curve: false-positive rate and recall.
    roc: tuple[list[float], list[float]]
    #: Points of the other curve: recall, decreasing, and precision.
    precision_recall: tuple[list[float], list[float]]
    thresholds: list[Threshold]


@dataclass(frozen=True)
class Weighed:
    """Log-odds of the predicted class against another; see :class:`maxdisc.inspection.odds.LogOdds`."""

    against: str
    total: float
    prior: float
    others: float
    n_others: int
    features: list[str]
    #: Categories as text; None for a missing cell.
    values: list[float | str | None]
    odds: list[float]


@dataclass(frozen=True)
class Mistake:
    """A row that the model was sure of, and wrong about."""

    #: Counted from 0.
    row: int
    #: The beginning of a document; None for a row of a table.
    excerpt: str | None
    truth: str
    predicted: str
    probability: float
    evidence: Weighed | None


@dataclass(frozen=True)
class Report:
    """Evaluation of a model on labelled rows, as data that JSON can hold; ``evaluate`` returns it.

    Attributes
    ----------
    title : str
        Heading.
    created : str
        Time in ISO 8601.
    summary : list of str
        Findings, in plain sentences.
    notes : list of str
        What is unusual about the data, and what was done about it.
    data : Data
        Size of the data and of the model.
    scores : Scores
        Accuracy, F1, log-loss and their baselines.
    classes : list of ClassResult
        Precision and recall of each label.
    path : Path or None
        Accuracy for each number of features, if that was chosen.
    features : list of Feature
        The best features.
    confusion : Confusion
        Confusion matrix.
    reliability : Reliability
        Calibration of the probabilities.
    two_classes : TwoClasses or None
        ROC and precision-recall curves, if the model has two classes and both have rows.
    mistakes : list of Mistake
        The most confident mistakes.
    settings : dict
        Parameters and what was chosen.
    versions : dict
        Versions of the software.
    about : dict
        What the caller said about the data.
    """

    title: str
    created: str
    summary: list[str]
    notes: list[str]
    data: Data
    scores: Scores
    classes: list[ClassResult]
    path: Path | None
    features: list[Feature]
    confusion: Confusion
    reliability: Reliability
    two_classes: TwoClasses | None
    mistakes: list[Mistake]
    settings: dict[str, str]
    versions: dict[str, str]
    about: dict[str, Any]

    def html(self) -> str:
        """Return one page that needs nothing else: no network, no script. Needs the extra ``plots``."""
        from maxdisc.report.page import page

        return page(self)

    def markdown(self) -> str:
        """Return the same without pictures."""
        from maxdisc.report.markdown import document

        return document(self)

    def json(self) -> str:
        """Return all of the data, for machines; pure ASCII, and without NaN or infinity."""
        return json.dumps({"format": FORMAT, **asdict(self)}, allow_nan=False, indent=1)


def number(value: Any) -> float | None:
    """Return a float that JSON can hold, or None."""
    return float(value) if math.isfinite(value) else None
