"""What notebooks show of models and explanations: true figures, escaped text, nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss

from maxdisc import DiscriminativeMaxEnt, MaxDiscClassifier, TermFrequencyVectorizer, load, save
from maxdisc.inspection import explanation_views
from maxdisc.inspection.explanation_views import pieces
from maxdisc.inspection.fitted_view import facts
from maxdisc.inspection.model_view import ModelView

CANCER, IRIS = load_breast_cancer(as_frame=True), load_iris()
DIAGNOSES = CANCER.target_names[CANCER.target]
SCRIPT = "<script>alert('x')</script>"
TEXTS = [f"{SCRIPT} buy now cheap", "meeting at noon <b>bold</b> & more"] * 20
LABELS = [SCRIPT, "ham & <i>eggs</i>"] * 20
ANY_WORD = TermFrequencyVectorizer(token_pattern=r"\S+")
_RNG = np.random.default_rng(0)
LONG = [f"{text} {' '.join(_RNG.choice([*'abcdefgh'], 9 * (row % 4)))}" for row, text in enumerate(TEXTS)]
MODELS = {
    "joint": (MaxDiscClassifier(structure="joint"), IRIS.data, IRIS.target),
    "one joint": (MaxDiscClassifier(structure="joint", evidence="raw"), IRIS.data, IRIS.target),
    "mixed": (MaxDiscClassifier(structure="independent"), CANCER.data, DIAGNOSES),
    "raw": (MaxDiscClassifier("gaussian", evidence="raw", n_features="all"), IRIS.data, IRIS.target),
    "impossible": (MaxDiscClassifier(structure="independent", prior=[0, 0.4, 0.6]), IRIS.data, IRIS.target),
    "documents": (MaxDiscClassifier(vectorizer=ANY_WORD), TEXTS, LABELS),
    "lengths": (MaxDiscClassifier(vectorizer=ANY_WORD, evidence="refined", cv=3), LONG, LABELS),
}


@pytest.fixture(scope="module")
def fitted():
    return {name: model.fit(X, y) for name, (model, X, y) in MODELS.items()}


class Page(HTMLParser):
    """The elements of some HTML and its text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text = set(), set(), ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def require_safe(html):
    page = Page(html)
    assert page.tags <= {
        *("div", "span", "table", "thead", "tbody", "tr", "th", "td", "b", "bdi", "mark", "p", "code")
    }
    assert page.attributes <= {"style", "scope", "title"}
    assert "url(" not in html
    return page


def test_an_unfitted_estimator_has_the_diagram_of_scikit_learn():
    assert "sk-top-container" in MaxDiscClassifier()._repr_html_()


@pytest.mark.parametrize("name", MODELS)
def test_views_are_self_contained_and_say_what_it_is(name, fitted):
    model, X = fitted[name], MODELS[name][1][:5]
    page = require_safe(model._repr_html_())
    assert f"{model.n_selected_:,}of {model.n_features_in_:,}" in page.text
    for label in model.classes_:
        assert str(label) in page.text
    bundle = model._repr_mimebundle_()
    assert bundle == {"text/plain": repr(model), "text/html": model._repr_html_()}
    explanation = model.explain(X)
    assert str(model.predict(X)[0]) in require_safe(explanation._repr_html_()).text
    assert "2 more rows" in repr(explanation)
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")


@pytest.mark.parametrize("name", MODELS)
def test_the_parts_that_are_shown_sum_to_the_log_odds(name, fitted):
    model, X = fitted[name], MODELS[name][1]
    explanation = model.explain(X[:3])
    for row in range(3):
        shown = explanation_views._Shown.of(explanation, row)
        if shown.parts:
            assert sum(odds for _, odds in shown.parts) == pytest.approx(shown.total, abs=1e-9)
            best = np.sort(model.predict_log_proba(X[row : row + 1])[0])[::-1]
            assert shown.total == pytest.approx(best[0] - best[1], abs=1e-9)


def test_held_out_figures_stand_beside_those_of_the_class_shares(fitted):
    model = fitted["mixed"]
    shown = {name: (value, remark) for name, value, remark in facts(ModelView.of(model))}
    dummy = DummyClassifier(strategy="prior").fit(CANCER.data, DIAGNOSES)
    loss = log_loss(DIAGNOSES, dummy.predict_proba(CANCER.data))
    assert shown["held-out log-loss"] == (
        f"{model.evidence_.log_loss:.3f}",
        f"{loss:.3f} by class shares alone",
    )
    share = dummy.score(CANCER.data, DIAGNOSES)
    assert shown["held-out accuracy"] == (
        f"{100 * model.evidence_.accuracy:.1f} %",
        f"{100 * share:.1f} % by the majority class",
    )
    # A prior changes neither the rows nor their majority.
    weighed = MaxDiscClassifier(structure="independent", prior=[0.5, 0.5]).fit(CANCER.data, DIAGNOSES)
    assert ModelView.of(weighed).majority == ("benign", pytest.approx(ModelView.of(model).majority[1]))


def test_a_model_from_a_file_and_one_of_batches_have_views_too(fitted, tmp_path):
    save(fitted["mixed"], tmp_path / "m.maxdisc")
    assert load(tmp_path / "m.maxdisc")._repr_html_() == fitted["mixed"]._repr_html_()
    of_batches = MaxDiscClassifier("gaussian").partial_fit(IRIS.data, IRIS.target)
    assert "there were no folds" in require_safe(of_batches._repr_html_()).text
    one_class = MaxDiscClassifier("gaussian").partial_fit(IRIS.data[:50], IRIS.target[:50])
    require_safe(one_class._repr_html_())
    assert repr(one_class.explain(IRIS.data[:1])).endswith("row 0: 0 100 %")
    require_safe(one_class.explain(IRIS.data[:1])._repr_html_())


def test_documents_are_marked_where_their_terms_stand(fitted):
    model = fitted["documents"]
    explanation = model.explain(TEXTS[:2])
    html = explanation._repr_html_()
    assert SCRIPT not in html
    assert TEXTS[0] in Page(html).text
    odds = dict(explanation.top(0, 99))
    marked = re.findall(r'<mark style="([^"]*)" title="cheap: ([^"]*)">cheap</mark>', html)
    assert [said for _, said in marked] == [f"{odds['cheap']:+.2f}"]
    assert "underline solid" in marked[0][0]
    assert "no now" in Page(html).text
    assert model.explain(np.array(TEXTS[:2]))._repr_html_() == html


def test_long_documents_are_cut(fitted):
    html = fitted["documents"].explain(["cheap " * 10_000])._repr_html_()
    assert html.count("<mark") == explanation_views.CHARACTERS // len("cheap ")
    assert "…" in html


def test_discriminative_models_explain_the_same_way():
    explanation = DiscriminativeMaxEnt().fit(IRIS.data, IRIS.target).explain(IRIS.data[:1])
    assert "x0" in require_safe(explanation._repr_html_()).text


@given(
    st.text(max_size=12),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 12), st.integers(1, 5)), max_size=6),
)
def test_pieces_say_of_each_character_what_covers_it(text, found):
    spans = [(term, start, start + n) for term, start, n in found if start + n <= len(text)]
    cut = list(pieces(text, spans))
    assert "".join(piece for piece, _ in cut) == text
    covering = [sorted(terms) for piece, terms in cut for _ in piece]
    assert covering == [
        sorted(term for term, start, end in spans if start <= at < end) for at in range(len(text))
    ]
