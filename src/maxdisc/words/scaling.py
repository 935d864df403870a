"""Scaling of counts to remove the effect of row length."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from maxdisc.numerics.matrices import Matrix, blocks, is_sparse, require_indices, row_totals, with_data
from maxdisc.rows.validation import require_one_of

SCALES = ("length", "log", "frequency", None)


def scaled_counts(X: Matrix, scale: str, mean_length: float) -> Matrix:
    """Scale counts of shape (N, D), CSR and float; ``"length"`` scales in place."""
    if scale == "log":
        X = with_data(X, np.log1p(X.data))
        length = np.sqrt(row_totals(X, X.data**2))
    else:
        length = row_totals(X, X.data)
    target = 1.0 if scale == "frequency" else mean_length
    factor, stored = target / np.where(length > 0, length, 1.0), np.diff(X.indptr)
    for rows in blocks(X.shape[0], 1 + X.nnz // max(X.shape[0], 1)):
        X.data[X.indptr[rows.start] : X.indptr[rows.stop]] *= np.repeat(factor[rows], stored[rows])
    return X


class CountScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Transformer that scales counts like :class:`maxdisc.TermFrequencyVectorizer`.

    Parameters
    ----------
    scale : {"log", "length", "frequency", None}, default="log"
        ``"log"``: logs of one plus the counts, each row a vector whose Euclidean length is the mean sum of
        the training rows. ``"length"``: each row is scaled to that mean. ``"frequency"``: shares of a row's
        sum. ``None``: the counts.

    Attributes
    ----------
    mean_length_ : float
        Mean sum of the training rows.
    n_features_in_ : int
        D, the number of features seen.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.words import CountScaler
    >>> CountScaler("length").fit_transform(np.array([[3, 1], [0, 2]])).toarray()
    array([[2.25, 0.75],
           [0.  , 3.  ]])
    """

    mean_length_: float

    def __init__(self, scale: str | None = "log") -> None:
        self.scale = scale

    def fit(
        self,
        X: Any,
        y: Any = None,  # noqa: ARG002  # for scikit-learn's pipelines
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn the mean sum of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (N, D)
            Non-negative counts.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array-like of shape (N,), optional
            Row weights.

        Returns
        -------
        CountScaler
            This scaler, fitted.
        """
        require_one_of("scale", self.scale, SCALES)
        counts = self._counts(X, reset=True)
        if sample_weight is None:
            self.mean_length_ = float(counts.sum()) / counts.shape[0]
            return self
        weights = _check_sample_weight(sample_weight, counts, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample weights must contain at least one non-zero number: all are zero.")
        self.mean_length_ = float(np.average(row_totals(counts, counts.data), weights=weights))
        return self

    def transform(self, X: Any) -> Matrix:
        """Scale the rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (N, D)
            Non-negative counts.

        Returns
        -------
        csr_array of shape (N, D)
            Scaled.
        """
        check_is_fitted(self)
        counts = self._counts(X, reset=False)
        return counts if self.scale is None else scaled_counts(counts, self.scale, self.mean_length_)

    def _counts(self, X: Any, reset: bool) -> Matrix:
        """Return a copy of the counts, sparse."""
        require_indices(X)
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        counts = sp.csr_array(X, copy=True) if is_sparse(X) else sp.csr_array(np.asarray(X))
        counts.sum_duplicates()
        if counts.nnz and counts.data.min() < 0:
            first = int(np.argmax(counts.data < 0))
            row = int(np.searchsorted(counts.indptr, first, side="right")) - 1
            raise ValueError(
                f"counts must not be negative: row {row}, column {counts.indices[first]} has "
                f"{counts.data[first]:g}. (Negative values in data passed to CountScaler.)"
            )
        return counts

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags
