"""Columns as people write them, from fit to predictions, reports and streams: read in one way everywhere."""

from __future__ import annotations

import datetime
import json
import os

import numpy as np
import pytest

from maxdisc import load, save
from maxdisc.model_file.persistence import describe
from tests.files.workbooks import write_workbook

PLAIN = ("--evidence", "raw", "--n-features", "all", "--smoothing", "1", "--structure", "independent")
FEATURES = ["price", "begun year", "begun month", "begun weekday", "begun hour", "begun days", "share"]


def rows(n=60, seed=0):
    """Prices, moments, shares and a label."""
    rng = np.random.default_rng(seed)
    start = datetime.datetime(2023, 1, 1)
    for i in range(n):
        price = round(float(rng.normal(1000 + 300 * (i % 2), 200)), 2)
        yield (
            price,
            start + datetime.timedelta(hours=int(rng.integers(9000))),
            int(rng.integers(99)),
            "ab"[i % 2],
        )


def german(path, **options):
    """As a spreadsheet in Germany writes them."""
    swap = str.maketrans(",.", ".,")
    lines = [f"{p:,.2f} €;{d:%d.%m.%Y %H:%M};{s} %;{y}".translate(swap) for p, d, s, y in rows(**options)]
    # Dates keep their points.
    lines = [line.split(";") for line in lines]
    lines = [";".join([p, d.replace(",", "."), s, y]) for p, d, s, y in lines]
    path.write_text("price;begun;share;y\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def typed(path, **options):
    """The same values with types."""
    import pyarrow as pa
    import pyarrow.parquet

    price, begun, share, y = zip(*rows(**options), strict=True)
    begun = [moment.replace(second=0) for moment in begun]
    share = [s / 100 for s in share]
    pyarrow.parquet.write_table(pa.table({"price": price, "begun": begun, "share": share, "y": y}), path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from maxdisc.cli import main

    folder = tmp_path_factory.mktemp("written")
    german(folder / "train.csv")
    fit = ["fit", folder / "train.csv", "-o", folder / "m.maxdisc", "--keep-moments", "-q", *PLAIN]
    assert main([str(a) for a in fit]) == 0
    return folder / "m.maxdisc"


def test_fit_says_what_is_read_how_and_keeps_it(run, model, tmp_path):
    done = run("fit", model.parent / "train.csv", "-o", tmp_path / "m", *PLAIN)
    parts = "year, month, weekday, hour, days"
    told = f"price: numbers in € with decimal comma; begun: dates (day/month/year: {parts}); "
    assert told + "share: numbers in percent with decimal comma" in done.err
    assert load(model).feature_names_in_.tolist() == FEATURES
    kept = describe(model)["about"]["readings"]
    assert kept["price"] == [["price"], "number", ",€"]
    assert kept["begun hour"] == [["begun"], "hour", "dmy"]
    assert told.rstrip("; ") in " ".join(run("info", model).out.split())


def test_the_model_is_that_of_the_values(run, model, tmp_path):
    typed(tmp_path / "train.parquet")
    assert run("fit", tmp_path / "train.parquet", "-o", tmp_path / "m", *PLAIN, "--keep-moments").code == 0
    said = [
        run("predict", one, tmp_path / "train.parquet", "--probabilities") for one in (model, tmp_path / "m")
    ]
    assert said[0].code == 0
    assert said[0].out == said[1].out


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "report", "rank"])
def test_every_command_reads_new_rows_in_the_same_way(run, model, tmp_path, command):
    new, plain = german(tmp_path / "new.csv", n=20, seed=1), typed(tmp_path / "new.parquet", n=20, seed=1)
    more = {
        "predict": lambda data: [data, "--probabilities"],
        "evaluate": lambda data: [data, "--json"],
        "explain": lambda data: ["--data", data, "--row", "7", "--json"],
        "report": lambda data: ["--data", data, "-o", tmp_path / f"{data.suffix}.json"],
        "rank": lambda data: ["--data", data, "--json"],
    }[command]
    one, other = (
        run(command, model, *more(data), "-q") if command != "explain" else run(command, model, *more(data))
        for data in (new, plain)
    )
    assert (one.code, other.code) == (0, 0), one.err
    assert one.out.replace("new.csv", "") == other.out.replace("new.parquet", "")
    if command == "report":
        read = [json.loads((tmp_path / f"{s}.json").read_text())["scores"] for s in (".csv", ".parquet")]
        assert read[0] == read[1]


def test_a_stream_is_read_as_rows_in_memory(run, model, tmp_path):
    data = model.parent / "train.csv"
    assert run("fit", data, "-o", tmp_path / "memory", *PLAIN, "--folds", "hash").code == 0
    done = run("fit", data, "-o", tmp_path / "stream", *PLAIN, "--stream")
    assert done.code == 0, done.err
    assert "price: numbers in € with decimal comma" in done.err
    assert describe(tmp_path / "stream")["about"]["readings"] == describe(model)["about"]["readings"]
    files = [run("predict", tmp_path / name, data, "--probabilities").out for name in ("memory", "stream")]
    assert files[0] == files[1]


def test_kept_columns_come_as_they_were_written(run, model, tmp_path):
    new = german(tmp_path / "new.csv", n=5, seed=1)
    first = run("predict", model, new, "--keep", "price,begun").rows[0]
    assert [first["price"], first["begun"]] == new.read_text(encoding="utf-8").splitlines()[1].split(";")[:2]


