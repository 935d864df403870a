"""How many features refined evidence selects, and their correction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from maxdisc.calibration.by_length import SelectedFolds, Shorten, ThinnedRows, refine_by_length
from maxdisc.calibration.evidence import Evidence, calibrate
from maxdisc.calibration.refinement import Refinable, SizeChoice, choose_size, known_features, refine
from maxdisc.decisions.by_length import common_length
from maxdisc.decisions.linear import LinearDecision
from maxdisc.densities.class_densities import class_prior
from maxdisc.families import Family
from maxdisc.fitting.fitted_model import FittedModel
from maxdisc.fitting.settings import Settings
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.numerics.matrices import Floats, Integers
from maxdisc.rows.row_sources import ArrayRows
from maxdisc.selection.fold_models import Choice, FoldModels, refined_sizes
from maxdisc.selection.held_out import band_edges
from maxdisc.selection.sparse_fold_models import SparseFoldModels

#: Up to this many features are all kept in refined evidence, which corrects those that are not needed.
FEW_FEATURES = 64
#: At most this many features are selected unless ``rule="best"``: more cost much memory, time and disk
#: space, and change accuracy little.
MOST_FEATURES = 30_000


@dataclass(frozen=True, eq=False)
class Refinement:
    """A model of all features and those of its folds, and what makes of them a model of selected features."""

    settings: Settings
    learnt: FittedModel
    models: FoldModels | SparseFoldModels
    rows: ArrayRows
    shorten: Shorten | None = None
    #: In how many training rows a feature must be.
    least_rows: int | Integers = 1

    @property
    def refinable(self) -> Refinable:
        return cast(Refinable, self.models)

    @cached_property
    def shares(self) -> Floats:
        """The shares of the classes."""
        return class_prior(self.models.total(), None)

    @cached_property
    def decision(self) -> LinearDecision:
        """With all features, best first: each fold selects its own."""
        ranking, decision = self.learnt.model[0], cast(LinearDecision, self.learnt.model[1])
        if len(decision.columns) == self.models.n_features:
            return decision
        family, moments = cast(Family, self.learnt.family), cast(ClassMoments, self.learnt.moments)
        smoothing = self.learnt.choice.smoothing
        return LinearDecision.of(family, moments, smoothing, ranking.order, self.learnt.prior)

    @cached_property
    def length(self) -> float | None:
        """The Euclidean length of all rows, if they have one."""
        return common_length(self.rows.X)

    @property
    def can_choose(self) -> bool:
        """Whether rows have one length, and held-out rows choose the number of features."""
        return self.length is not None and self.size_choice is not None

    @cached_property
    def size_choice(self) -> SizeChoice | None:
        """The number of features that held-out rows ask for, if it is open and there are enough of them."""
        n_features, smoothing = self.models.n_features, self.learnt.choice.smoothing
        if self.settings.size(n_features) is not None or n_features <= FEW_FEATURES:
            return None
        is_bounded = self.settings.rule != "best"
        sizes = refined_sizes(min(n_features, MOST_FEATURES) if is_bounded else n_features)
        given = (self.refinable, self.rows, self.decision, smoothing, sizes)
        return choose_size(*given, self.settings.rule, self.least_rows, self.length)

    @property
    def loss(self) -> float:
        """The held-out log-loss with the number of features that is chosen."""
        return np.inf if self.size_choice is None else self.size_choice.loss

    def refined(self) -> FittedModel:
        """Return the model with as many features as held-out rows ask for, and these corrected."""
        choice, found = self.learnt.settled, self.size_choice
        if found is not None:
            choice = self.models.with_stability(Choice(choice.smoothing, found.size, found.path))
        by_length = None if self.length is None else self._by_length(choice, self.length)
        return by_length or self._of_any_length(choice, found is not None)

    def _by_length(self, choice: Choice, length: float) -> FittedModel | None:
        """Return the model of rows of one length; None if held-out rows are too few."""
        learnt, rows, ranking = self.learnt, self.rows, self.learnt.model[0]
        # Features that no row has come last: they would say nothing, but count as features of a row.
        every = np.ones(rows.X.shape[0], dtype=np.bool_)
        known = known_features(rows.X, every, 1)[ranking.order]
        ranking = replace(ranking, order=np.concatenate([ranking.order[known], ranking.order[~known]]))
        folds = SelectedFolds(
            self.refinable,
            rows,
            choice.smoothing,
            choice.size,
            length,
            ranking.order,
            learnt.prior,
            self.least_rows,
        )
        weighed = refine_by_length(folds, choice, self.shares, self.shorten or ThinnedRows(rows.X))
        if weighed is None:
            return None
        evidence, selected, unknown = weighed
        choice = replace(choice, size=len(selected.columns))
        made = (ranking, selected)
        return replace(learnt, choice=choice, made=made, made_unknown=unknown, evidence=evidence)

    def _of_any_length(self, choice: Choice, is_chosen: bool) -> FittedModel:
        """Return the model of rows as they are."""
        evidence, n_features = cast(Evidence, self.learnt.evidence), self.models.n_features
        if is_chosen:
            edges = band_edges(choice.size)
            if not np.array_equal(edges, evidence.edges):
                fixed = calibrate(self.models, (choice.smoothing,), edges, self.shares, fixed=True)
                evidence, choice = (evidence, self.learnt.settled) if fixed is None else (fixed[1], choice)
        decision = self.decision
        evidence = refine(self.refinable, self.rows, decision, choice.smoothing, evidence, self.shares)
        # A copy, as the features that are not selected may take much memory.
        if choice.size < n_features:
            decision = decision.best_first(np.arange(choice.size))
        return replace(self.learnt, choice=choice, made=(self.learnt.model[0], decision), evidence=evidence)
