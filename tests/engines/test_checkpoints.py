"""Sums over a stream: stopped anywhere and taken up again, they are the same to the last bit."""

from __future__ import annotations

import io
import os
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer, save
from maxdisc.decisions.sweep import Sweep
from maxdisc.engines.checkpoints import CheckpointError, Journal, StreamEngine
from maxdisc.families import FAMILIES
from maxdisc.model_file.container import Container, write
from maxdisc.numerics.matrices import is_sparse
from maxdisc.rows.partitions import Looks, PartitionedRows
from maxdisc.rows.row_sources import ArrayRows, HashFolds
from maxdisc.rows.sampling import RowTrial
from maxdisc.selection.held_out import HeldOut
from maxdisc.testing import check_rows
from tests.conftest import examples

ABOUT = {"data": "some rows", "--family": "poisson"}


class Stopped(Exception):  # noqa: N818  # it stands for a kill
    pass


def table(n=120, seed=0, form=sp.csr_array):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 3
    X = rng.poisson(0.5 + (codes[:, None] == np.arange(9) % 3), size=(n, 9)).astype(float)
    return form(X), codes


class Batches:
    """Batches of rows that end at some cuts; reading stops at a given one, as if killed."""

    def __init__(self, X, codes, cuts, stop_at=None):
        self.X, self.codes = X, codes
        self.ends = [0, *sorted(cuts), X.shape[0]]
        self.stop_at, self.read = stop_at, 0

    def __call__(self, done):
        for start, stop in list(zip(self.ends[:-1], self.ends[1:], strict=True))[done:]:
            if self.read == self.stop_at:
                raise Stopped
            self.read += 1
            yield ArrayRows(self.X[start:stop], self.codes[start:stop], 3)


def fitted(batches, journal, **parameters):
    rows = PartitionedRows(StreamEngine(batches, journal), lambda rows: rows, 3)
    return MaxDiscClassifier(cv="hash", **parameters).fit_rows(rows, ["a", "b", "c"])


def as_bytes(model, path):
    save(model, path)
    return path.read_bytes()


