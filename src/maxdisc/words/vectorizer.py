"""Vectorizer of documents: scaled term counts."""

from __future__ import annotations

import numbers
import operator
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.utils.validation import check_is_fitted

from maxdisc.numerics.matrices import Booleans, Integers, Matrix, require_indices
from maxdisc.rows.validation import require_one_of
from maxdisc.words.counting import Counts, Terms, WordRule, count_words, stacked
from maxdisc.words.scaling import SCALES, scaled_counts
from maxdisc.words.vocabulary import TermTotals


class TermFrequencyVectorizer(TransformerMixin, BaseEstimator):
    r"""Vectorizer that counts the words of documents and scales the counts.

    Vocabulary and counts are those of scikit-learn's ``CountVectorizer``. Large texts are counted by compiled
    code, in batches, on all cores; :meth:`fit` takes a stream of any length.

    Parameters
    ----------
    token_pattern : str, default=r"(?u)\b\w\w+\b"
        Regular expression of a word, with at most one group. Patterns such as the default, which take any
        unbroken run of letters, digits and underscores, are compiled; others go through :mod:`re`.
    lowercase : bool, default=True
        Whether to convert text to lower case.
    stop_words : "english", iterable of str, or None, default=None
        Words to ignore.
    min_count : int, default=1
        Minimum number of occurrences of a term in all documents.
    min_df, max_df : int or float, default=1 and 1.0
        Minimum and maximum number of documents with the term; a float is a share.
    max_features : int or None, default=None
        Maximum number of terms, by frequency; ties go to the first in alphabetical order.
    ngram_range : tuple of int, default=(1, 1)
        Minimum and maximum number of words of a term.
    scale : {"log", "length", "frequency", None}, default="log"
        ``"length"``: counts, each document scaled to the mean length of the training documents, in kept
        terms. ``"log"``: logs of one plus the counts, each document a vector whose Euclidean length is that
        mean. ``"frequency"``: shares of a document's terms. ``None``: the counts.
    vocabulary : iterable of str, mapping from str to column, or None, default=None
        The terms to count, instead of those of the documents.

    Attributes
    ----------
    terms_ : ndarray of shape (D,)
        The terms, by column. After loading a model file with selected features only, their terms.
    vocabulary_ : dict
        Columns by term.
    mean_length_ : float
        Mean number of terms of the vocabulary in a training document.

    Examples
    --------
    >>> from maxdisc import TermFrequencyVectorizer
    >>> vectorizer = TermFrequencyVectorizer(scale=None)
    >>> vectorizer.fit_transform(["to be or not to be", "to do is to be"]).toarray()
    array([[2, 0, 0, 1, 1, 2],
           [1, 1, 1, 0, 0, 2]])
    >>> print(*vectorizer.get_feature_names_out())
    be do is not or to
    """

    mean_length_: float

    def __init__(
        self,
        token_pattern: str = r"(?u)\b\w\w+\b",
        lowercase: bool = True,
        stop_words: str | Iterable[str] | None = None,
        min_count: int = 1,
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        ngram_range: tuple[int, int] = (1, 1),
        scale: str | None = "log",
        vocabulary: Iterable[str] | Mapping[str, int] | None = None,
    ) -> None:
        self.token_pattern = token_pattern
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.min_count = min_count
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.ngram_range = ngram_range
        self.scale = scale
        self.vocabulary = vocabulary

    # ------------------------------------------------------------------ learning

    def fit(self, raw_documents: Iterable[str], y: Any = None) -> Self:
        """Learn the vocabulary.

        Parameters
        ----------
        raw_documents : iterable of str
            Documents, read once; may be an iterator. Only the terms are kept in memory.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        TermFrequencyVectorizer
            This vectorizer, fitted.
        """
        self._learn(raw_documents, keep=False)
        return self

    def totals(self, raw_documents: Iterable[str]) -> TermTotals:
        """Return the term frequencies of some documents, the input of :meth:`fit_totals`.

        Parameters
        ----------
        raw_documents : iterable of str
            Some of the documents, read once.

        Returns
        -------
        TermTotals
            Sums, which add up to those of all documents.
        """
        return TermTotals.of(_Documents(raw_documents), self._checked_rule())

    def fit_totals(self, totals: TermTotals) -> Self:
        """Learn the vocabulary from sums over all documents; the same as ``fit`` with the documents.

        Parameters
        ----------
        totals : TermTotals
            The sum of :meth:`totals` over all parts.

        Returns
        -------
        TermFrequencyVectorizer
            This vectorizer, fitted.

        Examples
        --------
        >>> from maxdisc import TermFrequencyVectorizer
        >>> vectorizer = TermFrequencyVectorizer()
        >>> parts = [vectorizer.totals(["to be"]), vectorizer.totals(["or not to be"])]
        >>> print(*vectorizer.fit_totals(parts[0] + parts[1]).get_feature_names_out())
        be not or to
        """
        self._checked_rule()
        given = self._given_vocabulary()
        if given is not None:
            self._settle(given)
            found = np.array([term in self.vocabulary_ for term in totals.terms], dtype=bool)
        else:
            found = self._kept(totals.n_documents, totals.n_times, totals.number)
            self._settle(np.array(totals.terms, dtype=object)[found].tolist())
        times = int(totals.n_times[found].sum())
        self.mean_length_ = times / totals.number if totals.number else 0.0
        return self

    def fit_transform(self, raw_documents: Iterable[str], y: Any = None) -> Matrix:
        """Learn the vocabulary and return the scaled counts; the same as ``fit``, then ``transform``.

        Parameters
        ----------
        raw_documents : iterable of str
            Documents.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        csr_array of shape (N, D)
            Scaled counts.
        """
        return self._scaled(*self._learn(raw_documents, keep=True))

    def _learn(self, raw_documents: Iterable[str], keep: bool) -> tuple[list[Counts], Integers]:
        """Learn the vocabulary; return the counts, if requested, and the column of each term."""
        rule = self._checked_rule()
        given = self._given_vocabulary()
        documents = _Documents(raw_documents)
        terms, counts = count_words(documents, rule, keep)
        if given is not None:
            self._settle(given)
            columns = self._columns(terms)
        else:
            order = terms.order()
            order = order[self._kept(terms.n_documents[order], terms.n_times[order], documents.number)]
            columns = np.full(len(terms.n_times), -1)
            columns[order] = np.arange(len(order))
            self._found = terms, order
            self._forget("_terms", "_vocabulary")
        found = int(terms.n_times[columns >= 0].sum())
        self.mean_length_ = found / documents.number if documents.number else 0.0
        return counts, columns

    def _kept(self, n_documents: Integers, n_times: Integers, number: int) -> Booleans | Integers:
        """Return which terms to keep, the terms being in alphabetical order."""
        low, high = (
            limit if isinstance(limit, numbers.Integral) else limit * number
            for limit in (self.min_df, self.max_df)
        )
        if number == 0:
            raise ValueError("there are no documents to learn a vocabulary from.")
        if high < low:
            raise ValueError(f"max_df={self.max_df!r} is fewer documents than min_df={self.min_df!r}.")
        keep = (n_documents >= max(low, 1)) & (n_documents <= high) & (n_times >= self.min_count)
        if not keep.any():
            raise ValueError(
                f"no terms are left of {int((n_documents > 0).sum())} in {number} documents: "
                "relax min_count, min_df, max_df, stop_words or token_pattern."
            )
        if self.max_features is None or keep.sum() <= self.max_features:
            return keep
        candidates = np.flatnonzero(keep)
        most = candidates[np.argsort(-n_times[candidates], kind="stable")[: self.max_features]]
        return np.sort(most)

    def _settle(self, terms: list[str]) -> None:
        self.terms_ = np.array(terms, dtype=object)

    def _forget(self, *names: str) -> None:
        for name in names:
            self.__dict__.pop(name, None)

    @property
    def terms_(self) -> npt.NDArray[np.object_]:
        """The terms, by column."""
        # Looked at in this order, as another thread may do the same: what is found is forgotten last.
        found = self.__dict__.get("_found")
        if "_terms" not in self.__dict__:
            if found is None:
                raise AttributeError("terms_: the vectorizer is not fitted yet; call fit first.")
            # Only now: a model needs no words, and to spell them all takes a tenth of the time to count them.
            terms, order = found
            self._settle(terms.strings(order))
        return self._terms

    @terms_.setter
    def terms_(self, terms: npt.NDArray[np.object_]) -> None:
        self._terms = terms
        self._forget("_found", "_vocabulary", "_places")

    def joined(self, others: TermFrequencyVectorizer) -> TermFrequencyVectorizer:
        """Return a fitted vectorizer of the terms of both, these first; others have more words."""
        both = TermFrequencyVectorizer(**self.get_params(deep=False))
        both.set_params(ngram_range=(self.ngram_range[0], others.ngram_range[1]))
        both.terms_ = np.concatenate([self.terms_, others.terms_])
        both.mean_length_ = self.mean_length_ + others.mean_length_
        return both

    def _place_terms(self, columns: Integers, n_columns: int) -> None:
        """Set the columns of the terms, of a model file that holds only those of selected features."""
        self._places = columns, n_columns
        self._forget("_vocabulary")

    @property
    def _term_columns(self) -> Integers:
        """The columns of the terms, rising."""
        return self._places[0] if "_places" in self.__dict__ else np.arange(len(self.terms_))

    @property
    def _n_terms(self) -> int:
        """D, the number of columns."""
        if "_places" in self.__dict__:
            return self._places[1]
        found = self.__dict__.get("_found")
        return len(self._terms) if found is None else len(found[1])

    def __getstate__(self) -> dict[str, Any]:
        if "_found" in self.__dict__:
            _ = self.terms_
        return dict(super().__getstate__())

    # ------------------------------------------------------------------ parameters

    def _checked_rule(self) -> WordRule:
        require_one_of("scale", self.scale, SCALES)
        try:
            low, high = (operator.index(n) for n in self.ngram_range)
        except (TypeError, ValueError):
            low, high = 0, 0
        if not 1 <= low <= high:
            raise ValueError(f"ngram_range={self.ngram_range!r}: give two numbers, 1 <= fewest <= most.")
        _require_integer("min_count", self.min_count, 0)
        if self.max_features is not None:
            _require_integer("max_features", self.max_features, 1)
        for name, value in (("min_df", self.min_df), ("max_df", self.max_df)):
            share = isinstance(value, numbers.Real) and 0 <= value <= 1
            if not share and not (isinstance(value, numbers.Integral) and value >= 0):
                raise ValueError(
                    f"{name} must be an int (documents) or a float from 0.0 to 1.0 (share), got {value!r}."
                )
        try:
            groups = re.compile(self.token_pattern).groups
        except (re.error, TypeError) as error:
            raise ValueError(
                f"token_pattern={self.token_pattern!r} is no regular expression: {error}."
            ) from None
        if groups > 1:
            raise ValueError(
                f"token_pattern={self.token_pattern!r} has {groups} groups: at most one is allowed."
            )
        return WordRule(self.token_pattern, bool(self.lowercase), self._stop_words(), (int(low), int(high)))

    def _stop_words(self) -> frozenset[str]:
        if self.stop_words is None:
            return frozenset()
        if isinstance(self.stop_words, str):
            if self.stop_words == "english":
                return ENGLISH_STOP_WORDS
            raise ValueError(
                f"stop_words must be 'english', a list of words or None, got {self.stop_words!r}."
            )
        words = frozenset(_require_reusable("stop_words", self.stop_words))
        if other := [word for word in words if not isinstance(word, str)]:
            raise ValueError(f"stop_words must be words, got {other[0]!r} among them.")
        return words

    def _given_vocabulary(self) -> list[str] | None:
        """Return the terms given, by column."""
        given = self.vocabulary
        if given is None:
            return None
        _require_reusable("vocabulary", given)
        if isinstance(given, Mapping):
            terms = sorted(given, key=lambda term: given[term])
            if [given[term] for term in terms] != list(range(len(terms))):
                raise ValueError("a vocabulary must map its terms to the columns 0, 1, 2, ..., each once.")
        else:
            terms = sorted(given) if isinstance(given, set | frozenset) else list(given)
            if len(set(terms)) < len(terms):
                twice = next(term for i, term in enumerate(terms) if term in terms[:i])
                raise ValueError(f"the vocabulary has the term {twice!r} twice.")
        if not terms:
            raise ValueError("the vocabulary is empty.")
        if self.lowercase and (upper := next((t for t in terms if any(map(str.isupper, t))), None)):
            warnings.warn(
                f"{upper!r} in the vocabulary has upper case letters: with lowercase=True it is never found.",
                stacklevel=4,
            )
        return terms

    # ------------------------------------------------------------------ counting

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Columns by term."""
        check_is_fitted(self, "terms_")
        if "_vocabulary" not in self.__dict__:
            self._vocabulary = dict(zip(self.terms_.tolist(), self._term_columns.tolist(), strict=True))
        return self._vocabulary

    def transform(self, raw_documents: Iterable[str]) -> Matrix:
        """Count the known terms of documents, and scale.

        Parameters
        ----------
        raw_documents : iterable of str
            Documents.

        Returns
        -------
        csr_array of shape (N, D)
            Scaled counts; terms that are not in the vocabulary are ignored.
        """
        check_is_fitted(self, "terms_")
        terms, counts = count_words(_Documents(raw_documents), self._checked_rule())
        return self._scaled(counts, self._columns(terms))

    def spans(self, document: str) -> list[tuple[str, int, int]]:
        """Return the positions of all terms in a document, whether in the vocabulary or not.

        Parameters
        ----------
        document : str
            One document.

        Returns
        -------
        list of (str, int, int)
            Each term, the character it begins at, and the one after its end.

        Examples
        --------
        >>> from maxdisc import TermFrequencyVectorizer
        >>> TermFrequencyVectorizer().spans("To be, or")
        [('to', 0, 2), ('be', 3, 5), ('or', 7, 9)]
        """
        return self._checked_rule().spans(document)

    def _columns(self, terms: Terms) -> Integers:
        """Return the column of each term, or -1."""
        vocabulary = self.vocabulary_
        return np.array([vocabulary.get(term, -1) for term in terms.strings()], dtype=np.intp)

    def _scaled(self, counts: list[Counts], columns: Integers) -> Matrix:
        dtype = np.int64 if self.scale is None else np.float64
        X = stacked(counts, columns, self._n_terms, dtype)
        if self.scale is None:
            return X
        return scaled_counts(X, self.scale, self.mean_length_)

    # ------------------------------------------------------------------ names

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the terms, by column.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        ndarray of shape (D,)
            Terms; ``x`` and the column number for terms left out of a model file.
        """
        check_is_fitted(self, "terms_")
        if "_places" not in self.__dict__:
            return self.terms_
        names = np.array([f"x{column}" for column in range(self._n_terms)], dtype=object)
        names[self._term_columns] = self.terms_
        return names

    def inverse_transform(self, X: Matrix) -> list[npt.NDArray[np.object_]]:
        """Return the terms of each row, in the order of their columns.

        Parameters
        ----------
        X : matrix of shape (N, D)
            Counts, scaled or not.

        Returns
        -------
        list of ndarray
            For each row, the terms whose count is not zero.
        """
        check_is_fitted(self, "terms_")
        require_indices(X)
        X = sp.csr_array(X)
        names = self.get_feature_names_out()
        if X.shape[1] != len(names):
            raise ValueError(f"X has {X.shape[1]} columns, but the vocabulary has {len(names)} terms.")
        X = X.copy()
        X.eliminate_zeros()
        X.sort_indices()
        return [names[X.indices[a:b]] for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _require_reusable(name: str, given: Iterable[Any]) -> Iterable[Any]:
    """Raise ``ValueError`` for an iterator, because parameters are read repeatedly."""
    if isinstance(given, Iterator) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a list, got {type(given).__name__}.")
    return given


def _require_integer(name: str, value: Any, least: int) -> None:
    if not isinstance(value, numbers.Integral) or int(value) < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")


class _Documents:
    """Iterator over documents that validates and counts them."""

    def __init__(self, documents: Iterable[str]) -> None:
        if isinstance(documents, str | bytes):
            raise ValueError("X is a single document, not a list of documents: pass a list, such as [text].")
        self._documents = documents
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for document in self._documents:
            if type(document) is not str:
                document = self._decoded(document)
            self.number += 1
            yield document

    def _decoded(self, document: Any) -> str:
        if isinstance(document, str):
            return str(document)
        if isinstance(document, bytes):
            try:
                return document.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"document {self.number} is not UTF-8: {error.reason} at byte {error.start}."
                ) from None
        raise ValueError(f"document {self.number} is {document!r:.60}, not text: replace or drop it.")
