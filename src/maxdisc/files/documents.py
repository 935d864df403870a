"""Plain text: a folder of files, or one document on each line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from maxdisc.files.batches import Opened
from maxdisc.files.byte_streams import Stream, batch_bytes, decoded, line_blocks
from maxdisc.files.places import Place, SourceError, format_of_bytes

TEXT, LABEL, FILE = "text", "label", "file"


def open_lines(stream: Stream) -> Opened:
    """Begin to read documents of one line each."""
    return Opened([TEXT], _line_tables(stream))


def _line_tables(stream: Stream) -> Iterator[pa.Table]:
    row = 0
    for lines in line_blocks(stream):
        texts = []
        for line in lines:
            row += 1
            texts.append(decoded(line.rstrip(b"\r\n"), f"{stream.name} row {row}").removeprefix("\ufeff"))
        yield pa.table({TEXT: pa.array(texts, pa.string())})


def open_folder(place: Place, encoding: str) -> Opened:
    """Begin to read the files below a folder, sorted; the first folder on the way to a file is its label."""
    assert place.path is not None  # standard input is no folder
    files = _files_below(place.path)
    if not files:
        raise SourceError(f"{place.name} is a folder without files.")
    return Opened([TEXT, LABEL, FILE], _file_tables(place.path, files, encoding), len(files))


def _files_below(folder: Path) -> list[Path]:
    files = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".")]
        files += [Path(parent, name) for name in names if not name.startswith(".")]
    # A pipe or a device would keep the reader waiting; a link to nowhere is named when it is opened.
    return sorted((f for f in files if f.is_file() or not f.exists()), key=lambda path: path.parts)


def _file_tables(folder: Path, files: list[Path], encoding: str) -> Iterator[pa.Table]:
    texts: list[str] = []
    labels: list[str | None] = []
    names: list[str] = []
    size = 0
    for path in files:
        data = path.read_bytes()
        texts.append(_text(data, path, encoding))
        relative = path.relative_to(folder)
        if not _is_text(str(relative)):
            raise SourceError(f"{path}: the name of this file is not UTF-8: rename it.")
        labels.append(relative.parts[0] if len(relative.parts) > 1 else None)
        names.append(str(relative))
        size += len(data)
        if size >= batch_bytes() or path is files[-1]:
            strings = (pa.array(values, pa.string()) for values in (texts, labels, names))
            yield pa.table(dict(zip((TEXT, LABEL, FILE), strings, strict=True)))
            texts, labels, names, size = [], [], [], 0


def _is_text(name: str) -> bool:
    """Return whether a name is text; the system takes any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(data: bytes, path: Path, encoding: str) -> str:
    if form := format_of_bytes(data[:512], str(path)):
        raise SourceError(f"{path} is no text, but {form}: move it out of the folder.")
    if encoding in ("utf-8", "utf8"):
        return decoded(data, str(path)).removeprefix("\ufeff")
    try:
        return data.decode(encoding)
    except UnicodeError as error:
        raise SourceError(f"{path}: {error}; say another --encoding.") from None
