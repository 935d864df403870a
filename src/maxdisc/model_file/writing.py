"""From a model to the document and the tensors of a file."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from maxdisc.calibration.evidence import Evidence
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.decisions.by_length import LengthDecision
from maxdisc.decisions.joint_average import AveragedDecision
from maxdisc.decisions.linear import LinearDecision, log_partitions
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.discriminative import DiscriminativeMaxEnt
from maxdisc.families.blocks import MixedMoments
from maxdisc.fitting.documents import as_pipeline
from maxdisc.model_file.container import ModelFileError
from maxdisc.model_file.fields import BESIDE, FIELDS, Array, Field, Node
from maxdisc.model_file.mixed_columns import put_blocks, put_schema
from maxdisc.model_file.soundness import require_parameters
from maxdisc.model_file.values import encoded, encoded_strings, label_type
from maxdisc.search import MaxDiscSearchCV
from maxdisc.words.scaling import CountScaler
from maxdisc.words.vectorizer import TermFrequencyVectorizer


@dataclass(frozen=True, eq=False)
class Describer:
    """Encoder of models that collects their arrays."""

    functions: Mapping[str, Any]
    moments: bool
    tensors: dict[str, Array]
    prefix: str = ""
    #: The columns that the next step of a pipeline uses, where the others may be left out.
    used: Array | None = None
    #: Prefixes of the steps whose large tensors are written in single precision.
    compact: set[str] = field(default_factory=set)

    def model(self, model: Any) -> Node:
        """Return a pipeline, a classifier of documents, or one estimator; of a search, its best."""
        if type(model) is MaxDiscSearchCV:
            check_is_fitted(model, "best_estimator_")
            model = model.best_estimator_
        pipeline = as_pipeline(model)
        if type(pipeline) is not Pipeline:
            return self.step(model)
        followers = [*(step for _, step in pipeline.steps[1:]), None]
        steps = [
            [name, replace(self, prefix=f"{position}.", used=self._used(step, after)).step(step)]
            for position, ((name, step), after) in enumerate(zip(pipeline.steps, followers, strict=True))
        ]
        if isinstance(model, MaxDiscClassifier):
            return {"kind": "documents", "default": model.vectorizer is None, "steps": steps}
        return {"kind": "pipeline", "verbose": bool(pipeline.verbose), "steps": steps}

    def _used(self, model: Any, after: Any) -> Array | None:
        """Return the columns of a vectorizer that matter to the step after it; None if all do.

        All do where a document's counts are scaled by their sum, which is that of all known terms, unless
        the classifier scales rows anew, over the features that it selected.
        """
        selects = type(model) is TermFrequencyVectorizer and type(after) is MaxDiscClassifier
        if self.moments or not selects:
            return None
        if model.scale is not None and not isinstance(after.decision_, LengthDecision):
            return None
        return np.sort(after.decision_.columns)

    def step(self, model: Any) -> Node:
        """Return one estimator: its parameters and what it learnt."""
        if hasattr(model, "vectorizer_"):
            raise ModelFileError(
                "a classifier of documents that selects words for a later step cannot be saved: put a "
                "TermFrequencyVectorizer before a classifier of its counts."
            )
        if type(model) is MaxDiscClassifier:
            kind = "classifier" if getattr(model, "joint_", None) is None else "joint"
            weighed = getattr(model, "evidence_", None) is not None
            kind = {"classifier": "weighed", "joint": "averaged"}[kind] if weighed else kind
            kind = "mixed" if isinstance(model._model[1], MixedDecision) else kind
            learnt = self.classifier
        elif type(model) is DiscriminativeMaxEnt:
            kind, learnt = "discriminative", self.discriminative
        elif type(model) is TermFrequencyVectorizer:
            kind, learnt = "vectorizer", self.vectorizer
        elif type(model) is CountScaler:
            kind, learnt = "scaler", self.scaler
        else:
            raise ModelFileError(
                f"a {type(model).__name__} cannot be saved: a model file holds a MaxDiscClassifier, a "
                "DiscriminativeMaxEnt, a TermFrequencyVectorizer, a CountScaler, a Pipeline of these, or the "
                "best of a MaxDiscSearchCV."
            )
        check_is_fitted(model)
        parameters = _lasting(model.get_params(deep=False))
        fitted = learnt(model)
        if isinstance(model, MaxDiscClassifier):  # what load would refuse is not written
            require_parameters(parameters, model.classes_, model.n_features_in_)
        if isinstance(model, MaxDiscClassifier) and model.n_iter_:
            fitted["unlabelled"] = {"n_iter": model.n_iter_, "weight": model.unlabelled_weight_}
        return {
            "kind": kind,
            "parameters": {name: encoded(v, self.functions, name) for name, v in parameters.items()},
            "fitted": fitted,
        }

    def vectorizer(self, model: TermFrequencyVectorizer) -> Node:
        """Return what a vectorizer learnt."""
        terms, columns, fitted = model.terms_, model._term_columns, {"mean_length": float(model.mean_length_)}
        if self.used is not None:
            kept = np.isin(columns, self.used)
            terms, columns = terms[kept], columns[kept]
        self._put_strings("terms", terms, "the vocabulary")
        if len(columns) == model._n_terms:
            return fitted
        self._put("columns", columns)
        return {**fitted, "n_features": model._n_terms}

    def scaler(self, model: CountScaler) -> Node:
        """Return what a scaler learnt."""
        self._put_names(model)
        return {"mean_length": float(model.mean_length_), "n_features": int(model.n_features_in_)}

    def classifier(self, model: MaxDiscClassifier) -> Node:
        """Return what a classifier learnt."""
        learnt, path = model._learnt, model.path_
        labels = self._put_labels_and_names(model)
        self._put("class_prior", model.class_prior_)
        self._put("prior", learnt.prior)
        decision = learnt.model[1]
        if isinstance(decision, MixedDecision):
            return self._mixed(model, labels, decision)
        values: dict[str, Any] = {"decision": decision, "path": path}
        average: Node = {}
        evidence = model.evidence_
        if isinstance(evidence, Evidence):
            values["evidence"] = evidence
            if evidence.lengths is not None:
                self.compact.add(self.prefix)
        elif isinstance(decision, AveragedDecision) and evidence is not None:
            values |= {"density": decision.density, "evidence": evidence}
            values |= {f"form{f}": form for f, form in enumerate(decision.forms)}
            self._put_strings("members", np.array(evidence.members, dtype=object), "the models averaged")
            average = {
                "forms": len(decision.forms),
                "trust": decision.trust,
                "log_loss": evidence.log_loss,
                "accuracy": evidence.accuracy,
                "n_rows": evidence.n_rows,
                "prior_exponent": evidence.prior_exponent,
            }
        for name, value in values.items():
            self._put_value(name, value)
        return {
            **self._features(model, "moments"),
            "labels": labels,
            "family": encoded(model.families_[0][0], self.functions, "family"),
            "divergence": encoded(learnt.divergence, self.functions, "divergence"),
            "smoothing": encoded(model.smoothing_, self.functions, "smoothing"),
            "path": path and encoded(path.smoothing, self.functions, "smoothing"),
            **({} if model.joint_ is None else {"joint": encoded(model.joint_, self.functions, "joint")}),
            **({"average": average} if average else {}),
            **({"evidence": _figures(evidence)} if isinstance(evidence, Evidence) else {}),
            **self._lengths(evidence, decision),
            **self._novelty(model),
        }

    def _lengths(self, evidence: Any, decision: Any) -> Node:
        """Return the length that rows are scaled to, where weights depend on how many features they have."""
        if not isinstance(evidence, Evidence) or evidence.lengths is None:
            return {}
        if np.array_equal(decision.baseline, log_partitions(decision.family, decision.weights)):
            del self.tensors[self.prefix + "decision.baseline"]
        self._put_value("lengths", evidence.lengths)
        return {"length": float(evidence.lengths.length)}

    def _features(self, model: MaxDiscClassifier, *names: str) -> Node:
        """Return how many features there are, if only the selected ones are written.

        Puts the moments, by block, under these names, and the ranking.
        """
        learnt = model._learnt
        if self.moments:
            moments = model.moments_
            parts: Any = moments.parts if isinstance(moments, MixedMoments) else [moments]
            self._put_value("ranking", learnt.model[0])
            self._put("stability", learnt.stability)
            levels: Any = [None] * len(parts)
        else:
            selected = learnt.of_selected()
            self._put_value("selected", selected)
            parts, levels = selected.moments or (), selected.levels or ()
        for name, part, level in zip(names, parts, levels, strict=False):
            self._put_value(name, part)
            if part is not None and part.squares is not None:
                self._put(f"{name}.squares", np.array([part.squares]))
            if level is not None:
                self._put(f"{name}.level", np.append(level[0], level[1]))
        return {"moments": self.moments, **({} if self.moments else {"n_features": learnt.n_features})}

    def _novelty(self, model: MaxDiscClassifier) -> Node:
        """Return what is usual of rows of known classes, and the densities of unknown ones."""
        learnt = model._learnt
        if learnt.novelty is None:
            return {}
        self._put_value("novelty", learnt.novelty)
        if learnt.joint is not None:
            return {"novelty": True}  # unknown classes follow from the joint density
        unknown = learnt.unknown
        parts = [part.decision for part in unknown.parts] if isinstance(unknown, MixedDecision) else [unknown]
        for place, part in enumerate(parts):
            for name in BESIDE if len(part.columns) else ():
                spec = FIELDS[LinearDecision][name]
                self._put_field(f"unknown{place}.{name}", getattr(part, name), spec)
        return {"novelty": True}

    def _mixed(self, model: MaxDiscClassifier, labels: str, decision: MixedDecision) -> Node:
        schema, path, evidence = model._schema, model.path_, model.evidence_
        assert schema is not None  # by which the columns were read
        put_schema(self._put, schema)
        self._put_strings("schema.words", schema.levels.words, "the categories")
        put_blocks(self._put, decision)
        self._put_value("path", path)
        self._put_value("evidence", evidence)
        return {
            **self._features(model, *(f"moments{place}" for place in range(len(decision.parts)))),
            "labels": labels,
            "families": [encoded(family, self.functions, "family") for family, _ in schema.families],
            "divergence": encoded(model._learnt.divergence, self.functions, "divergence"),
            "smoothing": encoded(model.smoothing_, self.functions, "smoothing"),
            "path": path and encoded(path.smoothing, self.functions, "smoothing"),
            "evidence": _figures(evidence) if isinstance(evidence, Evidence) else None,
            **self._novelty(model),
        }

    def discriminative(self, model: DiscriminativeMaxEnt) -> Node:
        """Return what a discriminative model learnt."""
        labels = self._put_labels_and_names(model)
        for name in FIELDS[DiscriminativeMaxEnt]:
            self._put(name.rstrip("_"), getattr(model, name))
        fitted: Node = {"labels": labels, "converged": bool(model.converged_)}
        if model.solver_ == "dual":
            fitted["dual"] = {"n_iter": int(model.n_iter_), "gap": float(model.gap_)}
        return fitted

    def _put_labels_and_names(self, model: MaxDiscClassifier | DiscriminativeMaxEnt) -> str:
        """Keep the classes, and the names of features if there are any; the numpy type of the classes."""
        labels = label_type(model.classes_)
        if labels[1] in "OU":
            self._put_strings("classes", model.classes_, "classes_")
        else:
            self._put("classes", model.classes_)
        self._put_names(model)
        return labels

    def _put_names(self, model: Any) -> None:
        if hasattr(model, "feature_names_in_"):
            self._put_strings("names", model.feature_names_in_, "feature_names_in_")

    def _put(self, name: str, array: Array | None) -> None:
        if array is not None:
            self.tensors[self.prefix + name] = array

    def _put_value(self, name: str, value: Any) -> None:
        for part, spec in FIELDS[type(value)].items() if value is not None else ():
            self._put_field(f"{name}.{part}", getattr(value, part), spec)

    def _put_field(self, name: str, array: Array | None, spec: Field) -> None:
        is_compact = spec.single and array is not None and self.prefix in self.compact
        self._put(name, _compact(array) if is_compact and array is not None else array)

    def _put_strings(self, name: str, strings: Array, what: str) -> None:
        for part, array in encoded_strings(strings.tolist(), what).items():
            self._put(f"{name}.{part}", array)


def _compact(array: Array) -> Array:
    """Return an array in single precision, if that loses nothing."""
    single = array.astype(np.float32)
    return single if np.array_equal(single, array) else array


def _figures(evidence: Evidence) -> Node:
    """Return how good weighed evidence was on held-out rows."""
    return {name: getattr(evidence, name) for name in ("log_loss", "accuracy", "n_rows", "ridge")}


def _lasting(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters, with stand-ins for what only another fit would need and no file can hold."""
    # The file has the fitted vectorizer of a model of documents; other models have no use for theirs.
    lasting = {name: value for name, value in parameters.items() if name != "vectorizer"}
    if not isinstance(parameters.get("cv", 5), str | numbers.Integral):
        n_splits = getattr(parameters["cv"], "n_splits", None)
        lasting["cv"] = max(2, int(n_splits)) if isinstance(n_splits, numbers.Integral) else 5
    if not isinstance(parameters.get("random_state"), numbers.Integral | None):
        lasting["random_state"] = None
    if "n_jobs" in parameters:
        lasting["n_jobs"] = None  # who loads a file says how many threads there are
    value = parameters.get("unlabelled")
    if isinstance(value, numbers.Real) and value != value:
        lasting["unlabelled"] = None  # which NaN means anyway
    return lasting
