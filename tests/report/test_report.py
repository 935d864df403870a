"""The report: its numbers against scikit-learn's, its page against a strict parser, hostile text."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib import pyplot
from sklearn import metrics
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import LeaveOneOut
from sklearn.pipeline import Pipeline

from maxdisc import MaxDiscClassifier
from maxdisc.inspection.printed_numbers import percent
from maxdisc.numerics.installation import pip_line
from maxdisc.report import evaluate
from maxdisc.report.markdown import plain
from maxdisc.report.page import page
from maxdisc.report.record import FORMAT, Report
from tests.conftest import examples

IRIS = load_iris(as_frame=True)
NAMES = IRIS.target_names[IRIS.target]
VOID = {"br", "col", "hr", "meta", "wbr"}
HOSTILE = (
    "</title></svg><script>alert('1')</script>\"><img src=x onerror=y>|`*_[a](http://b)\n\u202e\u200b\x07"
)


class StrictParser(HTMLParser):
    """Tags must balance and ids must be unique; what is there is remembered."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.ids, self.text = [], [], [], [], []
        self.source = text
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, "svg" in self.open))
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def checked_page(report):
    html = report.html()
    html.encode("utf-8")
    parser = StrictParser(html)
    assert html.startswith("<!doctype html>")
    assert len(set(parser.ids)) == len(parser.ids)
    names = {tag for tag, _ in parser.tags}
    assert not names & {"script", "img", "link", "iframe", "object", "embed", "base", "form", "image", "a"}
    for tag, name, value in parser.attributes:
        assert not name.startswith("on"), (tag, name)
        assert name not in ("src", "action", "xmlns", "xlink:href"), (tag, name)
        if name == "href":
            assert value[0] == "#"
            assert value[1:] in parser.ids
        for target in re.findall(r"url\(#([^)]*)\)", value):
            assert target in parser.ids
        if name in ("style", "href"):
            assert "//" not in value
            assert "url(" not in value.replace("url(#", "")
    assert "@import" not in html
    policy = [v for t, n, v in parser.attributes if t == "meta" and n == "content" and "default-src" in v]
    assert len(policy) == 1
    assert policy[0].startswith("default-src 'none'; style-src 'unsafe-inline';")
    return parser


def text_model(**parameters):
    vectorizer = CountVectorizer(token_pattern=r"\S+", lowercase=False)
    return Pipeline([("vectorizer", vectorizer), ("classifier", MaxDiscClassifier(**parameters))])


DOCUMENTS = [
    "red sky warm",
    "red sea warm",
    "green grass cool",
    "green leaf cool",
    "blue note jazz",
    "blue jazz",
] * 6
LABELS = ["red", "red", "green", "green", "blue", "blue"] * 6


@pytest.fixture(scope="module")
def iris():
    model = MaxDiscClassifier().fit(IRIS.data[::2], NAMES[::2])
    return model, IRIS.data[1::2], NAMES[1::2]


@pytest.fixture(scope="module")
def iris_report(iris):
    return evaluate(*iris, title="Irises", about={"source": "iris.csv", "rows": 75})


# ------------------------------------------------------------------ numbers


def odd_labels(y):
    """Some labels that the model does not know, and one class gone."""
    y = np.asarray(y, dtype=object)
    y[::9] = "orchid"
    y[y == "setosa"] = "versicolor"
    return y


