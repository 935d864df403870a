"""Schema of the columns of a table: kinds, families and levels, and the encoding of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from maxdisc.families import Bernoulli, Categorical, Family
from maxdisc.families.blocks import AnyFamily, Block, Columns, MixedMoments
from maxdisc.families.support import Support
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.numerics.block_matrix import Table
from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix, column_name
from maxdisc.rows.frames import EMPTY, WORD, Cells, Kinds, Levels, in_a_row


@dataclass(frozen=True, eq=False)
class Schema:
    """Kind and family of every column, and the levels of categories.

    In prediction, values outside the support of an automatically selected family count as missing.
    """

    kinds: Kinds  # (D,)
    families: Sequence[tuple[Family, Integers]]
    categories: Integers  # (n,)
    levels: Levels
    informative: Integers  # (m,)
    automatic: Integers  # (a,)

    @classmethod
    def of(
        cls,
        cells: Cells,
        families: Sequence[tuple[Family, Integers]],
        categories: Integers,
        informative: bool = False,
        automatic: Integers | None = None,
    ) -> Schema:
        """With the levels that some rows have, and the columns that they lack cells of, if that counts."""
        levels = Levels.of(cells.worded(categories), categories)
        lacking = np.flatnonzero(cells.missing().any(axis=0)) if informative else np.empty(0, dtype=np.intp)
        chosen = np.empty(0, dtype=np.intp) if automatic is None else automatic
        return cls(cells.kinds, families, categories, levels, lacking, chosen)

    @cached_property
    def columns(self) -> Columns:
        """The blocks of the matrices that :meth:`table` makes."""
        blocks = [Block(family, columns) for family, columns in self.families]
        if len(self.categories):
            blocks.append(Block(Categorical(), self.levels.columns))
        if len(self.informative):
            blocks.append(Block(Bernoulli(), self.informative))
        return Columns(blocks, len(self.kinds))

    @property
    def family(self) -> AnyFamily:
        """The one family of all columns, or the families of each."""
        return plain_family(self) or self.columns

    def example(self) -> Matrix:
        """Return a row such as :meth:`encoded` makes, of zeros."""
        if plain_family(self) is not None:
            return np.zeros((1, len(self.kinds)))
        blocks = self.columns.blocks
        return Table([np.zeros((1, len(block.columns))) for block in blocks], len(self.kinds))

    def encoded(
        self, cells: Cells, names: npt.ArrayLike | None = None, wanted: Integers | None = None
    ) -> Matrix:
        """Return some rows as :attr:`family` takes them: a table, or one matrix; see :meth:`table`."""
        table = self.table(cells, names, wanted)
        return table if plain_family(self) is None else table.parts[0]

    def table(
        self, cells: Cells, names: npt.ArrayLike | None = None, wanted: Integers | None = None
    ) -> Table:
        """Return the blocks of some rows; raise ``ValueError`` with the column if kinds differ.

        To predict, say which columns are wanted: levels are looked up for these alone, and numbers that an
        automatic family cannot have are missing.
        """
        self._require_kinds(cells, names)
        parts = [cells.numbers[:, in_a_row(columns)] for _, columns in self.families]
        if wanted is not None and len(self.automatic):
            checked = np.intersect1d(self.automatic, wanted)
            pairs = zip(self.families, parts, strict=True)
            parts = [_possible(family, part, np.isin(at, checked)) for (family, at), part in pairs]
        if len(self.categories):
            at = self.categories if wanted is None else np.intersect1d(self.categories, wanted)
            parts.append(self.levels.indicators(cells.worded(at), at)[0])
        if len(self.informative):
            parts.append(cells.missing()[:, self.informative].astype(np.float64))
        return Table(parts, len(self.kinds))

    def unseen(self, cells: Cells) -> Integers:
        """Return how many cells of each column have a level that no row of the fit had, shape (D,)."""
        out = np.zeros(len(self.kinds), dtype=np.intp)
        if len(self.categories):
            unseen = self.levels.indicators(cells.worded(self.categories), self.categories)[1]
            out[self.categories] = unseen.sum(axis=0)
        return out

    def _require_kinds(self, cells: Cells, names: npt.ArrayLike | None) -> None:
        known = (self.kinds != EMPTY) & (cells.kinds != EMPTY)
        other = known & ((self.kinds == WORD) != (cells.kinds == WORD))
        if not other.any():
            return
        column = int(np.argmax(other))
        where = column_name(column, names)
        if cells.kinds[column] == WORD:
            codes = cells.coded.codes[:, cells.at == column]
            shown = [f" such as {word!r}" for word in cells.coded.words[codes[codes >= 0][:1]]]
            raise ValueError(
                f"{where} held numbers when the model was fitted, and now text{''.join(shown)}: "
                "make it numbers."
            )
        raise ValueError(
            f"{where} held categories when the model was fitted, and now numbers: give it the type that it "
            "had then."
        )

    def extended(self, cells: Cells) -> Schema:
        """With the levels of more rows, too."""
        found = Levels.of(cells.worded(self.categories), self.categories)
        return replace(self, levels=self.levels.joined(found))

    def moved(self, moments: MixedMoments, before: Schema) -> MixedMoments:
        """Moments of an earlier schema among the levels of this one."""
        parts = list(moments.parts)
        if len(self.categories):
            place = len(self.families)
            old, block = parts[place], self.columns.blocks[place]
            sums = np.zeros((1, old.n_classes, len(self.levels.keys)))
            sums[:, :, self.levels.positions(before.levels)] = old.sums
            moved = ClassMoments(old.weight, sums, squares=old.squares)
            # An indicator is its own square.
            counts = sums[0].sum(axis=0)
            parts[place] = block.settled(replace(moved, nonzero=counts, squared=counts))
        return MixedMoments(parts, moments.n_features)

    def families_of_columns(self) -> list[tuple[Family, Integers]]:
        """Return each family with its columns, categories included, as a user sees them."""
        listed = list(self.families)
        return [*listed, (Categorical(), self.categories)] if len(self.categories) else listed

    def drawn(self, parts: Sequence[Floats]) -> npt.NDArray[np.object_]:
        """Return rows (N, D) from draws of each block: levels by name, None where missing."""
        out = np.full((len(parts[0]), len(self.kinds)), None, dtype=object)
        for (_, columns), values in zip(self.families, parts, strict=False):
            out[:, columns] = values
        place = len(self.families)
        if len(self.categories):
            block, noisy = self.columns.blocks[place], parts[place]
            highest = np.maximum.reduceat(noisy, block.starts, axis=1)[:, block.group]
            rows, cells = np.nonzero(noisy == highest)
            out[rows, block.columns[cells]] = self.levels.names[cells]
            place += 1
        if len(self.informative):
            rows, places = np.nonzero(parts[place])
            out[rows, self.informative[places]] = None
        return out


def _possible(family: Family, values: Floats, checked: Booleans) -> Floats:
    """Return numbers, NaN where an automatic family cannot have them."""
    if family.support == Support() or not checked.any():
        return values
    some = values if checked.all() else values[:, checked]
    outside = ~family.support.contains(some, family.integral) & ~np.isinf(some)
    if not outside.any():
        return values
    out, columns = values.copy(), np.flatnonzero(checked)
    rows, places = np.nonzero(outside)
    out[rows, columns[places]] = np.nan
    return out


def plain_family(schema: Schema) -> Family | None:
    """Return the one family of all columns, where numbers of one family are all there is; None otherwise."""
    alone = len(schema.families) == 1 and not len(schema.categories) and not len(schema.informative)
    # What an automatic family cannot have must be known as such.
    whole = alone and (not len(schema.automatic) or schema.families[0][0].support == Support())
    return schema.families[0][0] if whole else None


def require_finite(cells: Cells, names: npt.ArrayLike | None) -> None:
    """Raise ``ValueError``, naming the column, for numbers that are infinite."""
    infinite = np.isinf(cells.numbers)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise ValueError(
            f"{column_name(int(column), names)} has {cells.numbers[row, column]} in row {row}: use finite "
            "numbers, or leave the cell empty (Input X contains infinity)."
        )


def require_some_cells(empty: Booleans, names: npt.ArrayLike | None) -> None:
    """Raise ``ValueError``, naming the first, for columns (D,) without a cell."""
    if empty.any():
        more = int(empty.sum()) - 1
        others = f" (and {more} more)" if more else ""
        where = column_name(int(np.argmax(empty)), names)
        raise ValueError(f"all cells of {where} are missing{others}: drop the column.")


def first_unobserved(cells: Cells, codes: Integers, n_classes: int) -> tuple[int, int, int] | None:
    """Return the first class and column without a common cell, and the number of such pairs."""
    missing = cells.missing()
    if not missing.any():
        return None
    members = np.zeros((n_classes, len(codes)))
    members[codes, np.arange(len(codes))] = 1.0
    none = (members @ ~missing == 0) & (members.sum(axis=1) > 0)[:, None]
    if not none.any():
        return None
    label, column = np.argwhere(none)[0]
    return int(label), int(column), int(none.sum())
