"""Files as people have them: each ends in a model that reads them again, or in one line that helps."""

from __future__ import annotations

import datetime
import gzip
import io
import os
import tarfile
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from maxdisc.model_file.persistence import describe
from tests.files.workbooks import write_workbook

PLAIN = ("--evidence", "raw", "--n-features", "all", "--smoothing", "1", "--structure", "independent")
N = 24
#: A table of two numbers and a label, and documents with theirs.
ROWS = [(i / 4 + 0.5 * (i % 2), i % 5 + 1, "ab"[i % 2]) for i in range(N)]
TEXTS = [
    (f"some words about {('ham', 'spam')[i % 2]} and number{i}", ("ham", "spam")[i % 2]) for i in range(N)
]
DAYS = [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=17 * i, hours=5 * i) for i in range(N)]


def lines(rows, names="x,n,y", sep=",", end="\n"):
    return end.join([names, *(sep.join(map(str, row)) for row in rows), ""])


def column(cells, name="x", label="y"):
    """A file with tabs between one column of cells and the label."""
    return "\t".join([name, label]) + "\n" + "".join(f"{c}\t{'ab'[i % 2]}\n" for i, c in enumerate(cells))


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def write_bytes(path, content):
    path.write_bytes(content)
    return path


def parquet(path, **columns):
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def with_excel(make):
    """What is made for tests of the extra."""
    if not os.environ.get("MAXDISC_REQUIRE_EXTRAS"):
        pytest.importorskip("python_calamine")
    return make()


def workbook(path, sheets, merged=""):
    return with_excel(lambda: write_workbook(path, sheets, merged))


def zipped(path, name="train.csv"):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name, lines(ROWS))
    return path


def tarred(path):
    with tarfile.open(path, "w:gz") as file:
        info = tarfile.TarInfo("train.csv")
        info.size = len(lines(ROWS))
        file.addfile(info, io.BytesIO(lines(ROWS).encode()))
    return path


def numpy_array(path):
    np.save(path.with_suffix(".npy"), np.eye(3))
    return path.with_suffix(".npy").rename(path)


