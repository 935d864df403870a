"""Bad input, each kind of it: exit code 2, one line that names it and the way out, and nothing written."""

from __future__ import annotations

import json

import pytest

from maxdisc.testing import batches_of

TEXT = "body,topic\n" + "".join(f"some words about {t},{t}\n" for t in ["ham", "spam"] * 6)


def ragged(folder):
    return write(folder, TEXT + "only one field\n")


def write(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# What is wrong, how to make it, further arguments of fit, and what must be said.
BAD_DATA = {
    "missing file": (lambda d: d / "train.csv", [], "train.csv does not exist"),
    "folder without files": (lambda d: (d / "hollow").mkdir() or d / "hollow", [], "folder without files"),
    "empty file": (lambda d: write(d, ""), [], "data.csv is empty"),
    "header only": (lambda d: write(d, "body,topic\n"), [], "no rows"),
    "missing column": (lambda d: write(d, TEXT), ["--label", "topci"], "'topci': did you mean 'topic'?"),
    "missing text column": (lambda d: write(d, TEXT), ["--text", "bdoy"], "did you mean 'body'?"),
    "one class": (
        lambda d: write(d, TEXT.replace(",spam", ",ham")),
        ["--label", "topic"],
        "has only one class, 'ham'",
    ),
    "undecodable bytes": (
        lambda d: write(d, TEXT.encode() + b"caf\xe9 words here,ham\n"),
        [],
        "row 13, column 'body': byte 0xe9 is not UTF-8: try --encoding latin-1",
    ),
    "ragged rows": (ragged, [], "row 13: 1 field, expected 2"),
    "labels missing": (
        lambda d: write(d, TEXT + "no label here,\nnor here,\n"),
        [],
        "2 of 14 rows of",
    ),
    "no label at all": (
        lambda d: write(d, "body,topic\nsome words here,\nother words here,\n"),
        ["--label", "topic"],
        "no row of",
    ),
    "no number": (
        lambda d: write(d, "x,topic\n" + "1,a\n2,b\n" * 600_000 + "about 3,a\n"),
        [],
        "row 1200001, column 'x': 'about 3' is not a number",
    ),
    "svmlight": (lambda d: write(d, "1 1:2\n-1 1:oops\n", "a.svm"), [], "row 2: '1:oops' is not index:value"),
    "JSON": (lambda d: write(d, '{"a": 1}\n{"a": 2,,}\n', "a.jsonl"), [], "row 2 is not JSON"),
    "encoding": (lambda d: write(d, TEXT), ["--encoding", "latin-x"], "there is no encoding 'latin-x'"),
    "encoding that is not of text": (lambda d: write(d, TEXT), ["--encoding", "hex"], "no encoding 'hex'"),
    "half a character": (
        lambda d: write(d, '{"a": "x", "b": 1}\n{"a": "\\ud800", "b": 2}\n', "a.jsonl"),
        [],
        "a.jsonl row 2 has half a character, \\ud800",
    ),
    "a number of many digits": (
        lambda d: write(d, '{"a": ' + "9" * 5000 + "}\n", "a.jsonl"),
        [],
        "a.jsonl row 1 has a number of thousands of digits",
    ),
    "documents as labels": (
        lambda d: write(d, TEXT + "short," + "long " * 300 + "\n"),
        [],
        "row 13: a label of 1,499 characters; is 'topic' the column of text?",
    ),
    "n-grams in superscript": (lambda d: write(d, TEXT), ["--ngrams", "²,²"], "--ngrams takes two numbers"),
    "not a number": (lambda d: write(d, TEXT), ["--min-df", "nan"], "--min-df takes a number, got 'nan'"),
    "twice": (lambda d: write(d, "x,x,y\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n"), [], "more than one column 'x'"),
    "one family of categories for vectors": (
        lambda d: write(d, "1 1:2 2:1\n0 1:1\n" * 5, "a.svm"),
        ["--family", "categorical"],
        "--family categorical is for tables, and ",
    ),
    "redundancy of categories": (
        lambda d: write(d, "x,t,y\n1,u,a\n3,v,b\n5,u,a\n7,v,b\n"),
        ["--redundancy", "0.5", "--label", "y", "--categorical", "t"],
        "--redundancy is of numbers of one family: leave out --categorical",
    ),
    "no label in some rows": (
        lambda d: write(d, "x,y\n1,a\n2,b\n3,\n4,\n"),
        ["--label", "y"],
        "2 of 4 rows of ",
    ),
    "folds": (lambda d: write(d, TEXT), ["--folds", "some"], "--folds takes holdout, hash, or a number"),
    "n-grams": (lambda d: write(d, TEXT), ["--ngrams", "one"], "--ngrams takes two numbers"),
    "too many features": (lambda d: write(d, TEXT), ["--n-features", "99"], "n_features=99 is more than"),
    "stop words": (lambda d: write(d, TEXT), ["--stop-words", "nofile"], "there is no file nofile"),
    "no words": (lambda d: write(d, "body,topic\n! ! !,a\n? ? ?,b\n"), ["--text", "body"], ""),
}  # fmt: skip


def assert_refused(done, says):
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("maxdisc: ")
    assert done.err.count("\n") == 1, done.err
    assert says in done.err


@pytest.mark.parametrize("what", BAD_DATA)
def test_fit_refuses(run, tmp_path, what):
    make, arguments, says = BAD_DATA[what]
    data = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert_refused(run("fit", data, "-o", tmp_path / "m.maxdisc", *arguments), says)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.filterwarnings("ignore:class .* has a single row")
@pytest.mark.parametrize("way", [[], ["--stream"]])
@pytest.mark.parametrize("kind", ["text", "table"])
def test_a_quantity_is_not_a_label(run, tmp_path, kind, way):
    column = "some words about {}" if kind == "text" else "{}"
    rows = [f"{column.format(n % 7)},{n / 8}" for n in range(40)]
    data = write(tmp_path, "\n".join(["given,price", *rows, *rows[:10]]) + "\n")
    plain = ["--evidence", "raw", "--n-features", "all", "--smoothing", "1"]
    fit = ["fit", data, "--label", "price", *way, *plain, "-o", tmp_path / "m.maxdisc"]
    done = run(*fit)
    assert_refused(done, "column 'price' of")
    assert "holds 40 different numbers in 50 rows: is it a quantity?" in done.err
    assert run(*fit, "--categorical", "price").code == 0
    names = write(tmp_path, data.read_text().replace(".", "th "), "names.csv")
    assert run("fit", names, *fit[2:], "--force").code == 0


@pytest.mark.filterwarnings("default:class .* has a single row")
@pytest.mark.filterwarnings("default:column .* varies")
def test_what_is_fitted_all_the_same_is_warned_of_in_one_line(run, tmp_path):
    rows = [f"{1e15 + n % 5},{n % 7 / 8},{'ab'[n % 2]}" for n in range(40)]
    data = write(tmp_path, "\n".join(["far,near,y", *rows, f"{1e15 + 2},0.4,alone"]) + "\n")
    done = run("fit", data, "--label", "y", "--folds", "2", "-o", tmp_path / "m.maxdisc")
    assert done.code == 0
    warned = [line for line in done.err.splitlines() if "varies" in line or "single row" in line]
    assert [line.split(" (")[0][:40] for line in sorted(warned)] == [
        "class 'alone' has a single row, and even",
        "column 'far' varies by less than 1,000 t",
    ]


def test_output_that_exists_is_refused_before_anything_is_read(run, files, tmp_path):
    model = tmp_path / "m"
    model.write_text("precious")
    done = run("fit", tmp_path / "not even there.csv", "-o", model)
    assert_refused(done, "exists: replace it with --force")
    assert model.read_text() == "precious"
    assert run("fit", files / "train.csv", "-o", model, "--force").code == 0
    for arguments in (
        ("predict", "no model", "no data", "-o", model),
        ("report", "no model", "--data", "no data", "-o", model),
    ):
        assert_refused(run(*arguments), "--force")


@pytest.mark.parametrize(
    ("output", "says"),
    [("", "is a folder"), ("no/such/m", "is not a folder: make it first"), ("/dev/null", "not a file")],
)
def test_output_that_cannot_be(run, files, tmp_path, output, says):
    assert_refused(run("fit", files / "train.csv", "-o", tmp_path / output), says)


def test_input_is_never_output(run, files, tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes((files / "test.csv").read_bytes())
    (tmp_path / "link.csv").symlink_to(data)
    for output in (data, tmp_path / "link.csv"):
        done = run("predict", files / "topics.maxdisc", data, "-o", output, "--force")
        assert_refused(done, "is both input and output")
        done = run("predict", files / "topics.maxdisc", tmp_path / "*.csv", "-o", output, "--force")
        assert_refused(done, "is both input and output")
    assert data.read_bytes() == (files / "test.csv").read_bytes()


@pytest.mark.parametrize("named", ["parts/*.csv", "parts"])
@pytest.mark.parametrize("command", ["fit", "predict", "report"])
def test_input_of_a_glob_or_a_folder_is_never_output(run, files, tmp_path, command, named):
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("a.csv", "b.csv"):
        write(parts, (files / "test.csv").read_bytes(), name)
    data, model = tmp_path / named, files / "topics.maxdisc"
    before = {
        "fit": ["fit", data],
        "predict": ["predict", model, data],
        "report": ["report", model, "--data", data],
    }
    done = run(*before[command], "-o", parts / "b.csv", "--force")
    assert_refused(done, "is both input and output")
    assert (parts / "b.csv").read_bytes() == (files / "test.csv").read_bytes()


def test_documents_model_and_stop_words_are_never_output(run, files, tmp_path):
    for kind in ("ham", "spam"):
        (tmp_path / "mail" / kind).mkdir(parents=True)
        write(tmp_path / "mail" / kind, f"some words about {kind}", "1.txt")
    output = tmp_path / "mail" / "ham" / "1.txt"
    assert_refused(run("fit", tmp_path / "mail", "-o", output, "--force"), "is both input and output")
    model = write(tmp_path, (files / "topics.maxdisc").read_bytes(), "model.csv")
    done = run("predict", model, files / "test.csv", "-o", model, "--force")
    assert_refused(done, "is both input and output")
    assert model.read_bytes() == (files / "topics.maxdisc").read_bytes()
    words = write(tmp_path, "the and", "words.txt")
    done = run("fit", files / "train.csv", "--stop-words", words, "-o", words, "--force")
    assert_refused(done, "is both input and output")


def test_a_bad_row_far_down_leaves_the_old_predictions(run, files, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text((files / "test.csv").read_text() + "ragged\n")
    out = tmp_path / "out.csv"
    out.write_text("precious")
    with batches_of(8):
        done = run("predict", files / "topics.maxdisc", data, "-o", out, "--force")
    assert_refused(done, "row 61: 1 field")
    assert out.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "out.csv"]


@pytest.mark.parametrize("command", [["predict"], ["evaluate"], ["rank"], ["explain"], ["info"], ["report"]])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "does not exist"),
        (b"", ""),
        (b"not a model, but a text", ""),
        (bytes(1000), ""),
        ("folder", ""),
    ],
)
def test_what_is_no_model(run, files, tmp_path, command, content, says):
    model = tmp_path / "m.maxdisc"
    if content == "folder":
        model.mkdir()
    elif content is not None:
        model.write_bytes(content)
    rest = {
        "predict": [files / "test.csv"],
        "evaluate": [files / "test.csv"],
        "explain": ["some text"],
        "report": ["--data", files / "test.csv", "-o", tmp_path / "r.html"],
    }.get(command[0], [])
    done = run(*command, model, *rest)
    assert_refused(done, says)
    assert "m.maxdisc" in done.err
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_model_fitted_on_other_columns(run, files, tmp_path, command):
    text = (files / "iris.csv").read_text().replace("petal_w", "petal_width", 1)
    data = write(tmp_path, text)
    done = run(command, files / "iris.maxdisc", data)
    assert_refused(done, "iris.maxdisc was fitted on other columns")
    assert "has no 'petal_w': did you mean 'petal_width'?" in done.err
    svm = write(tmp_path, "1 1:2\n", "a.svm")
    assert_refused(run(command, files / "iris.maxdisc", svm), "but")
    assert_refused(run(command, files / "topics.maxdisc", svm), "but")


