"""Options that several commands share, each written once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from maxdisc.cli.failures import BadInputError

DATA, LEARNING, TEXT, OUTPUT = "Data", "Learning", "Text", "Output"
STREAM, WORKERS = "Larger than memory", "Workers"


class Format(StrEnum):
    """File formats."""

    csv = "csv"
    tsv = "tsv"
    excel = "excel"
    parquet = "parquet"
    jsonl = "jsonl"
    svmlight = "svmlight"
    h5ad = "h5ad"
    lines = "lines"
    folder = "folder"


class Family(StrEnum):
    """Families of densities."""

    auto = "auto"
    exponential = "exponential"
    gaussian = "gaussian"
    bernoulli = "bernoulli"
    geometric = "geometric"
    poisson = "poisson"
    gamma = "gamma"
    beta = "beta"
    hurdle = "hurdle"
    categorical = "categorical"


class Missing(StrEnum):
    """Treatment of missing cells."""

    ignore = "ignore"
    informative = "informative"


class Divergence(StrEnum):
    """Ranking criteria."""

    auto = "auto"
    js_gm = "js_gm"
    jeffreys = "jeffreys"
    kl = "kl"
    jensen_shannon = "jensen_shannon"
    rao = "rao"


class Structure(StrEnum):
    """Whether features are independent within a class."""

    auto = "auto"
    independent = "independent"
    joint = "joint"


class ClassWeight(StrEnum):
    """Class weights."""

    balanced = "balanced"


class Evidence(StrEnum):
    """Kinds of evidence."""

    auto = "auto"
    calibrated = "calibrated"
    refined = "refined"
    raw = "raw"


class Rule(StrEnum):
    """Rules for the number of features."""

    auto = "auto"
    best = "best"
    one_se = "one_se"
    small = "small"


class Scale(StrEnum):
    """Scaling of word counts."""

    length = "length"
    log = "log"
    frequency = "frequency"
    none = "none"


class Engine(StrEnum):
    """Engines."""

    local = "local"
    dask = "dask"
    spark = "spark"


class DateOrder(StrEnum):
    """Order of the parts of a date."""

    dmy = "dmy"
    mdy = "mdy"


class ReportFormat(StrEnum):
    """Formats of reports."""

    html = "html"
    md = "md"
    json = "json"


DataArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="Files, folders (one document in each file, labelled by its folder), quoted globs, or - for "
        "standard input.",
        show_default=False,
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file written by fit.", show_default=False)
]
FormatOption = Annotated[
    Optional[Format],
    typer.Option("--format", help="Format of the data, if not recognised.", rich_help_panel=DATA),
]
TextOption = Annotated[
    Optional[str],
    typer.Option("--text", metavar="COL", help="The column of documents.", rich_help_panel=DATA),
]
LabelOption = Annotated[
    Optional[str],
    typer.Option("--label", metavar="COL", help="The column of labels.", rich_help_panel=DATA),
]


@dataclass(frozen=True)
class FileOptions:
    """Options for reading files."""

    layer: Annotated[
        Optional[str],
        typer.Option(
            "--layer",
            metavar="NAME",
            help="Values of h5ad files: a layer, X or raw; by default raw if it exists.",
            rich_help_panel=DATA,
        ),
    ] = None
    encoding: Annotated[
        str, typer.Option("--encoding", help="Encoding of text files, such as latin-1.", rich_help_panel=DATA)
    ] = "utf-8"
    sheet: Annotated[
        Optional[str],
        typer.Option(
            "--sheet",
            metavar="NAME",
            help="Sheet of Excel files, by name or number; by default the first.",
            rich_help_panel=DATA,
        ),
    ] = None
    separator: Annotated[
        Optional[str],
        typer.Option(
            "--sep",
            metavar="CHAR",
            help="Separator of CSV files, such as tab; by default guessed.",
            rich_help_panel=DATA,
        ),
    ] = None
    header: Annotated[
        Optional[bool],
        typer.Option(
            "--header/--no-header",
            help="Whether the first row of CSV and Excel files holds column names; if not, they are "
            "c0, c1, ...",
            show_default=False,
            rich_help_panel=DATA,
        ),
    ] = None
    decimal: Annotated[
        Optional[str],
        typer.Option(
            "--decimal",
            metavar="MARK",
            help="The decimal mark, . or , if ambiguous.",
            rich_help_panel=DATA,
        ),
    ] = None

    def reading(self) -> dict[str, Any]:
        """Return the arguments of a data set; raise ``BadInputError`` for what cannot be."""
        separator = {"tab": "\t", "\\t": "\t", "space": " "}.get(self.separator or "", self.separator)
        if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n'):
            raise BadInputError(f"--sep takes one character, such as ; or tab, not {self.separator!r}.")
        if self.decimal not in (None, ".", ","):
            raise BadInputError(f"--decimal takes . or , and not {self.decimal!r}.")
        return {
            "encoding": self.encoding,
            "layer": self.layer,
            "sheet": self.sheet,
            "separator": separator,
            "header": self.header,
        }


SkipUnlabelledOption = Annotated[
    bool, typer.Option("--skip-unlabelled", help="Leave out rows without a label.", rich_help_panel=DATA)
]
ForceOption = Annotated[
    bool, typer.Option("--force", "-f", help="Overwrite existing files.", rich_help_panel=OUTPUT)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=OUTPUT)]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="No notes and no progress.", rich_help_panel=OUTPUT)
]