@pytest.mark.parametrize("change", [lambda y: y, odd_labels], ids=["known", "odd"])
def test_scores_are_scikit_learns(iris, change):
    model, X, y = iris
    y = change(y)
    report = evaluate(model, X, y)
    predicted = model.predict(X).astype(object)
    scores = report.scores
    assert scores.accuracy == metrics.accuracy_score(y, predicted)
    assert scores.macro_f1 == pytest.approx(metrics.f1_score(y, predicted, average="macro"))
    known = np.isin(y, model.classes_)
    loss = metrics.log_loss(y[known], model.predict_proba(X)[known], labels=model.classes_)
    assert scores.log_loss == pytest.approx(loss)
    labels = [result.label for result in report.classes]
    table = metrics.precision_recall_fscore_support(y, predicted, labels=labels, zero_division=np.nan)
    for name, column in zip(("precision", "recall", "f1", "rows"), table, strict=True):
        ours = [getattr(result, name) for result in report.classes]
        np.testing.assert_allclose(np.array(ours, dtype=float), column)
    counts = metrics.confusion_matrix(y, predicted, labels=labels)
    np.testing.assert_array_equal(report.confusion.counts, counts[:, : len(model.classes_)])
    for truth, wrong, rows in report.confusion.pairs:
        assert rows == ((y == truth) & (predicted == wrong)).sum()
    assert sum(rows for *_, rows in report.confusion.pairs) == (y != predicted).sum()
    values, sizes = np.unique(y.astype(str), return_counts=True)
    assert scores.majority_accuracy == sizes.max() / len(y)
    assert scores.majority_label == values[sizes.argmax()]


def test_the_interval_is_wilsons():
    from scipy.stats import binomtest

    from maxdisc.inspection.measures import wilson_interval

    for right, rows in ((0, 1), (1, 1), (7, 10), (50, 50), (499, 1000)):
        exact = binomtest(right, rows).proportion_ci(method="wilson")
        np.testing.assert_allclose(wilson_interval(right, rows), (exact.low, exact.high), atol=1e-12)


def test_calibration_error_by_its_definition(iris, iris_report):
    model, X, y = iris
    confidence = model.predict_proba(X).max(axis=1)
    right = model.predict(X) == y
    bins = np.minimum(np.floor(confidence * 10), 9)
    error = sum(
        (bins == b).mean() * abs(right[bins == b].mean() - confidence[bins == b].mean())
        for b in np.unique(bins)
    )
    assert iris_report.scores.calibration_error == pytest.approx(error)
    assert sum(iris_report.reliability.rows) == len(y)


def test_the_three_renderings_say_the_same_numbers(iris_report):
    told = json.loads(iris_report.json())
    assert told["format"] == FORMAT
    assert told == json.loads(json.dumps({"format": FORMAT, **dataclasses.asdict(iris_report)}))
    text = "".join(checked_page(iris_report).text)
    markdown = iris_report.markdown()
    scores = iris_report.scores
    wanted = [percent(scores.accuracy), percent(scores.interval[0]), percent(scores.majority_accuracy)]
    wanted += [f"{scores.macro_f1:.3f}", f"{scores.log_loss:.3f}", f"{scores.calibration_error:.3f}"]
    wanted += [f"{value:.3f}" for result in iris_report.classes for value in (result.precision, result.f1)]
    wanted += [f"{feature.divergence:#.3g}" for feature in iris_report.features]
    wanted += [f"{odds:+.2f}" for m in iris_report.mistakes for odds in m.evidence.odds]
    for words in [*wanted, "iris.csv", "Irises"]:
        assert words in text
        assert words in markdown
    for sentence in [*iris_report.summary, *iris_report.notes]:
        assert sentence in text
        assert plain(sentence) in markdown


def test_mistakes_are_the_surest_and_their_evidence_sums(iris, iris_report):
    model, X, y = iris
    wrong = np.flatnonzero(model.predict(X) != y)
    confidence = model.predict_proba(X).max(axis=1)
    surest = sorted(wrong, key=lambda row: -confidence[row])[:8]
    assert [mistake.row for mistake in iris_report.mistakes] == surest
    scores = model.predict_joint_log_proba(X)
    code = {label: c for c, label in enumerate(model.classes_)}
    for mistake in iris_report.mistakes:
        assert mistake.truth == y[mistake.row]
        evidence = mistake.evidence
        assert evidence.against == mistake.truth
        total = scores[mistake.row, code[mistake.predicted]] - scores[mistake.row, code[mistake.truth]]
        assert evidence.total == pytest.approx(total)
        assert evidence.prior + sum(evidence.odds) + evidence.others == pytest.approx(total)
        columns = [list(X.columns).index(name) for name in evidence.features]
        np.testing.assert_array_equal(evidence.values, X.to_numpy()[mistake.row, columns])


