"""Which files the arguments name, and what is in them."""

from __future__ import annotations

import codecs
import difflib
import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FORMATS = ("csv", "tsv", "parquet", "jsonl", "svmlight", "h5ad", "lines", "folder")

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".h5ad": "h5ad",
}
_COMPRESSED = {".gz", ".bz2", ".xz"}
_SVMLIGHT_LINE = re.compile(rb"\s*[^\s:]+(\s+(qid|\d+):[^\s:]+)+\s*(#.*)?$")


class SourceError(ValueError):
    """Something is wrong with a file, a row or a value; the message says where, and what to do."""


@dataclass(frozen=True)
class Place:
    """File, folder or stream; ``path`` None is standard input."""

    name: str
    path: Path | None
    format: str | None

    @property
    def once(self) -> bool:
        """Whether it can be read only once: standard input, a pipe."""
        return self.path is None or not (self.path.is_file() or self.path.is_dir())

    @property
    def size(self) -> int:
        """Bytes of a file; 0 where nobody knows."""
        return self.path.stat().st_size if self.path is not None and self.path.is_file() else 0


def find_places(arguments: Sequence[str], format: str | None = None) -> list[Place]:
    """Return the files, folders and streams named by paths, globs and ``-``; globs are sorted."""
    places = [place for argument in arguments for place in _named_by(argument, format)]
    if sum(place.path is None for place in places) > 1:
        raise SourceError("standard input (-) can be read only once.")
    if not places:
        raise SourceError("there is nothing to read: name a file, a folder or - for standard input.")
    return places


def _named_by(argument: str, asked: str | None) -> Iterable[Place]:
    if argument == "-":
        return [Place("standard input", None, asked)]
    path = Path(argument)
    if path.is_dir():
        return _in_folder(path, asked)
    if path.exists():
        return [_file(path, asked)]
    if glob.has_magic(argument):
        # Pipes and devices are read only where they are named: they may keep the reader waiting for ever.
        matches = map(Path, sorted(glob.glob(argument, recursive=True)))
        found = [path for path in matches if path.is_file() or path.is_dir()]
        if not found:
            raise SourceError(f"no file matches {argument!r}.")
        return [
            p for path in found for p in (_in_folder(path, asked) if path.is_dir() else [_file(path, asked)])
        ]
    raise SourceError(f"{argument} does not exist{_alternative(path)}")


def _file(path: Path, asked: str | None) -> Place:
    place = Place(str(path), path, asked or format_of_name(path))
    if path.is_file() and place.size == 0:
        raise SourceError(f"{path} is empty.")
    return place


def _in_folder(path: Path, asked: str | None) -> list[Place]:
    """Return the data files right in a folder, or else the folder itself: one document in each file."""
    files = [p for p in sorted(path.iterdir()) if p.is_file() and not p.name.startswith((".", "_"))]
    tables = [p for p in files if format_of_name(p)] if asked in (None, "folder") else files
    if tables and asked != "folder":
        return [_file(p, asked) for p in tables]
    return [Place(str(path), path, "folder")]


def _alternative(path: Path) -> str:
    parent = path.parent
    # Without endings, which are alike in files that are not.
    names = {p.stem: p.name for p in parent.iterdir()} if parent.is_dir() else {}
    close = difflib.get_close_matches(path.stem, names, n=1, cutoff=0.7)
    return f": did you mean {parent / names[close[0]]}?" if close else "."


def format_of_name(path: Path) -> str | None:
    """Return the format implied by a file name, compressed or not, or None."""
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def format_of_content(head: bytes, text_column: str | None = None) -> str:
    """Guess the format from the first bytes; without the text column a file is one document per line."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return "h5ad"
    line = head.removeprefix(codecs.BOM_UTF8).lstrip().split(b"\n", 1)[0]
    if line.startswith(b"{"):
        return "jsonl"
    if _SVMLIGHT_LINE.match(line):
        return "svmlight"
    if text_column is not None:
        names = {cell.strip().strip(b'"') for cell in re.split(rb"[,;\t]", line)}
        if text_column.encode() not in names:
            return "lines"
    return "tsv" if b"\t" in line and b"," not in line else "csv"
