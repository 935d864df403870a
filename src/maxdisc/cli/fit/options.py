"""Options of ``fit``, in the groups of its help, and the parameters that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from maxdisc.cli.failures import BadInputError
from maxdisc.cli.options import (
    DATA,
    LEARNING,
    OUTPUT,
    STREAM,
    TEXT,
    WORKERS,
    ClassWeight,
    DateOrder,
    Divergence,
    Engine,
    Evidence,
    Family,
    FormatOption,
    LabelOption,
    Missing,
    Rule,
    Scale,
    SkipUnlabelledOption,
    Structure,
)

#: Two letters or digits, or more, in a row.
TOKEN_PATTERN = r"(?u)\b\w\w+\b"


# A function: the fields below are evaluated where a lambda would not find the name of the enum.
def _complete_family(incomplete: str) -> list[str]:
    return [name for name in Family if name.startswith(incomplete)]


#: A note is kept in the header of the file.
LONGEST_NOTE = 10_000


@dataclass(frozen=True)
class DataOptions:
    """Files, columns and labels."""

    text: Annotated[
        Optional[list[str]],
        typer.Option(
            "--text",
            metavar="COL",
            help="The column of documents; if repeated, the texts are joined.",
            rich_help_panel=DATA,
        ),
    ] = None
    label: LabelOption = None
    features: Annotated[
        Optional[list[str]],
        typer.Option(
            "--features",
            metavar="COLS",
            help="Columns of a table to use: names, comma lists, globs.",
            rich_help_panel=DATA,
        ),
    ] = None
    exclude: Annotated[
        Optional[list[str]],
        typer.Option("--exclude", metavar="COLS", help="Columns to leave out.", rich_help_panel=DATA),
    ] = None
    categorical: Annotated[
        Optional[list[str]],
        typer.Option(
            "--categorical",
            metavar="COLS",
            help="Columns of numbers that are categories, such as codes.",
            rich_help_panel=DATA,
        ),
    ] = None
    missing: Annotated[
        Missing,
        typer.Option(
            help="ignore: no evidence; informative: use whether a cell is missing.", rich_help_panel=DATA
        ),
    ] = Missing.ignore
    format: FormatOption = None
    dates: Annotated[
        Optional[DateOrder],
        typer.Option(
            "--dates",
            help="The order of day, month and year, if ambiguous.",
            rich_help_panel=DATA,
        ),
    ] = None
    skip_unlabelled: SkipUnlabelledOption = False
    unlabelled: Annotated[
        Optional[str],
        typer.Option(
            "--unlabelled",
            metavar="VALUE",
            help="Also learn from unlabelled rows: those with this label or an empty one ('' for only "
            "empty ones).",
            rich_help_panel=DATA,
        ),
    ] = None
    note: Annotated[
        Optional[str],
        typer.Option(
            "--note",
            metavar="TEXT",
            help="A note on data or model, stored in the file and shown by card and export.",
            rich_help_panel=OUTPUT,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.note is not None and len(self.note) > LONGEST_NOTE:
            raise BadInputError(f"--note has {len(self.note):,} characters: give at most {LONGEST_NOTE:,}.")

    @property
    def format_name(self) -> str | None:
        """The format by name; None if it follows from the file."""
        return None if self.format is None else self.format.value


@dataclass(frozen=True)
class LearningOptions:
    """Settings of the classifier."""

    family: Annotated[
        Optional[list[str]],
        typer.Option(
            metavar="NAME",
            help=f"The densities ({', '.join(Family)}), or COLUMN=NAME for single columns; auto: poisson for "
            "words, by the values of each column for tables.",
            rich_help_panel=LEARNING,
            autocompletion=_complete_family,
        ),
    ] = None
    n_features: Annotated[
        str,
        typer.Option(
            metavar="K", help="auto (selected on folds), all, a number, or a share.", rich_help_panel=LEARNING
        ),
    ] = "auto"
    divergence: Annotated[
        Divergence, typer.Option(help="The ranking criterion.", rich_help_panel=LEARNING)
    ] = Divergence.auto
    structure: Annotated[
        Structure,
        typer.Option(
            help="joint: also constrain covariances, for tables with correlated features. auto: joint "
            "for tables of numbers with more features than rows; for other small tables by held-"
            "out log-loss.",
            rich_help_panel=LEARNING,
        ),
    ] = Structure.auto
    class_weight: Annotated[
        Optional[ClassWeight],
        typer.Option(help="balanced: all classes have the same total weight.", rich_help_panel=LEARNING),
    ] = None
    evidence: Annotated[
        Evidence,
        typer.Option(
            help="refined: corrects single features; calibrated: weights from held-out rows; raw: "
            "uncalibrated; auto: refined for text and other sparse rows.",
            rich_help_panel=LEARNING,
        ),
    ] = Evidence.auto
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Fit several models on the same folds, and write the best.",
            rich_help_panel=LEARNING,
        ),
    ] = False
    redundancy: Annotated[
        float,
        typer.Option(
            metavar="R", min=0.0, help="1: rank redundant features lower.", rich_help_panel=LEARNING
        ),
    ] = 0.0
    smoothing: Annotated[
        str,
        typer.Option(
            metavar="S", help="auto (chosen on folds), or a number of pseudo-rows.", rich_help_panel=LEARNING
        ),
    ] = "auto"
    folds: Annotated[
        str,
        typer.Option(metavar="V", help="A number of folds, holdout, or hash.", rich_help_panel=LEARNING),
    ] = "5"
    rule: Annotated[
        Rule,
        typer.Option(
            help="Number of features: best; one_se: fewest within one standard error; small: fewest "
            "within one point; auto: one_se if evidence is refined, else best.",
            rich_help_panel=LEARNING,
        ),
    ] = Rule.auto
    small: Annotated[
        bool,
        typer.Option("--small", help="The same as --rule small.", rich_help_panel=LEARNING),
    ] = False

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the classifier, without those that depend on columns."""
        return {
            "divergence": self.divergence.value,
            **({} if self.class_weight is None else {"class_weight": self.class_weight.value}),
            "structure": self.structure.value,
            "evidence": self.evidence.value,
            "redundancy": self.redundancy,
            "n_features": _number_or_word(self.n_features, "--n-features", ("auto", "all")),
            "smoothing": _number_or_word(self.smoothing, "--smoothing", ("auto",), real=True),
            "cv": _number_or_word(self.folds, "--folds", ("holdout", "hash")),
            "rule": Rule.small.value if self.small else self.rule.value,
        }