@pytest.fixture(scope="module")
def overlapping():
    """Two classes that no threshold parts, and rows that the model has not seen."""
    rng, y = np.random.default_rng(0), np.arange(300) % 2
    X = rng.normal(size=(300, 3)) + 1.2 * y[:, None]
    labels = np.where(y == 1, "ill", "healthy")
    return MaxDiscClassifier().fit(X[:150], labels[:150]), X[150:], labels[150:]


def test_curves_of_two_classes_are_scikit_learns(overlapping):
    model, X, y = overlapping
    report = evaluate(model, X, y)
    curves, scores = report.two_classes, model.predict_proba(X)[:, 1]
    assert curves.positive == model.classes_[1] == "ill"
    assert curves.area == pytest.approx(metrics.roc_auc_score(y == "ill", scores))
    assert 0.5 < curves.area < 1
    average = metrics.average_precision_score(y == "ill", scores)
    assert curves.average_precision == pytest.approx(average)
    fall_out, recall, _ = metrics.roc_curve(y == "ill", scores, drop_intermediate=False)
    np.testing.assert_allclose(curves.roc, [fall_out, recall], atol=1e-5)
    precision, recall, _ = metrics.precision_recall_curve(y == "ill", scores)
    drawn = np.transpose(curves.precision_recall)
    distance = np.abs(np.column_stack([recall, precision])[:, None] - drawn).sum(axis=2)
    assert distance.min(axis=0).max() < 1e-4
    assert curves.share == np.mean(y == "ill")
    for each in curves.thresholds:
        taken = np.where(scores >= each.probability - 1e-12, "ill", "healthy")
        assert each.recall == pytest.approx(metrics.recall_score(y, taken, pos_label="ill"))
        assert each.precision == pytest.approx(metrics.precision_score(y, taken, pos_label="ill"))
        assert each.false_positive_rate == pytest.approx(np.mean(taken[y != "ill"] == "ill"))
    assert np.all([each.recall for each in curves.thresholds] >= np.array([0.5, 0.8, 0.9, 0.95, 0.99]))
    page, words = "".join(checked_page(report).text), report.markdown()
    for text in (page, words):
        assert "ROC and precision-recall curves" in text
        assert f"{curves.area:.4f}" in text
        assert f"{curves.average_precision:.4f}" in text


def test_curves_leave_out_labels_that_the_model_does_not_know(overlapping):
    model, X, y = overlapping
    odd = np.where(np.arange(len(y)) % 5, y, "unheard of")
    known = odd != "unheard of"
    whole, some = (evaluate(model, *rows).two_classes for rows in ((X, odd), (X[known], y[known])))
    assert whole == some


def test_there_are_no_curves_of_one_class_or_of_three(overlapping, iris_report):
    model, X, y = overlapping
    one = evaluate(model, X[y == "ill"], y[y == "ill"])
    for report in (one, iris_report):
        assert report.two_classes is None
        assert "ROC" not in report.markdown()
        assert "ROC" not in "".join(checked_page(report).text)


def test_of_many_rows_curves_keep_their_ends():
    rng, y = np.random.default_rng(1), np.arange(6000) % 2
    X = rng.normal(size=(6000, 1)) + y[:, None]
    X[-2:] = [[1e6], [-1e6]]
    curves = evaluate(MaxDiscClassifier("gaussian", evidence="raw").fit(X, y), X, y).two_classes
    assert len(curves.roc[0]) <= 400
    assert [axis[0] for axis in curves.roc] == [0, 0]
    assert [axis[-1] for axis in curves.roc] == [1, 1]
    assert curves.precision_recall[0][0] == 1
    assert curves.precision_recall[0][-1] == 0


def test_the_path_and_the_densities_are_the_models(iris, iris_report):
    model, *_ = iris
    assert iris_report.path.sizes == model.path_.sizes.tolist()
    assert iris_report.path.mean == model.path_.mean_accuracy.tolist()
    assert iris_report.path.chosen == model.n_selected_
    for feature in iris_report.features:
        for x, height in zip(feature.curves.x, feature.curves.height, strict=True):
            assert np.trapezoid(height, x) == pytest.approx(1, abs=0.01)


# ------------------------------------------------------------------ data of every kind


