"""Inline styles of notebook views: self-contained, and legible on light and dark pages.

A notebook's theme need not be that of the browser, so text and lines take the colour of what is around them.
"""

from __future__ import annotations

from maxdisc.inspection.markup import Markup, element

#: Blue speaks for, orange against, as on the other pages; both have contrast 3 or more with white and black.
FOR, AGAINST = "#2a80bd", "#c8621b"
_FAINT = "rgba(128,128,128,.4)"
#: The same with how much of them is seen through, for marked words.
_FOR_SHADE, _AGAINST_SHADE = "rgba(42,128,189,{})", "rgba(200,98,27,{})"

BOX = (
    "box-sizing:border-box;max-width:46rem;padding:.7rem .9rem;margin:.3rem 0;border-radius:8px;"
    f"border:1px solid {_FAINT};font:14px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;"
    "color:inherit;background:transparent;text-align:left;overflow-wrap:anywhere"
)
TITLE = "font-weight:650;font-size:1.05rem"
SOFT = "opacity:.75;font-size:.9em"
TABLE = (
    "border-collapse:collapse;width:100%;margin:.5rem 0 0;table-layout:auto;font-size:13px;"
    "font-variant-numeric:tabular-nums;color:inherit;background:transparent"
)
ROW = "background:transparent"
_CELL = f"padding:.22rem .5rem .22rem 0;border:0;border-top:1px solid {_FAINT};vertical-align:top;"
NAME = f"{_CELL}text-align:left;font-weight:450;overflow-wrap:anywhere"
NUMBER = f"{_CELL}text-align:right;white-space:nowrap"
HEAD = "padding:.1rem .5rem .2rem 0;border:0;text-align:left;font-weight:450;opacity:.75;font-size:.9em"


def mark_style(odds: float, most: float) -> str:
    """Return the style of a marked word: the stronger, the darker; broken lines speak against."""
    strength = min(4, 1 + int(4 * abs(odds) / most))
    colour, line = (FOR, "solid") if odds >= 0 else (AGAINST, "dashed")
    shade = _FOR_SHADE if odds >= 0 else _AGAINST_SHADE
    depth, thick = (0.08, 0.16, 0.26, 0.38)[strength - 1], (1, 2, 2, 3)[strength - 1]
    return (
        f"color:inherit;border-radius:3px;padding:.05em .1em;text-decoration:underline {line} {colour} "
        f"{thick}px;text-underline-offset:.22em;text-decoration-skip-ink:none;"
        f"background:{shade.format(depth)}"
    )


def bar(share: float, against: bool) -> Markup:
    """Return a bar to the right of a middle line, or to its left for what speaks against."""
    side = "right:50%;border-radius:3px 0 0 3px" if against else "left:50%;border-radius:0 3px 3px 0"
    colour = AGAINST if against else FOR
    style = f"position:absolute;top:0;bottom:0;{side};width:{50 * share:.1f}%;background:{colour}"
    line = f"position:absolute;left:50%;top:-.3em;bottom:-.3em;border-left:1px solid {_FAINT}"
    return element(
        "span",
        element("span", style=line),
        element("span", style=style),
        style="position:relative;display:block;height:.75em;margin-top:.35em;min-width:5rem",
    )
