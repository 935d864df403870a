"""Learning from rows of which some have no label: from the labelled ones alone, or from all, if better."""

from __future__ import annotations

from dataclasses import replace

from sklearn.exceptions import ConvergenceWarning

from maxdisc.calibration.evidence import Evidence
from maxdisc.fitting.expectation_maximisation import Held, PartlyLabelled, PartlyLabelledModels, SoftMoments
from maxdisc.fitting.fitted_model import FittedModel, require_summable
from maxdisc.fitting.learning import Data, learn, modelled, settled
from maxdisc.fitting.settings import Settings
from maxdisc.numerics.user_warnings import notice
from maxdisc.selection.fold_models import Choice, FoldModels


def learn_partly(settings: Settings, data: Data, both: PartlyLabelled | None) -> FittedModel:
    """Fit the labelled rows, then all rows, and return the model with the lower held-out loss."""
    alone = learn(settings, data)
    return alone if both is None else _softly(settings, alone, both)


def _softly(settings: Settings, alone: FittedModel, data: PartlyLabelled) -> FittedModel:
    """Go on with unlabelled rows, if held-out rows say that this is better by more than noise."""
    held, models, choice, evidence, weight = _best(settings, alone, data)
    if not held.beats(_held(alone.choice, alone.evidence)):
        return alone
    soft = models.whole
    assert soft is not None
    require_summable([soft.moments], alone.family, alone.names)
    _tell(settings, data, soft)
    given = (alone.classes, choice, evidence, alone.schema, alone.names)
    learnt = FittedModel.of(settings, alone.family, soft.moments, *given)
    learnt = replace(learnt, n_iter=soft.n_iter, unlabelled_weight=weight)
    learnt = modelled(settings, learnt, data.labelled)
    _ = learnt.decision
    return learnt


def _best(
    settings: Settings, alone: FittedModel, data: PartlyLabelled
) -> tuple[Held, PartlyLabelledModels, Choice, Evidence | None, float]:
    """The models in which unlabelled rows have the weight that held-out rows ask for."""
    redundancy = settings.reranking(alone.n_features)
    like = FoldModels(data.labelled, alone.family, alone.divergence, alone.prior, (), (), redundancy)
    before = _held(alone.choice, alone.evidence)
    best: tuple[Held, PartlyLabelledModels, Choice, Evidence | None, float] | None = None
    for weight in data.weights():
        models = data.models(like, weight)
        choice, evidence = settled(settings, models)
        held = _held(choice, evidence)
        ahead = f"{held.ahead_of(before):+.1f} standard errors less than without"
        settings.say(f"unlabelled rows of weight {weight:.3g}: held-out loss {held.loss:.4f}, {ahead}")
        if best is not None and held.loss > best[0].loss:
            break
        best = held, models, choice, evidence, weight
    assert best is not None
    return best


def _held(choice: Choice, evidence: object) -> Held:
    """How good a model is on held-out rows, by its weighed evidence, if it has any."""
    return Held.of(choice, evidence if isinstance(evidence, Evidence) else None)


def _tell(settings: Settings, data: PartlyLabelled, soft: SoftMoments) -> None:
    """Warn of what is not as it was asked for."""
    if not soft.converged:
        notice(
            f"the soft labels of {len(data.others)} unlabelled rows still changed after {soft.n_iter} "
            "steps: the model is that of the last step.",
            ConvergenceWarning,
        )
    if settings.evidence == "refined":
        notice(
            "evidence='refined' corrects features by labelled rows alone, and these are better with the "
            "unlabelled ones: it is calibrated."
        )
