"""Results on disk: one JSON file for each table, written so that no kill and no second run harms it."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

PACKAGES = ("maxdisc", "numpy", "scipy", "scikit-learn")


class Key(NamedTuple):
    """A cell: one method on one outer fold."""

    row: str
    seed: int
    fold: int
    method: str


Cells = dict[Key, dict[str, Any]]


def provenance(command: str) -> dict[str, Any]:
    """What is said of a run: how to repeat it, when it was, and with which versions."""
    return {
        "command": command,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
    }


class Record:
    """The cells of a table in a file.

    The file is always whole: it is replaced, not changed. Every change reads it first, under a lock, so that
    several runs may add to one file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def cells(self) -> Cells:
        return _cells(self._read())

    def add(self, cells: Cells, run: dict[str, Any]) -> None:
        """Put cells into the file, in place of those of the same keys."""

        def change(content: dict[str, Any]) -> None:
            name = run["date"]
            content["runs"][name] = run
            merged = _cells(content) | {key: {**cell, "run": name} for key, cell in cells.items()}
            content["cells"] = [{**key._asdict(), **merged[key]} for key in sorted(merged)]

        self._change(change)

    def drop(self, methods: list[str], rows: list[str] | None = None) -> int:
        """Take the cells of these methods out of the file; returns how many there were."""
        dropped = 0

        def change(content: dict[str, Any]) -> None:
            nonlocal dropped
            kept = [
                cell
                for cell in content["cells"]
                if cell["method"] not in methods or (rows is not None and cell["row"] not in rows)
            ]
            dropped = len(content["cells"]) - len(kept)
            content["cells"] = kept

        self._change(change)
        return dropped

    def runs(self) -> list[dict[str, Any]]:
        """The runs that cells are of, oldest first."""
        content = self._read()
        used = {cell["run"] for cell in content["cells"]}
        return [content["runs"][name] for name in sorted(content["runs"]) if name in used]

    def _read(self) -> dict[str, Any]:
        if not self.path.exists():
            return {"runs": {}, "cells": []}
        return json.loads(self.path.read_text(encoding="utf-8"))

    def _change(self, change: Callable[[dict[str, Any]], None]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self.path.with_suffix(".lock")):
            content = self._read()
            change(content)
            used = {cell["run"] for cell in content["cells"]}
            content["runs"] = {name: run for name, run in content["runs"].items() if name in used}
            write_whole(self.path, _lines(content))


def write_whole(path: Path, text: str) -> None:
    """Replace a file at once: whoever reads it has the old text or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _cells(content: dict[str, Any]) -> Cells:
    names = Key._fields
    return {
        Key(*(cell[name] for name in names)): {k: v for k, v in cell.items() if k not in names}
        for cell in content["cells"]
    }


def _lines(content: dict[str, Any]) -> str:
    """JSON with one line for each cell, so that versions of the file can be compared."""
    cells = ",\n".join("  " + json.dumps(cell) for cell in content["cells"])
    runs = json.dumps(content["runs"], indent=1).replace("\n", "\n ")
    return f'{{\n "runs": {runs},\n "cells": [\n{cells}\n ]\n}}\n'


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # not on Windows: there, run one at a time
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
