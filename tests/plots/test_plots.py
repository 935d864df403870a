"""Pictures: what is drawn is what was learnt, for every family and for awkward data."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier
from maxdisc.families import FAMILIES
from maxdisc.inspection.curves import density_curves
from maxdisc.inspection.odds import log_odds
from maxdisc.numerics.installation import pip_line
from maxdisc.plots import DensityDisplay, EvidenceDisplay, PathDisplay, RankingDisplay, ReliabilityDisplay
from maxdisc.plots.canvas import literal
from maxdisc.testing import random_data

IRIS = load_iris()
NAMES = IRIS.target_names[IRIS.target]
AWKWARD = ["$a$ b_c", "_hidden", "x" * 300, "two\nlines\u202e", "100 % $", "a\\b^{"]


def axes():
    return Figure(layout="constrained").subplots()


def drawn(display):
    """Render to the end: matplotlib finds some mistakes only then. All text, as it would be seen."""
    out = io.BytesIO()
    display.figure_.savefig(out, format="svg")
    assert out.getvalue().startswith(b"<?xml")
    return display


def fit(name, n_classes=3, **parameters):
    X, codes = random_data(name, 40 * n_classes, n_classes, 6, seed=2)
    return MaxDiscClassifier(name, **parameters).fit(X, codes)


def test_a_path_shows_folds_mean_band_choice_and_threshold():
    model = MaxDiscClassifier(rule="one_se").fit(IRIS.data, NAMES)
    display = drawn(PathDisplay.from_estimator(model, ax=axes()))
    path = model.path_
    lines = [line.get_ydata() for line in display.ax_.lines]
    for fold in path.accuracy:
        assert any(np.array_equal(fold, line) for line in lines)
    assert any(np.array_equal(path.mean_accuracy, line) for line in lines)
    (chosen,) = [line for line in display.ax_.lines if str(line.get_label()).startswith("chosen")]
    assert chosen.get_xdata()[0] == model.n_selected_
    assert chosen.get_ydata()[0] >= display.threshold - 1e-12
    top = path.best_position()
    assert display.threshold == pytest.approx(path.mean_accuracy[top] - path.standard_error[top])
    (band,) = display.ax_.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.max() == pytest.approx((path.mean_accuracy + path.standard_error).max())
    assert display.ax_.get_xscale() == "log"


@pytest.mark.parametrize("sizes", [[1], [1, 2], [5, 6, 7], list(range(1, 31)), [1, 10, 100, 40_000]])
def test_a_path_of_any_length_has_ticks_in_plain_numbers(sizes):
    accuracy = np.linspace(0.5, 0.9, 2 * len(sizes)).reshape(2, -1)
    mean, error = accuracy.mean(axis=0), accuracy.std(axis=0)
    display = drawn(PathDisplay(sizes, accuracy, mean, error, sizes[-1]).plot(ax=axes()))
    low, high = display.ax_.get_xlim()
    ticks = [t.label1.get_text() for t in display.ax_.xaxis.get_major_ticks() if low <= t.get_loc() <= high]
    assert len(ticks) >= min(len(sizes), 2)
    assert all(tick.replace(",", "").isdigit() for tick in ticks)


def test_without_a_path_it_says_why():
    model = MaxDiscClassifier(n_features=2, evidence="raw", smoothing=1.0).fit(IRIS.data, NAMES)
    with pytest.raises(ValueError, match="n_features='auto'"):
        PathDisplay.from_estimator(model, ax=axes())


def test_a_ranking_has_a_bar_and_a_class_for_each_feature():
    model = MaxDiscClassifier().fit(IRIS.data, NAMES)
    display = drawn(RankingDisplay.from_estimator(model, n_features=3, ax=axes(), color="black"))
    widths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(widths, np.sort(model.scores_)[::-1][:3])
    assert [text.get_text().split()[0] for text in display.ax_.texts] == ["less"] * 3
    assert all(text.get_text().endswith("setosa") for text in display.ax_.texts)


@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.parametrize("n_classes", [2, 9])
def test_densities_integrate_to_one_where_they_are_drawn(name, n_classes):
    model = fit(name, n_classes, n_features="all", smoothing=1.0)
    family = FAMILIES[name]
    for curves in density_curves(model, range(6)):
        assert len(curves.classes) == min(n_classes, 5)
        assert curves.left_out == max(n_classes - 5, 0)
        for c, (x, height) in enumerate(zip(curves.x, curves.height, strict=True)):
            if curves.kind == "density":
                mass = np.trapezoid(height, x) + (curves.at_zero[c] if family.support.atoms else 0.0)
            else:
                mass = height.sum()
            assert mass == pytest.approx(1.0, abs=0.06)
    drawn(DensityDisplay.from_curves(curves).plot(ax=axes()))


def test_of_many_classes_the_highest_and_the_lowest_are_drawn_and_it_says_so():
    X = np.repeat(np.arange(100.0), 4)[:, None] + np.tile([0.0, 0.1, 0.2, 0.3], 100)[:, None]
    model = MaxDiscClassifier(n_features="all", smoothing=1.0).fit(X, np.repeat(np.arange(100), 4))
    display = drawn(DensityDisplay.from_estimator(model, 0, ax=axes()))
    assert display.classes == ["99", "98", "97", "1", "0"]
    assert display.ax_.get_legend().get_title().get_text() == "95 classes in between not drawn"


@pytest.mark.parametrize("rate", [1e-3, 0.3, 4.0, 60.0, 1e4, 1e7])
def test_counts_of_any_size_are_drawn_in_few_points(rate):
    rng = np.random.default_rng(0)
    X = rng.poisson(rate, size=(4000, 1)).astype(float)
    X[::2] *= 2
    model = MaxDiscClassifier("poisson", n_features="all", smoothing=1.0).fit(X, np.arange(4000) % 2)
    (curves,) = density_curves(model, [0])
    assert 5 <= len(curves.x[0]) <= 121
    assert all(height.max() > 0 for height in curves.height)
    display = drawn(DensityDisplay.from_curves(curves).plot(ax=axes()))
    assert ("cut" in display.ax_.get_ylabel()) == (rate == 1e-3)


def test_narrow_classes_are_seen_and_cut():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, 200), rng.normal(0.5, 1e-3, 200)][:, None]
    model = MaxDiscClassifier("gaussian", n_features="all", smoothing=0.1).fit(X, np.repeat([0, 1], 200))
    (curves,) = density_curves(model, [0])
    narrow = curves.height[curves.classes.index("1")]
    # Even steps of 0.05 would miss a class 0.016 wide.
    assert narrow.max() > 25
    display = drawn(DensityDisplay.from_curves(curves).plot(ax=axes()))
    assert "cut" in display.ax_.get_ylabel()


def test_far_features_are_drawn_where_they_are():
    rng = np.random.default_rng(0)
    X = 1e6 + rng.normal(size=(100, 1)) + 3 * (np.arange(100) % 2)[:, None]
    model = MaxDiscClassifier(n_features="all", smoothing=1.0).fit(X, np.arange(100) % 2)
    (curves,) = density_curves(model, [0])
    assert 1e6 - 10 < min(x.min() for x in curves.x) < max(x.max() for x in curves.x) < 1e6 + 10


def test_a_constant_feature_says_that_it_says_nothing():
    X = np.c_[IRIS.data, np.full(150, 7.0), np.full(150, np.nan)]
    model = MaxDiscClassifier(n_features="all", smoothing=1.0).fit(X, NAMES)
    for column, words in ((4, "always 7"), (5, "never seen")):
        display = drawn(DensityDisplay.from_estimator(model, column, ax=axes()))
        assert display.ax_.texts[0].get_text() == f"{words}: uninformative"


def test_features_are_found_by_name_or_column():
    model = MaxDiscClassifier().fit(load_iris(as_frame=True).data, NAMES)
    by_name = DensityDisplay.from_estimator(model, "petal width (cm)", ax=axes())
    by_column = DensityDisplay.from_estimator(model, 3, ax=axes())
    np.testing.assert_array_equal(by_name.x[0], by_column.x[0])
    with pytest.raises(ValueError, match="no feature 'petals'"):
        DensityDisplay.from_estimator(model, "petals", ax=axes())
    with pytest.raises(ValueError, match="column 9 is not one of the 4"):
        DensityDisplay.from_estimator(model, 9, ax=axes())


@pytest.mark.parametrize("n_features", [1, 2, 4, 10])
def test_evidence_sums_to_the_log_odds(n_features):
    model = MaxDiscClassifier(n_features="all").fit(IRIS.data, NAMES)
    for row in (0, 60, 120):
        X = IRIS.data[row : row + 1]
        scores = np.sort(model.predict_joint_log_proba(X)[0])
        display = drawn(EvidenceDisplay.from_estimator(model, X, n_features=n_features, ax=axes()))
        assert display.total == pytest.approx(scores[-1] - scores[-2], rel=1e-9)
        bars = [bar.get_width() for bar in display.ax_.patches]
        assert sum(bars) == pytest.approx(display.total, rel=1e-9)
        assert len(bars) == min(n_features, 4) + (n_features < 4) + 1
        assert display.classes[0] == model.predict(X)[0]


def test_evidence_of_a_document_against_any_class():
    texts = ["red sky red", "red sea", "green grass", "green leaf", "blue note", "blue jazz"] * 4
    labels = ["r", "r", "g", "g", "b", "b"] * 4
    model = make_pipeline(CountVectorizer(), MaxDiscClassifier(n_features="all", smoothing=1.0))
    model.fit(texts, labels)
    display = drawn(EvidenceDisplay.from_estimator(model, "red red note", against="b", ax=axes()))
    assert display.classes == ("r", "b")
    assert display.features[0] == "red"
    assert display.values[0] == 2
    with pytest.raises(ValueError, match="twice"):
        EvidenceDisplay.from_estimator(model, "red", against="r", ax=axes())
    with pytest.raises(ValueError, match="'z' is not a class"):
        EvidenceDisplay.from_estimator(model, "red", against="z", ax=axes())
    with pytest.raises(ValueError, match="one row at a time, got 2"):
        log_odds(model, texts[:2])


def test_nothing_is_weighed_against_the_impossible():
    model = MaxDiscClassifier(prior=[0.0, 1.0], n_features=1, smoothing=1.0).fit(IRIS.data[:100], NAMES[:100])
    with pytest.raises(ValueError, match="'setosa' has a prior of 0"):
        EvidenceDisplay.from_estimator(model, IRIS.data[:1], ax=axes())


def test_a_missing_cell_is_no_evidence():
    model = MaxDiscClassifier(n_features="all").fit(IRIS.data, NAMES)
    X = IRIS.data[:1].copy()
    X[0, 2] = np.nan
    evidence = log_odds(model, X)
    at = evidence.features.index("x2")
    assert evidence.odds[at] == 0
    assert np.isnan(evidence.values[at])
    drawn(EvidenceDisplay.from_odds(evidence).plot(ax=axes()))


def test_reliability_from_predictions():
    display = drawn(
        ReliabilityDisplay.from_predictions(["a", "b", "a"], ["a", "a", "a"], [0.9, 0.6, 1.0], ax=axes())
    )
    np.testing.assert_allclose(display.accuracy, [0.0, 1.0])
    assert display.expected_calibration_error == pytest.approx((0.6 + 2 * 0.05) / 3)


@pytest.mark.parametrize("estimator", [MaxDiscClassifier(), LogisticRegression(max_iter=1000), GaussianNB()])
def test_reliability_of_any_classifier(estimator):
    estimator.fit(IRIS.data[::2], NAMES[::2])
    X, y = IRIS.data[1::2], NAMES[1::2]
    display = drawn(ReliabilityDisplay.from_estimator(estimator, X, y, ax=axes(), marker="x"))
    confidence = estimator.predict_proba(X).max(axis=1)
    same = ReliabilityDisplay.from_predictions(y, estimator.predict(X), confidence, ax=axes())
    np.testing.assert_array_equal(display.accuracy, same.accuracy)
    np.testing.assert_array_equal(display.confidence, same.confidence)
    assert display.accuracy @ display.rows == pytest.approx(75 * estimator.score(X, y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ReliabilityDisplay.from_estimator(estimator, X, y[:-1], ax=axes())


@pytest.mark.parametrize("name", AWKWARD)
def test_any_name_is_drawn_as_it_is(name):
    display = drawn(RankingDisplay([name], [1.0], [name], [1]).plot(ax=axes()))
    assert len(display.ax_.get_yticklabels()[0].get_text()) < 40
    curves = DensityDisplay([name, "other"], [[0, 1], [0, 1]], [[1, 1], [1, 2]], feature=name)
    drawn(curves.plot(ax=axes()))
    legend = curves.ax_.get_legend()
    assert len(legend.get_texts()) == 2
    drawn(EvidenceDisplay([name], [1.0], classes=(name, name)).plot(ax=axes()))
    assert "\u202e" not in literal(name)


def test_without_axes_pyplot_makes_them_and_with_axes_it_is_left_alone():
    before = pyplot.get_fignums()
    display = ReliabilityDisplay([0.5], [0.5], [1])
    display.plot(ax=axes())
    assert pyplot.get_fignums() == before
    display.plot()
    assert display.figure_.number in pyplot.get_fignums()
    pyplot.close(display.figure_)


def test_without_matplotlib_one_line_says_what_to_install():
    code = "import sys; sys.modules['matplotlib'] = None\nimport maxdisc.plots"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 1
    assert out.stderr.strip().endswith(f"maxdisc.plots needs matplotlib: {pip_line('plots')}")


def mixed_model(**parameters):
    rng = np.random.default_rng(1)
    codes = np.arange(400) % 2
    town = rng.integers(0, 15, 400) + codes
    frame = pd.DataFrame(
        {
            "town": [f"$town {t}$" for t in town],
            "flag": rng.random(400) < 0.2 + 0.5 * codes,
            "x": rng.normal(codes),
            "still": np.where(rng.random(400) < 0.2 + 0.5 * codes, np.nan, 3.5),
        }
    )
    model = MaxDiscClassifier(n_features="all", **parameters)
    return model.fit(frame, np.array(["no", "yes"])[codes]), frame, codes


def test_levels_are_bars_by_name_and_those_that_are_left_out_are_counted():
    model, frame, codes = mixed_model(smoothing=0.0)
    town, flag = density_curves(model, [0, 1])
    assert (town.kind, len(town.levels), town.levels_left_out) == ("bars", 12, 4)
    for label, height in zip(town.classes, town.height, strict=True):
        own = frame["town"][codes == ["no", "yes"].index(label)]
        np.testing.assert_allclose(height, [(own == level).mean() for level in town.levels], atol=1e-9)
    # A level that only one class has is drawn, however rare.
    assert {"$town 0$", "$town 15$"} <= set(town.levels)
    display = drawn(DensityDisplay.from_estimator(model, "town", ax=axes()))
    assert display.ax_.get_xlabel() == "and 4 levels that tell less"
    assert flag.levels == ["False", "True"]


def test_that_a_cell_is_missing_is_part_of_its_column():
    model, frame, codes = mixed_model(missing="informative", smoothing=0.0)
    still, x = density_curves(model, [3, 2])
    assert (still.levels, still.constant, x.missing) == (["there", "missing"], None, [])
    gone = {label: frame["still"][codes == c].isna().mean() for c, label in enumerate(["no", "yes"])}
    for label, height in zip(still.classes, still.height, strict=True):
        assert height[1] == pytest.approx(gone[label])
    drawn(DensityDisplay.from_estimator(model, "still", ax=axes()))


def test_evidence_names_the_category():
    model, frame, _ = mixed_model()
    row = frame.iloc[[0]].assign(town="elsewhere", x=np.nan)
    evidence = log_odds(model, row, n=4)
    values = dict(zip(evidence.features, evidence.values, strict=True))
    assert values["town"] == "elsewhere"
    assert values["x"] != values["x"]
    assert dict(zip(evidence.features, evidence.odds, strict=True))["town"] == 0.0
    scores = model.predict_joint_log_proba(row)[0]
    assert evidence.total == pytest.approx(scores.max() - scores.min())
    display = drawn(EvidenceDisplay.from_estimator(model, row, ax=axes()))
    assert "town = elsewhere" in [tick.get_text() for tick in display.ax_.get_yticklabels()]
