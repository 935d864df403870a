"""The summary of a report, in sentences."""

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
    reliability: Reliability,  # noqa: ARG001 - all parts of a report come in; not all are summarised
) -> list[str]:
    """Return the main findings as sentences."""
    sentences = [
        f"The model has {counted(data.classes, 'class', 'classes')}. On {counted(data.rows, 'row')} "
        f"its accuracy is {percent(scores.accuracy)} "
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
            f"No row belongs to {_some([quoted(label) for label in data.absent])}: their recall is undefined."
        )
    if data.empty_rows:
        notes.append(
            f"{counted(data.empty_rows, 'row has', 'rows have')} none of the selected features: their "
            "prediction follows from the class shares and from the absence of features."
        )
    if scores.log_loss is None and scores.prior_log_loss is None and not data.unknown:
        notes.append("Some row's class has a prior of 0: the log-loss is infinite.")
    if data.rows < 30:
        notes.append(f"With {counted(data.rows, 'row')}, the accuracy is imprecise: see its interval.")
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
        f"Always predicting {quoted(scores.majority_label)}, the most frequent label here, has an "
        f"accuracy of {percent(scores.majority_accuracy)}"
    )
    if scores.interval[0] > scores.majority_accuracy:
        return f"{answer}: the model is clearly better."
    if scores.accuracy > scores.majority_accuracy:
        return f"{answer}: the model is better, but not significantly."
    if scores.interval[1] < scores.majority_accuracy:
        return f"{answer}: the model is worse than that."
    return f"{answer}: the model is no better than that."


def _kept(fitted: ModelView, data: Data, path: Path | None) -> str:
    whole = data.kept == data.features
    kept = (
        f"It uses all {counted(data.features, 'feature')}"
        if whole
        else f"It uses {data.kept:,} of {counted(data.features, 'feature')}"
    )
    if path is None or len(path.sizes) == 1:
        return f"{kept}, as set."
    at = path.mean[path.sizes.index(path.chosen)] if path.chosen in path.sizes else max(path.mean)
    folds = counted(path.folds, "held-out fold")
    evidence = fitted.classifier.evidence_
    if isinstance(evidence, AveragedEvidence):
        n_models = counted(len(evidence.members), "joint model")
        return (
            f"{kept}, in an average of {n_models}, with weights from the log-loss on {folds}; the accuracy "
            f"there was {percent(evidence.accuracy)}."
        )
    rule = fitted.classifier.rule
    if rule == "small":
        return (
            f"{kept}: the fewest whose accuracy on {folds} ({percent(at)}) is within one percentage point of "
            f"the best ({percent(max(path.mean))})."
        )
    is_refined = isinstance(evidence, Evidence) and evidence.columns is not None
    if evidence is not None and (rule == "one_se" or (rule == "auto" and is_refined)):
        return (
            f"{kept}: the fewest whose log-loss on {folds} ({evidence.log_loss:.3f}) is within one "
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
            f"{kept}: the fewest whose accuracy on {folds} ({percent(at)}) is within one standard error of "
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
        return "No feature distinguishes the classes: predictions follow from the class shares."
    return f"The most informative features are {listed(told)}."


def _errors(data: Data, scores: Scores, classes: list[ClassResult], confusion: Confusion) -> str:
    if scores.right == data.rows:
        return "It made no mistake on these rows."
    truth, predicted, rows = confusion.pairs[0]
    mistakes = data.rows - scores.right
    of_all = "Its only mistake" if mistakes == 1 else f"Of its {mistakes:,} mistakes, the most frequent"
    words = f"{of_all} is to predict {quoted(predicted)} for {quoted(truth)} ({counted(rows, 'row')})"
    recalls = [(c.recall, c.label) for c in classes if c.recall is not None and c.known]
    if len(recalls) < 3:
        return f"{words}."
    worst, best = min(recalls), max(recalls)
    return (
        f"{words}. Recall is highest for {quoted(best[1])} ({percent(best[0])}) and "
        f"lowest for {quoted(worst[1])} ({percent(worst[0])})."
    )


def _calibration(scores: Scores) -> str:
    gap = scores.mean_confidence - scores.accuracy
    words = f"The mean probability of its predictions is {percent(scores.mean_confidence)}"
    if gap > 0.03:
        return f"{words}, above the accuracy: it is overconfident."
    if gap < -0.03:
        return f"{words}, below the accuracy: it is underconfident."
    return f"{words}, close to the accuracy."
