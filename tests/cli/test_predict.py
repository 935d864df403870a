"""``maxdisc predict``: the model's own answers, in order, from any batch size and format."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse as sp

from maxdisc import MaxDiscClassifier, load
from maxdisc.inspection.decisive_features import loudest
from maxdisc.testing import batches_of, random_data


def table_of(path):
    return pyarrow.csv.read_csv(path)


def test_labels_probabilities_and_runners_up_are_those_of_the_model(run, files):
    done = run("predict", files / "topics.maxdisc", files / "test.csv", "--probabilities")
    assert (done.code, done.err) == (0, "")
    model = load(files / "topics.maxdisc")
    texts = table_of(files / "test.csv")["body"].to_pylist()
    proba = model.predict_proba(texts)
    assert [row["label"] for row in done.rows] == model.predict(texts).tolist()
    order = np.argsort(-proba, axis=1, kind="stable")
    for row, p, best in zip(done.rows, proba, order, strict=True):
        assert float(row["probability"]) == pytest.approx(p[best[0]], rel=1e-5)
        assert row["runner_up"] == model.classes_[best[1]]
        assert float(row["runner_up_probability"]) == pytest.approx(p[best[1]], rel=1e-5)
        assert [float(row[f"p_{c}"]) for c in model.classes_] == pytest.approx(p, rel=1e-5)


def test_batches_do_not_matter(run, files):
    arguments = ("predict", files / "topics.maxdisc", files / "test.csv", "--explain", "3", "--keep", "*")
    whole = run(*arguments).out
    with batches_of(8):
        assert run(*arguments).out == whole
    assert [row["id"] for row in csv.DictReader(whole.splitlines())] == [str(i) for i in range(60)]


def test_unknown_rows_are_told_apart(run, files, tmp_path):
    model, rows = load(files / "topics.maxdisc"), files / "test.csv"
    texts = table_of(rows)["body"].to_pylist()
    p = model.novelty(texts)
    threshold = float(np.quantile(p, 0.3))
    arguments = ("predict", files / "topics.maxdisc", rows, "--unknown", threshold)
    done = run(*arguments)
    strange = p <= threshold
    assert 0 < strange.sum() < len(p)
    labels = np.where(strange, "unknown", model.predict(texts))
    assert [row["label"] for row in done.rows] == labels.tolist()
    assert [float(row["novelty"]) for row in done.rows] == pytest.approx(p.tolist(), rel=1e-5)
    assert f"{len(p)} rows predicted, {strange.sum()} of them unknown" in done.err
    done = run(*arguments, "--unknown-label", "other", "-o", tmp_path / "out.csv", "--explain", 2)
    assert f"{strange.sum()} of them other: " in done.err
    assert (tmp_path / "out.csv").read_text().count(",other,") + (tmp_path / "out.csv").read_text().count(
        "\nother,"
    ) >= strange.sum()


def test_unknown_is_refused_where_it_cannot_be_told(run, files, tmp_path):
    rows, topics = files / "test.csv", load(files / "topics.maxdisc").classes_
    for arguments, words in (
        (("--unknown", 1.5), "between 0 and 1"),
        (("--unknown", 0), "between 0 and 1"),
        (("--unknown", 0.01, "--unknown-label", topics[0]), "--unknown-label"),
    ):
        done = run("predict", files / "topics.maxdisc", rows, *arguments)
        assert (done.code, done.out) == (2, "")
        assert words in done.err
    train = files / "train.csv"
    assert (
        run(
            "fit", train, "--text", "body", "--label", "topic", "--evidence", "raw", "-o", tmp_path / "m"
        ).code
        == 0
    )
    done = run("predict", tmp_path / "m", rows, "--unknown", 0.01)
    assert (done.code, done.out) == (2, "")
    assert "--evidence calibrated" in done.err


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "jsonl"])
def test_formats_hold_the_same(run, files, tmp_path, form):
    expected = run("predict", files / "topics.maxdisc", files / "test.csv", "--keep", "id,topic").rows
    out = tmp_path / f"out.{form}"
    done = run("predict", files / "topics.maxdisc", files / "test.csv", "--keep", "id,topic", "-o", out)
    assert (done.code, done.out) == (0, "")
    assert "60 rows predicted" in done.err
    if form == "parquet":
        rows = pyarrow.parquet.read_table(out).to_pylist()
    elif form == "jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        rows = list(csv.DictReader(out.read_text().splitlines(), delimiter="," if form == "csv" else "\t"))
    assert [row["label"] for row in rows] == [row["label"] for row in expected]
    assert [row["id"] for row in rows] == [row["id"] for row in expected]
    assert [float(r["probability"]) for r in rows] == pytest.approx(
        [float(r["probability"]) for r in expected]
    )


def test_reasons_are_the_explanation(run, files):
    model = load(files / "topics.maxdisc")
    texts = table_of(files / "test.csv")["body"].to_pylist()
    X, explanation = model.vectorizer_.transform(texts), model.explain(texts)
    names = explanation.names
    done = run("predict", files / "topics.maxdisc", files / "test.csv", "--explain", "4", "--json")
    for i, line in enumerate(done.out.splitlines()):
        because = json.loads(line)["because"]
        top = explanation.top(i, 4)
        assert [r["log_odds"] for r in because] == pytest.approx([odds for _, odds in top])
        for reason in because:
            column = int(np.flatnonzero(names == reason["feature"])[0])
            kept = model.decision_.columns[column]
            assert reason["present"] == bool(X[[i]][:, [kept]].toarray().any())
    row = run("predict", files / "topics.maxdisc", files / "test.csv", "--explain", "2").rows[0]
    assert row["because"].count(",") == 1
    assert "+" in row["because"]


@pytest.mark.parametrize("family", ["poisson", "gaussian", "hurdle", "bernoulli"])
def test_reasons_from_stored_cells_are_those_from_all(family):
    X, codes = random_data(family, 40, 4, 30)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.6, 0.0, X)
    model = MaxDiscClassifier(family, n_features=25, smoothing=1.0).fit(sp.csr_array(X), codes)
    names = np.array([f"x{i}" for i in range(30)])[model.decision_.columns]
    order = np.argsort(-model.predict_log_proba(X), axis=1)
    first, second = order[:, 0], order[:, 1]
    sparse = loudest(model.decision_, names, sp.csr_array(X), first, second, 6)
    dense = loudest(model.decision_, names, X, first, second, 6)
    explanation = model.explain(X)
    for i in range(len(X)):
        odds = dict(
            zip(
                names,
                explanation.contributions[i, first[i]] - explanation.contributions[i, second[i]],
                strict=True,
            )
        )
        loud = np.abs([o for _, o in explanation.top(i, 6)])
        for reasons in (sparse[i], dense[i]):
            # Ties may stand in any order, so magnitudes are compared, and every feature with its own.
            assert np.abs([r.log_odds for r in reasons]) == pytest.approx(loud, abs=1e-9)
            for r in reasons:
                assert r.log_odds == pytest.approx(odds[r.feature], abs=1e-9)
                assert r.present == (X[i, int(r.feature[1:])] != 0)


def test_tables_are_matched_by_name_in_any_order(run, files, tmp_path):
    table = table_of(files / "iris.csv")
    names = ["petal_w", "extra", "sepal_w", "petal_l", "sepal_l"]
    pyarrow.csv.write_csv(
        table.append_column("extra", table["plot"]).select(names), tmp_path / "shuffled.csv"
    )
    expected = run("predict", files / "iris.maxdisc", files / "iris.csv").out
    assert run("predict", files / "iris.maxdisc", tmp_path / "shuffled.csv").out == expected


def test_missing_cells_are_no_evidence(run, files, tmp_path):
    (tmp_path / "gaps.csv").write_text("sepal_l,sepal_w,petal_l,petal_w\n5.1,3.5,1.4,0.2\n,NA,?,n/a\n")
    rows = run("predict", files / "iris.maxdisc", tmp_path / "gaps.csv", "--explain", "1").rows
    assert rows[0]["label"] == "setosa"
    assert rows[1]["because"].endswith(" +0.00")
    run("fit", files / "iris.csv", "--label", "species", "-o", tmp_path / "raw", "--evidence", "raw")
    rows = run("predict", tmp_path / "raw", tmp_path / "gaps.csv").rows
    assert float(rows[1]["probability"]) == pytest.approx(1 / 3, rel=1e-5)


def test_standard_input(run, files):
    done = run("predict", files / "topics.maxdisc", "-", stdin=b"the moon rocket\nbutter in the pan\n")
    assert [row["label"] for row in done.rows] == ["space", "cooking"]
    assert done.err == "standard input read as one document on each line; change with --format\n"
    done = run("predict", files / "topics.maxdisc", "-", stdin=(files / "test.csv").read_bytes())
    assert len(done.rows) == 60
    assert "read as csv" in done.err
    done = run("predict", files / "topics.maxdisc", "-", "--format", "lines", "-q", stdin=b"body,x\nice\n")
    assert (len(done.rows), done.err) == (2, "")


def test_another_text_column(run, files, tmp_path):
    text = (files / "test.csv").read_text().replace("body", "message", 1)
    (tmp_path / "other.csv").write_text(text)
    refused = run("predict", files / "topics.maxdisc", tmp_path / "other.csv")
    assert refused.code == 2
    assert "name the one that does with --text" in refused.err
    done = run("predict", files / "topics.maxdisc", tmp_path / "other.csv", "--text", "message")
    assert done.out == run("predict", files / "topics.maxdisc", files / "test.csv").out


def test_a_kept_column_does_not_hide_a_predicted_one(run, files, tmp_path):
    (tmp_path / "a.csv").write_text("label,body\nx,the moon\n")
    (row,) = run("predict", files / "topics.maxdisc", tmp_path / "a.csv", "--keep", "label").rows
    assert (row["given_label"], row["label"]) == ("x", "space")
