"""What ``predict`` decides from probabilities, with the model's own probabilities as oracle."""

from __future__ import annotations

import numpy as np
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pytest

from maxdisc import load

CLASSES = ("cooking", "hockey", "space")
COSTS = np.array([[0.0, 1.0, 5.0, 0.1], [2.0, 0.0, 1.0, 0.1], [30.0, 4.0, 0.0, 0.1]])


@pytest.fixture(scope="module")
def known(files):
    """The model of documents, its test rows, and their probabilities."""
    model = load(files / "topics.maxdisc")
    assert tuple(model.classes_) == CLASSES
    texts = pyarrow.csv.read_csv(files / "test.csv")["body"].to_pylist()
    return files / "topics.maxdisc", files / "test.csv", model.predict_proba(texts), model.novelty(texts)


def written(path, decisions, costs, classes=CLASSES):
    lines = [",".join(["truth", *decisions])]
    lines += [",".join([label, *map(str, row)]) for label, row in zip(classes, costs, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_most_probable_classes_are_added(run, known):
    model, rows, proba, _ = known
    done = run("predict", model, rows, "--top", 3)
    order = np.argsort(-proba, axis=1, kind="stable")
    for row, p, best in zip(done.rows, proba, order, strict=True):
        assert [row[f"top_{rank}"] for rank in (1, 2, 3)] == [CLASSES[c] for c in best]
        shown = [float(row[f"top_{rank}_probability"]) for rank in (1, 2, 3)]
        assert shown == pytest.approx(p[best], rel=1e-5)
        assert (row["label"], row["runner_up"]) == (row["top_1"], row["top_2"])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_unsure_rows_get_no_label(run, known, tmp_path, suffix):
    model, rows, proba, _ = known
    best = proba.max(axis=1)
    threshold = float(np.median(best))
    out = tmp_path / f"out.{suffix}"
    done = run("predict", model, rows, "--abstain-below", repr(threshold), "-o", out)
    unsure = best < threshold
    assert 0 < unsure.sum() < len(unsure)
    assert f"{unsure.sum()} of them without a label" in done.err
    read = {"csv": pyarrow.csv.read_csv, "parquet": pyarrow.parquet.read_table}.get(suffix)
    table = pyarrow.json.read_json(out) if read is None else read(out)
    labels = [label or None for label in table["label"].to_pylist()]
    expected = [None if u else CLASSES[c] for u, c in zip(unsure, proba.argmax(axis=1), strict=True)]
    assert labels == expected


def test_the_decision_costs_least(run, known, tmp_path):
    model, rows, proba, _ = known
    # The columns may stand in any order.
    order = [3, 1, 0, 2]
    names = np.array([*CLASSES, "ask"])[order]
    costs = written(tmp_path / "costs.csv", names, COSTS[:, order])
    done = run("predict", model, rows, "--costs", costs)
    expected = proba @ COSTS[:, order]
    assert [row["decision"] for row in done.rows] == names[expected.argmin(axis=1)].tolist()
    least = expected.min(axis=1)
    assert [float(row["expected_cost"]) for row in done.rows] == pytest.approx(least, rel=1e-4, abs=1e-9)
    assert [row["label"] for row in done.rows] == [CLASSES[c] for c in proba.argmax(axis=1)]
    assert f"expected cost {least.mean():.4g} a row" in done.err
    assert "ask" in {row["decision"] for row in done.rows}


def test_equal_costs_of_mistakes_decide_for_the_label(run, known, tmp_path):
    costs = written(tmp_path / "costs.csv", CLASSES, 1 - np.eye(3))
    done = run("predict", *known[:2], "--costs", costs)
    assert all(row["decision"] == row["label"] for row in done.rows)


def test_unknown_rows_are_unknown_whatever_else_is_asked(run, known, tmp_path):
    model, rows, proba, novelty = known
    threshold = float(np.quantile(novelty, 0.3))
    strange = novelty <= threshold
    limit = float(np.quantile(proba.max(axis=1), 0.7))
    unsure = (proba.max(axis=1) < limit) & ~strange
    done = run("predict", model, rows, "--unknown", repr(threshold), "--abstain-below", repr(limit))
    labels = np.where(strange, "unknown", np.where(unsure, "", np.array(CLASSES)[proba.argmax(axis=1)]))
    assert [row["label"] for row in done.rows] == labels.tolist()
    assert f"{strange.sum()} of them unknown, {unsure.sum()} of them without a label" in done.err
    costs = written(tmp_path / "costs.csv", ["act", "wait"], [[0, 1], [1, 0], [1, 1]])
    done = run("predict", model, rows, "--unknown", repr(threshold), "--costs", costs)
    assert [row["decision"] == "unknown" for row in done.rows] == strange.tolist()
    assert [row["expected_cost"] == "" for row in done.rows] == strange.tolist()
    assert f"a row of the {len(strange) - strange.sum()} others" in done.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("truth\ncooking\n", "no column behind the true class"),
        ("truth,a,a\ncooking,1,2\n", "two columns 'a'"),
        ("truth,cooking,hockey,spice\ncooking,0,1,1\n", "none for 'space': did you mean 'spice'?"),
        ("truth,cooking\ncooking,0\n", "none for 'hockey'"),
        ("truth,a\ncooking,0\nhocky,1\nspace,1\n", "row 2: the model has no class 'hocky'"),
        ("truth,a\ncooking,0\ncooking,1\nspace,1\n", "row 2: 'cooking' has a row already"),
        ("truth,a\ncooking,0\nspace,1\n", "no row for the class 'hockey'"),
        ("truth,a\ncooking,0\nhockey,much\nspace,1\n", "row 2, column 'a': 'much' is not a cost"),
        ("truth,a\ncooking,0\nhockey,\nspace,1\n", "row 2, column 'a': '' is not a cost"),
        ("truth,a\ncooking,0\nhockey,inf\nspace,1\n", "'inf' is not a cost"),
    ],
)
def test_a_bad_matrix_is_one_line(run, known, tmp_path, text, told):
    path = tmp_path / "costs.csv"
    path.write_text(text)
    done = run("predict", *known[:2], "--costs", path, "-o", tmp_path / "out.csv")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert told in done.err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--top", 4), "has only 3 classes"),
        (("--abstain-below", 0), "above 0 and up to 1"),
        (("--abstain-below", 1.2), "above 0 and up to 1"),
        (("--abstain-below", 0.8, "--costs", "costs.csv"), "such as 'ask'"),
        (("--costs", "absent.csv"), "absent.csv does not exist"),
    ],
)
def test_what_cannot_be_is_one_line(run, known, arguments, told):
    done = run("predict", *known[:2], *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert told in done.err