def test_documents():
    model = text_model(n_features="all").fit(DOCUMENTS, LABELS)
    documents = [*DOCUMENTS[:6], "green green green " + "unheard " * 500, "nothing known here", ""]
    report = evaluate(model, documents, [*LABELS[:6], "red", "blue", "green"])
    assert report.data.empty_rows == 2
    assert any("2 rows have none of the selected features" in note for note in report.notes)
    longest = next(m for m in report.mistakes if m.row == 6)
    assert longest.predicted == "green"
    assert longest.evidence.features[0] == "green"
    assert len(longest.excerpt) <= 400
    parser = checked_page(report)
    assert "unheard unheard" in "".join(parser.text)
    again = evaluate(model, pd.Series(documents), [*LABELS[:6], "red", "blue", "green"])
    assert [m.excerpt for m in again.mistakes] == [m.excerpt for m in report.mistakes]


@pytest.mark.parametrize(
    "container", [np.asarray, np.ndarray.tolist, sp.csr_array, pd.DataFrame, pl.DataFrame]
)
def test_any_container(container):
    rng = np.random.default_rng(0)
    X, y = rng.poisson(2, size=(60, 5)).astype(float), np.arange(60) % 3
    X[:, 0] += y
    model = MaxDiscClassifier("poisson").fit(container(X), y)
    a, b = evaluate(model, container(X), y), evaluate(model, container(X), y.tolist())
    assert dataclasses.replace(a, created="") == dataclasses.replace(b, created="")
    assert a.mistakes
    checked_page(a)


def test_a_perfect_score_says_so():
    X, y = IRIS.data[:100], NAMES[:100]
    report = evaluate(MaxDiscClassifier().fit(X, y), X, y)
    assert report.scores.accuracy == 1
    assert report.mistakes == []
    assert "It made no mistake on these rows." in report.summary
    assert "every row was classified correctly" in "".join(checked_page(report).text)
    assert "every row was classified correctly" in report.markdown()


def test_one_row(iris):
    model, X, y = iris
    report = evaluate(model, X[:1], y[:1])
    assert report.data.absent == ["versicolor", "virginica"]
    assert any("With 1 row, the accuracy is imprecise" in note for note in report.notes)
    assert any("No row belongs to “versicolor” and “virginica”" in note for note in report.notes)
    checked_page(report)
    report.markdown()


def test_labels_of_which_the_model_knows_none(iris):
    model, X, _ = iris
    report = evaluate(model, X, ["7"] * 74 + [8])
    assert report.scores.accuracy == 0
    assert report.scores.log_loss is None
    assert report.data.unknown == {"7": 74, "8": 1}
    assert any("75 rows have labels that the model does not know" in note for note in report.notes)
    assert all(mistake.evidence.against in model.classes_ for mistake in report.mistakes)
    checked_page(report)
    json.loads(report.json())


def test_a_class_that_cannot_be():
    X, y = IRIS.data[:100], NAMES[:100]
    model = MaxDiscClassifier(prior=[0.0, 1.0], n_features=2, smoothing=1.0).fit(X, y)
    assert evaluate(model, X, y).path.sizes == [2]
    model.set_params(evidence="raw").fit(X, y)
    report = evaluate(model, X, y)
    assert report.scores.log_loss is None
    assert all(mistake.evidence is None for mistake in report.mistakes)
    assert any("infinite" in note for note in report.notes)
    assert report.path is None
    checked_page(report)
    assert "Infinity" not in report.json()
    report.markdown()


def test_features_without_names_variation_or_values():
    X = np.c_[IRIS.data.to_numpy(), np.ones(150), np.full(150, np.nan)]
    model = MaxDiscClassifier(n_features="all", smoothing=1.0).fit(X, IRIS.target)
    X[3] = np.nan
    report = evaluate(model, X, IRIS.target)
    assert report.data.empty_rows == 1
    assert [feature.curves.silent for feature in report.features] == [False] * 4 + [True] * 2
    text = "".join(checked_page(report).text)
    assert "always 1: uninformative" in text
    assert "never seen: uninformative" in text
    assert "It uses all 6 features, as set." in report.summary
    json.loads(report.json())


