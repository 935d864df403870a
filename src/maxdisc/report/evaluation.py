"""Evaluation of a model on labelled rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve
from sklearn.utils import _safe_indexing

from maxdisc.inspection.curves import density_curves
from maxdisc.inspection.measures import class_scores, confusion_counts, reliability_bins, wilson_interval
from maxdisc.inspection.model_view import ModelView
from maxdisc.inspection.odds import log_odds
from maxdisc.inspection.ranking import RankingTable, ranking_table
from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix
from maxdisc.report.record import (
    ClassResult,
    Confusion,
    Curves,
    Data,
    Feature,
    Mistake,
    Path,
    Reliability,
    Report,
    Scores,
    Sign,
    Threshold,
    TwoClasses,
    Weighed,
    number,
)
from maxdisc.report.settings import settings_of, versions
from maxdisc.report.summary import notes_of, summary_of
from maxdisc.rows.frames import is_frame

# Limits on how much is shown.
TOP_FEATURES = 20
DRAWN_FEATURES = 6
SIGNS = 5
MISTAKES = 8
EVIDENCE = 8
PAIRS = 15
MATRIX_LABELS = 20
MOST_FOLDS = 20
EXCERPT = 400
CURVE_POINTS = 400
#: Thresholds are shown for the highest ones with at least this recall.
RECALLS = (0.5, 0.8, 0.9, 0.95, 0.99)
#: Log-odds shown for probabilities of 1.
FARTHEST = 1e300


def evaluate(
    model: Any, X: Any, y: Any, *, title: str | None = None, about: dict[str, Any] | None = None
) -> Report:
    """Evaluate a fitted model on labelled rows.

    Parameters
    ----------
    model : MaxDiscClassifier or Pipeline
        Fitted; a pipeline must end in a MaxDiscClassifier.
    X : matrix or frame of shape (N, D), or a list of N documents
        Rows that the model was not fitted on.
    y : array-like of shape (N,)
        Their labels; ones that the model does not know count as mistakes.
    title : str, optional
        Heading of the report.
    about : dict, optional
        Information on the data for the reader: names and values, shown unchanged.

    Returns
    -------
    Report
        ``html()``, ``markdown()`` and ``json()`` render it. Its data are attributes: ``title``, ``created``,
        ``summary``, ``notes``, ``data`` (the rows and the model), ``scores``, ``classes``, ``path``,
        ``features``, ``confusion``, ``reliability``, ``two_classes``, ``mistakes``, ``settings``,
        ``versions`` and ``about``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.report import evaluate
    >>> iris = load_iris()
    >>> model = MaxDiscClassifier().fit(iris.data[::2], iris.target[::2])
    >>> report = evaluate(model, iris.data[1::2], iris.target[1::2])
    >>> report.scores.right, report.data.rows
    (72, 75)
    >>> report.markdown().splitlines()[0]
    '# Model evaluation'
    """
    fitted = ModelView.of(model)
    judged = _Judged.of(fitted, X, y)
    table = ranking_table(fitted, n=min(TOP_FEATURES, fitted.classifier.n_selected_))
    parts: dict[str, Any] = {
        "data": _data(fitted, judged),
        "scores": _scores(fitted, judged),
        "classes": _class_results(fitted, judged, table),
        "path": _path(fitted),
        "features": _features(fitted, table),
        "confusion": _confusion(fitted, judged),
        "reliability": _reliability(judged),
    }
    return Report(
        title=title or "Model evaluation",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        summary=summary_of(fitted, **parts),
        notes=notes_of(parts["data"], parts["scores"]),
        **parts,
        two_classes=_two_classes(judged, len(fitted.classes)),
        mistakes=_mistakes(fitted, judged),
        settings=settings_of(fitted),
        versions=versions(),
        about=json.loads(json.dumps(about or {}, default=str)),
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """Rows, labels and predictions; codes beyond the classes are unknown labels."""

    raw: Any
    rows: Matrix
    labels: list[str]
    truth: Integers
    predicted: Integers
    log_proba: Floats

    @classmethod
    def of(cls, fitted: ModelView, X: Any, y: Any) -> _Judged:
        truth, unknown = _coded(fitted.classifier.classes_, y)
        rows = fitted.rows(X)
        if rows.shape[0] != len(truth):
            raise ValueError(f"X has {rows.shape[0]} rows, but y has {len(truth)} labels.")
        if len(truth) == 0:
            raise ValueError("there are no rows to evaluate the model on.")
        log_proba = fitted.classifier.predict_log_proba(rows)
        return cls(X, rows, fitted.classes + unknown, truth, log_proba.argmax(axis=1), log_proba)

    @property
    def right(self) -> Booleans:
        return self.truth == self.predicted

    @property
    def confidence(self) -> Floats:
        return np.exp(self.log_proba.max(axis=1))

    def counts(self) -> Integers:
        return confusion_counts(self.truth, self.predicted, len(self.labels))


def _coded(classes: npt.NDArray[np.generic], y: Any) -> tuple[Integers, list[str]]:
    """Return codes of labels, and the labels unknown to the model, whose codes follow the others."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(f"y must be one label for each row, got an array of shape {labels.shape}.")
    values = labels.tolist()
    missing = sum(map(_is_missing, values))
    if missing:
        raise ValueError(f"{missing} of the {len(values)} labels are missing: leave those rows out.")
    known = {label: code for code, label in enumerate(classes.tolist())}
    unknown = sorted({value for value in values if value not in known}, key=str)
    codes = {**known, **{label: len(known) + k for k, label in enumerate(unknown)}}
    return np.array([codes[value] for value in values], dtype=np.intp), [str(label) for label in unknown]


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True  # pandas.NA is neither equal nor unequal to itself


