"""Reading of model files: from the document and the tensors to a validated model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from maxdisc.calibration.evidence import Evidence
from maxdisc.calibration.novelty import Novelty
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.conditional.model import SOLVERS
from maxdisc.decisions.by_length import LengthWeights
from maxdisc.decisions.joint import Joint, JointDecision
from maxdisc.decisions.joint_average import AveragedDecision, AveragedEvidence, LinearForm
from maxdisc.decisions.linear import LinearDecision, log_partitions
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.discriminative import DiscriminativeMaxEnt
from maxdisc.divergences.class_divergences import Divergence, FeatureRanking
from maxdisc.families import Family
from maxdisc.fitting.fitted_model import FittedModel, Level, Selected
from maxdisc.model_file.container import ModelFileError, short
from maxdisc.model_file.fields import BESIDE, FIELDS, Array, Field, Node
from maxdisc.model_file.mixed_columns import decision_of, moments_of, schema_of
from maxdisc.model_file.soundness import (
    MOST_WEIGHT,
    ROOT,
    are_moderate,
    are_moments,
    are_weights,
    is_normalised,
    require_parameters,
    require_sound,
)
from maxdisc.model_file.values import (
    decoded,
    decoded_strings,
    format_of,
    labels_of_numbers,
    labels_of_words,
)
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.selection.fold_models import Choice, SelectionPath
from maxdisc.words.scaling import SCALES, CountScaler
from maxdisc.words.vectorizer import TermFrequencyVectorizer

Value = TypeVar("Value")

_LEARNT = {
    "classifier": {"labels", "family", "divergence", "smoothing", "path", "moments"},
    "vectorizer": {"mean_length"},
    "scaler": {"mean_length", "n_features"},
    "joint": {"labels", "family", "divergence", "smoothing", "path", "moments", "joint"},
    "weighed": {"labels", "family", "divergence", "smoothing", "path", "moments", "evidence"},
    "averaged": {"labels", "family", "divergence", "smoothing", "path", "moments", "joint", "average"},
    "mixed": {"labels", "families", "divergence", "smoothing", "path", "moments", "evidence"},
    "discriminative": {"labels", "converged"},
}
_MODELS = {
    "classifier": MaxDiscClassifier,
    "joint": MaxDiscClassifier,
    "weighed": MaxDiscClassifier,
    "averaged": MaxDiscClassifier,
    "mixed": MaxDiscClassifier,
    "vectorizer": TermFrequencyVectorizer,
    "scaler": CountScaler,
    "discriminative": DiscriminativeMaxEnt,
}
#: What only some models of a kind have learnt.
_OPTIONAL = {
    "classifier": {"unlabelled", "n_features"},
    "weighed": {"length", "novelty", "unlabelled", "n_features"},
    "mixed": {"novelty", "unlabelled", "n_features"},
    "joint": {"n_features"},
    "averaged": {"novelty", "n_features"},
    "vectorizer": {"n_features"},
    "discriminative": {"dual"},
}
#: The first format that has a kind of model, where that is not 1.
_SINCE = {"joint": 2, "weighed": 2, "averaged": 2, "discriminative": 2, "scaler": 2, "mixed": 3}
#: What the names of tensors end in that only the third format has.
_THIRD = {"familiarity", "squared", "squares", "stability"}
#: No real rows have more features.
_MOST_FEATURES = 2**31


#: The kinds of models with steps, and their boolean entries.
_FLAGS = {"pipeline": "verbose", "documents": "default"}


class Step(NamedTuple):
    """One estimator of the document: its name in a pipeline, what its tensors begin with, and the rest."""

    name: str | None
    prefix: str
    kind: str
    parameters: Node
    fitted: Node


def steps_of(node: Any) -> list[Step]:
    """Return the estimators of a document; raise :class:`ModelFileError` if it is malformed."""
    kind = node.get("kind") if isinstance(node, dict) else None
    flag = _FLAGS.get(kind) if isinstance(kind, str) else None
    if flag is None:
        return [_step(None, "", node)]
    require_keys(node, {"kind", flag, "steps"})
    listed = node["steps"]
    pairs = isinstance(listed, list) and all(isinstance(step, list) and len(step) == 2 for step in listed)
    if not pairs or not listed or not isinstance(node[flag], bool):
        raise ModelFileError("its pipeline is not described as pipelines are.")
    names = [name for name, _ in listed]
    proper = all(isinstance(name, str) and "__" not in name for name in names)
    if not proper or len(set(names)) < len(names):
        raise ModelFileError(f"the steps of its pipeline have no proper names: {short(names)}.")
    return [_step(name, f"{position}.", step) for position, (name, step) in enumerate(listed)]


def oldest_format(node: Any, tensors: Iterable[str]) -> int:
    """Return the first format that can hold the model of a document and tensors of these names."""
    if any("length" in step.fitted for step in steps_of(node)):
        return 5  # rows are scaled over the selected features
    if isinstance(node, dict) and node.get("kind") == "documents":
        return 4
    if any("n_features" in step.fitted for step in steps_of(node) if step.kind != "scaler"):
        return 4  # what is not selected was left out
    if any(name.rpartition(".")[2] in _THIRD for name in tensors):
        return 3
    kinds = max(
        max(1 + _needs_2(step), 3 * _needs_3(step), _SINCE.get(step.kind, 1)) for step in steps_of(node)
    )
    return max(kinds, format_of(node))


def _needs_2(step: Step) -> bool:
    """Return whether a model of a kind that format 1 has was made in a way that it did not know."""
    divergences = (step.parameters.get("divergence"), step.fitted.get("divergence"))
    names = [value.get("divergence") if isinstance(value, dict) else value for value in divergences]
    new = any(name in ("jensen_shannon", "rao") for name in names)
    # A Joint that was set but not fitted is new, too.
    joint = isinstance(step.parameters.get("structure"), dict)
    weighed = step.parameters.get("evidence", "raw") != "raw"
    return new or joint or weighed or bool(step.parameters.get("redundancy", 0))


def _needs_3(step: Step) -> bool:
    """Return whether a model was solved in the dual, learnt from rows without labels, or would."""
    has_new = not step.fitted.keys().isdisjoint({"dual", "unlabelled"})
    return has_new or step.parameters.get("unlabelled") is not None


def _step(name: str | None, prefix: str, node: Any) -> Step:
    require_keys(node, {"kind", "parameters", "fitted"})
    kind = node["kind"]
    if not isinstance(kind, str) or kind not in _LEARNT:
        raise ModelFileError(f"it has a kind of model that this version does not know: {short(kind)}.")
    if not isinstance(node["parameters"], dict):
        raise ModelFileError(f"its parameters are {short(node['parameters'])}, which are invalid.")
    learnt = node["fitted"]
    further = _OPTIONAL.get(kind, set()) & learnt.keys() if isinstance(learnt, dict) else set()
    require_keys(learnt, _LEARNT[kind] | further)
    return Step(name, prefix, kind, node["parameters"], node["fitted"])


def require_keys(node: Any, keys: set[str]) -> None:
    """Raise :class:`ModelFileError` unless a part of the document has just these entries."""
    if not isinstance(node, dict) or node.keys() != keys:
        raise ModelFileError(f"it has {short(node)} where entries {sorted(keys)} are due.")


def require_figures(node: Any) -> None:
    """Raise :class:`ModelFileError` unless these are the figures of weighed evidence."""
    require_keys(node, {"log_loss", "accuracy", "n_rows", "ridge"})
    if any(type(value) is not float for value in node.values()):
        raise ModelFileError(f"its evidence is {short(node)}, which is invalid.")


def _dual_of(node: Any) -> tuple[int, float]:
    """Return the sweeps and the gap of a model that was solved in the dual."""
    require_keys(node, {"n_iter", "gap"})
    n_iter, gap = node["n_iter"], node["gap"]
    if type(n_iter) is not int or type(gap) is not float or not (n_iter >= 0 and 0 <= gap < np.inf):
        raise ModelFileError(f"its dual solver ended as {short(node)}.")
    return n_iter, gap


def rebuilt(node: Any, tensors: Mapping[str, Array], functions: Mapping[str, Any], file_format: int) -> Any:
    """Return the model that a document describes; raise :class:`ModelFileError` unless all of it is sound."""
    oldest = oldest_format(node, tensors)
    if file_format < oldest:
        raise ModelFileError(f"it has what only files of format {oldest} have.")
    left = dict(tensors)
    steps = steps_of(node)
    models = [
        Shelf(left, functions, step.prefix, single="length" in step.fitted).estimator(step) for step in steps
    ]
    if left:
        raise ModelFileError(f"it has tensors that no model has, such as {short(min(left))}.")
    if steps[0].name is None:
        return models[0]
    for before, after in pairwise(models):
        if isinstance(after, TermFrequencyVectorizer) or after.n_features_in_ != _width(before):
            raise ModelFileError("the steps of its pipeline do not fit each other.")
    if node["kind"] == "documents":
        return _of_documents(models, node["default"])
    return Pipeline(list(zip([step.name for step in steps], models, strict=True)), verbose=node["verbose"])


def _of_documents(models: list[Any], default: bool) -> MaxDiscClassifier:
    """Return a vectorizer and a classifier of its counts as one classifier of documents."""
    if [type(model) for model in models] != [TermFrequencyVectorizer, MaxDiscClassifier]:
        raise ModelFileError("it has no vectorizer or no classifier, of which a model of documents is made.")
    vectorizer, classifier = models
    classifier.vectorizer_ = vectorizer
    return cast(MaxDiscClassifier, classifier.set_params(vectorizer=None if default else clone(vectorizer)))


def soft_of(fitted: Node) -> tuple[int, float]:
    """Return how many steps unlabelled rows took, and what each weighed."""
    if "unlabelled" not in fitted:
        return 0, 0.0
    node = fitted["unlabelled"]
    require_keys(node, {"n_iter", "weight"})
    n_iter, weight = node["n_iter"], node["weight"]
    if type(n_iter) is not int or type(weight) is not float or not (n_iter > 0 and 0 < weight <= 1):
        raise ModelFileError(f"what it learnt from unlabelled rows is {short(node)}, which is nothing.")
    return n_iter, weight


def _require_shares(stability: Array | None) -> None:
    """Raise :class:`ModelFileError` unless the stability of features is a share."""
    if stability is not None and not ((stability >= 0) & (stability <= 1)).all():
        raise ModelFileError("its stability is not a share of folds.")


def _ranking_of(selected: Selected, columns: Array) -> FeatureRanking:
    """Return the ranking of the selected features alone."""
    return FeatureRanking(selected.scores, columns, np.empty(0, dtype=np.intp))


def _width(model: Any) -> int | None:
    """Return how many features a step of a pipeline passes on; None if it cannot."""
    if isinstance(model, TermFrequencyVectorizer):
        return model._n_terms
    if isinstance(model, CountScaler):
        return int(model.n_features_in_)
    return model.n_selected_ if isinstance(model, MaxDiscClassifier) else None


@dataclass(frozen=True, eq=False)
class Shelf:
    """Tensors of one estimator, each taken once, with axes of consistent length."""

    tensors: dict[str, Array]
    functions: Mapping[str, Any]
    prefix: str
    lengths: dict[str, int] = field(default_factory=lambda: {"1": 1})
    #: Whether large tensors may be in single precision.
    single: bool = False

    def estimator(self, step: Step) -> Any:
        """Return the estimator of a step, fitted."""
        model = _MODELS[step.kind]()
        if not step.parameters.keys() <= model.get_params(deep=False).keys():
            raise ModelFileError(
                f"it has parameters that this version does not know: {short(step.parameters)}."
            )
        model.set_params(**{name: decoded(v, self.functions) for name, v in step.parameters.items()})
        if isinstance(model, MaxDiscClassifier):
            n_iter, weight = soft_of(step.fitted)
            learnt = self._mixed(step.fitted) if "families" in step.fitted else self._classifier(step.fitted)
            self._name_features(model)
            require_parameters(model.get_params(deep=False), learnt.classes, learnt.n_features)
            model.set_params(n_jobs=None)  # files of earlier versions may have one
            return model._take(replace(learnt, n_iter=n_iter, unlabelled_weight=weight))
        if isinstance(model, DiscriminativeMaxEnt):
            return self._discriminative(model, step.fitted)
        if isinstance(model, CountScaler):
            return self._scaler(model, step.fitted)
        return self._vectorizer(model, step.fitted)

    def _vectorizer(self, model: TermFrequencyVectorizer, fitted: Node) -> TermFrequencyVectorizer:
        terms, mean_length = self.strings("terms"), fitted["mean_length"]
        if not terms or len(set(terms)) < len(terms):
            raise ModelFileError("its vocabulary is empty, or has a term twice.")
        if type(mean_length) is not float or not 0 <= mean_length <= ROOT:
            raise ModelFileError(f"its mean length of documents is {short(mean_length)}.")
        try:
            rule = model._checked_rule()
        except (TypeError, ValueError, OverflowError):
            rule = None
        if rule is None or not all(isinstance(word, str) for word in rule.stop_words):
            raise ModelFileError("the parameters of its vectorizer are invalid.")
        model.terms_, model.mean_length_ = np.array(terms, dtype=object), mean_length
        if "n_features" in fitted:
            columns, n_features = self.array("columns", Field("K", np.int64)), self._n_features(fitted)
            inside = len(columns) == len(terms) and columns[0] >= 0 and columns[-1] < n_features
            if not inside or not (np.diff(columns) > 0).all():
                raise ModelFileError("the columns of its vocabulary are not in order.")
            model._place_terms(columns, n_features)
        return model

    def _n_features(self, fitted: Node, what: str = "model") -> int:
        """Return how many features there are, of which only the selected ones were written."""
        n_features = fitted["n_features"]
        if type(n_features) is not int or not 0 < n_features <= _MOST_FEATURES:
            raise ModelFileError(f"the number of features of its {what} is {short(n_features)}.")
        return n_features

    def _scaler(self, model: CountScaler, fitted: Node) -> CountScaler:
        mean_length, n_features, scale = (
            fitted["mean_length"],
            self._n_features(fitted, "scaler"),
            model.scale,
        )
        if type(mean_length) is not float or not 0 <= mean_length <= ROOT:
            raise ModelFileError(f"its mean length of rows is {short(mean_length)}.")
        if not (scale is None or isinstance(scale, str)) or scale not in SCALES:
            raise ModelFileError("the parameters of its scaler are invalid.")
        self.lengths["D"] = n_features
        self._name_features(model)
        model.mean_length_, model.n_features_in_ = mean_length, n_features
        return model

    def _classifier(self, fitted: Node) -> FittedModel:
        # It is only asked whether the value is one, so an abstract class will do.
        family = self.known(fitted["family"], Family, "family")  # type: ignore[type-abstract]  # any subclass will do
        smoothing = self.known(fitted["smoothing"], Smoothing, "smoothing")
        divergence = self._divergence(fitted["divergence"])
        self.lengths["L"] = family.n_statistics
        classes = self.labels(fitted["labels"])
        ranking = self._ranking(fitted)
        joint = self._joint(fitted.get("joint"), family)
        decision: LinearDecision | JointDecision | AveragedDecision
        evidence: Evidence | AveragedEvidence | None = None
        unknown: LinearDecision | None = None
        usual: Novelty | None = None
        if joint is None:
            decision = self._linear(family, "length" in fitted)
            if "evidence" in fitted:
                evidence = self._evidence(fitted["evidence"])
            if "length" in fitted and isinstance(evidence, Evidence):
                evidence = replace(evidence, lengths=self._lengths(fitted["length"], evidence))
            if "novelty" in fitted and isinstance(evidence, Evidence):
                evidence = replace(evidence, novelty=self._novelty(fitted["novelty"]))
                unknown = self._unknown(decision, 0)
        elif "average" in fitted:
            decision, evidence = self._average(fitted["average"])
            if "novelty" in fitted:
                self.lengths["E"] = 1
                usual = self._novelty(fitted["novelty"])
        else:
            decision = self.value(JointDecision, "decision")
        class_prior = self.array("class_prior", Field("C"))
        prior = self.array("prior", Field("C", optional=True))
        path, moments, selected = self._path(fitted["path"]), None, None
        if self.known(fitted["moments"], bool, "word on moments"):
            moments = self.moments("moments", family, self.lengths["D"])
        if ranking is None:
            selected = self._selected([("moments", family, self.lengths["K"])])
            ranking = _ranking_of(selected, decision.columns)
        stability = self._stability()
        require_sound(ranking, decision, class_prior, prior, path, self.lengths["D"])
        choice, made = Choice(smoothing, self.lengths["K"], path, stability), (ranking, decision)
        given = (family, classes, class_prior, prior, divergence, choice, self.lengths["D"], moments)
        return FittedModel(*given, made, joint, evidence, unknown, selected=selected, usual=usual)

    def _lengths(self, length: Any, evidence: Evidence) -> LengthWeights:
        """Return what evidence counts for rows of some numbers of features."""
        if type(length) is not float or not 1 / ROOT < length < ROOT:
            raise ModelFileError(f"its length of rows is {short(length)}.")
        self.lengths["Y"] = 2
        found = self.value(LengthWeights, "lengths", length=length)
        counts = found.counts
        # Logs of one plus a number are interpolated.
        rising = len(counts) >= 2 and counts[0] == 0 and (np.diff(np.log1p(np.abs(counts))) > 0).all()
        rising = rising and (np.diff(counts) > 0).all()
        moderate = are_moderate(counts, found.bias, most=ROOT) and are_weights(found.weights)
        if not rising or not moderate or evidence.correction is None:
            raise ModelFileError("the weights of its evidence by length are invalid.")
        return found

    def _ranking(self, fitted: Node) -> FeatureRanking | None:
        """Return the ranking of all features; None if only the selected ones were written."""
        if "n_features" not in fitted:
            return self.value(FeatureRanking, "ranking")
        if fitted["moments"] is not False:
            raise ModelFileError("it has moments of all its features, but ranks only some.")
        self.lengths["D"] = self._n_features(fitted)
        return None

    def _selected(self, blocks: Sequence[tuple[str, Family, int]]) -> Selected:
        """Return what is known of the selected features, by the name, family and cells of each block."""
        known = any(self.has(f"{name}.weight") for name, _, _ in blocks)
        there = [known and n_cells > 0 for _, _, n_cells in blocks]
        parts = [
            self.moments(name, family, n_cells) if here else None
            for (name, family, n_cells), here in zip(blocks, there, strict=True)
        ]
        levels = [
            self._level(name, family.n_statistics) if here else None
            for (name, family, _), here in zip(blocks, there, strict=True)
        ]
        found = self.value(Selected, "selected", moments=parts if known else None, levels=levels)
        _require_shares(found.stability)
        return found

    def _level(self, name: str, n_statistics: int) -> Level | None:
        """Return what a smoothing with a flat target draws the features of a block towards."""
        own = replace(self, lengths={"N": n_statistics + 1})
        level = own.array(f"{name}.level", Field("N", optional=True))
        return None if level is None else (level[:-1, None], float(level[-1]))

    def moments(self, name: str, family: Family, n_cells: int) -> ClassMoments:
        """Return the moments of a block, or of the only one."""
        own = replace(self, lengths={"C": self.lengths["C"], "L": family.n_statistics, "D": n_cells})
        moments = own.value(ClassMoments, name, squares=own.squares(name))
        if not are_moments(moments, family):
            raise ModelFileError("its moments are invalid.")
        return moments

    def _novelty(self, there: Any) -> Novelty:
        if there is not True:
            raise ModelFileError(f"its word on novelty is {short(there)}.")
        self.lengths["X"] = 2
        novelty = self.value(Novelty, "novelty")
        sound = (
            len(novelty.p_value) > 0
            and (np.diff(novelty.familiarity) > 0).all()
            and (np.diff(novelty.p_value) >= 0).all()
            and novelty.p_value[0] > 0
            and novelty.p_value[-1] <= 1
            and are_weights(novelty.weights)
            and are_moderate(novelty.level, novelty.unknown)
        )
        if not sound:
            raise ModelFileError("its table of p-values is invalid.")
        return novelty

    def _linear(self, family: Family, may_follow: bool) -> LinearDecision:
        """Return the decision, whose baseline ``may_follow`` from the weights if the file has none."""
        if not may_follow or self.prefix + "decision.baseline" in self.tensors:
            return self.value(LinearDecision, "decision", family=family)
        fields = {name: spec for name, spec in FIELDS[LinearDecision].items() if name != "baseline"}
        arrays = {name: self.array(f"decision.{name}", spec) for name, spec in fields.items()}
        baseline = log_partitions(family, arrays["weights"])
        if not np.isfinite(baseline).all():
            raise ModelFileError("decision.weights are no natural parameters: a log-partition is infinite.")
        return LinearDecision(family, **arrays, baseline=baseline)

    def _unknown(self, decision: LinearDecision, place: int) -> LinearDecision:
        """Return the densities of unknown classes, for the features of a decision."""
        lengths = {"C": 2, "K": len(decision.columns), "L": len(decision.weights)}
        own, fields = replace(self, lengths=lengths), FIELDS[LinearDecision]
        if not len(decision.columns):
            return decision.between(np.array([0, 0]))
        arrays = {name: own.array(f"unknown{place}.{name}", fields[name]) for name in BESIDE}
        unknown = replace(decision, **arrays, log_prior=np.zeros(2))
        if not is_normalised(unknown):
            raise ModelFileError("the densities of its unknown classes are invalid.")
        return unknown

    def _mixed(self, fitted: Node) -> FittedModel:
        smoothing = self.known(fitted["smoothing"], Smoothing, "smoothing")
        divergence, classes = self._divergence(fitted["divergence"]), self.labels(fitted["labels"])
        ranking = self._ranking(fitted)
        schema = schema_of(self, fitted["families"])
        decision = decision_of(self, schema)
        evidence = None if fitted["evidence"] is None else self._evidence(fitted["evidence"])
        unknown: MixedDecision | None = None
        if "novelty" in fitted:
            if evidence is None:
                raise ModelFileError("it compares rows with held-out ones, but has no evidence of them.")
            evidence = replace(evidence, novelty=self._novelty(fitted["novelty"]))
            parts = [
                replace(part, decision=self._unknown(part.decision, place))
                for place, part in enumerate(decision.parts)
            ]
            unknown = replace(decision, parts=parts, log_prior=np.zeros(2))
        class_prior = self.array("class_prior", Field("C"))
        prior = self.array("prior", Field("C", optional=True))
        path, moments, selected = self._path(fitted["path"]), None, None
        if self.known(fitted["moments"], bool, "word on moments"):
            moments = moments_of(self, schema)
        if ranking is None:
            pairs = zip(schema.columns.blocks, decision.parts, strict=True)
            selected = self._selected(
                [(f"moments{b}", block.family, len(part.places)) for b, (block, part) in enumerate(pairs)]
            )
            ranking = _ranking_of(selected, decision.columns)
        stability = self._stability()
        require_sound(ranking, decision, class_prior, prior, path, self.lengths["D"])
        choice, made = Choice(smoothing, self.lengths["K"], path, stability), (ranking, decision)
        given = (schema.columns, classes, class_prior, prior, divergence, choice, self.lengths["D"], moments)
        return FittedModel(
            *given, made, evidence=evidence, made_unknown=unknown, schema=schema, selected=selected
        )

    def squares(self, name: str) -> float | None:
        """Return the sum of the squared weights of the rows, where a file has it."""
        found = replace(self, lengths={}).array(f"{name}.squares", Field("1", optional=True))
        return None if found is None or len(found) != 1 else float(found[0])

    def _stability(self) -> Array | None:
        stability: Array | None = self.array("stability", Field("D", optional=True))
        _require_shares(stability)
        return stability

    def _divergence(self, node: Any) -> Divergence:
        divergence = decoded(node, self.functions)
        if not callable(divergence):
            raise ModelFileError(f"its divergence is {short(divergence)}, which is invalid.")
        return cast(Divergence, divergence)

    def _path(self, node: Any) -> SelectionPath | None:
        if node is None:
            return None
        tried = self.known(node, Smoothing, "smoothing")
        return self.value(SelectionPath, "path", smoothing=tried)

    def _evidence(self, node: Any) -> Evidence:
        require_figures(node)
        evidence = self.value(Evidence, "evidence", **node)
        columns = np.empty(0, dtype=np.intp) if evidence.columns is None else evidence.columns
        sound = (
            (evidence.columns is None) == (evidence.correction is None)
            and np.isfinite(list(node.values())).all()
            and 0 <= evidence.accuracy <= 1
            and min(evidence.log_loss, evidence.n_rows, evidence.ridge) >= 0
            and are_moderate(evidence.bias, evidence.correction, most=ROOT)
            and max(evidence.n_rows, evidence.ridge) <= MOST_WEIGHT
            and are_moderate(evidence.log_loss)
            and len(evidence.edges) > 0
            and (np.diff(evidence.edges, prepend=0) > 0).all()
            and self.lengths["K"] <= evidence.edges[-1] <= self.lengths["D"]
            and are_weights(evidence.weights)
            and ((columns >= 0) & (columns < self.lengths["D"])).all()
            and len(np.unique(columns)) == len(columns)
        )
        if not sound:
            raise ModelFileError("the weights of its evidence are invalid.")
        return evidence

    def _average(self, node: Any) -> tuple[AveragedDecision, AveragedEvidence]:
        # Files of earlier versions have no exponent.
        optional = {"prior_exponent"} & node.keys() if isinstance(node, dict) else set()
        require_keys(node, {"forms", "trust", "log_loss", "accuracy", "n_rows"} | optional)
        floats = {name: value for name, value in node.items() if name != "forms"}
        count = node["forms"]
        if (
            type(count) is not int
            or not 0 <= count <= 2
            or any(type(v) is not float for v in floats.values())
        ):
            raise ModelFileError(f"its average is {short(node)}, which is invalid.")

        def own() -> Shelf:
            return replace(self, lengths={"C": self.lengths["C"]})

        forms = tuple(own().value(LinearForm, f"form{f}") for f in range(count))
        density, trust = own().value(JointDecision, "density"), floats.pop("trust")
        members = tuple(self.strings("members"))
        self.lengths["M"] = len(members)
        evidence = self.value(AveragedEvidence, "evidence", members=members, **floats)
        sound = (
            np.isfinite([trust, *floats.values()]).all()
            and trust > 0
            and 0 <= evidence.accuracy <= 1
            and evidence.log_loss >= 0
            and evidence.n_rows > 0
            and len(members) > 0
            and (evidence.weights > 0).all()
            and abs(evidence.weights.sum() - 1) < 1e-8
            and (evidence.trusts > 0).all()
            and are_moderate(evidence.log_loss)
            and are_moderate(evidence.trusts, trust, evidence.n_rows, evidence.prior_exponent, most=ROOT)
        )
        if not sound:
            raise ModelFileError("the weights of its average are invalid.")
        decision = self.value(AveragedDecision, "decision", forms=forms, density=density, trust=trust)
        return decision, evidence

    def _joint(self, node: Any, family: Family) -> Joint | None:
        if node is None:
            return None
        joint = self.known(node, Joint, "joint density")
        if not joint.settled or family.name != "gaussian":
            raise ModelFileError(f"its joint density is {short(joint)}, which is invalid.")
        return joint

    def _discriminative(self, model: DiscriminativeMaxEnt, fitted: Node) -> DiscriminativeMaxEnt:
        classes, converged = self.labels(fitted["labels"]), self.known(fitted["converged"], bool, "word")
        # Two classes share one row of coefficients.
        self.lengths["B"] = len(classes) if len(classes) > 2 else 1
        learnt = {
            key: self.array(key.rstrip("_"), spec) for key, spec in FIELDS[DiscriminativeMaxEnt].items()
        }
        if len(classes) < 2 or 0 in (self.lengths["D"], self.lengths["I"]):
            raise ModelFileError("it has fewer than two classes, no features, or no value of its objective.")
        if not are_moderate(*learnt.values()):
            raise ModelFileError("its weights are beyond all numbers.")
        self._name_features(model)
        model.n_features_in_ = self.lengths["D"]
        model.classes_, model.converged_ = classes, converged
        # The dual is recognised by its own entries; otherwise "auto" was L-BFGS.
        model.solver_ = model.solver if model.solver in SOLVERS else "lbfgs"
        model.n_iter_, model.gap_ = self.lengths["I"] - 1, np.nan
        if "dual" in fitted:
            model.solver_, (model.n_iter_, model.gap_) = "dual", _dual_of(fitted["dual"])
        for key, array in learnt.items():
            setattr(model, key, array)
        return model

    def _name_features(self, model: MaxDiscClassifier | DiscriminativeMaxEnt | CountScaler) -> None:
        if self.has("names.offsets"):
            names = self.strings("names")
            if len(names) != self.lengths["D"]:
                raise ModelFileError(f"it has {len(names)} names for {self.lengths['D']} features.")
            if len(set(names)) < len(names):
                raise ModelFileError("two of its features have the same name.")
            model.feature_names_in_ = np.array(names, dtype=object)

    def labels(self, dtype: Any) -> Array:
        """Return the classes: at least one, sorted, each once."""
        if not isinstance(dtype, str) or len(dtype) < 2:
            raise ModelFileError(f"it has labels of a type that this version does not know: {short(dtype)}.")
        if dtype[1] in "OU":
            classes = labels_of_words(self.strings("classes"), dtype)
        else:
            classes = labels_of_numbers(self._pop("classes"), dtype)
        if classes.ndim != 1 or len(classes) == 0 or not (classes[:-1] < classes[1:]).all():
            raise ModelFileError("its classes are not in order.")
        self.lengths["C"] = len(classes)
        return classes

    def strings(self, name: str) -> list[str]:
        """Strings from their bytes and offsets."""
        data, offsets = self._pop(f"{name}.bytes"), self._pop(f"{name}.offsets")
        if data.dtype != np.uint8 or offsets.dtype != np.int64 or data.ndim != 1 or offsets.ndim != 1:
            raise ModelFileError(f"its strings, {name}, are not stored as strings are.")
        return decoded_strings(data, offsets, name)

    def length(self, name: str) -> int:
        """Return how many entries a tensor has along its first axis."""
        return int(self._pop(name).shape[0])

    def has(self, name: str) -> bool:
        """Return whether there is such a tensor."""
        return self.prefix + name in self.tensors

    def listed(self, name: str) -> list[Any]:
        """Return a tensor of one axis, as a list."""
        return list(self._pop(name).ravel().tolist())

    def width(self, name: str) -> int:
        """Return how many entries a tensor has along its last axis."""
        return int(self._pop(name).shape[-1])

    def value(self, kind: type[Value], name: str, **others: Any) -> Value:
        arrays = {key: self.array(f"{name}.{key}", spec) for key, spec in FIELDS[kind].items()}
        return kind(**arrays, **others)

    def array(self, name: str, spec: Field) -> Any:
        """Return a tensor of the type and shape it must have; None for an optional one that is not there."""
        if spec.optional and self.prefix + name not in self.tensors:
            return None
        tensor = self._pop(name)
        due = tuple(self.lengths.get(axis) for axis in spec.axes)
        if len(due) == tensor.ndim:
            due = tuple(n if d is None else d for d, n in zip(due, tensor.shape, strict=True))
        if spec.single and self.single and tensor.dtype == np.float32:
            tensor = tensor.astype(np.float64)
        if tensor.dtype != spec.dtype or tensor.shape != due:
            found = f"{tensor.dtype} of shape {tensor.shape}"
            raise ModelFileError(f"{name} is {found}, not {np.dtype(spec.dtype)} of shape {due}.")
        self.lengths.update(zip(spec.axes, tensor.shape, strict=True))
        if spec.finite and tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise ModelFileError(f"{name} has a NaN or an infinity.")
        return tensor.astype(np.intp, copy=False) if tensor.dtype.kind == "i" else tensor

    def known(self, node: Any, kind: type[Value], what: str) -> Value:
        """Return a value from the document, of the type it must have."""
        value = decoded(node, self.functions)
        if not isinstance(value, kind):
            raise ModelFileError(f"its {what} is {short(value)}, which is invalid.")
        return value

    def _pop(self, name: str) -> Array:
        if self.prefix + name not in self.tensors:
            raise ModelFileError(f"{self.prefix}{name} is missing.")
        return self.tensors.pop(self.prefix + name)
