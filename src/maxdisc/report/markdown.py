"""Reports as Markdown: the same text and numbers, without figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from maxdisc.inspection.printed_numbers import DASH, MINUS, percent, signed
from maxdisc.inspection.safe_text import shortened, visible
from maxdisc.report.record import Mistake, Report
from maxdisc.report.tables import (
    THRESHOLD_HEAD,
    WITHOUT_Q,
    class_rows,
    curves_sentence,
    evidence_rows,
    number_cards,
    setting_rows,
    threshold_rows,
    trust_cells,
)

NO_MISTAKES = "None: every row was classified correctly."
_LABEL = 40
_EXCERPT = 320
# Whatever Markdown, or the HTML in it, might take for more than a character: anywhere, or at the start.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&@^]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
_LEADING = re.compile(r"^(?:([-#+=])|(\d+)([.)])(?=\s|$))")


def document(report: Report) -> str:
    """Return the whole document."""
    parts = [
        f"# {plain(report.title)}",
        "\n".join(f"- {plain(sentence)}" for sentence in report.summary),
        *(f"> {plain(note)}" for note in report.notes),
        table(("", "", ""), number_cards(report)),
        "## Number of features",
        _path(report),
        "## Features",
        _features(report),
        "## Classes",
        _classes(report),
        "## Confusion matrix",
        _confusion(report),
        "## Calibration",
        _reliability(report),
        *_curves(report),
        "## Most confident mistakes",
        *([_mistake(mistake) for mistake in report.mistakes] or [NO_MISTAKES]),
        "## Data and settings",
        table(("", ""), setting_rows(report)),
    ]
    return "\n\n".join(parts) + "\n"


def plain(text: object, width: int | None = None) -> str:
    """Return text on one line with all Markdown escaped."""
    words = visible(text) if width is None else shortened(text, width)
    return _LEADING.sub(lambda at: f"{at[2] or ''}\\{at[1] or at[3]}", _inline(words))


def _inline(words: object) -> str:
    """Return the same for text that does not begin a line, such as a cell."""
    return _SPECIAL.sub(r"\\\1", visible(words))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table whose cells are plain text."""
    lines = [head, ["---"] * len(head), *([_inline(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _path(report: Report) -> str:
    path = report.path
    if path is None:
        return "The number of features was set, not selected on folds."
    step = max(1, len(path.sizes) // 12)
    shown = sorted({*range(0, len(path.sizes), step), len(path.sizes) - 1, _nearest(path.sizes, path.chosen)})
    return table(
        ("features", "held-out accuracy", "standard error", ""),
        [
            (
                f"{path.sizes[k]:,}",
                f"{path.mean[k]:.4f}",
                f"{path.standard_error[k]:.4f}",
                "chosen" if path.sizes[k] == path.chosen else "",
            )
            for k in shown
        ],
    )


def _nearest(sizes: list[int], chosen: int) -> int:
    return min(range(len(sizes)), key=lambda k: abs(sizes[k] - chosen))


def _features(report: Report) -> str:
    mixed = len(report.data.families) > 1
    said = f"\n\n{WITHOUT_Q}" if any(feature.q is None for feature in report.features) else ""
    rows = table(
        ("feature", *(["family"] if mixed else []), "divergence", "sets apart", "q", "stability"),
        [
            (
                shortened(feature.by, _LABEL),
                *([feature.family] if mixed else []),
                f"{feature.divergence:#.3g}",
                f"{'more' if feature.direction > 0 else 'less'} in {shortened(feature.label, _LABEL)}"
                if feature.divergence > 0
                else "uninformative",
                *trust_cells(feature),
            )
            for feature in report.features
        ],
    )
    return rows + said


def _classes(report: Report) -> str:
    rows = []
    for result, cells in class_rows(report):
        signs = [f"{MINUS if s.direction < 0 else ''}{shortened(s.feature, _LABEL)}" for s in result.signs]
        label = shortened(result.label, _LABEL) + ("" if result.known else " (unknown)")
        rows.append((label, *cells, ", ".join(signs) or DASH))
    return table(("class", "rows", "precision", "recall", "F1", "distinctive features"), rows)


def _confusion(report: Report) -> str:
    confusion = report.confusion
    if not confusion.pairs:
        return "Nothing is mistaken."
    pairs = [
        (shortened(truth, _LABEL), shortened(predicted, _LABEL), f"{rows:,}")
        for truth, predicted, rows in confusion.pairs
    ]
    return table(("true", "predicted", "rows"), pairs)


def _reliability(report: Report) -> str:
    bins = report.reliability
    rows = [
        (f"{confidence:.3f}", f"{accuracy:.3f}", f"{rows:,}")
        for confidence, accuracy, rows in zip(bins.confidence, bins.accuracy, bins.rows, strict=True)
    ]
    return table(("mean probability", "right", "rows"), rows)


def _curves(report: Report) -> list[str]:
    curves = report.two_classes
    if curves is None:
        return []
    rows = table(THRESHOLD_HEAD, threshold_rows(curves))
    return ["## ROC and precision-recall curves", plain(curves_sentence(curves)), rows]


def _mistake(mistake: Mistake) -> str:
    lines = [
        f"### Row {mistake.row + 1:,}: {plain(mistake.predicted, _LABEL)}, "
        f"not {plain(mistake.truth, _LABEL)}",
        f"{percent(mistake.probability)} sure",
    ]
    if mistake.excerpt is not None:
        lines.append(f"> {plain(mistake.excerpt, _EXCERPT)}")
    if mistake.evidence is not None:
        rows = [
            (name, signed(odds))
            for name, odds in evidence_rows(mistake.evidence, mistake.excerpt is not None)
        ]
        head = (f"against {plain(mistake.evidence.against, _LABEL)}", "log-odds")
        lines.append(table(head, [*rows, ("total", signed(mistake.evidence.total))]))
    return "\n\n".join(lines)
