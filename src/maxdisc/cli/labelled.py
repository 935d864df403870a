"""Labelled rows in memory, each of which still knows where it was written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from maxdisc.cli.console import Speech
from maxdisc.cli.failures import BadInputError
from maxdisc.files import Batch, Dataset, joined
from maxdisc.numerics.matrices import Booleans

_LONGEST_LABEL = 1000
_ROW = re.compile(r"\brow (\d+)\b")


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Documents or a matrix, with labels and the file and row number of each row."""

    X: Any
    y: npt.NDArray[np.str_]  # (N,)
    origin: Sequence[tuple[str, npt.NDArray[np.intp]]]
    left_out: int = 0
    unlabelled: str | None = None

    def __len__(self) -> int:
        return len(self.y)

    @classmethod
    def joined(cls, parts: Sequence[LabelledRows]) -> LabelledRows:
        """Return the rows of all parts, one after the other."""
        y: npt.NDArray[np.str_] = np.concatenate([part.y for part in parts])
        origin = [run for part in parts for run in part.origin]
        left_out = sum(part.left_out for part in parts)
        return cls(joined([part.X for part in parts]), y, origin, left_out, parts[0].unlabelled)

    def where(self, row: int) -> str:
        """Return the name of a row in messages."""
        for source, numbers in self.origin:
            if row < len(numbers):
                return f"{source} row {numbers[row]}"
            row -= len(numbers)
        return f"row {row}"

    @contextmanager
    def located(self) -> Iterator[None]:
        """Messages about a row of X name the row of the file instead."""
        try:
            yield
        except ValueError as error:
            raise BadInputError(naming_rows(str(error), self.where)) from None


def naming_rows(message: str, where: Callable[[int], str]) -> str:
    """Return a message that names rows as ``where`` calls them."""
    return _ROW.sub(lambda found: where(int(found[1])), message)


@contextmanager
def located_in(batch: Batch) -> Iterator[None]:
    """Messages about a row of a batch name the row of the file instead."""
    try:
        yield
    except ValueError as error:
        raise BadInputError(naming_rows(str(error), batch.where)) from None


def read_labelled(
    dataset: Dataset,
    label: str,
    text: str | None,
    features: Sequence[str],
    skip_unlabelled: bool,
    speech: Speech,
    stand_in: str | None = None,
    hint: str = "",
    words: Collection[str] = (),
    truths: Collection[str] = (),
) -> LabelledRows:
    """Read all rows into memory; rows without a label are refused, left out or kept as unlabelled."""
    parts: list[LabelledRows] = []
    unlabelled = Unlabelled(label, skip_unlabelled, stand_in, hint)
    n_rows = 0
    with speech.progress("reading", dataset.total_bytes) as tell:
        for batch in dataset.batches([label, *([text] if text else features)]):
            parts.append(labelled_part(batch, unlabelled, text, features, words, truths))
            n_rows += len(batch)
            tell(n_rows, dataset.done_bytes)
    unlabelled.settle(dataset.name, n_rows, speech)
    return LabelledRows.joined(parts)


def labelled_part(
    batch: Batch,
    unlabelled: Unlabelled,
    text: str | None,
    features: Sequence[str],
    words: Collection[str] = (),
    truths: Collection[str] = (),
) -> LabelledRows:
    """Return the rows of a batch that have a label; the others are counted."""
    y, kept = unlabelled.sorted_out(batch)
    part = batch if kept.all() else batch.rows(kept)
    require_short(y[kept], unlabelled.column, part)
    X = part.texts(text) if text else part.matrix
    return LabelledRows(
        part.typed(features, words, truths) if X is None else X,
        y[kept].astype(np.str_),
        [(batch.source, batch.first_row + np.flatnonzero(kept))],
        int((~kept).sum()),
        unlabelled.stand_in,
    )


def require_short(labels: npt.NDArray[np.object_], column: str, batch: Batch) -> None:
    """Raise ``BadInputError`` for documents in place of labels: in memory each would be as long as any."""
    if max(map(len, labels), default=0) > _LONGEST_LABEL:
        longest = max(range(len(labels)), key=lambda row: len(labels[row]))
        raise BadInputError(
            f"{batch.where(longest)}: a label of {len(labels[longest]):,} characters; is {column!r} the "
            "column of text? Say which one holds the labels with --label."
        )


class Unlabelled:
    """Counter of rows without a label; raises at the first one unless they are skipped or kept."""

    def __init__(self, column: str, skip: bool, stand_in: str | None = None, hint: str = "") -> None:
        self.column, self.skip, self.stand_in, self.hint = column, skip, stand_in, hint
        self.count, self.first = 0, ""

    def sorted_out(self, batch: Batch) -> tuple[npt.NDArray[np.object_], Booleans]:
        """Return the labels of a batch, and which rows have one."""
        y = batch.labels(self.column)
        if self.stand_in is not None:
            y = np.array([self.stand_in if label is None else label for label in y], dtype=object)
            self.count += int((y == self.stand_in).sum())
            return y, np.ones(len(y), dtype=np.bool_)
        kept = np.array([label is not None for label in y], dtype=np.bool_)
        if not kept.all():
            self.first = self.first or batch.where(int(np.argmin(kept)))
            self.count += int((~kept).sum())
        return y, kept

    def settle(self, name: str, n_rows: int, speech: Speech) -> None:
        """Say how many there were: as a note if they were skipped, else as the error they are."""
        if self.stand_in is not None and not self.count:
            speech.note(f"every row of {name} has a label: --unlabelled {self.stand_in!r} meets none")
        if not self.count:
            return
        if self.count == n_rows:
            if Path(name).is_dir():
                raise BadInputError(f"{name} tells no labels: put its files into a folder for each label.")
            raise BadInputError(
                f"no row of {name} has a label in column {self.column!r}: name another with --label."
            )
        counted = f"{self.count:,} of {n_rows:,} rows of {name} have no label in column {self.column!r}"
        if self.stand_in is not None:
            speech.note(f"{counted}: learnt from without one")
            return
        if not self.skip:
            out = f"{counted}, first {self.first}: leave them out with --skip-unlabelled{self.hint}."
            raise BadInputError(out)
        speech.note(f"{counted}: left out")


def classes_among(rows: Described) -> set[str]:
    """Return the labels, without what stands for none."""
    return set(rows.y.tolist()) - {getattr(rows, "unlabelled", None)}


def hold_numbers(labels: Collection[str]) -> bool:
    """Return whether every label is a number."""
    try:
        return all(math.isfinite(float(label)) for label in labels)
    except ValueError:
        return False


class Described(Protocol):
    """Labelled rows, as far as they are spoken of."""

    @property
    def y(self) -> npt.NDArray[np.str_]:
        """Labels; each class is among them."""

    def __len__(self) -> int:
        """Return how many rows there are."""
