"""Reports as self-contained HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from string import Template

import numpy as np

from maxdisc.inspection.markup import Markup, element, joined, user_text
from maxdisc.inspection.printed_numbers import DASH, MINUS, percent, signed
from maxdisc.inspection.safe_text import counted, shortened
from maxdisc.plots import DensityDisplay, PathDisplay, ReliabilityDisplay
from maxdisc.plots.inline_svg import inline_svg
from maxdisc.plots.two_classes import draw_precision_recall, draw_roc
from maxdisc.report.record import ClassResult, Curves, Feature, Mistake, Report, Weighed
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

_LABEL = 40
_JOINTS = re.compile(r"(?<=[._/:\-])(?=\w)")
_EXCERPT = 320
# The number in the darkest cell of the confusion matrix must stay legible.
_HEAT = 60


def page(report: Report) -> str:
    """Return the whole page."""
    sections = (
        _header(report),
        _numbers(report),
        _path(report),
        _features(report),
        _classes(report),
        _confusion(report),
        _reliability(report),
        _curves(report),
        _mistakes(report),
        _settings(report),
    )
    here = files("maxdisc.report")
    return Template((here / "page.html").read_text(encoding="utf-8")).substitute(
        title=joined(report.title),
        style=(here / "page.css").read_text(encoding="utf-8"),
        body="\n".join(section for section in sections if section),
    )


def _section(title: str, *children: object) -> Markup:
    return element("section", element("h2", title), *children)


def _header(report: Report) -> Markup:
    return element(
        "header",
        element("h1", user_text(report.title)),
        element("p", f"{report.created[:10]} · maxdisc {report.versions['maxdisc']}", class_="soft"),
        element("ul", *(element("li", sentence) for sentence in report.summary), class_="summary"),
        *(element("p", note, class_="note") for note in report.notes),
    )


def _numbers(report: Report) -> Markup:
    cards = [
        element("div", element("dt", name), element("dd", value), element("dd", remark))
        for name, value, remark in number_cards(report)
    ]
    return element("dl", *cards, class_="numbers")


def _path(report: Report) -> Markup:
    path = report.path
    if path is None:
        words = "The number of features was set, not selected on folds, so there is no curve."
        return _section("Number of features", element("p", words))
    display = PathDisplay(path.sizes, path.accuracy, path.mean, path.standard_error, path.chosen)
    label = (
        f"Held-out accuracy against the number of selected features, from {path.sizes[0]:,} to "
        f"{path.sizes[-1]:,}; the highest mean is {percent(max(path.mean))}, {path.chosen:,} are selected."
    )
    each = "grey: each fold; " if path.accuracy else ""
    caption = (
        f"Accuracy on {counted(path.folds, 'held-out fold')} of the training data ({each}blue: their mean, "
        "with one standard error on either side). Points above the dashed line are within one standard "
        "error of the best."
    )
    return _section("Number of features", _figure(inline_svg(display.plot, label, "path"), caption))


def _features(report: Report) -> Markup:
    longest = max((feature.divergence for feature in report.features), default=0.0) or 1.0
    mixed = len(report.data.families) > 1
    rows = [
        element(
            "tr",
            element("th", _label(feature.by), scope="row"),
            *([element("td", feature.family)] if mixed else []),
            element("td", f"{feature.divergence:#.3g}", class_="n"),
            element("td", _bar(feature.divergence / longest), class_="bars"),
            element("td", "more in " if feature.direction > 0 else "less in ", _label(feature.label))
            if feature.divergence > 0
            else element("td", "uninformative"),
            *(element("td", cell, class_="n") for cell in trust_cells(feature)),
        )
        for feature in report.features
    ]
    head = ["feature", *(["family"] if mixed else []), "divergence", "", "class", "q", "stability"]
    table = _table(head, rows, "The best features", "full features")
    drawn = [
        _density(feature, feature.curves, f"density{k}")
        for k, feature in enumerate(report.features)
        if feature.curves is not None
    ]
    return _section(
        "Features",
        element(
            "p",
            f"The divergence of a feature, in nats, measures how much it differs between classes. Below, the "
            f"{counted(len(drawn), 'best feature')} as the model sees "
            f"{'it' if len(drawn) == 1 else 'them'}: {_kinds(report)} in each class. "
            "q is the false discovery rate of the features up to this one (Benjamini and "
            "Hochberg); stability is the share of the folds' models that select the feature."
            + (f" {WITHOUT_Q}" if any(feature.q is None for feature in report.features) else ""),
        ),
        element("div", *drawn, class_="beside pictures"),
        table,
    )


def _kinds(report: Report) -> str:
    if len(report.data.families) == 1:
        return f"{report.data.family} densities"
    return "densities of different families"


def _density(feature: Feature, curves: Curves, key: str) -> Markup:
    constant = (np.nan if curves.constant is None else curves.constant) if curves.silent else None
    display = DensityDisplay(
        curves.classes,
        curves.x,
        curves.height,
        kind=curves.kind,
        feature=feature.name,
        at_zero=curves.at_zero,
        left_out=curves.left_out,
        constant=constant,
        levels=curves.levels,
        levels_left_out=curves.levels_left_out,
        missing=curves.missing,
    )
    label = (
        f"How {shortened(feature.name, _LABEL)} is distributed in "
        + (", ".join(shortened(name, _LABEL) for name in curves.classes) or "every class: it is constant")
        + "."
    )
    return _figure(inline_svg(display.plot, label, key, 200))


def _classes(report: Report) -> Markup:
    head = ["class", "rows", "precision", "recall", "F1", "distinctive features"]
    rows = [
        element(
            "tr",
            element("th", _label(result.label), None if result.known else " (unknown)", scope="row"),
            *(
                element("td", cell, class_="n", data_name=name)
                for name, cell in zip(head[1:], cells, strict=False)
            ),
            element("td", _signs(result), class_="words"),
        )
        for result, cells in class_rows(report)
    ]
    return _section(
        "Classes",
        element("p", "Precision: the share of rows predicted as this class that belong to it. Recall: the "
                "share of its rows that are predicted as it. A minus: less of it than in the other classes."),
        _table(head, rows, "Every class", "full classes"),
    )  # fmt: skip


def _signs(result: ClassResult) -> Markup:
    words = [joined(MINUS if sign.direction < 0 else None, _label(sign.feature)) for sign in result.signs]
    return (
        joined(*(joined(", " if k else None, word) for k, word in enumerate(words)))
        if words
        else joined(DASH)
    )


def _confusion(report: Report) -> Markup:
    confusion = report.confusion
    if confusion.counts is None:
        body = element(
            "p", f"With {len(confusion.labels):,} labels, only the most frequent mistakes are shown."
        )
    else:
        body = _matrix(confusion.labels, confusion.classes, confusion.counts)
    pairs = [
        element("tr", element("th", _label(truth), scope="row"), element("td", _label(predicted)),
                element("td", f"{rows:,}", class_="n"))
        for truth, predicted, rows in confusion.pairs[:10]
    ]  # fmt: skip
    mistakes = _table(["true", "predicted", "rows"], pairs, "The most frequent mistakes") if pairs else None
    if len(confusion.labels) == 2:
        mistakes = None  # the matrix has them all
    return _section("Confusion matrix", body, mistakes)


def _matrix(labels: list[str], classes: list[str], counts: list[list[int]]) -> Markup:
    rows = []
    for k, (label, row) in enumerate(zip(labels, counts, strict=True)):
        total = max(sum(row), 1)
        cells = [
            element(
                "td",
                f"{count:,}" if count else "·",
                class_="right" if j == k else "none" if not count else None,
                style=f"--heat:{_HEAT * (count / total) ** 0.5:.0f}%" if count else None,
                title=f"{shortened(label, _LABEL)} predicted as {shortened(classes[j], _LABEL)}: {count:,}",
            )
            for j, count in enumerate(row)
        ]
        head = element("th", element("i", f"{k + 1} "), user_text(shortened(label, _LABEL)), scope="row")
        rows.append(element("tr", head, *cells))
    titles = ["true \\ predicted", *(str(k + 1) for k in range(len(classes)))]
    return joined(
        element("p", "Rows are true labels, columns are predicted labels, with the same numbers. The colour "
                "shows the share of the row: blue is correct, orange is wrong."),
        _table(titles, rows, "Confusion matrix", "matrix"),
    )  # fmt: skip


def _reliability(report: Report) -> Markup:
    bins, scores = report.reliability, report.scores
    display = ReliabilityDisplay(bins.confidence, bins.accuracy, bins.rows)
    label = f"Share of correct predictions against their probability, in {counted(len(bins.rows), 'group')}."
    caption = (
        "Rows grouped by the probability of their predicted class; the area of a point grows with its "
        "rows. Below the line the model is overconfident. Expected calibration error: "
        f"{scores.calibration_error:.3f}."
    )
    return _section(
        "Calibration",
        _figure(inline_svg(display.plot, label, "reliability", 240), caption),
    )


def _curves(report: Report) -> Markup | None:
    curves = report.two_classes
    if curves is None:
        return None
    roc = inline_svg(lambda ax: draw_roc(ax, *curves.roc), f"ROC curve, area {curves.area:.4f}.", "roc", 240)
    precision = inline_svg(
        lambda ax: draw_precision_recall(ax, *curves.precision_recall, curves.share),
        f"Precision against recall, average precision {curves.average_precision:.4f}.",
        "precision",
        240,
    )
    rows = [
        element("tr", *(element("td", cell, class_="n") for cell in cells))
        for cells in threshold_rows(curves)
    ]
    return _section(
        "ROC and precision-recall curves",
        element("p", curves_sentence(curves)),
        element("div", _figure(roc), _figure(precision), class_="beside pictures"),
        element("p", "A row is predicted as the class if its probability is at least the threshold:"),
        _table(THRESHOLD_HEAD, rows, "Thresholds"),
    )


def _mistakes(report: Report) -> Markup:
    if not report.mistakes:
        words = element("p", "None: every row was classified correctly.")
        return _section("Most confident mistakes", words)
    return _section(
        "Most confident mistakes",
        element("p", "The evidence for the predicted class (blue) and against it (orange), in "
                "log-odds; the parts sum to the total. Rows are counted from 1."),
        element("div", *(_mistake(mistake) for mistake in report.mistakes), class_="beside"),
    )  # fmt: skip


def _mistake(mistake: Mistake) -> Markup:
    heading = element(
        "h3", "Row ", f"{mistake.row + 1:,}: ", _label(mistake.predicted), ", not ", _label(mistake.truth)
    )
    excerpt = mistake.excerpt
    return element(
        "article",
        heading,
        element("p", f"probability {percent(mistake.probability)}", class_="soft"),
        element("blockquote", user_text(shortened(excerpt, _EXCERPT))) if excerpt is not None else None,
        _weighed(mistake, mistake.evidence) if mistake.evidence else None,
        class_="mistake",
    )


def _weighed(mistake: Mistake, evidence: Weighed) -> Markup:
    parts = evidence_rows(evidence, mistake.excerpt is not None)
    longest = max(abs(odds) for _, odds in parts) or 1.0
    rows = [
        element(
            "tr",
            element("th", user_text(name), scope="row"),
            element("td", _bar(abs(odds) / longest, odds < 0), class_="bars"),
            element("td", signed(odds), class_="n"),
        )
        for name, odds in parts
    ]
    rows.append(
        element("tr", element("th", element("b", "total"), scope="row"), element("td"),
                element("td", element("b", signed(evidence.total)), class_="n"))
    )  # fmt: skip
    caption = joined("against ", _label(evidence.against))
    return element("table", element("caption", caption), element("tbody", *rows))


def _settings(report: Report) -> Markup:
    rows = [
        element(
            "tr", element("th", user_text(shortened(name, 60)), scope="row"), element("td", user_text(value))
        )
        for name, value in setting_rows(report)
    ]
    table = element("table", element("tbody", *rows), class_="settings")
    return _section("Data and settings", table)


def _figure(svg: str, caption: str | None = None) -> Markup:
    words = element("figcaption", caption) if caption else None
    return element("figure", Markup(svg), words, class_="told" if caption else None)


def _table(head: Iterable[str], rows: list[Markup], name: str, kind: str | None = None) -> Markup:
    """Return a table that scrolls by itself where the page is narrow; it can be reached by the keyboard."""
    numeric = {"rows", "precision", "recall", "F1", "divergence", "q", "stability", *THRESHOLD_HEAD}
    titles = [
        element("th", title, scope="col" if title else None, class_="n" if title in numeric else None)
        for title in head
    ]
    table = element("table", element("thead", element("tr", *titles)), element("tbody", *rows), class_=kind)
    return element("div", table, class_="scroll", role="region", aria_label=name, tabindex="0")


def _bar(share: float, against: bool = False) -> Markup:
    return element("span", class_="bar against" if against else "bar", style=f"--share:{100 * share:.1f}%")


def _label(label: str) -> Markup:
    """Return a name that may be broken where it has points and the like, rather than anywhere."""
    parts = _JOINTS.split(shortened(label, _LABEL))
    return element("bdi", *(joined(element("wbr") if k else None, part) for k, part in enumerate(parts)))
