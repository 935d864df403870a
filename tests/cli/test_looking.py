"""``evaluate``, ``report``, ``rank``, ``explain``, ``info``, ``demo``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
from sklearn.metrics import accuracy_score, f1_score, log_loss, precision_recall_fscore_support

from maxdisc import load


def columns(path):
    return pyarrow.csv.read_csv(path).to_pydict()


class TestEvaluate:
    def test_figures_are_those_of_scikit_learn(self, run, files):
        data = columns(files / "iris.csv")
        names = ["sepal_l", "sepal_w", "petal_l", "petal_w"]
        model = load(files / "iris.maxdisc")
        table = pyarrow.csv.read_csv(files / "iris.csv").select(names)
        y, predicted = np.array(data["species"]), model.predict(table)
        facts = run("evaluate", files / "iris.maxdisc", files / "iris.csv", "--json").json
        assert facts["accuracy"] == pytest.approx(accuracy_score(y, predicted))
        assert facts["macro_f1"] == pytest.approx(f1_score(y, predicted, average="macro"))
        assert facts["log_loss"] == pytest.approx(log_loss(y, model.predict_proba(table)))
        expected = precision_recall_fscore_support(y, predicted)
        shown = [[c[k] for c in facts["classes"]] for k in ("precision", "recall", "f1", "rows")]
        assert np.allclose(shown, expected)

    def test_a_check_that_fails_is_exit_code_1(self, run, files):
        arguments = ("evaluate", files / "topics.maxdisc", files / "test.csv")
        done = run(*arguments)
        assert done.code == 0
        assert "accuracy 100.0% on 60 rows (the largest class alone: 33.3%)" in done.out
        assert run(*arguments, "--min-accuracy", "1.0").code == 0
        text = (files / "test.csv").read_text().replace(",space\n", ",hockey\n", 1)
        (files / "wrong.csv").write_text(text)
        failed = run(*arguments[:2], files / "wrong.csv", "--min-accuracy", "1.0")
        assert failed.code == 1
        assert failed.err == "maxdisc: the accuracy, 0.9833, is below 1.\n"

    def test_labels_the_model_does_not_know_count_as_wrong(self, run, files, tmp_path):
        text = (files / "test.csv").read_text().replace(",space\n", ",astronomy\n")
        (tmp_path / "new.csv").write_text(text)
        done = run("evaluate", files / "topics.maxdisc", tmp_path / "new.csv", "--json")
        assert done.json["accuracy"] == pytest.approx(2 / 3)
        assert done.json["unknown_labels"] == {"astronomy": 20}
        assert (
            f"20 rows have a label that {files / 'topics.maxdisc'} does not know, such as 'astronomy'"
            in done.err
        )


class TestReport:
    @pytest.mark.parametrize(
        ("name", "start"), [("r.html", "<!doctype html"), ("r.md", "#"), ("r.json", "{")]
    )
    def test_written_as_its_name_says(self, run, files, tmp_path, name, start):
        done = run("report", files / "topics.maxdisc", "--data", files / "test.csv", "-o", tmp_path / name)
        assert (done.code, done.out) == (0, "")
        assert (tmp_path / name).read_text().lower().startswith(start)
        assert "60 rows evaluated" in done.err

    def test_of_a_table(self, run, files, tmp_path):
        out = tmp_path / "r"
        arguments = ("report", files / "iris.maxdisc", "--data", files / "iris.csv", "-o", out)
        assert run(*arguments, "--format", "json").code == 0
        assert json.loads(out.read_text())
        assert run(*arguments).code == 2
        assert run(*arguments, "--force").code == 0
        assert out.read_text().lower().startswith("<!doctype html")


class TestRank:
    def test_best_first(self, run, files):
        features = run("rank", files / "topics.maxdisc", "-n", "6", "--json").json["features"]
        scores = [f["score"] for f in features]
        assert scores == sorted(scores, reverse=True)
        classifier = load(files / "topics.maxdisc")
        vectorizer = classifier.vectorizer_
        assert [f["feature"] for f in features] == vectorizer.terms_[classifier.ranking_[:6]].tolist()
        shown = run("rank", files / "topics.maxdisc", "-n", "6").out
        assert [line.split()[1] for line in shown.splitlines()[2:]] == [f["feature"] for f in features]

    def test_one_class(self, run, files):
        done = run("rank", files / "topics.maxdisc", "--class", "hockey", "-n", "4", "--json")
        assert {f["feature"] for f in done.json["features"]} <= {"goal", "ice", "puck", "team", "season"}
        assert all(f["direction"] == 1 for f in done.json["features"])
        assert all(f["q"] < 0.01 and f["stability"] == 1 for f in done.json["features"])
        wrong = run("rank", files / "topics.maxdisc", "--class", "hokey")
        assert wrong.code == 2
        assert "did you mean 'hockey'" in wrong.err

    def test_only_what_can_be_trusted(self, run, files):
        everything = run("rank", files / "topics.maxdisc", "-n", "1000", "--json").json["features"]
        trusted = run("rank", files / "topics.maxdisc", "-n", "1000", "--q", "0.05", "--json").json[
            "features"
        ]
        assert trusted == [f for f in everything if f["q"] <= 0.05]
        assert len(trusted) == 15
        assert not {f["feature"] for f in trusted} & {"the", "and", "of", "with", "about", "near"}
        assert "stability" in run("rank", files / "topics.maxdisc", "--q", "0.05").out
        assert run("rank", files / "topics.maxdisc", "--class", "hockey", "--q", "1e-300").code == 0
        wrong = run("rank", files / "topics.maxdisc", "--q", "7")
        assert (wrong.code, wrong.out) == (2, "")
        assert "q must be a share" in wrong.err


class TestRankByRows:
    """P-values of families whose moments do not tell them, from labelled rows."""

    @pytest.fixture
    def gamma(self, run, tmp_path):
        rng = np.random.default_rng(0)
        y = np.repeat(["a", "b"], 40)
        X = rng.gamma(2.0, size=(80, 12))
        X[:40, :2] *= 4
        names = [f"x{j}" for j in range(12)]
        lines = [",".join([*map(repr, row.tolist()), label]) for row, label in zip(X, y, strict=True)]
        (tmp_path / "gamma.csv").write_text("\n".join([",".join([*names, "kind"]), *lines]) + "\n")
        arguments = (
            "--label",
            "kind",
            "--family",
            "gamma",
            "-o",
            tmp_path / "gamma.maxdisc",
            "--keep-moments",
        )
        assert run("fit", tmp_path / "gamma.csv", *arguments).code == 0
        return X, y, names

    def test_what_moments_do_not_tell_is_said_and_rows_do(self, run, gamma, tmp_path):
        X, y, names = gamma
        model = tmp_path / "gamma.maxdisc"
        without = run("rank", model, "-n", "12", "--json")
        assert all(f["p"] is None for f in without.json["features"])
        assert "12 of these features have no p-value" in without.err
        assert "--data" in without.err
        told = run("rank", model, "--q", "0.1")
        assert told.code == 2
        assert "maxdisc rank with --data" in told.err
        found = run("rank", model, "--data", tmp_path / "gamma.csv", "-n", "12", "--json")
        assert "p-value" not in found.err
        oracle = load(model).set_params(random_state=0).ranking_table(pd.DataFrame(X, columns=names), y)
        assert [f["feature"] for f in found.json["features"]] == list(oracle["feature"])
        assert [f["p"] for f in found.json["features"]] == list(oracle["p"])
        assert [f["q"] for f in found.json["features"]] == list(oracle["q"])
        trusted = run("rank", model, "--data", tmp_path / "gamma.csv", "--q", "0.01", "--json")
        assert {f["feature"] for f in trusted.json["features"]} == {"x0", "x1"}

    def test_documents_too(self, run, files):
        done = run("rank", files / "topics.maxdisc", "--data", files / "test.csv", "-n", "3", "--json")
        assert done.code == 0
        assert all(f["p"] < 0.05 for f in done.json["features"])

    @pytest.mark.usefixtures("gamma")
    def test_labels_that_the_model_does_not_know_are_named(self, run, tmp_path):
        text = (tmp_path / "gamma.csv").read_text().replace(",b\n", ",c\n", 3)
        (tmp_path / "other.csv").write_text(text)
        done = run("rank", tmp_path / "gamma.maxdisc", "--data", tmp_path / "other.csv")
        assert (done.code, done.out) == (2, "")
        assert "3 rows of" in done.err
        assert "have a label that the model does not know, first 'c'" in done.err

    @pytest.mark.usefixtures("gamma")
    def test_a_report_says_how_to_get_them(self, run, tmp_path):
        for name in ("r.md", "r.html"):
            model, data = tmp_path / "gamma.maxdisc", tmp_path / "gamma.csv"
            assert run("report", model, "--data", data, "-o", tmp_path / name).code == 0
            assert "maxdisc rank with --data, computes it" in (tmp_path / name).read_text()


class TestExplain:
    def test_an_exact_sum(self, run, files):
        facts = run("explain", files / "topics.maxdisc", "the rocket near the puck", "-n", "3", "--json").json
        total = facts["prior"] + facts["others"] + sum(f["log_odds"] for f in facts["features"])
        assert total == pytest.approx(facts["log_odds"])
        assert facts["log_odds"] == pytest.approx(np.log(facts["probability"] / facts["against_probability"]))
        assert len(facts["features"]) == 3

    def test_marks_can_be_read_without_colours(self, run, files):
        shown = run("explain", files / "topics.maxdisc", "the [bold]rocket[/] to the moon, this season").out
        assert shown.startswith("space ")
        assert "the [bold]rocket[/] to the moon, this season" in shown  # nothing is taken for markup
        lines = {line.split()[1]: line.split()[0] for line in shown.splitlines()[4:] if line.strip()}
        assert lines["rocket"].startswith("+")
        assert lines["season"].startswith("-")

    def test_the_row_of_others_is_there_only_if_there_are_others(self, run, files):
        command = ("explain", files / "topics.maxdisc", "the rocket near the puck")
        n_others = run(*command, "-n", "1", "--json").json["n_others"]
        assert n_others > 0
        assert f"{n_others:,} others" in run(*command, "-n", "1").out
        assert run(*command, "-n", "10000", "--json").json["n_others"] == 0
        assert "others" not in run(*command, "-n", "10000").out

    def test_a_row_of_a_file(self, run, files):
        by_row = run(
            "explain", files / "topics.maxdisc", "--data", files / "test.csv", "--row", "7", "--json"
        )
        text = columns(files / "test.csv")["body"][6]
        by_text = run("explain", files / "topics.maxdisc", "-", "--json", stdin=text.encode())
        assert by_row.json["features"] == by_text.json["features"]
        table = run("explain", files / "iris.maxdisc", "--data", files / "iris.csv", "--row", "2")
        assert table.out.startswith("setosa")
        assert "petal_l" in table.out
        beyond = run("explain", files / "iris.maxdisc", "--data", files / "iris.csv", "--row", "151")
        assert beyond.code == 2
        assert "has 150 rows: there is no row 151" in beyond.err

    def test_against_another_class(self, run, files):
        arguments = ("explain", files / "topics.maxdisc", "moon puck moon", "--against", "cooking", "--json")
        assert run(*arguments).json["against"] == "cooking"

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [(["topics.maxdisc"], "name one thing"), (["iris.maxdisc", "some text"], "model of numbers")],
    )
    def test_what_cannot_be_explained(self, run, files, arguments, says):
        done = run("explain", files / arguments[0], *arguments[1:])
        assert done.code == 2
        assert says in done.err


def test_info(run, files, tmp_path):
    run("fit", files / "train.csv", "-o", tmp_path / "m", "--ngrams", "1,2")
    shown = run("info", tmp_path / "m").out
    parts = ("150 rows of train.csv", "3: cooking, hockey, space", "ngram_range=(1, 2)", "--keep-moments")
    for part in parts:
        assert part in shown
    assert "all defaults" in run("info", files / "iris.maxdisc").out
    facts = run("info", files / "iris.maxdisc", "--json").json
    assert facts["about"]["label"] == "species"
    assert facts["bytes"] == (files / "iris.maxdisc").stat().st_size


def test_demo_is_the_demo(run, monkeypatch):
    monkeypatch.setattr("maxdisc.cli.demo.main", lambda: print("the demo"))
    assert run("demo").out == "the demo\n"
