"""Words: scikit-learn's CountVectorizer is the oracle, for both ways of counting."""

from __future__ import annotations

import copy
import pickle
import sqlite3
import subprocess
import sys
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache, reduce
from operator import add

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.datasets import load_docstrings
from maxdisc.rows import BatchRows
from maxdisc.testing import batches_of, taking
from maxdisc.words.counting import CompiledTerms, PythonTerms, WordRule, _in_groups, byte_order, in_batches

#: Letters of all lengths in UTF-8, marks that are no letters, digits that are no decimals, lone surrogates,
#: and letters whose lower case is longer, shorter or depends on what follows.
CHARACTERS = st.one_of(
    st.sampled_from("aAbB zZ__01 \n\t.,-'\x00\x7f"),
    st.sampled_from("ÀéßſKİıΣσςǅﬀ²½ⅷ٣१  ­​‍\u0301日本語😀𝔘𐐀\ud800\udfff\uffff"),  # noqa: RUF001
    st.characters(),
)
TEXTS = st.lists(st.text(CHARACTERS, max_size=40), min_size=1, max_size=8)
RULES = st.builds(
    WordRule,
    st.sampled_from([r"(?u)\b\w\w+\b", r"\b\w+\b", r"\w{3,}"]),
    st.booleans(),
    st.frozensets(st.sampled_from(["a", "the", "ab", "zz", "é", "日本"])),
    st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 4)]),
)


@cache
def docstrings():
    return load_docstrings("package")


@pytest.fixture
def compiled():
    with taking("compiled"):
        yield


@pytest.fixture(params=["compiled", "plain"])
def either_way(request):
    with taking(request.param):
        yield


def oracle_for(rule, **settings):
    return CountVectorizer(
        token_pattern=rule.pattern,
        lowercase=rule.lowercase,
        stop_words=sorted(rule.stop_words) or None,
        ngram_range=rule.ngram_range,
        **settings,
    )


def counted(terms, documents):
    """Each document's terms with their counts, as a dictionary."""
    rows = terms.count(documents)
    if isinstance(terms, CompiledTerms):
        terms, numbers = terms.sorted()
        rows = rows.renumber(numbers)
    strings = terms.strings()
    return [
        {strings[t]: int(n) for t, n in zip(rows.indices[a:b], rows.counts[a:b], strict=True)}
        for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]


def agree(matrix, other):
    other = other.copy()
    other.sort_indices()
    assert matrix.shape == other.shape
    assert matrix.dtype == other.dtype
    np.testing.assert_array_equal(matrix.indptr, other.indptr)
    np.testing.assert_array_equal(matrix.indices, other.indices)
    np.testing.assert_array_equal(matrix.data, other.data)


