"""From a source of rows to what was learnt from it: counting, choosing on folds, weighing the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from maxdisc.calibration.evidence import Evidence, calibrate
from maxdisc.calibration.refinement import choose_size, refine
from maxdisc.conditional.coordinate_ascent import MANY_PRODUCTS
from maxdisc.decisions.linear import LinearDecision
from maxdisc.densities.class_densities import class_prior
from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.divergences.redundancy import Overlap, Redundancy
from maxdisc.families import Family
from maxdisc.families.blocks import AnyFamily, AnyMoments, Columns, MixedMoments
from maxdisc.fitting.fitted_model import FittedModel, require_summable, require_weight
from maxdisc.fitting.joint_learning import learn_jointly
from maxdisc.fitting.settings import Settings
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.numerics.matrices import is_sparse
from maxdisc.numerics.user_warnings import notice
from maxdisc.rows.row_sources import ArrayRows, Folds, Rows
from maxdisc.rows.schema import Schema
from maxdisc.selection.fold_models import Choice, FoldModels, choose, refined_sizes, size_grid
from maxdisc.selection.held_out import band_edges, enough_rows
from maxdisc.selection.sparse_fold_models import SparseFoldModels, suits

Models: TypeAlias = FoldModels | SparseFoldModels

#: Refined evidence keeps at most this many numbers in single precision, one for each row and class (0.5 GB).
MOST_DUALS = 2**27
#: Up to this many features are all kept in refined evidence, which corrects those that are not needed.
FEW_FEATURES = 64


@dataclass(frozen=True, eq=False)
class Data:
    """Labelled rows with folds, classes, schema and names."""

    rows: Rows
    plans: Sequence[Folds]
    classes: npt.NDArray[np.generic]  # (C,)
    schema: Schema | None = None
    names: npt.NDArray[np.generic] | None = None  # (D,)
    family: AnyFamily | None = None

    def family_under(self, settings: Settings) -> AnyFamily:
        """The family of all features, or the families of the columns."""
        if self.schema is not None:
            return self.schema.family
        return self.family or settings.family_of(self.rows.example())


def learn(settings: Settings, data: Data) -> FittedModel:
    """Fit labelled rows and build the decision, so that its errors are raised here."""
    rows, classes = data.rows, data.classes
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}: a classifier needs two classes or more."
        )
    if settings.joint is not None:
        return learn_jointly(settings, rows, data.plans, classes, data.names)
    family = data.family_under(settings)
    models: Models | None = None
    evidence: Evidence | None = None
    is_refined = False
    if data.plans:
        models = fold_models(settings, rows, family, data.plans, classes)
        # Before anything is tried on folds, so that what is wrong is said by its name.
        parts = models.parts[0] if isinstance(models, FoldModels) else [models.total()]
        require_summable(parts, family, data.names)
        require_weight(parts)
        choice, evidence, is_refined = settle(settings, rows, models)
        moments = models.total()
    else:
        moments = rows.moments(cast(Family, family))[0]
        choice = settings.usual(family, moments.n_features)
    require_summable([moments], family, data.names)
    require_weight([moments])
    learnt = FittedModel.of(settings, family, moments, classes, choice, evidence, data.schema, data.names)
    if not is_refined:
        models = None  # which may take much memory
    learnt = modelled(settings, learnt, rows)
    if models is not None:
        learnt = refined(settings, learnt, models, rows)
    _ = learnt.decision
    return learnt


def modelled(settings: Settings, learnt: FittedModel, rows: Rows) -> FittedModel:
    """With the model, made while there are rows to count products of."""
    redundancy = settings.reranking(learnt.n_features)

    def reorder(ranking: FeatureRanking) -> FeatureRanking:
        return _reranked(cast(Redundancy, redundancy), rows, ranking)

    return replace(learnt, made=learnt.modelled(None if redundancy is None else reorder))


def _reranked(redundancy: Redundancy, rows: Rows, ranking: FeatureRanking) -> FeatureRanking:
    """The ranking of the model itself, by one more pass over all the rows."""
    columns = redundancy.candidates([ranking.order])
    return redundancy.reranked(ranking, columns, Overlap.of(rows.products(columns)[0]))


def added(settings: Settings, before: FittedModel | None, data: Data) -> FittedModel:
    """Return the model of all batches so far: the earlier moments plus those of ``data``."""
    rows, union = data.rows, data.classes
    family = data.family_under(settings)
    moments: AnyMoments = rows.moments(cast(Family, family))[0]
    require_summable([moments], family, data.names)
    given = (data.schema, data.names)
    if before is None:
        choice = settings.usual(family, moments.n_features)
        return FittedModel.of(settings, family, moments, union, choice, None, *given)
    positions, earlier = np.searchsorted(union, before.classes), before.moments
    if isinstance(earlier, MixedMoments) and data.schema is not None and before.schema is not None:
        earlier = data.schema.moved(earlier, before.schema)
    moments = cast(AnyMoments, cast(Any, earlier).reindexed(positions, len(union)) + moments)
    known = before.evidence
    evidence = known.reindexed(positions, len(union)) if isinstance(known, Evidence) else None
    return FittedModel.of(settings, family, moments, union, before.settled, evidence, *given).soft_as(before)


def chosen_anew(settings: Settings, before: FittedModel, data: Data) -> FittedModel:
    """Choose on folds of some rows what earlier batches left open; what these have taught stays."""
    family, moments = before.family, cast(AnyMoments, before.moments)
    models = fold_models(settings, data.rows, family, data.plans, before.classes)
    # These rows need not be all that taught the densities: features are corrected only if asked for.
    careful = replace(settings, evidence="calibrated") if settings.evidence == "auto" else settings
    choice, evidence, is_refined = settle(careful, data.rows, models)
    given = (before.classes, choice, evidence, before.schema, data.names)
    learnt = FittedModel.of(settings, family, moments, *given).soft_as(before)
    return refined(settings, learnt, models, data.rows) if is_refined else learnt


def fold_models(
    settings: Settings,
    rows: Rows,
    family: AnyFamily,
    plans: Sequence[Folds],
    classes: npt.NDArray[np.generic],
) -> Models:
    """The models of every fold, by the quickest way that these rows allow."""
    prior, divergence = settings.prior_among(classes), settings.divergence
    redundancy = settings.reranking(rows.example().shape[1])
    if (
        isinstance(family, Family)
        and isinstance(rows, ArrayRows)
        and redundancy is None
        and suits(rows, family, divergence)
    ):
        return SparseFoldModels(rows, family, prior, plans)
    most = 0 if settings.evidence == "raw" else enough_rows(rows.n_classes, sum(p.count for p in plans))
    return FoldModels.of(rows, family, divergence, prior, plans, redundancy, most)


def settle(settings: Settings, rows: Rows, models: Models) -> tuple[Choice, Evidence | None, bool]:
    """What is chosen on the folds, how much the evidence counts, and whether it is to be refined.

    Warns if evidence of the kind that was asked for cannot be learnt. Calibrated evidence that will be
    refined has all features: how many are kept is chosen then.
    """
    hindrance = obstacle(rows, models) if settings.may_refine else None
    is_refined = hindrance is None and refines(settings, rows)
    choice, evidence = settled(settings, models, is_refined)
    if evidence is None and settings.evidence != "raw":
        notice(
            f"evidence={settings.evidence!r} is learnt from held-out rows, at least two of each of two "
            "classes and more than there are bands and classes; these are too few: it is raw."
        )
    elif hindrance is not None and refines(settings, rows):
        notice(f"evidence is calibrated: {hindrance}.")
    return choice, evidence, is_refined


def settled(settings: Settings, models: Models, keep_all: bool = False) -> tuple[Choice, Evidence | None]:
    """What is chosen on the folds, and how much the evidence counts, if that can be learnt."""
    smoothings = (settings.smoothing,) if settings.smoothing else models.family.smoothings
    size = settings.size(models.n_features)
    if settings.evidence != "raw":
        prior = class_prior(models.total(), None)
        edges = band_edges(size or models.n_features)
        found = calibrate(models, smoothings, edges, prior, settings.rule, size is not None or keep_all)
        if found is not None:
            return models.with_stability(found[0]), found[1]
    sizes = np.array([size]) if size else size_grid(models.n_features)
    return models.with_stability(choose(models, smoothings, sizes, settings.rule)), None


def obstacle(rows: Rows, models: Models) -> str | None:
    """Return why evidence cannot be refined, in words for the user, or None if it can."""
    if (
        not isinstance(rows, ArrayRows)
        or rows.labels.ndim != 1
        or len(models.plans) != 1
        or models.plans[0].count < 3
        or isinstance(models.family, Columns)
    ):
        return (
            "refined evidence needs the rows in memory, of one family, and at least three folds that share "
            "them out"
        )
    n_duals = len(rows.labels) * rows.n_classes
    if n_duals > MOST_DUALS:
        return (
            f"refined evidence keeps one number for each row and class, here {n_duals:,}, more than "
            f"{MOST_DUALS:,}"
        )
    return None


def refines(settings: Settings, rows: Rows) -> bool:
    """Return whether evidence is refined if it can: where it was asked for, or where it is worth its time."""
    if settings.evidence != "auto":
        return settings.evidence == "refined"
    # Few cells take longer to refine than to fit, and teach single features little.
    X = rows.X if isinstance(rows, ArrayRows) else None
    return X is not None and is_sparse(X) and X.nnz * rows.n_classes >= MANY_PRODUCTS


def refined(settings: Settings, learnt: FittedModel, models: Models, rows: Rows) -> FittedModel:
    """Return the model with as many features as refined evidence asks for, and these corrected."""
    if not isinstance(learnt.evidence, Evidence) or not isinstance(rows, ArrayRows):
        return learnt
    evidence, choice, n_features = learnt.evidence, learnt.settled, models.n_features
    shares = class_prior(models.total(), None)
    # With all features: each fold selects its own.
    ranking, decision = learnt.model[0], cast(LinearDecision, learnt.model[1])
    if choice.size < n_features:
        given = (cast(Family, learnt.family), cast(ClassMoments, learnt.moments), choice.smoothing)
        decision = LinearDecision.of(*given, ranking.order, learnt.prior)
    found = None
    if settings.size(n_features) is None and n_features > FEW_FEATURES:
        sizes = refined_sizes(n_features)
        found = choose_size(models, rows, decision, choice.smoothing, sizes, settings.rule)
    if found is not None:
        size, path = found
        fixed = calibrate(models, (choice.smoothing,), band_edges(size), shares, fixed=True)
        if fixed is not None:
            evidence, choice = fixed[1], models.with_stability(Choice(choice.smoothing, size, path))
    evidence = refine(models, rows, decision, choice.smoothing, evidence, shares)
    # A copy, as the features that are not selected may take much memory.
    selected = decision.best_first(np.arange(choice.size)) if choice.size < n_features else decision
    return replace(learnt, choice=choice, made=(ranking, selected), evidence=evidence)
