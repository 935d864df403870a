"""Workbooks as Excel writes them, as far as tests need them."""

from __future__ import annotations

import datetime
import zipfile
from xml.sax.saxutils import escape

_OPEN = '<?xml version="1.0" encoding="UTF-8"?>'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_KIND = "application/vnd.openxmlformats-package.relationships+xml"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def write_workbook(path, sheets, merged=""):
    """Write rows by sheet; a cell that begins with "=" is a formula, ("=...", value) one with its value."""
    numbers = range(1, len(sheets) + 1)
    with zipfile.ZipFile(path, "w") as file:
        kinds = "".join(
            f'<Override PartName="/xl/worksheets/sheet{n}.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
            for n in numbers
        )
        file.writestr(
            "[Content_Types].xml",
            f'{_OPEN}<Types xmlns="{_PACKAGE}/content-types">'
            f'<Default Extension="rels" ContentType="{_KIND}"/>'
            '<Override PartName="/xl/workbook.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
            '<Override PartName="/xl/styles.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>'
            f"{kinds}</Types>",
        )
        file.writestr("_rels/.rels", _relations([("rId1", "officeDocument", "xl/workbook.xml")]))
        named = "".join(
            f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>'
            for n, name in zip(numbers, sheets, strict=True)
        )
        file.writestr(
            "xl/workbook.xml",
            f'{_OPEN}<workbook xmlns="{_MAIN}" xmlns:r="{_REL}"><sheets>{named}</sheets></workbook>',
        )
        parts = [(f"rId{n}", "worksheet", f"worksheets/sheet{n}.xml") for n in numbers]
        file.writestr("xl/_rels/workbook.xml.rels", _relations([*parts, ("rId99", "styles", "styles.xml")]))
        # Style 1 is that of dates.
        file.writestr(
            "xl/styles.xml",
            f'{_OPEN}<styleSheet xmlns="{_MAIN}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/>'
            "</cellXfs></styleSheet>",
        )
        for n, rows in zip(numbers, sheets.values(), strict=True):
            cells = "".join(_row(at, row) for at, row in enumerate(rows, 1))
            merge = f'<mergeCells count="1"><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
            file.writestr(
                f"xl/worksheets/sheet{n}.xml",
                f'{_OPEN}<worksheet xmlns="{_MAIN}"><sheetData>{cells}</sheetData>{merge}</worksheet>',
            )
    return path


def _relations(parts):
    inside = "".join(f'<Relationship Id="{i}" Type="{_REL}/{kind}" Target="{to}"/>' for i, kind, to in parts)
    return f'{_OPEN}<Relationships xmlns="{_PACKAGE}/relationships">{inside}</Relationships>'


def _row(number, row):
    cells = (_cell(f"{chr(ord('A') + at)}{number}", value) for at, value in enumerate(row))
    return f'<row r="{number}">{"".join(cells)}</row>'


def _cell(place, value):
    if value is None:
        return ""
    if isinstance(value, tuple):
        return f'<c r="{place}"><f>{escape(value[0][1:])}</f><v>{value[1]}</v></c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{place}"><v>{value}</v></c>'
    if isinstance(value, datetime.datetime):
        days = (value - datetime.datetime(1899, 12, 30)) / datetime.timedelta(days=1)
        return f'<c r="{place}" s="1"><v>{days}</v></c>'
    if value.startswith("="):
        return f'<c r="{place}"><f>{escape(value[1:])}</f></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
