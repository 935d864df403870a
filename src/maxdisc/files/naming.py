"""Names of the columns of a table of text: its first row, or c0, c1, ... if that holds values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from maxdisc.files.cells import shown
from maxdisc.files.reading_guesses import look_like_values

# Names are not so long.
_LONG_NAME = 60
_SHOWN = 3


def name_columns(
    cells: Sequence[str], below: Sequence[Sequence[str]], header: bool | None, source: str
) -> tuple[list[str], bool, tuple[str, ...]]:
    """Return the names of the columns, whether the first row holds them, and a note if one cannot be sure.

    Without ``header`` the first row is taken for values if each of its cells is a number or a date, or comes
    again below.
    """
    spelled = [" ".join(cell.split()) for cell in cells]
    usual = [f"c{i}" for i in range(len(cells))]
    if header is False:
        # A file that was written with these names is read with them.
        return usual, spelled == usual, ()
    named = [name or f"column {i}" for i, name in enumerate(spelled, 1)]
    if header:
        return named, True, ()
    filled = [(i, cell) for i, cell in enumerate(spelled) if cell]
    written = dict(zip([i for i, _ in filled], look_like_values([cell for _, cell in filled]), strict=True))
    values = [cell for i, cell in filled if written[i] or _comes_again(cell, i, below)]
    counted = [str(i) for i in range(len(filled))]
    if len(values) == len(filled) > 0 and [cell for _, cell in filled] != counted:
        note = (
            f"{source}: the first row holds values, so the columns are named {', '.join(usual[:_SHOWN])}"
            f"{', ...' if len(usual) > _SHOWN else ''}; if it holds names, say --header"
        )
        return usual, False, (note,)
    doubtful = [cell for i, cell in filled if not written[i] and cell in values]
    doubtful += [cell for cell in spelled if len(cell) > _LONG_NAME]
    # Years and wave lengths name columns, and so do the numbers that pandas gives to columns without names.
    doubtful += values if 2 * len(values) > len(filled) and not _rise(values[:-1]) else []
    if not doubtful:
        return named, True, ()
    told = f"{source}: the first row is taken for names, such as {shown(doubtful[0])}"
    return named, True, (f"{told}; if it holds values, say --no-header",)


def _comes_again(cell: str, column: int, below: Sequence[Sequence[str]]) -> bool:
    return any(column < len(row) and row[column].strip() == cell for row in below)


def _rise(cells: Sequence[str]) -> bool:
    """Return whether cells are numbers that rise from left to right."""
    try:
        return all(a < b for a, b in pairwise(float(cell) for cell in cells))
    except ValueError:
        return False
