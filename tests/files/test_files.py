"""Reading files: the same rows from every format, and one line for everything that is wrong with them."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import math
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxdisc.files import Batch, Dataset, SourceError, guess_roles, joined, matching, open_sink
from maxdisc.files.sinks import format_to_write
from maxdisc.testing import batches_of

ROWS = [
    {"body": "the first, with a comma", "kind": "ham", "size": "3"},
    {"body": 'a "quoted" word\nand a second line', "kind": "spam", "size": "4.5"},
    {"body": "smörgåsbord 🎉", "kind": "ham", "size": "-1e-3"},
]


def gzipped(data):
    # Without the time: tests that run side by side must be called the same.
    return gzip.compress(data, mtime=0)


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


def as_csv(rows, delimiter=",", end="\n"):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator=end)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def everything(*arguments, columns=None, **options):
    data = Dataset([str(a) for a in arguments], **options)
    return [
        dict(zip(batch.table.column_names, row, strict=True))
        for batch in data.batches(columns)
        for row in zip(*[batch.strings(name) for name in batch.table.column_names], strict=True)
    ]


def parquet(path, rows):
    pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    return str(path)


class TestFormats:
    @pytest.mark.parametrize(
        ("name", "data"),
        [
            ("a.csv", as_csv(ROWS)),
            ("crlf.csv", as_csv(ROWS, end="\r\n")),
            ("bom.csv", "\ufeff" + as_csv(ROWS)),
            ("semicolon.csv", as_csv(ROWS, delimiter=";").replace("first,", "first,")),
            ("a.tsv", as_csv(ROWS, delimiter="\t")),
            ("a.jsonl", "\n".join(json.dumps(row) for row in ROWS) + "\n\n"),
            ("a.csv.gz", gzipped(as_csv(ROWS).encode())),
            ("a.csv.bz2", bz2.compress(as_csv(ROWS).encode())),
            ("noname", as_csv(ROWS)),
            ("noname.json", "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)),
            ("spaces.csv", as_csv(ROWS).replace("body,kind,size", " body , kind,size")),
        ],
    )
    def test_every_format_gives_the_same_rows(self, tmp_path, name, data):
        assert everything(write(tmp_path / name, data)) == ROWS

    def test_parquet_with_categories_and_types(self, tmp_path):
        table = pa.table(
            {
                "kind": pa.array(["a", None, "b"]).dictionary_encode(),
                "whole": pa.array([1.0, None, 3.0]),
                "yes": [True, False, None],
                "many": pa.array([2**40, 0, -1]),
            }
        )
        path = tmp_path / "t.parquet"
        pyarrow.parquet.write_table(table, path)
        (batch,) = Dataset([str(path)]).batches()
        assert batch.labels("kind").tolist() == ["a", None, "b"]
        assert batch.labels("whole").tolist() == ["1.0", None, "3.0"]
        assert batch.labels("yes").tolist() == ["True", "False", None]
        numbers = batch.numbers(["whole", "yes", "many"])
        assert numbers["yes"].to_pylist() == [1.0, 0.0, None]
        assert numbers["many"].to_pylist() == [2.0**40, 0.0, -1.0]
        assert math.isnan(np.asarray(numbers["whole"])[1])

    def test_other_encodings(self, tmp_path):
        for encoding in ("latin-1", "utf-16", "cp1252"):
            path = write(tmp_path / f"{encoding}.csv", "body,kind\ncafé,x\n".encode(encoding))
            assert everything(path, encoding=encoding) == [{"body": "café", "kind": "x"}]

    def test_folders_are_labels_and_files_are_sorted(self, tmp_path):
        for name in ("spam/10", "spam/9.txt", "ham/deep/er/1.txt", "ham/a b.txt", "ham/.hidden"):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        rows = everything(tmp_path)
        assert [row["label"] for row in rows] == ["ham", "ham", "spam", "spam"]
        assert [row["text"] for row in rows] == ["ham/a b.txt", "ham/deep/er/1.txt", "spam/10", "spam/9.txt"]
        rows = everything(tmp_path, text_column="body", label_column="kind")
        assert set(rows[0]) == {"body", "kind", "file"}

    def test_two_stars_match_folders_of_any_depth(self, tmp_path):
        for folder, row in zip((".", "one", "one/two"), ROWS, strict=True):
            (tmp_path / folder).mkdir(exist_ok=True)
            write(tmp_path / folder / "rows.csv", as_csv([row]))
        found = everything(tmp_path / "**" / "rows.csv", columns=["size"])
        assert sorted(row["size"] for row in found) == sorted(row["size"] for row in ROWS)

    def test_a_folder_of_tables_is_its_tables(self, tmp_path):
        write(tmp_path / "b.csv", as_csv(ROWS[2:]))
        write(tmp_path / "a.csv", as_csv(ROWS[:2]))
        write(tmp_path / "_SUCCESS", "x")
        assert everything(tmp_path) == ROWS

    def test_globs_and_several_files(self, tmp_path):
        write(tmp_path / "2.csv", as_csv(ROWS[2:]))
        write(tmp_path / "1.csv", as_csv(ROWS[:2]))
        assert everything(tmp_path / "*.csv") == ROWS
        assert everything(tmp_path / "2.csv", tmp_path / "1.csv") == ROWS[2:] + ROWS[:2]
        parquet(tmp_path / "3.parquet", [{"size": 7.0, "kind": "new", "extra": 1, "body": "typed"}])
        rows = everything(tmp_path / "1.csv", tmp_path / "3.parquet", columns=["kind", "size"])
        assert rows[-1]["size"] == "7.0"

    def test_lines(self, tmp_path):
        path = write(tmp_path / "notes.txt", "one, two\nthree\r\n\nfour")
        assert everything(path, text_column="body") == [
            {"body": t} for t in ("one, two", "three", "", "four")
        ]
        path = write(tmp_path / "table.txt", "body,x\nfive,6\n")
        assert everything(path, text_column="body") == [{"body": "five", "x": "6"}]

    def test_a_label_is_the_same_in_every_format(self, tmp_path):
        frame = pd.DataFrame({"zero": [0.0, 1.5], "yes": [True, False], "count": [3, 4]})
        frame.to_csv(tmp_path / "a.csv", index=False)
        frame.to_parquet(tmp_path / "a.parquet")
        frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
        rows = everything(tmp_path / "a.csv")
        assert rows[0] == {"zero": "0.0", "yes": "True", "count": "3"}
        assert everything(tmp_path / "a.parquet") == everything(tmp_path / "a.jsonl") == rows

    def test_svmlight_with_tabs(self, tmp_path):
        path = write(tmp_path / "a.svm", "+1\t1:0.5\t4:2\nham\t2:1 3:2\nspam\n")
        (batch,) = Dataset([path]).batches()
        assert batch.labels("label").tolist() == ["+1", "ham", "spam"]
        assert batch.matrix.toarray().tolist() == [[0, 0.5, 0, 0, 2], [0, 0, 1, 2, 0], [0] * 5]

    def test_svmlight_keeps_labels_as_written_and_indices_as_columns(self, tmp_path):
        path = write(
            tmp_path / "a.svm", "# a comment\n+1 1:0.5 4:2 # more\n-1 qid:3 2:1e-3\n\n1.50 \nspam 1:1\n"
        )
        (batch,) = Dataset([path]).batches()
        assert batch.labels("label").tolist() == ["+1", "-1", "1.50", "spam"]
        expected = np.zeros((4, 5))
        expected[0, [1, 4]], expected[1, 2], expected[3, 1] = [0.5, 2], 1e-3, 1
        assert np.array_equal(batch.matrix.toarray(), expected)

    def test_standard_input_and_pipes_are_read_once(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzipped(as_csv(ROWS).encode()))))
        data = Dataset(["-"])
        assert data.names == list(ROWS[0])  # a look does not take anything away
        assert [t for batch in data.batches(["body"]) for t in batch.texts("body")] == [
            r["body"] for r in ROWS
        ]
        with pytest.raises(SourceError, match="only once"):
            next(data.batches())
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        thread = threading.Thread(target=pipe.write_text, args=[as_csv(ROWS)])
        thread.start()
        assert everything(pipe) == ROWS
        thread.join()

    def test_parquet_from_standard_input(self, tmp_path, monkeypatch):
        data = Path(parquet(tmp_path / "a.parquet", ROWS)).read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert everything("-") == ROWS

    def test_batches_are_bounded_and_know_their_rows(self, tmp_path):
        rows = [{"n": str(i), "word": "w" * (i % 50)} for i in range(500)]
        for path in (
            write(tmp_path / "a.csv", as_csv(rows)),
            write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows))),
        ):
            data = Dataset([path])
            with batches_of(16):
                batches = list(data.batches(["n"]))
            assert len(batches) > 5
            assert max(map(len, batches)) < 200
            numbers = [(int(n) + 1, b.first_row + i) for b in batches for i, n in enumerate(b.strings("n"))]
            assert len(numbers) == 500
            assert all(a == b for a, b in numbers)
            assert data.done_bytes == data.total_bytes == os.path.getsize(path)

    @given(
        st.lists(
            st.lists(
                st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
                min_size=2,
                max_size=2,
            ),
            min_size=1,
            max_size=8,
        )
    )
    def test_what_is_written_is_read(self, tmp_path_factory, cells):
        folder = tmp_path_factory.mktemp("rows")
        # A row of one empty cell would be a blank line; two cells always have their comma.
        for form in ("csv", "tsv", "jsonl", "parquet"):
            path = folder / f"a.{form}"
            with path.open("wb") as file:
                sink = open_sink(file, form, ["a", "b"], [str, str])
                sink.write(list(zip(*cells, strict=True)))
                sink.close()
            rows = everything(path)
            assert [[row["a"], row["b"]] for row in rows] == cells


class TestNumbers:
    def numbers(self, *cells, first_row=1):
        batch = Batch(pa.table({"x": pa.array(cells)}), "t.csv", first_row)
        return batch.numbers(["x"])["x"].to_pylist()

    def test_types_may_change_from_row_to_row(self):
        assert self.numbers("1", "2.5", "n/a", "", " 7 ", "+1.5", "TRUE", "false", "?", "1e300") == [
            1, 2.5, None, None, 7, 1.5, 1, 0, None, 1e300,
        ]  # fmt: skip

    @given(st.lists(st.floats(allow_nan=False), min_size=1))
    def test_written_floats_are_read_to_the_last_bit(self, values):
        assert self.numbers(*map(repr, values)) == values

    @pytest.mark.parametrize("bad", ["two", "1,5", "0x1f", "1_000", "--1", "1 2"])
    def test_what_is_no_number_is_named_with_its_place(self, bad):
        cells = ["1", "", "2.5"] * 40
        cells[77] = bad
        with pytest.raises(SourceError, match=r"t\.csv row 178, column 'x': '.*' is not a number") as error:
            self.numbers(*cells, first_row=101)
        assert repr(bad) in str(error.value)


class TestTrouble:
    @pytest.mark.parametrize(
        ("name", "data", "says"),
        [
            ("a.csv", b"", "is empty"),
            ("a.csv", b"\n\n", "is empty"),
            ("a.csv", b"a,b\n", "no rows"),
            ("a.csv", b"a,b", "no rows"),
            ("a.csv", b"a,b\n1,2\n3\n", "row 2: 1 field, expected 2: '3'"),
            ("a.csv", b"a,b\n1,2\n3,4,5\n", "row 2: 3 fields, expected 2"),
            ("a.csv", b'a,b\n1,"x\ny"\n\n3,4,5\n', "row 2: 3 fields"),
            ("a.csv", b"a,b\n1,2\n3,caf\xe9\n", "row 2, column 'b': byte 0xe9 is not UTF-8: try"),
            ("a.csv", b"caf\xe9,b\n1,2\n", "row of names: byte 0xe9 is not UTF-8"),
            ("a.csv", "a,b\n1,2\n".encode("utf-16"), "try --encoding utf-16"),
            ("a.csv", b"a,b\r1,2\r3,4\r", "carriage return"),
            ("a.csv.gz", gzipped(b"a,b\n1,2\n" * 1000)[:-9], "not completely readable"),
            ("a.jsonl", b'{"a": 1}\n{"a": \n', "row 2 is not JSON"),
            ("a.jsonl", b'{"a": 1}\n[1, 2]\n', "row 2: expected a JSON object"),
            ("a.json", b'[\n{"a": 1}\n]\n', "a JSON array"),
            ("a.jsonl", b'{"a": "\xe9"}\n', "row 1: byte 0xe9"),
            ("a.jsonl", b'{"a": ' + b"[" * 100_000 + b"\n", "nested too deeply"),
            ("a.parquet", b"PAR1 and then nothing", "not a whole Parquet file"),
            ("a.svm", b"1 1:2\n-1 1:x\n", "row 2: '1:x' is not index:value"),
            ("a.svm", b"1 1:2\n-1 3:1 2:1\n", "row 2: indices must increase"),
            ("a.svm", b"1 hello\n", "row 1: 'hello' is not index:value"),
        ],
    )  # fmt: skip
    def test_one_line_says_where(self, tmp_path, name, data, says):
        path = write(tmp_path / name, data)
        with pytest.raises(SourceError) as error:
            everything(path)
        assert says in str(error.value)
        assert path in str(error.value)
        assert "\n" not in str(error.value)

    def test_a_row_that_never_ends(self, tmp_path):
        path = write(tmp_path / "a.csv", 'a,b\n1,2\n3,"' + "x,y\n" * 2**20)
        said = r"longer than 1 MiB: is there a quote .* that never ends"
        with batches_of(2**14), pytest.raises(SourceError, match=said):
            everything(path)

    def test_huge_fields_and_nul_bytes_are_text(self, tmp_path):
        long = "word " * 200_000
        path = write(tmp_path / "a.csv", f"a,b\n{long},x\0y\n")
        assert everything(path) == [{"a": long, "b": "x\0y"}]

    def test_columns_that_are_not_there(self, tmp_path):
        path = write(tmp_path / "a.csv", as_csv(ROWS))
        with pytest.raises(SourceError, match="no column 'knid': did you mean 'kind'"):
            everything(path, columns=["knid"])
        other = write(tmp_path / "b.csv", "body,sort\nx,y\n")
        with pytest.raises(SourceError, match=r"b\.csv has no column 'kind', 'size'"):
            everything(path, other)

    def test_a_name_that_comes_twice(self, tmp_path):
        path = write(tmp_path / "a.csv", "a,b,a\n1,2,3\n")
        assert everything(path, columns=["b"]) == [{"b": "2"}]
        with pytest.raises(SourceError, match="more than one column 'a'"):
            everything(path, columns=["a"])

    @pytest.mark.parametrize(
        ("argument", "says"),
        [
            ("tain.csv", "tain.csv does not exist: did you mean .*train.csv"),
            ("nothing/at/all.csv", "does not exist"),
            ("*.xyz", "no file matches"),
            ("hollow", "is a folder without files"),
        ],
    )
    def test_places_that_are_not_there(self, tmp_path, argument, says):
        write(tmp_path / "train.csv", as_csv(ROWS))
        (tmp_path / "hollow").mkdir()
        with pytest.raises(SourceError, match=says):
            everything(tmp_path / argument)

    def test_standard_input_twice_and_other_nonsense(self):
        with pytest.raises(SourceError, match="only once"):
            Dataset(["-", "-"])
        with pytest.raises(SourceError, match="nothing to read"):
            Dataset([])
        with pytest.raises(SourceError, match="no encoding 'latin-x'"):
            Dataset(["-"], encoding="latin-x")
        with pytest.raises(SourceError, match="no format 'xls'"):
            Dataset(["-"], format="xls")
        with pytest.raises(SourceError, match="cannot tell the format of"):
            format_to_write(Path("out.xls"))


class TestRoles:
    def roles(self, **columns):
        asked = {k: columns.pop(k) for k in ("label", "text", "features", "exclude") if k in columns}
        return guess_roles(Batch(pa.table(columns), "t.csv", 1), **asked)

    def test_documents(self):
        bodies = [f"this is document number {i}, with some words" for i in range(8)]
        roles = self.roles(id=range(8), topic=["a", "b"] * 4, title=["short title"] * 8, body=bodies)
        assert (roles.label, roles.text, roles.features) == ("topic", "body", ())
        assert set(roles.guessed) == {"text", "label"}
        assert self.roles(body=bodies, kind=["a", "b"] * 4, text="body").guessed == ("label",)

    def test_tables(self):
        numbers = {
            "id": range(8), "x": np.arange(8) / 3, "flag": [True, False] * 4, "city": ["Rome", "Oslo"] * 4,
        }  # fmt: skip
        roles = self.roles(**numbers, Class=["1", "2"] * 4)
        assert (roles.label, roles.text, roles.features) == ("Class", None, ("x", "flag", "city"))
        assert (roles.categories, roles.truths) == (("city",), ("flag",))
        assert dict(roles.left_out) == {"id": "it numbers the rows"}
        assert self.roles(**numbers, features=["x,f*"], label="city").features == ("x", "flag")
        # Rows that were sorted by class before pandas wrote them would be told apart by their index.
        stored = self.roles(
            x=np.arange(8) / 3, Class=["1", "2"] * 4, __index_level_0__=[3, 1, 4, 0, 5, 7, 2, 6]
        )
        assert stored.features == ("x",)
        assert self.roles(**numbers, exclude=["f*"], label="city").features == ("x",)

    def test_the_last_column_with_few_values_is_the_label(self):
        assert self.roles(x=np.arange(9) / 7, kind=list("ababababa"), y2=np.arange(9) / 3).label == "kind"
        assert self.roles(x=np.arange(9) / 7, grade=[0, 1, 2] * 3).label == "grade"

    @pytest.mark.parametrize(
        ("asked", "says"),
        [
            ({"label": "knid"}, "did you mean 'kind'"),
            ({"text": "nothing like it"}, r"\(it has x, kind\)"),
            ({"features": ["z*"]}, "no column 'z\\*'"),
            ({"exclude": ["x"], "label": "kind"}, "no column of numbers"),
            ({"text": "kind", "features": ["x"]}, "not both"),
        ],
    )
    def test_what_cannot_be(self, asked, says):
        with pytest.raises(SourceError, match=says):
            self.roles(x=[1.0, 2.0, 3.0, 4.0], kind=["a", "b", "a", "b"], **asked)

    def test_nothing_looks_like_a_label(self):
        with pytest.raises(SourceError, match=r"cannot tell which column of .* say --label"):
            self.roles(x=np.arange(9) / 7, z=np.arange(9) / 3)

    def test_patterns(self):
        names = ["a", "b,c", "gene 1", "gene 2"]
        assert matching(["gene *", "b,c"], names, "t") == ["b,c", "gene 1", "gene 2"]
        assert matching(["a, gene 2"], names, "t") == ["a", "gene 2"]


SEEDS = {
    "csv": b'a,b\n1,"x\ny"\n2,z\n',
    "tsv": b"a\tb\n1\tx\n",
    "jsonl": b'{"a": 1, "b": "x"}\n{"a": null}\n',
    "svm": b"1 1:2 3:4\n-1 2:1 # c\n",
    "csv.gz": gzipped(b"a,b\n1,2\n"),
    "unknown": b"a;b\n1;2\n",
}


@given(data=st.data())
@pytest.mark.parametrize("name", SEEDS)
def test_any_bytes_are_read_or_refused(tmp_path_factory, name, data):
    """Whatever a file holds: rows, or a ``SourceError`` of one line."""
    content = bytearray(SEEDS[name])
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=6))
    path = tmp_path_factory.mktemp("any") / f"a.{name}"
    path.write_bytes(content)
    try:
        dataset = Dataset([str(path)])
        guess_roles(dataset.preview())
        for batch in dataset.batches():
            batch.numbers([n for n in dataset.names if n in batch.table.column_names])
    except SourceError as error:
        assert "\n" not in str(error).strip()


def test_matrices_of_different_width_are_joined():
    import scipy.sparse as sp

    parts = [sp.csr_array(np.eye(2)), sp.csr_array(np.ones((1, 4)))]
    assert joined(parts).toarray().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1]]


class TestRowsThatAreLeft:
    def test_they_keep_their_numbers(self):
        batch = Batch(pa.table({"x": ["1", "2", "3", "oops", "5"]}), "a.csv", 11)
        some = batch.rows(np.array([False, True, False, True, True]))
        assert some.where(0) == "a.csv row 12"
        assert some.rows(np.array([False, False, True])).where(0) == "a.csv row 15"
        with pytest.raises(SourceError, match=r"a\.csv row 14, column 'x': 'oops'"):
            some.numbers(["x"])


class TestQuotesInTheRowOfNames:
    def test_a_stray_quote_is_part_of_a_name(self, tmp_path):
        path = write(tmp_path / "a.csv", 'body,5" disk,topic\nsome words,1,a\nother words,2,b\n')
        assert [row['5" disk'] for row in everything(path)] == ["1", "2"]

    @pytest.mark.parametrize("names", ['"a ""b""\nc",d', 'd,"a\n"', '"",a', 'a,"b,""\n""c",d'])
    def test_quoted_names_are_those_of_python(self, tmp_path, names):
        path = write(tmp_path / "a.csv", names + "\n" + "1," * names.replace('b,"', 'b"').count(",") + "2\n")
        expected = [" ".join(name.split()) for name in next(csv.reader(io.StringIO(names, newline="")))]
        assert Dataset([path]).names == [name or f"column {i}" for i, name in enumerate(expected, 1)]

    @pytest.mark.parametrize("rows", [3, 300_000])
    def test_a_quote_that_never_ends(self, tmp_path, rows):
        path = write(tmp_path / "a.csv", 'body,"topic\n' + "some words,a\n" * rows)
        with pytest.raises(SourceError, match=r"a.csv, the row of names: a quote .* never ends"):
            everything(path)


class TestFoldersWithOtherThings:
    def test_pipes_are_passed_over_and_links_followed(self, tmp_path):
        write(tmp_path / "text", "elsewhere")
        folder = tmp_path / "mail"
        (folder / "ham").mkdir(parents=True)
        write(folder / "ham" / "1.txt", "here")
        (folder / "ham" / "2.txt").symlink_to(tmp_path / "text")
        os.mkfifo(folder / "ham" / "3.txt")
        assert [row["text"] for row in everything(folder)] == ["here", "elsewhere"]
        assert len(Dataset([str(folder / "ham" / "*")], format="lines").places) == 2

    def test_a_name_that_is_not_text(self, tmp_path):
        (tmp_path / "mail").mkdir()
        try:
            Path(tmp_path / "mail" / os.fsdecode(b"caf\xe9.txt")).write_text("some words")
        except OSError:
            pytest.skip("this file system takes no such name")
        with pytest.raises(SourceError, match="not UTF-8: rename it"):
            everything(tmp_path / "mail")


class TestFurtherGuesses:
    def test_scripts_without_spaces_are_text(self):
        bodies = [f"我们今天去公园看了很多美丽的花朵{i}" for i in range(6)]
        table = pa.table(
            {"body": bodies, "page": ["a" * 30 + str(i) for i in range(6)], "kind": ["甲", "乙"] * 3}
        )
        roles = guess_roles(Batch(table, "t.csv", 1))
        assert (roles.text, roles.label) == ("body", "kind")

    @pytest.mark.parametrize(
        "nothing",
        [["", "", "NA", ""], pa.nulls(4), pa.array([math.nan] * 4), pa.array([None] * 4, pa.int64())],
    )
    def test_an_empty_column_is_no_feature(self, nothing):
        table = pa.table({"x": [1.5, 2.5, 3.5, 4.5], "gap": nothing, "kind": ["a", "b", "a", "b"]})
        roles = guess_roles(Batch(table, "t.csv", 1))
        assert roles.features == ("x",)
        assert roles.left_out == (("gap", "it holds nothing in the first rows"),)
        assert guess_roles(Batch(table, "t.csv", 1), features=["gap", "x"]).features == ("x", "gap")
