"""Excel and OpenDocument sheets: one sheet of a workbook as a table.

python-calamine reads them: it is released several times a year, and many times faster than openpyxl.
"""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from maxdisc.files.batches import Opened
from maxdisc.files.byte_streams import Stream
from maxdisc.files.naming import name_columns
from maxdisc.files.places import SourceError
from maxdisc.files.roles import nearest
from maxdisc.numerics.installation import pip_line

try:
    import python_calamine as calamine
except ImportError as error:
    raise ImportError(f"Excel files need python-calamine: {pip_line('excel')}") from error

_ROWS = 2**14
# Maximum number of rows (a title, a date, blank rows) above the header; ...
_ABOVE = 20
# ... and number of rows below from which it is guessed whether the first row holds values.
_LOOK = 1000
_MOMENTS = (datetime.datetime, datetime.date)


def open_excel(
    stream: Stream,
    columns: Collection[str] | None = None,
    sheet: str | None = None,
    header: bool | None = None,
) -> Opened:
    """Open one sheet of a workbook: the first that is visible, or the one of this name or number."""
    workbook = _workbook(stream)
    chosen, note = _sheet(workbook, sheet, stream.name)
    where = f"{stream.name}, sheet {chosen.name!r}"
    rows = [row for row in chosen.to_python() if any(cell != "" for cell in row)]
    if not rows:
        raise SourceError(f"{where} is empty.")
    above = 0 if header is False else _titles_above(rows)
    first, below = rows[above], rows[above + 1 :]
    _require_single_cells(chosen, first, where)
    written = [[_written(cell) or "" for cell in row] for row in [first, *below[:_LOOK]]]
    names, named, notes = name_columns(written[0], written[1:], header, where)
    rows = below if named else rows[above:]
    if above:
        notes = (f"{where}: {above} row{'s' if above > 1 else ''} above the names left out", *notes)
    cells = {
        i: [row[i] for row in rows] for i, name in enumerate(names) if columns is None or name in columns
    }
    for i, column in cells.items():
        if rows and first[i] != "" and all(cell == "" for cell in column) and _has_formulas(stream):
            raise SourceError(
                f"{where}: column {names[i]!r} holds formulas without values: open it in Excel and save it "
                "there."
            )
    arrays = [_array(column) for column in cells.values()]
    table = pa.Table.from_arrays(arrays, names=[names[i] for i in cells])
    return Opened(names, _tables(table), len(rows), named=named, notes=(*note, *notes))


def _workbook(stream: Stream) -> Any:
    try:
        return calamine.CalamineWorkbook.from_filelike(stream.seekable())
    except calamine.PasswordError:
        raise SourceError(f"{stream.name} is protected by a password: save it without one.") from None
    except calamine.CalamineError as error:
        told = " ".join(str(error).split())[:200].rstrip(".")
        raise SourceError(f"{stream.name} is not a whole Excel file: {told}.") from None


def _sheet(workbook: Any, asked: str | None, source: str) -> tuple[Any, tuple[str, ...]]:
    """Return a sheet, and a note if there are others and none was selected."""
    names = workbook.sheet_names
    if asked is not None and asked not in names:
        if not asked.isdecimal() or not 1 <= int(asked) <= len(names):
            raise SourceError(f"{source} has no sheet {asked!r}{nearest(asked, names)}")
        return workbook.get_sheet_by_index(int(asked) - 1), ()
    if asked is not None:
        return workbook.get_sheet_by_name(asked), ()
    visible = [
        sheet.name
        for sheet in workbook.sheets_metadata
        if sheet.visible == calamine.SheetVisibleEnum.Visible
        and sheet.typ == calamine.SheetTypeEnum.WorkSheet
    ]
    chosen = (visible or names)[0]
    others = [name for name in names if name != chosen]
    note = f"{source}: sheet {chosen!r} read, not {', '.join(map(repr, others[:3]))}; change with --sheet"
    return workbook.get_sheet_by_name(chosen), (note,) if others else ()


def _titles_above(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many rows come before the first of which half of the cells are filled."""
    for number, row in enumerate(rows[:_ABOVE]):
        if 2 * sum(cell != "" for cell in row) >= len(row):
            return number
    return 0


def _require_single_cells(sheet: Any, names: Sequence[Any], where: str) -> None:
    """Raise ``SourceError`` if a cell of the row of names goes over several columns."""
    start = sheet.start[1] if sheet.start else 0
    for (top, left), (bottom, right) in sheet.merged_cell_ranges or ():
        within = names[max(left - start, 0) : right - start + 1]
        if right > left and top == bottom and within and within[0] != "" and not any(within[1:]):
            raise SourceError(
                f"{where}: the name {within[0]!r} goes over {right - left + 1} columns: give each column its "
                "own name."
            )


def _has_formulas(stream: Stream) -> bool:
    try:
        with zipfile.ZipFile(stream.seekable()) as archive:
            return any(b"<f>" in archive.read(n) for n in archive.namelist() if "worksheets/sheet" in n)
    except (zipfile.BadZipFile, OSError):
        return False


def _array(cells: Sequence[Any]) -> pa.Array:
    """Return cells of one type as they are; else as text, in which whole numbers have no fraction."""
    there = [None if cell == "" else cell for cell in cells]
    kinds = {type(cell) for cell in there if cell is not None}
    if kinds <= {int, float}:
        whole = all(cell is None or (float(cell).is_integer() and abs(cell) < 2**53) for cell in there)
        return pa.array(there, pa.float64()).cast(pa.int64()) if whole else pa.array(there, pa.float64())
    if kinds <= {bool}:
        return pa.array(there, pa.bool_())
    if kinds <= set(_MOMENTS):
        midnight = datetime.time()
        moments = [
            cell
            if cell is None or isinstance(cell, datetime.datetime)
            else datetime.datetime.combine(cell, midnight)
            for cell in there
        ]
        return pa.array(moments, pa.timestamp("s"))
    return pa.array([_written(cell) for cell in cells], pa.string())


def _written(cell: Any) -> str | None:
    if cell == "":
        return None
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        return cell.isoformat()
    return str(cell)


def _tables(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, _ROWS):
        yield table.slice(start, _ROWS)
