"""``explain``: why one document or row gets its label."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from maxdisc.cli.console import marked, readable, results, say_json
from maxdisc.cli.failures import BadInputError, command
from maxdisc.cli.option_groups import flatten_groups
from maxdisc.cli.options import (
    DATA,
    OUTPUT,
    FileOptions,
    Format,
    FormatOption,
    JsonOption,
    ModelArgument,
    TextOption,
)

if TYPE_CHECKING:
    from rich.text import Text

    from maxdisc.cli.model import LoadedModel
    from maxdisc.inspection.odds import LogOdds

_SHOWN_LINES = 12
_SHOWN_CHARACTERS = 1500


@command
@flatten_groups
def explain(
    model: ModelArgument,
    document: Annotated[
        Optional[str],
        typer.Argument(
            metavar="[TEXT]", help="The document itself; - reads standard input.", show_default=False
        ),
    ] = None,
    *,
    data: Annotated[
        Optional[str],
        typer.Option("--data", metavar="FILE", help="The file with the row.", rich_help_panel=DATA),
    ] = None,
    row: Annotated[
        int,
        typer.Option(
            "--row",
            metavar="N",
            min=1,
            help="Number of the row, from 1, not counting the header.",
            rich_help_panel=DATA,
        ),
    ] = 1,
    text: TextOption = None,
    format: FormatOption = None,
    files: FileOptions,
    n: Annotated[
        int, typer.Option("-n", metavar="N", min=1, help="Number of features.", rich_help_panel=OUTPUT)
    ] = 12,
    against: Annotated[
        Optional[str],
        typer.Option(
            "--against",
            metavar="LABEL",
            help="Compare with this class instead of the runner-up.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show why one document or row gets its label: an exact sum of log-odds.

    What speaks for the label has a plus, what speaks against it a minus.

    [bold]Examples[/]

    maxdisc explain topics.maxdisc 'The goalie saved the game in overtime'

    maxdisc explain tumour.maxdisc --data test.csv --row 3
    """
    from maxdisc.cli.model import LoadedModel
    from maxdisc.inspection.odds import log_odds

    loaded = LoadedModel.read(model, text)
    where, raw, posterior = _one_row(loaded, document, data, row, format, files)
    if against is not None:
        loaded.require_class(against)
    evidence = log_odds(loaded.fitted, raw, n=n, second=_as_label(loaded, against))
    if json:
        say_json(
            {
                "row": where,
                "label": evidence.first,
                "probability": posterior[evidence.first],
                "against": evidence.second,
                "against_probability": posterior[evidence.second],
                "log_odds": evidence.total,
                "prior": evidence.prior,
                "features": [
                    {"feature": f, "value": None if v != v else v, "log_odds": o}
                    for f, v, o in zip(evidence.features, evidence.values, evidence.odds, strict=True)
                ],
                "others": evidence.others,
                "n_others": evidence.n_others,
            }
        )
    else:
        _show_evidence(loaded, evidence, posterior, raw)


def _as_label(model: LoadedModel, label: str | None) -> Any:
    return None if label is None else model.classifier.classes_[model.classes.index(label)]


def _one_row(
    model: LoadedModel,
    document: str | None,
    data: str | None,
    row: int,
    format: Format | None,
    files: FileOptions,
) -> tuple[str, Any, dict[str, float]]:
    """Return where the row is from, what the model takes, and the probability of each class."""
    import numpy as np

    if (document is None) == (data is None):
        raise BadInputError("name one thing to explain: a text, or a file with --data FILE --row N.")
    if document is not None:
        if model.text is None:
            raise BadInputError(
                f"{model.path} is a model of numbers: explain a row with --data FILE --row N."
            )
        where = "standard input" if document == "-" else "the text"
        raw: Any = [_standard_input(files.encoding) if document == "-" else document]
        log_p = model.estimator.predict_log_proba(raw)[0]
    else:
        dataset = model.dataset([str(data)], None if format is None else format.value, files)
        left = row
        for batch in dataset.batches(model.wanted(dataset)):
            if left <= len(batch):
                one = batch.rows(np.arange(len(batch)) == left - 1)
                raw, log_p = model.raw(one), model.predicted(one).log_probability[0]
                where = batch.where(left - 1)
                break
            left -= len(batch)
        else:
            raise BadInputError(f"{dataset.name} has {row - left:,} rows: there is no row {row:,}.")
    return where, raw, dict(zip(model.classes, np.exp(log_p).tolist(), strict=True))