def test_rows_in_another_notation_are_refused_or_read_as_told(run, model, tmp_path):
    text = german(tmp_path / "new.csv", n=5, seed=1).read_text(encoding="utf-8")
    lines = [line.split(";") for line in text.splitlines()]
    swapped = [";".join([row[0].translate(str.maketrans(",.", ".,")), *row[1:]]) for row in lines]
    (tmp_path / "other.csv").write_text("\n".join(swapped), encoding="utf-8")
    done = run("predict", model, tmp_path / "other.csv")
    assert done.code == 2
    assert "row 1, column 'price': " in done.err
    assert "is not a number in € with decimal comma; say --decimal . if new files are written so" in done.err
    told = run("predict", model, tmp_path / "other.csv", "--decimal", ".")
    assert told.out == run("predict", model, tmp_path / "new.csv").out


def test_excel_gives_the_model_of_the_same_csv(run, model, tmp_path):
    if not os.environ.get("MAXDISC_REQUIRE_EXTRAS"):
        pytest.importorskip("python_calamine")
    table = [[p, d, s / 100, y] for p, d, s, y in rows()]
    book = write_workbook(tmp_path / "train.xlsx", {"Data": [["price", "begun", "share", "y"], *table]})
    done = run("fit", book, "-o", tmp_path / "m", *PLAIN)
    assert done.code == 0, done.err
    assert load(tmp_path / "m").feature_names_in_.tolist() == FEATURES
    data = model.parent / "train.csv"
    said = [run("predict", one, data, "--decimal", ",") for one in (model,)]
    assert [row["label"] for row in said[0].rows] == [
        row["label"] for row in run("predict", tmp_path / "m", book).rows
    ]


def test_a_missing_date_column_is_named_by_its_own_name(run, model, tmp_path):
    (tmp_path / "new.csv").write_text("price;started;share\n1,5 €;01.01.2024;5 %\n", encoding="utf-8")
    done = run("predict", model, tmp_path / "new.csv")
    assert done.code == 2
    assert "new.csv has no 'begun'" in done.err


def test_a_model_without_names_reads_one_row(run, tmp_path):
    lines = [f"{i / 4},{i % 7},{'ab'[i % 2]}" for i in range(30)]
    (tmp_path / "train.csv").write_text("\n".join(lines))
    done = run("fit", tmp_path / "train.csv", "-o", tmp_path / "m", *PLAIN)
    assert "the columns are named c0, c1, c2" in done.err
    assert describe(tmp_path / "m")["about"]["header"] is False
    all_rows = run("predict", tmp_path / "m", tmp_path / "train.csv").rows
    assert len(all_rows) == 30
    assert run("predict", tmp_path / "m", "-", stdin=lines[3].encode()).rows == all_rows[3:4]
    named = "c0,c1,c2\n" + lines[3]
    assert run("predict", tmp_path / "m", "-", stdin=named.encode()).rows == all_rows[3:4]
    assert (
        run("predict", tmp_path / "m", "-", "--header", stdin=("c1,c0\n" + "3,0.75").encode()).rows
        == all_rows[3:4]
    )


def test_text_of_two_columns_is_text_of_both(run, tmp_path):
    words = {"ham": "plain good news", "spam": "free money now"}
    lines = [f"title {i},{text},{label}" for i in range(12) for label, text in words.items()]
    (tmp_path / "train.csv").write_text("title,body,y\n" + "\n".join(lines))
    fit = ["fit", tmp_path / "train.csv", "-o", tmp_path / "m", "--text", "title", "--text", "body", *PLAIN]
    assert run(*fit).code == 0
    assert describe(tmp_path / "m")["about"]["readings"] == {"title + body": [["title", "body"], "text", ""]}
    said = run("predict", tmp_path / "m", tmp_path / "train.csv")
    assert [row["label"] for row in said.rows] == ["ham", "spam"] * 12
    # A document alone is the document.
    assert run("predict", tmp_path / "m", "-", stdin=b"free money\n").rows[0]["label"] == "spam"
    assert run("explain", tmp_path / "m", "free money").code == 0
    (tmp_path / "other.csv").write_text("headline,body\nx,y\n")
    done = run("predict", tmp_path / "m", tmp_path / "other.csv")
    assert done.code == 2
    assert "has no column 'title'" in done.err


def test_a_forged_reading_is_refused_or_ignored(run, model, tmp_path):
    estimator, about = load(model), describe(model)["about"]
    data = model.parent / "train.csv"
    for readings, code in (
        ({**about["readings"], "price": [["price"], "roman", ""]}, 2),
        ({**about["readings"], "price": [["price"], "number"]}, 2),
        ({**about["readings"], "price": [[], "number", "."]}, 2),
        ("all of them", 2),
        (about["readings"], 0),
    ):
        save(estimator, tmp_path / "m", about={**about, "readings": readings})
        done = run("predict", tmp_path / "m", data)
        assert done.code == code, done.err
        assert done.err.count("\n") == bool(code)


def test_a_checkpoint_knows_how_columns_were_read(run, tmp_path):
    data = tmp_path / "train.csv"
    data.write_text("x,y\n" + "".join(f'"{1234 + i:,}",{"ab"[i % 2]}\n' for i in range(20)))
    fit = ["fit", data, "-o", tmp_path / "m", "--checkpoint", tmp_path / "kept", *PLAIN]
    assert "say --decimal" in run(*fit).err
    assert run(*fit, "--decimal", ".").code == 0
    assert describe(tmp_path / "m")["about"]["readings"] == {"x": [["x"], "number", "."]}
