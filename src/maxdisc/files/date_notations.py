"""Notations of dates, and the features of a date."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from maxdisc.files.cells import without_missing

#: The features that a date is taken apart into; days are since 1970, and an hour has no fraction.
DATE_PARTS = ("year", "month", "weekday", "hour", "days")
_TIME = (
    r"(?:(?:T|,? +)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
    r" ?(?P<half>[AaPp]\.?[Mm]\.?)?)? ?(?:Z|UTC|GMT|[-+]\d{2}:?\d{2})?$"
)
_YEAR, _MONTH, _DAY = r"(?P<year>\d{4})", r"(?P<month>@?\d{1,2})", r"(?P<day>\d{1,2})"
_DATES = {
    "ymd": rf"^{_YEAR}[-/.]{_MONTH}[-/.]{_DAY}{_TIME}",
    "dmy": rf"^{_DAY}(?:[-/.]|\.? +){_MONTH}(?:[-/.]|,? +){_YEAR}{_TIME}",
    # A date with points has the day first.
    "mdy": rf"^{_MONTH}(?:[-/]| +){_DAY}(?:[-/]|,? +){_YEAR}{_TIME}",
}
#: The orders of a date, and how they are told.
ORDERS = {"ymd": "year-month-day", "dmy": "day/month/year", "mdy": "month/day/year"}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

Moments = npt.NDArray[np.datetime64]


def parse_dates(text: pa.Array, order: str) -> tuple[Moments, pa.Array]:
    """Return cells as datetime64[s], NaT where none is; and which are dates, null where missing."""
    words = without_missing(text)
    missing = np.asarray(words.is_null())
    if pc.any(pc.match_substring_regex(words, "(?i)[a-z]{3}")).as_py():
        words = _months_as_numbers(words)
    found = pc.extract_regex(words, _DATES[order])

    def field(name: str) -> npt.NDArray[np.int64]:
        digits = pc.replace_substring(pc.struct_field(found, name), "@", "")
        there = pc.if_else(pc.equal(digits, ""), pa.scalar(None, pa.string()), digits)
        return np.asarray(pc.fill_null(there.cast(pa.int64()), 0))

    matched = np.asarray(found.is_valid())
    year, month, day, hour = (field(name) for name in ("year", "month", "day", "hour"))
    half = np.asarray(
        pc.fill_null(pc.utf8_lower(pc.utf8_slice_codeunits(pc.struct_field(found, "half"), 0, 1)), "")
    )
    hour = np.where(half == "p", hour % 12 + 12, np.where(half == "a", hour % 12, hour))
    minute, second = field("minute"), field("second")
    first = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    days = first.astype("datetime64[D]") + (day - 1).astype("timedelta64[D]")
    good = matched & (month >= 1) & (month <= 12) & (day >= 1) & (days.astype("datetime64[M]") == first)
    good &= (hour < 24) & (minute < 60) & (second <= 60)
    seconds = days.astype("datetime64[s]") + (3600 * hour + 60 * minute + second).astype("timedelta64[s]")
    seconds[~good] = np.datetime64("NaT", "s")
    return seconds, pa.array(good, mask=missing)


def _months_as_numbers(words: pa.Array) -> pa.Array:
    """Write English names of months as numbers, with a mark that no day has, and drop those of weekdays."""
    words = pc.replace_substring_regex(words, r"(?i)^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? +", "")
    for number, month in enumerate(_MONTHS, 1):
        words = pc.replace_substring_regex(words, rf"(?i)\b{month}[a-z]*\.?", f"@{number}")
    return words


def is_moments(kind: pa.DataType) -> bool:
    """Return whether cells of this type are dates."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def moments_of(array: pa.Array) -> Moments:
    """Return typed dates as datetime64[s], of a time zone as it was on the wall."""
    if pa.types.is_timestamp(array.type) and array.type.tz is not None:
        array = pc.local_timestamp(array)
    return np.asarray(array.cast(pa.timestamp("s"), safe=False)).astype("datetime64[s]")


def part_of(moments: Moments, part: str) -> pa.Array:
    """Return a part of dates as numbers, null where one is missing."""
    days = moments.astype("datetime64[D]")
    seconds = (moments - days.astype("datetime64[s]")).astype(np.int64)
    months = moments.astype("datetime64[M]").astype(np.int64)
    values: npt.NDArray[Any]
    if part == "year":
        values = months // 12 + 1970
    elif part == "month":
        values = months % 12 + 1
    elif part == "weekday":
        # 1970 began with a Thursday; Monday is 1.
        values = (days.astype(np.int64) + 3) % 7 + 1
    elif part == "hour":
        values = seconds // 3600
    else:
        values = days.astype(np.int64) + seconds / 86400
    return pa.array(values.astype(np.float64), mask=np.isnat(moments))


def parts_that_tell(moments: Moments) -> list[str]:
    """Return the parts of dates, without the hour if they have no time."""
    there = moments[~np.isnat(moments)]
    has_time = bool((there != there.astype("datetime64[D]")).any())
    return [part for part in DATE_PARTS if part != "hour" or has_time]
