"""Served models: in their own memory, with cached facts for requests."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from maxdisc.inspection.curves import DensityCurves, density_curves
from maxdisc.inspection.model_input import ModelInput, takes_text
from maxdisc.inspection.ranking import RankingTable, ranking_table
from maxdisc.model_file.about import remembered
from maxdisc.model_file.container import Container, ModelFileError
from maxdisc.model_file.persistence import from_bytes
from maxdisc.numerics.matrices import Floats
from maxdisc.serve.json_rows import Columns
from maxdisc.words.counting import MANY_CHARACTERS, WordRule
from maxdisc.words.vectorizer import TermFrequencyVectorizer

# So many columns, the best first, have typical values; ranges cover this share of a class.
_TYPICAL_COLUMNS, _TYPICAL_SHARE = 36, 0.9
# Of more classes than this, the extremes give the ranges.
_TYPICAL_CLASSES = 20
# So long that compiled code is loaded for it, before the first long request comes.
_WARM = "warm " * (MANY_CHARACTERS // 5 + 1)


@dataclass(frozen=True, eq=False)
class ServedModel(ModelInput):
    """Loaded model with facts about its file."""

    name: str
    file: dict[str, Any]

    @classmethod
    def read(cls, name: str, path: Path) -> ServedModel:
        """Load a complete model file into memory, so that changes to the file have no effect.

        Raise ``ValueError`` with one line if the file holds no model that can be served.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ModelFileError(f"{path}: {error.strerror or error}") from None
        estimator = from_bytes(content, str(path))
        container = Container.of(content)
        about = remembered(container.document["about"])
        taker = _taken(estimator, about, path)
        checksum = content[container.checksum.begin : container.checksum.end].hex()
        file = {
            "format": container.document["format"],
            "bytes": len(content),
            "checksum": checksum,
            "loaded_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        return cls(taker.estimator, taker.fitted, taker.text, about, name, file).warmed()

    def warmed(self) -> ServedModel:
        """Warm up the model, so that the first request does not wait; an empty row may be invalid."""
        with contextlib.suppress(ValueError):
            self._warm_up()
        return self

    def _warm_up(self) -> None:
        if self.text is not None:
            for documents in ([""], ["warm up"] * 32, [_WARM]):
                said = self.said(documents)
            _ = self.places
        else:
            said = self.said(self.table.taken([{}]))
        if self.classifier._learnt.novelty is not None:
            self.novelty(said)

    @property
    def kind(self) -> str:
        """The kind of input: text, rows of a table, or vectors without column names."""
        return "text" if self.text is not None else "table" if self.features else "vectors"

    @cached_property
    def table(self) -> Columns:
        """The columns of a model that takes no text."""
        return Columns(self)

    @property
    def vectorizer(self) -> TermFrequencyVectorizer:
        """What counts the words of a model of text."""
        assert self.fitted.before is not None  # a model of text
        found = self.fitted.before[0]
        assert isinstance(found, TermFrequencyVectorizer)  # nothing else in a model file takes text
        return found

    @cached_property
    def _word_rule(self) -> WordRule:
        """How single words are found; the shortest terms of a model that counts no single words."""
        rule = self.vectorizer._checked_rule()
        return replace(rule, ngram_range=(rule.ngram_range[0],) * 2)

    def words_of(self, document: str) -> list[str]:
        """Return the words of a document, in the model's vocabulary or not."""
        return self._word_rule.terms(document)

    @cached_property
    def places(self) -> dict[str, int]:
        """From names of features to columns."""
        names = self.fitted.names.tolist()
        return {str(name): at for at, name in reversed(list(enumerate(names)))}

    @cached_property
    def kept(self) -> Any:
        """Which columns are kept, shape (D,)."""
        out = np.zeros(len(self.fitted.names), dtype=np.bool_)
        out[self.classifier.decision_.columns] = True
        return out

    @cached_property
    def ranks(self) -> dict[int, int]:
        """Position in the ranking by column."""
        return {column: rank for rank, column in enumerate(self.classifier.ranking_.tolist())}

    @cached_property
    def typical(self) -> dict[str, dict[str, Any]]:
        """Range of typical values, and a typical value of the largest class, of the best selected columns."""
        columns = self.classifier.decision_.columns[:_TYPICAL_COLUMNS]
        largest = self.classes[int(np.argmax(self.classifier.class_prior_))]
        try:
            curves = density_curves(self.fitted, columns, _TYPICAL_CLASSES)
        except (AttributeError, ValueError):
            return {}
        return {each.feature: _typical(each, largest) for each in curves if each.classes}

    @cached_property
    def ranking(self) -> RankingTable:
        """All features, best first: seconds of work for very many, and never done for a model unasked."""
        return ranking_table(self.fitted, n=len(self.fitted.names), per_class=1)

    @cached_property
    def lower_names(self) -> list[str]:
        """The names of the ranking, for a search without regard to case."""
        return [str(name).lower() for name in self.ranking.features]


def _taken(estimator: Any, about: dict[str, Any], path: Path) -> ModelInput:
    try:
        taker = ModelInput.of(estimator, about)
        _ = taker.readings
    except ValueError as error:
        raise ModelFileError(f"{path}: {error}") from None
    if takes_text(taker.fitted) and not isinstance(taker.fitted.before[0], TermFrequencyVectorizer):  # type: ignore[index]  # text has a step before
        raise ModelFileError(f"{path}: its first step takes neither text nor rows.")
    return taker


def _typical(curves: DensityCurves, label: str) -> dict[str, Any]:
    """Return the range of what is typical of any class, and a typical value of one."""
    of = curves.classes.index(label) if label in curves.classes else 0
    if curves.kind == "bars":
        best = int(np.argmax(curves.height[of]))
        value = curves.levels[best] if curves.levels else float(curves.x[of][best])
        return {"range": None, "example": value}
    tail = (1 - _TYPICAL_SHARE) / 2
    zeros = curves.at_zero or [0.0] * len(curves.classes)
    quantiles = np.array(
        [
            _quantiles(x, height, 0.0 if curves.kind == "lattice" else zero, [tail, 0.5, 1 - tail])
            for x, height, zero in zip(curves.x, curves.height, zeros, strict=True)
        ]
    )
    if curves.kind == "lattice":
        quantiles = quantiles.round()
    rounded = [
        float(f"{value:.3g}") for value in (quantiles[:, 0].min(), quantiles[:, 2].max(), quantiles[of, 1])
    ]
    return {"range": rounded[:2], "example": rounded[2]}


def _quantiles(x: Floats, height: Floats, at_zero: float, levels: list[float]) -> Floats:
    """Return quantiles of a density that is known at some points; zeros may have a share of their own."""
    heights = np.nan_to_num(height, posinf=0.0)
    mass = np.r_[0.0, np.cumsum((heights[1:] + heights[:-1]) / 2 * np.diff(x))]
    if len(x) < 2 or mass[-1] <= 0:
        return np.full(len(levels), x[0] if at_zero < 1 else 0.0)
    inside = (np.array(levels) - at_zero) / max(1 - at_zero, 1e-12)
    return np.where(inside <= 0, 0.0 if at_zero else x[0], np.interp(inside, mass / mass[-1], x))
