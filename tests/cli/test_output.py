"""What is written is written whole, or the command fails; what a terminal gets is shown, and not obeyed."""

from __future__ import annotations

import builtins
import contextlib
import csv
import errno
import io
import json
import os
import re
import resource
import select
import subprocess
import sys
import time
import unicodedata
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from maxdisc import MaxDiscClassifier
from maxdisc.cli import demo, doctor, main
from maxdisc.cli.app import app
from maxdisc.cli.comparison import peers
from maxdisc.files import open_sink
from maxdisc.testing import batches_of

#: When a report was made.
DATE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
MAXDISC = [sys.executable, "-m", "maxdisc"]


class Calls:
    """What every call that writes does: take it all, but for what a test wants of it."""

    def __init__(self, answer=lambda _, size: size):
        self.answer, self.number = answer, count(1)

    def taken(self, data):
        """Return how many bytes are taken, or None; or raise."""
        return self.answer(next(self.number), len(data))


class Standard(io.RawIOBase):
    """Standard output of an unbuffered Python: what is below takes as much as it likes."""

    def __init__(self, calls=None, is_terminal=False):
        self.calls, self.is_terminal = calls or Calls(), is_terminal
        self.content, self.ready = bytearray(), os.open(os.devnull, os.O_WRONLY)

    def write(self, data):
        size = self.calls.taken(data)
        self.content += bytes(data)[: size or 0]
        return size

    def writable(self):
        return True

    def isatty(self):
        return self.is_terminal

    def fileno(self):
        return self.ready  # it can be waited for, and may always be written

    def close(self):
        if not self.closed:
            os.close(self.ready)
        super().close()

    def text(self):
        return io.TextIOWrapper(self, "utf-8", write_through=True)


class Disk(io.FileIO):
    """A new file whose disk takes as much as it likes."""

    calls = Calls()

    def write(self, data):
        size = self.calls.taken(data)
        return None if size is None else super().write(bytes(data)[:size])


class Full:
    """A disk without space, or a pipe without a reader, from a call on; it still takes half of that one."""

    def __init__(self, due, number):
        self.due, self.number = due, number

    def __call__(self, number, size):
        if number < self.due:
            return size
        if number == self.due and size > 1:
            return size // 2
        raise OSError(self.number, os.strerror(self.number))


