"""The estimator: the only mutable object, and the only place where scikit-learn's contract is met."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from maxdisc.averaged_folds import AveragedModels, averaged_sizes
from maxdisc.averaging import AveragedDecision, AveragedEvidence
from maxdisc.column_families import require_families, settled_schema, takes_columns
from maxdisc.columns import AnyFamily, AnyMoments, Columns, MixedMoments
from maxdisc.decision import LinearDecision, Reorder
from maxdisc.densities import class_prior, density_blocks
from maxdisc.divergences import Divergence, FeatureRanking, find_divergence, js_gm
from maxdisc.evidence import Evidence, calibrate, refine
from maxdisc.explain import Explanation
from maxdisc.families import FAMILIES, Family, find_family
from maxdisc.folds import fold_plans, plans_beside
from maxdisc.frames import Cells, cells_of
from maxdisc.held_out import band_edges, enough_rows
from maxdisc.joint import POOLED, Joint, JointDecision
from maxdisc.joint_folds import JointChoice, JointModels
from maxdisc.matrices import Booleans, Floats, Integers, Matrix, canonical, column_name, is_sparse
from maxdisc.mixed import MixedDecision, ranked_model, unknown_model
from maxdisc.novelty import Novelty, familiarity
from maxdisc.parameters import (
    given_jobs,
    given_prior,
    given_redundancy,
    given_size,
    given_smoothing,
    given_structure,
    given_unlabelled,
    require_labels,
    require_numbers,
    require_one_of,
    require_representable,
    sorted_out,
    sorted_union,
)
from maxdisc.plain_frame import Frame
from maxdisc.redundancy import Overlap, Redundancy
from maxdisc.rows import ArrayRows, BatchRows, Folds, HashFolds, Rows
from maxdisc.schema import Schema, first_unobserved, plain_family
from maxdisc.selection import Choice, FoldModels, Rule, SelectionPath, choose, size_grid
from maxdisc.significance import (
    Significance,
    class_columns,
    debiased,
    lucky_rows,
    moment_p_values,
    ranking_frame,
    row_p_values,
)
from maxdisc.smoothing import Smoothing
from maxdisc.sparse_folds import SparseFoldModels, suits
from maxdisc.support import Support
from maxdisc.threads import limited_threads
from maxdisc.unlabelled import Held, PartlyLabelled, PartlyLabelledModels, UnlabelledRows

Decision: TypeAlias = LinearDecision | MixedDecision | JointDecision | AveragedDecision

# What scikit-learn's validation is to let through; ranges are checked, by column, by the family.
_NUMBERS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,
}


class MaxDiscClassifier(SelectorMixin, ClassifierMixin, BaseEstimator):
    """Generative maximum-entropy classifier that chooses its own features.

    For each class and feature it fits the maximum-entropy density under the class's moments, ranks features
    by how far the class densities diverge, keeps as many as cross-validation asks for, and classifies by
    Bayes' rule. One pass over the data gives the model; cross-validation adds one more.

    Parameters
    ----------
    family : str, Family or dict, default="auto"
        The family of every feature's densities: "exponential", "gaussian", "bernoulli", "geometric",
        "poisson", "gamma", "beta", "hurdle", "categorical", or a :class:`maxdisc.families.Family`. "auto"
        takes Poisson for sparse non-negative data and Gaussian for other arrays; columns of frames (pandas,
        polars, Arrow) each get a family of their own: truth values Bernoulli, text and categories
        categorical, and numbers the one of those their values allow that tells most about the classes of
        held-out rows. A dict has columns (names, numbers, lists of these, or a selector such as
        scikit-learn's ``make_column_selector``) and their families; columns it does not name are "auto".
    divergence : str or callable, default="js_gm"
        What features are ranked by: "js_gm" (the multi-class divergence of the paper), "jeffreys" or "kl"
        (one class against the rest), "jensen_shannon" (the mutual information of class and feature), "rao"
        (the score test: for counts, the statistic of chi-square), or a function from
        :class:`maxdisc.densities.ClassDensities` to scores of shape (D,).
    n_features : "auto", "all", int or float, default="auto"
        How many features to keep: chosen on folds, all, that many, or that share.
    structure : {"independent", "joint"} or Joint, default="independent"
        Features are independent within a class, or their means and covariances are constrained together (then
        the family is Gaussian): see :class:`maxdisc.joint.Joint`. What a joint density leaves open is chosen
        on the folds, with the number of features.
    evidence : {"calibrated", "refined", "raw"}, default="calibrated"
        How much the features' log densities count. "raw": as they are, as if features were independent.
        "calibrated": the ranking is cut into bands, and each band's evidence gets a weight, and each class a
        bias, learnt on held-out rows: probabilities can then be trusted. "refined": single features are
        corrected as well, by conditional maximum entropy around the calibrated model; this takes longer, and
        needs the rows in memory and three folds. See :mod:`maxdisc.evidence`. Of joint densities, "raw"
        picks one; "calibrated" averages over all transforms, shrinkages and sizes that are open, each with
        the trust that its held-out log-loss asks for; "refined" has conditional maximum-entropy models of the
        same features among them. See :meth:`maxdisc.averaged_folds.AveragedModels.average`.
    smoothing : "auto", float or Smoothing, default="auto"
        Pseudo-rows given to each class, in non-zero cells; see :class:`maxdisc.smoothing.Smoothing`. "auto"
        chooses on the folds among ``family.smoothings``.
    redundancy : float, default=0.0
        If positive, a feature counts for what it adds to those ranked before it: of its divergence, what they
        explain is taken out. 1.0 is a good value. See :class:`maxdisc.redundancy.Redundancy`; needs ``fit``
        or ``fit_rows``.
    cv : int, splitter, iterable of splits, "holdout" or "hash", default=5
        The folds on which the above is chosen. An int deals out the rows of each class in turn; "holdout"
        holds out a fifth once (the paper's protocol); "hash" deals by a hash of each row's content, so that
        the order of rows does not matter.
    rule : {"best", "one_se"}, default="best"
        Keep the smallest number of features at the highest accuracy (for weighed evidence: the least
        log-loss), or within one standard error of it. Of joint densities, where evidence is raw, the best are
        those with the highest accuracy minus half the log-loss, averaged with the neighbours in
        shrinkage and size: see :meth:`maxdisc.joint_folds.JointModels.choose`.
    unlabelled : str, number or None, default=None
        A label that means "no label", such as -1 or "unknown"; None, NaN and NA always do. Where such rows
        are given to ``fit``, their labels are shared out by expectation-maximisation, and each weighs as much
        as held-out labelled rows ask for; nothing, unless that is better by more than noise. See
        :mod:`maxdisc.unlabelled`.
    prior : array-like of shape (C,), default=None
        Class probabilities in the order of ``classes_``; by default their shares of the training weight.
    random_state : int, RandomState or None, default=None
        If given, rows are shuffled before an int or "holdout" ``cv`` deals them out; also seeds ``sample``.
    n_jobs : int or None, default=None
        How many threads ``fit`` may use: None for as many as ``MAXDISC_NUM_THREADS`` or ``OMP_NUM_THREADS``
        say, else one for each usable core, as does -1. Results never depend on it.
    verbose : int, default=0
        If positive, says what was chosen.
    categorical_features : array-like, default=None
        Columns that are categories though they hold numbers: names, numbers, a mask, or a selector.
    missing : {"ignore", "informative"}, default="ignore"
        A missing cell is no evidence; or that it is missing is evidence as well, for columns that lack some
        cells in the training rows.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels.
    class_prior_ : ndarray of shape (C,)
        Their probabilities.
    n_features_in_ : int
        D, the number of features seen.
    feature_names_in_ : ndarray of shape (D,)
        Their names, where X had string column names.
    scores_ : ndarray of shape (D,)
        The divergence of each feature.
    ranking_ : ndarray of shape (D,)
        Columns, best first: by their scores, or by what they add if ``redundancy`` is positive.
    n_selected_ : int
        K, the number of features kept.
    feature_importances_ : ndarray of shape (D,)
        Shares of the kept features in the sum of their divergences; 0 for the others.
    smoothing_ : Smoothing
        The smoothing used.
    path_ : SelectionPath or None
        Held-out accuracy and log-loss for each number of features; None if nothing had to be chosen.
    stability_ : ndarray of shape (D,) or None
        The share of the folds' models that keep each feature, when each keeps ``n_selected_``; None without
        folds, after ``partial_fit``, and of joint densities.
    moments_ : ClassMoments
        All that was learnt from the data; unlabelled rows count by their soft labels and their weight, as
        they do in ``class_prior_``.
    decision_ : LinearDecision, JointDecision or AveragedDecision
        The Bayes decision on the kept features.
    families_ : list of (Family, slice or ndarray)
        The families and the columns they describe.
    joint_ : Joint or None
        The joint densities with all that was chosen, or the best of those averaged; None for independent
        features.
    unlabelled_weight_ : float
        What a row without a label weighs, beside 1 for a row with one; 0 if they were left alone, or all rows
        had labels.
    n_iter_ : int
        How many steps it took to share out the labels of these rows; 0 if none did.
    evidence_ : Evidence, AveragedEvidence or None
        The weights of bands, the biases and the corrections of features, or which joint models were averaged;
        and how good that was on held-out rows. None where evidence is raw.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxdisc import MaxDiscClassifier
    >>> data = load_breast_cancer()
    >>> model = MaxDiscClassifier().fit(data.data, data.target_names[data.target])
    >>> print(model.predict(data.data[:3]))
    ['malignant' 'malignant' 'malignant']
    >>> model.score(data.data, data.target_names[data.target]) > 0.93
    True

    Rows without a label help where labels are few, or are left alone:

    >>> few = [label if row % 20 == 0 else None for row, label in enumerate(data.target.tolist())]
    >>> model = MaxDiscClassifier().fit(data.data, few)
    >>> model.score(data.data, data.target) > 0.9
    True
    """

    classes_: npt.NDArray[np.generic]
    families_: list[tuple[Family, slice | Integers]]
    path_: SelectionPath | None
    stability_: Floats | None
    smoothing_: Smoothing
    n_selected_: int
    joint_: Joint | None
    n_iter_: int
    unlabelled_weight_: float
    evidence_: Evidence | AveragedEvidence | None
    _weighed_now: tuple[Decision, Decision] | None
    _unknown_now: tuple[Decision, LinearDecision | MixedDecision] | None
    _moments: AnyMoments | None
    _schema: Schema | None = None
    _frame: Any = None
    _model_now: tuple[FeatureRanking, Decision] | None
    _settings: tuple[Floats | None, Divergence]

    def __init__(
        self,
        family: Any = "auto",
        divergence: Any = "js_gm",
        n_features: str | int | float = "auto",
        structure: str | Joint = "independent",
        evidence: str = "calibrated",
        smoothing: str | float | Smoothing = "auto",
        redundancy: float = 0.0,
        cv: Any = 5,
        rule: str = "best",
        unlabelled: Any = None,
        prior: npt.ArrayLike | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        categorical_features: Any = None,
        missing: str = "ignore",
    ) -> None:
        self.family = family
        self.divergence = divergence
        self.n_features = n_features
        self.structure = structure
        self.evidence = evidence
        self.smoothing = smoothing
        self.redundancy = redundancy
        self.cv = cv
        self.rule = rule
        self.unlabelled = unlabelled
        self.prior = prior
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.categorical_features = categorical_features
        self.missing = missing

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None, groups: Any = None) -> Self:
        """Learn from labelled rows, and from rows without labels, if there are any.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D)
            Rows; NaN in dense input is a missing cell.
        y : array-like of shape (N,)
            Labels: strings, integers or booleans; None, NaN or ``unlabelled`` for a row that has none.
        sample_weight : array-like of shape (N,), optional
            Row weights.
        groups : array-like of shape (N,), optional
            Rows of one group stay in one fold.

        Returns
        -------
        MaxDiscClassifier
            This estimator, fitted.
        """
        with self._all_or_nothing():
            return self._fit(X, y, sample_weight, groups)

    def _fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None, groups: Any) -> Self:
        self._check_parameters()
        y, missing = sorted_out(y, self.unlabelled)
        if missing is not None:
            return self._fit_partly_labelled(X, y, missing, sample_weight, groups)
        X, labels, weights = self._validated(X, y, sample_weight, reset=True)
        kept = np.flatnonzero(weights)
        classes, codes = np.unique(labels[kept], return_inverse=True)
        plans: Sequence[Folds] = ()
        if self._must_choose:
            plans = fold_plans(self.cv, X, labels, groups, self.random_state, kept)
        X, labels, weights = _with_weight(X, labels, weights)
        if isinstance(X, Cells):
            cells, X = X, self._settle_columns(X, (codes, len(classes), weights))
            self._mention_unobserved(cells, codes, classes)
        rows = ArrayRows(X, codes, len(classes), weights, self._names)
        return self._learn(rows, plans, classes)

    def _fit_partly_labelled(
        self, X: Any, y: Any, missing: Booleans, sample_weight: npt.ArrayLike | None, groups: Any
    ) -> Self:
        """Learn from the labelled rows, then from all, and keep what is better on held-out rows."""
        if missing.all():
            raise ValueError("no row has a label: give some of each class.")
        if given_structure(self.structure) is not None:
            raise ValueError(
                f"joint densities need a label for each row, and {missing.sum()} have none: drop those rows, "
                "or use structure='independent'."
            )
        X, labels, weights = self._validated(X, y, sample_weight, reset=True)
        kept, others = np.flatnonzero((weights > 0) & ~missing), np.flatnonzero((weights > 0) & missing)
        if not len(kept):
            raise ValueError("no row with a label weighs more than 0: give some of each class.")
        classes, codes = np.unique(labels[kept], return_inverse=True)
        plans = plans_beside(self.cv, X, labels, kept, others, groups, self.random_state)
        if isinstance(X, Cells):
            cells = X
            self._settle_columns(cells[kept], (codes, len(classes), weights[kept]))
            assert self._schema is not None  # they are settled
            X = self._extended(cells, self._schema)
            self._mention_unobserved(cells[kept], codes, classes)
        family = self._choose_family(X)
        family.require(X, self._names)
        rows = ArrayRows(X[kept], codes, len(classes), weights[kept], self._names)
        self._learn(rows, [folds for folds, _ in plans], classes, family)
        if len(others):
            unlabelled = UnlabelledRows(X[others], weights[others], others, self._names)
            smoothing = given_smoothing(self.smoothing) or family.usual_smoothing
            self._learn_softly(PartlyLabelled(rows, unlabelled, plans, smoothing))
        return self

    def _learn_softly(self, data: PartlyLabelled) -> None:
        """Go on with unlabelled rows, if held-out rows say that this is better by more than noise."""
        family, classes = self._family, self.classes_
        prior, divergence = self._settings
        redundancy = self._redundancy(self.n_features_in_)
        like = FoldModels(data.labelled, family, divergence, prior, (), (), redundancy)
        alone = Held.of(self._choice, self._log_loss)
        best: tuple[Held, PartlyLabelledModels, Choice, Evidence | None, float] | None = None
        for weight in data.weights():
            models = data.models(like, weight)
            choice, evidence = self._settled(models)
            held = Held.of(choice, None if evidence is None else evidence.log_loss)
            if self.verbose:
                print(f"maxdisc: unlabelled rows of weight {weight:.3g}: held-out loss {held.loss:.4f}")
            if best is not None and held.loss > best[0].loss:
                break
            best = held, models, choice, evidence, weight
        assert best is not None
        held, models, choice, evidence, weight = best
        if not held.beats(alone):
            return
        soft = models.whole
        assert soft is not None
        self._require_representable(soft.moments, family)
        if not soft.converged:
            warnings.warn(
                f"the soft labels of {len(data.others)} unlabelled rows still changed after {soft.n_iter} "
                "steps: the model is that of the last step.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if self.evidence == "refined":
            warnings.warn(
                "evidence='refined' corrects features by labelled rows alone, and these are better with the "
                "unlabelled ones: it is calibrated.",
                UserWarning,
                stacklevel=5,
            )
        self._remember(family, soft.moments, classes, choice, evidence)
        self.n_iter_, self.unlabelled_weight_ = soft.n_iter, weight
        self._model_now = self._modelled(
            None if redundancy is None else partial(_reranked, redundancy, data.labelled)
        )
        self._weighed_now = self._weighed()

    @property
    def _log_loss(self) -> float | None:
        """Of weighed evidence, on held-out rows."""
        return self.evidence_.log_loss if isinstance(self.evidence_, Evidence) else None

    def fit_rows(self, rows: Rows, classes: npt.ArrayLike) -> Self:
        """Learn from any source of rows: the seam for streams and engines.

        Parameters
        ----------
        rows : Rows
            The source; its labels are codes into ``classes``.
        classes : array-like of shape (C,)
            The labels, sorted.

        Returns
        -------
        MaxDiscClassifier
            This estimator, fitted. An int ``cv`` means that many folds by a hash of the row, so that the
            result does not depend on the order or the chunks in which rows come.
        """
        self._check_parameters()
        if self.unlabelled is not None:
            raise ValueError("fit_rows learns from labelled rows alone: use fit, or unlabelled=None.")
        labels = np.asarray(classes)
        if labels.ndim != 1 or not np.array_equal(labels, np.unique(labels)):
            raise ValueError(f"classes must be labels in sorted order, each once, got {classes!r}.")
        if len(labels) != rows.n_classes:
            raise ValueError(f"rows have {rows.n_classes} classes, but classes names {len(labels)}.")
        if not (isinstance(self.cv, numbers.Integral) and int(self.cv) >= 2) and self.cv != "hash":
            raise ValueError(f"a source of rows takes cv='hash' or a number of folds, got cv={self.cv!r}.")
        count = 5 if self.cv == "hash" else int(self.cv)
        with self._all_or_nothing():
            self.__dict__.pop("feature_names_in_", None)
            self._schema = None
            return self._learn(rows, [HashFolds(count)] if self._must_choose else (), labels)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from a further batch of rows; any batching gives the same model.

        A model that begins with ``partial_fit`` keeps all features, smooths as its family usually does and
        takes evidence as it is, unless the parameters say otherwise or :meth:`choose_n_features` is called.
        One that begins with ``fit`` goes on with what ``fit`` chose and how it weighed the evidence.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D)
            Rows.
        y : array-like of shape (N,)
            Labels; new ones may appear in any batch.
        classes : array-like, optional
            Labels that are known to come.
        sample_weight : array-like of shape (N,), optional
            Row weights.

        Returns
        -------
        MaxDiscClassifier
            This estimator.
        """
        with self._all_or_nothing():
            return self._add(X, y, classes, sample_weight)

    def _add(
        self, X: Any, y: Any, classes: npt.ArrayLike | None, sample_weight: npt.ArrayLike | None
    ) -> Self:
        self._check_parameters()
        self._require_single_features("partial_fit")
        first = not hasattr(self, "classes_")
        if first:
            self.n_iter_, self.unlabelled_weight_ = 0, 0.0
        before = None if first else self.moments_
        X, labels, weights = _with_weight(*self._validated(X, y, sample_weight, reset=first))
        union = sorted_union(
            labels, *([] if classes is None else [classes]), *([] if first else [self.classes_])
        )
        known = None if first else self._schema
        if isinstance(X, Cells):
            X = self._settle_columns(X, None) if known is None else self._extended(X, known)
        family = self._choose_family(X) if first else self._family
        rows = ArrayRows(X, np.searchsorted(union, labels), len(union), weights, self._names)
        moments: AnyMoments = rows.moments(cast(Family, family))[0]
        self._require_representable(moments, family)
        choice = self._usual(family, X.shape[1]) if first else self._choice
        evidence = None
        if before is not None:
            positions = np.searchsorted(union, self.classes_)
            if isinstance(before, MixedMoments) and known is not None and self._schema is not None:
                before = self._schema.moved(before, known)
            moments = cast(Any, before.reindexed(positions, len(union))) + moments
            if isinstance(self.evidence_, Evidence):
                evidence = self.evidence_.reindexed(positions, len(union))
        self._remember(family, moments, union, choice, evidence)
        return self

    def choose_n_features(
        self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None, groups: Any = None
    ) -> Self:
        """Choose how many features a model built by ``partial_fit`` keeps, on folds of these rows.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for :meth:`fit`; all labels must have been seen before.

        Returns
        -------
        MaxDiscClassifier
            This estimator, with ``path_``, ``n_selected_`` and, if "auto", ``smoothing_`` chosen anew.
        """
        moments = self.moments_
        self._check_parameters()
        self._require_single_features("choose_n_features")
        X, labels, weights = self._validated(X, y, sample_weight, reset=False)
        self._require_seen(labels)
        kept = np.flatnonzero(weights)
        if len(np.unique(labels[kept])) < 2:
            raise ValueError("y has only one class: the number of features is chosen on rows of two or more.")
        plans = fold_plans(self.cv, X, labels, groups, self.random_state, kept)
        X, labels, weights = _with_weight(X, labels, weights)
        codes = np.searchsorted(self.classes_, labels)
        X = self._encoded(X) if isinstance(X, Cells) else X
        rows = ArrayRows(X, codes, len(self.classes_), weights, self._names)
        family = self._family
        models = self._fold_models(rows, family, plans, self.classes_)
        choice, evidence = self._settle(models)
        self._remember(family, moments, self.classes_, choice, evidence)
        self._refine(models, rows)
        return self

    def _require_seen(self, labels: npt.NDArray[np.generic]) -> None:
        unseen = np.setdiff1d(labels, self.classes_)
        if len(unseen):
            raise ValueError(
                f"y has a label the model has not seen, {unseen[:1].tolist()[0]!r}: call partial_fit first."
            )

    def _learn(
        self,
        rows: Rows,
        plans: Sequence[Folds],
        classes: npt.NDArray[np.generic],
        family: AnyFamily | None = None,
    ) -> Self:
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {classes.tolist()[0]!r}: a classifier needs two classes or more."
            )
        self.n_iter_, self.unlabelled_weight_ = 0, 0.0
        joint = given_structure(self.structure)
        if joint is not None:
            return self._learn_jointly(rows, joint, plans, classes)
        family = family or self._choose_family(rows.example())
        models: FoldModels | SparseFoldModels | None = None
        evidence: Evidence | None = None
        if plans:
            models = self._fold_models(rows, family, plans, classes)
            # Before anything is tried on folds, so that what is wrong is said by its name.
            parts = models.parts[0] if isinstance(models, FoldModels) else [models.total()]
            for part in parts:
                self._require_representable(part, family)
            _require_weight(parts)
            choice, evidence = self._settle(models)
            moments = models.total()
        else:
            moments = rows.moments(cast(Family, family))[0]
            choice = self._usual(family, moments.n_features)
        self._require_representable(moments, family)
        _require_weight([moments])
        self._remember(family, moments, classes, choice, evidence)
        if self.evidence != "refined":
            models = None  # which may take much memory
        # Now, so that what is wrong with it is said here, and while there are rows to count products of.
        redundancy = self._redundancy(moments.n_features)
        self._model_now = self._modelled(None if redundancy is None else partial(_reranked, redundancy, rows))
        if models is not None:
            self._refine(models, rows)
        self._weighed_now = self._weighed()
        return self

    def _redundancy(self, n_features: int) -> Redundancy | None:
        """How features are re-ranked, if at all."""
        return Redundancy.of(given_redundancy(self.redundancy), given_size(self.n_features, n_features))

    def _learn_jointly(
        self, rows: Rows, joint: Joint, plans: Sequence[Folds], classes: npt.NDArray[np.generic]
    ) -> Self:
        if self.evidence != "raw" and not isinstance(rows, ArrayRows | BatchRows):
            raise ValueError(
                f"evidence={self.evidence!r} of joint densities needs the rows in memory or in batches: use "
                "evidence='raw', or structure='independent'."
            )
        family, smoothing = FAMILIES["gaussian"], given_smoothing(self.smoothing)
        settings = (given_prior(self.prior, classes), find_divergence(self.divergence))
        moments = rows.moments(family)[0]
        require_representable(moments, family.translates, self._names)
        _require_weight([moments])
        models = JointModels(rows, joint, settings[1], settings[0], smoothing, plans, moments)
        size = given_size(self.n_features, moments.n_features)
        if size is not None and size > models.largest:
            raise ValueError(
                f"a joint density of {size} features is too large for these rows: at most {models.largest}; "
                "give n_features, or structure='independent'."
            )
        rule, average = cast(Rule, self.rule), None
        if self.evidence != "raw":
            sizes = np.array([size]) if size else averaged_sizes(models.largest)
            # Held-out rows have the shares of the training rows: trust is learnt from them under these.
            trusted = replace(models, prior=None)
            average = AveragedModels(trusted, sizes, self.evidence == "refined").average(rule)
            if average is None:
                warnings.warn(
                    f"evidence={self.evidence!r} needs held-out rows that tell models apart, of classes that "
                    "are also trained on, and there are none: the densities count as they are, as with "
                    "evidence='raw'.",
                    UserWarning,
                    stacklevel=5,
                )
        model: tuple[FeatureRanking, Decision]
        if average is not None:
            model, joint = (average.ranking, average.decision), average.joint
            if settings[0] is not None:
                model = average.ranking, average.decision.under(settings[0])
            choice = JointChoice(joint, len(average.decision.columns), average.path)
        else:
            if plans and not (size and joint.settled):
                choice = models.choose(np.array([size]) if size else models.sizes, rule)
            else:
                choice = JointChoice(joint, size or models.largest)
            model = models.model(choice)
        return self._set(
            family,
            classes,
            class_prior(moments, settings[0]),
            settings,
            Choice(smoothing or POOLED, choice.size, choice.path),
            moments.n_features,
            moments,
            model,
            choice.joint,
            None if average is None else average.evidence,
        )

    def _usual(self, family: AnyFamily, n_features: int) -> Choice:
        """What the parameters say, or else the usual smoothing and all features."""
        smoothing = given_smoothing(self.smoothing) or family.usual_smoothing
        return Choice(smoothing, given_size(self.n_features, n_features) or n_features)

    def _fold_models(
        self, rows: Rows, family: AnyFamily, plans: Sequence[Folds], classes: npt.NDArray[np.generic]
    ) -> FoldModels | SparseFoldModels:
        prior, divergence = given_prior(self.prior, classes), find_divergence(self.divergence)
        redundancy = self._redundancy(rows.example().shape[1])
        if (
            isinstance(family, Family)
            and isinstance(rows, ArrayRows)
            and redundancy is None
            and suits(rows, family, divergence)
        ):
            return SparseFoldModels(rows, family, prior, plans)
        most = 0 if self.evidence == "raw" else enough_rows(rows.n_classes, sum(p.count for p in plans))
        return FoldModels.of(rows, family, divergence, prior, plans, redundancy, most)

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Whatever goes wrong inside leaves the estimator as it was."""
        before = self.__dict__.copy()
        try:
            with limited_threads(given_jobs(self.n_jobs)):
                yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _settle(self, models: FoldModels | SparseFoldModels) -> tuple[Choice, Evidence | None]:
        """What is chosen on the folds, and how much the evidence counts; warn if that could not be learnt."""
        choice, evidence = self._settled(models)
        if evidence is None and self.evidence != "raw":
            warnings.warn(
                f"evidence={self.evidence!r} is learnt from held-out rows, at least two of each of two "
                "classes and more than there are bands and classes; these are too few: it is raw.",
                UserWarning,
                stacklevel=5,
            )
        return choice, evidence

    def _settled(self, models: FoldModels | SparseFoldModels) -> tuple[Choice, Evidence | None]:
        smoothing, rule = given_smoothing(self.smoothing), cast(Rule, self.rule)
        smoothings = (smoothing,) if smoothing else models.family.smoothings
        size = given_size(self.n_features, models.n_features)
        if self.evidence != "raw":
            prior = class_prior(models.total(), None)
            edges = band_edges(size or models.n_features)
            found = calibrate(models, smoothings, edges, prior, rule, size is not None)
            if found is not None:
                return models.with_stability(found[0]), found[1]
        sizes = np.array([size]) if size else size_grid(models.n_features)
        return models.with_stability(choose(models, smoothings, sizes, rule)), None

    def _refine(self, models: FoldModels | SparseFoldModels, rows: Rows) -> None:
        """Correct single features, if that is asked for and can be done."""
        if self.evidence != "refined" or not isinstance(self.evidence_, Evidence):
            return
        if (
            not isinstance(rows, ArrayRows)
            or rows.labels.ndim != 1
            or len(models.plans) != 1
            or models.plans[0].count < 3
            or isinstance(self._family, Columns)
        ):
            warnings.warn(
                "evidence='refined' needs the rows in memory, of one family, and at least three folds that "
                "share them out: it is calibrated.",
                UserWarning,
                stacklevel=5,
            )
            return
        shares, generative = class_prior(models.total(), None), cast(LinearDecision, self._model[1])
        self.evidence_ = refine(models, rows.X, generative, self._choice, self.evidence_, shares)

    def _remember(
        self,
        family: AnyFamily,
        moments: AnyMoments,
        classes: npt.NDArray[np.generic],
        choice: Choice,
        evidence: Evidence | None = None,
    ) -> None:
        """Take in what was learnt; the ranking and the decision follow when they are needed."""
        prior = given_prior(self.prior, classes)
        settings = (prior, find_divergence(self.divergence))
        shares = class_prior(moments, prior)
        n_features = moments.n_features
        self._set(family, classes, shares, settings, choice, n_features, moments, evidence=evidence)

    def _set(
        self,
        family: AnyFamily,
        classes: npt.NDArray[np.generic],
        prior: Floats,
        settings: tuple[Floats | None, Divergence],
        choice: Choice,
        n_features: int,
        moments: AnyMoments | None,
        model: tuple[FeatureRanking, Decision] | None = None,
        joint: Joint | None = None,
        evidence: Evidence | AveragedEvidence | None = None,
        unknown: tuple[Decision, LinearDecision | MixedDecision] | None = None,
    ) -> Self:
        """Everything that fitting leaves behind, names aside; a model file brings the model with it."""
        self._settings = settings
        self.class_prior_ = prior
        self.classes_ = classes
        if isinstance(family, Columns):
            assert self._schema is not None  # which the columns were read by
            self.families_ = list(self._schema.families_of_columns())
        else:
            self.families_ = [(family, slice(0, n_features))]
        self._moments = moments
        self.n_features_in_ = n_features
        self.n_selected_ = choice.size
        self.smoothing_ = choice.smoothing
        self.path_ = choice.path
        self.stability_ = choice.stability
        self._model_now = model
        self._weighed_now = None
        self._unknown_now = unknown
        self.joint_ = joint
        self.evidence_ = evidence
        return self

    @property
    def moments_(self) -> AnyMoments:
        """All that was learnt from the data."""
        check_is_fitted(self)
        if self._moments is None:
            raise NotFittedError(
                "this model was saved without its moments: it predicts and explains, but partial_fit, "
                "choose_n_features, sample and densities need a file saved with moments=True."
            )
        return self._moments

    @property
    def _family(self) -> AnyFamily:
        """The family of all features, or the families of the columns of a table."""
        schema = self._schema
        if schema is not None and plain_family(schema) is None:
            return schema.columns
        return self.families_[0][0]

    @property
    def _choice(self) -> Choice:
        return Choice(self.smoothing_, self.n_selected_, self.path_)

    @property
    def _model(self) -> tuple[FeatureRanking, Decision]:
        """The ranking and the decision from all the rows, made when first asked for after a batch."""
        check_is_fitted(self)
        model = self._model_now
        if model is None:
            model = self._model_now = self._modelled()
        return model

    def _modelled(
        self, reorder: Reorder | None = None
    ) -> tuple[FeatureRanking, LinearDecision | MixedDecision]:
        family, (prior, divergence) = self._family, self._settings
        ranking, decision = ranked_model(
            family, self.moments_, self.smoothing_, divergence, prior, self.n_selected_, reorder
        )
        for columns, what, then in (
            (ranking.unsolved, f"no {family.name} density was found", "they score 0 and do not count."),
            (
                ranking.adjusted,
                f"no {family.name} density has the moments of some class",
                "the densities nearest to them were taken.",
            ),
        ):
            if len(columns):
                first = column_name(int(columns[0]), self._names)
                warnings.warn(
                    f"{what} for {len(columns)} features, first {first}: {then}",
                    ConvergenceWarning,
                    stacklevel=4,
                )
        if self.verbose:
            print(
                f"maxdisc: {family.name} densities, {len(self.classes_)} classes, "
                f"{self.n_selected_} of {self.n_features_in_} features kept, {self.smoothing_}"
            )
        return ranking, decision

    @property
    def scores_(self) -> Floats:
        """The divergence of each feature, shape (D,)."""
        return self._model[0].scores

    @property
    def ranking_(self) -> Integers:
        """Columns, best first, shape (D,)."""
        return self._model[0].order

    @property
    def decision_(self) -> Decision:
        """The Bayes decision on the kept features, with their evidence weighed."""
        generative, weighed = self._model[1], self._weighed_now
        if weighed is None or weighed[0] is not generative:
            weighed = self._weighed_now = self._weighed()
        return generative if weighed is None else weighed[1]

    def _weighed(self) -> tuple[Decision, Decision] | None:
        """The decision as it was learnt, and weighed; None where evidence is raw or of an average."""
        generative = self._model[1]
        if not isinstance(self.evidence_, Evidence):
            return None
        if isinstance(generative, LinearDecision):
            return generative, self.evidence_.applied(generative)
        if isinstance(generative, MixedDecision):
            return generative, self.evidence_.applied(generative)
        return None

    @property
    def _unknown(self) -> LinearDecision | MixedDecision:
        """The densities of unknown classes, made when first asked for after a batch."""
        generative = cast(LinearDecision | MixedDecision, self._model[1])
        if self._unknown_now is None or self._unknown_now[0] is not generative:
            self._unknown_now = generative, unknown_model(generative, self.moments_, self.smoothing_)
        return self._unknown_now[1]

    @property
    def _density(self) -> LinearDecision | MixedDecision | JointDecision:
        """The decision that has densities: of an average, that of its best joint model."""
        decision = self._model[1]
        return decision.density if isinstance(decision, AveragedDecision) else decision

    # ------------------------------------------------------------------ parameters and data

    def _check_parameters(self) -> None:
        if given_structure(self.structure) is not None:
            asked = self.categorical_features is not None or self.missing == "informative"
            if asked or (self.family != "auto" and not _is_gaussian(self.family)):
                raise ValueError(
                    f"joint densities are Gaussian: use family='auto', not {self.family!r}, or "
                    "structure='independent'."
                )
            if self.redundancy:
                raise ValueError(
                    "joint densities know what features share: use redundancy=0.0, or Joint(search='greedy')."
                )
        require_one_of("evidence", self.evidence, ("raw", "calibrated", "refined"))
        require_one_of("rule", self.rule, ("best", "one_se"))
        given_redundancy(self.redundancy)
        given_unlabelled(self.unlabelled)
        require_families(self.family)
        require_one_of("missing", self.missing, ("ignore", "informative"))
        find_divergence(self.divergence)
        given_size(self.n_features)
        given_smoothing(self.smoothing)

    def _require_single_features(self, method: str) -> None:
        """Raise ``ValueError`` where sums for each feature alone, which batches add to, are not enough."""
        if given_structure(self.structure) is not None or getattr(self, "joint_", None) is not None:
            what, instead = "a joint density", "structure='independent'"
        elif self.redundancy > 0:
            what, instead = f"redundancy={self.redundancy!r}", "redundancy=0.0"
        else:
            return
        raise ValueError(
            f"{method} keeps sums for each feature alone, and {what} needs those of pairs: use fit or "
            f"fit_rows, or {instead}."
        )

    @property
    def _must_choose(self) -> bool:
        joint = given_structure(self.structure)
        if joint is not None:
            return self.n_features == "auto" or not joint.settled or self.evidence != "raw"
        return self.n_features == "auto" or given_smoothing(self.smoothing) is None or self.evidence != "raw"

    @property
    def _names(self) -> npt.NDArray[np.generic] | None:
        return getattr(self, "feature_names_in_", None)

    def _validated(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Matrix, npt.NDArray[np.generic], Floats]:
        require_labels(y, "drop those rows, or use fit, which learns from them, too")
        if self._reads_columns(X, reset):
            return self._validated_columns(X, y, sample_weight, reset)
        self._schema = None
        try:
            X, y = validate_data(self, X, y, reset=reset, multi_output=True, **_NUMBERS)
        except ValueError as error:
            if "could not convert string to float" in str(error):
                require_numbers(X)
            raise
        labels = column_or_1d(y, warn=True)
        return canonical(X), labels, self._checked_labels_and_weights(X, labels, sample_weight)

    def _checked_labels_and_weights(
        self, X: Any, labels: npt.NDArray[np.generic], sample_weight: Any
    ) -> Floats:
        if labels.dtype.kind not in "US":  # words are labels, and many of them take long to look at
            check_classification_targets(labels)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("sample weights must contain at least one non-zero number: all are zero.")
        with np.errstate(over="ignore"):
            if not np.isfinite(weights.sum() ** 2):
                raise ValueError("sample weights are too large to be squared: rescale them.")
        return weights

    def _reads_columns(self, X: Any, reset: bool) -> bool:
        """Whether columns are told apart, as they were when the model was fitted."""
        if not reset:
            return self._schema is not None
        joint = given_structure(self.structure) is not None
        return not joint and takes_columns(X, self.family, self.categorical_features, self.missing)

    def _validated_columns(
        self, X: Any, y: Any, sample_weight: Any, reset: bool
    ) -> tuple[Cells, npt.NDArray[np.generic], Floats]:
        cells = self._cells(X, reset)
        if self.redundancy:
            raise ValueError("redundancy is of numbers of one family: use redundancy=0.0 for mixed columns.")
        labels = column_or_1d(y, warn=True)
        check_consistent_length(cells, labels)
        weights = self._checked_labels_and_weights(cells, labels, sample_weight)
        # A selector looks at the frame itself, once, when families are settled.
        if reset:
            self._frame = X
        return cells, labels, weights

    def _cells(self, X: Any, reset: bool) -> Cells:
        """A frame or an array, taken apart, its width and names checked."""
        validate_data(self, X, reset=reset, skip_check_array=True)
        cells = cells_of(X, self._names)
        if 0 in cells.shape:
            what = "sample(s)" if cells.shape[0] == 0 else "feature(s)"
            raise ValueError(f"Found array with 0 {what} (shape={cells.shape}): a minimum of 1 is required.")
        return cells

    def _settle_columns(self, cells: Cells, rows: tuple[Integers, int, Floats] | None) -> Matrix:
        """Give every column its family, and make the matrices."""
        frame = self.__dict__.pop("_frame", None)
        informative = self.missing == "informative"
        given = (self._names, self.family, self.categorical_features, informative)
        self._schema = settled_schema(frame, cells, *given, rows)
        return self._encoded(cells)

    def _mention_unobserved(self, cells: Cells, codes: Integers, classes: npt.NDArray[np.generic]) -> None:
        found = first_unobserved(cells, codes, len(classes))
        if found is None:
            return
        label, column, count = found
        others = f" (and {count - 1} more such columns)" if count > 1 else ""
        warnings.warn(
            f"all cells of {column_name(column, self._names)} are missing in class "
            f"{classes.tolist()[label]!r}{others}: what the other classes have is taken for it.",
            UserWarning,
            stacklevel=5,
        )

    def _extended(self, cells: Cells, known: Schema) -> Matrix:
        """The matrices of a further batch, whose levels may be new."""
        self._schema = known.extended(cells)
        return self._encoded(cells)

    def _encoded(self, cells: Cells, wanted: Integers | None = None) -> Matrix:
        assert self._schema is not None  # cells are of a model with one
        table = self._schema.table(cells, self._names, wanted)
        return table if plain_family(self._schema) is None else table.parts[0]

    def _choose_family(self, X: Matrix) -> AnyFamily:
        if self._schema is not None:
            return plain_family(self._schema) or self._schema.columns
        if self.family != "auto":
            return find_family(self.family)
        counts = is_sparse(X) and (X.nnz == 0 or X.data.min() >= 0)
        return FAMILIES["poisson" if counts else "gaussian"]

    def _rows(self, X: Any) -> Matrix:
        """Rows to be predicted."""
        check_is_fitted(self)
        if self._schema is not None:
            X = self._encoded(self._cells(X, reset=False), self.decision_.columns)
        else:
            X = canonical(validate_data(self, X, reset=False, **_NUMBERS))
        self._family.require(X, self._names)
        return X

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        told = super().__repr__(N_CHAR_MAX)
        if self._schema is None or plain_family(self._schema) is not None:
            return told
        counts = (f"{len(columns)} {family.name}" for family, columns in self._schema.families_of_columns())
        return f"{told} of {', '.join(counts)}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        family = FAMILIES.get(self.family) if isinstance(self.family, str) else self.family
        support: Support | None = getattr(family, "support", None)
        tags.input_tags.positive_only = support is not None and support.low >= 0
        return tags

    # ------------------------------------------------------------------ prediction

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Log prior plus the weighed evidence of the kept features; its softmax is ``predict_proba``.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D)
            Rows.

        Returns
        -------
        ndarray of shape (N, C)
            Scores, up to what all classes share; see :meth:`score_samples` for densities.
        """
        X = self._rows(X)
        with limited_threads(given_jobs(self.n_jobs)), np.errstate(over="ignore", invalid="ignore"):
            scores = self.decision_.scores(X)
        lost = ~np.isfinite(scores.max(axis=1))
        if lost.any():
            raise ValueError(
                f"row {np.argmax(lost)} has values too far from all that was seen in training to be scored."
            )
        return scores

    def predict(self, X: Any) -> npt.NDArray[np.generic]:
        """The most probable label of each row, shape (N,); ties go to the first in ``classes_``."""
        scores = self.predict_joint_log_proba(X)
        return self.classes_[scores.argmax(axis=1)]

    def predict_log_proba(self, X: Any) -> Floats:
        """Log of the posterior probabilities, shape (N, C)."""
        scores = self.predict_joint_log_proba(X)
        # The largest first: the log of a sum vanishes beside scores of 1e18.
        scores = scores - scores.max(axis=1, keepdims=True)
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Floats:
        """Posterior probabilities, shape (N, C)."""
        return np.exp(self.predict_log_proba(X))

    def score_samples(self, X: Any) -> Floats:
        """Log density of the kept features of each row under the mixture of all classes.

        Of an average of joint models: under the best of them.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D)
            Rows.

        Returns
        -------
        ndarray of shape (N,)
            Log density, or log probability for the families of counts; missing cells are integrated out.
        """
        X = self._rows(X)
        density = self._density
        with limited_threads(given_jobs(self.n_jobs)):
            return np.asarray(logsumexp(density.scores(X), axis=1) + density.log_base(X))

    def novelty(self, X: Any) -> Floats:
        """How well rows fit the known classes: the p-value of "this row belongs to one of them".

        Of rows of known classes, 1 % have a p-value of 0.01 or less. So ``novelty(X) <= 0.01`` flags what is
        stranger than all but 1 % of them: see :class:`maxdisc.novelty.Novelty`. The least p-value is
        1 / (n + 1), with n held-out rows. ``prior`` does not matter here. Missing cells say nothing, so that
        rows with fewer cells than those of the training fit less well; a row without any has p-value 1.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D)
            Rows.

        Returns
        -------
        ndarray of shape (N,)
            In (0, 1]; small for what is unlike all that was seen, or between the classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from maxdisc import MaxDiscClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = MaxDiscClassifier().fit(X, y)
        >>> model.novelty([[5.0, 3.4, 1.5, 0.2], [50.0, 34.0, 15.0, 2.0]]) > 0.01
        array([ True, False])
        """
        X, learnt = self._rows(X), self._novelty
        if learnt is None:
            raise ValueError(self._why_not_novelty())
        generative = cast(LinearDecision | MixedDecision, self._model[1])
        strength = replace(cast(Evidence, self.evidence_), weights=learnt.weights).strength(
            len(generative.columns)
        )
        with limited_threads(given_jobs(self.n_jobs)), np.errstate(over="ignore", invalid="ignore"):
            weighed = replace(generative.weighed(strength, np.zeros(1)), log_prior=learnt.level)
            scores = weighed.scores(X)
            reference = self._unknown.weighed(strength, learnt.unknown).scores(X)
        out = learnt.p_values(familiarity(scores, learnt.level, reference))
        # What has no cells is as good as anything.
        nothing = (scores == learnt.level).all(axis=1) & (reference == learnt.unknown).all(axis=1)
        return np.where(nothing, 1.0, out)

    @property
    def _novelty(self) -> Novelty | None:
        """What is usual of held-out rows, where there were any."""
        return self.evidence_.novelty if isinstance(self.evidence_, Evidence) else None

    def _why_not_novelty(self) -> str:
        """What keeps rows from being compared with held-out ones, and what to do about it."""
        if self.joint_ is not None:
            return (
                "novelty is for independent features, and these are described jointly: fit with "
                "structure='independent'."
            )
        return (
            "novelty compares rows with held-out ones, and this model has learnt from none: call fit with "
            "evidence='calibrated' and more rows, or choose_n_features after partial_fit."
        )

    def explain(self, X: Any) -> Explanation:
        """Take the scores of some rows apart, feature by feature; memory grows with N x C x K.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D)
            Rows.

        Returns
        -------
        Explanation
            Exact: prior and contributions sum to ``predict_joint_log_proba(X)``.
        """
        X = self._rows(X)
        names = _check_feature_names_in(self)[self.decision_.columns]
        with limited_threads(given_jobs(self.n_jobs)):
            return Explanation.of(self.decision_, X, names, self.classes_)

    def sample(self, n: int, y: Any = None) -> tuple[npt.NDArray[Any], npt.NDArray[np.generic]]:
        """Draw rows from the model: a class by the prior, then every feature from that class's density.

        Where features are described jointly, the kept ones are drawn together, the others alone.

        Parameters
        ----------
        n : int
            How many rows.
        y : label, optional
            Draw from this class only.

        Returns
        -------
        X : ndarray of shape (n, D)
            Rows, all features included; of mixed columns, objects: numbers, and categories by name.
        y : ndarray of shape (n,)
            Their labels.
        """
        moments = self.moments_
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        if y is not None and np.ndim(y) != 0:
            raise ValueError(f"y must be one label, got {y!r}.")
        if y is None:
            codes = rng.choice(len(self.classes_), size=n, p=self.class_prior_)
        else:
            found = np.flatnonzero(self.classes_ == y)
            if len(found) == 0:
                raise ValueError(f"{y!r} is not a class of this model: {self._listed()}.")
            codes = np.full(n, found[0])
        if isinstance(moments, MixedMoments):
            return self._sampled_columns(moments, codes, rng), self.classes_[codes]
        X = np.empty((n, self.n_features_in_))
        family = cast(Family, self._family)
        for block, densities in density_blocks(family, moments, self.smoothing_):
            drawn = family.sample(densities.natural[:, codes], rng) + densities.origin
            X[:, block] = np.where(densities.informative, drawn, densities.level)
        density = self._density
        if isinstance(density, JointDecision):
            X[:, density.columns] = density.sample(codes, rng)
        return X, self.classes_[codes]

    def _sampled_columns(
        self, moments: MixedMoments, codes: Integers, rng: np.random.Generator
    ) -> npt.NDArray[np.object_]:
        """Rows of mixed columns, shape (n, D): numbers, levels by name, None where a cell is missing."""
        assert self._schema is not None
        drawn = []
        for block, part in zip(self._schema.columns.blocks, moments.parts, strict=True):
            cells = np.empty((len(codes), len(block.columns)))
            for some, densities in density_blocks(block.family, part, self.smoothing_):
                values = block.family.sample(densities.natural[:, codes], rng) + densities.origin
                level = -np.inf if block.has_levels else densities.level
                cells[:, some] = np.where(densities.informative, values, level)
            drawn.append(cells)
        return self._schema.drawn(drawn)

    def unseen_categories(self, X: Any) -> Integers:
        """How many cells of each column hold a category that no training row had, shape (D,).

        Such a cell is no evidence.

        Parameters
        ----------
        X : frame or array of shape (N, D)
            Rows.
        """
        check_is_fitted(self)
        if self._schema is None:
            return np.zeros(self.n_features_in_, dtype=np.intp)
        return self._schema.unseen(self._cells(X, reset=False))

    def _require_representable(self, moments: AnyMoments, family: AnyFamily) -> None:
        if not isinstance(moments, MixedMoments):
            require_representable(moments, family.translates, self._names)
            return
        assert isinstance(family, Columns)
        for block, part in zip(family.blocks, moments.parts, strict=True):
            require_representable(part, block.family.translates, family.called(block, self._names))

    def _listed(self) -> str:
        shown = ", ".join(repr(c) for c in self.classes_[:5].tolist())
        return f"it has {shown}" + (f" and {len(self.classes_) - 5} more" if len(self.classes_) > 5 else "")

    # ------------------------------------------------------------------ selection

    def _get_support_mask(self) -> Booleans:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.decision_.columns] = True
        return mask

    def ranking_table(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        n: int | None = None,
        n_permutations: int | None = None,
    ) -> Frame:
        """The features best first, what each class has of them, and how far to trust that classes differ.

        P-values are of unsmoothed moments. Without rows: exact for Gaussian and exponential features, if they
        are what they are called; corrected for dispersion for counts and presence, see
        :func:`maxdisc.nulls.p_values`; unknown (NaN) for other families, and where unlabelled rows were given
        labels by the model. With rows: by permutation, whatever the distribution, see
        :func:`maxdisc.permutation.permuted_p_values`.

        Parameters
        ----------
        X, y, sample_weight : optional
            The rows of ``fit``, or others, whose labels are dealt out at random.
        n : int, optional
            How many features; by default all. P- and q-values are those among all in any case.
        n_permutations : int, optional
            How often labels are dealt out.

        Returns
        -------
        Frame
            Columns by name: ``feature``, ``kept``, ``score``, ``debiased`` (the js_gm less what luck alone
            gives), ``p``, ``q`` (the share of false discoveries, by Benjamini and Hochberg), ``stability``
            and for each class ``direction[label]``, ``mean[label]`` and for Gaussian features
            ``deviation[label]``. ``pandas.DataFrame(table)``, ``polars.DataFrame(table)`` and
            ``table.to_pandas()`` make frames of it.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from maxdisc import MaxDiscClassifier
        >>> iris = load_iris(as_frame=True)
        >>> table = MaxDiscClassifier().fit(iris.data, iris.target_names[iris.target]).ranking_table()
        >>> print(table["feature"][0], table["q"][0] < 1e-80, table["direction[setosa]"][0])
        petal length (cm) True -1
        """
        moments, ranking = self.moments_, self._model[0]
        if X is None:
            found = self._significance()
            if np.isnan(found.p).any():
                warnings.warn(
                    f"moments do not tell p-values of {int(np.isnan(found.p).sum())} features, whose family "
                    "has no test of its own: give ranking_table the rows, X and y.",
                    UserWarning,
                    stacklevel=2,
                )
        else:
            found = Significance.of(self._permuted(X, y, sample_weight, n_permutations), self.stability_)
        columns, family, without_luck = ranking.order[:n], self._family, ranking.scores
        # The scores of mixed columns have none of it.
        if not isinstance(moments, MixedMoments) and not isinstance(family, Columns):
            given = (family, moments, self.smoothing_, js_gm, self._settings[0], 1)
            js = ranking.scores if self._settings[1] is js_gm else ranked_model(*given)[0].scores
            without_luck = debiased(js, family.n_statistics, *lucky_rows(moments, self.class_prior_))
        return ranking_frame(
            _check_feature_names_in(self),
            columns,
            self._get_support_mask(),
            ranking.scores,
            without_luck,
            found,
            class_columns(family, moments, self.classes_, columns),
        )

    def _significance(self) -> Significance:
        """P-values as far as moments tell."""
        if self.n_iter_:
            # Soft labels were given by the very features that would be found to differ.
            return Significance.of(np.full(self.n_features_in_, np.nan), self.stability_)
        return Significance.of(moment_p_values(self._family, self.moments_), self.stability_)

    def _permuted(self, X: Any, y: Any, sample_weight: Any, n_permutations: int | None) -> Floats:
        if y is None:
            raise ValueError("rows without labels cannot be dealt others: give y too.")
        X, labels, weights = _with_weight(*self._validated(X, y, sample_weight, reset=False))
        self._require_seen(labels)
        X = self._encoded(X) if isinstance(X, Cells) else X
        self._family.require(X, self._names)
        codes, seed = np.searchsorted(self.classes_, labels), check_random_state(self.random_state)
        rows = ArrayRows(X, codes, len(self.classes_), weights, self._names)
        with limited_threads(given_jobs(self.n_jobs)):
            return row_p_values(self._family, rows, n_permutations, int(seed.randint(2**31)))

    @property
    def feature_importances_(self) -> Floats:
        """Shares of the kept features in the sum of their divergences, shape (D,)."""
        kept = np.where(self._get_support_mask(), self.scores_, 0.0)
        total = kept.sum()
        return kept / total if total > 0 else kept


def _is_gaussian(family: Any) -> bool:
    return not isinstance(family, Mapping) and find_family(family).name == "gaussian"


def _require_weight(parts: Sequence[AnyMoments]) -> None:
    if not any(part.weight.any() for part in parts):
        raise ValueError("the rows have no weight: at least one must weigh more than 0.")


def _reranked(redundancy: Redundancy, rows: Rows, ranking: FeatureRanking) -> FeatureRanking:
    """The ranking of the model itself, by one more pass over all the rows."""
    columns = redundancy.candidates([ranking.order])
    return redundancy.reranked(ranking, columns, Overlap.of(rows.products(columns)[0]))


def _with_weight(
    X: Matrix, labels: npt.NDArray[np.generic], weights: Floats
) -> tuple[Matrix, npt.NDArray[np.generic], Floats]:
    """Without the rows that weigh nothing; no copy if there are none."""
    if weights.all():
        return X, labels, weights
    kept = np.flatnonzero(weights)
    return X[kept], labels[kept], weights[kept]
