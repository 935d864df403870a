"""``MaxDiscClassifier``, the estimator."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from maxdisc.decisions.coefficients import coefficients
from maxdisc.decisions.joint import Joint
from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.families import FAMILIES
from maxdisc.families.blocks import AnyFamily, AnyMoments
from maxdisc.families.support import Support
from maxdisc.fitting.cross_validation import fold_plans
from maxdisc.fitting.data import (
    Labelled,
    batch_of,
    cells,
    labelled,
    names_of,
    require_some_labels,
    unlabelled_rows,
    warn_of_nan,
)
from maxdisc.fitting.documents import count_training, feature_names, find_documents, texts, vectorize
from maxdisc.fitting.fitted_model import WITHOUT_MOMENTS, Decision, FittedModel, HoldsFittedModel
from maxdisc.fitting.invariances import with_exceptions
from maxdisc.fitting.learning import Data, added, chosen_anew, learn
from maxdisc.fitting.ranking_table import permuted, ranking_table, told_significance
from maxdisc.fitting.sampling import drawn
from maxdisc.fitting.settings import Settings, no_pairs
from maxdisc.fitting.structure import learn_structure
from maxdisc.inspection.explanation import Explanation
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.blas_threads import limited_blas
from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix, log_sum_exp, require_indices
from maxdisc.numerics.result_frame import frame_class
from maxdisc.numerics.threads import asked_threads, limited_threads
from maxdisc.rows.column_families import is_categorical
from maxdisc.rows.frames import Cells
from maxdisc.rows.row_sources import Rows
from maxdisc.rows.schema import Schema, plain_family
from maxdisc.rows.validation import given_jobs, sorted_out
from maxdisc.significance.table import Significance


def _has_sums_that_add(estimator: MaxDiscClassifier) -> bool:
    """Return whether there is ``partial_fit``; otherwise raise ``AttributeError`` with the reason."""
    redundancy = estimator.redundancy
    if isinstance(estimator.structure, Joint) or estimator.structure == "joint":
        raise AttributeError(no_pairs("partial_fit", "a joint density", "structure='independent'"))
    if isinstance(redundancy, numbers.Real) and not isinstance(redundancy, bool) and redundancy > 0:
        raise AttributeError(no_pairs("partial_fit", f"redundancy={redundancy!r}", "redundancy=0.0"))
    if isinstance(estimator.class_weight, str) and estimator.class_weight == "balanced":
        raise AttributeError(
            "partial_fit sees one batch at a time, and class_weight='balanced' needs the sizes of all "
            "classes: give a dict, or sample_weight."
        )
    return True


class MaxDiscClassifier(HoldsFittedModel, SelectorMixin, ClassifierMixin, BaseEstimator):
    """Generative maximum-entropy classifier that selects its own features.

    For each class and feature, it estimates the maximum-entropy density with the moments of the class.
    Features are ranked by the divergence of these densities between classes, their number is selected by
    cross-validation, and rows are classified by Bayes' rule. The model takes one pass over the data;
    cross-validation adds another.

    Parameters
    ----------
    family : str, Family or dict, default="auto"
        The family of every feature's densities: "exponential", "gaussian", "bernoulli", "geometric",
        "poisson", "gamma", "beta", "hurdle", "categorical", or a :class:`maxdisc.families.Family`. "auto"
        selects Poisson for sparse non-negative data and Gaussian for other arrays. For frames (pandas,
        polars, Arrow) it selects a family per column: Bernoulli for truth values, categorical for text and
        categories, and for numbers the family that predicts the classes of held-out rows best, among those
        that the values allow. A dict maps columns (names, numbers, lists of these, or a selector such as
        scikit-learn's ``make_column_selector``) to families; other columns are "auto".
    divergence : str or callable, default="auto"
        The ranking criterion: "js_gm" (the multi-class divergence of the paper), "jeffreys" or "kl" (one
        class against the rest), "jensen_shannon" (the mutual information of class and feature), "rao" (the
        score test; for counts, the chi-square statistic), "auto" ("rao" for counts with refined evidence,
        else "js_gm"), or a function that maps the densities of all classes and features, with ``natural`` and
        ``mean`` of shape (L, C, D) and ``prior``, to scores of shape (D,).
    n_features : "auto", "all", int or float, default="auto"
        The number of features to select: chosen by cross-validation, all, a number, or a share.
    structure : {"auto", "independent", "joint"} or Joint, default="auto"
        "independent": features are independent within a class. "joint": means and covariances are constrained
        together (the family is then Gaussian); parameters of :class:`maxdisc.Joint` that are "auto" are
        chosen on the folds, with the number of features. "auto": dense tables of numbers in memory, of at
        most 2,048 rows, are joint if they have more features than rows; with at least 1,024 cells, other such
        tables have the structure with the lower held-out log-loss. Everything else is independent, including
        ``fit_rows``, ``partial_fit``, and fits for which a family, a smoothing, a number of features,
        redundancy, informative missing cells or raw evidence is set. ``joint_`` is the choice.
    evidence : {"auto", "refined", "calibrated", "raw"}, default="auto"
        How the features' log densities are calibrated. "auto": "refined" for sparse rows and joint densities
        of rows in memory, unless they are few, else "calibrated"; ``evidence_`` is the result. "raw": no
        calibration, as if features were independent. "calibrated": the ranking is cut into bands; each band
        gets a weight and each class a bias, learnt on held-out rows. "refined": a conditional maximum-entropy
        model also corrects single features, and its weight is fitted together with those of the bands; this
        takes longer, and needs the rows in memory and at least three folds. With joint densities, "raw"
        selects one model; "calibrated" averages over all transforms, shrinkages and sizes that are not fixed,
        each scaled by the factor with the lowest held-out log-loss; "refined" adds conditional
        maximum-entropy models of the same features to this average.
    smoothing : "auto", float or Smoothing, default="auto"
        Pseudo-rows added to each class, in non-zero cells; see :class:`maxdisc.Smoothing`. "auto" chooses on
        the folds among ``family.smoothings``.
    redundancy : float, default=0.0
        If positive, a feature is ranked by what it adds to those ranked before it: the part of its divergence
        that they explain is subtracted. 1.0 is a good value. Needs ``fit`` or ``fit_rows``.
    cv : int, splitter, iterable of splits, "holdout" or "hash", default=5
        The folds on which the above is chosen. An int assigns the rows of each class to the folds in turn;
        "holdout" holds out a fifth once (the paper's protocol); "hash" uses a hash of each row's content, so
        that the order of rows does not matter.
    rule : {"auto", "best", "one_se", "small"}, default="auto"
        How the number of selected features is chosen on the folds. "best": the smallest number at the highest
        accuracy (for calibrated and refined evidence: the lowest log-loss). "one_se": the smallest number
        within one standard error of it; for refined evidence, the error of paired differences over rows.
        "small": the smallest number within one percentage point of the highest accuracy. "auto": "one_se" for
        refined evidence, else "best". For joint densities with raw evidence, the best model has the highest
        accuracy minus half the log-loss, averaged with its neighbours in shrinkage and size: see
        :meth:`maxdisc.selection.joint_fold_models.JointModels.choose`.
    unlabelled : str, number or None, default=None
        A label that means "no label", such as -1 or "unknown". None, NaN and NA always do; for NaN and NA
        there is a warning unless this parameter is set, because they may be a mistake in the data. ``fit``
        gives such rows soft labels by expectation-maximisation, and a weight that is chosen on held-out
        labelled rows; it is 0 unless they help by more than one standard error. See
        :mod:`maxdisc.fitting.expectation_maximisation`.
    prior : array-like of shape (C,), default=None
        Class probabilities in the order of ``classes_``; by default their shares of the training weight.
    random_state : int, RandomState or None, default=None
        If set, rows are shuffled before an int or "holdout" ``cv`` splits them; also seeds ``sample``.
    n_jobs : int or None, default=None
        Maximum number of threads of ``fit``. None uses ``MAXDISC_NUM_THREADS`` or ``OMP_NUM_THREADS`` if set,
        else all usable cores, as does -1. BLAS of the whole process has one thread during a fit, or as many
        as ``n_jobs`` or ``MAXDISC_NUM_THREADS`` say. With one BLAS thread, results are equal to the last bit
        for any number of threads, else to 1e-10, because BLAS adds in another order with more threads.
    verbose : int, default=0
        If positive, ``fit`` prints a line when a phase begins, and a summary at the end.
    categorical_features : array-like, default=None
        Columns of numbers that are categories, such as codes: names, numbers, a mask, or a selector.
    missing : {"ignore", "informative"}, default="ignore"
        "ignore": a missing cell carries no evidence. "informative": whether a cell is missing is evidence,
        for columns with missing cells in the training rows.
    vectorizer : object or None, default=None
        How the words of documents are counted: a :class:`maxdisc.TermFrequencyVectorizer`, or a vectorizer of
        scikit-learn. None uses ``TermFrequencyVectorizer(scale="log")`` for words and, if they lower the
        held-out log-loss of refined evidence, pairs of words. A clone is fitted; the parameter is ignored if
        X is not documents.
    class_weight : "balanced", dict or None, default=None
        Multiplies the weights of rows: by a number for each label (1 for labels not in the dict), or
        "balanced", which gives all classes the same total weight. It changes ``class_prior_`` as other
        weights do. ``fit_rows`` does not support it, ``partial_fit`` takes a dict.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels.
    class_prior_ : ndarray of shape (C,)
        Their probabilities.
    n_features_in_ : int
        D, the number of features seen.
    feature_names_in_ : ndarray of shape (D,)
        Their names, if X had string column names.
    scores_ : ndarray of shape (D,)
        The divergence of each feature. For a model from a file without moments, unselected features are NaN,
        here and in ``stability_``.
    ranking_ : ndarray of shape (D,)
        Columns, best first: by their scores or, if ``redundancy`` is positive, by what they add. For a model
        from a file without moments, the selected columns, shape (K,).
    n_selected_ : int
        K, the number of selected features.
    feature_importances_ : ndarray of shape (D,)
        Shares of the selected features in the sum of their divergences; 0 for the others.
    smoothing_ : Smoothing
        The smoothing used.
    path_ : object or None
        Held-out accuracy and log-loss for each number of features: ``sizes`` of shape (S,), ``accuracy`` and
        ``log_loss`` of shape (V, S), one row for each fold, ``mean_accuracy``, ``mean_log_loss`` and
        ``standard_error`` of shape (S,); ``best_size(rule)`` is the number that a rule selects. None if
        nothing had to be chosen.
    stability_ : ndarray of shape (D,) or None
        The share of the folds' models that select each feature, if each selects ``n_selected_``; None without
        folds, after ``partial_fit``, and for joint densities.
    moments_ : object
        Everything learnt from the data: ``weight`` of shape (C,), the weight of each class's rows, and
        ``sums`` of shape (L, C, D), sums of the family's statistics, about ``origin`` if that is not None;
        ``+`` adds those of other rows. Unlabelled rows are included with their soft labels and weight, as in
        ``class_prior_``. For mixed columns, ``parts`` has the moments of each family.
    decision_ : LinearDecision, JointDecision or AveragedDecision
        The Bayes decision on the selected features.
    coef_, intercept_ : ndarray of shape (C, D) and (C,), or (1, D) and (1,)
        If scores are linear in X (Poisson, exponential, geometric and Bernoulli densities; joint ones with a
        shared covariance and no transform): the softmax of ``X @ coef_.T + intercept_`` is
        ``predict_proba(X)`` for rows without missing cells. For two classes there is one row, as in
        scikit-learn, and the logistic function gives the probability of the second. 0 for columns that were
        not selected. If weights depend on the number of features in a row (refined evidence of documents),
        they are those of rows with many selected features, scaled to one length over these.
        Otherwise an ``AttributeError`` has the reason.
    families_ : list of (Family, slice or ndarray)
        The families and the columns they describe.
    joint_ : Joint or None
        The joint densities with all parameters chosen, or the best of those averaged; None for independent
        features.
    unlabelled_weight_ : float
        The weight of a row without a label, compared with 1 for a labelled row; 0 if unlabelled rows were
        not used, or there were none.
    n_iter_ : int
        The number of steps of expectation-maximisation; 0 without unlabelled rows.
    evidence_ : object or None
        ``log_loss`` and ``accuracy`` on held-out rows, and the calibration: ``edges`` and ``weights`` of
        shape (G,), the end of each band of the ranking and the factor of its evidence, ``bias`` of shape
        (C,), and for refined evidence ``correction`` of shape (C, R) of the features in ``columns``. For
        joint densities, the averaged models. None if evidence is raw.
    vectorizer_ : object
        The fitted vectorizer, whose terms are the D features; only for models of documents.

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

    Rows without a label are used if they help:

    >>> few = [label if row % 20 == 0 else None for row, label in enumerate(data.target.tolist())]
    >>> model = MaxDiscClassifier().fit(data.data, few)
    >>> model.score(data.data, data.target) > 0.9
    True

    X may be documents, whose words are then counted:

    >>> documents = ["the striker scored", "the keeper saved", "the bank lends", "the bank saved money"]
    >>> model = MaxDiscClassifier(evidence="raw", cv=2).fit(documents, ["sport", "sport", "money", "money"])
    >>> print(model.predict(["a bank lends money"]))
    ['money']
    """

    def __init__(
        self,
        family: Any = "auto",
        divergence: Any = "auto",
        n_features: str | int | float = "auto",
        structure: str | Joint = "auto",
        evidence: str = "auto",
        smoothing: str | float | Smoothing = "auto",
        redundancy: float = 0.0,
        cv: Any = 5,
        rule: str = "auto",
        unlabelled: Any = None,
        prior: npt.ArrayLike | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        categorical_features: Any = None,
        missing: str = "ignore",
        vectorizer: Any = None,
        class_weight: Any = None,
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
        self.vectorizer = vectorizer
        self.class_weight = class_weight

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit the model to labelled rows, and to rows without labels, if there are any.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D), or N documents
            Rows; NaN in dense input is a missing cell. Documents are a list, an array or a column (pandas,
            polars, Arrow) of str; ``vectorizer`` counts their words.
        y : array-like of shape (N,)
            Labels: strings, integers or booleans; None, NaN or ``unlabelled`` for a row without a label.
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
            settings = self._asked()
            found, documents, written = find_documents(X), None, y
            if found is None:
                X = vectorize(self, X, y, reset=True)
            else:
                with settings.told():
                    X, documents = count_training(self, found, y, settings.may_select_pairs)
            y, missing = sorted_out(y, settings.unlabelled)
            if missing is not None:
                require_some_labels(settings, missing)
                warn_of_nan(settings, written, missing)
            columns = settings.reads_columns(X)
            given = labelled(self, X, y, sample_weight, columns, reset=True)
            given = replace(given, documents=documents)
            given = given.with_class_weight(settings.class_weight, missing)
            settings.require_mixable(columns)
            with settings.told():
                learnt = learn_structure(settings, given, missing, X, groups)
            if documents is not None and learnt.n_features != X.shape[1]:
                self.vectorizer_ = documents.wide_vectorizer
            settings.say(learnt.summary())
            return self._take(learnt)

    def fit_rows(self, rows: Rows, classes: npt.ArrayLike, schema: Schema | None = None) -> Self:
        """Fit the model to any source of rows, such as a stream or an engine.

        Parameters
        ----------
        rows : BatchRows or object
            The source, a :class:`maxdisc.rows.BatchRows` or any object with its methods; its labels are codes
            into ``classes``.
        classes : array-like of shape (C,)
            The labels, sorted.
        schema : Schema, optional
            Schema of the columns, if each has its own family; the rows are then encoded by it.

        Returns
        -------
        MaxDiscClassifier
            This estimator, fitted. An int ``cv`` is the number of folds by a hash of the row, so that the
            result depends neither on the order of rows nor on batches.
        """
        settings = self._asked()
        if settings.unlabelled is not None:
            raise ValueError("fit_rows learns from labelled rows only: use fit, or unlabelled=None.")
        if settings.class_weight is not None:
            raise ValueError("fit_rows does not support class_weight: use class_weight=None and row weights.")
        labels = np.asarray(classes)
        if labels.ndim != 1 or not np.array_equal(labels, np.unique(labels)):
            raise ValueError(f"classes must be labels in sorted order, each once, got {classes!r}.")
        if len(labels) != rows.n_classes:
            raise ValueError(f"rows have {rows.n_classes} classes, but classes names {len(labels)}.")
        plans = settings.hash_folds()
        with self._all_or_nothing():
            for name in ("feature_names_in_", "vectorizer_"):
                self.__dict__.pop(name, None)
            with settings.told():
                learnt = learn(settings, Data(rows, plans, labels, schema))
            settings.say(learnt.summary())
            return self._take(learnt)

    @available_if(_has_sums_that_add)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Update the model with a batch of rows; any batching gives the same model.

        A model that begins with ``partial_fit`` selects all features, has the default smoothing of its family
        and raw evidence, unless the parameters are set or :meth:`choose_n_features` is called. A model that
        begins with ``fit`` keeps the choices and the calibration of ``fit``. If ``structure="auto"`` chose
        joint densities, it warns and continues with independent features, because batches only add to sums of
        single features: with the independent model that was compared on held-out rows or, if there is none,
        like a model that begins with ``partial_fit``.

        The vocabulary of documents is that of the first batch, or of ``fit``: terms that occur only in later
        batches are ignored. Set a vectorizer with a ``vocabulary`` if the terms are known in advance.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D), or N documents
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
            settings, before = self._asked(), getattr(self, "_learnt", None)
            X = vectorize(self, X, y, reset=before is None)
            if before is None:
                columns = settings.reads_columns(X)
            else:
                before = before.for_batches(settings.usual(self._family, self.n_features_in_))
                _, columns = self.moments_, before.schema is not None
            given = labelled(self, X, y, sample_weight, columns, reset=before is None)
            given = given.with_class_weight(settings.class_weight)
            settings.require_mixable(columns)
            return self._take(added(settings, before, batch_of(settings, given, X, classes, before)))

    def choose_n_features(
        self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None, groups: Any = None
    ) -> Self:
        """Choose the number of features of a model built by ``partial_fit``, on folds of these rows.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for :meth:`fit`; all labels must have been seen before.

        Returns
        -------
        MaxDiscClassifier
            This estimator, with ``path_``, ``n_selected_`` and, if "auto", ``smoothing_`` chosen anew.
        """
        _, settings, learnt = self.moments_, self._asked(), self._learnt
        settings.require_single_features("choose_n_features")
        given = self._known(X, y, sample_weight)
        kept = np.flatnonzero(given.weights)
        if len(np.unique(given.labels[kept])) < 2:
            raise ValueError("y has only one class: the number of features is chosen on rows of two or more.")
        plans = fold_plans(settings.cv, given.X, given.labels, groups, settings.random_state, kept)
        rows = given.with_weight().rows(learnt.classes, learnt.schema)
        data = Data(rows, plans, learnt.classes, learnt.schema, given.names)
        return self._take(chosen_anew(settings, learnt, data))

    def _asked(self) -> Settings:
        """Return the validated parameters; raise ``ValueError`` for invalid ones."""
        return Settings.of(self.get_params(deep=False))

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave the estimator as it was if anything goes wrong inside.

        BLAS has one thread unless more are asked for: most products are small, and where other processes
        work too, its threads wait for each other for several times as long as the products take.
        """
        before = self.__dict__.copy()
        try:
            with limited_threads(given_jobs(self.n_jobs)), limited_blas(asked_threads() or 1):
                yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _take(self, learnt: FittedModel) -> Self:
        """Set the fitted attributes, except names."""
        self._learnt = learnt
        self.classes_ = learnt.classes
        self.class_prior_ = learnt.class_prior
        self.families_ = learnt.families
        self.n_features_in_ = learnt.n_features
        self.n_selected_ = learnt.choice.size
        self.smoothing_ = learnt.choice.smoothing
        self.path_ = learnt.choice.path
        self.joint_ = learnt.joint
        self.evidence_ = learnt.evidence
        self.n_iter_, self.unlabelled_weight_ = learnt.n_iter, learnt.unlabelled_weight
        return self

    # ------------------------------------------------------------------ what was learnt

    @property
    def moments_(self) -> AnyMoments:
        """Everything learnt from the data."""
        check_is_fitted(self)
        if self._learnt.moments is None:
            raise NotFittedError(WITHOUT_MOMENTS)
        return self._learnt.moments

    @property
    def scores_(self) -> Floats:
        """The divergence of each feature, shape (D,); without moments, NaN for those not selected."""
        check_is_fitted(self)
        return self._learnt.scores

    @property
    def ranking_(self) -> Integers:
        """Columns, best first, shape (D,); without moments, only the selected ones."""
        return self._model[0].order

    @property
    def stability_(self) -> Floats | None:
        """Share of the folds' models that select each feature, shape (D,), as for ``scores_``."""
        check_is_fitted(self)
        return self._learnt.stability

    @property
    def decision_(self) -> Decision:
        """The Bayes decision on the selected features, with calibrated evidence."""
        check_is_fitted(self)
        return self._learnt.decision

    @property
    def feature_importances_(self) -> Floats:
        """Shares of the selected features in the sum of their divergences, shape (D,)."""
        kept = np.where(self._get_support_mask(), self.scores_, 0.0)
        total = kept.sum()
        return kept / total if total > 0 else kept

    @property
    def coef_(self) -> Floats:
        """Coefficients of the columns of X for each class, if scores are linear in X; shape (C, D)."""
        return self._linear[0]

    @property
    def intercept_(self) -> Floats:
        """The score of a row of zeros for each class, if scores are linear in X; shape (C,)."""
        return self._linear[1]

    @property
    def _linear(self) -> tuple[Floats, Floats]:
        return coefficients(self.decision_, self.n_features_in_)

    def _get_support_mask(self) -> Booleans:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=np.bool_)
        mask[self.decision_.columns] = True
        return mask

    @property
    def _model(self) -> tuple[FeatureRanking, Decision]:
        """The ranking and the decision before calibration."""
        check_is_fitted(self)
        return self._learnt.model

    @property
    def _family(self) -> AnyFamily:
        """The family of all features, or the families of the columns of a table."""
        return self._learnt.family

    @property
    def _schema(self) -> Schema | None:
        """The schema of the columns of a table; None if there is one family."""
        return self._learnt.schema if hasattr(self, "_learnt") else None

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        told = super().__repr__(N_CHAR_MAX)
        if getattr(self, "joint_", None) is not None:
            return f"{told} of joint densities"
        if self._schema is None or plain_family(self._schema) is not None:
            return told
        counts = (f"{len(columns)} {family.name}" for family, columns in self._schema.families_of_columns())
        return f"{told} of {', '.join(counts)}"

    def _html_repr(self) -> str:
        """Return HTML for notebooks: a view of the fitted model, or scikit-learn's diagram before the fit."""
        if not hasattr(self, "_learnt"):
            return super()._html_repr()
        from maxdisc.inspection.fitted_view import fitted_html

        return fitted_html(self, super().__repr__())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        are_told_apart = (
            isinstance(self.family, Mapping)
            or is_categorical(self.family)
            or self.categorical_features is not None
            or self.missing == "informative"
        )
        # Sparse rows have one family, of numbers.
        tags.input_tags.sparse, tags.input_tags.string = not are_told_apart, are_told_apart
        # So many features as were asked for may be too few.
        tags.classifier_tags.poor_score = not isinstance(self.n_features, str)
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        family = FAMILIES.get(self.family) if isinstance(self.family, str) else self.family
        support: Support | None = getattr(family, "support", None)
        tags.input_tags.positive_only = support is not None and support.low >= 0
        is_solved = self.evidence in ("auto", "refined")
        return with_exceptions(tags, "hashes", *(["solver"] if is_solved else []))

    # ------------------------------------------------------------------ selected features

    def transform(self, X: Any) -> Matrix:
        """Reduce rows, or the word counts of documents, to the selected features.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D), or N documents
            Rows.

        Returns
        -------
        ndarray or sparse matrix of shape (N, K)
            The selected features, in the order of the columns of X.
        """
        check_is_fitted(self)
        require_indices(X)
        return super().transform(vectorize(self, X))

    def inverse_transform(self, X: Any) -> Matrix:
        """Return rows of all features, with zeros for unselected ones.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (N, K)
            The selected features, as ``transform`` returns them.

        Returns
        -------
        ndarray or sparse matrix of shape (N, D)
            Rows of all features.
        """
        require_indices(X)
        return super().inverse_transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the selected features, shape (K,); for a model of documents, their terms.

        Parameters
        ----------
        input_features : array-like of shape (D,), optional
            Names of all features, if the model was fitted without names.
        """
        if input_features is None and hasattr(self, "vectorizer_"):
            input_features = feature_names(self)
        return super().get_feature_names_out(input_features)

    # ------------------------------------------------------------------ rows

    def _rows(self, X: Any) -> Matrix:
        """Return validated rows to predict."""
        check_is_fitted(self)
        X = vectorize(self, X)
        schema = self._learnt.schema
        wanted = None if schema is None else self._learnt.decision.columns
        rows = unlabelled_rows(self, X, schema, wanted)
        self._family.require(rows, names_of(self))
        return rows

    def _cells(self, X: Any) -> Cells:
        """Return the cells of the rows of a table."""
        return cells(self, X, reset=False)

    def _known(self, X: Any, y: Any, sample_weight: Any) -> Labelled:
        """Return further rows, all of whose labels are known."""
        X = vectorize(self, X)
        given = labelled(self, X, y, sample_weight, self._schema is not None, reset=False)
        self._learnt.require_seen(given.labels)
        return given.with_class_weight(self._asked().class_weight)

    # ------------------------------------------------------------------ prediction

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Return log prior plus calibrated evidence; its softmax is ``predict_proba``.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D), or N documents
            Rows.

        Returns
        -------
        ndarray of shape (N, C)
            Scores, up to a term common to all classes; see :meth:`score_samples` for densities.
        """
        return self._scores(self._rows(X))

    def _scores(self, rows: Matrix) -> Floats:
        with limited_threads(given_jobs(self.n_jobs)), np.errstate(over="ignore", invalid="ignore"):
            scores = self._learnt.decision.scores(rows)
        lost = ~np.isfinite(scores.max(axis=1))
        if lost.any():
            raise ValueError(f"row {np.argmax(lost)} has values too far from the training data to be scored.")
        return scores

    def predict(self, X: Any) -> npt.NDArray[np.generic]:
        """Return the most probable label of each row, shape (N,); ties go to the first in ``classes_``."""
        scores = self.predict_joint_log_proba(X)
        return self.classes_[scores.argmax(axis=1)]

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the log of the posterior probabilities, shape (N, C)."""
        return self._log_shares(self._rows(X))

    def _log_shares(self, rows: Matrix) -> Floats:
        scores = self._scores(rows)
        # The maximum is subtracted first: the log of a sum vanishes compared with scores of 1e18.
        scores = scores - scores.max(axis=1, keepdims=True)
        return np.asarray(scores - log_sum_exp(scores)[:, None])

    def predict_proba(self, X: Any) -> Floats:
        """Return posterior probabilities, shape (N, C)."""
        return np.exp(self.predict_log_proba(X))

    def score_samples(self, X: Any) -> Floats:
        """Return the log density of the selected features of each row under the mixture of all classes.

        For an average of joint models, it is that of the best of them.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D), or N documents
            Rows.

        Returns
        -------
        ndarray of shape (N,)
            Log density, or log probability for the families of counts; missing cells are integrated out.
        """
        rows = self._rows(X)
        X, density = self._learnt.scaled(rows), self._learnt.density
        with limited_threads(given_jobs(self.n_jobs)):
            return np.asarray(logsumexp(density.scores(X), axis=1) + density.log_base(X))

    def novelty(self, X: Any) -> Floats:
        """Return how well rows fit the known classes, as p-values of belonging to one of them.

        About 1 % of the rows of known classes have a p-value of at most 0.01. So ``novelty(X) <= 0.01`` flags
        rows that fit worse than 99 % of them. The smallest p-value is 1 / (n + 1), for n held-out rows.
        ``prior`` has no effect. Missing cells carry no evidence, so rows with fewer cells than the training
        rows fit less well; a row without any cell has p-value 1.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D), or N documents
            Rows.

        Returns
        -------
        ndarray of shape (N,)
            In (0, 1]; small for rows unlike all training rows, or between the classes.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from maxdisc import MaxDiscClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = MaxDiscClassifier().fit(X, y)
        >>> model.novelty([[5.0, 3.4, 1.5, 0.2], [50.0, 34.0, 15.0, 2.0]]) > 0.01
        array([ True, False])
        """
        return self._familiarity(self._rows(X))

    def _familiarity(self, rows: Matrix) -> Floats:
        with limited_threads(given_jobs(self.n_jobs)):
            return self._learnt.familiarity(rows)

    def explain(self, X: Any) -> Explanation:
        """Decompose the scores of some rows by feature; memory grows with N x C x K.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (N, D), or N documents
            Rows.

        Returns
        -------
        Explanation
            ``total`` of shape (N, C) is ``predict_joint_log_proba(X)``, and exactly the sum of ``prior`` of
            shape (C,), ``contributions`` of shape (N, C, K), one for each of the selected features in
            ``names``, and ``length`` of shape (N, C), the contribution of the number of selected features of
            the row, if weights depend on it (else 0); ``classes`` are the labels. ``top(row, n=5)`` lists the
            features with the largest log-odds of the predicted class against the runner-up, as pairs of name
            and log-odds. Notebooks show the first rows as bars and, for documents, as marked words; ``print``
            shows them as text.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from maxdisc import MaxDiscClassifier
        >>> iris = load_iris()
        >>> model = MaxDiscClassifier(n_features=2).fit(iris.data, iris.target)
        >>> explanation = model.explain(iris.data[:1])
        >>> explanation.contributions.shape
        (1, 3, 2)
        >>> [name for name, _ in explanation.top(0)]
        ['x2', 'x3']
        """
        rows = self._rows(X)
        names = feature_names(self)[self.decision_.columns]
        with limited_threads(given_jobs(self.n_jobs)):
            explanation = Explanation.of(self.decision_, rows, names, self.classes_)
        spans = getattr(getattr(self, "vectorizer_", None), "spans", None)
        documents = None if spans is None else texts(X)
        return explanation if documents is None else replace(explanation, documents=documents, spans=spans)

    def sample(self, n: int, y: Any = None) -> tuple[npt.NDArray[Any], npt.NDArray[np.generic]]:
        """Draw rows from the model: a class by the prior, then every feature from that class's density.

        With joint densities, the selected features are drawn jointly, the others independently.

        Parameters
        ----------
        n : int
            How many rows.
        y : label, optional
            Draw from this class only.

        Returns
        -------
        X : ndarray of shape (n, D)
            Rows with all features; for mixed columns, objects: numbers, and categories by name.
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
            codes = np.full(n, self._learnt.position(y))
        return drawn(self._learnt, moments, codes, rng), self.classes_[codes]

    def unseen_categories(self, X: Any) -> Integers:
        """Count the cells of each column with a category that no training row had, shape (D,).

        Such cells carry no evidence.

        Parameters
        ----------
        X : frame or array of shape (N, D)
            Rows.
        """
        check_is_fitted(self)
        if self._schema is None:
            return np.zeros(self.n_features_in_, dtype=np.intp)
        return self._schema.unseen(self._cells(vectorize(self, X)))

    def ranking_table(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        n: int | None = None,
        n_permutations: int | None = None,
    ) -> Any:
        """Return the features, best first, with p-values, q-values, stability and moments by class.

        P-values use unsmoothed moments. Without rows, they are exact for features that are Gaussian or
        exponential, corrected for dispersion for counts and presence, and unknown (NaN) for other families
        and for models that learnt from unlabelled rows. With rows, they are by permutation, for any
        distribution.

        Parameters
        ----------
        X, y, sample_weight : optional
            The rows of ``fit``, or others, whose labels are permuted.
        n : int, optional
            Number of features; by default all. P- and q-values are always computed among all features.
        n_permutations : int, optional
            Number of permutations.

        Returns
        -------
        pandas.DataFrame
            A row for each feature: ``feature``, ``kept``, ``score``, ``debiased`` (the js_gm minus its
            expectation by chance), ``p``, ``q`` (the false discovery rate, by Benjamini and Hochberg),
            ``stability`` and for each class ``direction[label]``, ``mean[label]`` and for Gaussian features
            ``deviation[label]``. Raises ``ImportError`` without pandas.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from maxdisc import MaxDiscClassifier
        >>> iris = load_iris(as_frame=True)
        >>> table = MaxDiscClassifier().fit(iris.data, iris.target_names[iris.target]).ranking_table()
        >>> print(table["feature"][0], table["q"][0] < 1e-80, table["direction[setosa]"][0])
        petal length (cm) True -1
        """
        make_frame = frame_class()  # whatever takes long comes later
        moments, learnt = self.moments_, self._learnt
        if X is None:
            found = told_significance(learnt)
        elif y is None:
            raise ValueError("permuting labels needs the labels of the rows: pass y with X.")
        else:
            found = self._permuted(X, y, sample_weight, n_permutations)
        return make_frame(ranking_table(learnt, moments, found, feature_names(self), n))

    def _permuted(
        self, X: Any, y: Any, sample_weight: npt.ArrayLike | None, n_permutations: int | None
    ) -> Significance:
        """Return p-values by permutation of the labels of rows."""
        learnt = self._learnt
        rows = self._known(X, y, sample_weight).with_weight().rows(learnt.classes, learnt.schema)
        seed = int(check_random_state(self.random_state).randint(2**31))
        with limited_threads(given_jobs(self.n_jobs)):
            return permuted(learnt, rows, n_permutations, seed)
