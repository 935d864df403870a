"""Which readers a file is for: each new format adds to what the one before could say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

#: Entries of the document that format 1 did not have, or not with such a value.
_SINCE_2: dict[str, Callable[[Any], bool]] = {
    "divergence": lambda name: name == "jensen_shannon",
    "redundancy": bool,
}


def oldest_format(node: Any) -> int:
    """The oldest format whose readers know all that a model's part of the document says."""
    newer = any(key in _SINCE_2 and _SINCE_2[key](value) for key, value in _entries(node))
    return 2 if newer else 1


def _entries(node: Any) -> Iterator[tuple[str, Any]]:
    """Every entry of every object, however deep."""
    if isinstance(node, dict):
        yield from node.items()
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _entries(value)
