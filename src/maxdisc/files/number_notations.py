"""Notations of numbers: decimal commas, thousands, percent, currency, accountants' parentheses."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from maxdisc.files.cells import without_missing

DECIMALS = {".": "decimal point", ",": "decimal comma"}
_SPACES = " \u00a0\u2009\u202f"
_CODES = "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|RUB|SEK|TRY|USD|ZAR"
_UNIT = rf"%|R\$|US\$|[$€£¥₹₩₽₺₴₪฿₫₦₱₡₲₵¢]|zł|kr\.?|{_CODES}"
# Thousands may be grouped by points or commas, spaces, or apostrophes, straight or curly.
_APOSTROPHES = "'\u2019"
_GROUPS = {
    mark: rf"(?:{dot}\d{{3}})+|(?:[{_SPACES}]\d{{3}})+|(?:[{_APOSTROPHES}]\d{{3}})+"
    for mark, dot in ((".", ","), (",", r"\."))
}
_NUMBERS = {
    mark: rf"^[-+]?(?:(?:\d+|[1-9]\d{{0,2}}(?:{_GROUPS[mark]}))(?:{dot}{after})?|{dot}\d+)(?:[eE][-+]?\d+)?$"
    for mark, dot, after in ((".", r"\.", r"\d*"), (",", ",", r"\d+"))
}
_MARKS = {".": f"[,{_APOSTROPHES}{_SPACES}]", ",": f"[.{_APOSTROPHES}{_SPACES}]"}


def describe_number(notation: str) -> str:
    """Return what cells in this notation are: the decimal mark, followed by the unit if there is one."""
    decimal, unit = notation[:1], notation[1:]
    kind = " in percent" if unit == "%" else f" in {unit}" if unit else ""
    return f"{kind} with {DECIMALS[decimal]}"


def unit_of(text: pa.Array) -> str:
    """Return the percent sign or the currency of the first cell that has one."""
    units = pc.struct_field(pc.extract_regex(text, f"(?P<unit>{_UNIT})"), "unit").drop_null()
    return str(units[0]) if len(units) else ""


def parse_numbers(text: pa.Array, decimal: str, unit: str = "") -> tuple[pa.Array, pa.Array]:
    """Return cells as float64, null where none is; and which are numbers, null where missing."""
    words = without_missing(text)
    words = pc.replace_substring(words, "\u2212", "-")
    # Accountants write what is negative in parentheses.
    words = pc.replace_substring_regex(words, r"^\((.*)\)$", r"-\1")
    if unit:
        mark = unit.replace("$", r"\$").replace(".", r"\.")
        bare = pc.replace_substring_regex(words, rf"[{_SPACES}]*{mark}$", "")
        if unit == "%":
            # A share and a percentage are not the same: the sign is in each cell or in none.
            bare = pc.if_else(pc.equal(bare, words), "", bare)
        else:
            bare = pc.replace_substring_regex(bare, rf"^([-+]?){mark}[{_SPACES}]*", r"\1")
        words = bare
    good = pc.match_substring_regex(words, _NUMBERS[decimal])
    words = pc.if_else(good, words, pa.scalar(None, pa.string()))
    words = pc.replace_substring_regex(words, _MARKS[decimal], "")
    words = pc.replace_substring_regex(words, r"^\+", "")
    values = pc.replace_substring(words, ",", ".").cast(pa.float64())
    return pc.divide(values, 100.0) if unit == "%" else values, good


def without_unit(text: pa.Array) -> pa.Array:
    """Return cells without percent signs and currencies."""
    return pc.replace_substring_regex(text, rf"[{_SPACES}]*(?:{_UNIT})[{_SPACES}]*", "")
