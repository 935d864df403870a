"""Numbers and dates as people write them are read as what they were, and again from the model file."""

from __future__ import annotations

import datetime
import string

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maxdisc.files import Batch, Dataset, Reading, SourceError, guess_roles, sources, summary, with_decimal
from maxdisc.files.naming import name_columns
from maxdisc.files.reading_guesses import guess_readings

#: How numbers are grouped and what their decimal mark is.
WAYS = [(",", "."), (".", ","), (" ", ","), ("\u00a0", "."), ("\u202f", ","), ("'", "."), ("’", ".")]  # noqa: RUF001
UNITS = ["{}", "{}%", "{} %", "${}", "{} €", "EUR {}", "{} kr"]


def readings_of(decimal=None, dates=None, **columns):
    table = pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})
    return guess_readings(table, str, (), decimal, dates)


def values(reading, cells):
    return reading.numbers(pa.array(cells), "row {}".format).to_pylist()


@given(
    st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=20),
    st.integers(0, 4),
    st.sampled_from(WAYS),
    st.sampled_from(UNITS),
)
def test_numbers_are_read_as_they_were_written(whole, digits, way, unit):
    group, mark = way
    numbers = [number / 10**digits for number in whole]
    swap = str.maketrans({",": group, ".": mark})
    cells = [unit.format(f"{number:,.{digits}f}".translate(swap)) for number in numbers]
    cells.append("N/A")
    found = readings_of(mark, x=cells).get("x", Reading(("x",), "number", mark))
    scale = 100 if "%" in unit else 1
    expected = [float(f"{number:.{digits}f}") / scale for number in numbers]
    assert values(found, cells) == [*expected, None]
    # What a model file keeps is the same reading.
    assert Reading.of(found.stored(), "x") == found


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=20), st.sampled_from(WAYS))
def test_a_number_is_never_taken_for_another(numbers, way):
    """Without options a column is read as it was meant, or it is said to be unclear."""
    group, mark = way
    cells = [f"{number / 100:,.2f}".translate(str.maketrans({",": group, ".": mark})) for number in numbers]
    assume(any(len(cell) > 3 for cell in cells))
    reading = readings_of(x=cells).get("x", Reading(("x",), "number", "."))
    assert values(reading, cells) == [float(f"{number / 100:.2f}") for number in numbers]


def test_thousands_alone_are_unclear_unless_other_columns_tell():
    cells = ["1,234", "12", "1,999"]
    assert readings_of(x=cells)["x"].what == "unclear"
    assert values(readings_of(x=cells, z=["0.5", "1", ""])["x"], cells) == [1234, 12, 1999]
    assert values(readings_of(x=cells, z=["0,5", "1", ""])["x"], cells) == [1.234, 12, 1.999]
    assert readings_of(x=cells, z=["0,5", "1", ""], w=["0.5", "1", ""])["x"].what == "unclear"
    for mark, first in ((".", 1234), (",", 1.234)):
        assert values(readings_of(mark, x=cells)["x"], cells)[0] == first


def test_plain_numbers_stay_as_they_are():
    assert readings_of(x=["1.5", "2"], z=["1.234", "5.678"], w=["true", "no words"]) == {}
    # But not beside decimal commas, where points group thousands.
    assert values(readings_of(x=["1,5", "2"], z=["1.234", "5.678"])["z"], ["1.234"]) == [1234]
    assert "z" not in readings_of(x=["1,5", "2"], z=["1.234", "0.678"])


@pytest.mark.parametrize(
    "cells",
    [["1,5", "2.5"], ["$1", "€2"], ["1 %", "2"], ["2024-01-31", "31.01.2024"], ["31/12/2024", "12/31/2024"]],
)
def test_several_ways_are_said_to_be(cells):
    reading = readings_of(x=cells * 3)["x"]
    assert reading.what == "unclear"
    assert repr(cells[0]) in reading.notation
    assert repr(cells[1]) in reading.notation
    with pytest.raises(SourceError, match=r"column 'x': it holds .* written in several ways"):
        values(reading, cells)


@pytest.mark.parametrize(
    "cells", [["1.2.3", "4.5.6"], ["12:30", "13:00"], ["x1", "x2"], ["1 2", "3 4"], ["", "NA"]]
)
def test_other_columns_are_not_read(cells):
    assert readings_of(x=cells) == {}


