"""``fit``: from labelled rows to a model file."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxdisc.cli.console import Speech, say_json
from maxdisc.cli.failures import command
from maxdisc.cli.fit.options import DataOptions, LearningOptions, StreamOptions, WordOptions, WorkerOptions
from maxdisc.cli.fit.reading import open_data, read_rows, require_classes
from maxdisc.cli.fit.request import FitRequest
from maxdisc.cli.fit.summary import fit_facts, moments_note, note_roles, show_facts
from maxdisc.cli.option_groups import flatten_groups
from maxdisc.cli.options import (
    OUTPUT,
    DataArgument,
    Engine,
    FileOptions,
    ForceOption,
    JsonOption,
    QuietOption,
)
from maxdisc.cli.outputs import require_writable, written_since
from maxdisc.model_file.about import file_names
from maxdisc.numerics.phases import phases_told_to

if TYPE_CHECKING:
    from maxdisc.cli.fit.streaming import Streaming
    from maxdisc.cli.labelled import Described, LabelledRows
    from maxdisc.files import Dataset, Roles


@command
@flatten_groups
def fit(
    data: DataArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="The model file to write.", rich_help_panel=OUTPUT
        ),
    ],
    *,
    columns: DataOptions,
    files: FileOptions,
    learning: LearningOptions,
    words: WordOptions,
    moments: Annotated[
        bool,
        typer.Option(
            "--keep-moments/--no-moments",
            help="Store the moments of all features, for further training and q-values. The file is "
            "then many times larger, by 8 bytes or more for each class and feature.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    passes: StreamOptions,
    workers: WorkerOptions,
    force: ForceOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Learn from labelled documents or from a table, and write a model file.

    Text and label columns are guessed, and the guess is shown.
    Columns of a table may hold numbers, truth values or categories.
    How many features to keep is chosen on folds.

    [bold]Examples[/]

    maxdisc fit train.csv --text body --label topic -o topics.maxdisc

    maxdisc fit 'parts/*.parquet' --label tumour --exclude 'id,batch_*' -o tumour.maxdisc

    maxdisc fit people.csv --label income --categorical zip --family age=gamma -o people.maxdisc

    maxdisc fit mail/ -o mail.maxdisc   (mail/spam/1.txt, mail/ham/2.txt, ...)

    maxdisc fit train.csv --search -o best.maxdisc

    maxdisc fit mostly-unlabelled.csv --unlabelled '' -o topics.maxdisc

    maxdisc fit 'parts/*.parquet' --engine dask --scheduler tcp://10.0.0.5:8786 -o parts.maxdisc

    maxdisc fit 'parts/*.parquet' --label tumour --engine spark --master 'local[4]' -o tumour.maxdisc
    """
    started = time.perf_counter()
    speech = Speech(quiet)
    force = force or (passes.resume and written_since(output, passes.checkpoint))
    require_writable(output, force, data, columns.format_name, words.files)
    request = FitRequest.of(columns, files, learning, words, passes, workers)
    from maxdisc.cli.model import note_values

    dataset = open_data(data, columns, files)
    roles = request.roles(dataset)
    parameters = request.parameters(roles, dataset.name)
    note_values(dataset, speech)
    request.require_words(dataset.preview(), roles, speech)
    fit_rows = _fit_elsewhere if workers.are_elsewhere else _fit_here
    result = fit_rows(request, parameters, dataset, roles, speech)
    from maxdisc.model_file.persistence import save

    about = _about(roles, result.rows, dataset) | ({"note": columns.note} if columns.note else {})
    with speech.progress(f"writing {output}"):
        save(result.model, output, moments=moments, about=about)
    if moments:
        speech.note(moments_note(output))
    if result.streaming is not None:
        result.streaming.finish()
    speech.say_notes()
    seconds = time.perf_counter() - started
    facts = fit_facts(result.model, roles, result.rows, output, seconds, result.search)
    say_json(facts) if json else show_facts(facts)


@dataclass(frozen=True)
class _Result:
    """A fitted model, what is known of its rows, and the search or the stream that it comes from."""

    model: Any
    rows: Described
    search: Any = None
    streaming: Streaming | None = None


