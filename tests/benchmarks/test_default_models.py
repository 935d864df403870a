"""The record of the default: every method on tiny data, what is run again, and a page that hides no loss."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import accuracy_score, f1_score, log_loss

from benchmarks import default_data, default_models
from benchmarks.default_data import cut_pieces, make_table_trials, make_text_trials, make_trials, read_corpus
from benchmarks.default_methods import METHODS, OURS, LogCountRatio, count_candidates
from benchmarks.default_models import choose_rows, hash_source, main
from benchmarks.default_page import PAGE, RESULTS, make_page
from experiments.data import DataError
from experiments.records import Key, Record

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FIGURES = ("accuracy", "macro_f1", "cpu_seconds", "selected")
TOPICS = ("orbit launch rocket moon fuel", "goal puck ice skate team", "key cipher code secret bits")


def write_corpus(path, n_rows, n_words, splits):
    """Documents of three topics with words that all of them share."""
    rng = np.random.default_rng(0)
    codes = np.arange(n_rows) % 3
    shared = ["the", "of", "and", "to", "with"]
    text = [" ".join(rng.choice(TOPICS[c].split() * 2 + shared, n_words)) for c in codes]
    columns = {"text": text, "label": [f"topic {c}" for c in codes]}
    columns["split"] = [splits[i // 3 % len(splits)] for i in range(n_rows)]
    pq.write_table(pa.table(columns), path)


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder of tiny corpora and one gene set."""
    for kind in ("text", "genes"):
        (tmp_path / kind).mkdir()
    write_corpus(tmp_path / "text" / "sms_spam.parquet", 60, 12, ("",))
    write_corpus(tmp_path / "text" / "20newsgroups_bydate.parquet", 120, 60, ("train", "test"))
    rng = np.random.default_rng(0)
    y = np.array(["a"] * 12 + ["b"] * 12 + ["rare"] * 2)
    X = rng.normal(size=(len(y), 30)) + 2.0 * (y == "b")[:, None]
    np.savez(tmp_path / "genes" / "tiny.npz", X=X.astype(np.float32), y=y)
    monkeypatch.setenv("MAXDISC_DATA", str(tmp_path))
    monkeypatch.setattr(default_data, "TABLE_SEEDS", (0,))
    read_corpus.cache_clear()
    yield tmp_path
    read_corpus.cache_clear()


def run(folder, *arguments):
    """Run the command, and return the entries and the page."""
    record, page = folder / "record.json", folder / "page.md"
    main([*arguments, "--results", str(record), "--page", str(page)])
    return Record(record).cells(), page.read_text(encoding="utf-8")


def test_the_page_is_what_its_generator_makes_of_the_stored_record():
    """After a new record: python -m benchmarks.default_page."""
    assert make_page(Record(RESULTS)) == PAGE.read_text(encoding="utf-8")


def table_rows(text, heading):
    """Return the rows of the first table under a heading, by their first cell; emphasis is left out."""
    lines = text.split(heading, 1)[1].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| ---"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start + 1 :])
    cells = ([cell.strip().strip("*") for cell in row.strip("|").split("|")] for row in rows)
    return {name: values for name, *values in cells}


