"""All that fitting leaves behind, as one value: the estimator replaces it whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from maxdisc.calibration.evidence import Evidence
from maxdisc.calibration.novelty import Novelty
from maxdisc.decisions.by_length import LengthDecision, scale_selected
from maxdisc.decisions.joint import Joint, JointDecision
from maxdisc.decisions.joint_average import AveragedDecision, AveragedEvidence
from maxdisc.decisions.linear import LinearDecision, Reorder
from maxdisc.decisions.mixed import MixedDecision, ranked_model, unknown_model
from maxdisc.densities.class_densities import ClassDensities, class_prior, density_blocks
from maxdisc.divergences.class_divergences import Divergence, FeatureRanking
from maxdisc.families import Family
from maxdisc.families.blocks import AnyFamily, AnyMoments, Block, Columns, MixedMoments
from maxdisc.fitting.settings import Settings
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.numerics.matrices import Floats, Integers, Matrix, column_name
from maxdisc.numerics.user_warnings import notice
from maxdisc.rows.schema import Schema
from maxdisc.rows.validation import FEWEST_STEPS, has_lost_digits, require_representable
from maxdisc.selection.fold_models import Choice
from maxdisc.significance.table import Significance, moment_p_values

Generative: TypeAlias = LinearDecision | MixedDecision | JointDecision | AveragedDecision
Decision: TypeAlias = Generative | LengthDecision
#: Decisions that are made from moments alone, when they are first asked for.
FromMoments: TypeAlias = LinearDecision | MixedDecision

# Decisions of no more weights than this (128 MB) are kept for the next rows.
KEPT_CELLS = 2**24


#: What is said of a model from a file that does not have them.
WITHOUT_MOMENTS = (
    "this model was saved without its moments: it predicts and explains, but partial_fit, choose_n_features, "
    "sample, ranking_table, q-values and densities of features that were not selected need them. Fit again, "
    "and save with moments=True (maxdisc fit --keep-moments)."
)
#: What a flat smoothing draws towards: the mean of each statistic over all features, and a share of cells.
Level: TypeAlias = tuple[Floats, float]


@dataclass(frozen=True, eq=False)
class Selected:
    """What a file without moments holds of the selected features, in the order of the decision.

    The moments, block by block, are those of the decision's cells; None in files that have none.
    """

    scores: Floats  # (K,)
    stability: Floats | None  # (K,)
    moments: Sequence[ClassMoments | None] | None
    levels: Sequence[Level | None]


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Fitted state of a classifier; ranking and decision are computed from it on demand."""

    family: AnyFamily
    classes: npt.NDArray[np.generic]  # (C,)
    class_prior: Floats  # (C,)
    prior: Floats | None  # (C,)
    divergence: Divergence
    choice: Choice
    n_features: int
    moments: AnyMoments | None
    made: tuple[FeatureRanking, Generative] | None = None
    joint: Joint | None = None
    evidence: Evidence | AveragedEvidence | None = None
    made_unknown: FromMoments | None = None
    schema: Schema | None = None
    names: npt.NDArray[np.generic] | None = None  # (D,)
    n_iter: int = 0
    unlabelled_weight: float = 0.0
    selected: Selected | None = None
    #: What is usual of held-out rows by a joint density; other models have it with their evidence.
    usual: Novelty | None = None
    #: The model of independent features that held-out rows were compared with; not in files.
    alone: FittedModel | None = None

    @classmethod
    def of(
        cls,
        settings: Settings,
        family: AnyFamily,
        moments: AnyMoments,
        classes: npt.NDArray[np.generic],
        choice: Choice,
        evidence: Evidence | None = None,
        schema: Schema | None = None,
        names: npt.NDArray[np.generic] | None = None,
    ) -> FittedModel:
        """From moments of independent features, and what was chosen."""
        prior = settings.prior_among(classes)
        return cls(
            family,
            classes,
            class_prior(moments, prior),
            prior,
            settings.divergence,
            choice,
            moments.n_features,
            moments,
            evidence=evidence,
            schema=schema,
            names=names,
        )

    def soft_as(self, before: FittedModel) -> FittedModel:
        """With the soft labels that an earlier model had learnt from."""
        return replace(self, n_iter=before.n_iter, unlabelled_weight=before.unlabelled_weight)

    def for_batches(self, usual: Choice) -> FittedModel:
        """The model that further batches are added to: of independent features, as chosen or as usual."""
        if self.joint is None:
            return self
        notice(
            "partial_fit goes on with independent features: batches do not add to joint densities. Use "
            "structure='independent' to fit them from the start."
        )
        return self.alone or replace(self, choice=usual, made=None, joint=None, evidence=None, usual=None)

    @property
    def families(self) -> list[tuple[Family, slice | Integers]]:
        """The families and the columns they describe."""
        if isinstance(self.family, Columns):
            assert self.schema is not None  # which the columns were read by
            return list(self.schema.families_of_columns())
        return [(self.family, slice(0, self.n_features))]

    @property
    def settled(self) -> Choice:
        """What was chosen, without what only the rows of the choice say."""
        return replace(self.choice, stability=None)

    @cached_property
    def model(self) -> tuple[FeatureRanking, Generative]:
        """The ranking and the decision from all the rows, before evidence is weighed."""
        return self.made if self.made is not None else self.modelled()

    def modelled(self, reorder: Reorder | None = None) -> tuple[FeatureRanking, FromMoments]:
        """Made from the moments, and re-ranked, if that is asked for."""
        assert self.moments is not None  # a file without moments has the model itself
        family, choice = self.family, self.choice
        given = (self.divergence, self.prior, choice.size, reorder)
        ranking, decision = ranked_model(family, self.moments, choice.smoothing, *given)
        unsolved = f"no {family.name} density was found", "they score 0 and do not count."
        near = f"no {family.name} density has the moments of some class"
        adjusted = near, "the densities nearest to them were taken."
        for columns, (what, then) in ((ranking.unsolved, unsolved), (ranking.adjusted, adjusted)):
            if len(columns):
                first = column_name(int(columns[0]), self.names)
                notice(f"{what} for {len(columns)} features, first {first}: {then}", ConvergenceWarning)
        return ranking, decision

    @property
    def columns(self) -> Integers:
        """The selected features, best first, shape (K,)."""
        return self.model[1].columns

    @property
    def scores(self) -> Floats:
        """The divergence of each feature, shape (D,); NaN where a file without moments does not have it."""
        return self.model[0].scores if self.selected is None else self._spread(self.selected.scores)

    @property
    def stability(self) -> Floats | None:
        """The share of folds that select each feature, shape (D,); NaN as for the scores."""
        if self.selected is None or self.selected.stability is None:
            return self.choice.stability
        return self._spread(self.selected.stability)

    @property
    def significance(self) -> Significance:
        """P-values as far as moments tell, of all features; q-values are of all of these, or not known."""
        unknown = np.full(self.n_features, np.nan)
        if self.selected is not None:
            found = Significance.of(self._selected_p_values(self.selected), self.stability)
            return found if len(self.columns) == self.n_features else replace(found, q=unknown)
        # Soft labels were given by the very features that would be found to differ.
        known = self.moments is not None and not self.n_iter
        p = moment_p_values(self.family, cast(AnyMoments, self.moments)) if known else unknown
        return Significance.of(p, self.stability)

    def _selected_p_values(self, selected: Selected) -> Floats:
        """P-values of the selected features, shape (D,); NaN for the others."""
        if selected.moments is None or self.n_iter:
            return np.full(self.n_features, np.nan)
        if not isinstance(self.family, Columns):
            return self._spread(moment_p_values(self.family, cast(ClassMoments, selected.moments[0])))
        some = [
            (Block(block.family, block.columns[cells]), part)
            for block, cells, part in zip(self.family.blocks, self._cells, selected.moments, strict=True)
            if part is not None
        ]
        family = Columns([block for block, _ in some], self.n_features)
        found = moment_p_values(family, MixedMoments([part for _, part in some], self.n_features))
        return self._spread(found[self.columns])

    def _spread(self, values: Floats) -> Floats:
        """Values of the selected features as values of all, shape (D,); NaN for the others."""
        out = np.full(self.n_features, np.nan)
        out[self.columns] = values
        return out

    def of_selected(self) -> Selected:
        """Return what is to be known of the selected features without the moments of the others."""
        if self.selected is not None:
            return self.selected
        columns, stability = self.columns, self.stability
        parts = None if self.moments is None else self._parts(self.moments)
        smoothing = self.choice.smoothing
        return Selected(
            self.scores[columns],
            None if stability is None else stability[columns],
            parts
            and [
                part.select(cells) if len(cells) else None
                for part, cells in zip(parts, self._cells, strict=True)
            ],
            [smoothing.level(part) for part in parts or ()],
        )

    @staticmethod
    def _parts(moments: AnyMoments) -> Sequence[ClassMoments]:
        return moments.parts if isinstance(moments, MixedMoments) else [moments]

    @property
    def _cells(self) -> list[Integers]:
        """The cells of each block that belong to selected features."""
        decision = self.model[1]
        if isinstance(decision, MixedDecision):
            return [part.decision.columns for part in decision.parts]
        return [decision.columns]

    def densities(self, block: int, cells: Integers) -> Iterator[tuple[slice, ClassDensities]]:
        """Yield the densities of some cells of a block, some at a time."""
        family = self.family.blocks[block].family if isinstance(self.family, Columns) else self.family
        given = (self.choice.smoothing, self.class_prior)
        if self.moments is not None:
            return density_blocks(family, self._parts(self.moments)[block], *given, cells)
        known, selected = self._cells[block], self.selected
        if selected is None or selected.moments is None or not np.isin(cells, known).all():
            raise NotFittedError(WITHOUT_MOMENTS)
        part = selected.moments[block]
        if part is None:
            return iter(())  # no cell of this block is selected
        order = np.argsort(known)
        places = order[np.searchsorted(known, cells, sorter=order)]
        return density_blocks(family, part, *given, places, selected.levels[block])

    @cached_property
    def decision(self) -> Decision:
        """The Bayes decision on the kept features, with their evidence weighed."""
        generative = self.model[1]
        if isinstance(self.evidence, Evidence):
            if isinstance(generative, LinearDecision):
                return self.evidence.applied(generative)
            if isinstance(generative, MixedDecision):
                return self.evidence.applied(generative)
        return generative

    @property
    def density(self) -> LinearDecision | MixedDecision | JointDecision:
        """The decision that has densities: of an average, that of its best joint model."""
        decision = self.model[1]
        return decision.density if isinstance(decision, AveragedDecision) else decision

    def scaled(self, X: Matrix) -> Matrix:
        """Return rows as the densities take them: scaled over the selected features, if that is so."""
        lengths = self.evidence.lengths if isinstance(self.evidence, Evidence) else None
        return X if lengths is None else scale_selected(X, self.columns, lengths.length)

    @property
    def novelty(self) -> Novelty | None:
        """What is usual of held-out rows, where there were any."""
        return self.evidence.novelty if isinstance(self.evidence, Evidence) else self.usual

    @cached_property
    def unknown(self) -> FromMoments:
        """The densities of unknown classes."""
        if self.made_unknown is not None:
            return self.made_unknown
        assert self.moments is not None  # a file without moments has them
        return unknown_model(cast(FromMoments, self.model[1]), self.moments, self.choice.smoothing)

    def familiarity(self, X: Matrix) -> Floats:
        """The p-values of "this row belongs to a known class", shape (N,)."""
        usual = self.novelty
        if usual is None:
            raise ValueError(self.why_not_novelty())
        if isinstance(self.density, JointDecision):
            (trust,), beside = usual.weights, self.density.unknown()
            known = trust * self.density.log_densities(X) + usual.level
            return usual.of_rows(known, trust * beside.log_densities(X) + usual.unknown)
        n_weights = len(self.classes) * len(self.model[1].columns)
        known, unknown = self._strangers if n_weights <= KEPT_CELLS else self._weighed_for(usual)
        X = self.scaled(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return usual.of_rows(known.scores(X), unknown.scores(X))

    @cached_property
    def _strangers(self) -> tuple[FromMoments, FromMoments]:
        return self._weighed_for(cast(Novelty, self.novelty))

    def _weighed_for(self, usual: Novelty) -> tuple[FromMoments, FromMoments]:
        """The decisions among the known classes and among the unknown ones, weighed for novelty."""
        generative = cast(FromMoments, self.model[1])
        evidence = replace(cast(Evidence, self.evidence), weights=usual.weights)
        strength = evidence.strength(len(generative.columns))
        with np.errstate(over="ignore", invalid="ignore"):
            known = replace(generative.weighed(strength, np.zeros(1)), log_prior=usual.level)
            return known, self.unknown.weighed(strength, usual.unknown)

    def summary(self) -> str:
        """Return what was chosen, and how well it did on held-out rows, in a line."""
        kind = "joint gaussian" if self.joint is not None else self.family.name
        selected = f"{self.choice.size:,} of {self.n_features:,} features selected, {kind} densities"
        evidence = self.evidence
        if evidence is None:
            return selected
        held_out = f"accuracy {evidence.accuracy:.4f}, log-loss {evidence.log_loss:.4f}"
        return f"{selected}; on held-out rows {held_out}"

    def why_not_novelty(self) -> str:
        """What keeps rows from being compared with held-out ones, and what to do about it."""
        return (
            "novelty compares rows with held-out ones, and this model has learnt from none: call fit with "
            "evidence='calibrated' and more rows, or choose_n_features after partial_fit."
        )

    def require_seen(self, labels: npt.NDArray[np.generic]) -> None:
        """Raise ``ValueError`` for labels that no row had."""
        unseen = np.setdiff1d(labels, self.classes)
        if len(unseen):
            raise ValueError(
                f"y has a label the model has not seen, {unseen[:1].tolist()[0]!r}: call partial_fit first."
            )

    def position(self, label: object) -> int:
        """Where a label stands among the classes; raise ``ValueError`` for one that is none of them."""
        found = np.flatnonzero(self.classes == label)
        if len(found):
            return int(found[0])
        shown, more = ", ".join(repr(c) for c in self.classes[:5].tolist()), len(self.classes) - 5
        listed = f"it has {shown}" + (f" and {more} more" if more > 0 else "")
        raise ValueError(f"{label!r} is not a class of this model: {listed}.")


class HoldsFittedModel:
    """Base of the estimator whose fitted state is a :class:`FittedModel`: rooms before it know it by this."""

    _learnt: FittedModel
    n_features_in_: int


def require_summable(
    parts: Sequence[AnyMoments], family: AnyFamily, names: npt.NDArray[np.generic] | None
) -> None:
    """Raise ``ValueError``, naming the column, for sums that double precision cannot hold."""
    for moments in parts:
        for part, one, called in _by_family(moments, family, names):
            require_representable(part, one.translates, called)


def warn_of_lost_digits(
    moments: AnyMoments, family: AnyFamily, names: npt.NDArray[np.generic] | None
) -> None:
    """Warn of features whose variation is lost in the rounding of large values."""
    lost: list[str] = []
    for part, one, called in _by_family(moments, family, names):
        if one.translates:
            lost += [column_name(int(at), called) for at in np.flatnonzero(has_lost_digits(part))]
    if lost:
        more = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
        notice(
            f"{lost[0]}{more} varies by less than {FEWEST_STEPS:,} times the rounding error of its values: "
            "subtract an offset before they are rounded."
        )


def _by_family(
    moments: AnyMoments, family: AnyFamily, names: npt.NDArray[np.generic] | None
) -> Iterator[tuple[ClassMoments, Family, npt.ArrayLike | None]]:
    """Yield the moments of each family with the names of its columns."""
    if isinstance(moments, MixedMoments):
        assert isinstance(family, Columns)
        for block, part in zip(family.blocks, moments.parts, strict=True):
            yield part, block.family, family.called(block, names)
    else:
        assert isinstance(family, Family)
        yield moments, family, names


def require_weight(parts: Sequence[AnyMoments]) -> None:
    """Raise ``ValueError`` for rows that weigh nothing."""
    if not any(part.weight.any() for part in parts):
        raise ValueError("the rows have no weight: at least one must weigh more than 0.")