class TestWaysOfCounting:
    @given(TEXTS, RULES)
    @example(["ΣΑΣ Σας", "İstanbul ISTANBUL", "a\ud800bc"], WordRule())
    @example(["the", "The ab"], WordRule(stop_words=frozenset({"the", "a"})))
    def test_both_count_as_the_oracle_does(self, documents, rule):
        analyse = oracle_for(rule).build_analyzer()
        expected = [{t: analyse(d).count(t) for t in analyse(d)} for d in documents]
        assert counted(PythonTerms(rule), documents) == expected
        compiled = CompiledTerms(rule)
        assert counted(compiled, documents) == expected
        # What is known from one batch does not colour the next.
        assert counted(compiled, documents) == expected

    @given(TEXTS, RULES)
    def test_both_know_how_often_terms_are_used(self, documents, rule):
        ways = PythonTerms(rule), CompiledTerms(rule)
        usage = []
        for terms in ways:
            terms.count(documents)
            terms.count(documents)
            if isinstance(terms, CompiledTerms):
                terms, _ = terms.sorted()
            used = zip(terms.strings(), terms.n_documents.tolist(), terms.n_times.tolist(), strict=True)
            usage.append({term: (n, times) for term, n, times in used if n})
        assert usage[0] == usage[1]
        rows = CompiledTerms(rule).count(documents)
        assert sum(times for _, times in usage[0].values()) == 2 * rows.counts.sum()

    @given(TEXTS, TEXTS, RULES)
    def test_merged_terms_are_those_of_both(self, some, others, rule):
        tables = one, two, both = [CompiledTerms(rule) for _ in range(3)]
        for table, documents in zip(tables, (some, others, [*some, *others]), strict=True):
            table.count(documents)
        (one, _), (two, _), (both, _) = (table.sorted() for table in tables)
        merged, ours, theirs = one.merged(two)
        strings = merged.strings()
        assert strings == sorted({*one.strings(), *two.strings()})
        assert [strings[n] for n in ours] == one.strings()
        assert [strings[n] for n in theirs] == two.strings()
        usage = zip(strings, merged.n_documents, merged.n_times, strict=True)
        expected = zip(both.strings(), both.n_documents, both.n_times, strict=True)
        assert list(usage) == list(expected)

    @given(st.lists(st.text(CHARACTERS, max_size=24), unique=True))
    @example([""])
    @example(["internationally", "internationalize", "internationalisé", "internationalizes" * 3])
    def test_the_order_is_that_of_strings(self, strings):
        encoded = [s.encode("utf-8", "surrogatepass") for s in strings]
        ends = np.r_[0, np.cumsum([len(e) for e in encoded], dtype=np.int64)]
        order = byte_order(_in_groups(b"".join(encoded)), ends)
        assert [strings[i] for i in order] == sorted(strings)

    def test_tables_grow(self):
        # More distinct terms, and a longer document, than a new table has room for.
        documents = [f"w{i} w{i + 1}" for i in range(50_000)] + [
            " ".join(f"v{i}" for i in range(60_000)),
            "w7",
        ]
        terms = CompiledTerms(WordRule())
        rows = terms.count(documents)
        assert terms.sorted()[0].strings() == sorted(
            {f"w{i}" for i in range(50_001)} | {f"v{i}" for i in range(60_000)}
        )
        assert rows.counts.sum() == 160_001
        np.testing.assert_array_equal(np.bincount(rows.indices, rows.counts), terms.n_times)

    @pytest.mark.usefixtures("compiled")
    def test_threads_change_nothing(self, monkeypatch):
        documents = docstrings().data[:600]
        results = []
        for threads in ("1", "2", "5"):
            monkeypatch.setenv("MAXDISC_NUM_THREADS", threads)
            vectorizer = TermFrequencyVectorizer()
            with batches_of(2**14):
                results.append((vectorizer.fit_transform(documents), vectorizer.terms_.tolist()))
        for matrix, terms in results[1:]:
            agree(matrix, results[0][0])
            assert terms == results[0][1]

    def test_batches_are_cut_by_characters(self):
        with batches_of(3):
            assert list(in_batches(["ab", "c", "def", "g"])) == [["ab", "c"], ["def"], ["g"]]
        assert list(in_batches([])) == []

    def test_little_text_compiles_nothing(self):
        code = (
            "import sys; from maxdisc import TermFrequencyVectorizer;"
            "v = TermFrequencyVectorizer().fit(['some words', 'more words']); v.transform(['words']);"
            "print([m for m in ('numba', 'maxdisc.words.compiled_words') if m in sys.modules])"
        )
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert out.stdout.strip() == "[]"