FORMATS = {
    "ymd": ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y/%m/%d %H:%M", "%Y-%m-%d %H:%M:%S.%f+02:00"],
    "dmy": ["%d.%m.%Y", "%d/%m/%Y %H:%M", "%d-%m-%Y", "%d %b %Y", "%a, %d %B %Y %H:%M:%S"],
    "mdy": ["%m/%d/%Y", "%m/%d/%Y %I:%M %p", "%m-%d-%Y", "%b %d, %Y", "%B %d %Y, %H:%M"],
}
MOMENTS = st.datetimes(datetime.datetime(1000, 1, 1), datetime.datetime(2999, 1, 1))


@given(st.data(), st.lists(MOMENTS, min_size=1, max_size=10))
def test_dates_are_taken_apart_as_python_does(data, moments):
    order = data.draw(st.sampled_from(list(FORMATS)))
    form = data.draw(st.sampled_from(FORMATS[order]))
    cells = [moment.strftime(form) for moment in moments]
    # strptime gives back what the format keeps of a moment.
    kept = [datetime.datetime.strptime(cell, form).replace(tzinfo=None, microsecond=0) for cell in cells]
    found = readings_of(dates=order, d=[*cells, "?"])
    epoch = datetime.datetime(1970, 1, 1)
    for part, expected in {
        "year": [k.year for k in kept],
        "month": [k.month for k in kept],
        "weekday": [k.isoweekday() for k in kept],
        "hour": [k.hour for k in kept],
        "days": [(k - epoch) / datetime.timedelta(days=1) for k in kept],
    }.items():
        if part == "hour" and "hour" not in {reading.what for reading in found.values()}:
            assert {(k.hour, k.minute, k.second) for k in kept} == {(0, 0, 0)}
            continue
        got = values(found[f"d {part}"], [*cells, "?"])
        assert got[-1] is None
        assert np.allclose(got[:-1], expected, rtol=0, atol=1e-9)


@given(st.lists(st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)), min_size=1, max_size=5))
def test_days_are_never_taken_for_months(days):
    cells = [f"{day:%d/%m/%Y}" for day in days]
    found = readings_of(d=cells)
    if all(day.day <= 12 for day in days) and any(day.day != day.month for day in days):
        assert [reading.what for reading in found.values()] == ["unclear"]
        assert "--dates dmy or --dates mdy" in found["d"].notation
    else:
        assert values(found["d month"], cells) == [day.month for day in days]


def test_typed_dates_and_text_give_the_same_features():
    moments = [datetime.datetime(1969, 7, 20, 20, 17), datetime.datetime(2024, 2, 29), None]
    typed = pa.table({"d": pa.array(moments, pa.timestamp("us"))})
    found = guess_readings(typed, str)
    text = [None if m is None else m.isoformat(" ") for m in moments]
    assert list(found) == ["d year", "d month", "d weekday", "d hour", "d days"]
    for name, reading in found.items():
        assert reading == readings_of(d=text)[name]
        assert reading.numbers(typed["d"], str).to_pylist() == values(reading, text)
    assert summary(found) == "d: dates (year, month, weekday, hour, days)"


def test_a_date_that_is_none_and_a_number_that_is_none_are_named_with_their_row():
    dates, numbers = readings_of(d=["31.01.2024"], x=["1,5"])["d days"], Reading(("x",), "number", ",%")
    with pytest.raises(
        SourceError, match=r"row 1, column 'd': '30.02.2024' is not a date \(day/month/year\)"
    ):
        values(dates, ["31.01.2024", "30.02.2024"])
    with pytest.raises(
        SourceError, match="row 0, column 'x': '1,5' is not a number in percent with decimal comma"
    ):
        values(numbers, ["1,5", "1,5 %"])


def test_a_few_wrong_cells_are_named_and_do_not_lose_the_column():
    cells = [*["1,5"] * 19, "oops"]
    with pytest.raises(SourceError, match="row 19, column 'x': 'oops' is not a number with decimal comma"):
        values(readings_of(x=cells)["x"], cells)


def test_a_decimal_mark_that_is_asked_for_replaces_the_kept_one():
    kept = readings_of(x=["1,5 %"], d=["2024-01-31"])
    other = with_decimal(".", ["x", "z", "d days"], kept)
    assert values(other["x"], ["1.5 %"]) == [0.015]
    assert values(other["z"], ["1,000.5"]) == [1000.5]
    assert other["d days"] == kept["d days"]