def _standard_input(encoding: str) -> str:
    from maxdisc.files.byte_streams import require_encoding

    require_encoding(encoding)
    try:
        return sys.stdin.buffer.read().decode(encoding)
    except UnicodeError as error:
        raise BadInputError(f"standard input: {error}; say another --encoding.") from None


def _show_evidence(model: LoadedModel, evidence: LogOdds, posterior: dict[str, float], raw: Any) -> None:
    from rich.table import Table
    from rich.text import Text

    from maxdisc.calibration.evidence import Evidence as Weighed
    from maxdisc.inspection.safe_text import visible

    out = results()
    first, second = visible(evidence.first), visible(evidence.second)
    out.print(
        Text.assemble(
            (first, "bold green"),
            f" {posterior[evidence.first]:.1%}, against ",
            (second, "bold"),
            f" {posterior[evidence.second]:.1%}",
        ),
        soft_wrap=True,
    )
    if model.text is not None:
        out.print()
        out.print(_highlighted(model, raw[0], evidence))
        out.print()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("log-odds", justify="right")
    table.add_column("word" if model.text is not None else "feature", overflow="ellipsis", no_wrap=True)
    table.add_column("" if model.text is not None else "value", justify="right", style="dim")
    for feature, value, odds in zip(evidence.features, evidence.values, evidence.odds, strict=True):
        absent = "absent" if value == 0 else ""
        shown = absent if model.text is not None else _told_value(value)
        table.add_row(marked(odds), Text(visible(feature)), Text(shown))
    if evidence.n_others:
        table.add_row(marked(evidence.others), Text(f"{evidence.n_others:,} others", style="dim"), "")
    biased = isinstance(model.classifier.evidence_, Weighed)
    prior = "share of the class, and its bias" if biased else "share of the class in training"
    table.add_row(marked(evidence.prior), Text(prior, style="dim"), "")
    table.add_row(marked(evidence.total), Text("in sum", style="bold"), "")
    out.print(table)


def _told_value(value: float | str) -> str:
    from maxdisc.inspection.safe_text import shortened

    if isinstance(value, str):
        return shortened(value, 40)
    return "missing" if value != value else f"{value:.6g}"


def _highlighted(model: LoadedModel, document: str, evidence: LogOdds) -> Text:
    """Return the lines of a document in which something speaks, each word in the colour of its side."""
    import re

    from rich.text import Text

    assert model.fitted.before is not None  # a model of documents
    vectorizer = model.fitted.before[0]
    pattern, lower = re.compile(vectorizer.token_pattern), vectorizer.lowercase
    loud = dict(zip(evidence.features, evidence.odds, strict=True))
    lines = [_coloured(line, pattern, lower, loud) for line in document.splitlines() if line.strip()]
    if len(lines) > _SHOWN_LINES:
        lines = [line for line in lines if line.spans][:_SHOWN_LINES]
        lines.append(Text("...", style="dim"))
    return Text("\n").join(lines)


def _coloured(line: str, pattern: Any, lower: bool, loud: dict[str, float]) -> Text:
    from rich.text import Text

    from maxdisc.inspection.safe_text import shortened, visible

    out, end = Text(), 0
    shown = line if len(line) <= _SHOWN_CHARACTERS else shortened(line, _SHOWN_CHARACTERS)
    for found in pattern.finditer(shown):
        word = found.group(0)
        odds = loud.get(word.lower() if lower else word, 0.0)
        if odds:
            out.append(readable(shown[end : found.start()]))
            out.append(visible(word), style="bold green" if odds > 0 else "red")
            end = found.end()
    return out.append(readable(shown[end:]))