class TestAgainstCountVectorizer:
    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"stop_words": "english"},
            {"min_df": 2, "max_df": 0.5},
            {"min_df": 0.01, "ngram_range": (1, 2)},
            {"token_pattern": r"(?u)\b[a-z]+\b", "lowercase": False},
            {"token_pattern": r"x(\w+)"},
            {"vocabulary": ["array", "zzzz", "shape", "the"]},
            {"vocabulary": {"the": 1, "array": 0}},
        ],
        ids=str,
    )
    @pytest.mark.usefixtures("either_way")
    def test_docstrings(self, settings):
        documents = docstrings().data[:800]
        ours, theirs = TermFrequencyVectorizer(scale=None, **settings), CountVectorizer(**settings)
        agree(ours.fit_transform(documents), theirs.fit_transform(documents))
        assert ours.vocabulary_ == theirs.vocabulary_
        np.testing.assert_array_equal(ours.get_feature_names_out(), theirs.get_feature_names_out())
        unseen = ["the shape of an array", "quite", ""]
        agree(ours.transform(unseen), theirs.transform(unseen))

    def test_newsgroups(self, paper_data):
        import pandas as pd

        posts = pd.read_parquet(paper_data / "text" / "20newsgroups_bydate.parquet")["text"].tolist()
        ours, theirs = TermFrequencyVectorizer(scale=None), CountVectorizer()
        agree(ours.fit_transform(posts), theirs.fit_transform(posts))
        assert ours.terms_.tolist() == theirs.get_feature_names_out().tolist()

    @pytest.mark.parametrize("way", ["plain", "compiled"])
    @given(documents=TEXTS, rule=RULES)
    def test_any_text(self, documents, rule, way):
        ours = TermFrequencyVectorizer(
            rule.pattern, rule.lowercase, sorted(rule.stop_words), ngram_range=rule.ngram_range, scale=None
        )
        theirs = oracle_for(rule)
        try:
            expected = theirs.fit_transform(documents)
        except ValueError:
            with taking(way), pytest.raises(ValueError, match="no terms are left"):
                ours.fit(documents)
            return
        with taking(way):
            agree(ours.fit_transform(documents), expected)
        assert ours.vocabulary_ == theirs.vocabulary_

    def test_most_frequent_terms(self):
        documents = ["a1 b1 b1 c1", "b1 d1 c1", "e1"]
        ours = TermFrequencyVectorizer(max_features=3, scale=None).fit(documents)
        # b1 thrice, c1 twice, and of the rest the first.
        assert ours.terms_.tolist() == ["a1", "b1", "c1"]
        assert TermFrequencyVectorizer(max_features=9).fit(documents).terms_.size == 5

    def test_a_term_must_occur_often_enough_in_all_documents_together(self):
        documents = ["aa aa bb", "bb cc"]
        assert TermFrequencyVectorizer(min_count=2).fit(documents).terms_.tolist() == ["aa", "bb"]
        assert TermFrequencyVectorizer(min_count=2, min_df=2).fit(documents).terms_.tolist() == ["bb"]


class TestScale:
    documents = ("aa aa bb", "aa bb bb cc cc cc cc", "zz", "cc")

    def fitted(self, scale):
        vectorizer = TermFrequencyVectorizer(scale=scale, min_df=2)
        return vectorizer, vectorizer.fit_transform(self.documents).toarray()

    def test_length(self):
        vectorizer, X = self.fitted("length")
        assert vectorizer.mean_length_ == 11 / 4
        np.testing.assert_allclose(X.sum(axis=1), [2.75, 2.75, 0, 2.75])
        np.testing.assert_allclose(X[0], np.array([2, 1, 0]) * 2.75 / 3)
        # New documents are scaled to the training documents' length.
        np.testing.assert_allclose(vectorizer.transform(["aa", ""]).toarray(), [[2.75, 0, 0], [0, 0, 0]])

    def test_frequency_is_the_papers(self):
        _, X = self.fitted("frequency")
        np.testing.assert_allclose(X, [[2 / 3, 1 / 3, 0], [1 / 7, 2 / 7, 4 / 7], [0, 0, 0], [0, 0, 1]])

    def test_log(self):
        vectorizer, X = self.fitted("log")
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), [2.75, 2.75, 0, 2.75])
        np.testing.assert_allclose(X[0, 0] / X[0, 1], np.log(3) / np.log(2))
        assert vectorizer.mean_length_ == 11 / 4

    def test_counts(self):
        _, X = self.fitted(None)
        assert X.dtype == np.int64
        np.testing.assert_array_equal(X[1], [1, 2, 4])


