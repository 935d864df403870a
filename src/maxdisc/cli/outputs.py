"""Output files of commands: validated before the work begins, and written atomically."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

from maxdisc.cli.console import shown
from maxdisc.cli.failures import BadInputError

if TYPE_CHECKING:
    from maxdisc.files.places import Place


def require_writable(
    output: Path,
    force: bool,
    data: Sequence[str] = (),
    format: str | None = None,
    files: Sequence[Path] = (),
) -> None:
    """Raise ``BadInputError`` if the output cannot be written or would replace an input."""
    if output.is_dir():
        raise BadInputError(f"{output} is a folder: name a file.")
    if not output.parent.is_dir():
        raise BadInputError(f"{output.parent} is not a folder: make it first.")
    if not output.exists():
        return
    if _is_read(output, data, format, files):
        raise BadInputError(f"{output} is both input and output: name another output.")
    if not output.is_file():
        raise BadInputError(f"{output} is not a file that can be replaced: name another output.")
    if not force:
        raise BadInputError(f"{output} exists: replace it with --force, or name another output.")


def written_since(output: Path, checkpoint: Path | None) -> bool:
    """Return whether a file is newer than the beginning of a checkpoint."""
    begun = (
        [] if checkpoint is None else [path.stat().st_mtime for path in checkpoint.glob("step-*.checkpoint")]
    )
    return bool(begun) and output.is_file() and output.stat().st_mtime >= min(begun)


def _is_read(output: Path, data: Sequence[str], format: str | None, files: Sequence[Path]) -> bool:
    """Return whether an existing file is an input."""
    from maxdisc.files.places import SourceError, find_places

    if any(path.exists() and output.samefile(path) for path in files):
        return True
    for argument in data:
        try:
            places = find_places([argument], format)
        except SourceError:
            continue  # whoever reads it says what is wrong with it
        if any(_holds(place, output) for place in places):
            return True
    return False


def _holds(place: Place, output: Path) -> bool:
    if place.path is None:
        return False
    if place.format == "folder":
        names = (output.resolve(), output.parent.resolve() / output.name)
        return any(name.is_relative_to(place.path.resolve()) for name in names)
    return output.samefile(place.path)


class _Terminal(io.RawIOBase):
    """UTF-8 for a terminal: it is shown, and not obeyed."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, data: Any) -> int:
        self._terminal.write(shown(bytes(data).decode("utf-8", "replace")))
        return len(data)


@contextmanager
def opened_output(output: Path | None) -> Iterator[BinaryIO]:
    """Open an output file that is written atomically; None is standard output."""
    if output is None:
        sys.stdout.flush()
        yield cast("BinaryIO", _Terminal(sys.stdout)) if sys.stdout.isatty() else sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from maxdisc.model_file.atomic_writes import atomic_write

    with atomic_write(output) as file:
        yield cast("BinaryIO", file)


def path_of(output: Path | None) -> Path | None:
    """Return the file that is meant; None for ``-``, standard output."""
    return None if output is None or str(output) == "-" else output