def test_the_readme_has_the_figures_of_the_page():
    readme = (PAGE.parents[2] / "README.md").read_text(encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    shown, means = table_rows(readme, "## Measured"), table_rows(page, "Means over")
    titles = {"naive Bayes (complement)": "ComplementNB", "NBSVM, words and pairs": "NBSVM"}
    assert {titles.get(name, name) for name in shown} == set(means)
    for name, (accuracy, loss, ece, used, seconds) in shown.items():
        found = means[titles.get(name, name)]
        assert [accuracy, loss, ece, used] == [found[0], found[2], found[3], found[5]], name
        assert seconds == f"{float(found[4]):.1f}", name
    ours, svm, logistic = (shown[n] for n in ("maxdisc", "LinearSVC, words and pairs", "logistic regression"))
    selected, _, _, megabytes = table_rows(page, "maxdisc alone")["20 Newsgroups"][-4:]
    for claim in (
        f"nine text corpora: {float(ours[0]):.1f} %; a tuned linear SVM on words and pairs of words has "
        f"{float(svm[0]):.1f} %",
        f"of its probabilities: {float(ours[2]):.1f} %",
        f"tuned logistic regression has {float(logistic[2]):.1f} %",
        f"{round(int(selected.replace(',', '')), -3):,} of 130,000 words, "
        f"a file of {float(megabytes):.0f} MB",
    ):
        assert claim in readme


def test_every_method_is_recorded_on_every_row_of_its_sections(data):
    rows = ["text/sms", "short/5", "short/all", "tables/tiny"]
    cells, page = run(data, "--only", *rows)
    for row in rows:
        section = row.split("/")[0]
        expected = {name for name, method in METHODS.items() if section in method.sections}
        assert {key.method for key in cells if key.row == row} == expected
    assert {(key.seed, key.fold) for key in cells if key.row == "text/sms"} == {(11, 0), (11, 1)}
    assert len({(key.seed, key.fold) for key in cells if key.row == "tables/tiny"}) == 5
    for key, cell in cells.items():
        assert all(np.isfinite(cell[name]) for name in FIGURES), key
        assert ("log_loss" in cell) == ("ece" in cell)
        if key.method == OURS:
            assert cell["file_bytes"] > 0
            assert cell["candidates"] > 0
            assert cell["code"] == hash_source()
            assert "log_loss" in cell
    for heading in ("## Text", "## Tables", "## Short texts", "## Time from text to model"):
        assert heading in page


def test_figures_are_those_of_scikit_learn(data):
    cells, _ = run(data, "--only", "text/sms", "--methods", OURS, "svm_words")
    for trial in make_text_trials("sms"):
        ((row, test),) = trial.tests.items()
        for name in (OURS, "svm_words"):
            model = METHODS[name].fit(*trial.train)
            cell = cells[Key(row, trial.seed, trial.fold, name)]
            predicted = model.predict(test.X)
            assert cell["accuracy"] == accuracy_score(test.y, predicted)
            assert cell["macro_f1"] == f1_score(test.y, predicted, average="macro")
            if name == OURS:
                assert cell["log_loss"] == pytest.approx(log_loss(test.y, model.predict_proba(test.X)))


def test_only_new_code_of_ours_is_run_again(data, monkeypatch):
    arguments = ("--only", "tables/tiny", "--methods", OURS, "centroids")
    before, _ = run(data, *arguments)
    measured = []
    measure = default_models.measure
    monkeypatch.setattr(
        default_models, "measure", lambda *given: measured.append(given[1]) or measure(*given)
    )
    assert run(data, *arguments)[0] == before
    assert measured == []
    monkeypatch.setattr(default_models, "hash_source", lambda: "another")
    after, _ = run(data, *arguments)
    assert set(measured) == {OURS}
    assert {cell["code"] for key, cell in after.items() if key.method == OURS} == {"another"}
    assert all(after[key] == before[key] for key in before if key.method != OURS)


@pytest.mark.usefixtures("data")
def test_rows_are_named_one_by_one_or_by_section():
    assert choose_rows(["tables", "text/sms"]) == ["text/sms", "tables/tiny"]
    assert "few/300" in choose_rows([])
    with pytest.raises(DataError, match="Unknown row 'text/none' in --only"):
        choose_rows(["text/none"])


@pytest.mark.usefixtures("data")
def test_training_and_test_rows_are_disjoint_and_rare_classes_left_out():
    for trial in make_trials(["text/sms", "text/20 Newsgroups"]):
        ((row, test),) = trial.tests.items()
        assert len({*trial.train.X, *test.X}) == {"text/sms": 60, "text/20 Newsgroups": 120}[row]
        assert not set(trial.train.X) & set(test.X)
    for trial in make_table_trials("tiny", 0):
        ((_, test),) = trial.tests.items()
        assert len(trial.train.y) + len(test.y) == 24
        assert set(trial.train.y) == set(test.y) == {0, 1}


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=5, max_size=20), min_size=1, max_size=5))
def test_a_piece_is_consecutive_words_of_its_text(texts):
    for words, piece in zip(texts, cut_pieces([" ".join(words) for words in texts], "5"), strict=True):
        found = piece.split()
        assert any(words[i : i + 5] == found for i in range(len(words) - 4))