class TestEstimator:
    @pytest.mark.parametrize("scale", ["length", "log", "frequency", None])
    @pytest.mark.usefixtures("either_way")
    def test_fit_transform_is_fit_then_transform(self, scale):
        documents = docstrings().data[:300]
        both = TermFrequencyVectorizer(scale=scale, min_df=2)
        X = both.fit_transform(documents)
        apart = clone(both).fit(iter(documents))
        assert apart.mean_length_ == both.mean_length_
        agree(apart.transform(documents), X)
        agree(apart.transform(iter(documents)), X)

    def test_a_stream_of_batches_gives_the_model_of_all_documents(self):
        data = docstrings()
        classes, codes = np.unique(data.target, return_inverse=True)
        starts = range(0, len(data.data), 700)
        vectorizer = TermFrequencyVectorizer(min_df=3).fit(d for d in data.data)
        rows = BatchRows(
            lambda: ((vectorizer.transform(data.data[s : s + 700]), codes[s : s + 700]) for s in starts),
            len(classes),
        )
        model = MaxDiscClassifier(smoothing=0.1).fit_rows(rows, classes)
        X = TermFrequencyVectorizer(min_df=3).fit_transform(data.data)
        whole = MaxDiscClassifier(smoothing=0.1, evidence="calibrated", cv="hash").fit(X, data.target)
        assert model.n_selected_ == whole.n_selected_
        np.testing.assert_array_equal(model.predict(X), whole.predict(X))

    def test_in_a_pipeline(self):
        data = docstrings()
        model = make_pipeline(
            TermFrequencyVectorizer(min_df=3), MaxDiscClassifier(smoothing=0.1, n_features=2000)
        )
        model.fit(data.data, data.target)
        assert model.score(data.data, data.target) > 0.9
        assert len(model[:-1].get_feature_names_out()) == model[-1].n_features_in_
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(data.data[:50]), model.predict(data.data[:50]))

    def test_clone_and_refit(self):
        vectorizer = TermFrequencyVectorizer().fit(["aa bb"])
        assert vectorizer.vocabulary_ == {"aa": 0, "bb": 1}
        assert vectorizer.fit(["cc"]).vocabulary_ == {"cc": 0}
        assert not hasattr(clone(vectorizer), "terms_")

    def test_inverse_transform(self):
        vectorizer = TermFrequencyVectorizer()
        X = vectorizer.fit_transform(["bb aa bb", "", "cc"])
        assert [row.tolist() for row in vectorizer.inverse_transform(X)] == [["aa", "bb"], [], ["cc"]]
        assert [r.tolist() for r in vectorizer.inverse_transform(np.array([[0, 1, 1]]))] == [["bb", "cc"]]
        with pytest.raises(ValueError, match="X has 2 columns, but the vocabulary has 3 terms"):
            vectorizer.inverse_transform(np.zeros((1, 2)))

    def test_bytes_are_utf8(self):
        assert TermFrequencyVectorizer().fit(["naïve".encode()]).terms_.tolist() == ["naïve"]

    def test_a_string_of_another_type_is_text(self):
        assert TermFrequencyVectorizer().fit(np.array(["one two"])).terms_.tolist() == ["one", "two"]

    def test_not_fitted(self):
        for use in (
            lambda v: v.transform(["aa"]),
            lambda v: v.get_feature_names_out(),
            lambda v: v.inverse_transform(np.eye(2)),
            lambda v: v.vocabulary_,
        ):
            with pytest.raises(NotFittedError):
                use(TermFrequencyVectorizer())


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"scale": "tfidf"}, "scale"),
            ({"ngram_range": (2, 1)}, "ngram_range"),
            ({"ngram_range": (0, 1)}, "ngram_range"),
            ({"min_count": 0.5}, "min_count must be an integer of at least 0, got 0.5"),
            ({"max_features": 0}, "max_features must be an integer of at least 1"),
            ({"min_df": -1}, "min_df"),
            ({"max_df": 1.5}, "max_df must be an int"),
            ({"min_df": 2, "max_df": 1}, "max_df=1 is fewer documents than min_df=2"),
            ({"token_pattern": "("}, "is no regular expression"),
            ({"token_pattern": "(a)(b)"}, "has 2 groups"),
            ({"stop_words": "klingon"}, "stop_words must be 'english'"),
            ({"vocabulary": []}, "the vocabulary is empty"),
            ({"vocabulary": ["a", "b", "a"]}, "has the term 'a' twice"),
            ({"vocabulary": {"a": 0, "b": 2}}, "columns 0, 1, 2"),
            ({"min_count": 5}, "no terms are left of 3 in 2 documents"),
        ],
        ids=str,
    )
    def test_parameters(self, settings, message):
        with pytest.raises(ValueError, match=message):
            TermFrequencyVectorizer(**settings).fit(["aa bb", "bb cc"])

    @pytest.mark.parametrize(
        ("documents", "message"),
        [
            ("one text", "X is a single document"),
            (["aa", None], "document 1 is None, not text"),
            (["aa", float("nan")], "document 1 is nan, not text"),
            ([b"caf\xe9"], "document 0 is not UTF-8"),
            ([], "there are no documents"),
            (["", "."], "no terms are left of 0 in 2 documents"),
        ],
        ids=str,
    )
    def test_documents(self, documents, message):
        with pytest.raises(ValueError, match=message):
            TermFrequencyVectorizer().fit(documents)

    def test_upper_case_in_a_vocabulary_is_never_found(self):
        with pytest.warns(UserWarning, match="'Cat' in the vocabulary has upper case letters"):
            TermFrequencyVectorizer(vocabulary=["Cat"]).fit(["cat"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            TermFrequencyVectorizer(vocabulary=["Cat"], lowercase=False).fit(["cat"])


@pytest.mark.usefixtures("either_way")
def test_memory_does_not_grow_with_the_stream():
    some = docstrings().data[:100]

    def peak(repeats):
        tracemalloc.start()
        try:
            with batches_of(2**15):
                TermFrequencyVectorizer().fit(document for _ in range(repeats) for document in some)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(2)  # what is loaded or compiled at first use
    assert peak(40) < 1.3 * peak(4) + 100_000


@pytest.mark.usefixtures("compiled")
class TestWhatIsNoWord:
    @pytest.mark.parametrize("stop_word", ["the\n", "cat\0", "abcdefg\0", "", "a b", "-"])
    def test_as_a_stop_word_it_changes_nothing(self, stop_word):
        documents = ["the cat sat", "dog log abcdefg fog", "the mat"]
        plain = TermFrequencyVectorizer(scale=None)
        skipping = TermFrequencyVectorizer(scale=None, stop_words=[stop_word])
        for one, other in (
            (plain.fit_transform, skipping.fit_transform),
            (plain.transform, skipping.transform),
        ):
            np.testing.assert_array_equal(one(documents).toarray(), other(documents).toarray())
        given = TermFrequencyVectorizer(scale=None, vocabulary=["cat", "dog"], stop_words=[stop_word])
        np.testing.assert_array_equal(given.fit_transform(documents).toarray(), [[1, 0], [0, 1], [0, 0]])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"stop_words": iter(["the"])}, "stop_words must be a list"),
        ({"stop_words": ["a", 7]}, "stop_words must be words, got 7"),
        ({"vocabulary": (w for w in ["a"])}, "vocabulary must be a list"),
        ({"ngram_range": None}, "give two numbers"),
        ({"ngram_range": (1.5, 2)}, "give two numbers"),
        ({"min_df": "2"}, "min_df must be an int"),
        ({"max_df": float("nan")}, "max_df must be an int"),
    ],
)
def test_parameters_are_refused_at_once(parameters, words):
    with pytest.raises(ValueError, match=words):
        TermFrequencyVectorizer(**parameters).fit(["the cat"])