def _data(fitted: ModelView, judged: _Judged) -> Data:
    rows = np.bincount(judged.truth, minlength=len(judged.labels))
    n_classes = len(fitted.classes)
    return Data(
        rows=len(judged.truth),
        labels=int((rows > 0).sum()),
        classes=n_classes,
        features=fitted.classifier.n_features_in_,
        kept=fitted.classifier.n_selected_,
        family=fitted.family.name,
        families=fitted.family_counts,
        unknown=dict(zip(judged.labels[n_classes:], rows[n_classes:].tolist(), strict=True)),
        absent=[judged.labels[c] for c in np.flatnonzero(rows[:n_classes] == 0)],
        empty_rows=fitted.n_empty(judged.rows),
    )


def _scores(fitted: ModelView, judged: _Judged) -> Scores:
    right, rows = int(judged.right.sum()), len(judged.truth)
    known = np.flatnonzero(judged.truth < len(fitted.classes))
    f1 = class_scores(judged.counts())[2]
    sizes = np.bincount(judged.truth)
    confidence, accuracy, weight = reliability_bins(judged.right, judged.confidence)
    with np.errstate(divide="ignore"):
        log_prior = np.log(fitted.classifier.class_prior_)
    return Scores(
        right=right,
        accuracy=right / rows,
        interval=wilson_interval(right, rows),
        majority_label=judged.labels[int(sizes.argmax())],
        majority_accuracy=float(sizes.max() / rows),
        macro_f1=float(np.nanmean(f1)),
        log_loss=number(-judged.log_proba[known, judged.truth[known]].mean()) if len(known) else None,
        prior_log_loss=number(-log_prior[judged.truth[known]].mean()) if len(known) else None,
        calibration_error=float(np.average(np.abs(accuracy - confidence), weights=weight)),
        mean_confidence=float(judged.confidence.mean()),
    )


def _class_results(fitted: ModelView, judged: _Judged, table: RankingTable) -> list[ClassResult]:
    counts = judged.counts()
    scores = np.transpose(class_scores(counts))
    truth, predicted = counts.sum(axis=1).tolist(), counts.sum(axis=0).tolist()
    classes = fitted.classifier.classes_.tolist()
    out = []
    for c, label in enumerate(judged.labels):
        known = c < len(classes)
        signs = [Sign(*sign) for sign in table.of_class(classes[c], SIGNS)] if known else []
        precision, recall, f1 = (number(score) for score in scores[c])
        out.append(ClassResult(label, known, truth[c], predicted[c], precision, recall, f1, signs))
    return out


def _path(fitted: ModelView) -> Path | None:
    path = fitted.classifier.path_
    if path is None:
        return None
    return Path(
        path.sizes.tolist(),
        len(path.accuracy),
        path.accuracy.tolist() if len(path.accuracy) <= MOST_FOLDS else [],
        path.mean_accuracy.tolist(),
        path.standard_error.tolist(),
        fitted.classifier.n_selected_,
    )


def _features(fitted: ModelView, table: RankingTable) -> list[Feature]:
    drawn = density_curves(fitted, table.columns[:DRAWN_FEATURES])
    curves: list[Curves | None] = [
        Curves(
            each.kind,
            each.classes,
            [_brief(x) for x in each.x],
            [_brief(height) for height in each.height],
            each.at_zero,
            each.left_out,
            each.constant is not None,
            None if each.constant is None else number(each.constant),
            each.levels,
            each.levels_left_out,
            each.missing,
        )
        for each in drawn
    ]
    curves += [None] * (len(table) - len(curves))
    return [
        Feature(
            row.feature,
            row.score,
            str(row.label),
            row.direction,
            curve,
            family,
            row.by,
            *(None if value != value else value for value in (row.p, row.q, row.stability)),
        )
        for row, curve, family in zip(table, curves, fitted.families[table.columns], strict=True)
    ]


def _brief(values: Floats) -> list[float]:
    """Round to five digits: more cannot be seen in a plot."""
    return [float(f"{value:.5g}") for value in values.tolist()]