@pytest.fixture
def disturbed(monkeypatch, capsys, tmp_path):
    """Run a command, with every write answered as told; its code, standard output and error, and files."""
    opened = open
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)  # it is among what is written

    def new_file(path, mode="r", *args, **kwargs):
        if mode != "xb":
            return opened(path, mode, *args, **kwargs)
        return io.BufferedWriter(Disk(path, "xb"), 1024)

    def command(*arguments, output=None, files=None):
        standard = Standard(output)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", standard.text())
            patch.setattr(builtins, "open", new_file)
            patch.setattr(Disk, "calls", files or Calls())
            code = main([str(a) for a in arguments])
        left = {path.name: DATE.sub(b"", path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()}
        return code, bytes(standard.content), capsys.readouterr().err, left

    return command


FIT = ["fit", "{files}/train.csv", "--text", "body", "--label", "topic", "--evidence", "raw", "-q"]
FIT += ["--n-features", "all", "-o", "{new}/m.maxdisc"]
EVALUATE = ["evaluate", "{files}/topics.maxdisc", "{files}/test.csv", "-q"]
PREDICT = ["predict", "{files}/topics.maxdisc", "{files}/test.csv", "--keep", "*", "-q"]
EXPLAIN = ["explain", "{files}/topics.maxdisc", "the moon and the goal"]
COMPARE = ["compare", "{files}/topics.maxdisc", "{files}/topics.maxdisc", "{files}/test.csv", "-q"]
BASELINES = ["baselines", "{files}/iris.csv", "--label", "species", "--folds", "2", "-q"]
REPORT = ["report", "{files}/iris.maxdisc", "--data", "{files}/iris.csv", "-q", "-o"]
COMMANDS = {
    "help": ["--help"],
    "version": ["--version"],
    "fit": FIT,
    "evaluate": EVALUATE,
    "predict": PREDICT,
    "predict-json": [*PREDICT, "--json"],
    "predict-csv": [*PREDICT, "-o", "{new}/out.csv"],
    "predict-parquet": [*PREDICT, "-o", "{new}/out.parquet"],
    "rank": ["rank", "{files}/topics.maxdisc"],
    "explain": EXPLAIN,
    "report-md": [*REPORT, "{new}/r.md"],
    "export": ["export", "{files}/iris.maxdisc", "-o", "{new}/m.onnx"],
    "card": ["card", "{files}/topics.maxdisc"],
    "info": ["info", "{files}/topics.maxdisc"],
    "info-json": ["info", "{files}/topics.maxdisc", "--json"],
}
#: The same in other forms.
MORE = {
    "compare": COMPARE,
    "compare-json": [*COMPARE, "--json"],
    "baselines": BASELINES,
    "baselines-json": [*BASELINES, "--json"],
    "card-file": ["card", "{files}/iris.maxdisc", "-o", "{new}/card.md"],
    "doctor": ["doctor", "-q"],
    "doctor-json": ["doctor", "-q", "--json"],
    "demo": ["demo"],
    "rank-class": ["rank", "{files}/topics.maxdisc", "--class", "space"],
    "explain-row": ["explain", "{files}/iris.maxdisc", "--data", "{files}/iris.csv"],
    "predict-top": [*PREDICT, "--top", "2", "--abstain-below", "0.9"],
    "help-of-a-command": ["predict", "--help"],
    "no-command": [],
    "fit-checkpoint": [*FIT, "--checkpoint", "{new}/kept", "--checkpoint-every", "0"],
    "fit-json": [*FIT, "--json"],
    "evaluate-json": [*EVALUATE, "--json"],
    "predict-tsv": [*PREDICT, "-o", "{new}/out.tsv"],
    "predict-jsonl": [*PREDICT, "-o", "{new}/out.jsonl"],
    "rank-json": ["rank", "{files}/topics.maxdisc", "--json"],
    "explain-json": [*EXPLAIN, "--json"],
    "report-json": [*REPORT, "{new}/r.json"],
    "report-html": [*REPORT, "{new}/r.html"],
}


def hindered(number, size):
    """A signal, a full pipe, then some bytes: again and again, but never a failure."""
    if number % 3 == 1:
        raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
    return None if number % 3 == 2 else min(size, 1 + number % 7)


def short(number, size):
    """On a disk: some bytes, or a signal."""
    if number % 3 == 1:
        raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
    return min(size, 1 + number % 7)


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Leave out of commands what takes seconds and writes nothing."""
    found = {"works": True, "reason": None, "kernels": 3, "seconds": 4.5}
    monkeypatch.setattr(doctor, "check_compiled_code", lambda: found)
    monkeypatch.setattr(peers, "peers_of", lambda *_: {})
    X, y = np.array([[1.0, 2.0], [3.0, 1.0]] * 9), np.array(["few", "many"] * 9)
    task = demo.Task("Numbers", "rows", "columns", X, y, {}, "none", np.array(["first", "second"]))
    made = demo.Result(0.9, 0.3, 0.1), MaxDiscClassifier("poisson").fit(X, y)
    monkeypatch.setattr(demo, "cross_validate", lambda *_: made)
    monkeypatch.setattr(demo, "docstring_task", lambda: task)
    monkeypatch.setattr(demo, "breast_cancer_task", lambda: task)
    monkeypatch.chdir(tmp_path)


def test_every_command_is_tried():
    names = {name for name in get_command(app).commands if name != "serve"}  # which answers over HTTP
    assert names == {words[0] for words in (COMMANDS | MORE).values() if words and words[0][0] != "-"}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", [*COMMANDS, *(pytest.param(name, marks=pytest.mark.whole) for name in MORE)])
def test_output_is_whole_or_the_command_fails(disturbed, files, tmp_path, name):
    if name == "export":
        pytest.importorskip("onnx")
    arguments = [argument.format(files=files, new=tmp_path) for argument in (COMMANDS | MORE)[name]]

    def clean():
        for path in sorted(tmp_path.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()

    with batches_of(30):
        output, written = Calls(), Calls()
        code, due, said, due_files = disturbed(*arguments, output=output, files=written)
        assert (code, said) == (0, "")
        n_calls = {"output": next(output.number) - 1, "files": next(written.number) - 1}
        assert sum(n_calls.values()) > 0
        clean()
        assert disturbed(*arguments, output=Calls(hindered), files=Calls(short)) == (0, due, "", due_files)
        clean()
        for where, number, failure in (
            *(("output", number, errno.EPIPE) for number in range(1, n_calls["output"] + 1)),
            *(("output", number, errno.ENOSPC) for number in range(1, n_calls["output"] + 1)),
            *(("files", number, errno.ENOSPC) for number in range(1, n_calls["files"] + 1)),
        ):
            code, got, said, left = disturbed(*arguments, **{where: Calls(Full(number, failure))})
            if failure == errno.EPIPE:
                assert (code, said) == (141, "")
            else:
                assert code == 2
                assert said.startswith("maxdisc: ")
                assert said.count("\n") == 1
                assert "no space left" in said
            assert due.startswith(got)
            assert where == "files" or got != due
            kept = {file: content for file, content in left.items() if not file.startswith("step-")}
            assert kept.items() <= due_files.items()
            clean()


@pytest.mark.parametrize("failure", [errno.ENOSPC, errno.EPIPE, errno.EBADF])
def test_standard_error_that_is_lost_changes_nothing_else(run, files, tmp_path, monkeypatch, failure):
    monkeypatch.setattr(sys, "stderr", Standard(Calls(Full(1, failure))).text())
    arguments = ["predict", files / "topics.maxdisc", files / "test.csv", "-o", tmp_path / "out.csv"]
    assert run(*arguments).code == 0  # it has something to say
    assert (tmp_path / "out.csv").read_text().count("\n") == 61
    assert run(*arguments).code == 2


def test_standard_output_that_is_closed(run, files, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    for arguments in (["--version"], ["info"], ["info", "--json"], ["predict", files / "test.csv"]):
        command, *rest = arguments
        model = [] if command == "--version" else [files / "topics.maxdisc"]
        done = run(command, *model, *rest)
        assert (done.code, done.err) == (2, "maxdisc: standard output: bad file descriptor.\n")
    done = run("predict", files / "topics.maxdisc", files / "test.csv", "-o", tmp_path / "out.csv")
    assert done.code == 0  # nothing is written there


def test_standard_input_that_is_closed(disturbed, files, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    predict = ["predict", files / "topics.maxdisc"]
    assert disturbed(*predict, files / "test.csv")[0] == 0
    code, _, said, _ = disturbed(*predict, "-")
    assert (code, said) == (2, "maxdisc: standard input is empty.\n")


def test_what_a_library_makes_of_a_failure_does_not_matter(run, files, monkeypatch):
    def swallowed(text):
        with contextlib.suppress(Exception):
            sys.stdout.write(text + "\n")

    monkeypatch.setattr(builtins, "print", swallowed)
    for failure, code in ((errno.ENOSPC, 2), (errno.EPIPE, 141)):
        monkeypatch.setattr(sys, "stdout", Standard(Calls(Full(1, failure))).text())
        done = run("info", files / "topics.maxdisc", "--json")
        assert done.code == code
        assert done.err.count("\n") == (code == 2)


# ---------------------------------------------------------------------- processes


def started(*arguments_and_output, **options):
    """A process of an unbuffered Python."""
    *arguments, stdout = arguments_and_output
    options["env"] = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [*MAXDISC, *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE, **options
    )


@pytest.fixture(scope="module")
def long(files, tmp_path_factory):
    """Arguments of a command that writes more than a pipe holds, and what it writes."""
    lines = (files / "test.csv").read_text().splitlines()
    rows = tmp_path_factory.mktemp("long") / "long.csv"
    rows.write_text("\n".join([lines[0], *(lines[1:] * 60)]))
    arguments = ["predict", files / "topics.maxdisc", rows, "--keep", "*"]
    due = rows.with_name("due.csv")
    assert main([*map(str, arguments), "-q", "-o", str(due)]) == 0
    assert due.stat().st_size > 2**18
    return arguments, due.read_bytes()


def test_a_pipe_that_does_not_block_gets_everything(long):
    arguments, due = long
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with started(*arguments, writing) as running, open(reading, "rb") as pipe:
        os.close(writing)
        select.select([pipe], [], [])
        time.sleep(0.5)  # until it is full; were it not, the end would be the same
        got = pipe.read()
        assert running.stderr.read() == b""
    assert running.returncode == 0
    assert got == due


def test_a_disk_without_space_for_standard_output(long, tmp_path):
    arguments, due = long

    def little_space():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    with (tmp_path / "out").open("wb") as out, started(*arguments, out, preexec_fn=little_space) as running:
        assert running.stderr.read() == b"maxdisc: standard output: file too large.\n"
    assert running.returncode == 2
    assert (tmp_path / "out").read_bytes() == due[:100_000]


# ---------------------------------------------------------------------- terminals

#: It names the window, clears the screen and turns the writing round.
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202ered"
NAMED = ["--text", f"body{ESCAPE}", "--label", f"topic{ESCAPE}"]


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """A folder with rows that were written by nobody's friend, and a model of them."""
    folder = tmp_path_factory.mktemp(f"strange{ESCAPE}".replace("/", ""))
    rows = [
        {f"body{ESCAPE}": f"{word} news {i}", f"topic{ESCAPE}": f"{word} topic{ESCAPE}"}
        for i in range(30)
        for word in ("moon", "goal")
    ]
    written(folder / "rows.csv", rows)
    assert main(["fit", str(folder / "rows.csv"), *NAMED, "-q", "-o", str(folder / "m.maxdisc")]) == 0
    rare = [*rows, rows[0] | {f"topic{ESCAPE}": f"rare{ESCAPE}"}]
    written(folder / "rare.csv", rare)
    hues = [f"{hue}{ESCAPE}" for hue in ("red", "blue")]
    table = [
        {f"hue{ESCAPE}": hues[i % 2], "n": i % 7, f"topic{ESCAPE}": f"{i % 2}{ESCAPE}"} for i in range(40)
    ]
    # As JSON: their names have semicolons, by which cells could be parted.
    (folder / "table.jsonl").write_text("\n".join(map(json.dumps, table)))
    (folder / "new.jsonl").write_text(json.dumps(table[0] | {f"hue{ESCAPE}": f"green{ESCAPE}"}))
    fit = ["fit", str(folder / "table.jsonl"), *NAMED[2:], "-q", "-o", str(folder / "t.maxdisc")]
    assert main([*fit, "--n-features", "all"]) == 0
    return folder


def written(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ["fit", "{strange}/rows.csv", "-o", "{new}/m" + ESCAPE, *NAMED]),
        (0, ["evaluate", "{model}", "{strange}/rows.csv"]),
        (0, ["evaluate", "{model}", "{strange}/rows.csv", "--json"]),
        (0, ["predict", "{model}", "{strange}/rows.csv", "--keep", "*", "--explain", "2"]),
        (0, ["predict", "{model}", "{strange}/rows.csv", "--keep", "*", "--json"]),
        (0, ["predict", "{model}", "{strange}/rows.csv", "-o", "{new}/" + ESCAPE + ".csv"]),
        (0, ["rank", "{model}"]),
        (0, ["rank", "{model}", "--class", "moon topic" + ESCAPE]),
        (0, ["rank", "{model}", "--json"]),
        (0, ["explain", "{model}", "moon and " + ESCAPE]),
        (0, ["explain", "{model}", "moon and " + ESCAPE, "--json"]),
        (0, ["info", "{model}"]),
        (0, ["info", "{model}", "--json"]),
        (0, ["card", "{model}"]),
        (0, ["compare", "{model}", "{model}", "{strange}/rows.csv"]),
        (0, ["compare", "{model}", "{model}", "{strange}/rows.csv", "--json"]),
        (2, ["compare", "{model}", "{table}", "{strange}/rows.csv"]),
        (2, ["baselines", "{strange}/rare.csv", *NAMED]),
        (2, ["baselines", "{strange}/rows.csv", "--label", ESCAPE]),
        (0, ["info", "{table}"]),
        (0, ["card", "{table}"]),
        (0, ["rank", "{table}"]),
        (0, ["explain", "{table}", "--data", "{strange}/table.jsonl"]),
        (0, ["explain", "{table}", "--data", "{strange}/new.jsonl", "--json"]),
        (0, ["predict", "{table}", "{strange}/new.jsonl", "--explain", "2", "--probabilities"]),
        (0, ["predict", "{table}", "{strange}/new.jsonl", "-o", "{new}/" + ESCAPE + ".csv"]),
        (0, ["evaluate", "{table}", "{strange}/table.jsonl"]),
        (2, ["explain", "{table}", "--data", "{strange}/table.jsonl", "--against", ESCAPE]),
        (2, ["export", "{model}", "-o", "{new}/" + ESCAPE + "/m.onnx"]),
        (2, ["report", "{model}", "--data", "{strange}/table.jsonl", "-o", "{new}/" + ESCAPE]),
        (2, ["serve", "{strange}/" + ESCAPE]),
        (2, ["predict", "{model}", "red" + ESCAPE]),
        (2, ["rank", "{model}", "--class", ESCAPE]),
        (2, ["--debug", "rank", "{model}", "--class", ESCAPE]),
        (2, [ESCAPE]),
        (2, ["rank", "{model}", "--" + ESCAPE]),
    ],
)
def test_what_a_terminal_gets_is_not_obeyed(strange, tmp_path, monkeypatch, code, arguments):
    if arguments[0] == "serve":
        pytest.importorskip("fastapi")
    given = {"strange": strange, "model": strange / "m.maxdisc", "new": tmp_path}
    given["table"] = strange / "t.maxdisc"
    output, error = Standard(is_terminal=True), Standard(is_terminal=True)
    monkeypatch.setenv("MAXDISC_DEBUG", "")
    monkeypatch.setenv("TERM", "dumb")  # rich says nothing by escape sequences then
    monkeypatch.setenv("COLUMNS", "500")  # so that no path is cut
    monkeypatch.setattr(sys, "stdout", output.text())
    monkeypatch.setattr(sys, "stderr", error.text())
    assert main([argument.format(**given) for argument in arguments]) == code
    result, aside = output.content.decode(), error.content.decode()
    assert "]0;ow" in (aside if code or (arguments[0] == "predict" and "-o" in arguments) else result)
    assert not {c for c in result + aside if unicodedata.category(c) in ("Cc", "Cf") and c != "\n"}