@dataclass(frozen=True)
class WordOptions:
    """How words of documents are counted."""

    scale: Annotated[
        Scale,
        typer.Option(
            help="Scaling of word counts; log: logs of one plus the counts; length: the counts.",
            rich_help_panel=TEXT,
        ),
    ] = Scale.log
    stop_words: Annotated[
        Optional[str],
        typer.Option(
            metavar="WORDS", help="english, or a file with one word per line.", rich_help_panel=TEXT
        ),
    ] = None
    token_pattern: Annotated[
        str,
        typer.Option(
            metavar="REGEX",
            help=r"What a word is; \\S+ is whatever has no spaces, such as emoji and single letters.",
            show_default=False,
            rich_help_panel=TEXT,
        ),
    ] = TOKEN_PATTERN
    min_count: Annotated[
        int, typer.Option(min=1, help="Minimum number of occurrences of a word.", rich_help_panel=TEXT)
    ] = 1
    min_df: Annotated[
        str,
        typer.Option(
            metavar="N", help="Minimum number, or share, of documents with the word.", rich_help_panel=TEXT
        ),
    ] = "1"
    max_df: Annotated[
        str,
        typer.Option(
            metavar="N", help="Maximum number, or share, of documents with the word.", rich_help_panel=TEXT
        ),
    ] = "1.0"
    max_features: Annotated[
        Optional[int],
        typer.Option(min=1, help="Maximum number of words, by frequency.", rich_help_panel=TEXT),
    ] = None
    ngrams: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="Terms of A to B words: 1,2 adds pairs. auto: pairs if they lower the held-out log-loss.",
            rich_help_panel=TEXT,
        ),
    ] = "auto"

    @property
    def are_usual(self) -> bool:
        """Whether the classifier counts words, and pairs if held-out rows ask for them, by itself."""
        return self == WordOptions()

    @property
    def files(self) -> list[Path]:
        """The files that these options read."""
        return [Path(self.stop_words)] if self.stop_words else []

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the vectorizer."""
        return {
            "scale": None if self.scale is Scale.none else self.scale.value,
            "stop_words": _stop_words(self.stop_words),
            "token_pattern": self.token_pattern,
            "min_count": self.min_count,
            "min_df": _number_or_word(self.min_df, "--min-df"),
            "max_df": _number_or_word(self.max_df, "--max-df"),
            "max_features": self.max_features,
            "ngram_range": (1, 1) if self.ngrams == "auto" else _ngrams(self.ngrams),
        }


@dataclass(frozen=True)
class StreamOptions:
    """Passes over rows that are not held in memory."""

    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Read the rows several times instead of holding them in memory.",
            rich_help_panel=STREAM,
        ),
    ] = False
    checkpoint: Annotated[
        Optional[Path],
        typer.Option(
            metavar="DIR",
            help="A folder for checkpoints, from which a stopped fit can be resumed; implies --stream.",
            rich_help_panel=STREAM,
        ),
    ] = None
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue from the checkpoint, if any.", rich_help_panel=STREAM),
    ] = False
    checkpoint_every: Annotated[
        float,
        typer.Option(metavar="S", min=0.0, help="Seconds between checkpoints.", rich_help_panel=STREAM),
    ] = 30.0

    @property
    def is_streamed(self) -> bool:
        """Whether rows are read in batches, never all at once."""
        return self.stream or self.checkpoint is not None

    def folds(self, asked: Any, learning: LearningOptions) -> Any:
        """Return the folds of a stream; raise ``BadInputError`` for what needs the rows in memory."""
        if self.resume and self.checkpoint is None:
            raise BadInputError("--resume goes on from a checkpoint: name its folder with --checkpoint.")
        if learning.search:
            raise BadInputError(
                "--search needs the rows in memory: leave it out, or --stream and --checkpoint."
            )
        joint = learning.structure is Structure.joint
        if joint and learning.evidence is Evidence.refined:
            raise BadInputError(
                "--evidence refined of joint densities needs the rows in memory: use calibrated."
            )
        if joint and self.checkpoint is not None:
            raise BadInputError(
                "--checkpoint keeps no sums of joint densities: leave it out, and use --stream."
            )
        if asked != "hash" and not (isinstance(asked, int) and asked >= 2):
            raise BadInputError(f"--stream takes --folds hash or a number of folds, got {asked}.")
        # The default: folds of a stream go by a hash of the row.
        return "hash" if asked == 5 else asked


@dataclass(frozen=True)
class WorkerOptions:
    """Engines that read the files elsewhere."""

    engine: Annotated[
        Engine,
        typer.Option(
            help="dask, spark: workers read the files; folds are then by hash.", rich_help_panel=WORKERS
        ),
    ] = Engine.local
    scheduler: Annotated[
        Optional[str],
        typer.Option(
            metavar="ADDRESS",
            help="Address of Dask's scheduler; by default workers on this machine.",
            rich_help_panel=WORKERS,
        ),
    ] = None
    master: Annotated[
        Optional[str],
        typer.Option(
            metavar="URL",
            help="Master of Spark, such as spark://host:7077; by default this machine.",
            rich_help_panel=WORKERS,
        ),
    ] = None

    @property
    def are_elsewhere(self) -> bool:
        """Whether workers read the files."""
        return self.engine is not Engine.local

    def require_alone(self, search: bool, stream: bool) -> None:
        """Raise ``BadInputError`` for what needs the rows here."""
        for is_given, what in (
            (search, "--search needs the rows in memory"),
            (stream, "a stream is read here"),
        ):
            if is_given:
                raise BadInputError(f"{what}: leave out --engine {self.engine.value}, or that.")

    def require_named(self) -> None:
        """Raise ``BadInputError`` for the address of an engine that is not used."""
        if self.scheduler is not None and self.engine is not Engine.dask:
            raise BadInputError("--scheduler is of Dask: add --engine dask.")
        if self.master is not None and self.engine is not Engine.spark:
            raise BadInputError("--master is of Spark: add --engine spark.")


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
