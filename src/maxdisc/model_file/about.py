"""Validated metadata of a model file, which may be untrusted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def remembered(about: dict[str, Any] | None) -> dict[str, Any]:
    """Return the metadata of a file, without values of a type that no command writes."""
    return {name: value for name, value in (about or {}).items() if _USUAL.get(name, _anything)(value)}


def file_names(paths: Iterable[str]) -> list[str]:
    """Return file names without their folders, as text even if a name is not valid UTF-8."""
    return sorted({Path(path).name.encode("utf-8", "replace").decode() for path in paths})


def _anything(_: Any) -> bool:
    return True


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_name, value))


def _are_readings(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(reading, list)
        and len(reading) == 3
        and reading[0] != []
        and _are_names(reading[0])
        and all(isinstance(part, str) for part in reading[1:])
        for reading in value.values()
    )


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


_USUAL: dict[str, Callable[[Any], bool]] = {
    "rows": _is_count,
    "sources": _are_names,
    "formats": _are_names,
    "text": _is_name,
    "label": _is_name,
    "layer": _is_name,
    "note": _is_name,
    "header": _is_truth,
    "readings": _are_readings,
}