@pytest.mark.usefixtures("compiled")
def test_a_stream_is_read_by_the_thread_that_gave_it(monkeypatch):
    monkeypatch.setenv("MAXDISC_NUM_THREADS", "3")
    with closing(sqlite3.connect(":memory:")) as base, batches_of(16):
        base.execute("create table posts (body text)")
        base.executemany("insert into posts values (?)", [(f"cat {i} dog" * 3,) for i in range(200)])
        rows = (row[0] for row in base.execute("select body from posts"))
        assert TermFrequencyVectorizer(scale=None).fit_transform(rows).shape[0] == 200


@pytest.mark.parametrize("options", [{}, {"min_df": 2, "max_features": 30}, {"stop_words": "english"}])
@pytest.mark.parametrize("cuts", [(), (1,), (10, 10, 40)])
def test_totals_of_parts_make_the_same_vocabulary(options, cuts):
    documents = docstrings().data[:60]
    whole = TermFrequencyVectorizer(**options).fit(documents)
    parts = [documents[a:b] for a, b in zip((0, *cuts), (*cuts, None), strict=True)]
    vectorizer = TermFrequencyVectorizer(**options)
    totals = [vectorizer.totals(part) for part in parts]
    assert vectorizer.fit_totals(reduce(add, reversed(totals))).terms_.tolist() == whole.terms_.tolist()
    assert vectorizer.mean_length_ == whole.mean_length_
    fixed = TermFrequencyVectorizer(vocabulary=whole.terms_[::3].tolist())
    again = clone(fixed).fit_totals(reduce(add, totals))
    assert again.mean_length_ == fixed.fit(documents).mean_length_


