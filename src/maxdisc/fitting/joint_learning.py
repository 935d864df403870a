"""From a source of rows to joint densities: the best of them, or an average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from maxdisc.calibration.novelty import Novelty
from maxdisc.decisions.joint import POOLED
from maxdisc.decisions.joint_average import finite
from maxdisc.densities.class_densities import class_prior
from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.families import FAMILIES
from maxdisc.fitting.fitted_model import (
    FittedModel,
    Generative,
    require_summable,
    require_weight,
    warn_of_lost_digits,
)
from maxdisc.fitting.settings import Settings
from maxdisc.numerics.user_warnings import notice
from maxdisc.rows.row_sources import ArrayRows, BatchRows, Folds, Rows
from maxdisc.rows.sampling import count_rows
from maxdisc.selection.averaged_fold_models import Average, AveragedModels, averaged_sizes
from maxdisc.selection.fold_models import Choice
from maxdisc.selection.joint_fold_models import JointChoice, JointModels

#: By default conditional models are averaged from so many cells on: fewer teach them little.
LEAST_CELLS = 2**12
#: ... and while a step of their solver takes at most so many products.
MOST_PRODUCTS = 2**22
#: A step for fewer classes takes as long, as it waits for memory.
FEW_CLASSES = 8


def learn_jointly(
    settings: Settings,
    rows: Rows,
    plans: Sequence[Folds],
    classes: npt.NDArray[np.generic],
    names: npt.NDArray[np.generic] | None = None,
) -> FittedModel:
    """Fit joint densities of the selected features."""
    assert settings.joint is not None
    if settings.evidence != "raw" and not isinstance(rows, ArrayRows | BatchRows):
        raise ValueError(
            f"evidence={settings.evidence!r} of joint densities needs the rows in memory or in batches: use "
            "evidence='raw', or structure='independent'."
        )
    family, prior = FAMILIES["gaussian"], settings.prior_among(classes)
    moments = rows.moments(family)[0]
    require_summable([moments], family, names)
    require_weight([moments])
    warn_of_lost_digits(moments, family, names)
    given = (settings.joint, settings.divergence, prior, settings.smoothing, plans, moments)
    models = JointModels(rows, *given)
    size = settings.size(moments.n_features)
    if size is not None and size > models.largest:
        raise ValueError(
            f"a joint density of {size} features is too large for these rows: at most {models.largest}; "
            "give n_features, or structure='independent'."
        )
    average = None if settings.evidence == "raw" else _average(settings, models, size)
    if average is None:
        choice = _best(settings, models, size)
        made: tuple[FeatureRanking, Generative] = models.model(choice)
    else:
        choice = JointChoice(average.joint, len(average.decision.columns), average.path)
        made = average.ranking, average.decision if prior is None else average.decision.under(prior)
    learnt = FittedModel(
        family,
        classes,
        class_prior(moments, prior),
        prior,
        settings.divergence,
        Choice(settings.smoothing or POOLED, choice.size, choice.path),
        moments.n_features,
        moments,
        made,
        choice.joint,
        None if average is None else average.evidence,
        names=names,
    )
    return learnt if average is None else replace(learnt, usual=_usual(average))


def _usual(average: Average) -> Novelty | None:
    """How well held-out rows fit their classes; None where too few tell."""
    level = finite(average.decision.density.log_prior)
    held = average.held.levelled()
    # Of a class with a single row nothing is known while that row is held out.
    counts = np.bincount(held.codes[held.weights > 0], minlength=len(level))
    held = held.select((counts >= 2)[held.codes] & (held.weights > 0))
    if (counts >= 2).sum() < 2 or len(held) < len(level) + 1:
        return None
    known, unknown = np.split(held.evidence, [len(level)], axis=1)
    return Novelty.learnt(known, unknown, held.weights, np.array([average.trust]), level)


def _average(settings: Settings, models: JointModels, size: int | None) -> Average | None:
    """Over all that is open, each with the trust that held-out rows ask for; None where none tell."""
    sizes = np.array([size]) if size else averaged_sizes(models.largest)
    # Held-out rows have the shares of the training rows: trust is learnt from them under these.
    trusted = replace(models, prior=None)
    average = AveragedModels(trusted, sizes, _refines(settings, models)).average(settings.rule)
    if average is None:
        notice(
            f"evidence={settings.evidence!r} needs held-out rows that tell models apart, of classes that "
            "are also trained on, and there are none: the densities count as they are, as with "
            "evidence='raw'."
        )
    return average


def _refines(settings: Settings, models: JointModels) -> bool:
    """Return whether conditional models are averaged, too: if asked for, or if worth their time."""
    rows = models.rows
    if settings.evidence != "auto" or not isinstance(rows, ArrayRows):
        return settings.evidence == "refined"
    n_rows, n_features = len(rows.X) if rows.weights is None else count_rows(rows.weights), rows.X.shape[1]
    n_products = n_rows * min(n_rows, n_features) * max(rows.n_classes, FEW_CLASSES)
    return n_rows * n_features >= LEAST_CELLS and n_products <= MOST_PRODUCTS


def _best(settings: Settings, models: JointModels, size: int | None) -> JointChoice:
    """One of them, chosen on the folds, if there is anything to choose."""
    if models.plans and not (size and models.joint.settled):
        return models.choose(np.array([size]) if size else models.sizes, settings.rule)
    return JointChoice(models.joint, size or models.largest)
