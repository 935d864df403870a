"""Construction of HTML: everything that is not markup is escaped."""

from __future__ import annotations

from html import escape

from maxdisc.inspection.safe_text import visible

#: Elements that have no end tag.
_VOID = frozenset({"br", "col", "hr", "meta", "wbr"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, *children: object, **attributes: object) -> Markup:
    """Return an HTML element; children that are not :class:`Markup` are sanitized and escaped.

    An attribute's trailing underscore is dropped, other underscores become hyphens; None omits the
    attribute.
    """
    head = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{head}>")
    return Markup(f"<{name}{head}>{joined(*children)}</{name}>")


def joined(*children: object) -> Markup:
    """Children one after another, text escaped; None is nothing."""
    return Markup("".join(_child(child) for child in children if child is not None))


def _child(child: object) -> str:
    if isinstance(child, Markup):
        return child
    text = str(child)
    # White space at the ends separates this from its neighbours.
    left, right = (" " if text[:1].isspace() else ""), (" " if text.strip() and text[-1:].isspace() else "")
    return escape(f"{left}{visible(text)}{right}", quote=False)


def user_text(text: object) -> Markup:
    """Text of a user, isolated so that its direction of writing does not change what stands around it."""
    return element("bdi", text)
