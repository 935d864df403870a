"""Files named by arguments, and their formats."""

from __future__ import annotations

import codecs
import difflib
import glob
import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

FORMATS = ("csv", "tsv", "excel", "parquet", "jsonl", "svmlight", "h5ad", "lines", "folder")

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "excel"),
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
#: Binary formats, recognised by their first bytes under any name.
BINARY = ("parquet", "h5ad", "excel")
_MAGIC = {
    b"PAR1": "parquet",
    b"\x89HDF\r\n\x1a\n": "h5ad",
    b"PK\x03\x04": "excel",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "excel",
}
# What begins so is not read, and this is what it is and what to do.
_REFUSED = {
    b"%PDF-": "a PDF: copy its text into a text file, or its table into a CSV file",
    b"{\\rtf": "a document in Rich Text Format: save it as plain text",
    b"ARROW1\0": "an Arrow or Feather file: write it as Parquet",
    b"(\xb5/\xfd": "compressed by zstandard: decompress it, or compress it by gzip",
    b'\x04"M\x18': "compressed by lz4: decompress it, or compress it by gzip",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive: unpack it",
    b"Rar!\x1a\x07": "a RAR archive: unpack it",
    b"PK\x05\x06": "an empty zip archive",
    b"SQLite format 3\0": "an SQLite database: export the table as CSV",
    b"\x93NUMPY": "a NumPy array: write it as CSV or Parquet",
    **dict.fromkeys(
        (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle: write it as CSV or Parquet"
    ),
    **dict.fromkeys((b"RDX2\n", b"RDX3\n", b"RDA2\n", b"RDA3\n"), "a file of R: write it with write.csv"),
    **dict.fromkeys(
        (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a"), "a picture, not a table or text"
    ),
}
_MARKUP = {
    **dict.fromkeys((b"<!doctype html", b"<html", b"<table"), "an HTML page"),
    b"<?xml": "an XML file",
}
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
        """Size of a file in bytes; 0 if unknown."""
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


def format_of_bytes(head: bytes, name: str) -> str | None:
    """Return the format that the first bytes declare, None if they may be text; refuse what is not read."""
    for magic, form in _MAGIC.items():
        if head.startswith(magic):
            return form
    for magic, what in _REFUSED.items():
        if head.startswith(magic):
            raise SourceError(f"{name} is {what}.")
    if head[257:262] == b"ustar":
        raise SourceError(f"{name} is a tar archive: unpack it, and name its files or their folder.")
    if head[8:].startswith(b'{"__metadata__":{"maxdisc"'):
        raise SourceError(
            f"{name} is a model file of maxdisc, not data: the model comes first, then the data."
        )
    return None


def require_workbook(file: IO[bytes], name: str) -> None:
    """Raise ``SourceError`` for a zip archive that holds no workbook; a damaged one is left to its reader."""
    try:
        with zipfile.ZipFile(file) as archive:
            inside = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return
    if not any(part in inside for part in ("xl/workbook.xml", "xl/workbook.bin", "content.xml")):
        shown = ", ".join(inside[:3]) + (f" and {len(inside) - 3} more" if len(inside) > 3 else "")
        is_word = "word/document.xml" in inside
        what = "a Word document: save it as plain text, or its table as CSV" if is_word else None
        raise SourceError(f"{name} is {what or f'a zip archive of {shown}: unpack it'}.")


def require_no_markup(head: bytes, name: str) -> None:
    """Raise ``SourceError`` for a page that goes by the name of a table."""
    begin = head.removeprefix(codecs.BOM_UTF8).lstrip()[:20].lower()
    for markup, what in _MARKUP.items():
        if begin.startswith(markup):
            raise SourceError(f"{name} is {what}, not a table: open it in a spreadsheet and save it as CSV.")


def format_of_content(head: bytes, text_columns: Sequence[str] = ()) -> str:
    """Guess the format of text from its first bytes; without a text column it is one document per line."""
    line = head.removeprefix(codecs.BOM_UTF8).lstrip().split(b"\n", 1)[0]
    if line.startswith(b"{"):
        return "jsonl"
    if _SVMLIGHT_LINE.match(line):
        return "svmlight"
    if text_columns:
        names = {cell.strip().strip(b'"') for cell in re.split(rb"[,;|\t]", line)}
        if not names.intersection(name.encode() for name in text_columns):
            return "lines"
    return "tsv" if b"\t" in line and b"," not in line else "csv"
