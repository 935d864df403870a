"""Predictions for CSV files: the same columns, plus predictions."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any

from maxdisc.files import Batch, Reading, SourceError, nearest, open_sink, sources
from maxdisc.files.byte_streams import StreamOfBytes
from maxdisc.files.delimited import open_delimited
from maxdisc.inspection.model_input import Predictions
from maxdisc.numerics.threads import limited_threads
from maxdisc.serve.answers import novelty_of, require_few_cells
from maxdisc.serve.limits import Limits
from maxdisc.serve.metrics import Tally
from maxdisc.serve.refusals import RefusedError
from maxdisc.serve.served_model import ServedModel

#: Limit on columns that the model does not use; each takes kilobytes, even if empty.
MORE_COLUMNS = 1000
PREDICTED = ("label", "probability", "runner_up", "runner_up_probability")


def predicted_csv(model: ServedModel, body: bytes, limits: Limits) -> tuple[bytes, Tally]:
    """Return a CSV file with its predictions, and statistics of its rows."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(
            422, f"the CSV is not UTF-8: byte 0x{body[error.start]:02x} at {error.start}."
        ) from None
    if model.kind == "vectors":
        raise RefusedError(422, f"model {model.name!r} has no names of columns: send rows to /predict.")
    try:
        with limited_threads(1):
            return _written(model, body, limits)
    except SourceError as error:
        raise RefusedError(422, str(error)) from None


def _written(model: ServedModel, body: bytes, limits: Limits) -> tuple[bytes, Tally]:
    opened = open_delimited(StreamOfBytes(body, "the CSV"), header=model.header)
    most = len(model.columns) + MORE_COLUMNS
    if len(opened.names) > most:
        told = (
            f"the CSV has {len(opened.names):,} columns: send those that the model takes, {most:,} at most."
        )
        raise RefusedError(413, told)
    _require_columns(model, opened.names)
    names = _once(opened.names)
    has_novelty = model.classifier._learnt.novelty is not None
    added = [*PREDICTED, *(["novelty"] if has_novelty else [])]
    out, tally = io.BytesIO(), Tally()
    sink = open_sink(out, "csv", [*_beside(names, added), *added], [])
    for batch in _batches(opened.tables, names, model.readings):
        n_rows = tally.rows + len(batch)
        if n_rows > limits.batch:
            raise RefusedError(413, f"the CSV has more than {limits.batch:,} rows: send it in parts.")
        require_few_cells(n_rows, len(names))
        raw = model.raw(batch)
        said = _said(model, batch, raw)
        columns: list[Any] = [[cell or "" for cell in batch.strings(name)] for name in names]
        for which in (said.first, said.second):
            columns += [said.label(which), said.probability(which)]
        if has_novelty:
            columns.append(novelty_of(model, said))
        sink.write(columns)
        tally.add(model, raw, said.label(said.first))
    if not tally.rows:
        raise RefusedError(422, "the CSV has no rows below the names of its columns.")
    sink.close()
    return out.getvalue(), tally


def _batches(tables: Iterator[Any], names: list[str], readings: Mapping[str, Reading]) -> Iterator[Batch]:
    first = 1
    for table in tables:
        yield Batch(table.rename_columns(names), "the CSV", first, readings=readings)
        first += table.num_rows


def _said(model: ServedModel, batch: Batch, raw: Any) -> Predictions:
    try:
        return model.said(raw)
    except ValueError as error:
        raise RefusedError(422, f"from {batch.where(0)} on: {error}") from None


def _require_columns(model: ServedModel, names: list[str]) -> None:
    wanted = sources(model.columns, model.readings, names)
    missing = [column for column in wanted if column not in names]
    if missing:
        shown = ", ".join(repr(name[:40]) for name in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise RefusedError(422, f"the CSV has no column {shown}{more}{nearest(missing[0], names[:2000])}")


def _once(names: list[str]) -> list[str]:
    """Return unique names; the first of equal names is unchanged."""
    taken: set[str] = set()
    reached: dict[str, int] = {}
    return [_free(name, taken, reached) for name in names]


def _beside(names: list[str], added: list[str]) -> list[str]:
    """Return names of the input columns that differ from those of added columns."""
    taken = set(added) | {name for name in names if name not in added}
    reached: dict[str, int] = {}
    return [_free(f"given_{name}", taken, reached) if name in added else name for name in names]


def _free(name: str, taken: set[str], reached: dict[str, int]) -> str:
    """Return an unused name, by adding a number."""
    free, k = name, reached.get(name, 2)
    while free in taken:
        free, k = f"{name}_{k}", k + 1
    reached[name] = k
    taken.add(free)
    return free
