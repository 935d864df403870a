"""Tables of numbers, truth values, counts and categories, with gaps, from the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest

from maxdisc import MaxDiscClassifier, load
from maxdisc.cli import main


def people(n, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n)
    hue = np.where(rng.random(n) < 0.7, np.array(["red", "blue"])[codes], "dark green")
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40 + 8 * codes, 9, n).round(1)),
            "visits": rng.poisson(1 + 2 * codes),
            "member": rng.random(n) < 0.3 + 0.3 * codes,
            "hue": np.where(rng.random(n) < 0.1, None, hue),
            "zip": rng.choice([1010, 1020, 1030], n),
            "income": np.array(["low", "high"])[codes],
        }
    )


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A folder with train.csv, test.csv and a model."""
    folder = tmp_path_factory.mktemp("mixed")
    people(300, 0).to_csv(folder / "train.csv", index=False)
    people(80, 1).to_csv(folder / "test.csv", index=False, na_rep="NA")
    given = ["--label", "income", "--categorical", "zip", "-q"]
    assert main(["fit", str(folder / "train.csv"), "-o", str(folder / "m"), *given]) == 0
    return folder


def changed(folder, tmp_path, **columns):
    """The test rows with other columns."""
    frame = pyarrow.csv.read_csv(folder / "test.csv").to_pandas().assign(**columns)
    frame.to_csv(tmp_path / "changed.csv", index=False)
    return tmp_path / "changed.csv"


def assert_refused(done, *says):
    assert done.code == 2
    assert done.err.count("\n") == 1
    for words in says:
        assert words in done.err


def test_the_model_is_that_of_a_frame(run, mixed, tmp_path):
    done = run(
        "fit", mixed / "train.csv", "-o", tmp_path / "m", "--categorical", "zip", "--json",
        "--label", "income", "--family", "age=gamma", "--missing", "informative",
    )  # fmt: skip
    assert "left out: name (it holds text that hardly repeats)" in done.err
    facts = done.json
    frame = people(300, 0)
    X = frame.drop(columns=["name", "income"]).assign(zip=frame["zip"].astype(str))
    model = MaxDiscClassifier(family={"age": "gamma"}, missing="informative").fit(X, frame["income"])
    assert (facts["family"], sum(facts["families"].values())) == ("mixed", 5)
    counted = {family.name: len(at) for family, at in model.families_}
    assert facts["families"] == counted
    assert facts["held_out_log_loss"] == pytest.approx(model.evidence_.log_loss)
    saved = load(tmp_path / "m")
    assert np.allclose(saved.predict_proba(X), model.predict_proba(X))
    shown = run("info", tmp_path / "m").out
    assert ", ".join(f"{n} {name}" for name, n in facts["families"].items()) in shown
    assert "{age: gamma}, missing=informative" in shown
    assert run("info", tmp_path / "m", "--json").json["steps"][0]["families"] == counted


def test_every_format_says_the_same(run, mixed, tmp_path):
    frame = people(80, 1)
    frame.to_parquet(tmp_path / "test.parquet", index=False)
    frame.to_csv(tmp_path / "test.tsv", index=False, sep="\t")
    (tmp_path / "test.jsonl").write_text(
        "\n".join(json.dumps(row) for row in json.loads(frame.to_json(orient="records")))
    )
    expected = run("predict", mixed / "m", mixed / "test.csv")
    assert (expected.code, expected.err) == (0, "")
    for name in ("test.parquet", "test.tsv", "test.jsonl"):
        done = run("predict", mixed / "m", tmp_path / name)
        assert (done.out, done.err) == (expected.out, "")


def test_categories_that_look_like_numbers_are_still_text(run, mixed, tmp_path):
    gaps = changed(mixed, tmp_path, hue="N/A").rename(tmp_path / "gaps.csv")
    numbers = changed(mixed, tmp_path, hue=7)
    done, silent = run("predict", mixed / "m", numbers), run("predict", mixed / "m", gaps)
    assert done.err == "80 cells of column 'hue' hold categories that the model has not seen\n"
    assert silent.err == ""
    # Neither is evidence.
    assert done.out == silent.out
    judged = run("evaluate", mixed / "m", numbers, "--json")
    assert judged.err == done.err
    assert judged.json["accuracy"] > 0.6


def test_what_is_no_number_is_named_by_its_place(run, mixed, tmp_path):
    path = changed(mixed, tmp_path, age=["40"] * 4 + ["old"] + ["50"] * 75)
    for command in (("predict", mixed / "m", path), ("evaluate", mixed / "m", path)):
        assert_refused(run(*command), "changed.csv row 5, column 'age': 'old' is not a number")
    empty = changed(mixed, tmp_path, age=None)
    assert len(run("predict", mixed / "m", empty).rows) == 80
    assert_refused(
        run("fit", empty, "-o", tmp_path / "n", "--label", "income", "--features", "age,visits"),
        "all cells of column 'age' are missing",
    )
    path = changed(mixed, tmp_path, member=["True", "no"] * 40)
    assert_refused(run("predict", mixed / "m", path), "changed.csv row 2, column 'member'")