def test_many_classes_have_no_matrix_but_the_top_mistakes():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(100), 6)
    X = rng.normal(size=(600, 4)) + y[:, None] / 5
    model = MaxDiscClassifier(n_features="all", smoothing=1.0).fit(X, y)
    report = evaluate(model, X, y)
    assert report.confusion.counts is None
    assert len(report.confusion.pairs) == 15
    parser = checked_page(report)
    assert "With 100 labels" in "".join(parser.text)
    assert len(page(report)) < 1_000_000


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (IRIS.data[:0], [], "no rows"),
        (IRIS.data[:3], ["a", "b"], "X has 3 rows, but y has 2 labels"),
        (IRIS.data[:3], ["setosa", None, np.nan], "2 of the 3 labels are missing"),
        (IRIS.data[:3], pd.array(["setosa", pd.NA, "setosa"]), "1 of the 3 labels are missing"),
        (IRIS.data[:2], [["setosa"], ["setosa"]], "shape \\(2, 1\\)"),
    ],
)
def test_bad_input_is_refused_in_one_line(iris, X, y, message):
    with pytest.raises(ValueError, match=message) as raised:
        evaluate(iris[0], X, y)
    assert "\n" not in str(raised.value)


def test_many_folds_are_summed_up():
    model = MaxDiscClassifier(cv=LeaveOneOut()).fit(IRIS.data[::3], NAMES[::3])
    report = evaluate(model, IRIS.data[1::3], NAMES[1::3])
    assert report.path.folds == 50
    assert report.path.accuracy == []
    assert any("50 held-out folds" in sentence for sentence in report.summary)
    checked_page(report)


def test_rendering_is_deterministic(iris_report):
    assert iris_report.html() == iris_report.html()
    assert "matplotlib" not in iris_report.html()


def test_the_command_line_and_json_need_no_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from sklearn.datasets import load_iris\n"
        "from maxdisc import MaxDiscClassifier\n"
        "from maxdisc.report import evaluate\n"
        "X, y = load_iris(return_X_y=True)\n"
        "report = evaluate(MaxDiscClassifier().fit(X, y), X, y)\n"
        "report.json(), report.markdown(), report.html()"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.stderr.strip().endswith(f"maxdisc.plots needs matplotlib: {pip_line('plots')}")


def test_breast_cancer_beats_the_majority_and_says_so():
    data = load_breast_cancer(as_frame=True)
    labels = data.target_names[data.target]
    model = MaxDiscClassifier(rule="one_se", structure="independent").fit(data.data[::2], labels[::2])
    report = evaluate(model, data.data[1::2], labels[1::2])
    words = " ".join(report.summary)
    assert "the model is clearly better" in words
    assert "within one standard error" in words
    assert report.settings["classifier: rule"] == "'one_se'"


def test_the_how_to_runs_as_written(tmp_path, monkeypatch):
    guide = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "report.md"
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)  # the reader would paste it too
    pyplot.close("all")
    StrictParser((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert len(names["table"]["feature"]) == 10


# ------------------------------------------------------------------ hostile text


FIXED = {"kind", "created", "family"}


def rewritten(value, text):
    """A report in which every text is replaced."""
    if isinstance(value, str):
        return text
    if isinstance(value, list | tuple):
        return type(value)(rewritten(each, text) for each in value)
    if isinstance(value, dict):
        return {key: rewritten(each, text) for key, each in value.items()}
    if dataclasses.is_dataclass(value):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return type(value)(**{k: v if k in FIXED else rewritten(v, text) for k, v in fields.items()})
    return value


@pytest.fixture(scope="module")
def small_report():
    """Documents, an unknown label, a table of everything; few pictures, for they take time."""
    model = text_model(n_features=6, smoothing=1.0).fit(DOCUMENTS, LABELS)
    report = evaluate(model, [*DOCUMENTS[:6], "red jazz"], [*LABELS[:6], "violet"], about={"source": "x"})
    features = [report.features[0], *(dataclasses.replace(f, curves=None) for f in report.features[1:])]
    return dataclasses.replace(report, features=features)


def shape(parser):
    """The elements of a page outside pictures; where a name may be broken is no matter."""
    return [tag for tag, in_svg in parser.tags if not in_svg and tag != "wbr"]


@pytest.fixture(scope="module")
def harmless(small_report):
    return rewritten(small_report, "x")


@pytest.fixture(scope="module")
def harmless_shape(harmless):
    return shape(checked_page(harmless))


def cells(line):
    return len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))