def _confusion(fitted: ModelView, judged: _Judged) -> Confusion:
    counts = judged.counts()[:, : len(fitted.classes)]
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:PAIRS]
    truth, predicted = np.unravel_index(order, wrong.shape)
    pairs = [
        (judged.labels[t], judged.labels[p], int(wrong[t, p]))
        for t, p in zip(truth, predicted, strict=True)
        if wrong[t, p]
    ]
    few = len(judged.labels) <= MATRIX_LABELS
    return Confusion(judged.labels, fitted.classes, counts.tolist() if few else None, pairs)


def _reliability(judged: _Judged) -> Reliability:
    confidence, accuracy, rows = reliability_bins(judged.right, judged.confidence)
    return Reliability(confidence.tolist(), accuracy.tolist(), rows.tolist())


def _two_classes(judged: _Judged, n_classes: int) -> TwoClasses | None:
    """Return the curves of a model of two classes; the second is the positive one, as in scikit-learn."""
    known = judged.truth < n_classes
    truth = judged.truth[known]
    if n_classes != 2 or len(np.unique(truth)) < 2:
        return None
    # Log-odds still differ where probabilities are rounded to 1.
    with np.errstate(invalid="ignore"):
        odds = judged.log_proba[known, 1] - judged.log_proba[known, 0]
    odds = np.nan_to_num(odds, posinf=FARTHEST, neginf=-FARTHEST)
    fall_out, recall, thresholds = roc_curve(truth, odds, drop_intermediate=False)
    precision, again, _ = precision_recall_curve(truth, odds, drop_intermediate=True)
    rows = np.array([(1 - truth).sum(), truth.sum()])
    found = []
    for wanted in RECALLS:
        at = int(np.argmax(recall >= wanted - 1e-12))
        wrong, right = fall_out[at] * rows[0], recall[at] * rows[1]
        figures = (expit(thresholds[at]), recall[at], right / (right + wrong), fall_out[at])
        found.append(Threshold(*map(float, figures)))
    return TwoClasses(
        positive=judged.labels[1],
        share=float(rows[1] / rows.sum()),
        area=float(auc(fall_out, recall)),
        average_precision=float(average_precision_score(truth, odds)),
        roc=_drawn(fall_out, recall),
        precision_recall=_drawn(again, precision),
        thresholds=found,
    )


def _drawn(x: Floats, y: Floats) -> tuple[list[float], list[float]]:
    """Return at most as many points of a curve as can be distinguished, including its ends."""
    at = np.unique(np.linspace(0, len(x) - 1, min(len(x), CURVE_POINTS)).round().astype(np.intp))
    return _brief(x[at]), _brief(y[at])


def _mistakes(fitted: ModelView, judged: _Judged) -> list[Mistake]:
    """Return the most confident mistakes; ties go to the lowest probability of the true label."""
    wrong = np.flatnonzero(~judged.right)
    known = judged.truth[wrong] < len(fitted.classes)
    of_truth = np.full(len(wrong), -np.inf)
    of_truth[known] = judged.log_proba[wrong[known], judged.truth[wrong[known]]]
    order = np.lexsort([of_truth, -judged.confidence[wrong]])[:MISTAKES]
    return [_mistake(fitted, judged, int(row)) for row in wrong[order]]


def _mistake(fitted: ModelView, judged: _Judged, row: int) -> Mistake:
    document = _safe_indexing(judged.raw, row) if _are_documents(judged.raw) else None
    return Mistake(
        row=row,
        excerpt=document[:EXCERPT] if isinstance(document, str) else None,
        truth=judged.labels[judged.truth[row]],
        predicted=judged.labels[judged.predicted[row]],
        probability=float(judged.confidence[row]),
        evidence=_evidence(fitted, judged, row),
    )


def _evidence(fitted: ModelView, judged: _Judged, row: int) -> Weighed | None:
    """Return the evidence against the true label; if unknown or impossible, against the next best."""
    scores = judged.log_proba[row].copy()
    scores[judged.predicted[row]] = -np.inf
    truth = judged.truth[row]
    against = truth if truth < len(scores) and np.isfinite(scores[truth]) else scores.argmax()
    if not np.isfinite(scores[against]):
        return None
    classifier = fitted.classifier
    alone = ModelView(classifier, None, fitted.names)
    odds = log_odds(
        alone, _safe_indexing(judged.rows, [row]), EVIDENCE, second=classifier.classes_[int(against)]
    )
    values = [value if isinstance(value, str) else number(value) for value in odds.values]
    return Weighed(
        odds.second, odds.total, odds.prior, odds.others, odds.n_others, odds.features, values, odds.odds
    )


def _are_documents(raw: Any) -> bool:
    """Return whether rows are texts; tables of Arrow do not say how many axes they have."""
    return not is_frame(raw) and getattr(raw, "ndim", 1) == 1