@given(
    st.text(alphabet="aAbß İΣσς😀_-'\n0é", max_size=40),
    st.sampled_from([(1, 1), (1, 2), (2, 3)]),
    st.sampled_from([r"(?u)\b\w\w+\b", r"\w+", r"(\w)\w*", r"[a-z]+|(é)"]),
    st.booleans(),
)
def test_spans_are_where_the_terms_are(document, ngram_range, pattern, lowercase):
    rule = WordRule(pattern, lowercase, frozenset({"ab"}), ngram_range)
    spans = rule.spans(document)
    assert [term for term, _, _ in spans] == rule.terms(document)
    for term, start, end in spans:
        assert 0 <= start <= end <= len(document)
        # Of "İ" a word may take half: its lower case is two characters, and the second is none of a word.
        if ngram_range == (1, 1) and "(" not in pattern.removeprefix("(?u)") and "İ" not in document:
            cut = document[start:end]
            # The lower case of a letter may depend on its neighbours, as that of Σ does.
            assert term == cut or term.upper() == cut.lower().upper()


class TestTermsAreSpelledWhenAsked:
    @pytest.fixture
    def fitted(self):
        vectorizer = TermFrequencyVectorizer(min_df=2)
        return vectorizer, vectorizer.fit_transform(["one two", "two three", "three four"])

    def test_not_before(self, fitted):
        vectorizer, X = fitted
        assert "_terms" not in vars(vectorizer)
        assert X.shape == (3, 2)
        assert vectorizer.terms_.tolist() == ["three", "two"]
        assert vectorizer.vocabulary_ == {"three": 0, "two": 1}

    def test_a_copy_has_them(self, fitted):
        vectorizer, X = fitted
        for copied in (pickle.loads(pickle.dumps(vectorizer)), copy.deepcopy(vectorizer)):
            assert copied.terms_.tolist() == ["three", "two"]
            assert (copied.transform(["one two", "two three", "three four"]) != X).nnz == 0

    def test_not_those_of_an_earlier_fit(self, fitted):
        vectorizer, _ = fitted
        assert len(vectorizer.terms_) == len(vectorizer.vocabulary_) == 2
        vectorizer.fit(["five six", "six five"])
        assert vectorizer.vocabulary_ == {"five": 0, "six": 1}
        assert vectorizer.get_feature_names_out().tolist() == ["five", "six"]

    def test_there_are_none_before_fit(self):
        assert not hasattr(TermFrequencyVectorizer(), "terms_")

    def test_by_several_threads_at_once(self):
        texts = [f"word{i} word{i + 1}" for i in range(3000)]
        for _ in range(5):
            vectorizer = TermFrequencyVectorizer().fit(texts)
            with ThreadPoolExecutor(4) as pool:
                found = list(pool.map(lambda _, v=vectorizer: v.terms_.tolist(), range(8)))
            assert all(terms == found[0] for terms in found)
            assert len(found[0]) == 3001


@given(
    st.lists(st.integers(0, 70), min_size=1, max_size=8),
    st.sampled_from([1, 2, 70, 511, 512, 513, 300_000]),
    st.integers(0, 10**6),
)
def test_rows_are_arranged_by_column_however_long_and_wide(lengths, n_columns, seed):
    from maxdisc.words.compiled_words import arrange

    rng = np.random.default_rng(seed)
    # Terms in no order; a third has no column, and no row has a term twice.
    n_terms = max(2 * n_columns, 200)
    column_of = np.full(n_terms, -1, dtype=np.int32)
    column_of[rng.permutation(n_terms)[:n_columns]] = np.arange(n_columns)
    rows = [rng.choice(n_terms, length, replace=False) for length in lengths]
    indptr = np.r_[0, np.cumsum(lengths)]
    indices = np.concatenate(rows).astype(np.int32)
    counts = rng.integers(1, 2**31 - 1, len(indices)).astype(np.int32)
    kept = column_of[indices] >= 0
    before = np.r_[0, np.cumsum(kept)][indptr]
    columns, found = np.empty(before[-1], dtype=np.int32), np.empty(before[-1])
    arrange(indptr, indices, counts, column_of, n_columns, before, columns, found)
    for r in range(len(lengths)):
        some = np.arange(indptr[r], indptr[r + 1])
        some = some[kept[some]]
        some = some[np.argsort(column_of[indices[some]])]
        np.testing.assert_array_equal(columns[before[r] : before[r + 1]], column_of[indices[some]])
        np.testing.assert_array_equal(found[before[r] : before[r + 1]], counts[some])