def test_rows_on_a_terminal_are_those_of_a_file(files, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    arguments = ["predict", str(files / "topics.maxdisc"), str(files / "test.csv")]
    file, terminal, aside = Standard(), Standard(is_terminal=True), Standard(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", aside.text())
    for output in (file, terminal):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", output.text())
            assert main(arguments) == 0
    assert terminal.content == file.content
    assert file.content.count(b"\n") == 61
    assert b"predicting" in aside.content  # the bar, of the run whose rows were not to be seen


def test_what_no_terminal_gets_is_exact(strange, monkeypatch):
    arguments = ["predict", str(strange / "m.maxdisc"), str(strange / "rows.csv"), "--keep", "*"]
    for form in ([], ["--json"]):
        output = Standard()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", output.text())
            assert main([*arguments, *form]) == 0
        lines = output.content.decode().splitlines()
        rows = [json.loads(line) for line in lines] if form else list(csv.DictReader(lines))
        assert {row["label"] for row in rows} == {f"{word} topic{ESCAPE}" for word in ("moon", "goal")}
        assert [row[f"topic{ESCAPE}"] for row in rows] == [row["label"] for row in rows]


def test_characters_that_standard_output_does_not_have(run, strange, monkeypatch):
    for arguments in (["evaluate"], ["evaluate", "--json"]):
        output = Standard()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(output, "ascii", write_through=True))
        done = run(arguments[0], strange / "m.maxdisc", strange / "rows.csv", *arguments[1:])
        assert (done.code, done.err) == (0, "")
        assert output.content.isascii()
    labels = {row["label"] for row in json.loads(output.content)["classes"]}
    assert labels == {f"{word} topic{ESCAPE}" for word in ("moon", "goal")}


# ---------------------------------------------------------------------- spreadsheets

cells = st.text("=+-@\t\r\n0123456789.eE a'\"\uff1d", max_size=6)


@pytest.mark.parametrize("form", ["csv", "tsv"])
@given(rows=st.lists(st.tuples(cells, cells), min_size=1), names=st.tuples(cells, cells))
def test_no_cell_is_a_formula_and_all_can_be_had_back(form, rows, names):
    file = io.BytesIO()
    sink = open_sink(file, form, names, [str, str], inert=True)
    sink.write([*zip(*rows, strict=True)])
    sink.close()
    text = io.StringIO(file.getvalue().decode(), newline="")
    written = list(csv.reader(text, delimiter="\t" if form == "tsv" else ","))
    for given_row, row in zip([names, *rows], written, strict=True):
        for before, after in zip(given_row, row, strict=True):
            assert after in (before, f"'{before}")
            if after.startswith(("\t", "\r", "\n")) or after.lstrip(" ").startswith(tuple("=+-@\uff1d")):
                assert re.fullmatch(r"[-+]?[0-9.]+([eE][-+]?[0-9]+)?", after.strip(" "))
                float(after)


def test_cells_for_spreadsheets(run, files, tmp_path):
    data = tmp_path / "rows.csv"
    formula = '=HYPERLINK("x")'
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([["body", "@n"], ["the moon", formula], ["the goal", "-1.5e3"]])
    arguments = ["predict", files / "topics.maxdisc", data, "--keep", "@n"]
    safe, exact = run(*arguments, "--safe-csv").rows, run(*arguments).rows
    assert [row["'@n"] for row in safe] == [f"'{formula}", "-1.5e3"]
    assert [row["@n"] for row in exact] == [formula, "-1.5e3"]
    assert [row["probability"] for row in safe] == [row["probability"] for row in exact]
    for more in (["--json"], ["-o", tmp_path / "out.parquet"]):
        done = run(*arguments, "--safe-csv", *more)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("maxdisc: --safe-csv is for CSV and TSV")
        assert done.err.count("\n") == 1
