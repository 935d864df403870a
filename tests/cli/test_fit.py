"""``maxdisc fit``: what is guessed, what is learnt, what is remembered."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss

from maxdisc import MaxDiscClassifier, load
from maxdisc.model_file import describe
from maxdisc.numerics import compiling


def test_documents_are_guessed_shown_and_fitted(run, files, tmp_path):
    done = run("fit", files / "train.csv", "-o", tmp_path / "m.maxdisc")
    assert done.code == 0
    assert done.err == "label: topic (3 classes), text: body; change with --label, --text\n"
    assert "150 in 3 classes" in done.out
    assert "100.0% ± 0.0% on held-out folds (baseline 33.3%)" in done.out
    about = describe(tmp_path / "m.maxdisc")["about"]
    assert about == {
        "text": "body", "label": "topic", "rows": 150, "sources": ["train.csv"], "formats": ["csv"],
    }  # fmt: skip


def test_the_shares_of_the_classes_are_the_baseline(run, tmp_path):
    labels = ["a"] * 40 + ["b"] * 12 + ["c"] * 4
    (tmp_path / "t.csv").write_text(
        "x,y\n" + "".join(f"{i / 7:.2f},{label}\n" for i, label in enumerate(labels))
    )
    facts = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", "--label", "y", "--json").json
    peer = DummyClassifier(strategy="prior").fit(np.zeros((56, 1)), labels)
    assert facts["majority_class"] == "a"
    assert facts["majority_accuracy"] == peer.score(np.zeros((56, 1)), labels)
    assert facts["baseline_log_loss"] == pytest.approx(
        log_loss(labels, peer.predict_proba(np.zeros((56, 1))))
    )
    assert facts["small_classes"] == {"c": 4}
    for more in ((), ("--stream", "--folds", 3)):
        shown = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m", "-f", "--label", "y", *more).out
        assert "1 class has fewer than 10 rows: c (4)" in shown
        assert "accuracy 71.4% by the largest class, a; log-loss 0.759 by the shares" in shown


def test_families_are_those_of_the_selected_features(run, files, tmp_path):
    arguments = ("fit", files / "iris.csv", "-o", tmp_path / "m", "--n-features", 2)
    arguments += ("--structure", "independent", "--label", "species", "--exclude", "id")
    facts = run(*arguments, "--json").json
    assert sum(facts["families_selected"].values()) == facts["features_kept"] == 2
    assert "2 of 4 features selected" in run(*arguments, "--force").out


def test_a_fit_says_what_it_compiled(run, files, tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "compiled_so_far", lambda: (7, 12.34))
    done = run("fit", files / "iris.csv", "-o", tmp_path / "m")
    assert "7 functions in 12.3 s; later runs find them" in done.out
    monkeypatch.setattr(compiling, "compiled_so_far", lambda: (0, 0.0))
    assert "compiled" not in run("fit", files / "iris.csv", "-o", tmp_path / "m", "-f").out


def test_asked_for_is_not_guessed(run, files, tmp_path):
    done = run("fit", files / "train.csv", "--text", "body", "--label", "topic", "-o", tmp_path / "m")
    assert (done.code, done.err) == (0, "")


def test_a_table_leaves_out_what_is_no_measurement(run, files, tmp_path):
    done = run("fit", files / "iris.csv", "-o", tmp_path / "m", "--json")
    assert done.err.splitlines() == [
        "label: species (3 classes), features: sepal_l, sepal_w, petal_l, petal_w; "
        "change with --label, --features",
        "left out: id (it numbers the rows)",
        "left out: plot (it holds text that hardly repeats)",
    ]
    X, y = saved_table(files), load_iris().target
    model = MaxDiscClassifier().fit(X, y)
    facts = done.json
    assert facts["features_kept"] == model.n_selected_
    assert facts["held_out_accuracy"] == pytest.approx(model.evidence_.accuracy)
    assert (facts["kind"], facts["rows"], facts["classes"], facts["family"]) == ("table", 150, 3, "gaussian")
    assert facts["families"] == {"gaussian": 4}
    assert np.allclose(load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


def saved_table(files):
    table = pyarrow.csv.read_csv(files / "iris.csv")
    return table.select(["sepal_l", "sepal_w", "petal_l", "petal_w"])


def test_joint_densities_of_a_table(run, files, tmp_path):
    done = run("fit", files / "iris.csv", "-o", tmp_path / "m", "--structure", "joint")
    assert done.code == 0
    assert load(tmp_path / "m").joint_ is not None
    done = run("predict", tmp_path / "m", files / "iris.csv", "-o", tmp_path / "out.csv", "--explain", "2")
    assert done.code == 0
    refused = run(
        "fit", files / "iris.csv", "-o", tmp_path / "n", "--structure", "joint", "--family", "gamma"
    )
    assert refused.code == 2
    assert "joint densities are Gaussian" in refused.err
    assert refused.err.count("\n") == 1
    assert not (tmp_path / "n").exists()


def test_options_reach_the_estimators(run, files, tmp_path):
    words = tmp_path / "stop.txt"
    words.write_text("the\nand\n")
    done = run(
        "fit", files / "train.csv", "-o", tmp_path / "m", "--family", "exponential", "--n-features", "7",
        "--smoothing", "0.5", "--folds", "3", "--rule", "one_se", "--scale", "log", "--stop-words", words,
        "--min-count", "2", "--min-df", "3", "--max-df", "0.9", "--max-features", "20", "--ngrams", "1,2",
        "--divergence", "jensen_shannon", "--redundancy", "0.5",
    )  # fmt: skip
    assert done.code == 0
    vectorizer, classifier = load(tmp_path / "m")
    asked = classifier.get_params()
    names = ("family", "n_features", "smoothing", "cv", "rule", "divergence", "redundancy")
    assert [asked[k] for k in names] == ["exponential", 7, 0.5, 3, "one_se", "jensen_shannon", 0.5]
    assert classifier.n_selected_ == 7
    asked = vectorizer.get_params()
    expected = {
        "scale": "log", "min_count": 2, "min_df": 3, "max_df": 0.9, "max_features": 20, "ngram_range": (1, 2),
    }  # fmt: skip
    assert {k: asked[k] for k in expected} == expected
    assert list(asked["stop_words"]) == ["and", "the"]
    assert "the" not in vectorizer.terms_


@pytest.mark.parametrize(("flag", "value"), [("--n-features", "0.5"), ("--n-features", "all")])
def test_shares_and_all(run, files, tmp_path, flag, value):
    done = run("fit", files / "iris.csv", "-o", tmp_path / "m", flag, value, "--json")
    assert done.json["features_kept"] == {"0.5": 2, "all": 4}[value]


def test_features_and_exclude(run, files, tmp_path):
    run("fit", files / "iris.csv", "-o", tmp_path / "a", "--features", "petal_*,sepal_w")
    assert list(load(tmp_path / "a").feature_names_in_) == ["sepal_w", "petal_l", "petal_w"]
    run("fit", files / "iris.csv", "-o", tmp_path / "b", "--exclude", "petal_*", "--exclude", "id")
    assert list(load(tmp_path / "b").feature_names_in_) == ["sepal_l", "sepal_w"]


def test_every_format_gives_the_same_model(run, files, tmp_path):
    table = pyarrow.csv.read_csv(files / "train.csv")
    pyarrow.parquet.write_table(table, tmp_path / "train.parquet")
    (tmp_path / "train.jsonl").write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
    half = table.num_rows // 2
    pyarrow.csv.write_csv(table.slice(0, half), tmp_path / "part-1.csv")
    pyarrow.csv.write_csv(table.slice(half), tmp_path / "part-2.csv")
    sources = {"parquet": "train.parquet", "jsonl": "train.jsonl", "parts": "part-*.csv"}
    texts = table["body"].to_pylist()
    expected = load(files / "topics.maxdisc").predict_log_proba(texts)
    for name, source in sources.items():
        assert run("fit", tmp_path / source, "-o", tmp_path / name).code == 0
        assert np.array_equal(load(tmp_path / name).predict_log_proba(texts), expected)
    piped = run("fit", "-", "-o", tmp_path / "piped", stdin=(files / "train.csv").read_bytes())
    assert piped.code == 0
    assert np.array_equal(load(tmp_path / "piped").predict_log_proba(texts), expected)


def test_folders_of_text(run, files, tmp_path):
    for row in pyarrow.csv.read_csv(files / "train.csv").to_pylist():
        path = tmp_path / "mail" / row["topic"] / f"{row['id']}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row["body"])
    done = run("fit", tmp_path / "mail", "-o", tmp_path / "m", "--json")
    assert (done.json["rows"], done.json["classes"], done.json["text"]) == (150, 3, "text")
    predicted = run("predict", tmp_path / "m", tmp_path / "mail")
    assert all(row["file"].split("/")[0] == row["label"] for row in predicted.rows)


def test_svmlight(run, tmp_path):
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X, y - 1, str(tmp_path / "iris.svm"), zero_based=False)
    assert run("fit", tmp_path / "iris.svm", "-o", tmp_path / "m", "--family", "gaussian").code == 0
    model = load(tmp_path / "m")
    assert model.classes_.tolist() == ["-1", "0", "1"]
    assert model.n_features_in_ == 5  # column 0 stays empty
    (tmp_path / "wider.svm").write_text("0 1:5 4:2 9:1\n0 1:5\n")
    assert len(run("predict", tmp_path / "m", tmp_path / "wider.svm").rows) == 2
    assert run("evaluate", tmp_path / "m", tmp_path / "iris.svm", "--json").json["accuracy"] > 0.9


def test_unlabelled_rows_are_skipped_only_when_asked(run, files, tmp_path):
    lines = (files / "train.csv").read_text().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ","
    (tmp_path / "gaps.csv").write_text("\n".join(lines))
    refused = run("fit", tmp_path / "gaps.csv", "-o", tmp_path / "m")
    assert refused.code == 2
    assert "1 of 150 rows" in refused.err
    assert "gaps.csv row 3: leave them out with --skip-unlabelled, or learn from them" in refused.err
    done = run("fit", tmp_path / "gaps.csv", "-o", tmp_path / "m", "--skip-unlabelled", "--json")
    assert done.json["rows"] == 149
    assert "1 of 150 rows" in done.err


def test_rows_without_a_label_are_learnt_from_when_asked(run, files, tmp_path):
    head, *lines = (files / "train.csv").read_text().splitlines()
    for name, label in (("gaps.csv", ""), ("words.csv", "unknown")):
        partly = [line if i % 3 else line.rsplit(",", 1)[0] + "," + label for i, line in enumerate(lines)]
        (tmp_path / name).write_text("\n".join([head, *partly]))
        done = run("fit", tmp_path / name, "-o", tmp_path / "m", "--unlabelled", label, "--json", "--force")
        assert done.code == 0
        assert done.json["unlabelled"]["rows"] == 50
        assert "50 of 150 rows" in done.err
        assert label not in load(tmp_path / "m").classes_
        assert run("info", tmp_path / "m").code == 0
    for flags, named in (
        (["--skip-unlabelled"], "--skip-unlabelled"),
        (["--search"], "--search"),
        (["--stream"], "--stream"),
        (["--engine", "dask"], "--engine dask"),
        (["--structure", "joint"], "--structure joint"),
    ):
        refused = run("fit", tmp_path / "gaps.csv", "-o", tmp_path / "n", "--unlabelled", "", *flags)
        assert refused.code == 2
        assert f"leave out {named}" in refused.err


def test_without_moments_the_file_is_smaller_and_says_the_same(run, files, tmp_path):
    done = run("fit", files / "train.csv", "-o", tmp_path / "m", "--keep-moments")
    assert re.search(r"--keep-moments: the moments take [\d.]+ \w+ of the file's [\d.]+ \w+\n", done.err)
    assert (tmp_path / "m").read_bytes() == (files / "topics.maxdisc").read_bytes()
    run("fit", files / "train.csv", "-o", tmp_path / "without")
    assert (tmp_path / "without").stat().st_size < (tmp_path / "m").stat().st_size
    a = run("predict", tmp_path / "m", files / "test.csv").out
    assert a == run("predict", tmp_path / "without", files / "test.csv").out
    run("fit", files / "train.csv", "-o", tmp_path / "n", "--no-moments")
    assert (tmp_path / "n").read_bytes() == (tmp_path / "without").read_bytes()


def test_a_value_that_the_family_refuses_is_named_by_file_and_row(run, tmp_path):
    rows = "".join(f"{i % 3 + 1},{'ab'[i % 2]}\n" for i in range(20))
    (tmp_path / "1.csv").write_text("x,label\n" + rows)
    (tmp_path / "2.csv").write_text("x,label\n" + rows + "-4,a\n")
    done = run("fit", tmp_path / "*.csv", "-o", tmp_path / "m", "--family", "poisson")
    assert done.code == 2
    assert f"column 'x' has -4 in {tmp_path / '2.csv'} row 21" in done.err
