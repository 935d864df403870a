"""Additive statistics of a table, from which the families of its columns are selected.

They are used for rows in batches or partitions and, if folds are by a hash of the row, for rows in memory as
well, so the same rows always have the same families.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.numerics.matrices import Booleans, Floats, Integers, column_name
from maxdisc.rows.family_choice import MOST_CODES, MOST_ROWS, Values
from maxdisc.rows.frames import BOOLEAN, EMPTY, NUMBER, WORD, Cells, Kinds, Levels
from maxdisc.rows.row_sources import row_hashes, scrambled
from maxdisc.rows.sampling import sampled
from maxdisc.rows.schema import require_finite

_CALLED = {NUMBER: "numbers", BOOLEAN: "truth values", WORD: "text"}


@dataclass(frozen=True, eq=False)
class TableTotals:
    """Kinds, ranges, levels and a sample of the rows of a table: a commutative monoid under ``+``."""

    names: list[str]
    kinds: Kinds  # (D,)
    low: Floats  # (D,)
    high: Floats  # (D,)
    whole: Booleans  # (D,)
    zeros: Floats  # (D,)
    count: Floats  # (D,)
    lacking: Booleans  # (D,)
    level_columns: Integers  # (E,)
    levels: list[str]
    numbers: Floats  # (k, D)
    labels: list[Any]
    weights: Floats  # (k,)
    hashes: npt.NDArray[np.uint64]  # (k,)

    @classmethod
    def of(
        cls,
        cells: Cells,
        labels: Sequence[Any] | npt.NDArray[Any],
        names: npt.ArrayLike | None = None,
        weights: Floats | None = None,
    ) -> TableTotals:
        """Build from some rows; raise ``ValueError``, naming the column, for numbers that are infinite."""
        called = [str(n) for n in (range(len(cells.kinds)) if names is None else np.asarray(names).tolist())]
        require_finite(cells, names)
        weights = np.ones(len(cells.numbers)) if weights is None else weights
        facts = Values.of(cells.numbers, weights)
        at = _with_levels(cells.kinds, facts.whole, facts.low, facts.high)
        levels = Levels.of(cells.worded(at), at)
        hashes = _hashes(cells, np.asarray(labels).astype(str))
        kept, heavy = sampled(hashes, weights, MOST_ROWS)
        return cls(
            called,
            cells.kinds,
            facts.low,
            facts.high,
            facts.whole,
            facts.zeros,
            facts.count,
            np.asarray(cells.missing().any(axis=0)),
            levels.columns,
            levels.names.tolist(),
            cells.numbers[kept],
            np.asarray(labels)[kept].tolist(),
            heavy,
            hashes[kept],
        )

    def __add__(self, other: TableTotals) -> TableTotals:
        if not isinstance(other, TableTotals):
            return NotImplemented
        if self.names != other.names:
            raise ValueError("the columns of some batches have other names than those of others.")
        kinds, whole = self._kinds_with(other), self.whole & other.whole
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        both = self._levels().joined(other._levels())
        # What were codes in some rows may be none in all.
        still = np.flatnonzero(np.isin(both.columns, _with_levels(kinds, whole, low, high)))
        levels = both.names[still].tolist()
        hashes, weights = np.r_[self.hashes, other.hashes], np.r_[self.weights, other.weights]
        kept, heavy = sampled(hashes, weights, MOST_ROWS)
        labels = [*self.labels, *other.labels]
        return TableTotals(
            self.names,
            kinds,
            low,
            high,
            whole,
            self.zeros + other.zeros,
            self.count + other.count,
            self.lacking | other.lacking,
            both.columns[still],
            levels,
            np.concatenate([self.numbers, other.numbers])[kept],
            [labels[at] for at in kept.tolist()],
            heavy,
            hashes[kept],
        )

    def _kinds_with(self, other: TableTotals) -> Kinds:
        differ = (self.kinds != other.kinds) & (self.kinds != EMPTY) & (other.kinds != EMPTY)
        if differ.any():
            at = int(np.argmax(differ))
            found = " and ".join(sorted(_CALLED[int(part.kinds[at])] for part in (self, other)))
            raise ValueError(f"{column_name(at, self.names)} mixes {found}: make it all of one kind.")
        return np.where(self.kinds == EMPTY, other.kinds, self.kinds)

    def _levels(self) -> Levels:
        return _listed(self.level_columns, self.levels)

    def levels_of(self, columns: Integers) -> Levels:
        """Return the levels of some columns; raise ``ValueError`` for too many numbers."""
        known = np.isin(columns, self.level_columns)
        if not known.all():
            where = column_name(int(columns[np.argmin(known)]), self.names)
            raise ValueError(
                f"{where} holds numbers, of more than {MOST_CODES} values: where rows come in batches, "
                "categories are text; write them as text, or leave the family of the column open."
            )
        some = np.flatnonzero(np.isin(self.level_columns, columns))
        return _listed(self.level_columns[some], [self.levels[at] for at in some.tolist()])

    def values(self, columns: Integers) -> Values:
        """Return what decides which families some columns can have."""
        ends, whole = (self.low[columns], self.high[columns]), self.whole[columns]
        return Values(*ends, whole, self.zeros[columns], self.count[columns])


def _with_levels(kinds: Kinds, whole: Booleans, low: Floats, high: Floats) -> Integers:
    """Return the columns of text, and those of whole numbers that are few enough to be codes."""
    with np.errstate(invalid="ignore"):
        codes = whole & (low <= high) & (high - low < MOST_CODES)
    return np.flatnonzero((kinds == WORD) | ((kinds == NUMBER) & codes))


def _listed(columns: Integers, names: list[str]) -> Levels:
    """Levels from their columns and names."""
    words = np.empty(len(set(names)), dtype=object)
    words[:] = sorted(set(names))
    place = {word: at for at, word in enumerate(words.tolist())}
    places = np.array([place[name] for name in names], dtype=np.intp)
    return Levels(words, np.sort(columns * len(words) + places))


def _hashes(cells: Cells, labels: npt.NDArray[np.str_]) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of the cells and the label of each row, shape (N,)."""
    total = row_hashes(cells.numbers)
    if len(cells.at):
        words = np.array([*map(_hash, cells.coded.words.tolist()), 0], dtype=np.uint64)
        columns = scrambled(cells.at.astype(np.uint64) + np.uint64(len(cells.kinds) + 1))
        # A missing cell adds nothing, be there words in its column or not.
        mixed = np.where(cells.coded.codes < 0, np.uint64(0), scrambled(words[cells.coded.codes] ^ columns))
        total = total + mixed.sum(axis=1, dtype=np.uint64)
    called, which = np.unique(labels, return_inverse=True)
    return scrambled(total + np.array([_hash(label) for label in called.tolist()], dtype=np.uint64)[which])


def _hash(word: str) -> int:
    return int.from_bytes(blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
