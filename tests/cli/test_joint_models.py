"""The commands take models of joint densities as they take others."""

from __future__ import annotations

import pandas as pd
import pytest
from sklearn.datasets import load_wine

from maxdisc import Joint, MaxDiscClassifier, save


@pytest.fixture
def wine(tmp_path):
    data = load_wine(as_frame=True)
    labels = data.target_names[data.target]
    data.data.assign(label=labels).to_csv(tmp_path / "wine.csv", index=False)
    model = MaxDiscClassifier(structure=Joint(transform=None), n_features=6).fit(data.data, labels)
    save(model, tmp_path / "wine.maxdisc")
    return tmp_path


def test_info_says_what_it_is(run, wine):
    shown = run("info", wine / "wine.maxdisc").out
    assert "format 4" in shown
    assert "no (features are described jointly)" in shown
    assert "Joint('shared', 'auto', 'top', None)" in shown


def test_rows_are_predicted_explained_and_judged(run, wine):
    model, table = wine / "wine.maxdisc", wine / "wine.csv"
    run("predict", model, table, "--explain", "2", "-o", wine / "out.csv")
    out = pd.read_csv(wine / "out.csv")
    assert (out["label"] == pd.read_csv(table)["label"]).mean() > 0.95
    assert out["because"].str.contains(", ").all()
    assert "in sum" in run("explain", model, "--data", table, "--row", "3").out
    assert "accuracy 9" in run("evaluate", model, table, "--label", "label").out
    run("report", model, "--data", table, "--label", "label", "-o", wine / "r.html")
    assert "joint densities" in (wine / "r.html").read_text()
    assert "flavanoids" in run("rank", model).out
