"""Documents as X: the counts of their words are the rows of a classifier."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_feature_names_in

from maxdisc.calibration.by_length import to_unit, uniform_seeds
from maxdisc.numerics.matrices import Floats, Integers, Matrix, canonical
from maxdisc.numerics.phases import begin_phase
from maxdisc.rows.row_sources import scrambled
from maxdisc.words.scaling import scaled_counts
from maxdisc.words.scripts import CHARACTERS, is_unspaced
from maxdisc.words.vectorizer import TermFrequencyVectorizer


def default_vectorizer(documents: Sequence[Any] = ()) -> TermFrequencyVectorizer:
    """Return the vectorizer of a classifier that was given none: of characters where words have no spaces."""
    vectorizer = TermFrequencyVectorizer(scale="log", min_df=1)
    return vectorizer.set_params(token_pattern=CHARACTERS) if is_unspaced(documents) else vectorizer


def vectorize(estimator: Any, X: Any, y: Any = None, *, reset: bool = False) -> Any:
    """Return the rows of X: counts of words if it holds documents, else X itself.

    If ``reset``, the estimator gets a new ``vectorizer_``, or loses it if X holds rows.
    """
    if reset:
        estimator.__dict__.pop("vectorizer_", None)
    vectorizer = getattr(estimator, "vectorizer_", None)
    documents = find_documents(X, expected=vectorizer is not None)
    if documents is None and vectorizer is not None:
        raise ValueError(
            "X holds rows, but this model was fitted on documents: give a list, an array or a column of str."
        )
    if documents is None:
        return X
    if vectorizer is not None:
        return vectorizer.transform(documents)
    if not reset:
        raise ValueError("X holds documents, but this model was fitted on rows: fit it on documents.")
    estimator.vectorizer_ = _unfitted(estimator.vectorizer, documents)
    return estimator.vectorizer_.fit_transform(documents, y)


@dataclass(frozen=True, eq=False)
class TrainingDocuments:
    """Documents whose words are the features of training rows, and further features that rows may have."""

    documents: Sequence[Any]
    vectorizer: Any
    #: Scaled counts of words and pairs of words, and the vectorizer that counts them.
    wide: Matrix | None = None
    wide_vectorizer: TermFrequencyVectorizer | None = None

    def __getitem__(self, rows: Integers) -> TrainingDocuments:
        some = [self.documents[row] for row in rows]
        return replace(self, documents=some, wide=None if self.wide is None else self.wide[rows])

    @property
    def shorten(self) -> Pieces:
        """Pieces of the documents, in words."""
        return Pieces(self.documents, self.vectorizer)

    @property
    def shorten_wide(self) -> Pieces:
        """Pieces of the documents, in words and pairs."""
        return Pieces(self.documents, self.wide_vectorizer)

    @property
    def least_rows(self) -> Integers:
        """In how many training rows each word or pair must be: a pair in two, a word in one."""
        assert self.wide_vectorizer is not None  # of which the features are
        n_words = len(self.vectorizer.terms_)
        return np.where(np.arange(len(self.wide_vectorizer.terms_)) < n_words, 1, 2)


def count_training(
    estimator: Any, documents: Sequence[Any], y: Any, with_pairs: bool
) -> tuple[Matrix, TrainingDocuments]:
    """Fit the estimator's vectorizer; return the rows, and the documents ``with_pairs`` of words, if open."""
    begin_phase("counting words")
    if estimator.vectorizer is not None:
        estimator.vectorizer_ = _unfitted(estimator.vectorizer, documents)
        X = estimator.vectorizer_.fit_transform(documents, y)
        return X, TrainingDocuments(documents, estimator.vectorizer_)
    words = default_vectorizer(documents).set_params(scale=None)
    counts = words.fit_transform(documents)
    estimator.vectorizer_ = words.set_params(scale="log")
    X = scaled_counts(counts.astype(np.float64), "log", words.mean_length_)
    if not with_pairs:
        return X, TrainingDocuments(documents, words)
    pairs = clone(words).set_params(ngram_range=(2, 2), min_df=2, scale=None)
    try:
        of_pairs = pairs.fit_transform(documents)
    except ValueError:
        return X, TrainingDocuments(documents, words)  # no pair is in two documents
    both, wide = sp.hstack([counts, of_pairs], format="csr"), words.joined(pairs)
    rows = scaled_counts(sp.csr_array(both).astype(np.float64), "log", wide.mean_length_)
    return X, TrainingDocuments(documents, words, rows, wide)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Shorter copies of documents: pieces from a place that a hash of the text and the copy chooses."""

    documents: Sequence[Any]
    vectorizer: Any

    def __call__(self, rows: Integers, share: Floats, copy: Integers) -> Matrix:
        """Return the counts of pieces with about this share of each document."""
        texts = [_as_text(self.documents[row]) for row in rows]
        sums = [zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in texts]
        places = to_unit(scrambled(np.array(sums, dtype=np.uint64) + uniform_seeds(copy)))
        pieces = [_piece(*each) for each in zip(texts, share.tolist(), places.tolist(), strict=True)]
        return canonical(self.vectorizer.transform(pieces))


def _as_text(document: str | bytes) -> str:
    return document if isinstance(document, str) else document.decode("utf-8")


def _piece(text: str, share: float, place: float) -> str:
    """Return consecutive words of a text; of a text without spaces, consecutive characters."""
    size = max(round(share * len(text)), 1)
    start = int(place * (len(text) - size + 1))
    piece = text[start : start + size]
    words = piece.split()
    # Cut words at both ends are other words, or none.
    begin = int(start > 0 and not text[start - 1].isspace() and not piece[0].isspace())
    end = len(words) - int(start + size < len(text) and not text[start + size].isspace())
    return " ".join(words[begin:end]) if end > begin else piece


def find_documents(X: Any, expected: bool = False) -> list[Any] | None:
    """Return X as a list if it is one-dimensional and holds text, or text is ``expected``; else None."""
    if isinstance(X, str | bytes):
        raise ValueError("X is a single string: give a list of documents, such as [text].")
    values = _one_dimensional(X)
    if values is None:
        return None
    are_text = [isinstance(value, str | bytes) for value in values]
    if all(are_text):
        return values if values or expected else None
    if not any(are_text) and (not expected or any(hasattr(value, "__len__") for value in values)):
        return None
    row = are_text.index(False)
    raise ValueError(f"row {row} of X is {values[row]!r:.60}, not text: replace it by '', or drop the row.")


def texts(X: Any) -> list[str] | None:
    """Return documents as text; None where X holds rows."""
    documents = find_documents(X)
    return None if documents is None else [_as_text(document) for document in documents]


def _one_dimensional(X: Any) -> list[Any] | None:
    """Return the values of a list, a one-dimensional array or a column of a frame; else None."""
    if isinstance(X, list | tuple):
        return list(X)
    # A column of Arrow has no shape, a table of Arrow has one.
    if len(getattr(X, "shape", (0,))) != 1:
        return None
    methods = (getattr(X, name, None) for name in ("to_pylist", "to_list", "tolist"))
    method = next((found for found in methods if found is not None), None)
    return None if method is None else method()


def _unfitted(vectorizer: Any, documents: Sequence[Any]) -> Any:
    """Return a copy of the parameter ``vectorizer``, or the default; raise ``ValueError`` if invalid."""
    if vectorizer is None:
        return default_vectorizer(documents)
    has_methods = hasattr(vectorizer, "fit_transform") and hasattr(vectorizer, "transform")
    if isinstance(vectorizer, type) or not has_methods:
        raise ValueError(
            "vectorizer must be None or have fit_transform and transform, such as "
            f"TermFrequencyVectorizer(), got {vectorizer!r:.60}."
        )
    return clone(vectorizer)


def feature_names(estimator: Any) -> npt.NDArray[Any]:
    """Return the names of all features of a fitted classifier: terms, names of columns, or x0, x1, ..."""
    if hasattr(estimator, "vectorizer_"):
        try:
            return np.asarray(estimator.vectorizer_.get_feature_names_out(), dtype=object)
        except (AttributeError, ValueError):
            pass  # a vectorizer that hashes words does not know them
    return np.asarray(_check_feature_names_in(estimator))


def as_pipeline(model: Any) -> Any:
    """Return a classifier of documents as a pipeline of its vectorizer and a classifier of counts.

    A pipeline that ends in one becomes a longer pipeline; any other model is returned as it is.
    """
    if isinstance(model, Pipeline) and len(model):
        last = as_pipeline(model.steps[-1][1])
        return (
            model
            if last is model.steps[-1][1]
            else Pipeline([*model.steps[:-1], *last.steps], verbose=model.verbose)
        )
    if not (hasattr(model, "vectorizer_") and hasattr(model, "_learnt")):
        return model
    classifier = copy.copy(model).set_params(vectorizer=None)
    del classifier.vectorizer_
    return Pipeline([("vectorizer", model.vectorizer_), ("classifier", classifier)])