def _fit_elsewhere(
    request: FitRequest, parameters: dict[str, Any], dataset: Dataset, roles: Roles, speech: Speech
) -> _Result:
    """Fit on workers that read the files themselves."""
    skip, workers = request.data.skip_unlabelled, request.workers
    rows: Described
    if workers.engine is Engine.spark:
        from maxdisc.cli.fit.on_spark import fit_on_spark

        master = workers.master or "local[*]"
        model, rows = fit_on_spark(dataset, roles, parameters, request.words, skip, master, speech)
    else:
        from maxdisc.cli.fit.on_dask import fit_on_dask

        estimator = _make_estimator(roles, parameters, request.words)
        model, seen = fit_on_dask(estimator, dataset, roles, workers.scheduler, skip, speech)
        dataset.formats.update(seen.formats)
        rows = seen
    note_roles(roles, rows, speech)
    return _Result(model, rows)


def _fit_here(
    request: FitRequest, parameters: dict[str, Any], dataset: Dataset, roles: Roles, speech: Speech
) -> _Result:
    """Fit in this process, to rows in memory or in several passes over the files."""
    if request.passes.is_streamed:
        return _fit_stream(request, parameters, dataset, roles, speech)
    rows = read_rows(request, dataset, roles, speech, ", or learn from them, too, with --unlabelled ''")
    note_roles(roles, rows, speech)
    speech.say_notes(done=False)
    progress = speech.progress(f"fitting {len(rows):,} rows")
    with progress as tell, phases_told_to(lambda phase: tell(0, 0, phase)), rows.located():
        if request.search:
            search = _search(rows, roles, parameters["cv"], request.words)
            model = search.best_estimator_
        else:
            search = None
            words = None if request.usual_words else request.words
            model = _make_estimator(roles, parameters, words).fit(rows.X, rows.y)
        _give_names(model, dataset.matrix_names if roles.text is None else None)
    return _Result(model, rows, search)


def _fit_stream(
    request: FitRequest, parameters: dict[str, Any], dataset: Dataset, roles: Roles, speech: Speech
) -> _Result:
    """Fit in several passes over the files."""
    from maxdisc.cli.fit.streaming import Streaming

    settings = {"classifier": parameters, "words": request.words}
    passes = request.passes
    streaming = Streaming(
        dataset,
        roles,
        settings,
        request.data.skip_unlabelled,
        speech,
        passes.checkpoint,
        passes.resume,
        passes.checkpoint_every,
    )
    rows = streaming.look()
    require_classes(rows, roles.label, dataset.name, request.labels_are_names)
    note_roles(roles, rows, speech)
    speech.say_notes(done=False)
    return _Result(streaming.fit(), rows, streaming=streaming)


def _make_estimator(roles: Roles, parameters: dict[str, Any], words: dict[str, Any] | None) -> Any:
    """Return a classifier, after a vectorizer for text if it has parameters."""
    from sklearn.pipeline import Pipeline

    from maxdisc import MaxDiscClassifier

    classifier = MaxDiscClassifier(**parameters)
    if roles.text is None or words is None:
        return classifier
    from maxdisc.words.vectorizer import TermFrequencyVectorizer

    return Pipeline([("vectorizer", TermFrequencyVectorizer(**words)), ("classifier", classifier)])


def _search(rows: LabelledRows, roles: Roles, cv: Any, words: dict[str, Any]) -> Any:
    from maxdisc import MaxDiscSearchCV, TermFrequencyVectorizer

    vectorizer = None if roles.text is None else TermFrequencyVectorizer(**words)
    return MaxDiscSearchCV(vectorizer=vectorizer, cv=cv).fit(rows.X, rows.y)


def _give_names(model: Any, names: list[str] | None) -> None:
    """Set the names of the columns of a matrix."""
    if names is not None:
        import numpy as np
        from sklearn.pipeline import Pipeline

        first = model[0] if isinstance(model, Pipeline) else model
        first.feature_names_in_ = np.array(names, dtype=object)


def _about(roles: Roles, rows: Described, dataset: Dataset) -> dict[str, Any]:
    """Return what the model file remembers of its data: names of files, but not where they were."""
    formats = dataset.find_formats()
    about: dict[str, Any] = {
        "label": roles.label,
        "rows": len(rows),
        "sources": file_names(formats)[:100],
        "formats": sorted(set(formats.values())),
    }
    if roles.text is not None:
        about["text"] = roles.text
    if dataset.layer is not None:
        about["layer"] = dataset.layer
    if dataset.header is False:
        about["header"] = False
    if roles.readings:
        about["readings"] = {feature: reading.stored() for feature, reading in roles.readings.items()}
    return about
