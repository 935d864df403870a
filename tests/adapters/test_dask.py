"""Dask: the model of the workers is that of the rows in memory, whatever dies on the way."""

from __future__ import annotations

import gc
import inspect
import io
import json
import os
import re
import signal
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from maxdisc import Joint, MaxDiscClassifier, TermFrequencyVectorizer, load, save
from maxdisc.cli import main
from maxdisc.rows.partitions import PartitionedRows
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.testing import check_rows, random_data

if not os.environ.get("MAXDISC_REQUIRE_EXTRAS"):
    pytest.importorskip("distributed", reason="needs Dask: python -m pip install '.[dask]'")

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import distributed
from dask import delayed

from maxdisc.adapters.dask import DaskEngine, connected, fit, predict, predict_proba
from maxdisc.engines.partitioned_fit import Labelled

LABELS = np.array(["ham", "offer", "spam"])
WORDS = np.array(["orbit", "moon", "salt", "pan", "goal", "ice", "the", "of", "and", "news", "today", "some"])


@contextmanager
def workers(number):
    """Processes of one thread each."""
    with (
        distributed.LocalCluster(
            number, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def _no_forgotten_clients():
    """Finalise dropped clients now: one that is finalised while another starts waits for it for ever."""
    gc.collect()


@pytest.fixture(scope="module")
def client():
    with workers(2) as client:
        yield client


@pytest.fixture
def one_thread():
    """One thread: what is tested has nothing to do with workers."""
    with dask.config.set(scheduler="sync"):
        yield


def counts(n=240, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = rng.poisson(0.4 + 1.2 * (codes[:, None] == np.arange(12) % 4), size=(n, 12)).astype(float)
    return X, LABELS[codes]


def texts(X):
    return [" ".join(np.repeat(WORDS, row.astype(int))) for row in X]


def assert_same_model(there, here):
    """Equal moments to 1e-12, the same K, the same ranking and all else that is chosen."""
    assert there.n_selected_ == here.n_selected_
    np.testing.assert_array_equal(there.ranking_, here.ranking_)
    np.testing.assert_array_equal(there.classes_, here.classes_)
    assert there.classes_.dtype == here.classes_.dtype
    assert there.smoothing_ == here.smoothing_
    assert there.families_ == here.families_
    assert hasattr(there, "feature_names_in_") == hasattr(here, "feature_names_in_")
    if hasattr(here, "feature_names_in_"):
        np.testing.assert_array_equal(there.feature_names_in_, here.feature_names_in_)
    a, b = there.moments_, here.moments_
    np.testing.assert_allclose(a.weight, b.weight, rtol=1e-12)
    np.testing.assert_allclose(a.cells, b.cells, rtol=1e-12)
    if here.families_[0][0].translates:
        (center_a, sums_a), (center_b, sums_b) = a.centred(), b.centred()
        np.testing.assert_allclose(center_a, center_b, rtol=1e-12, atol=1e-14)
    else:
        sums_a, sums_b = a.sums, b.sums
    np.testing.assert_allclose(sums_a, sums_b, rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------ the same model


@pytest.mark.parametrize(("family", "scheduler"), [("poisson", None), ("gaussian", "sync")])
def test_the_laws_of_rows(family, scheduler, client):
    def partitioned(X, codes, n_classes):
        cuts = [0, 7, 7, 30, 80]
        parts = [(X[a:b], codes[a:b], n_classes, None, None, a) for a, b in pairwise(cuts)]
        engine = DaskEngine(parts, lambda part: [Labelled(part, None)])
        return PartitionedRows(engine, lambda part: ArrayRows(*part.X), n_classes)

    assert client.scheduler_info()["workers"]
    with nullcontext() if scheduler is None else dask.config.set(scheduler=scheduler):
        check_rows(partitioned, family)


def collections(kind):
    """X and y in Dask and in memory, and row weights or None."""
    X, y = counts()
    rng = np.random.default_rng(1)
    if kind == "sparse":
        return da.from_array(X, chunks=(70, 5)).map_blocks(sp.csr_matrix), sp.csr_array(X), y, y, None
    if kind == "sparse arrays of unknown size":
        parts = [delayed(sp.csr_array)(X[i : i + 90]) for i in range(0, 240, 90)]
        blocks = [da.from_delayed(part, (np.nan, 12), meta=sp.csr_array((0, 12))) for part in parts]
        labels = [
            da.from_delayed(delayed(y[i : i + 90]), (np.nan,), dtype=y.dtype) for i in range(0, 240, 90)
        ]
        return da.concatenate(blocks), sp.csr_array(X), da.concatenate(labels), y, None
    if kind == "frame":
        frame = pd.DataFrame(X * rng.normal(1, 0.1, X.shape), columns=WORDS)
        frame["kind"] = y
        lazy = dd.from_pandas(frame, npartitions=4)
        return lazy[list(WORDS)], frame[list(WORDS)], lazy["kind"], frame["kind"], None
    X = X * rng.normal(1, 0.1, X.shape)
    if kind == "gaps":
        X[rng.random(X.shape) < 0.1] = np.nan
    if kind == "float32":
        X = X.astype(np.float32)
    lazy = da.from_array(X, chunks=((1, 99, 0, 140), (7, 5)))
    if kind == "weights":
        weights = rng.choice([0.0, 0.5, 2.0], 240)
        return lazy, X, da.from_array(y, chunks=50), y, weights
    return lazy, X, da.from_array(y, chunks=50), y, None


@pytest.mark.parametrize(
    "kind",
    ["dense", "gaps", "float32", "weights", "sparse", "sparse arrays of unknown size", "frame"],
)
def test_a_table_gives_the_model_of_the_rows_in_memory(kind, client, tmp_path):
    lazy, X, lazy_y, y, weights = collections(kind)
    lazy_weights = None if weights is None else da.from_array(weights, chunks=31)
    # Engines have one family for all columns; a frame in memory has one for each unless it is named.
    settings = {"cv": "hash", "structure": "independent"} | (
        {"family": "gaussian"} if kind == "frame" else {}
    )
    there = fit(MaxDiscClassifier(**settings), lazy, lazy_y, lazy_weights)
    here = MaxDiscClassifier(**settings).fit(X, y, weights)
    assert client.scheduler_info()["workers"]
    assert_same_model(there, here)
    np.testing.assert_array_equal(there.predict(X), here.predict(X))
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(predict(there, lazy).compute(), here.predict(X))
    found = predict_proba(there, lazy).compute()
    np.testing.assert_allclose(found, here.predict_proba(X), rtol=1e-9, atol=1e-12)
    save(there, tmp_path / "model.maxdisc")
    np.testing.assert_array_equal(load(tmp_path / "model.maxdisc").predict(X), here.predict(X))
    if kind in ("sparse", "frame", "weights"):
        persisted = lazy.persist()
        there = fit(MaxDiscClassifier(**settings), persisted, lazy_y, lazy_weights, classes=here.classes_)
        assert_same_model(there, here)


@pytest.mark.parametrize("scale", ["length", "log"])
def test_documents_give_the_model_of_the_documents_in_memory(scale, client):
    X, y = counts()
    documents = texts(X)
    pipeline = make_pipeline(TermFrequencyVectorizer(scale=scale, min_df=2), MaxDiscClassifier(cv="hash"))
    here = clone(pipeline).fit(documents, y)
    series = dd.from_pandas(pd.Series(documents), npartitions=5)
    labels = dd.from_pandas(pd.Series(y.astype(object)), npartitions=5)
    bag, bagged = (db.from_sequence(list(items), npartitions=3) for items in (documents, y.tolist()))
    for lazy, lazy_y in ((series, labels), (bag, bagged)):
        there = fit(clone(pipeline), lazy, lazy_y)
        np.testing.assert_array_equal(there[0].terms_, here[0].terms_)
        assert there[0].mean_length_ == here[0].mean_length_
        assert there[-1].n_selected_ == here[-1].n_selected_
        np.testing.assert_allclose(there[-1].moments_.sums, here[-1].moments_.sums, rtol=1e-12)
        np.testing.assert_array_equal(predict(there, lazy).compute(), here.predict(documents))
    assert client.scheduler_info()["workers"]


@pytest.mark.parametrize("scheduler", ["threads", "processes", "sync"])
def test_any_scheduler_will_do(scheduler):
    X, y = counts(90)
    # Processes that live for all passes; by default each pass starts its own.
    pool = ProcessPoolExecutor(1, get_context("spawn")) if scheduler == "processes" else None
    with pool or nullcontext(), dask.config.set(scheduler=scheduler, pool=pool):
        there = fit(MaxDiscClassifier(cv="hash", evidence="raw"), da.from_array(X, chunks=(40, 12)), y)
        found = predict(there, da.from_array(X, chunks=(40, 12))).compute()
    here = MaxDiscClassifier(cv="hash", evidence="raw").fit(X, y)
    assert_same_model(there, here)
    np.testing.assert_array_equal(found, here.predict(X))


@pytest.mark.usefixtures("one_thread")
def test_joint_densities_and_redundancy_come_from_the_workers_too():
    X, y = random_data("gaussian", 150, 3, 6)
    lazy = da.from_array(X, chunks=(40, 6))
    for asked in ({"structure": Joint(transform=None), "evidence": "raw"}, {"redundancy": 1.0}):
        model = MaxDiscClassifier(cv="hash", **asked)
        found, due = fit(clone(model), lazy, y), clone(model).fit(X, y)
        assert found.n_selected_ == due.n_selected_
        np.testing.assert_array_equal(found.predict(X), due.predict(X))


@pytest.mark.usefixtures("one_thread")
def test_what_labels_and_rows_share_is_read_once(tmp_path):
    X, y = random_data("gaussian", 60, 2, 4)
    data = np.c_[X, y]

    def block(i):
        (tmp_path / f"{i}-{len(os.listdir(tmp_path))}").touch()
        return data[i * 20 : (i + 1) * 20]

    parts = [da.from_delayed(delayed(block)(i), (20, 5), dtype=float) for i in range(3)]
    whole = da.concatenate(parts)
    engine_passes = []
    added = DaskEngine.added
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DaskEngine, "added", lambda self, job: engine_passes.append(1) or added(self, job))
        fit(MaxDiscClassifier(n_features=2, smoothing=1.0, evidence="raw"), whole[:, :4], whole[:, 4])
    # One pass for labels and a look at the rows, one for the moments.
    assert len(engine_passes) == 2
    assert len(os.listdir(tmp_path)) == 3 * len(engine_passes)


# ------------------------------------------------------------------ workers


class Job:
    """Leaves a mark wherever it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __setstate__(self, state):
        self.__dict__.update(state)
        Path(self.folder, f"{os.getpid()}-{time.perf_counter_ns()}").touch()

    def __call__(self, part):
        return [len(part)]


def test_a_job_travels_once_to_each_worker(client, tmp_path):
    engine = DaskEngine(range(24), lambda i: [Labelled(np.ones((i, 1)), None)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert engine.added(Job(tmp_path)) == [sum(range(24))]
    arrivals = [int(path.name.split("-")[0]) for path in tmp_path.iterdir()]
    workers = set(client.run(os.getpid).values())
    assert workers & set(arrivals)
    assert all(arrivals.count(worker) <= 1 for worker in workers)


def test_a_large_job_is_no_reason_to_warn(client):
    job = LargeJob()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DaskEngine([1, 2, 3], lambda i: [Labelled([i], None)]).added(job) == [6]
    assert client.scheduler_info()["workers"]


class LargeJob:
    def __init__(self):
        self.decisions = np.zeros(3_000_000)

    def __call__(self, part):
        return [int(part.X[0])]


def mortal(number, folder, deaths):
    """A block of rows; whoever makes it at one of the given times is killed."""
    while True:
        try:
            (Path(folder) / f"{(turn := len(os.listdir(folder)))}").touch(exist_ok=False)
        except FileExistsError:
            continue
        break
    if turn in deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return counts(80, seed=number)[0]


@pytest.mark.parametrize(("number", "death"), [(2, 2), (2, 10), (1, 13)])
def test_a_worker_killed_at_any_time_changes_nothing(number, death, tmp_path):
    """It dies with what it holds of the rows, the sums and the job; of one worker, that is all there is."""
    parts = [delayed(mortal, pure=False)(i, str(tmp_path), [death]) for i in range(4)]
    blocks = [da.from_delayed(part, (80, 12), dtype=float) for part in parts]
    y = np.tile(counts(80)[1], 4)
    with workers(number):
        there = fit(MaxDiscClassifier("poisson", cv="hash", evidence="raw"), da.concatenate(blocks), y)
    assert (tmp_path / str(death)).exists(), "nobody was killed"
    X = np.concatenate([counts(80, seed=i)[0] for i in range(4)])
    assert_same_model(there, MaxDiscClassifier("poisson", cv="hash", evidence="raw").fit(X, y))


def test_a_partition_that_kills_every_worker_is_told_in_one_line(tmp_path):
    lazy = da.from_delayed(delayed(mortal)(0, tmp_path, range(99)), (80, 12), dtype=float)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        workers(2) as client,
        pytest.raises(ValueError, match=r"^workers of Dask died again and again.*smaller\.$"),
        connected(client.scheduler.address),
    ):
        fit(MaxDiscClassifier(), lazy, np.arange(80) % 2)


def test_no_scheduler_is_told_in_one_line():
    with (
        pytest.raises(ValueError, match="there is no Dask scheduler at nonsense: missing port"),
        connected("nonsense"),
    ):
        pass


# ------------------------------------------------------------------ what is wrong


def unknown(array):
    """The same blocks, of which it is not known how long they are."""
    return array.map_blocks(np.asarray, chunks=((np.nan,) * array.numblocks[0], *array.chunks[1:]))


def bad_input():
    X, y = counts(90)
    lazy, labels = da.from_array(X, chunks=(30, 12)), da.from_array(y, chunks=30)
    frame = dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": texts(X), "y": y}), npartitions=2)
    infinite = X.copy()
    infinite[61, 3] = np.inf
    gaps = y.astype(object)
    gaps[35] = None
    text = make_pipeline(TermFrequencyVectorizer(), MaxDiscClassifier())
    model, rows, ys = MaxDiscClassifier(), unknown(lazy), unknown(labels)
    gaussian = MaxDiscClassifier("gaussian")
    halves, cut = unknown(labels.rechunk(45)), unknown(labels[:80])
    none = da.from_array(np.full(90, None), chunks=30)
    halved = da.from_array(X[:, 0] + 0.5, chunks=30)
    gap, endless = da.from_array(gaps, chunks=30), da.from_array(infinite, chunks=(30, 12))
    documents, two = (db.from_sequence(items, npartitions=1) for items in (["a b", None], [0, 1]))
    few, zeros, debts = np.ones(9), np.zeros(90), -np.ones(90)
    light = unknown(da.ones(80, chunks=30))
    return {
        "shorter y": (model, lazy, labels[:80], {}, "X has 90 rows, but y has 80."),
        "shorter y in memory": (model, lazy, y[:80], {}, "X has 90 rows, but y has 80."),
        "shorter weights": (model, lazy, labels, {"sample_weight": few}, "but sample_weight has 9."),
        "partitions": (model, rows, halves, {}, "X has 3 partitions, but y has 2"),
        "lengths": (model, rows, cut, {}, "partition 2: 30 rows of X, but 20 in y."),
        "lengths of one": (model, lazy, cut, {}, "partition 2: 30 rows of X, but 20 in y."),
        "lengths in memory": (model, rows, y, {}, "y must be a dask collection"),
        "unequal weights": (
            model,
            rows,
            ys,
            {"sample_weight": light},
            "30 rows of X, but 20 in sample_weight",
        ),
        "no y": (model, lazy, None, {}, "the target y is None"),
        "no label": (model, lazy, gap, {}, "partition 1: y has no label .* row 5"),
        "no labels": (model, lazy, none, {}, "partition .: y has no label"),
        "unknown label": (model, lazy, labels, {"classes": ["ham", "spam"]}, "classes given: 'offer'"),
        "unsorted": (model, lazy, labels, {"classes": LABELS[::-1]}, "classes must be labels in sorted"),
        "numbers": (model, lazy, halved, {}, "Unknown label type: continuous"),
        "one class": (model, lazy, zeros, {}, "y has only one class, 0.0"),
        "no weight": (model, lazy, labels, {"sample_weight": zeros}, "at least one non-zero number"),
        "negative": (model, lazy, labels, {"sample_weight": debts}, "partition .: weights must be 30 fin"),
        "no rows": (model, lazy[:0], labels[:0], {}, "there are no rows"),
        "infinite": (model, endless, labels, {}, "partition 2: .*column 3"),
        "text in X": (gaussian, frame[["a", "b"]], frame["y"], {}, "column 'b' holds text"),
        "a frame of text": (text, frame[["b"]], frame["y"], {}, "takes a column of documents"),
        "documents": (
            model,
            frame["b"],
            frame["y"],
            {},
            "takes a table of numbers as X, got Series with 1 axes",
        ),
        "a bag": (model, documents, two, {}, "takes a table of numbers as X, got Bag with 1 axes"),
        "no document": (text, documents, two, {}, "partition 0: document 1 is None"),
        "holdout": (MaxDiscClassifier(cv="holdout"), lazy, labels, {}, "takes cv='hash' or a number"),
        "in memory": (model, X, y, {}, "X must be a dask array, dataframe, series or bag, got ndarray"),
        "estimator": (TermFrequencyVectorizer(), lazy, labels, {}, "an engine fits a MaxDiscClassifier, or"),
    }


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("case", bad_input())
def test_bad_input_is_told_in_one_line_and_changes_nothing(case):
    model, X, y, more, message = bad_input()[case]
    model = clone(model)
    before = repr(vars(model))
    with pytest.raises(ValueError, match=message) as caught:
        fit(model, X, y, **more)
    assert "\n" not in str(caught.value)
    assert repr(vars(model)) == before


def test_a_mistake_is_told_by_the_workers_as_well(client):
    X, y = counts(90)
    X[61, 3] = np.inf
    with pytest.raises(ValueError, match="partition 2: ") as caught:
        fit(MaxDiscClassifier(), da.from_array(X, chunks=(30, 12)), y)
    assert "\n" not in str(caught.value)
    assert client.scheduler_info()["workers"]


@pytest.mark.usefixtures("one_thread")
def test_empty_partitions_are_passed_over():
    X, y = counts(90)
    lazy, labels = da.from_array(X, chunks=((30, 0, 60), 12)), da.from_array(y, chunks=((30, 0, 60),))
    model = fit(MaxDiscClassifier(cv="hash"), lazy, labels)
    assert_same_model(model, MaxDiscClassifier(structure="independent", cv="hash").fit(X, y))
    np.testing.assert_array_equal(predict(model, lazy).compute(), model.predict(X))
    assert predict(model, lazy[:0]).compute().shape == (0,)
    bag = db.from_sequence(texts(X), npartitions=3).filter(lambda text: "orbit" in text)
    empty = db.from_sequence(["of ice"] * 5, npartitions=1).filter(lambda _: False)
    text = make_pipeline(TermFrequencyVectorizer(), MaxDiscClassifier(cv="hash")).fit(texts(X), y)
    assert predict_proba(text, db.concat([empty, bag])).compute().shape[1] == 3


@pytest.mark.usefixtures("one_thread")
def test_prediction_is_lazy(tmp_path):
    X, y = counts(90)
    model = MaxDiscClassifier().fit(X, y)

    def block(i):
        (tmp_path / str(i)).touch()
        return X[i * 45 : (i + 1) * 45]

    lazy = da.concatenate([da.from_delayed(delayed(block)(i), (45, 12), dtype=float) for i in range(2)])
    found = predict(model, lazy)
    assert found.chunks == ((45, 45),)
    assert found.dtype == model.classes_.dtype
    assert predict_proba(model, lazy).chunks == ((45, 45), (3,))
    assert not list(tmp_path.iterdir())
    np.testing.assert_array_equal(found[50:].compute(), model.predict(X[50:]))
    assert [path.name for path in tmp_path.iterdir()] == ["1"]
    X[50, 0] = np.inf
    with pytest.raises(ValueError, match="partition 1: "):
        found.compute()


# ------------------------------------------------------------------ the command


@pytest.fixture
def command(capfd):
    def run(*arguments):
        code = main([str(a) for a in arguments])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return run


def write_parts(folder, form):
    X, y = counts(200)
    if form == "jsonl":
        frame = pd.DataFrame({"body": texts(X), "kind": y})
    else:
        X = X * np.random.default_rng(2).normal(1, 0.1, X.shape)
        X[3, 4] = np.nan
        frame = pd.DataFrame(X, columns=WORDS).assign(kind=y)
    for i in range(4):
        part, path = frame[50 * i : 50 * (i + 1)], folder / f"part{i}.{form}"
        if form == "parquet":
            part.to_parquet(path)
        elif form == "csv":
            part.to_csv(path, index=False)
        else:
            part.to_json(path, orient="records", lines=True)
    return folder / f"part*.{form}"


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_the_command_gives_the_model_that_it_gives_without_dask(form, client, command, tmp_path):
    glob = write_parts(tmp_path, form)
    if form == "csv":
        (tmp_path / "part9.csv").write_text(",".join([*WORDS, "kind"]) + "\n")
    usual = ["fit", glob, "--label", "kind", "--keep-moments", "--json"] + (
        ["--text", "body"] if form == "jsonl" else ["--family", "gaussian"]
    )
    address = client.scheduler.address
    code, out, err = command(*usual, "-o", tmp_path / "a.maxdisc", "--engine", "dask", "--scheduler", address)
    assert code == 0, err
    facts = json.loads(out)
    code, out, _ = command(*usual, "-o", tmp_path / "b.maxdisc", "--folds", "hash")
    due = json.loads(out)
    for name in ("kind", "text", "label", "rows", "classes", "family", "features", "features_kept", "folds"):
        assert facts[name] == due[name], name
    assert facts["held_out_log_loss"] == pytest.approx(due["held_out_log_loss"], rel=1e-9)
    there, here = load(tmp_path / "a.maxdisc"), load(tmp_path / "b.maxdisc")
    if form != "jsonl":
        assert_same_model(there, here)
    X = counts(90, seed=5)[0]
    X = texts(X) if form == "jsonl" else pd.DataFrame(X, columns=WORDS)
    np.testing.assert_array_equal(there.predict(X), here.predict(X))


def test_a_damaged_file_among_good_ones_is_named_and_nothing_is_written(client, command, tmp_path):
    glob = write_parts(tmp_path, "parquet")
    output = tmp_path / "out" / "model.maxdisc"
    output.parent.mkdir()
    damaged = tmp_path / "part2.parquet"
    whole = damaged.read_bytes()
    usual = ["fit", glob, "--label", "kind", "-o", output, "--engine", "dask"]
    usual += ["--scheduler", client.scheduler.address]
    for content in (whole[: len(whole) // 2], whole[:50] + bytes(len(whole) - 70) + whole[-20:]):
        damaged.write_bytes(content)
        code, out, err = command(*usual)
        assert (code, out) == (2, "")
        assert str(damaged) in err
        assert err.count("\n") == 1
        assert not list(output.parent.iterdir())
    damaged.write_bytes(whole)
    assert command(*usual)[0] == 0
    before = output.read_bytes()
    damaged.write_bytes(whole[:-30])
    assert command(*usual, "--force")[0] == 2
    assert output.read_bytes() == before


def test_the_command_refuses_what_it_cannot_do(client, command, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,kind\n1,x\n2,y\n")))
    write_parts(tmp_path, "csv")
    bad = tmp_path / "bad.csv"
    # A column is of numbers if nine in ten are.
    bad.write_text("a,kind\n1,x\n2,\n3,y\n4,x\nfive,y\n" + "6,x\n" * 7)
    model, at = tmp_path / "model.maxdisc", ["--engine", "dask", "--scheduler", client.scheduler.address]
    only = ["--label", "kind", "--features", "a"]
    one = tmp_path / "one.csv"
    one.write_text("a,kind\n1,x\n2,x\n")
    svm = tmp_path / "rows.svm"
    svm.write_text("1 3:0.5 9:2\n0 1:1\n")
    for arguments, message in (
        ([bad, *only, *at], "1 of 12 rows .*, first .*bad.csv row 2: .*--skip-unlabelled"),
        ([bad, *only, "--skip-unlabelled", *at], "bad.csv row 5, column 'a': 'five' is not a number"),
        ([one, "--label", "kind", *at], "has only one class, 'x'"),
        ([svm, *at], "svmlight and h5ad are read here"),
        (["-", *only, *at], "read only once"),
        ([one, "--search", *at], "--search needs the rows in memory"),
        ([one, "--scheduler", "tcp://127.0.0.1:9"], "add --engine dask"),
        ([tmp_path / "part?.csv", "--folds", "holdout", *at], "takes cv='hash' or a number"),
    ):
        code, out, err = command("fit", *arguments, "-o", model)
        assert (code, out) == (2, ""), err
        assert re.search(message, err), err
        assert err.count("\n") == 1, err
        assert not model.exists()


def test_the_command_starts_workers_of_its_own_and_skips_rows_without_a_label(command, tmp_path):
    glob = write_parts(tmp_path, "csv")
    with (tmp_path / "part1.csv").open("a") as file:
        file.write(",".join(["1"] * 12) + ",\n")
    usual = ["fit", glob, "--label", "kind", "-o", tmp_path / "m.maxdisc", "--json", "--evidence", "raw"]
    code, out, err = command(*usual, "--engine", "dask", "--skip-unlabelled")
    assert code == 0, err
    assert json.loads(out)["rows"] == 200
    assert "1 of 201 rows" in err


def test_the_how_to_runs(tmp_path, monkeypatch):
    page = Path(inspect.getfile(MaxDiscClassifier)).parents[2] / "docs" / "how-to" / "dask.md"
    examples = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("mail").mkdir()
    X, y = counts(200)
    for i in range(2):
        part = slice(100 * i, 100 * (i + 1))
        pd.DataFrame({"body": texts(X[part]), "topic": y[part]}).to_parquet(f"mail/{i}.parquet")
    names = {}
    for example in examples:
        exec(example, names)  # the reader would paste it too
    assert names["model"][-1].n_selected_ >= 1
    assert len(names["labels"]) == 200
    names["client"].close()


def mixed_rows(n=300):
    """Numbers, counts, truth values and words, with gaps, and labels."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(y)),
            "count": rng.poisson(1 + 3 * y),
            "told": rng.random(n) < 0.2 + 0.3 * y,
            "colour": np.array(["red", "green", "blue", None], dtype=object)[(y + rng.integers(0, 2, n)) % 4],
        }
    )
    return frame, LABELS[y]


def test_a_dataframe_of_mixed_columns_gives_the_model_of_the_frame_in_memory():
    frame, y = mixed_rows()
    here = MaxDiscClassifier(cv="hash").fit(frame, y)
    order = np.random.default_rng(0).permutation(len(y))
    table = dd.from_pandas(frame.iloc[order].assign(label=y[order]).reset_index(drop=True), npartitions=4)
    with dask.config.set(scheduler="threads"):
        there = fit(MaxDiscClassifier(cv="hash"), table[list(frame)], table["label"])
        labels = predict(there, dd.from_pandas(frame, npartitions=3)).compute()
    assert repr(here._family) == repr(there._family)
    np.testing.assert_array_equal(there._schema.levels.names, here._schema.levels.names)
    assert there.n_selected_ == here.n_selected_
    for one, other in zip(there.moments_.parts, here.moments_.parts, strict=True):
        np.testing.assert_allclose(one.means(), other.means(), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(labels, here.predict(frame))


def test_columns_of_several_kinds_among_partitions_are_named():
    frame, y = mixed_rows()
    parts = [frame[:150], frame[150:].assign(size="large")]
    table = dd.from_delayed([delayed(part) for part in parts], meta=parts[0], verify_meta=False)
    labels = da.from_array(y, chunks=150)
    words = "column 'size' mixes numbers and text: make it all of one kind"
    with dask.config.set(scheduler="threads"), pytest.raises(ValueError, match=words):
        fit(MaxDiscClassifier(cv="hash"), table, labels)


def test_files_of_a_mixed_table_give_the_model_of_the_table_by_workers_too(tmp_path):
    frame, y = mixed_rows()
    rows = frame.assign(label=y)
    rows.to_csv(tmp_path / "whole.csv", index=False)
    for place in range(2):
        rows[place::2].to_csv(tmp_path / f"part{place}.csv", index=False)
    given = ["--label", "label", "-q", "--missing", "informative"]
    fit_here = ["fit", str(tmp_path / "whole.csv"), "-o", str(tmp_path / "here"), "--folds", "hash"]
    fit_there = ["fit", str(tmp_path / "part*.csv"), "-o", str(tmp_path / "there"), "--engine", "dask"]
    assert main([*fit_here, *given]) == 0
    assert main([*fit_there, *given]) == 0
    here, there = load(tmp_path / "here"), load(tmp_path / "there")
    assert repr(here._family) == repr(there._family)
    assert {family.name for family, _ in there.families_} >= {"bernoulli", "categorical"}
    assert there.n_selected_ == here.n_selected_
    np.testing.assert_array_equal(there.ranking_, here.ranking_)
    np.testing.assert_array_equal(there.predict(frame), here.predict(frame))
