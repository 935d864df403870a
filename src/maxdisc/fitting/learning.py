"""From a source of rows to what was learnt from it: counting, choosing on folds, weighing the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from maxdisc.calibration.evidence import Evidence, calibrate
from maxdisc.conditional.coordinate_ascent import MANY_PRODUCTS
from maxdisc.densities.class_densities import class_prior
from maxdisc.divergences.class_divergences import FeatureRanking, rao
from maxdisc.divergences.redundancy import Overlap, Redundancy
from maxdisc.families import Family, Poisson
from maxdisc.families.blocks import AnyFamily, AnyMoments, Columns, MixedMoments
from maxdisc.fitting.documents import TrainingDocuments
from maxdisc.fitting.fitted_model import (
    FittedModel,
    require_summable,
    require_weight,
    warn_of_lost_digits,
)
from maxdisc.fitting.joint_learning import learn_jointly
from maxdisc.fitting.refinement import FEW_FEATURES, Refinement
from maxdisc.fitting.settings import Settings
from maxdisc.numerics.matrices import is_sparse
from maxdisc.numerics.phases import begin_phase
from maxdisc.numerics.user_warnings import notice
from maxdisc.rows.row_sources import ArrayRows, FixedFolds, Folds, Rows
from maxdisc.rows.schema import Schema
from maxdisc.selection.fold_models import Choice, FoldModels, choose, size_grid
from maxdisc.selection.held_out import band_edges, enough_rows
from maxdisc.selection.sparse_fold_models import SparseFoldModels, suits

Models: TypeAlias = FoldModels | SparseFoldModels

#: Refined evidence keeps at most this many numbers in single precision, one for each row and class (0.5 GB).
MOST_DUALS = 2**27
#: At most this many classes of a single row are looked at.
MOST_SINGLE_ROWS = 100


@dataclass(frozen=True, eq=False)
class Data:
    """Labelled rows with folds, classes, schema and names."""

    rows: Rows
    plans: Sequence[Folds]
    classes: npt.NDArray[np.generic]  # (C,)
    schema: Schema | None = None
    names: npt.NDArray[np.generic] | None = None  # (D,)
    family: AnyFamily | None = None
    #: The documents that the rows are counts of.
    documents: TrainingDocuments | None = None

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
        begin_phase("fitting joint densities")
        learnt = learn_jointly(settings, rows, data.plans, classes, data.names)
        warn_of_lost_classes(learnt, rows)
        return learnt
    family = data.family_under(settings)
    if settings.chooses_divergence and isinstance(family, Poisson) and refines(settings, rows):
        # Of many classes it ranks rare words better; of two, both rank alike.
        settings = replace(settings, divergence=rao)
    models: Models | None = None
    evidence: Evidence | None = None
    is_refined = False
    if data.plans:
        begin_phase("counting on folds")
        models = fold_models(settings, rows, family, data.plans, classes)
        # Before anything is tried on folds, so that what is wrong is said by its name.
        parts = models.parts[0] if isinstance(models, FoldModels) else [models.total()]
        require_summable(parts, family, data.names)
        require_weight(parts)
        begin_phase("selecting features and calibrating on held-out rows")
        choice, evidence, is_refined = settle(settings, rows, models)
        moments = models.total()
    else:
        moments = rows.moments(cast(Family, family))[0]
        choice = settings.usual(family, moments.n_features)
    require_summable([moments], family, data.names)
    require_weight([moments])
    warn_of_lost_digits(moments, family, data.names)
    learnt = FittedModel.of(settings, family, moments, classes, choice, evidence, data.schema, data.names)
    if not is_refined:
        models = None  # which may take much memory
    learnt = modelled(settings, learnt, rows)
    if models is not None:
        begin_phase("correcting single features on held-out rows")
        learnt = _refined(settings, learnt, models, data)
    warn_of_lost_classes(learnt, rows)
    return learnt


def warn_of_lost_classes(learnt: FittedModel, rows: Rows) -> None:
    """Warn of classes of a single row that the model does not recognise even in that row."""
    decision = learnt.decision
    if not isinstance(rows, ArrayRows) or rows.labels.ndim != 1:
        return
    codes = rows.labels
    single = np.flatnonzero(np.bincount(codes, minlength=rows.n_classes)[codes] == 1)[:MOST_SINGLE_ROWS]
    if not len(single):
        return
    lost = single[decision.scores(rows.X[single]).argmax(axis=1) != codes[single]]
    if len(lost):
        first = learnt.classes[codes[lost[:1]]].tolist()[0]
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        notice(
            f"class {first!r}{more} has a single row, and even this row is predicted as another class: give "
            "it more rows, or leave it out."
        )


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
    warn_of_lost_digits(moments, family, data.names)
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
    return _refined(settings, learnt, models, data) if is_refined else learnt


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
        return SparseFoldModels(rows, family, prior, plans, divergence)
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
    """What is chosen on the folds, and how much the evidence counts, if that can be learnt.

    With ``keep_all``, the number of features is chosen later.
    """
    smoothings = (settings.smoothing,) if settings.smoothing else models.family.smoothings
    size = settings.size(models.n_features)
    if settings.evidence != "raw":
        prior = class_prior(models.total(), None)
        many = models.n_features
        if keep_all and many > FEW_FEATURES:
            # The rarest words ask for more smoothing than those that refined evidence will select.
            many = max(many // 2, FEW_FEATURES)
        edges = band_edges(size or many)
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


def _refined(settings: Settings, learnt: FittedModel, models: Models, data: Data) -> FittedModel:
    """Return the model with its evidence refined, on words and pairs if held-out rows ask for these."""
    rows, documents = data.rows, data.documents
    if not isinstance(learnt.evidence, Evidence) or not isinstance(rows, ArrayRows):
        return learnt
    words = Refinement(settings, learnt, models, rows, None if documents is None else documents.shorten)
    if documents is None or documents.wide is None or not words.can_choose:
        return words.refined()
    wide = replace(rows, X=documents.wide)
    plan = FixedFolds(models.plans[0].of(rows.X, rows.start), models.plans[0].count)
    family = cast(Family, models.family)
    wide_models = fold_models(settings, wide, family, [plan], data.classes)
    choice = Choice(learnt.choice.smoothing, wide_models.n_features)
    start = FittedModel.of(settings, family, wide_models.total(), data.classes, choice, learnt.evidence)
    shorten, least_rows = documents.shorten_wide, documents.least_rows
    start = modelled(settings, start, wide)
    pairs = Refinement(settings, start, wide_models, wide, shorten, least_rows)
    return min(words, pairs, key=lambda one: one.loss).refined()
