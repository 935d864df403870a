"""Explanations as lines of text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from maxdisc.inspection.explanation import Explanation
from maxdisc.inspection.markup import Markup, element, joined, user_text
from maxdisc.inspection.notebook_styles import BOX, NAME, NUMBER, ROW, SOFT, TABLE, bar, mark_style
from maxdisc.inspection.printed_numbers import percent, signed
from maxdisc.inspection.safe_text import counted, shortened

# How much is shown: rows, features of each, characters of a document and of a name.
ROWS = 3
FEATURES = 8
CHARACTERS = 1500
_NAME, _LABEL = 34, 40

Span = tuple[str, int, int]


@dataclass(frozen=True)
class _Shown:
    """One row: its two best classes, their probabilities, and the log-odds of all parts, which sum up."""

    labels: list[str]
    probabilities: list[float]
    parts: list[tuple[str, float]]
    total: float

    @classmethod
    def of(cls, explanation: Explanation, row: int) -> _Shown:
        total = explanation.total[row]
        shares = np.exp(total - total.max())
        shares = shares / shares.sum()
        both = list(explanation.best_two(row)) if len(total) > 1 else [0]
        labels = [shortened(explanation.classes[c], _LABEL) for c in both]
        known = [float(shares[c]) for c in both]
        if len(both) < 2 or not np.isfinite(total[both]).all():
            return cls(labels[:1], known[:1], [], 0.0)
        loud = explanation.top(row, FEATURES)
        present = None if explanation.documents is None else {term for term, _, _ in _spans(explanation, row)}
        parts = [(_named(name, present), odds) for name, odds in loud if odds]
        first, second = both
        others = explanation.contributions.shape[2] - len(parts)
        contributions = explanation.contributions[row]
        rest = float((contributions[first] - contributions[second]).sum()) - sum(odds for _, odds in parts)
        if others and abs(rest) > 1e-12:
            parts.append((counted(others, "other feature"), rest))
        if isinstance(explanation.length, np.ndarray):
            length = explanation.length[row]
            parts.append(("number of features in the row", float(length[first] - length[second])))
        parts.append(("prior", float(explanation.prior[first] - explanation.prior[second])))
        return cls(labels, known, parts, float(total[first] - total[second]))

    @property
    def odds(self) -> str:
        """A description of the log-odds, if there are two classes."""
        return f"log-odds {signed(self.total)}"


def _named(name: str, present: set[str] | None) -> str:
    """Return the name of a feature; of a document without the term, "no term"."""
    return shortened(name, _NAME) if present is None or name in present else f"no {shortened(name, _NAME)}"


def _spans(explanation: Explanation, row: int) -> list[Span]:
    if explanation.documents is None or explanation.spans is None:
        return []
    return explanation.spans(explanation.documents[row])


def explanation_text(explanation: Explanation) -> str:
    """Return the first rows as lines: the two best classes, and the parts of their log-odds."""
    n_rows, _, n_features = explanation.contributions.shape
    lines = [f"Explanation of {counted(n_rows, 'row')} by {counted(n_features, 'selected feature')}"]
    for row in range(min(n_rows, ROWS)):
        shown = _Shown.of(explanation, row)
        known = [f"{label} {percent(p)}" for label, p in zip(shown.labels, shown.probabilities, strict=True)]
        told = f"row {row}: {', against '.join(known)}"
        lines.append(f"{told}, {shown.odds}" if shown.parts else told)
        lines += [f"  {signed(odds):>7}  {name}" for name, odds in shown.parts]
    return "\n".join([*lines, *_more(n_rows)])


def explanation_html(explanation: Explanation) -> Markup:
    """Return the first rows as bars and, for documents, as marked words."""
    n_rows = len(explanation.total)
    boxes = [_row_html(explanation, row) for row in range(min(n_rows, ROWS))]
    more = [element("p", words, style=SOFT) for words in _more(n_rows)]
    return element("div", *boxes, *more)


def _more(n_rows: int) -> list[str]:
    return [f"... and {counted(n_rows - ROWS, 'more row')}"] if n_rows > ROWS else []


def _row_html(explanation: Explanation, row: int) -> Markup:
    shown = _Shown.of(explanation, row)
    known = [
        joined(element("b", user_text(label)), f" {percent(p)}")
        for label, p in zip(shown.labels, shown.probabilities, strict=True)
    ]
    title = joined(f"Row {row}: ", known[0], *(joined(", against ", other) for other in known[1:]))
    told = [" · ", element("span", shown.odds, style=f"{SOFT};white-space:nowrap")] if shown.parts else []
    words = [] if explanation.documents is None else [_words(explanation, row)]
    return element(
        "div", element("div", title, *told, style="font-size:1.05rem"), *words, _bars(shown), style=BOX
    )


def _bars(shown: _Shown) -> Markup | None:
    if not shown.parts:
        return None
    longest = max(abs(odds) for _, odds in shown.parts) or 1.0
    rows = [
        element(
            "tr",
            element("th", user_text(name), scope="row", style=NAME),
            element("td", bar(abs(odds) / longest, odds < 0), style=f"{NAME};width:40%"),
            element("td", signed(odds), style=NUMBER),
            style=ROW,
        )
        for name, odds in shown.parts
    ]
    return element("table", element("tbody", *rows), style=TABLE)


def _words(explanation: Explanation, row: int) -> Markup:
    """Return the beginning of a document, its terms marked by what they say of the two classes."""
    assert explanation.documents is not None  # the caller has looked
    document = explanation.documents[row]
    text = document[:CHARACTERS]
    odds = dict(explanation.top(row, explanation.contributions.shape[2]))
    spans = [
        span for span in _spans(explanation, row) if odds.get(span[0], 0.0) != 0 and span[2] <= len(text)
    ]
    most = max((abs(odds[term]) for term, _, _ in spans), default=1.0)
    parts: list[Markup | str] = []
    for piece, terms in pieces(text, spans):
        if not terms:
            parts.append(piece)
            continue
        said = sum(odds[term] for term in terms)
        named = ", ".join(dict.fromkeys(terms))
        parts.append(element("mark", piece, style=mark_style(said, most), title=f"{named}: {signed(said)}"))
    if len(document) > len(text):
        parts.append(" …")
    style = "margin:.45rem 0 .2rem;max-height:16rem;overflow-y:auto;line-height:1.75"
    return element("div", element("bdi", *parts), style=style)


def pieces(text: str, spans: Sequence[Span]) -> Iterator[tuple[str, list[str]]]:
    """Cut a text where spans begin and end; yield each piece with the terms that cover it."""
    cuts = sorted({0, len(text), *(at for _, start, end in spans for at in (start, end))})
    waiting, covering = sorted(spans, key=lambda span: -span[1]), list[Span]()
    for start, end in pairwise(cuts):
        while waiting and waiting[-1][1] <= start:
            covering.append(waiting.pop())
        covering = [span for span in covering if span[2] > start]
        yield text[start:end], [term for term, _, _ in covering]
