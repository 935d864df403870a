"""JSON Lines: one object on each line."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa

from maxdisc.files.batches import Opened
from maxdisc.files.byte_streams import Stream, decoded, line_blocks
from maxdisc.files.places import SourceError


def open_jsonl(stream: Stream, columns: Collection[str] | None = None) -> Opened:
    """Begin to read objects; every value comes as text, as it is written, and null as missing.

    The names are those of the first batch, in order of appearance. A name that an object lacks is missing
    there.
    """
    records = _records(stream)
    first = next(records, [])
    names = list(dict.fromkeys(name for record in first for name in record))
    wanted = [name for name in names if columns is None or name in columns]
    return Opened(names, _tables(first, records, wanted))


def _tables(
    first: list[dict[str, Any]], rest: Iterator[list[dict[str, Any]]], wanted: list[str]
) -> Iterator[pa.Table]:
    batch: list[dict[str, Any]] | None = first
    while batch:
        yield pa.table(
            {name: pa.array([_written(record.get(name)) for record in batch], pa.string()) for name in wanted}
        )
        batch = next(rest, None)


def _records(stream: Stream) -> Iterator[list[dict[str, Any]]]:
    first_row = 1
    for lines in line_blocks(stream):
        kept = [line for line in lines if line.strip()]
        if kept:
            yield [_record(line, f"{stream.name} row {row}") for row, line in enumerate(kept, first_row)]
        first_row += len(kept)


def _record(line: bytes, where: str) -> dict[str, Any]:
    text = decoded(line, where)
    try:
        record = json.loads(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        if where.endswith(" row 1") and text.lstrip().startswith("["):
            raise SourceError(
                f"{where}: a JSON array; write one object on each line instead (jq -c '.[]')."
            ) from None
        raise SourceError(f"{where} is not JSON: {error.msg} at character {error.colno}.") from None
    except RecursionError:
        raise SourceError(f"{where} is nested too deeply.") from None
    except ValueError:  # Python reads integers only up to some length
        raise SourceError(f"{where} has a number of thousands of digits: write it as text.") from None
    if not isinstance(record, dict):
        raise SourceError(f"{where}: expected a JSON object in braces, got {text.strip()[:40]!r}.")
    if r"\ud" in text or r"\uD" in text:
        _require_characters(record, where)
    return record


def _require_characters(record: dict[str, Any], where: str) -> None:
    """Raise ``SourceError`` if an escape stands for half a character: no file of text can hold that."""
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ord(error.object[error.start])
        raise SourceError(
            f"{where} has half a character, \\u{half:04x}: correct it where the file was written."
        ) from None


def _written(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False)
