"""``fit --stream``: the model of the rows in memory, however they come and however often it is stopped."""

from __future__ import annotations

import csv
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris

from maxdisc import load
from maxdisc.cli import main
from maxdisc.cli.fit import streaming
from maxdisc.engines import labelled_stream as streams
from maxdisc.files import Batch, recut
from maxdisc.model_file.persistence import describe
from maxdisc.selection import held_out
from maxdisc.testing import batches_of
from tests.conftest import examples

#: A fit in a process of its own, with small batches that take their time.
SLOWLY = """
import sys, time
from maxdisc.cli import main
from maxdisc.cli.fit import streaming
from maxdisc.testing import batches_of
batches = streaming.Streaming._batches
def slowly(self, done):
    for part in batches(self, done):
        time.sleep(0.025)
        yield part
streaming.Streaming._batches = slowly
with batches_of(12):
    sys.exit(main(sys.argv[1:]))
"""


def documents(n, seed):
    """Short texts of three topics, no two alike."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        topic = ("space", "hockey", "cooking")[i % 3]
        words = [
            *rng.choice([f"{topic}{k}" for k in range(5)], 3),
            *rng.choice([f"any{k}" for k in range(40)], 9),
        ]
        yield {"id": i, "body": " ".join(words), "topic": topic}


def flowers():
    data = load_iris()
    names = ("sepal_l", "sepal_w", "petal_l", "petal_w")
    for x, c in zip(data.data.tolist(), data.target, strict=True):
        yield {**dict(zip(names, x, strict=True)), "species": str(data.target_names[c])}


def write_csv(path, rows):
    rows = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_parquet(path, rows):
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


WRITERS = {"csv": write_csv, "parquet": write_parquet, "jsonl": write_jsonl}


def classifier(path):
    model = load(path)
    return model[-1] if hasattr(model, "steps") else model


def same_model(one, other):
    """What was learnt is the same to the last bit; files may name their data otherwise."""
    a, b = classifier(one), classifier(other)
    assert a.n_selected_ == b.n_selected_
    for x, y in (
        (a.moments_.sums, b.moments_.sums),
        (a.ranking_, b.ranking_),
        (a.decision_.weights, b.decision_.weights),
        (a.decision_.log_prior, b.decision_.log_prior),
    ):
        np.testing.assert_array_equal(x, y)


@pytest.fixture
def small():
    """Batches of a few rows, and segments of a few batches."""
    with batches_of(5):
        yield


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("form", WRITERS)
def test_the_model_is_that_of_the_rows_in_memory(run, tmp_path, form):
    rows = list(documents(150, seed=3))
    for part in range(3):
        WRITERS[form](tmp_path / f"part-{part}.{form}", rows[part * 40 : part * 40 + 40 + 30 * (part == 2)])
    data = [tmp_path / f"part-*.{form}", "--text", "body", "--label", "topic", "--keep-moments"]
    # Streams count words alone.
    assert run("fit", *data, "-o", tmp_path / "here", "--folds", "hash", "--ngrams", "1,1").code == 0
    done = run("fit", *data, "-o", tmp_path / "there", "--stream", "--json")
    assert done.code == 0, done.err
    assert done.json["rows"] == 150
    assert done.json["classes"] == 3
    here, there = classifier(tmp_path / "here"), classifier(tmp_path / "there")
    assert there.n_selected_ == here.n_selected_
    np.testing.assert_allclose(there.moments_.sums, here.moments_.sums, rtol=1e-12)
    np.testing.assert_allclose(there.decision_.weights, here.decision_.weights, rtol=1e-9)
    assert load(tmp_path / "there")[0].get_params() == load(tmp_path / "here")[0].get_params()
    assert there.get_params() == here.get_params()
    predicted = [run("predict", tmp_path / name, data[0]).rows for name in ("here", "there")]
    assert [row["label"] for row in predicted[0]] == [row["label"] for row in predicted[1]]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("more", [[], ["--structure", "joint"], ["--evidence", "raw"]], ids=str)
def test_tables_with_gaps(run, tmp_path, more):
    rows = [{**row, "sepal_w": "" if i % 11 == 0 else row["sepal_w"]} for i, row in enumerate(flowers())]
    data = [write_csv(tmp_path / "iris.csv", rows), "--label", "species", *more]
    assert run("fit", *data, "-o", tmp_path / "here", "--folds", "hash").code == 0
    done = run("fit", *data, "-o", tmp_path / "there", "--stream")
    assert done.code == 0, done.err
    here, there = classifier(tmp_path / "here"), classifier(tmp_path / "there")
    assert there.feature_names_in_.tolist() == here.feature_names_in_.tolist()
    X = pd.DataFrame([{name: row[name] or np.nan for name in here.feature_names_in_} for row in rows])
    if more[-1:] != ["joint"]:  # of few rows in memory, joint densities may have more features
        np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-6, atol=1e-12)
    predicted = [run("predict", tmp_path / name, data[0]).rows for name in ("here", "there")]
    agreed = [a["label"] == b["label"] for a, b in zip(*predicted, strict=True)]
    assert np.mean(agreed) == 1.0 if more[-1:] != ["joint"] else np.mean(agreed) > 0.97


@pytest.mark.usefixtures("small")
def test_svmlight_rows_of_any_width(run, tmp_path):
    rng = np.random.default_rng(0)
    lines = []
    for i in range(90):
        cells = sorted(set(rng.integers(1, 8 if i < 80 else 30, 4).tolist()))
        lines.append(f"{i % 2} " + " ".join(f"{c}:{1 + (c % 2 == i % 2) * 3}" for c in cells))
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    for name, more in (("here", ["--folds", "hash"]), ("there", ["--stream"])):
        done = run("fit", tmp_path / "rows.svm", "-o", tmp_path / name, *more)
        assert done.code == 0, done.err
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()


@examples(8)
@given(cuts=st.lists(st.integers(1, 119), max_size=6, unique=True), most=st.sampled_from([10, 64]))
def test_it_does_not_matter_how_rows_are_shared_out_among_files(cuts, most, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    rows = list(documents(120, seed=4))
    write_csv(folder / "whole.csv", rows)
    for number, (start, stop) in enumerate(zip([0, *sorted(cuts)], [*sorted(cuts), 120], strict=True)):
        write_csv(folder / f"part-{number}.csv", rows[start:stop])
    with batches_of(most):
        for name in ("whole", "part-*"):
            arguments = ["--text", "body", "--label", "topic", "--stream", "--keep-moments", "-q"]
            assert main(["fit", str(folder / f"{name}.csv"), "-o", str(folder / name[:5]), *arguments]) == 0
    same_model(folder / "whole", folder / "part-")


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=60),
    cuts=st.sets(st.integers(1, 59)),
    most_rows=st.integers(1, 9),
    most_bytes=st.integers(1, 90),
)
def test_recut_runs_are_bounded_and_depend_on_the_rows_alone(lengths, cuts, most_rows, most_bytes):
    table = pa.table({"text": ["x" * length for length in lengths]})
    ends = [0, *sorted(cut for cut in cuts if cut < len(lengths)), len(lengths)]
    batches = [Batch(table.slice(start, stop - start), "a", start + 1) for start, stop in pairwise(ends)]

    def texts(runs):
        return [[text for piece in run for text in piece.texts("text")] for run in runs]

    found = texts(recut(batches, most_rows, most_bytes))
    assert found == texts(recut([Batch(table, "a", 1)], most_rows, most_bytes))
    assert [text for run in found for text in run] == table["text"].to_pylist()
    for run in found:
        assert 1 <= len(run) <= most_rows
        assert len(run) == 1 or sum(len(text) + 8 for text in run) <= most_bytes
    for run in recut(batches, most_rows, most_bytes):
        for piece in run:
            assert piece.where(0) == f"a row {piece.first_row}"
            assert len(piece.texts("text")[0]) == lengths[piece.first_row - 1]


@pytest.mark.whole
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(held_out, "ENOUGH_ROWS", 300)
    peaks = {}
    for n in (600, 1200, 6000):  # the first only loads what is needed
        path = write_csv(tmp_path / f"{n}.csv", documents(n, seed=5))
        arguments = ["--text", "body", "--label", "topic", "-q", "-o", str(tmp_path / f"{n}.maxdisc")]
        tracemalloc.start()
        with batches_of(60):
            assert main(["fit", str(path), "--stream", *arguments]) == 0
        peaks[n] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks[6000] < 1.2 * peaks[1200], peaks


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--stream", "--search"], "--search needs the rows in memory"),
        (["--resume"], "name its folder with --checkpoint"),
        (["--stream", "--folds", "holdout"], "--stream takes --folds hash or a number of folds, got holdout"),
        (["--checkpoint", "c", "--structure", "joint"], "--checkpoint keeps no sums of joint densities"),
        (["--stream", "--structure", "joint", "--evidence", "refined"], "use calibrated"),
    ],
    ids=str,
)
def test_what_does_not_go_together(run, files, tmp_path, more, said):
    done = run("fit", files / "train.csv", "-o", tmp_path / "m", *more)
    assert done.code == 2
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "m").exists()


@pytest.mark.usefixtures("small")
def test_folders_of_documents(run, tmp_path):
    for row in documents(60, 11):
        path = tmp_path / "mail" / row["topic"] / f"{row['id']}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row["body"])
    # Streams calibrate their evidence; counts add up to the same bits in any order.
    data = ["fit", tmp_path / "mail", "--evidence", "calibrated", "--scale", "none", "-o"]
    done = run(*data, tmp_path / "m", "--checkpoint", tmp_path / "mail" / "kept")
    assert done.code == 2
    assert "is among the documents of" in done.err
    assert run(*data, tmp_path / "there", "--checkpoint", tmp_path / "kept").code == 0
    assert run(*data, tmp_path / "here", "--folds", "hash").code == 0
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()


def test_standard_input_is_read_only_once(run, files, tmp_path):
    rows = (files / "train.csv").read_bytes()
    done = run("fit", "-", "--format", "csv", "--stream", "-o", tmp_path / "m", stdin=rows)
    assert done.code == 2
    assert "can be read only once, and --stream reads several times" in done.err


@pytest.mark.filterwarnings("default:evidence")
def test_refined_evidence_is_calibrated_and_says_so(run, files, tmp_path):
    done = run(
        "fit", files / "train.csv", "--stream", "--evidence", "refined", "-o", tmp_path / "m", "--json"
    )
    assert done.code == 0
    assert "needs the rows in memory" in done.err
    assert done.json["evidence"]["kind"] == "calibrated"


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("skip", [False, True])
def test_rows_without_a_label(run, tmp_path, skip):
    rows = [
        {**row, "topic": "" if i in (70, 99) else row["topic"]} for i, row in enumerate(documents(120, 6))
    ]
    path = write_csv(tmp_path / "rows.csv", rows)
    arguments = [path, "--text", "body", "--label", "topic", "-o"]
    more = ["--skip-unlabelled"] if skip else []
    done = run("fit", *arguments, tmp_path / "there", "--stream", *more)
    if not skip:
        assert done.code == 2
        assert done.err.startswith(
            f"maxdisc: {path} row 71 has no label in column 'topic': leave such rows out"
        )
        return
    assert done.code == 0
    assert "2 of 120 rows" in done.err
    assert run("fit", *arguments, tmp_path / "here", "--folds", "hash", *more).code == 0
    np.testing.assert_array_equal(
        classifier(tmp_path / "here").ranking_, classifier(tmp_path / "there").ranking_
    )


@pytest.mark.usefixtures("small")
def test_a_bad_value_is_named_with_its_row(run, tmp_path):
    rows = list(flowers())
    write_csv(tmp_path / "a.csv", rows[:70])
    rows[140]["petal_l"] = "-3"
    write_csv(tmp_path / "b.csv", rows[70:])
    data = [tmp_path / "*.csv", "--label", "species", "--family", "poisson"]
    done = run("fit", *data, "-o", tmp_path / "m", "--stream", "--checkpoint", tmp_path / "c")
    assert done.code == 2
    assert f"{tmp_path / 'b.csv'} row 71" in done.err
    assert "petal_l" in done.err
    assert not (tmp_path / "m").exists()


@pytest.mark.usefixtures("small")
def test_a_damaged_file_among_good_ones_is_named(run, tmp_path):
    rows = list(documents(3000, 7))
    for part in range(3):
        write_parquet(tmp_path / f"{part}.parquet", rows[part * 1000 : part * 1000 + 1000])
    content = bytearray((tmp_path / "1.parquet").read_bytes())
    content[1000:9000] = bytes(8000)
    (tmp_path / "1.parquet").write_bytes(content)
    done = run(
        "fit", tmp_path / "*.parquet", "--text", "body", "--label", "topic", "--stream", "-o", tmp_path / "m"
    )
    assert done.code == 2
    assert done.err.startswith(f"maxdisc: {tmp_path / '1.parquet'} is damaged after row ")
    assert done.err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.parquet", "1.parquet", "2.parquet"]


# ---------------------------------------------------------------------- stopped and taken up again


@pytest.fixture(scope="module")
def slow_fit(tmp_path_factory):
    """A fit of many small batches: its arguments, and the model that it makes if nothing happens."""
    folder, rows = tmp_path_factory.mktemp("slow"), list(documents(600, seed=8))
    for part in range(3):
        write_csv(folder / f"rows-{part}", rows[part * 200 : part * 200 + 200])
    arguments = ["fit", folder / "rows-*", "--text", "body", "--label", "topic", "-o"]
    done = slowly(*arguments, folder / "due", "--stream")
    _, said = done.communicate(timeout=120)
    assert done.returncode == 0, said
    return arguments, (folder / "due").read_bytes()


def slowly(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-c", SLOWLY, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def stop_in_the_middle(running, checkpoint, end, after):
    """Send a signal some time after the first checkpoint is there."""
    while running.poll() is None and not list(checkpoint.glob("step-*")):
        time.sleep(0.01)
    time.sleep(after)
    running.send_signal(end)
    _, said = running.communicate(timeout=60)
    return said


@pytest.mark.whole
def test_killed_again_and_again_it_ends_with_the_same_file(slow_fit, tmp_path):
    arguments, due = slow_fit
    again = ["--checkpoint", tmp_path / "kept", "--checkpoint-every", "0", "--resume"]
    chance = random.Random(9)
    kills = 0
    for after in [*(chance.uniform(0.0, 2.2) for _ in range(4)), None]:
        running = slowly(*arguments, tmp_path / "model", *again)
        if after is None:
            _, said = running.communicate(timeout=120)
            assert running.returncode == 0, said
        else:
            stop_in_the_middle(running, tmp_path / "kept", signal.SIGKILL, after)
            kills += running.returncode == -signal.SIGKILL
            if (tmp_path / "model").exists():  # it was done before it could be killed
                assert (tmp_path / "model").read_bytes() == due
                (tmp_path / "model").unlink()
    assert kills >= 2
    assert (tmp_path / "model").read_bytes() == due
    assert not (tmp_path / "kept").exists()


@pytest.mark.whole
def test_stopped_by_hand_it_says_how_to_go_on(slow_fit, tmp_path):
    arguments, due = slow_fit
    kept = tmp_path / "kept"
    again = ["--checkpoint", kept, "--checkpoint-every", "0"]
    running = slowly(*arguments, tmp_path / "model", *again)
    said = stop_in_the_middle(running, kept, signal.SIGINT, 0.4)
    assert running.returncode == 130
    assert said == f"maxdisc: stopped: the same command with --resume goes on from {kept}.\n"
    assert not (tmp_path / "model").exists()
    assert {path.suffix for path in kept.iterdir()} == {".checkpoint"}
    running = slowly(*arguments, tmp_path / "model", *again)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 2
    assert said == f"maxdisc: {kept} holds the checkpoint of a run: resume that, or remove it.\n"
    # A disk that is full meanwhile.
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    running = slowly(*arguments, tmp_path / "model", *again, "--resume", preexec_fn=small_files_only)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 2
    assert said.count("\n") == 1
    assert said.startswith(f"maxdisc: no checkpoint could be written to {kept}: file too large;")
    assert "--resume" in said
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before
    running = slowly(*arguments, tmp_path / "model", *again, "--resume")
    _, said = running.communicate(timeout=60)
    assert running.returncode == 0, said
    assert (tmp_path / "model").read_bytes() == due


def small_files_only():
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))


@pytest.fixture
def interrupted(run, tmp_path, small, monkeypatch):  # noqa: ARG001  # it makes batches small
    """The arguments of a fit that was stopped in its second pass, and its checkpoint."""
    path = write_csv(tmp_path / "rows.csv", documents(120, seed=8))
    arguments = ["fit", path, "--text", "body", "--label", "topic", "-o", tmp_path / "m"]
    arguments += ["--checkpoint", tmp_path / "kept", "--checkpoint-every", "0"]
    rows_of, calls = streams.LabelledStream._rows_of, []

    def stop(self, part):
        calls.append(part)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return rows_of(self, part)

    with monkeypatch.context() as patch:
        patch.setattr(streams.LabelledStream, "_rows_of", stop)
        done = run(*arguments)
    assert done.code == 130
    assert "with --resume goes on" in done.err
    return arguments


def test_other_data_is_refused(run, interrupted, tmp_path):
    path = tmp_path / "rows.csv"
    good = path.read_bytes(), path.stat().st_mtime_ns
    path.write_bytes(good[0] + b"121,one more,space\n")
    done = run(*interrupted, "--resume")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert f"is of another run: {path} was {len(good[0])} bytes" in done.err
    path.write_bytes(good[0])
    os.utime(path, ns=(good[1], good[1]))
    assert run(*interrupted, "--resume").code == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--family", "gaussian"], '--family was "auto", and is "gaussian" now.'),
        (["--min-df", "2"], "--min-df was 1, and is 2 now."),
        (["--folds", "7"], '--folds was "hash", and is 7 now.'),
        (["--skip-unlabelled"], "what is done with rows without a label was to refuse, and is to skip now."),
        (["--text", "id"], "the column of text was body, and is body + id now."),
    ],
    ids=str,
)
def test_other_settings_are_refused(run, interrupted, more, said):
    done = run(*interrupted, "--resume", *more)
    assert done.code == 2
    assert said in done.err


def test_killed_after_the_model_was_written(run, interrupted, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(streaming.Streaming, "finish", lambda _: None)  # as if killed just before
        assert run(*interrupted, "--resume").code == 0
    model = (tmp_path / "m").read_bytes()
    assert run(*interrupted).code == 2
    assert run(*interrupted, "--resume").code == 0
    assert (tmp_path / "m").read_bytes() == model
    assert not (tmp_path / "kept").exists()


class Killed(BaseException):
    """Nothing that a command could answer."""


@pytest.mark.parametrize(
    ("form", "columns"),
    [
        ("text", ["--text", "body", "--label", "topic"]),
        ("table", ["--label", "species"]),
        pytest.param("folder", [], marks=pytest.mark.whole),
    ],
)
def test_killed_after_any_file_was_written_it_ends_with_the_same_model(
    run, tmp_path, monkeypatch, form, columns
):
    rows, replace = list(flowers())[::2] if form == "table" else list(documents(60, seed=8)), os.replace
    for part in range(3):
        name = tmp_path / f"part-{part}"
        if form != "folder":  # what is in a file without an ending, only its content tells
            write_csv(name, rows[part::3])
            continue
        for row in rows[part::3]:
            path = name / row["topic"] / f"{row['id']}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(row["body"])
    arguments = ["fit", tmp_path / "part-*", *columns, "--checkpoint", tmp_path / "kept"]
    arguments += ["--checkpoint-every", "0", "--resume", "-o"]
    written = []

    def replaced(due):
        def replace_and_die(*paths):
            replace(*paths)
            written.append(paths)
            if len(written) == due:
                raise Killed

        return replace_and_die

    with batches_of(15):
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replaced(-1))
            assert run(*arguments, tmp_path / "due").code == 0
        n_written, due = len(written), (tmp_path / "due").read_bytes()
        assert n_written > 6  # the sums of each pass, now and then and at its end, and the model
        for number in range(1, n_written + 1):
            model = tmp_path / f"{number}.maxdisc"
            written.clear()
            with monkeypatch.context() as patch, pytest.raises(Killed):
                patch.setattr(os, "replace", replaced(number))
                run(*arguments, model)
            assert model.exists() == (number == n_written)
            assert run(*arguments, model).code == 0
            assert model.read_bytes() == due
            assert not (tmp_path / "kept").exists()
    assert describe(tmp_path / "due")["about"]["sources"] == ["part-0", "part-1", "part-2"]


def test_what_is_done_is_not_read_again(run, interrupted, monkeypatch):
    passes = []
    batches = streaming.Streaming._batches
    monkeypatch.setattr(
        streaming.Streaming, "_batches", lambda self, done: passes.append(done) or batches(self, done)
    )
    assert run(*interrupted, "--resume").code == 0
    assert passes == [4]  # the rest of the moments: there is no other pass


@pytest.mark.usefixtures("small")
def test_data_that_changes_while_it_is_read(run, tmp_path, monkeypatch):
    path = write_csv(tmp_path / "rows.csv", documents(120, seed=8))
    rows_of = streams.LabelledStream._rows_of

    def touched(self, part):
        os.utime(path, ns=(1, 1))
        return rows_of(self, part)

    monkeypatch.setattr(streams.LabelledStream, "_rows_of", touched)
    done = run("fit", path, "--text", "body", "--label", "topic", "-o", tmp_path / "m", "--stream")
    assert done.code == 2
    assert f"{path} has changed while it was read: begin again." in done.err
    assert not (tmp_path / "m").exists()