def test_a_model_is_shown_with_levels_and_families(run, mixed, tmp_path):
    ranked = run("rank", mixed / "m", "--json").json["features"]
    hue = next(f for f in ranked if f["feature"] == "hue")
    assert (hue["family"], hue["by"].split(" = ")[0]) == ("categorical", "hue")
    assert "hue = " in run("rank", mixed / "m").out
    assert any(
        f"hue = {level}" in run("rank", mixed / "m", "--class", "low").out for level in ("red", "blue")
    )
    told = run("explain", mixed / "m", "--data", mixed / "test.csv", "--row", "2", "--json").json["features"]
    value = {f["feature"]: f["value"] for f in told}["hue"]
    assert value == people(80, 1)["hue"][1]
    assert str(value) in run("explain", mixed / "m", "--data", mixed / "test.csv", "--row", "2").out
    reasons = run("predict", mixed / "m", mixed / "test.csv", "--explain", "2", "--json").out.splitlines()
    assert {reason["feature"] for reason in json.loads(reasons[1])["because"]} <= set(people(1, 0).columns)
    for name in ("r.html", "r.md", "r.json"):
        arguments = ("report", mixed / "m", "--data", mixed / "test.csv", "-o", tmp_path / name)
        assert run(*arguments).code == 0
        assert "categorical" in (tmp_path / name).read_text()


def test_a_stream_of_a_mixed_table_gives_the_model_of_the_table(run, tmp_path):
    rows = people(400, 2)
    rows.to_csv(tmp_path / "whole.csv", index=False)
    (tmp_path / "parts").mkdir()
    order = np.random.default_rng(0).permutation(400)
    for place, some in enumerate(np.array_split(order, 3)):
        rows.iloc[some].to_csv(tmp_path / "parts" / f"{place}.csv", index=False)
    given = ["--label", "income", "--categorical", "zip", "--missing", "informative", "--exclude", "name"]
    given += ["--keep-moments"]
    assert run("fit", tmp_path / "whole.csv", "-o", tmp_path / "here", *given, "--folds", "hash").code == 0
    kept = ["--checkpoint", tmp_path / "kept"]
    done = run("fit", tmp_path / "parts" / "*.csv", "-o", tmp_path / "there", *given, "--stream", *kept)
    assert done.code == 0
    here, there = load(tmp_path / "here"), load(tmp_path / "there")
    assert repr(here._family) == repr(there._family)
    assert {family.name for family, _ in there.families_} >= {"bernoulli", "categorical"}
    np.testing.assert_array_equal(here.ranking_, there.ranking_)
    assert here.n_selected_ == there.n_selected_
    for one, other in zip(here.moments_.parts, there.moments_.parts, strict=True):
        np.testing.assert_allclose(one.sums.sum(), other.sums.sum(), rtol=1e-9)
    first = run("predict", tmp_path / "here", tmp_path / "whole.csv", "-o", tmp_path / "a.csv")
    second = run("predict", tmp_path / "there", tmp_path / "whole.csv", "-o", tmp_path / "b.csv")
    assert first.code == second.code == 0
    one, other = (pd.read_csv(tmp_path / name) for name in ("a.csv", "b.csv"))
    assert one.iloc[:, 0].tolist() == other.iloc[:, 0].tolist()


def test_where_categories_cannot_be_counted_it_is_said(run, mixed, tmp_path):
    fit = ("fit", mixed / "train.csv", "-o", tmp_path / "n", "--label", "income")
    spark = ("--engine", "spark")
    assert_refused(run(*fit, *spark), "'hue' holds categories", "--exclude 'hue'", "--engine spark")
    assert_refused(run(*fit, *spark, "--missing", "informative"), "leave out --missing informative")
    assert_refused(run(*fit, "--structure", "joint", "--categorical", "zip"), "leave out --categorical")
    done = run(*fit, "--structure", "joint", "--force")
    assert "left out: hue (it holds text)" in done.err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--family", "hue=gamma"], "column 'hue' holds text"),
        (["--family", "agee=gamma"], "did you mean 'age'?"),
        (["--family", "age=cauchy"], "got 'cauchy'"),
        (["--family", "gamma", "--family", "beta"], "two families for all columns, gamma and beta"),
        (["--categorical", "zap"], "did you mean 'zip'?"),
        (["--text", "name", "--categorical", "zip"], "--text or --categorical"),
        (["--text", "name", "--missing", "informative"], "is for tables"),
    ],
)
def test_what_cannot_be_asked_of_columns(run, mixed, tmp_path, given, says):
    assert_refused(run("fit", mixed / "train.csv", "-o", tmp_path / "n", "--label", "income", *given), says)
    assert not (tmp_path / "n").exists()


def test_one_family_for_all_is_one_for_all_numbers(run, mixed, tmp_path):
    done = run(
        "fit", mixed / "train.csv", "-o", tmp_path / "n", "--label", "income", "--json",
        "--family", "gaussian", "--family", "v*=poisson",
    )  # fmt: skip
    assert done.json["families"] == {"gaussian": 3, "poisson": 1, "categorical": 1}
