"""``fit``: from labelled rows to a model file."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, cast

import typer

from maxdisc.cli.console import Speech, evidence_line, say_facts, say_json, size_of, unlabelled_line
from maxdisc.cli.failures import BadInputError, command
from maxdisc.cli.fit.column_options import AskedColumns, require_numbers
from maxdisc.cli.options import (
    DATA,
    LEARNING,
    OUTPUT,
    STREAM,
    TEXT,
    WORKERS,
    ClassWeight,
    DataArgument,
    Divergence,
    EncodingOption,
    Engine,
    Evidence,
    Family,
    ForceOption,
    Format,
    FormatOption,
    JsonOption,
    LabelOption,
    LayerOption,
    Missing,
    QuietOption,
    Rule,
    Scale,
    SkipUnlabelledOption,
    Structure,
    TextOption,
)
from maxdisc.cli.outputs import require_writable, written_since
from maxdisc.model_file.about import file_names

if TYPE_CHECKING:
    from maxdisc.cli.labelled import Described, LabelledRows
    from maxdisc.files import Dataset, Roles


@command
def fit(
    data: DataArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="MODEL", help="The model file to write.", rich_help_panel=OUTPUT
        ),
    ],
    text: TextOption = None,
    label: LabelOption = None,
    features: Annotated[
        Optional[list[str]],
        typer.Option(
            "--features",
            metavar="COLS",
            help="Columns of a table to use: names, comma lists, globs.",
            rich_help_panel=DATA,
        ),
    ] = None,
    exclude: Annotated[
        Optional[list[str]],
        typer.Option("--exclude", metavar="COLS", help="Columns to leave out.", rich_help_panel=DATA),
    ] = None,
    categorical: Annotated[
        Optional[list[str]],
        typer.Option(
            "--categorical",
            metavar="COLS",
            help="Columns that are categories, even if they hold numbers.",
            rich_help_panel=DATA,
        ),
    ] = None,
    missing: Annotated[
        Missing,
        typer.Option(
            help="ignore: no evidence; informative: that a cell is missing counts.", rich_help_panel=DATA
        ),
    ] = Missing.ignore,
    format: FormatOption = None,
    layer: LayerOption = None,
    encoding: EncodingOption = "utf-8",
    skip_unlabelled: SkipUnlabelledOption = False,
    unlabelled: Annotated[
        Optional[str],
        typer.Option(
            "--unlabelled",
            metavar="VALUE",
            help="Learn from rows without a label, too: those with this one, or none ('' for these alone).",
            rich_help_panel=DATA,
        ),
    ] = None,
    family: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="NAME",
            help=f"The densities ({', '.join(Family)}), or COLUMN=NAME for single columns; auto: poisson for "
            "words, by the values of each column for tables.",
            rich_help_panel=LEARNING,
            autocompletion=lambda incomplete: [name for name in Family if name.startswith(incomplete)],
        ),
    ] = None,
    n_features: Annotated[
        str,
        typer.Option(
            metavar="K", help="auto (on folds), all, a number, or a share.", rich_help_panel=LEARNING
        ),
    ] = "auto",
    divergence: Annotated[
        Divergence, typer.Option(help="What features are ranked by.", rich_help_panel=LEARNING)
    ] = Divergence.js_gm,
    structure: Annotated[
        Structure,
        typer.Option(
            help="joint: covariances too, for tables; better where features move together. auto: joint for "
            "tables of numbers with more features than rows.",
            rich_help_panel=LEARNING,
        ),
    ] = Structure.auto,
    class_weight: Annotated[
        Optional[ClassWeight],
        typer.Option(help="balanced: all classes weigh the same in sum.", rich_help_panel=LEARNING),
    ] = None,
    evidence: Annotated[
        Evidence,
        typer.Option(
            help="refined: single features corrected; calibrated: weighed by held-out rows; raw: as is; "
            "auto: refined for text and other sparse rows.",
            rich_help_panel=LEARNING,
        ),
    ] = Evidence.auto,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Try several models on the same folds, and keep the best.",
            rich_help_panel=LEARNING,
        ),
    ] = False,
    redundancy: Annotated[
        float,
        typer.Option(
            metavar="R", min=0.0, help="1: rank lower what repeats better features.", rich_help_panel=LEARNING
        ),
    ] = 0.0,
    smoothing: Annotated[
        str, typer.Option(metavar="S", help="auto (on folds) or pseudo-rows.", rich_help_panel=LEARNING)
    ] = "auto",
    folds: Annotated[
        str,
        typer.Option(metavar="V", help="A number of folds, holdout, or hash.", rich_help_panel=LEARNING),
    ] = "5",
    rule: Annotated[
        Rule,
        typer.Option(
            help="Features to keep: best; one_se: fewest within one standard error; small: within one point; "
            "auto: one_se if evidence is refined, else best.",
            rich_help_panel=LEARNING,
        ),
    ] = Rule.auto,
    small: Annotated[
        bool,
        typer.Option(
            "--small", help="Fewest features within one point of accuracy.", rich_help_panel=LEARNING
        ),
    ] = False,
    scale: Annotated[
        Scale,
        typer.Option(
            help="Of word counts; log: logs of one plus the counts; length: the counts.", rich_help_panel=TEXT
        ),
    ] = Scale.log,
    stop_words: Annotated[
        Optional[str],
        typer.Option(
            metavar="WORDS", help="english, or a file with a word on each line.", rich_help_panel=TEXT
        ),
    ] = None,
    min_count: Annotated[
        int, typer.Option(min=1, help="Words found less often are dropped.", rich_help_panel=TEXT)
    ] = 1,
    min_df: Annotated[
        str,
        typer.Option(metavar="N", help="Least number, or share, of documents.", rich_help_panel=TEXT),
    ] = "1",
    max_df: Annotated[
        str, typer.Option(metavar="N", help="Greatest number, or share, of documents.", rich_help_panel=TEXT)
    ] = "1.0",
    max_features: Annotated[
        Optional[int],
        typer.Option(min=1, help="Keep only the most frequent words.", rich_help_panel=TEXT),
    ] = None,
    ngrams: Annotated[
        str,
        typer.Option(
            metavar="A,B", help="Words in a row, from A to B: 1,2 adds pairs.", rich_help_panel=TEXT
        ),
    ] = "1,1",
    moments: Annotated[
        bool,
        typer.Option(
            "--keep-moments/--no-moments",
            help="Keep the moments of all features, for further learning and q-values. The file is then many "
            "times larger, by 8 bytes or more for each class and feature.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Read the rows several times, and never hold them all.",
            rich_help_panel=STREAM,
        ),
    ] = False,
    checkpoint: Annotated[
        Optional[Path],
        typer.Option(
            metavar="DIR", help="A folder to go on from if stopped; streams.", rich_help_panel=STREAM
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on from the checkpoint, if there is one.", rich_help_panel=STREAM),
    ] = False,
    checkpoint_every: Annotated[
        float,
        typer.Option(metavar="S", min=0.0, help="Seconds between checkpoints.", rich_help_panel=STREAM),
    ] = 30.0,
    engine: Annotated[
        Engine,
        typer.Option(
            help="dask, spark: workers read the files; folds are then dealt by hash.", rich_help_panel=WORKERS
        ),
    ] = Engine.local,
    scheduler: Annotated[
        Optional[str],
        typer.Option(
            metavar="ADDRESS",
            help="Where Dask's scheduler listens; without it, workers on this machine.",
            rich_help_panel=WORKERS,
        ),
    ] = None,
    master: Annotated[
        Optional[str],
        typer.Option(
            metavar="URL",
            help="Where Spark runs, such as spark://host:7077; without it, on this machine.",
            rich_help_panel=WORKERS,
        ),
    ] = None,
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
    force = force or (resume and written_since(output, checkpoint))
    require_writable(output, force, data, _value(format), [Path(stop_words)] if stop_words else [])
    asked = AskedColumns.of(family or (), categorical or (), missing)
    learning: dict[str, Any] = {
        "family": asked.family,
        "divergence": divergence.value,
        "structure": structure.value,
        "evidence": evidence.value,
        "redundancy": redundancy,
        "n_features": _number_or_word(n_features, "--n-features", ("auto", "all")),
        "smoothing": _number_or_word(smoothing, "--smoothing", ("auto",), real=True),
        "cv": _number_or_word(folds, "--folds", ("holdout", "hash")),
        "rule": Rule.small.value if small else rule.value,
        "missing": asked.missing,
    }
    if class_weight is not None:
        if engine is not Engine.local or stream or checkpoint is not None:
            raise BadInputError(
                "--class-weight needs the rows in memory: leave out --stream, --engine, or it."
            )
        learning["class_weight"] = class_weight.value
    if unlabelled is not None:
        _require_soft(skip_unlabelled, search, stream or checkpoint is not None, engine, structure)
        learning["unlabelled"] = unlabelled
    words = {
        "scale": None if scale is Scale.none else scale.value,
        "stop_words": _stop_words(stop_words),
        "min_count": min_count,
        "min_df": _number_or_word(min_df, "--min-df"),
        "max_df": _number_or_word(max_df, "--max-df"),
        "max_features": max_features,
        "ngram_range": _ngrams(ngrams),
    }
    if search:
        _require_usual(learning, scale)
        asked.require_none("--search", "chooses the model itself", but="--categorical")
    if stream or checkpoint is not None or resume:
        _require_streamable(learning, search, checkpoint, resume)
    elsewhere = _Elsewhere(engine, scheduler, master)
    if engine is not Engine.local:
        elsewhere.require_alone(search, stream or checkpoint is not None)
    elsewhere.require_named()
    # Spark's rows are vectors, whose columns have no kind of their own.
    passing = "--engine spark" if engine is Engine.spark else ""
    if passing:
        asked.require_none(passing, "counts all columns alike")
    alike = "--structure joint" if structure is Structure.joint else "--redundancy" if redundancy else ""
    if alike:
        asked.require_none(alike, "is of numbers of one family")
    from maxdisc.cli.model import note_values
    from maxdisc.files import Dataset, guess_roles

    columns = {"text_column": text, "label_column": label}
    dataset = Dataset(data, format=_value(format), encoding=encoding, layer=layer, **columns)
    only = (features or (), exclude or (), asked.categorical)
    roles = guess_roles(dataset.preview(), label, text, *only, words=not alike)
    if features and dataset.matrix_names is not None:
        raise BadInputError(f"--features picks columns of tables: of {dataset.name} all genes are used.")
    if passing:
        require_numbers(roles, passing)
    learning["family"] = asked.families(roles, dataset.name)
    if redundancy and roles.features and learning["family"] == Family.auto:
        learning["family"] = Family.gaussian.value
    note_values(dataset, speech)
    fitted, streaming = None, None
    rows: Described
    if engine is not Engine.local:
        model, rows = elsewhere.fitted(dataset, roles, learning, words, skip_unlabelled, speech)
        _note_roles(roles, rows, speech)
    else:
        if stream or checkpoint is not None:
            from maxdisc.cli.fit.streaming import Streaming

            settings = {"classifier": learning, "words": words}
            given = (dataset, roles, settings, skip_unlabelled, speech)
            streaming = Streaming(*given, checkpoint, resume, checkpoint_every)
            rows = streaming.look()
        else:
            from maxdisc.cli.labelled import read_labelled

            parts = (roles.label, roles.text, roles.features)
            hint = ", or learn from them, too, with --unlabelled ''"
            kinds = (roles.categories, roles.truths)
            rows = read_labelled(dataset, *parts, skip_unlabelled, speech, unlabelled, hint, *kinds)
        _require_two_classes(rows, roles.label, dataset.name)
        _note_roles(roles, rows, speech)
        speech.say_notes(done=False)
        if streaming is not None:
            model = streaming.fitted()
        else:
            held = cast("LabelledRows", rows)
            with speech.progress(f"fitting {len(rows):,} rows"), held.located():
                fitted = _searched(held, roles, learning["cv"], words) if search else None
                unfitted = _unfitted(roles, learning, words)
                model = fitted.best_estimator_ if fitted else unfitted.fit(held.X, held.y)
                _give_names(model, dataset.matrix_names if roles.text is None else None)
    from maxdisc.model_file.persistence import save

    save(model, output, moments=moments, about=_about(roles, rows, dataset.formats, layer))
    if moments:
        speech.note(_cost_of_moments(output))
    if streaming is not None:
        streaming.finish()
    speech.say_notes()
    facts = _facts(model, roles, rows, output, time.perf_counter() - started)
    if fitted:
        facts["search"] = {
            "chosen": fitted.best_index_,
            "candidates": [
                {**params, "log_loss": loss, "accuracy": accuracy}
                for params, loss, accuracy in zip(
                    *(fitted.cv_results_[name] for name in ("params", "log_loss", "accuracy")), strict=True
                )
            ],
        }
    say_json(facts) if json else _show(facts)


def _cost_of_moments(output: Path) -> str:
    """Return how much of a file its moments take, as text."""
    from maxdisc.model_file.persistence import describe

    facts = describe(output)
    tensors = facts["tensors"].items()
    n_bytes = sum(tensor["bytes"] for name, tensor in tensors if "moments" in name)
    return f"--keep-moments: the moments take {size_of(n_bytes)} of the file's {size_of(facts['bytes'])}"


def _require_soft(skip: bool, search: bool, stream: bool, engine: Engine, structure: Structure) -> None:
    """Raise ``BadInputError`` for what does not go with rows that have no label."""
    for given, flag in (
        (skip, "--skip-unlabelled"),
        (search, "--search"),
        (stream, "--stream and --checkpoint"),
        (engine is not Engine.local, f"--engine {engine.value}"),
        (structure is Structure.joint, "--structure joint"),
    ):
        if given:
            raise BadInputError(f"--unlabelled learns from rows in memory, by one model: leave out {flag}.")


def _require_two_classes(rows: Described, column: str, source: str) -> None:
    from maxdisc.cli.labelled import classes_among

    classes = classes_among(rows)
    if len(classes) < 2:
        only = ", ".join(map(repr, classes))
        raise BadInputError(
            f"column {column!r} of {source} has only one class, {only}: a classifier needs two or more."
        )


def _unfitted(roles: Roles, learning: dict[str, Any], words: dict[str, Any]) -> Any:
    from sklearn.pipeline import Pipeline

    from maxdisc import MaxDiscClassifier

    classifier = MaxDiscClassifier(**learning)
    if roles.text is None:
        return classifier
    from maxdisc.words.vectorizer import TermFrequencyVectorizer

    return Pipeline([("vectorizer", TermFrequencyVectorizer(**words)), ("classifier", classifier)])


def _give_names(model: Any, names: list[str] | None) -> None:
    """Columns of a matrix have their names beside it."""
    if names is not None:
        import numpy as np
        from sklearn.pipeline import Pipeline

        first = model[0] if isinstance(model, Pipeline) else model
        first.feature_names_in_ = np.array(names, dtype=object)


@dataclass(frozen=True)
class _Elsewhere:
    """Workers that read the files themselves."""

    engine: Engine
    scheduler: str | None
    master: str | None

    def require_named(self) -> None:
        """Raise ``BadInputError`` for the address of an engine that is not asked for."""
        if self.scheduler is not None and self.engine is not Engine.dask:
            raise BadInputError("--scheduler is of Dask: add --engine dask.")
        if self.master is not None and self.engine is not Engine.spark:
            raise BadInputError("--master is of Spark: add --engine spark.")

    def require_alone(self, search: bool, stream: bool) -> None:
        """Raise ``BadInputError`` for what needs the rows here."""
        for given, what in ((search, "--search needs the rows in memory"), (stream, "a stream is read here")):
            if given:
                raise BadInputError(f"{what}: leave out --engine {self.engine.value}, or that.")

    def fitted(
        self,
        dataset: Dataset,
        roles: Roles,
        learning: dict[str, Any],
        words: dict[str, Any],
        skip_unlabelled: bool,
        speech: Speech,
    ) -> tuple[Any, Described]:
        """Return a model of the rows, and what is told of them."""
        if self.engine is Engine.spark:
            from maxdisc.cli.fit.on_spark import fit_on_spark

            master = self.master or "local[*]"
            return fit_on_spark(dataset, roles, learning, words, skip_unlabelled, master, speech)
        from maxdisc.cli.fit.on_dask import fit_on_dask

        unfitted = _unfitted(roles, learning, words)
        model, rows = fit_on_dask(unfitted, dataset, roles, self.scheduler, skip_unlabelled, speech)
        dataset.formats.update(rows.formats)
        return model, rows


def _require_streamable(
    learning: dict[str, Any], search: bool, checkpoint: Path | None, resume: bool
) -> None:
    """Raise ``BadInputError`` for what needs the rows in memory; folds go by a hash of the row."""
    if resume and checkpoint is None:
        raise BadInputError("--resume goes on from a checkpoint: name its folder with --checkpoint.")
    if search:
        raise BadInputError("--search needs the rows in memory: leave it out, or --stream and --checkpoint.")
    if learning["structure"] == "joint" and learning["evidence"] == "refined":
        raise BadInputError("--evidence refined of joint densities needs the rows in memory: use calibrated.")
    if learning["structure"] == "joint" and checkpoint is not None:
        raise BadInputError("--checkpoint keeps no sums of joint densities: leave it out, and use --stream.")
    folds = learning["cv"]
    if folds != "hash" and not (isinstance(folds, int) and folds >= 2):
        raise BadInputError(f"--stream takes --folds hash or a number of folds, got {folds}.")
    learning["cv"] = "hash" if folds == 5 else folds


def _require_usual(learning: dict[str, Any], scale: Scale) -> None:
    """Raise ``BadInputError`` where something is given that a search chooses itself."""
    from maxdisc import MaxDiscClassifier

    usual = MaxDiscClassifier().get_params() | {"cv": learning["cv"]}
    given = [name for name, value in learning.items() if value != usual[name]]
    given += [] if scale is Scale.log else ["scale"]
    if given:
        flag = given[0].replace("_", "-")
        raise BadInputError(f"--search chooses the model itself, so leave out --{flag}, or --search.")


def _searched(rows: LabelledRows, roles: Roles, cv: Any, words: dict[str, Any]) -> Any:
    from maxdisc import MaxDiscSearchCV, TermFrequencyVectorizer

    vectorizer = None if roles.text is None else TermFrequencyVectorizer(**words)
    return MaxDiscSearchCV(vectorizer=vectorizer, cv=cv).fit(rows.X, rows.y)


def _about(
    roles: Roles, rows: Described, formats: dict[str, str], layer: str | None = None
) -> dict[str, Any]:
    """Return what the model file remembers of its data: names of files, but not where they were."""
    about: dict[str, Any] = {
        "label": roles.label,
        "rows": len(rows),
        "sources": file_names(formats)[:100],
        "formats": sorted(set(formats.values())),
    }
    if roles.text is not None:
        about["text"] = roles.text
    if layer is not None:
        about["layer"] = layer
    return about


def _facts(model: Any, roles: Roles, rows: Described, output: Path, seconds: float) -> dict[str, Any]:
    from maxdisc.calibration.evidence import Evidence as Weighed
    from maxdisc.inspection.model_view import ModelView

    fitted = ModelView.of(model)
    classifier = fitted.classifier
    path, weighed = classifier.path_, classifier.evidence_
    facts: dict[str, Any] = {
        "model": str(output),
        "bytes": output.stat().st_size,
        "kind": "text" if roles.text else "table",
        "text": roles.text,
        "label": roles.label,
        "rows": len(rows),
        "classes": len(classifier.classes_),
        "family": fitted.family.name,
        "families": fitted.family_counts,
        "structure": "independent" if classifier.joint_ is None else "joint",
        "features": classifier.n_features_in_,
        "features_kept": classifier.n_selected_,
        "smoothing": classifier.smoothing_.amount,
        "evidence": _told_evidence(classifier),
        "held_out_accuracy": None,
        "held_out_log_loss": None,
        "held_out_standard_error": None,
        "folds": None,
        "seconds": round(seconds, 3),
    }
    stand_in = getattr(rows, "unlabelled", None)
    if stand_in is not None:
        facts["unlabelled"] = {
            "rows": int((rows.y == stand_in).sum()),
            "weight": classifier.unlabelled_weight_,
            "steps": classifier.n_iter_,
        }
    if path is not None:
        at = path.best_position(cast(Any, classifier.rule))
        if isinstance(weighed, Weighed):
            at = int(path.sizes.searchsorted(classifier.n_selected_))
        facts["held_out_accuracy"] = float(path.mean_accuracy[at] if weighed is None else weighed.accuracy)
        facts["held_out_log_loss"] = float(path.mean_log_loss[at] if weighed is None else weighed.log_loss)
        facts["held_out_standard_error"] = float(path.standard_error[at])
        facts["folds"] = len(path.weight)
    return facts


def _told_evidence(classifier: Any) -> dict[str, Any]:
    """Return how much the densities of features count, and by what."""
    from maxdisc.calibration.evidence import Evidence as Weighed

    weighed = classifier.evidence_
    if isinstance(weighed, Weighed):
        corrected = 0 if weighed.columns is None else len(weighed.columns)
        kind = "refined" if corrected else "calibrated"
        return {"kind": kind, "weights": weighed.weights.tolist(), "corrected": corrected}
    return {"kind": "raw" if weighed is None else "averaged", "weights": [], "corrected": 0}


def _show(facts: dict[str, Any]) -> None:
    noun = "words" if facts["kind"] == "text" else "features"
    lines = [
        ("rows", f"{facts['rows']:,} in {facts['classes']} classes"),
        (noun, f"{facts['features_kept']:,} kept of {facts['features']:,}, {_told_families(facts)}"),
    ]
    if facts.get("unlabelled", {}).get("rows"):
        lines.append(("unlabelled", unlabelled_line(facts["unlabelled"])))
    if "search" in facts:
        tried = facts["search"]["candidates"]
        best = dict(tried[facts["search"]["chosen"]])
        del best["log_loss"], best["accuracy"]
        chosen = ", ".join(f"{name} {value}" for name, value in best.items())
        lines.append(("chosen", f"{chosen}; best of {len(tried)} models"))
    lines.append(("evidence", evidence_line(facts["evidence"], facts["held_out_log_loss"])))
    if facts["held_out_accuracy"] is not None:
        accuracy, error = facts["held_out_accuracy"], facts["held_out_standard_error"]
        on = "held-out rows" if facts["folds"] == 1 else f"{facts['folds']} folds"
        lines.append(("accuracy", f"{accuracy:.1%} ± {error:.1%} on {on}"))
    lines.append(("model", f"{facts['model']}, {size_of(facts['bytes'])}, in {facts['seconds']:.1f} s"))
    say_facts(lines)


def _told_families(facts: dict[str, Any]) -> str:
    if len(facts["families"]) == 1:
        kind = "joint " if facts["structure"] == "joint" else ""
        return f"{kind}{facts['family']} densities"
    return "by family: " + ", ".join(f"{n:,} {name}" for name, n in facts["families"].items())


def _note_roles(roles: Roles, rows: Described, speech: Speech) -> None:
    """Show what was guessed, and what was left out."""
    from maxdisc.cli.labelled import classes_among

    if roles.guessed:
        parts = [f"label: {roles.label} ({len(classes_among(rows))} classes)"]
        flags = ["--label"] if "label" in roles.guessed else []
        if roles.text is not None:
            parts.append(f"text: {roles.text}")
            flags += ["--text"] if "text" in roles.guessed else []
        elif roles.features:
            parts.append(f"features: {_some(roles.features)}")
            flags += ["--features"] if "features" in roles.guessed else []
        speech.note(", ".join(parts) + "; change with " + ", ".join(flags))
    for reason in dict.fromkeys(reason for _, reason in roles.left_out):
        names = [name for name, why in roles.left_out if why == reason]
        why = (
            reason
            if len(names) == 1
            else reason.replace("it holds", "they hold").replace("it numbers", "they number")
        )
        speech.note(f"left out: {_some(names)} ({why})")


def _some(names: Any, shown: int = 5) -> str:
    names = list(names)
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def _value(format: Format | None) -> str | None:
    return None if format is None else format.value


def _number_or_word(written: str, flag: str, words: tuple[str, ...] = (), real: bool = False) -> Any:
    """Return a whole number, a fraction, or one of the words."""
    if written in words:
        return written
    try:
        number = float(written)
        if math.isfinite(number):
            return number if real or not written.strip().lstrip("+-").isdecimal() else int(written)
    except ValueError:
        pass
    raise BadInputError(
        f"{flag} takes {', '.join([*words, 'or a number' if words else 'a number'])}, got {_brief(written)}."
    )


def _ngrams(written: str) -> tuple[int, int]:
    low, _, high = written.replace("-", ",").partition(",")
    try:
        return int(low), int(high or low)
    except ValueError:
        raise BadInputError(f"--ngrams takes two numbers, such as 1,2, got {_brief(written)}.") from None


def _brief(written: str) -> str:
    return repr(written if len(written) <= 40 else written[:40] + "...")


def _stop_words(written: str | None) -> Any:
    if written in (None, "none"):
        return None
    if written == "english":
        return "english"
    path = Path(str(written))
    if not path.is_file():
        raise BadInputError(f"--stop-words takes english or a file of words, and there is no file {written}.")
    try:
        return sorted(set(path.read_text(encoding="utf-8").split()))
    except UnicodeDecodeError:
        raise BadInputError(f"{path} is not UTF-8.") from None
