"""Display objects as inline SVG: no metadata, no foreign ids, colours that follow the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure

from maxdisc.plots.canvas import FAINT, PALETTE

# Units of the drawing; the page scales it, so that this is about the width of a telephone.
WIDTH = 360
_INK = "#222222"
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "maxdisc",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "legend.labelspacing": 0.3,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "lines.solid_capstyle": "round",
    "path.simplify_threshold": 0.3,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.titlecolor", "axes.edgecolor", "xtick.color", "ytick.color"),
        _INK,
    ),
}
#: Colours of the drawing, and what the page has in their stead.
_COLOURS = {_INK: "currentColor", FAINT: "var(--faint)"} | {
    colour: f"var(--c{k})" for k, colour in enumerate(PALETTE)
}
_HEX = re.compile(r"#[0-9a-f]{6}\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_NUMBER = re.compile(r"(\d+\.\d{2})\d+")
_FONT = re.compile(r"font(-family)?:[^;]*")


def inline_svg(draw: Callable[[Any], Any], label: str, key: str, height: float = 215) -> str:
    """Draw on fresh axes and return an ``svg`` element for an HTML page.

    Its colours are ``currentColor`` and CSS variables of the page; ``key`` prefixes every id, to keep them
    unique.
    """
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        # The browser has more scripts than matplotlib's own font; this one only measures.
        warnings.filterwarnings("ignore", message="Glyph|Matplotlib currently does not support")
        figure = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")
        draw(figure.subplots())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    # Written a line above, by matplotlib: no text of a stranger is parsed here.
    root = ElementTree.fromstring(buffer.getvalue())
    _prune(root)
    _rename(root, key)
    for node in root.iter():
        _restyle(node)
    root.attrib = {"viewBox": f"0 0 {WIDTH} {height:g}", "role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _prune(root: ElementTree.Element) -> None:
    """Without metadata, style sheets (which would apply to the whole page) and names of namespaces."""
    for node in root.iter():
        node.tag = node.tag.rpartition("}")[2]
        node.attrib = {key.rpartition("}")[2]: value for key, value in node.attrib.items()}
        if node.tag not in ("text", "tspan"):
            node.text = None
        node.tail = None
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style") or child.tag.endswith("metadata"):
                parent.remove(child)


def _rename(root: ElementTree.Element, key: str) -> None:
    """Ids that nothing refers to go; the others belong to this picture."""
    used = {node.get("href", "")[1:] for node in root.iter()}
    for node in root.iter():
        used.update(name for value in node.attrib.values() for name in _REFERENCE.findall(value))
    for node in root.iter():
        name = node.attrib.pop("id", None)
        if name in used and name is not None:
            node.set("id", f"{key}-{name}")
        if "href" in node.attrib:
            node.set("href", f"#{key}-{node.get('href', '')[1:]}")
        if "clip-path" in node.attrib:
            node.set("clip-path", _REFERENCE.sub(rf"url(#{key}-\1)", node.get("clip-path", "")))


def _restyle(node: ElementTree.Element) -> None:
    style = _HEX.sub(lambda match: _COLOURS.get(match[0], match[0]), node.get("style", ""))
    if node.tag == "text":
        style = _FONT.sub("font-family: inherit", style)
        if "fill" not in style:
            style += "; fill: currentColor"
    if style:
        node.set("style", style)
    for name in ("d", "x", "y", "transform"):
        if name in node.attrib:
            node.set(name, _NUMBER.sub(r"\1", " ".join(node.get(name, "").split())))
