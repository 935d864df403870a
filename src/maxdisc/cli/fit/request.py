"""A fit as it was asked for: options that go together, and what they mean for the columns of the data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maxdisc.cli.failures import BadInputError
from maxdisc.cli.fit.column_options import ColumnOptions, require_numbers
from maxdisc.cli.fit.options import (
    TOKEN_PATTERN,
    DataOptions,
    LearningOptions,
    StreamOptions,
    WordOptions,
    WorkerOptions,
)
from maxdisc.cli.options import Engine, Family, FileOptions, Scale, Structure

if TYPE_CHECKING:
    from maxdisc.cli.console import Speech
    from maxdisc.files import Batch, Dataset, Roles


@dataclass(frozen=True)
class FitRequest:
    """Validated options of a fit."""

    data: DataOptions
    files: FileOptions
    columns: ColumnOptions
    #: Parameters of the classifier and of the vectorizer.
    learning: dict[str, Any]
    words: dict[str, Any]
    #: Whether the classifier counts words by itself, as no option says how.
    usual_words: bool
    #: Whether labels that are numbers were said to be names.
    labels_are_names: bool
    search: bool
    passes: StreamOptions
    workers: WorkerOptions

    @classmethod
    def of(
        cls,
        data: DataOptions,
        files: FileOptions,
        learning: LearningOptions,
        words: WordOptions,
        passes: StreamOptions,
        workers: WorkerOptions,
    ) -> FitRequest:
        """Validate the options; raise ``BadInputError`` for incompatible ones."""
        labels_are_names = data.label in (data.categorical or ())
        categorical = [names for names in data.categorical or () if names != data.label]
        columns = ColumnOptions.of(learning.family or (), categorical, data.missing)
        parameters = {"family": columns.family, **learning.parameters(), "missing": columns.missing}
        if learning.class_weight is not None and (
            workers.are_elsewhere or passes.is_streamed or passes.checkpoint is not None
        ):
            raise BadInputError(
                "--class-weight needs the rows in memory: leave out --stream, --engine, or it."
            )
        if data.unlabelled is not None:
            _require_soft(data.skip_unlabelled, learning, passes, workers)
            parameters["unlabelled"] = data.unlabelled
        word_parameters = words.parameters()
        if learning.search:
            _require_usual(parameters, words.scale)
            columns.require_none("--search", "chooses the model itself", but="--categorical")
        if passes.is_streamed or passes.resume:
            parameters["cv"] = passes.folds(parameters["cv"], learning)
        if workers.are_elsewhere:
            workers.require_alone(learning.search, passes.is_streamed)
        workers.require_named()
        request = cls(
            data,
            files,
            columns,
            parameters,
            word_parameters,
            words.are_usual,
            labels_are_names,
            learning.search,
            passes,
            workers,
        )
        if workers.engine is Engine.spark:
            # Spark's rows are vectors, whose columns have no kind of their own.
            columns.require_none("--engine spark", "counts all columns alike")
        if request.one_family:
            columns.require_none(request.one_family, "is of numbers of one family")
        return request

    @property
    def one_family(self) -> str:
        """The option that needs numbers of one family; empty if none is set."""
        if self.learning["structure"] == Structure.joint.value:
            return "--structure joint"
        return "--redundancy" if self.learning["redundancy"] else ""

    def roles(self, dataset: Dataset) -> Roles:
        """Return which columns hold the label, the text and the features."""
        from maxdisc.files import guess_roles

        features, exclude = self.data.features or (), self.data.exclude or ()
        roles = guess_roles(
            dataset.preview(),
            self.data.label,
            self.data.text,
            features,
            exclude,
            self.columns.categorical,
            words=not self.one_family,
            decimal=self.files.decimal,
            dates=self.data.dates,
        )
        dataset.readings = roles.readings
        if features and dataset.matrix_names is not None:
            raise BadInputError(f"--features picks columns of tables: of {dataset.name} all genes are used.")
        if self.workers.engine is Engine.spark:
            require_numbers(roles, "--engine spark")
        return roles

    def require_words(self, batch: Batch, roles: Roles, speech: Speech, *, by_option: bool = True) -> None:
        """Raise ``BadInputError`` if most of the first documents have no word; note it if some have none.

        ``by_option``: whether the command has an option that says what a word is.
        """
        if roles.text is None:
            return
        pattern = _pattern(self.words["token_pattern"])
        there = [text for text in batch.texts(roles.text) if text.strip()]
        without = sum(pattern.search(text) is None for text in there)
        told = f"{without:,} of the first {len(there):,} documents of {batch.source} hold no word"
        if 2 * without > len(there):
            is_usual = self.words["token_pattern"] == TOKEN_PATTERN
            what = ", which is two letters or digits or more" if is_usual else ""
            say = "say" if by_option else "leave them out, or use maxdisc fit with"
            raise BadInputError(
                f"{told}{what}: {say} --token-pattern '\\S+' to take whatever stands between spaces as words."
            )
        if 10 * without > len(there):
            speech.note(f"{told}: --token-pattern says what a word is" if by_option else told)

    def parameters(self, roles: Roles, source: str) -> dict[str, Any]:
        """Return the parameters of the classifier for these columns."""
        family = self.columns.families(roles, source)
        if self.learning["redundancy"] and roles.features and family == Family.auto:
            family = Family.gaussian.value
        return self.learning | {"family": family}


def _pattern(written: str) -> re.Pattern[str]:
    try:
        return re.compile(written)
    except re.error as error:
        raise BadInputError(f"--token-pattern {written!r} is no regular expression: {error}.") from None


def _require_soft(
    skip: bool, learning: LearningOptions, passes: StreamOptions, workers: WorkerOptions
) -> None:
    """Raise ``BadInputError`` for what does not go with rows that have no label."""
    for is_given, flag in (
        (skip, "--skip-unlabelled"),
        (learning.search, "--search"),
        (passes.is_streamed, "--stream and --checkpoint"),
        (workers.are_elsewhere, f"--engine {workers.engine.value}"),
        (learning.structure is Structure.joint, "--structure joint"),
    ):
        if is_given:
            raise BadInputError(f"--unlabelled learns from rows in memory, by one model: leave out {flag}.")


def _require_usual(parameters: dict[str, Any], scale: Scale) -> None:
    """Raise ``BadInputError`` where something is given that a search chooses itself."""
    from maxdisc import MaxDiscClassifier

    usual = MaxDiscClassifier().get_params() | {"cv": parameters["cv"]}
    changed = [name for name, value in parameters.items() if value != usual[name]]
    changed += [] if scale is Scale.log else ["scale"]
    if changed:
        flag = changed[0].replace("_", "-")
        raise BadInputError(f"--search chooses the model itself, so leave out --{flag}, or --search.")