hostile = st.text(max_size=60) | st.text(
    alphabet="<>&\"'|`*_[]()#-\\$\n\t\x00\x1b\u202e\u2028\ud800é漢 :/w.h", max_size=60
)


@given(hostile)
@example(HOSTILE)
@example("\ud800\uffff\x00")
@example("$\\frac{")
@example("漢字 שלום 🏳️‍🌈")
@examples(15)
def test_whatever_a_text_says_it_changes_nothing_but_text(small_report, harmless, harmless_shape, text):
    report = rewritten(small_report, text)
    parser = checked_page(report)
    assert shape(parser) == harmless_shape
    unseen = {c for c in parser.source if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Cn")} - set(
        "\n\u200c\u200d"
    )
    assert not unseen
    lines, usual = report.markdown().splitlines(), harmless.markdown().splitlines()
    assert [cells(line) for line in lines] == [cells(line) for line in usual]
    assert not any(re.search(r"(?<!\\)(?:\\\\)*[<`]", line) for line in lines)
    report.markdown().encode("utf-8")
    assert json.loads(report.json())["title"] == text


def test_hostile_names_from_the_data_on():
    names = [HOSTILE, "$x$", "_y", "a" * 500]
    frame = pd.DataFrame(IRIS.data.to_numpy(), columns=names)
    labels = np.array(["<b>one</b>", "two|`", HOSTILE.replace("\x07", "")])[IRIS.target]
    model = MaxDiscClassifier(n_features="all").fit(frame, labels)
    report = evaluate(
        model, frame, labels, title=HOSTILE, about={HOSTILE: HOSTILE, "list": [1, {"a": HOSTILE}]}
    )
    text = "".join(checked_page(report).text)
    assert "<script>alert('1')</script>" in text
    assert "<b>one</b>" in text
    assert json.loads(report.json())["about"][HOSTILE] == HOSTILE


@given(st.floats(0, 1))
def test_percentages_are_near_and_only_all_is_all(share):
    words = percent(share)
    value = float(re.sub(r"[^\d.]", "", words)) / 100
    assert value == pytest.approx(share, abs=6e-4)
    assert (value in (0.0, 1.0)) == (share in (0.0, 1.0))


def test_a_report_is_frozen(iris_report):
    assert isinstance(iris_report, Report)
    with pytest.raises(dataclasses.FrozenInstanceError):
        iris_report.title = "other"


@pytest.mark.parametrize("missing", ["ignore", "informative"])
def test_mixed_columns_are_shown_with_their_families(missing):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 300)
    frame = pd.DataFrame(
        {
            HOSTILE: np.where(rng.random(300) < 0.2 + 0.6 * codes, HOSTILE, "plain"),
            "n": rng.poisson(1 + 2 * codes),
            "gap": np.where(rng.random(300) < 0.3, np.nan, rng.normal(codes * 0.2)),
        }
    )
    labels = np.array(["no", "yes"])[codes]
    model = MaxDiscClassifier(family={"n": "poisson", "gap": "gaussian"}, missing=missing)
    model.fit(frame[::2], labels[::2])
    held = frame[1::2].copy()
    held.iloc[0] = [None, np.nan, np.nan]
    report = evaluate(model, pl.from_pandas(held), labels[1::2])
    assert (report.data.family, report.data.empty_rows) == ("mixed", 1)
    assert report.data.families == {"poisson": 1, "gaussian": 1, "categorical": 1}
    assert {f.name: f.family for f in report.features}["n"] == "poisson"
    assert report.settings["family of the densities"] == "1 poisson, 1 gaussian, 1 categorical"
    text = " ".join(checked_page(report).text)
    assert "categorical" in text
    assert "| family |" in report.markdown()
    values = [v for m in report.mistakes for v in (m.evidence.values if m.evidence else [])]
    assert "plain" in values or HOSTILE in values
    json.loads(report.json())
