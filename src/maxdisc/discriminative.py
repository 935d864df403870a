"""``DiscriminativeMaxEnt``, the conditional estimator."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from maxdisc.conditional.coordinate_ascent import (
    MANY_PRODUCTS,
    RIDGE_RANGE,
    RidgeFit,
    fit_ridges,
    relative_ridge,
)
from maxdisc.conditional.model import SOLVERS, Examples, Fit, Prior, SharedFeatures, fit, log_posterior
from maxdisc.fitting.invariances import with_exceptions
from maxdisc.inspection.explanation import Explanation
from maxdisc.numerics.matrices import (
    Booleans,
    Floats,
    Integers,
    Matrix,
    canonical,
    is_sparse,
    require_indices,
)
from maxdisc.numerics.switches import is_compiled, works
from maxdisc.rows.frames import require_distinct_names
from maxdisc.rows.validation import require_labels, require_numbers, require_one_of

#: By default the dual stops at this share of its objective, the others at this gradient.
_GAP, _STEEPNESS = 1e-4, 1e-6
#: The dual takes many sweeps for relative ridges below this, and for rows with a larger share of cells.
LEAST_RIDGE, MOST_DENSE = 1e-5, 0.2
#: After this many sweeps of the dual, L-BFGS continues from its solution.
AUTO_SWEEPS = 100
_NUMBERS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64}


class DiscriminativeMaxEnt(ClassifierMixin, BaseEstimator):
    """Conditional maximum-entropy classifier (DME): the paper's discriminative competitor.

    Of all conditional distributions whose expected features are those of the training rows it is the one with
    the largest entropy, that is, multinomial logistic regression (Berger et al. 1996, Nigam et al. 1999). It
    fits the weights of all features together and selects none; :class:`maxdisc.MaxDiscClassifier` estimates a
    density per feature and ranks features.

    Parameters
    ----------
    solver : {"auto", "dual", "lbfgs", "gis", "iis"}, default="auto"
        Compiled dual coordinate ascent over rows, L-BFGS, generalised iterative scaling or improved iterative
        scaling. All have the same optimum; the scalings need many more steps. "auto" uses the dual for large
        sparse X, and L-BFGS for everything else and if the dual does not converge in 100 sweeps. The dual
        needs a positive penalty and intercepts, and does not support early stopping.
    penalty : float, default=1.0
        Precision of a Gaussian prior on the weights: ``penalty / 2`` times the sum of squares of ``coef_`` is
        subtracted from the log-likelihood, as ``LogisticRegression(C=1 / penalty)`` does. Intercepts are
        free.
    fit_intercept : bool, default=True
        Whether classes have a bias.
    max_iter : int, default=1000
        Maximum number of steps; a step of the dual is a sweep over all rows.
    tol : float or None, default=None
        Tolerance for stopping. For the dual, the largest duality gap as a share of the objective; None is
        1e-4. For the others, the largest entry of the gradient, per unit of sample weight, for standardised
        features; None is 1e-6.
    early_stopping : bool, default=False
        Hold out a share of each class, stop when its likelihood no longer increases, and use the parameters
        that were best on it.
    validation_fraction : float, default=0.1
        The share to hold out.
    n_iter_no_change : int, default=5
        Number of steps without an increase of the held-out likelihood before stopping.
    warm_start : bool, default=False
        Start from the parameters of the last fit, if classes and features are the same.
    random_state : int, RandomState or None, default=None
        Seed for the rows that are held out; nothing else is random.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels.
    coef_ : ndarray of shape (C, D), or (1, D) for two classes
        Weights of the features; for two classes those of the second against the first.
    intercept_ : ndarray of shape (C,), or (1,) for two classes
        Biases.
    solver_ : str
        The solver that was used.
    n_iter_ : int
        Steps taken.
    converged_ : bool
        Whether the optimum was reached, or early stopping applied.
    gap_ : float
        The duality gap as a share of the objective: the objective is no further than this from its optimum.
        NaN for solvers other than the dual.
    objective_path_ : ndarray of shape (I + 1,), or (1,) for the dual
        Log-likelihood minus the penalty, at the start and after each of the I steps; for the dual, at the
        end.
    n_features_in_ : int
        D, the number of features seen.
    feature_names_in_ : ndarray of shape (D,)
        Their names, if X had string column names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import DiscriminativeMaxEnt
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DiscriminativeMaxEnt().fit(X, y)
    >>> model.coef_.shape, model.converged_
    ((3, 4), True)
    >>> round(model.score(X, y), 2)
    0.97

    For sparse rows with many columns the dual is used, which bounds the distance from the optimum.

    >>> from scipy.sparse import random_array
    >>> X = random_array((1000, 5000), density=0.01, format="csr", rng=0)
    >>> model = DiscriminativeMaxEnt().fit(X, X[:, :50].sum(axis=1) > 0.2)
    >>> model.solver_, model.gap_ <= 1e-4
    ('dual', True)
    """

    classes_: npt.NDArray[np.generic]
    coef_: Floats
    intercept_: Floats
    solver_: str
    n_iter_: int
    converged_: bool
    gap_: float
    objective_path_: Floats
    n_features_in_: int

    def __init__(
        self,
        solver: str = "auto",
        penalty: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.solver = solver
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D)
            Rows; every solver supports negative values.
        y : array-like of shape (N,)
            Their labels.
        sample_weight : array-like of shape (N,), optional
            Row weights.

        Returns
        -------
        DiscriminativeMaxEnt
            Itself.
        """
        self._check_parameters()
        X, labels, weight = self._validated(X, y, sample_weight)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has one class only, {classes.tolist()[0]!r}: rows of at least two classes are needed."
            )
        start = self._last_parameters(classes, X.shape[1]) if self.warm_start else None
        # Two classes have opposite weights, w / 2 and -w / 2: a precision of 2 on each is one of 1 on w.
        penalty = self.penalty * (2.0 if len(classes) == 2 else 1.0)
        solver, problem = "dual", (X, codes, weight, penalty, len(classes))
        takes_dual = self._takes_dual(X, weight, penalty, len(classes))
        found = self._fit_dual(*problem, start) if takes_dual else None
        if found is None or (self.solver == "auto" and not found.converged):
            solver = self.solver if self.solver in SOLVERS else "lbfgs"
            found = self._fit_primal(
                *problem, start if found is None else (found.weights, found.bias), solver
            )
        if not found.converged:
            warnings.warn(
                f"{solver} stopped after {found.n_iter} steps (max_iter={self.max_iter}), not at the "
                f"optimum to tol={self._tolerance(solver)}: raise max_iter, scale the features, "
                + ("or raise the penalty." if solver == "lbfgs" else "or use solver='lbfgs'."),
                ConvergenceWarning,
                stacklevel=2,
            )
        return self._set(classes, found, solver)

    def _takes_dual(self, X: Matrix, weight: Floats, penalty: float, n_classes: int) -> bool:
        """Return whether to use the dual: it is requested, or applicable and fast."""
        if self.solver == "dual":
            if not RIDGE_RANGE[0] <= relative_ridge(X, weight, penalty) <= RIDGE_RANGE[1]:
                raise ValueError(
                    f"solver='dual' cannot solve penalty={self.penalty} for X and sample weights of this "
                    "scale: rescale X, or use solver='lbfgs'."
                )
            return True
        return (
            self.solver == "auto"
            and self._dual_obstacle() is None
            and is_sparse(X)
            and X.nnz <= MOST_DENSE * X.shape[0] * X.shape[1]
            and is_compiled(X.nnz * n_classes, MANY_PRODUCTS)
            and LEAST_RIDGE <= relative_ridge(X, weight, penalty) <= RIDGE_RANGE[1]
        )

    def _tolerance(self, solver: str) -> float:
        if self.tol is not None:
            return float(self.tol)
        return _GAP if solver == "dual" else _STEEPNESS

    def _dual_obstacle(self) -> str | None:
        """Return the parameter that the dual does not support, if any."""
        if self.penalty == 0:
            return "penalty=0"
        if not self.fit_intercept:
            return "fit_intercept=False"
        return "early_stopping=True" if self.early_stopping else None

    def _fit_dual(
        self,
        X: Matrix,
        codes: Integers,
        weight: Floats,
        penalty: float,
        n_classes: int,
        start: tuple[Floats, Floats] | None,
    ) -> Fit:
        first = None if start is None else RidgeFit(start[0].T, start[1], penalty)
        (found,) = fit_ridges(
            X,
            codes,
            weight,
            (penalty,),
            n_classes,
            tol=self._tolerance("dual"),
            start=first,
            max_sweeps=min(int(self.max_iter), AUTO_SWEEPS) if self.solver == "auto" else int(self.max_iter),
            by_size=False,
        )
        return Fit(
            found.weights.T,
            found.bias - found.bias.mean(),
            found.n_sweeps,
            found.converged,
            -np.array([found.objective]),
            gap=found.gap / found.objective,
        )

    def _fit_primal(
        self,
        X: Matrix,
        codes: Integers,
        weight: Floats,
        penalty: float,
        n_classes: int,
        start: tuple[Floats, Floats] | None,
        solver: str,
    ) -> Fit:
        features = SharedFeatures(canonical(X), n_classes)
        examples, held_out = Examples(features, codes, weight), None
        if self.early_stopping:
            held = self._held_out(codes)
            held_out = Examples(features.rows(held), codes[held], weight[held])
            examples = Examples(features.rows(~held), codes[~held], weight[~held])
        return fit(
            examples,
            Prior(penalty),
            solver=solver,
            fit_bias=bool(self.fit_intercept),
            start=start,
            max_iter=int(self.max_iter),
            tol=self._tolerance(solver),
            held_out=held_out,
            patience=int(self.n_iter_no_change),
        )

    def _set(self, classes: npt.NDArray[np.generic], found: Fit, solver: str) -> Self:
        weights, bias = found.weights, found.bias
        if len(classes) == 2:
            weights, bias = weights[1:] - weights[:1], bias[1:] - bias[:1]
        self.classes_, self.coef_, self.intercept_ = classes, weights, bias
        self.solver_, self.n_iter_ = solver, found.n_iter
        self.converged_, self.gap_ = bool(found.converged), float(found.gap)
        self.objective_path_ = found.objective_path
        return self

    def _by_class(self) -> tuple[Floats, Floats]:
        """Return weights (C, D) and biases (C,); opposite ones for two classes."""
        if len(self.classes_) > 2:
            return self.coef_, self.intercept_
        signs = np.array([-0.5, 0.5])
        return signs[:, None] * self.coef_, signs * self.intercept_

    def _last_parameters(
        self, classes: npt.NDArray[np.generic], n_features: int
    ) -> tuple[Floats, Floats] | None:
        if not hasattr(self, "coef_") or not np.array_equal(self.classes_, classes):
            return None
        return self._by_class() if self.coef_.shape[1] == n_features else None

    def _held_out(self, codes: Integers) -> Booleans:
        """Draw a random share of the rows of each class, rounded down."""
        shuffled = check_random_state(self.random_state).permutation(len(codes))
        by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
        sizes = np.bincount(codes)
        place = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        held = np.zeros(len(codes), dtype=np.bool_)
        held[by_class] = place < np.repeat(np.floor(self.validation_fraction * sizes), sizes)
        if not held.any():
            raise ValueError(
                f"validation_fraction={self.validation_fraction} holds out no row of any class, the largest "
                f"of which has {sizes.max()}: raise it, or switch early_stopping off."
            )
        return held

    # ------------------------------------------------------------------ parameters and data

    def _check_parameters(self) -> None:
        require_one_of("solver", self.solver, ("auto", "dual", *SOLVERS))
        for name, least in (("penalty", 0.0), ("tol", 0.0), ("max_iter", 1), ("n_iter_no_change", 1)):
            value, kind = getattr(self, name), numbers.Integral if isinstance(least, int) else numbers.Real
            if name == "tol" and value is None:
                continue
            if not isinstance(value, kind) or isinstance(value, bool) or not least <= float(value) < np.inf:
                what = "an integer" if isinstance(least, int) else "a finite number"
                raise ValueError(f"{name} must be {what} of at least {least}, got {value!r}.")
        share = self.validation_fraction
        if not isinstance(share, numbers.Real) or not 0 < float(share) < 1:
            raise ValueError(f"validation_fraction must be a share between 0 and 1, got {share!r}.")
        if self.solver == "dual":
            if (obstacle := self._dual_obstacle()) is not None:
                raise ValueError(f"solver='dual' cannot be used with {obstacle}: use solver='lbfgs'.")
            if not works():
                raise ValueError("solver='dual' needs numba, which cannot be used: use solver='lbfgs'.")

    def _validated(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Matrix, npt.NDArray[np.generic], Floats]:
        """Return the rows with positive weight, their labels and weights."""
        require_labels(y)
        require_indices(X)
        require_distinct_names(X)
        try:
            X, y = validate_data(self, X, y, multi_output=True, **_NUMBERS)
        except ValueError as error:
            if "could not convert string to float" in str(error):
                require_numbers(X)
            raise
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample weights must contain at least one non-zero number: all are zero.")
        if weight.all():
            return X, labels, weight
        kept = np.flatnonzero(weight)
        return X[kept], labels[kept], weight[kept]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return with_exceptions(tags, "solver", "penalty")

    # ------------------------------------------------------------------ prediction

    def _rows(self, X: Any) -> Matrix:
        check_is_fitted(self)
        require_indices(X)
        require_distinct_names(X)
        return canonical(validate_data(self, X, reset=False, **_NUMBERS))

    def decision_function(self, X: Any) -> Floats:
        """Return scores of the classes, or for two classes the log-odds of the second.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D)
            Rows.

        Returns
        -------
        ndarray of shape (N, C), or (N,) for two classes
            Linear in X; the softmax of the scores, or the logistic of the log-odds, is ``predict_proba``.
        """
        X = self._rows(X)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(X @ self.coef_.T) + self.intercept_
        lost = ~np.isfinite(scores).all(axis=1)
        if lost.any():
            raise ValueError(f"row {np.argmax(lost)} has values that are too large to be scored.")
        return scores if len(self.classes_) > 2 else scores[:, 0]

    def _scores(self, X: Any) -> Floats:
        """Return the scores for each class, shape (N, C)."""
        scores = self.decision_function(X)
        return scores if scores.ndim == 2 else scores[:, None] * np.array([-0.5, 0.5])

    def predict(self, X: Any) -> npt.NDArray[np.generic]:
        """Return the most probable label of each row, shape (N,); ties go to the first in ``classes_``."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the log of the class probabilities, shape (N, C)."""
        return log_posterior(self._scores(X))

    def predict_proba(self, X: Any) -> Floats:
        """Return class probabilities, shape (N, C)."""
        return np.exp(self.predict_log_proba(X))

    def explain(self, X: Any) -> Explanation:
        """Decompose the scores of some rows by feature.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D)
            Rows.

        Returns
        -------
        Explanation
            As :meth:`maxdisc.MaxDiscClassifier.explain` returns it. Exact: ``prior``, here the bias, and
            ``contributions`` sum to scores whose softmax is ``predict_proba``. Features that are 0 in all of
            these rows contribute nothing and are left out.
        """
        X = self._rows(X)
        present = np.flatnonzero(abs(X).max(axis=0).toarray().ravel() if is_sparse(X) else X.any(axis=0))
        cells = X[:, present].toarray() if is_sparse(X) else X[:, present]
        weights, bias = self._by_class()
        contributions = cells[:, None, :] * weights[:, present]
        names = _check_feature_names_in(self)[present]
        return Explanation(contributions.sum(axis=2) + bias, bias, contributions, names, self.classes_)
