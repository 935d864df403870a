"""Files that commands write: refused before the work begins, whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from maxdisc.cli.failures import BadInputError


def require_writable(output: Path, force: bool, inputs: Sequence[Path | None] = ()) -> None:
    """Raise ``BadInputError`` for an output that must not or cannot be written."""
    if output.is_dir():
        raise BadInputError(f"{output} is a folder: name a file.")
    if not output.parent.is_dir():
        raise BadInputError(f"{output.parent} is not a folder: make it first.")
    if not output.exists():
        return
    if any(path is not None and path.exists() and output.samefile(path) for path in inputs):
        raise BadInputError(f"{output} is both input and output: name another output.")
    if not output.is_file():
        raise BadInputError(f"{output} is not a file that can be replaced: name another output.")
    if not force:
        raise BadInputError(f"{output} exists: replace it with --force, or name another output.")


@contextmanager
def opened_output(output: Path | None) -> Iterator[BinaryIO]:
    """A file that takes its name only once it is whole; None is standard output."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from maxdisc.writing import atomic_write

    with atomic_write(output) as file:
        yield cast("BinaryIO", file)


def path_of(output: Path | None) -> Path | None:
    """The file that is meant; None for ``-``, standard output."""
    return None if output is None or str(output) == "-" else output
