"""What was found, in plain sentences."""

from __future__ import annotations

from maxdisc.calibration.evidence import Evidence
from maxdisc.decisions.joint_average import AveragedEvidence
from maxdisc.inspection.model_view import ModelView
from maxdisc.inspection.printed_numbers import percent
from maxdisc.inspection.safe_text import counted, listed, shortened
from maxdisc.report.record import ClassResult, Confusion, Data, Feature, Path, Reliability, Scores

_NAME = 40


def summary_of(
    fitted: ModelView,
    data: Data,
    scores: Scores,
    classes: list[ClassResult],
    path: Path | None,
    features: list[Feature],
    confusion: Confusion,
    reliability: Reliability,  # noqa: ARG001 - all parts of a report come in; not all are put into words
) -> list[str]:
    """Sentences that someone can read who will read nothing else."""
    sentences = [
        f"The model tells {counted(data.classes, 'class', 'classes')} apart. It was judged on "
        f"{counted(data.rows, 'row')}, and got {percent(scores.accuracy)} of them right "
        f"(95 % interval: {percent(scores.interval[0])} to {percent(scores.interval[1])}).",
        _against_the_majority(scores),
        _kept(fitted, data, path),
        _telling(features),
        _errors(data, scores, classes, confusion),
        _calibration(scores),
    ]
    return [sentence for sentence in sentences if sentence]


def notes_of(data: Data, scores: Scores) -> list[str]:
    """Return notes that a reader needs to interpret the numbers."""
    notes = []
    if data.unknown:
        rows = sum(data.unknown.values())
        names = _some([f"{quoted(label)} ({n:,})" for label, n in data.unknown.items()])
        notes.append(
            f"{counted(rows, 'row has a label', 'rows have labels')} that the model does not know: {names}. "
            "They count as mistakes, and are left out of the log-loss."
        )
    if data.absent:
        notes.append(
            f"No row belongs to {_some([quoted(label) for label in data.absent])}: "
            "their recall cannot be told."
        )
    if data.empty_rows:
        notes.append(
            f"{counted(data.empty_rows, 'row has', 'rows have')} none of the kept features: the model can "
            "only say how common each class is, and what their absence tells."
        )
    if scores.log_loss is None and scores.prior_log_loss is None and not data.unknown:
        notes.append("Some row's class has a prior of 0: the log-loss is infinite.")
    if data.rows < 30:
        notes.append(
            f"{counted(data.rows, 'row')} can say little about accuracy: the interval is the thing to read."
        )
    return notes


def quoted(name: str) -> str:
    """Return a name in a sentence."""
    return f"“{shortened(name, _NAME)}”"


def _some(words: list[str], most: int = 5) -> str:
    if len(words) <= most:
        return listed(words)
    return listed([*words[:most], f"{len(words) - most:,} more"])


def _against_the_majority(scores: Scores) -> str:
    answer = (
        f"Always answering {quoted(scores.majority_label)}, the most frequent label here, would get "
        f"{percent(scores.majority_accuracy)} right"
    )
    if scores.interval[0] > scores.majority_accuracy:
        return f"{answer}: the model is clearly better."
    if scores.accuracy > scores.majority_accuracy:
        return f"{answer}: the model is better, but by no more than chance may explain."
    if scores.interval[1] < scores.majority_accuracy:
        return f"{answer}: the model is worse than that."
    return f"{answer}: the model is no better than that."


def _kept(fitted: ModelView, data: Data, path: Path | None) -> str:
    whole = data.kept == data.features
    kept = (
        f"It uses all {counted(data.features, 'feature')}"
        if whole
        else f"It keeps {data.kept:,} of {counted(data.features, 'feature')}"
    )
    if path is None or len(path.sizes) == 1:
        return f"{kept}, as it was told to."
    at = path.mean[path.sizes.index(path.chosen)] if path.chosen in path.sizes else max(path.mean)
    folds = counted(path.folds, "held-out fold")
    evidence = fitted.classifier.evidence_
    if isinstance(evidence, AveragedEvidence):
        n_models = counted(len(evidence.members), "joint model")
        return (
            f"{kept}, by an average of {n_models}, weighed by log-loss on {folds}; the accuracy there was "
            f"{percent(evidence.accuracy)}."
        )
    rule = fitted.classifier.rule
    if rule == "small":
        return (
            f"{kept}: the fewest whose accuracy on {folds} ({percent(at)}) lies within one point of the best "
            f"({percent(max(path.mean))})."
        )
    is_refined = isinstance(evidence, Evidence) and evidence.columns is not None
    if evidence is not None and (rule == "one_se" or (rule == "auto" and is_refined)):
        return (
            f"{kept}: the fewest whose log-loss on {folds} ({evidence.log_loss:.3f}) lies within one "
            f"standard error of the lowest; the accuracy there was {percent(evidence.accuracy)}."
        )
    if evidence is not None:
        return (
            f"{kept}: with them the log-loss on {folds} was lowest ({evidence.log_loss:.3f}); the accuracy "
            f"there was {percent(evidence.accuracy)}."
        )
    if fitted.classifier.joint_ is not None:
        return f"{kept}, chosen by accuracy and log-loss on {folds}; the accuracy there was {percent(at)}."
    if rule == "one_se":
        return (
            f"{kept}: the fewest whose accuracy on {folds} ({percent(at)}) lies within one standard error of "
            f"the best ({percent(max(path.mean))})."
        )
    return f"{kept}: with them the accuracy on {folds} was highest ({percent(at)})."


def _telling(features: list[Feature]) -> str:
    told = [
        f"{quoted(f.by)} ({'more' if f.direction > 0 else 'less'} in {quoted(f.label)})"
        for f in features[:3]
        if f.divergence > 0
    ]
    if not told:
        return "No feature tells the classes apart: the model answers by how common each class is."
    return f"What tells the classes apart most: {listed(told)}."


def _errors(data: Data, scores: Scores, classes: list[ClassResult], confusion: Confusion) -> str:
    if scores.right == data.rows:
        return "It made no mistake on these rows."
    truth, predicted, rows = confusion.pairs[0]
    mistakes = data.rows - scores.right
    of_all = "Its only mistake" if mistakes == 1 else f"Of its {mistakes:,} mistakes, the most frequent"
    words = f"{of_all} is to take {quoted(truth)} for {quoted(predicted)} ({counted(rows, 'row')})"
    recalls = [(c.recall, c.label) for c in classes if c.recall is not None and c.known]
    if len(recalls) < 3:
        return f"{words}."
    worst, best = min(recalls), max(recalls)
    return (
        f"{words}. It recognises {quoted(best[1])} best ({percent(best[0])} of its rows) and "
        f"{quoted(worst[1])} worst ({percent(worst[0])})."
    )


def _calibration(scores: Scores) -> str:
    gap = scores.mean_confidence - scores.accuracy
    words = f"On average it is {percent(scores.mean_confidence)} sure of its answers"
    if gap > 0.03:
        return f"{words}, more than it should be: take its probabilities with a grain of salt."
    if gap < -0.03:
        return f"{words}, less than it could be."
    return f"{words}, about as sure as it is right."
