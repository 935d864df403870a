"""Class probabilities that are given, and costs: what changes is what the user said, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import make_scorer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from maxdisc import MaxDiscClassifier, load, save

ROOT = Path(__file__).resolve().parents[2]
GIVEN = np.array([0.2, 0.5, 0.3])


def skewed(n=600, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=[0.7, 0.2, 0.1])
    return 0.6 * np.eye(3, 8)[y] * 2 + rng.normal(size=(n, 8)), y


def by_place(densities):
    return np.arange(densities.natural.shape[2], 0.0, -1.0)


@pytest.mark.parametrize(
    "settings",
    [
        {"evidence": "calibrated"},
        {"evidence": "refined"},
        {"evidence": "raw", "smoothing": 1.0},
        {"structure": "joint"},
        {"structure": "joint", "evidence": "refined"},
    ],
    ids=str,
)
def test_a_prior_that_is_given_moves_scores_by_its_log_ratio_to_the_shares(settings, tmp_path):
    X, y = skewed()
    # With another prior features may be ranked otherwise, and weighed with other bands: here they are not.
    shared = {"n_features": "all", "divergence": by_place, **settings}
    plain, given = MaxDiscClassifier(**shared).fit(X, y), MaxDiscClassifier(prior=GIVEN, **shared).fit(X, y)
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
    for rows in (X, gaps):
        moved = given.predict_joint_log_proba(rows) - plain.predict_joint_log_proba(rows)
        moved -= np.log(GIVEN) - np.log(plain.class_prior_)
        np.testing.assert_allclose(moved - moved[:, :1], 0.0, atol=1e-6)
    save(given, tmp_path / "m", functions={"by place": by_place})
    again = load(tmp_path / "m", functions={"by place": by_place})
    assert again.predict_proba(gaps).tobytes() == given.predict_proba(gaps).tobytes()


def test_a_prior_is_what_class_weights_are_elsewhere():
    X, y = skewed(2000)
    T, truth = skewed(4000, seed=1)
    plain = MaxDiscClassifier().fit(X, y)
    even = MaxDiscClassifier(prior=np.full(3, 1 / 3)).fit(X, y)

    def recalls(model):
        return [(model.predict(T)[truth == c] == c).mean() for c in range(3)]

    assert np.mean(recalls(even)) > np.mean(recalls(plain)) + 0.03
    assert min(recalls(even)) > min(recalls(plain)) + 0.1


def test_thresholds_of_scikit_learn():
    X, y = skewed(900)
    y = (y == 0).astype(int)
    fixed = FixedThresholdClassifier(MaxDiscClassifier(), threshold=0.8, response_method="predict_proba").fit(
        X, y
    )
    np.testing.assert_array_equal(
        fixed.predict(X), (fixed.estimator_.predict_proba(X)[:, 1] >= 0.8).astype(int)
    )
    # To take the second class for the first costs one, the other way round ten.
    costs = np.array([[0.0, 10.0], [1.0, 0.0]])
    scorer = make_scorer(lambda truth, said: -costs[truth, said].mean())
    tuned = TunedThresholdClassifierCV(MaxDiscClassifier(), scoring=scorer, cv=3).fit(X, y)
    T, truth = skewed(4000, seed=1)
    truth = (truth == 0).astype(int)
    model = MaxDiscClassifier().fit(X, y)
    by_cost = (model.predict_proba(T) @ costs).argmin(axis=1)
    plain, tuned_cost, expected = (
        costs[truth, said].mean() for said in (model.predict(T), tuned.predict(T), by_cost)
    )
    assert expected < 0.7 * plain
    assert tuned_cost < 0.7 * plain
    assert expected < 1.1 * tuned_cost  # probabilities can be trusted: nothing had to be tuned


def test_the_page_on_costs_says_what_it_prints(capsys):
    page = (ROOT / "docs/how-to/imbalance-and-costs.md").read_text(encoding="utf-8")
    names: dict = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(example, names)
    shown = "".join(re.findall(r"```text\n(.*?)```", page, re.DOTALL))
    assert capsys.readouterr().out == shown


def test_the_page_on_unknown_things_says_what_it_prints(capsys):
    page = (ROOT / "docs/how-to/unknown.md").read_text(encoding="utf-8")
    names: dict = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(example, names)
    shown = "".join(re.findall(r"```text\n(.*?)```", page, re.DOTALL))
    assert capsys.readouterr().out == shown
