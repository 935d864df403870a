"""Axes, colours and text shared by all plots."""

from __future__ import annotations

from typing import Any

from maxdisc.inspection.safe_text import shortened

#: Five of Okabe and Ito's colours, legible on white and distinguishable by the colour-blind.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#444444")
#: Every colour has its own line style, for greyscale.
STROKES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.2, 1, 1.2)), (0, (8, 1.5, 2, 1.5)))
#: What stands behind the data: guides, folds, everything else.
FAINT = "#8a8a8a"

# Names are cut at this many characters, so that they leave room for the data.
NAME_WIDTH = 28


def drawing_axes(ax: Any) -> tuple[Any, Any]:
    """Return the axes given, or those of a new pyplot figure, tidied up; and their figure."""
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax, ax.figure


def literal(text: object, width: int = NAME_WIDTH) -> str:
    """Escape a name for matplotlib: no formulas, and no names hidden from legends."""
    name = shortened(text, width).replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name
