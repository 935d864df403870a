"""HTML view of a fitted classifier for notebooks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from maxdisc.inspection.markup import Markup, element, joined, user_text
from maxdisc.inspection.model_view import ModelView
from maxdisc.inspection.notebook_styles import BOX, HEAD, NAME, NUMBER, ROW, SOFT, TABLE, TITLE
from maxdisc.inspection.printed_numbers import DASH, MINUS, percent
from maxdisc.inspection.ranking import ranking_table
from maxdisc.inspection.safe_text import counted, shortened

# How much is shown: classes, features of each, characters of a name.
CLASSES = 12
FEATURES = 7
_LABEL = 30


def fitted_html(model: Any, call: str) -> Markup:
    """Return the view of a fitted classifier; ``call`` is the expression that makes it."""
    fitted = ModelView.of(model)
    n_classes = len(fitted.classes)
    return element(
        "div",
        element("div", type(model).__name__, style=TITLE),
        element("div", element("code", shortened(call, 200)), " fitted", style=SOFT),
        _facts(fitted),
        _classes(fitted),
        element("p", f"... and {counted(n_classes - CLASSES, 'more class', 'more classes')}", style=SOFT)
        if n_classes > CLASSES
        else None,
        style=BOX,
    )


def _facts(fitted: ModelView) -> Markup:
    """Return the facts in boxes that stand side by side where there is room: name, value, remark."""
    boxes = [
        element(
            "div",
            element("div", name, style=SOFT),
            element("div", value, style="font-size:1.15rem;font-weight:600"),
            element("div", remark, style=SOFT),
            style="flex:1 1 7rem;min-width:0",
        )
        for name, value, remark in facts(fitted)
    ]
    return element("div", *boxes, style="display:flex;flex-wrap:wrap;gap:.6rem 1.2rem;margin:.6rem 0 .3rem")


def facts(fitted: ModelView) -> list[tuple[str, str, str]]:
    """Return name, value and remark of the choices, and of the held-out figures with the baseline."""
    classifier = fitted.classifier
    counts = fitted.family_counts
    families = ", ".join([*counts] if len(counts) == 1 else [f"{n:,} {name}" for name, n in counts.items()])
    joint = classifier.joint_
    evidence = classifier.evidence_
    rows = f"on {evidence.n_rows:,.0f} held-out rows" if getattr(evidence, "n_rows", 0) else "as it is"
    return [
        ("features selected", f"{classifier.n_selected_:,}", f"of {classifier.n_features_in_:,}"),
        (
            "structure",
            "independent" if joint is None else "joint",
            f"{families} densities" if joint is None else f"{joint.covariance.replace('_', ' ')} covariance",
        ),
        ("evidence", fitted.evidence_kind, rows),
        *_held_out(fitted),
    ]


def _held_out(fitted: ModelView) -> list[tuple[str, str, str]]:
    found, baseline = fitted.held_out, fitted.majority
    if found is None or not np.isfinite(found.accuracy):
        return [("held-out accuracy", DASH, "there were no folds")]
    always = "" if baseline is None else f"{percent(baseline[1].accuracy)} by the majority class"
    alone = "" if baseline is None else f"{baseline[1].log_loss:.3f} by class shares alone"
    loss = f"{found.log_loss:.3f}" if np.isfinite(found.log_loss) else DASH
    return [("held-out accuracy", percent(found.accuracy), always), ("held-out log-loss", loss, alone)]


def _classes(fitted: ModelView) -> Markup | None:
    """Return the classes with their shares and the features that set each apart."""
    try:
        table = ranking_table(fitted, n=1, per_class=FEATURES)
    except NotFittedError:
        return None  # a file without moments of the selected features
    shares = fitted.classifier.class_prior_.tolist()
    labels = fitted.classifier.classes_.tolist()
    rows = []
    for label, share, name in list(zip(labels, shares, fitted.classes, strict=True))[:CLASSES]:
        words = [
            joined(", " if k else None, MINUS if sign < 0 else None, user_text(shortened(by, _LABEL)))
            for k, (by, sign, _) in enumerate(table.of_class(label, FEATURES))
        ]
        cells = (
            element(
                "th",
                user_text(shortened(name, _LABEL)),
                scope="row",
                style=f"{NAME};overflow-wrap:break-word;max-width:11rem",
            ),
            element("td", percent(share), style=NUMBER),
            element("td", joined(*words) or DASH, style=NAME),
        )
        rows.append(element("tr", *cells, style=ROW))
    titles = ("class", "share", f"features that set it apart ({MINUS}: less of it)")
    head = [element("th", title, scope="col", style=HEAD) for title in titles]
    return element("table", element("thead", element("tr", *head)), element("tbody", *rows), style=TABLE)
