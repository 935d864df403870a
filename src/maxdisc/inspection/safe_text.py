"""Sanitized display of untrusted text."""

from __future__ import annotations

import re
import unicodedata

# Joiners are part of how some scripts, and many emoji, are written; they neither hide nor reorder anything.
_JOINERS = "\u200c\u200d"
# Control, format (bidirectional, zero-width), surrogate and unassigned characters.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Cn"})
_SPACE = re.compile(r"\s+")


def visible(text: object) -> str:
    """Return text on one line; characters that hide or reorder others become U+FFFD."""
    flat = _SPACE.sub(" ", str(text)).strip()
    if flat.isascii() and flat.isprintable():
        return flat
    return "".join("\ufffd" if unicodedata.category(c) in _UNSEEN and c not in _JOINERS else c for c in flat)


def shortened(text: object, width: int) -> str:
    """Return visible text of at most ``width`` characters, ending in an ellipsis if it was cut."""
    raw = str(text)
    # Only so much of a book is looked at as could be shown, many times over for its white space.
    whole = visible(raw[: 20 * width + 100])
    if len(whole) <= width and len(raw) <= 20 * width + 100:
        return whole
    return whole[: width - 1].rstrip() + "…"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(words: list[str], last: str = "and") -> str:
    """Join words as in a sentence."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