def test_a_text_where_the_model_wants_a_number(run, files, tmp_path):
    rows = (files / "iris.csv").read_text().splitlines()
    rows[10] = rows[10].replace("3.1", "tall")
    done = run("predict", files / "iris.maxdisc", write(tmp_path, "\n".join(rows)))
    assert_refused(done, "row 10, column 'sepal_w': 'tall' is not a number")


def test_rows_that_are_left_out_still_count(run, tmp_path):
    rows = [f"{i},{'' if i <= 10 else 'ab'[i % 2]}" for i in range(1, 60)]
    rows[30] = "oops,a"
    data = write(tmp_path, "x,kind\n" + "\n".join(rows) + "\n")
    done = run("fit", data, "--label", "kind", "--skip-unlabelled", "-o", tmp_path / "m")
    assert_refused(done, "row 31, column 'x': 'oops' is not a number")


def test_explain_refuses_an_encoding_that_is_not_of_text(run, files):
    done = run("explain", files / "topics.maxdisc", "-", "--encoding", "hex", stdin=b"00")
    assert_refused(done, "there is no encoding 'hex'")


def test_evaluate_needs_labels_it_knows(run, files, tmp_path):
    data = write(tmp_path, "body,kind\nthe moon,space\n")
    assert_refused(run("evaluate", files / "topics.maxdisc", data), "with --label")
    data = write(tmp_path, "body,topic\nthe moon,astronomy\n")
    assert_refused(run("evaluate", files / "topics.maxdisc", data), "is known to ")
    data = write(tmp_path, "body,topic\nthe moon,space\nthe ice,\n")
    assert_refused(run("evaluate", files / "topics.maxdisc", data), "--skip-unlabelled")
    done = run("evaluate", files / "topics.maxdisc", data, "--skip-unlabelled", "--json")
    assert json.loads(done.out)["rows"] == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fitt"], "No such command 'fitt'"),
        (["fit"], "Missing"),
        (["fit", "a.csv"], "--output"),
        (["fit", "a.csv", "-o", "m", "--txet", "b"], "--txet"),
        (["fit", "a.csv", "-o", "m", "--family", "cauchy"], "cauchy"),
        (["predict", "m", "a.csv", "--explain", "-1"], "--explain"),
        (["predict", "m", "a.csv", "-o", "out.xls"], "cannot tell the format of out.xls"),
    ],
)
def test_wrong_usage(run, arguments, says):
    assert_refused(run(*arguments), says)


def test_a_folder_without_labels_is_told_how_to_have_some(run, tmp_path):
    folder = tmp_path / "flat"
    folder.mkdir()
    for i in range(4):
        (folder / f"{i}.txt").write_text("some words here")
    done = run("fit", folder, "-o", tmp_path / "m")
    assert_refused(done, "tells no labels: put its files into a folder for each label.")


def test_columns_that_are_not_there_can_be_added_empty(run, files, tmp_path):
    lines = (files / "iris.csv").read_text().splitlines()
    names = lines[0].split(",")
    at = names.index("petal_w")
    cut = "\n".join(",".join(c for i, c in enumerate(line.split(",")) if i != at) for line in lines)
    done = run("predict", files / "iris.maxdisc", write(tmp_path, cut))
    assert_refused(done, "has no 'petal_w'")
    assert "add what is missing, with empty cells" in done.err


def test_another_file_is_meant_only_if_its_name_is_alike_without_the_ending(run, tmp_path):
    (tmp_path / "one.csv").write_text("a,y\n1,p\n")
    done = run("fit", tmp_path / "nofile.csv", "--label", "y", "-o", tmp_path / "m")
    assert_refused(done, "nofile.csv does not exist.")
