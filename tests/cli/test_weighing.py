"""``maxdisc fit --evidence`` and ``--search``: what is weighed, what is chosen, and what is told of it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.pipeline import Pipeline, make_pipeline

from maxdisc import MaxDiscClassifier, load, save
from maxdisc.model_file import describe
from maxdisc.words import CountScaler


@pytest.mark.parametrize("evidence", ["calibrated", "refined", "raw"])
def test_evidence_is_as_asked_for(run, files, tmp_path, evidence):
    done = run(
        "fit",
        files / "iris.csv",
        "-o",
        tmp_path / "m",
        "--evidence",
        evidence,
        "--json",
        "-q",
        "--family",
        "gaussian",
    )
    model = load(tmp_path / "m")
    assert model.evidence == evidence
    X, y = load_iris(return_X_y=True)
    alone = MaxDiscClassifier(evidence=evidence).fit(X, y)
    facts = done.json
    at = int(np.searchsorted(alone.path_.sizes, alone.n_selected_))
    if evidence == "raw":
        assert facts["evidence"] == {"kind": "raw", "weights": [], "corrected": 0, "by_length": False}
        assert facts["held_out_accuracy"] == pytest.approx(alone.path_.mean_accuracy[at])
        assert facts["held_out_log_loss"] == pytest.approx(alone.path_.mean_log_loss[at])
        return
    assert facts["evidence"]["weights"] == pytest.approx(alone.evidence_.weights.tolist())
    assert facts["uncalibrated_log_loss"] == pytest.approx(alone.evidence_.raw_log_loss)
    assert facts["held_out_accuracy"] == pytest.approx(alone.evidence_.accuracy)
    assert facts["held_out_log_loss"] == pytest.approx(alone.evidence_.log_loss)
    share = alone.evidence_.accuracy
    assert facts["held_out_standard_error"] == pytest.approx(np.sqrt(share * (1 - share) / len(y)))
    corrected = alone.evidence_.columns is not None
    assert facts["evidence"]["kind"] == ("refined" if corrected else "calibrated")


def test_calibrated_is_the_default_and_shown(run, files, tmp_path):
    done = run("fit", files / "train.csv", "-o", tmp_path / "m", "-q")
    loss = load(tmp_path / "m").evidence_.log_loss
    assert f"calibration  log-loss {loss:.3f} on held-out folds (" in done.out
    assert " uncalibrated, baseline 1.099)" in done.out
    assert "weights" not in done.out
    shown = run("info", tmp_path / "m")
    assert shown.code == 0
    assert f"log-loss {loss:.3f} on held-out folds" in shown.out
    assert "all defaults" in shown.out
    told = run("info", tmp_path / "m", "--json").json["steps"][-1]["evidence"]
    assert told["log_loss"] == load(tmp_path / "m").evidence_.log_loss


def test_info_of_every_kind(run, files, tmp_path):
    X, y = load_iris(return_X_y=True)
    run("fit", files / "iris.csv", "-o", tmp_path / "joint", "--structure", "joint", "-q")
    run("fit", files / "iris.csv", "-o", tmp_path / "raw", "--evidence", "raw", "-q")
    save(CountScaler("log").fit(X), tmp_path / "scaler")
    save(make_pipeline(CountScaler("length"), MaxDiscClassifier()).fit(X, y), tmp_path / "scaled")
    for name, words in {
        "joint": "features are described jointly",
        "raw": "evidence=raw",
        "scaler": "a scaler of counts",
        "scaled": "scale=length",
    }.items():
        shown = run("info", tmp_path / name)
        assert shown.code == 0, shown.err
        assert words in " ".join(shown.out.split())
    assert "evidence" not in run("info", tmp_path / "scaler").out


def test_a_report_tells_the_weights(run, files, tmp_path):
    run("fit", files / "iris.csv", "-o", tmp_path / "m", "--rule", "one_se", "-q")
    done = run(
        "report",
        tmp_path / "m",
        "--data",
        files / "iris.csv",
        "-o",
        tmp_path / "r.md",
        "--format",
        "md",
        "-q",
    )
    assert done.code == 0, done.err
    page = (tmp_path / "r.md").read_text(encoding="utf-8")
    model = load(tmp_path / "m")
    assert f"{model.evidence_.weights[0]:.3g} up to {model.evidence_.edges[0]}" in page
    if model.n_selected_ < 4:
        assert "within one standard error of the lowest" in page


def test_a_search_says_which_model_won(run, files, tmp_path):
    done = run("fit", files / "train.csv", "-o", tmp_path / "m", "--search", "--min-count", "2", "-q")
    assert done.code == 0, done.err
    assert "best of 2 models" in done.out
    assert "scale " in done.out
    model = load(tmp_path / "m")
    assert isinstance(model, Pipeline)
    assert model[0].min_count == 2
    predicted = run("predict", tmp_path / "m", files / "test.csv")
    assert len(predicted.rows) == 60
    assert run("evaluate", tmp_path / "m", files / "test.csv", "--min-accuracy", "0.9", "-q").code == 0


def test_a_search_of_a_table(run, files, tmp_path):
    done = run("fit", files / "iris.csv", "-o", tmp_path / "m", "--search", "--folds", "3", "--json", "-q")
    search = done.json["search"]
    losses = [candidate["log_loss"] for candidate in search["candidates"]]
    assert losses[search["chosen"]] <= min(losses) * 1.005 + 1e-9
    assert losses[search["chosen"]] == done.json["held_out_log_loss"]
    assert isinstance(load(tmp_path / "m"), MaxDiscClassifier)
    assert describe(tmp_path / "m")["about"]["label"] == "species"


def test_a_search_of_sparse_counts(run, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    X = sp.csr_array(rng.poisson(np.exp(rng.normal(size=(3, 20)))[y]).astype(float))
    dump_svmlight_file(X, y, str(tmp_path / "counts.svm"))
    done = run("fit", tmp_path / "counts.svm", "-o", tmp_path / "m", "--search", "-q")
    assert done.code == 0, done.err
    assert isinstance(load(tmp_path / "m")[0], CountScaler)
    for command in ("evaluate", "predict"):
        done = run(command, tmp_path / "m", tmp_path / "counts.svm")
        assert done.code == 0, done.err
    assert run("rank", tmp_path / "m").code == 0
    assert (
        "is a model of numbers" in run("predict", tmp_path / "m", tmp_path / "counts.svm", "--text", "a").err
    )


@pytest.mark.parametrize(
    "given",
    [
        ("--evidence", "raw"),
        ("--n-features", "5"),
        ("--family", "gamma"),
        ("--structure", "joint"),
        ("--redundancy", "1"),
        ("--smoothing", "1"),
        ("--rule", "one_se"),
        ("--divergence", "kl"),
        ("--scale", "length"),
    ],
)
def test_a_search_chooses_the_model_itself(run, files, tmp_path, given):
    done = run("fit", files / "iris.csv", "-o", tmp_path / "m", "--search", *given)
    assert done.code != 0
    assert f"leave out {given[0]}" in done.err
    assert not (tmp_path / "m").exists()


def test_what_is_no_evidence(run, files, tmp_path):
    done = run("fit", files / "iris.csv", "-o", tmp_path / "m", "--evidence", "loud")
    assert done.code == 2
    assert "loud" in done.err


@pytest.mark.filterwarnings("default")
def test_too_few_rows_are_said_to_be_too_few(run, tmp_path):
    (tmp_path / "few.csv").write_text("a,b,c,label\n1,2,5,x\n2,1,4,y\n3,1,4,x\n2,2,6,y\n", encoding="utf-8")
    done = run("fit", tmp_path / "few.csv", "-o", tmp_path / "m", "--folds", "2")
    assert done.code == 0
    assert "too few: it is raw" in done.err
    assert "raw" in done.out