def alike(one, other):
    """Equal to the last bit and to the type."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        same = one.dtype == other.dtype and one.shape == other.shape
        return same and one.tobytes() == other.tobytes() and other.flags.c_contiguous
    if is_sparse(one):
        pairs = [(getattr(one, n), getattr(other, n)) for n in ("data", "indices", "indptr", "shape")]
        return all(alike(a, b) for a, b in pairs)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return all(alike(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return one == other or (one != one and other != other)


def sums():
    X, codes = table()
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X.toarray())
    sparse, dense = ArrayRows(X, codes, 3), ArrayRows(gaps, codes, 3)
    folds = HashFolds(3)
    yield sparse.moments(FAMILIES["poisson"], folds)
    yield dense.moments(FAMILIES["gaussian"], folds)
    yield dense.products(np.array([0, 4, 2]), folds, per_class=True)
    for rows in (sparse, dense):
        yield rows.sweep(lambda _: RowTrial(7), np.array([1]), folds)
    yield [HeldOut(np.empty((0, 3, 2)), *np.empty((3, 0), dtype=np.intp), np.empty(0, dtype=np.uint64), 5, 0)]
    yield [Sweep(np.array([1.0]), np.array([np.inf]), np.pi, 5e-324), Looks.at(X)]
    yield [TermFrequencyVectorizer().totals(["größer 北京 and then", "and then"])]
    yield [1, -0.0, float("nan"), float("-inf"), "", [], None, True]


@pytest.mark.parametrize("value", sums(), ids=lambda v: type(v[0]).__name__)
def test_every_kind_of_sum_comes_back_as_it_was(value, tmp_path):
    def parts(done):
        assert done == 0
        yield 1, value

    first = Journal(tmp_path, ABOUT).added(parts)
    again = Journal(tmp_path, ABOUT, resume=True).added(lambda _: 1 / 0)
    assert alike(first, again)
    assert alike([np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v for v in value], again)


@pytest.mark.parametrize("family", ["poisson", "gaussian", "gamma"])
def test_the_laws_of_rows(family, tmp_path):
    count = iter(range(1000))

    def streamed(X, codes, n_classes):
        def batches(done):
            for some in [slice(0, 11), slice(11, 12), slice(12, None)][done:]:
                yield ArrayRows(X[some], codes[some], n_classes, start=some.start)

        journal = Journal(tmp_path / str(next(count)), ABOUT, every=0)
        return PartitionedRows(StreamEngine(batches, journal), lambda rows: rows, n_classes)

    check_rows(streamed, family)


@pytest.mark.parametrize(
    "parameters",
    [
        {"family": "poisson"},
        {"family": "gaussian", "evidence": "raw"},
        {"family": "poisson", "redundancy": 1.0},
    ],
    ids=str,
)
def test_stopped_at_every_batch_the_model_is_the_same(parameters, tmp_path):
    X, codes = table(form=sp.csr_array if parameters["family"] == "poisson" else np.asarray)
    cuts = [20, 21, 70]
    whole = Batches(X, codes, cuts)
    due = as_bytes(fitted(whole, Journal(None, {}), **parameters), tmp_path / "due")
    folder, read = tmp_path / "kept", 0
    for _ in range(10_000):
        # One batch at a time, and then a kill.
        batches = Batches(X, codes, cuts, stop_at=1)
        try:
            model = fitted(batches, Journal(folder, ABOUT, resume=True, every=0), **parameters)
        except Stopped:
            read += batches.read
            continue
        break
    read += batches.read
    assert as_bytes(model, tmp_path / "found") == due
    assert read == whole.read  # nothing is read twice, or left out
    assert whole.read > len(cuts) + 1


@examples(10)
@given(cuts=st.lists(st.integers(1, 119), max_size=12, unique=True), data=st.data())
def test_any_chunking_and_any_kills_give_the_model_of_the_rows_in_memory(cuts, data, tmp_path_factory):
    X, codes = table()
    here = MaxDiscClassifier("poisson", cv="hash").fit(X, np.array(["a", "b", "c"])[codes])
    folder = tmp_path_factory.mktemp("kept")
    while True:
        stop = data.draw(st.integers(1, 40))
        try:
            model = fitted(Batches(X, codes, cuts, stop), Journal(folder, ABOUT, True, 0), family="poisson")
        except Stopped:
            continue
        break
    assert model.n_selected_ == here.n_selected_
    np.testing.assert_array_equal(model.ranking_, here.ranking_)
    np.testing.assert_allclose(model.moments_.sums, here.moments_.sums, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), here.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), here.predict_proba(X), rtol=1e-9)


def two_sums(journal, stop=False):
    def parts(done):
        for number in [1, 2, 4][done:]:
            if stop and number == 4:
                raise Stopped
            yield 1, [float(number)]

    return [journal.added(parts), journal.added(parts)]


def stopped_journal(folder):
    with pytest.raises(Stopped):
        two_sums(Journal(folder, ABOUT, every=0), stop=True)


def test_another_run_is_refused_and_told_why(tmp_path):
    stopped_journal(tmp_path)
    with pytest.raises(CheckpointError, match="holds the checkpoint of a run: resume that, or remove it"):
        Journal(tmp_path, ABOUT)
    with pytest.raises(CheckpointError, match="--family was poisson, and is gaussian now"):
        Journal(tmp_path, {**ABOUT, "--family": "gaussian"}, resume=True)
    with pytest.raises(CheckpointError, match="data was some rows, and is not there now"):
        Journal(tmp_path, {"--family": "poisson"}, resume=True)
    assert two_sums(Journal(tmp_path, ABOUT, resume=True)) == [[7.0], [7.0]]


def test_a_sum_inside_another_is_refused_where_it_could_not_be_found_again(tmp_path):
    def outer(journal):
        def parts(_):
            yield 1, two_sums(journal)[0]

        return journal.added(parts)

    assert outer(Journal(None, ABOUT)) == [7.0]
    with pytest.raises(RuntimeError, match="not one inside another"):
        outer(Journal(tmp_path, ABOUT))


def test_without_a_checkpoint_resuming_begins(tmp_path):
    assert two_sums(Journal(tmp_path / "new" / "one", ABOUT, resume=True)) == [[7.0], [7.0]]


def test_done_means_gone_but_for_what_is_not_ours(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".maxdisc-0123.tmp").write_bytes(b"half")
    journal = Journal(tmp_path / "a", ABOUT)
    two_sums(journal)
    journal.clear()
    assert not (tmp_path / "a").exists()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine.txt").write_text("precious")
    journal = Journal(tmp_path / "b", ABOUT)
    two_sums(journal)
    journal.clear()
    assert os.listdir(tmp_path / "b") == ["mine.txt"]
    Journal(None, ABOUT).clear()


def test_nothing_is_no_sum(tmp_path):
    with pytest.raises(ValueError, match="no rows"):
        Journal(tmp_path, ABOUT).added(lambda _: (part for part in [(1, [])]))
    with pytest.raises(ValueError, match="a part of 2 sums does not add to 1"):
        Journal(None, ABOUT).added(lambda _: (part for part in [(1, [1]), (1, [1, 2])]))


def test_what_no_checkpoint_can_hold_is_refused(tmp_path):
    with pytest.raises(TypeError, match="cannot hold"):
        Journal(tmp_path, ABOUT).added(lambda _: (part for part in [(1, [object()])]))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_checkpoint_before(call, tmp_path, monkeypatch):
    stopped_journal(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        with pytest.raises(CheckpointError, match="no space left on device; what was there before still is"):
            two_sums(Journal(tmp_path, ABOUT, resume=True))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert two_sums(Journal(tmp_path, ABOUT, resume=True)) == [[7.0], [7.0]]


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "a").write_text("precious")
    with pytest.raises(CheckpointError, match="is a file: name a folder"):
        Journal(tmp_path / "a", ABOUT)


def test_damage_is_found(tmp_path):
    stopped_journal(tmp_path)
    (path,) = tmp_path.iterdir()
    good = path.read_bytes()
    for content in (b"", b"PK\x03\x04", good[:-3], good[: len(good) // 2]):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="is not a whole checkpoint"):
            Journal(tmp_path, ABOUT, resume=True)
    path.write_bytes(good.replace(rb"batches\": 2", rb"batches\": 1"))
    assert path.read_bytes() != good
    with pytest.raises(CheckpointError, match="is damaged: remove"):
        two_sums(Journal(tmp_path, ABOUT, resume=True))


def test_a_model_is_no_checkpoint(tmp_path):
    X, codes = table()
    save(MaxDiscClassifier().fit(X, codes), tmp_path / "step-0001.checkpoint")
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        Journal(tmp_path, ABOUT, resume=True)


@pytest.mark.parametrize(
    "sums",
    [
        ["list", ["os.system", "echo"]],
        ["list", ["Journal", "/tmp", {}]],
        ["list", ["array", "t0", -5]],
        ["list", ["array", "t0", 10**30]],
        ["list", ["array", "no such", 3]],
        ["list", ["sparse", [["t0", 3], ["t1", 3], ["t2", 2]], 1, 2]],
        ["list", ["float", "0x1p99999"]],
        ["list", ["Sweep", 1, 2]],
        ["strings", ["t1", 3], ["t1", 3]],
        [],
        {"list": 1},
        7,
    ],
    ids=str,
)
def test_a_strangers_file_does_no_harm(sums, tmp_path):
    document = {
        "format": 1,
        "checkpoint": {"about": ABOUT, "step": 1, "batches": 1, "finished": False, "sums": sums},
    }
    tensors = {"t0": np.ones(3), "t1": np.array([0, 1, 99]), "t2": np.array([0, 3])}
    file = io.BytesIO()
    write(file, tensors, document)
    assert Container.of(file.getvalue())
    (tmp_path / "step-0001.checkpoint").write_bytes(file.getvalue())
    with pytest.raises(CheckpointError, match=r"step-0001\.checkpoint is (not a checkpoint|damaged)"):
        two_sums(Journal(tmp_path, ABOUT, resume=True))