def test_a_reading_of_a_later_version_is_refused():
    with pytest.raises(SourceError, match=r"the model reads 'x' as roman '', which .* upgrade maxdisc"):
        Reading.of([["x"], "roman", ""], "x")


def test_roles_of_columns_that_are_read():
    days = [f"{day}.01.2024" for day in range(10, 30)]
    cells = {"when": days, "price": [f"{i},5 €" for i in range(20)], "y": ["a", "b"] * 10}
    first = Batch(pa.table(cells), "t.csv", 1)
    roles = guess_roles(first)
    assert roles.label == "y"
    assert roles.features == ("when year", "when month", "when weekday", "when days", "price")
    assert sources(roles.features, roles.readings) == ["when", "price"]
    assert guess_roles(first, exclude=["when"]).features == ("price",)
    assert guess_roles(first, exclude=["* year", "price"]).features == (
        "when month",
        "when weekday",
        "when days",
    )
    assert guess_roles(first, features=["when"]).features == roles.features[:-1]
    assert guess_roles(first, features=["when days,price"]).features == ("when days", "price")
    as_words = guess_roles(first, categorical=["price"])
    assert "price" in as_words.categories
    assert "price" not in as_words.readings
    assert guess_roles(first, label="price").features == (*roles.features[:-1], "y")


def test_texts_of_several_columns_are_joined():
    first = Batch(pa.table({"title": ["one", None], "body": ["two", "three"], "y": ["a", "b"]}), "t.csv", 1)
    roles = guess_roles(first, text=["title", "body"])
    assert roles.text == "title + body"
    batch = Batch(first.table, "t.csv", 1, readings=roles.readings)
    assert batch.texts(roles.text) == ["one\ntwo", "three"]


class TestNames:
    def names(self, text, header=None):
        rows = [line.split(",") for line in text.split()]
        return name_columns(rows[0], rows[1:], header, "t.csv")

    @pytest.mark.parametrize(
        "text",
        [
            "5.1,3,a 4.9,2,b 4.7,3,a",
            "red,big red,big",
            "1,2 3,4",
            "2024-01-31,$5 2024-02-01,$6",
            "1,,a 2,3,a",
        ],
    )
    def test_values_are_no_names(self, text):
        names, named, notes = self.names(text)
        assert names == [f"c{i}" for i in range(len(names))]
        assert not named
        assert "--header" in notes[0]
        assert self.names(text, header=True)[1]

    @pytest.mark.parametrize(
        "text", ["x,y 1,a", "0,1,2 5,6,7", "1,2,3,y 5,6,7,a", "2019,2020,y 1,2,a", ",0,1 0,5,6", "x x"]
    )
    def test_names_are_names(self, text):
        names, named, _ = self.names(text)
        assert named or text == "x x"
        if named:
            assert len(names) == len(text.split()[0].split(","))
        assert self.names(text, header=False)[1] is False

    def test_what_may_be_either_is_said(self):
        assert "'a'; if it holds values, say --no-header" in " ".join(self.names("doc,a text,b more,a")[2])
        assert self.names("x,y 1,a 2,b")[2] == ()

    def test_a_file_with_these_names_keeps_them(self):
        assert self.names("c0,c1 1,a", header=False) == (["c0", "c1"], True, ())


@given(
    st.lists(st.text(string.ascii_letters + string.digits + " .,-/%$€", max_size=8), min_size=1, max_size=30)
)
def test_any_column_is_read_or_left_alone(cells):
    """Cells are read as text, or all of them as numbers, or refused in one line: nothing else."""
    for reading in readings_of(x=cells).values():
        try:
            got = values(reading, cells)
        except SourceError as error:
            assert "\n" not in str(error)
        else:
            assert len(got) == len(cells)


def test_a_file_of_a_model_without_names_is_read_without(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1.5,a\n2.5,b\n3.5,a\n")
    data = Dataset([str(path)])
    (batch,) = data.batches()
    assert data.header is False
    assert batch.labels("c1").tolist() == ["a", "b", "a"]
    again = Dataset([str(path)], **data.options)
    assert again.names == ["c0", "c1"]
    assert again.notes == ()
