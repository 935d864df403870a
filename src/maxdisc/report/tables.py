"""Formatted numbers of a report, the same in every format."""

from __future__ import annotations

from collections.abc import Iterator

from maxdisc.inspection.printed_numbers import DASH, percent
from maxdisc.inspection.safe_text import counted, shortened
from maxdisc.report.record import ClassResult, Feature, Report, TwoClasses, Weighed
from maxdisc.report.settings import of_families, told
from maxdisc.report.summary import quoted

#: Note on features without a q-value.
WITHOUT_Q = (
    "A dash for q: the model's moments do not determine it, or its file has none (--keep-moments). "
    "MaxDiscClassifier.ranking_table(X, y), or maxdisc rank with --data, computes it from labelled rows."
)


def number_cards(report: Report) -> list[tuple[str, str, str]]:
    """Return the headline numbers: name, value, remark."""
    scores, data = report.scores, report.data
    low, high = scores.interval
    return [
        (
            "accuracy",
            percent(scores.accuracy),
            f"{scores.right:,} of {data.rows:,}; 95 %: {percent(low)} to {percent(high)}",
        ),
        ("majority", percent(scores.majority_accuracy), f"always {shortened(scores.majority_label, 30)}"),
        ("macro F1", f"{scores.macro_f1:.3f}", "mean over the labels"),
        (
            "log-loss",
            _or_dash(scores.log_loss),
            f"nats; by the prior alone {_or_dash(scores.prior_log_loss)}",
        ),
        ("calibration error", f"{scores.calibration_error:.3f}", "expected, in 10 bins"),
        (
            "selected features",
            f"{data.kept:,}",
            f"of {data.features:,}; {of_families(data.families)} densities",
        ),
    ]


def class_rows(report: Report) -> Iterator[tuple[ClassResult, list[str]]]:
    """Yield every label with its rows, precision, recall and F1."""
    for result in report.classes:
        scores = (result.precision, result.recall, result.f1)
        yield result, [f"{result.rows:,}", *map(_or_dash, scores)]


THRESHOLD_HEAD = ("threshold", "recall", "precision", "false-positive rate")


def threshold_rows(curves: TwoClasses) -> list[list[str]]:
    """Return some thresholds with their rates; the head is :data:`THRESHOLD_HEAD`."""
    return [
        [f"{each.probability:.4g}", *map(percent, (each.recall, each.precision, each.false_positive_rate))]
        for each in curves.thresholds
    ]


def curves_sentence(curves: TwoClasses) -> str:
    """Return a sentence with both areas and their values by chance."""
    return (
        f"For {quoted(curves.positive)}, the area under the ROC curve is {curves.area:.4f} (0.5 by chance), "
        f"and the average precision {curves.average_precision:.4f} ({curves.share:.4f} by chance)."
    )


def evidence_rows(evidence: Weighed, of_text: bool) -> list[tuple[str, float]]:
    """Return names and log-odds that sum to the total: features, all others, the prior."""
    rows = [
        (_told_feature(name, value, of_text), odds)
        for name, value, odds in zip(evidence.features, evidence.values, evidence.odds, strict=True)
    ]
    if evidence.n_others:
        rows.append((counted(evidence.n_others, "other feature"), evidence.others))
    return [*rows, ("prior", evidence.prior)]


def setting_rows(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the information from the caller, the parameters, the versions and the date."""
    for key, value in report.about.items():
        yield str(key), value if isinstance(value, str) else told(value)
    yield from report.settings.items()
    yield from report.versions.items()
    yield "created", report.created


def _told_feature(name: str, value: float | str | None, of_text: bool) -> str:
    short = shortened(name, 34)
    if isinstance(value, str):
        return f"{short} = {shortened(value, 24)}"
    if of_text:
        return short if value else f"no {short}"
    return f"{short} missing" if value is None else f"{short} = {value:.4g}"


def _or_dash(value: float | None) -> str:
    return DASH if value is None else f"{value:.3f}"


def trust_cells(feature: Feature) -> tuple[str, str]:
    """Return the q-value and the stability of a feature as text; a dash if unknown."""
    q, stability = feature.q, feature.stability
    return DASH if q is None else f"{q:.1e}", DASH if stability is None else f"{stability:.0%}"