TABLE = [list("xny"), *map(list, ROWS)]
# What it is: the name of the file, what makes it (text, bytes or a function of its path), options, and what
# standard error says. These end in a model, ...
MODELS = {
    "BOM": ("a.csv", "\ufeff" + lines(ROWS), [], "label: y (2 classes), features: x, n"),
    "BOM and quoted names": ("a.csv", "\ufeff" + lines(ROWS, '"x","n","y"'), [], "features: x, n"),
    "CRLF": ("a.csv", lines(ROWS, end="\r\n"), [], "features: x, n"),
    "UTF-16 with its encoding": ("a.csv", lines(ROWS).encode("utf-16"), ["--encoding", "utf-16"], ""),
    "blank lines first": ("a.csv", "\n\n" + lines(ROWS), [], "features: x, n"),
    "no line end at the end": ("a.csv", lines(ROWS)[:-1], [], "features: x, n"),
    "separator after each row": ("a.csv", lines(ROWS).replace("\n", ",\n"), [], "left out: column 4"),
    "quotes and newlines in cells": (
        "a.csv",
        "body,y\n" + "".join(f'"some ""words""\nabout {t[1]}, {i}",{t[1]}\n' for i, t in enumerate(TEXTS)),
        [],
        "text: body",
    ),
    "semicolons": ("a.csv", lines(ROWS, "x;n;y", ";"), [], "features: x, n"),
    "bars": ("a.txt", lines(ROWS, "x|n|y", "|"), [], "features: x, n"),
    "tabs under .csv": ("a.csv", lines(ROWS, "x\tn\ty", "\t"), [], "features: x, n"),
    "commas under .tsv": ("a.tsv", lines(ROWS), [], "features: x, n"),
    "semicolons and decimal commas": (
        "a.csv",
        lines([(german(x), n, y) for x, n, y in ROWS], "x;n;y", ";"),
        [],
        "x: numbers with decimal comma",
    ),
    "semicolons, decimal commas and no names": (
        "a.csv",
        "".join(f"{german(x)};{german(n + 0.5)};{y}\n" for x, n, y in ROWS),
        [],
        "the first row holds values, so the columns are named c0, c1, c2; if it holds names, say --header",
    ),
    "a separator that Excel names": ("a.csv", "sep=;\n" + lines(ROWS, "x;n;y", ";"), [], "features: x, n"),
    "a separator of one's own": ("a.csv", lines(ROWS, "x~n~y", "~"), ["--sep", "~"], "features: x, n"),
    "names in the middle of spaces": ("a.csv", lines(ROWS, " x , n ,y "), [], "features: x, n"),
    "no names": ("iris.data", lines(ROWS, "1.5,3,a"), [], "the first row holds values"),
    "no names, said so": (
        "a.csv",
        "a doc,b doc\n" + "".join(f"{t},{y}\n" for t, y in TEXTS),
        ["--no-header"],
        "text: c0",
    ),
    "numbers as names": ("a.csv", lines(ROWS, "0,1,2"), ["--label", "2"], ""),
    "thousands": (
        "a.csv",
        column([f"{1234.5 * i:,.1f}" for i in range(N)]),
        [],
        "x: numbers with decimal point",
    ),
    "thousands by points": (
        "a.csv",
        column([german(1234.5 * i) for i in range(N)]),
        [],
        "with decimal comma",
    ),
    "thousands by spaces": (
        "a.csv",
        column([f"{1234.5 * i:,.1f}".replace(",", "\u202f").replace(".", ",") for i in range(N)]),
        [],
        "x: numbers with decimal comma",
    ),
    "thousands by apostrophes": (
        "a.csv",
        column([f"{1234.5 * i:,.1f}".replace(",", "'") for i in range(N)]),
        [],
        "with decimal point",
    ),
    "thousands that could be decimals, said so": (
        "a.csv",
        column([f"{1234 + i:,}" for i in range(N)]),
        ["--decimal", "."],
        "x: numbers with decimal point",
    ),
    "percent": (
        "a.csv",
        column([f"{i / 2} %" for i in range(N)]),
        [],
        "x: numbers in percent with decimal point",
    ),
    "dollars": (
        "a.csv",
        column([f"${1234 * i:,}.00" for i in range(N)]),
        [],
        "x: numbers in $ with decimal point",
    ),
    "euros": (
        "a.csv",
        column([f"{german(i / 3)} €" for i in range(N)]),
        [],
        "x: numbers in € with decimal comma",
    ),
    "accountants": (
        "a.csv",
        column([f"({i}.50)" if i % 3 else f"{i}.50" for i in range(N)]),
        [],
        "with decimal point",
    ),
    "dates": (
        "a.csv",
        column([d.isoformat(" ") for d in DAYS]),
        [],
        "x: dates (year, month, weekday, hour, days)",
    ),
    "dates by points": (
        "a.csv",
        column([f"{d:%d.%m.%Y}" for d in DAYS]),
        [],
        "x: dates (day/month/year: year, month, weekday, days)",
    ),
    "dates with the month first": (
        "a.csv",
        column([f"{d:%m/%d/%Y %I:%M %p}" for d in DAYS]),
        [],
        "month/day/year",
    ),
    "dates in words": ("a.csv", column([f"{d:%d %b %Y}" for d in DAYS]), [], "day/month/year"),
    "dates in Parquet": (
        "a.parquet",
        lambda p: parquet(p, when=DAYS, y=["a", "b"] * (N // 2)),
        [],
        "when: dates (year, month",
    ),
    "days that could be months, said so": (
        "a.csv",
        column([f"0{i % 9 + 1}/0{i % 8 + 1}/2024" for i in range(N)]),
        ["--dates", "mdy"],
        "month/day/year",
    ),
    "Parquet under .csv": (
        "a.csv",
        lambda p: parquet(p, x=[r[0] for r in ROWS], y=[r[2] for r in ROWS]),
        [],
        "features: x",
    ),
    "CSV under .parquet": ("a.parquet", lines(ROWS), [], "features: x, n"),
    "gzip under .csv": ("a.csv", gzip.compress(lines(ROWS).encode()), [], "features: x, n"),
    "CSV under .xlsx": ("a.xlsx", lines(ROWS), [], "features: x, n"),
    "Excel": ("a.xlsx", lambda p: workbook(p, {"Data": TABLE}), [], "features: x, n"),
    "Excel under .csv": ("a.csv", lambda p: workbook(p, {"Data": TABLE}), [], "features: x, n"),
    "Excel with two sheets": (
        "a.xlsx",
        lambda p: workbook(p, {"Notes": [["written by", "me"]], "Data": TABLE}),
        ["--sheet", "Data"],
        "features: x, n",
    ),
    "Excel with a title over all columns": (
        "a.xlsx",
        lambda p: workbook(p, {"Data": [["Report"], [], *TABLE]}, "A1:C1"),
        [],
        "1 row above the names left out",
    ),
    "Excel with dates and formulas": (
        "a.xlsx",
        lambda p: workbook(
            p, {"D": [["when", "f", "y"], *([d, ("=1+1", i), "ab"[i % 2]] for i, d in enumerate(DAYS))]}
        ),
        [],
        "when: dates (year, month, weekday, hour, days)",
    ),
    "NUL bytes in documents": ("a.csv", lines([(t + "\0", y) for t, y in TEXTS], "body,y"), [], "text: body"),
    "two columns of text": (
        "a.csv",
        lines([(t, f"and the body of {y}", y) for t, y in TEXTS], "title,body,y"),
        ["--text", "title", "--text", "body"],
        "label: y",
    ),
    "text beside numbers": (
        "a.csv",
        lines([(t, i, y) for i, (t, y) in enumerate(TEXTS)], "body,size,y"),
        [],
        "left out: size (a model is of text or of a table, not yet of both)",
    ),
    "emoji with a pattern": (
        "a.csv",
        column(["🎉 😀" if i % 2 else "😢 💔" for i in range(N)]),
        ["--text", "x", "--token-pattern", r"\S+"],
        "",
    ),
    "labels that are NaN in words": (
        "a.csv",
        lines([*ROWS, (1, 1, "NaN"), (2, 2, "NaN")]),
        [],
        "say --unlabelled 'NaN'",
    ),
    "numbers that are ambiguous beside others": (
        "a.csv",
        lines([(n, f"1,{234 + i}", y) for i, (_, n, y) in enumerate(ROWS)], "n;x;y", ";"),
        [],
        "left out: x ('1,234' has thousands or decimals: say --decimal . or --decimal ,)",
    ),
}

# ... and these in one line.
REFUSALS = {
    "empty": ("a.csv", "", [], "is empty"),
    "only spaces": ("a.csv", " \n \n", [], "is empty"),
    "only names": ("a.csv", "x,y\n", [], "no rows"),
    "UTF-16": ("a.csv", lines(ROWS).encode("utf-16"), [], "try --encoding utf-16"),
    "UTF-16 without a mark": ("a.csv", lines(ROWS).encode("utf-16-le"), [], "say --encoding utf-16-le"),
    "Latin-1": (
        "a.csv",
        lines([*TEXTS, ("caf\xe9 au lait", "ham")], "b,y").encode("latin-1"),
        [],
        "--encoding latin-1",
    ),
    "carriage returns": ("a.csv", lines(ROWS, end="\r"), [], "carriage return alone: convert it to newlines"),
    "ragged rows": ("a.csv", lines(ROWS) + "1,2\n", [], "row 25: 2 fields, expected 3"),
    "a title above the names": ("a.csv", "Report of May\n" + lines(ROWS), [], "row 1: 3 fields, expected 1"),
    "a quote that never ends": ("a.csv", 'x,"y\n' + lines(ROWS), [], "never ends"),
    "a name twice": ("a.csv", lines(ROWS, "x,x,y"), [], "more than one column 'x'"),
    "mixed decimal marks": (
        "a.csv",
        column(["1,5", "2.5"] * 12),
        [],
        "written in several ways, such as '1,5' and '2.5'",
    ),
    "mixed currencies": (
        "a.csv",
        column(["$1", "€2"] * 12),
        [],
        "written in several ways, such as '$1' and '€2'",
    ),
    "percent here and there": ("a.csv", column(["1 %", "2"] * 12), [], "such as '1 %' and '2'"),
    "mixed dates": ("a.csv", column(["2024-01-31", "31.01.2024"] * 12), [], "dates written in several ways"),
    "thousands that could be decimals": (
        "a.csv",
        column([f"{1234 + i:,}" for i in range(N)]),
        [],
        "say --decimal . or --decimal ,",
    ),
    "days that could be months": (
        "a.csv",
        column([f"0{i % 9 + 1}/0{i % 8 + 1}/2024" for i in range(N)]),
        [],
        "say --dates dmy or --dates mdy",
    ),
    "a date that is none": (
        "a.csv",
        column([*[f"{d:%d.%m.%Y}" for d in DAYS], "31.02.2024"]),
        [],
        "row 25, column 'x': '31.02.2024' is not a date (day/month/year)",
    ),
    "a number that is none": (
        "a.csv",
        column([*[german(i / 3) for i in range(N)], "about 3"]),
        [],
        "row 25, column 'x': 'about 3' is not a number with decimal comma",
    ),
    "a decimal comma among points": (
        "a.csv",
        column([*[i / 3 for i in range(N)], "1,5"]),
        [],
        "'1,5' is not a number; say --decimal , if",
    ),
    "PDF": ("a.csv", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", [], "is a PDF: copy its text"),
    "zip": ("a.csv", zipped, [], "is a zip archive of train.csv: unpack it"),
    "Word": (
        "a.docx",
        lambda p: zipped(p, "word/document.xml"),
        [],
        "is a Word document: save it as plain text",
    ),
    "tar": ("a.tar.gz", tarred, [], "is a tar archive: unpack it"),
    "NumPy": ("a.csv", numpy_array, [], "is a NumPy array: write it as CSV"),
    "HTML that calls itself .xls": (
        "a.xls",
        "<html><table><tr><td>1</td></tr></table></html>",
        [],
        "is an HTML page",
    ),
    "h5ad that is none": ("a.h5ad", b"\0\1\2\xff\xfe" * 9, [], "is not an h5ad file"),
    "a model in place of data": ("a.csv", lambda p: p, [], "is a model file of maxdisc, not data"),
    "Excel without values": (
        "a.xlsx",
        lambda p: workbook(p, {"D": [["x", "y"], *(["=A1+1", "ab"[i % 2]] for i in range(N))]}),
        [],
        "column 'x' holds formulas without values: open it in Excel and save it there.",
    ),
    "Excel with names over several columns": (
        "a.xlsx",
        lambda p: workbook(p, {"D": [["size", None, "y"], *TABLE]}, "A1:B1"),
        [],
        "the name 'size' goes over 2 columns",
    ),
    "Excel with an empty sheet": ("a.xlsx", lambda p: workbook(p, {"D": []}), [], "sheet 'D' is empty"),
    "Excel without such a sheet": (
        "a.xlsx",
        lambda p: workbook(p, {"Data": TABLE}),
        ["--sheet", "data"],
        "did you mean 'Data'?",
    ),
    "a password": (
        "a.xlsx",
        lambda p: with_excel(lambda: write_bytes(p, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))),
        [],
        "is not a whole Excel file",
    ),
    "one-letter words": (
        "a.csv",
        column(["a b c" if i % 2 else "x y z" for i in range(N)]),
        ["--text", "x"],
        "documents of {} hold no word, which is two letters or digits or more: say --token-pattern",
    ),
    "emoji": (
        "a.csv",
        column(["🎉 😀" if i % 2 else "😢 💔" for i in range(N)]),
        ["--text", "x"],
        "--token-pattern",
    ),
    "a quantity for a label": (
        "a.csv",
        lines([(i, i / 7) for i in range(40)], "x,y"),
        ["--label", "y"],
        "is it a quantity?",
    ),
    "labels that are NaN": (
        "a.parquet",
        lambda p: parquet(p, x=[1.0, 2.0, 3.0], y=[1.0, float("nan"), 0.0]),
        [],
        "leave them out with --skip-unlabelled",
    ),
    "text and columns": (
        "a.csv",
        lines([(t, 1, y) for t, y in TEXTS], "body,n,y"),
        ["--text", "body", "--features", "n"],
        "cannot take both: give --text or --features, not both",
    ),
    "two separators": ("a.csv", lines(ROWS), ["--sep", ";;"], "--sep takes one character"),
    "a decimal mark that is none": ("a.csv", lines(ROWS), ["--decimal", "comma"], "--decimal takes . or ,"),
    "a sheet of a CSV": ("a.csv", lines(ROWS), ["--sheet", "1"], "--sheet is of Excel files"),
}


def made(folder, name, content):
    path = folder / name
    if callable(content):
        return content(path)
    return write_bytes(path, content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("what", MODELS)
def test_a_model(run, tmp_path, what):
    name, content, options, says = MODELS[what]
    data, model = made(tmp_path, name, content), tmp_path / "m.maxdisc"
    done = run("fit", data, "-o", model, *PLAIN, *options)
    assert done.code == 0, done.err
    assert says in done.err
    # It reads the same file again, with no other advice than what the file cannot say.
    again = [
        option for option in options if option in ("--encoding", "utf-16", "--sep", "~", "--sheet", "Data")
    ]
    done = run("predict", model, data, "--quiet", *again)
    assert done.code == 0, done.err
    assert len(done.rows) == describe(model)["about"]["rows"]


@pytest.mark.parametrize("what", REFUSALS)
def test_one_line(run, files, tmp_path, what):
    name, content, options, says = REFUSALS[what]
    data = made(tmp_path, name, content)
    data = files / "iris.maxdisc" if "model" in what else data
    done = run("fit", data, "-o", tmp_path / "m.maxdisc", *PLAIN, *options)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("maxdisc: ")
    assert done.err.count("\n") == 1, done.err
    assert says.format(data) in done.err
    assert not (tmp_path / "m.maxdisc").exists()