@given(arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(0, 2)))
def test_candidates_are_features_of_two_rows(X):
    expected = sum(sum(value != 0 for value in column) >= 2 for column in X.T.tolist())
    stored_zeros = sp.csr_array(
        (X.ravel(), np.tile(np.arange(X.shape[1]), len(X)), X.shape[1] * np.arange(len(X) + 1))
    )
    assert count_candidates(X) == count_candidates(stored_zeros) == expected


def test_the_ratio_is_that_of_wang_and_manning():
    X = sp.csr_matrix([[0.5, 0.0, 0.2], [0.1, 0.3, 0.0], [0.0, 0.9, 0.4]])
    found = LogCountRatio().fit(X, np.array([1, 1, 0])).ratio_
    p, q = np.array([1 + 2, 1 + 1, 1 + 1]), np.array([1 + 0, 1 + 1, 1 + 1])
    np.testing.assert_allclose(found, np.log((p / 7) / (q / 5)))


# ------------------------------------------------------------------ the page


def cell(accuracy, **facts):
    return {"accuracy": accuracy, "macro_f1": 0.5, "cpu_seconds": 2.0, "selected": 10, **facts}


def ours(accuracy):
    return cell(accuracy, log_loss=0.5, ece=0.1, candidates=40, file_bytes=2_000_000, code="c0de")


def page_of(folder, cells):
    record = Record(folder / "record.json")
    run = {"command": "make bench-default", "date": "2026-01-02T00:00:00", "versions": {"numpy": "2"}}
    record.add(cells, run)
    return make_page(record)


def line_of(page, row):
    return next(line for line in page.splitlines() if line.startswith(f"| {row} |"))


def test_a_lost_row_is_shown_and_counted(tmp_path):
    page = page_of(
        tmp_path,
        {
            Key("text/sms", 11, 0, OURS): ours(0.9),
            Key("text/sms", 11, 0, "svm_words"): cell(0.95),
            Key("text/sms", 11, 0, "nbsvm"): cell(0.8),
            Key("text/bbc", 11, 0, OURS): ours(0.97),
            Key("text/bbc", 11, 0, "svm_words"): cell(0.95),
            Key("text/bbc", 11, 0, "nbsvm"): cell(0.96),
        },
    )
    assert line_of(page, "sms") == "| sms | 90.00 | 95.00 | 80.00 | LinearSVC, words | -5.00 |"
    assert line_of(page, "bbc").endswith("| NBSVM | +1.00 |")
    assert "ahead of the best competitor on 1 of 2 rows, level on 0, behind on 1" in page
    assert "mean difference -2.00 points" in page
    assert "25 %" in page


def test_methods_are_compared_on_folds_that_both_have(tmp_path):
    """The second fold, which ours has not been run on, is easy."""
    page = page_of(
        tmp_path,
        {
            Key("tables/a", 0, 0, OURS): ours(0.9),
            Key("tables/a", 0, 0, "svm"): cell(0.8),
            Key("tables/a", 0, 1, "svm"): cell(1.0),
        },
    )
    assert line_of(page, "a") == "| a | 90.00 | 80.00 | linear SVM | +10.00 |"


def test_rows_without_ours_say_so(tmp_path):
    page = page_of(tmp_path, {Key("text/sms", 11, 0, "svm_words"): cell(0.95)})
    assert line_of(page, "sms") == "| sms | 95.00 | LinearSVC, words |  |"
    assert "maxdisc has not been run on these rows." in page
