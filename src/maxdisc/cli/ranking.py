"""``rank``: the features that tell the classes apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from maxdisc.cli.failures import command
from maxdisc.cli.options import OUTPUT, JsonOption, ModelArgument
from maxdisc.cli.speech import results, say_json

if TYPE_CHECKING:
    from maxdisc.cli.loaded import LoadedModel


@command
def rank(
    model: ModelArgument,
    n: Annotated[
        int, typer.Option("-n", metavar="N", min=1, help="How many features.", rich_help_panel=OUTPUT)
    ] = 20,
    label: Annotated[
        Optional[str],
        typer.Option(
            "--class",
            metavar="LABEL",
            help="What sets this class apart from all others.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    q: Annotated[
        Optional[float],
        typer.Option(
            "--q",
            metavar="SHARE",
            help="Only features that can be trusted: at most this share of them is listed by luck.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the features that tell the classes apart, best first, and how far each can be trusted.

    [bold]Examples[/]

    maxdisc rank topics.maxdisc

    maxdisc rank topics.maxdisc --class sci.space -n 10

    maxdisc rank topics.maxdisc --q 0.1 -n 100
    """
    from maxdisc.cli.loaded import LoadedModel
    from maxdisc.ranking import ranking_table

    loaded = LoadedModel.of(model)
    if label is not None:
        loaded.require_class(label)
    table = ranking_table(loaded.fitted, n=n, per_class=n, q=q)
    found = iter(table)
    if label is not None:
        known = loaded.classifier.classes_[loaded.classes.index(label)]
        found = iter(table.rows_of_class(known, n))
    fitted = loaded.fitted
    family_of = dict(zip(fitted.names, fitted.families, strict=True)) if fitted.mixed else {}
    rows = [
        {
            "feature": f.feature,
            "score": f.score,
            "class": str(f.label),
            "direction": int(f.direction),
            "p": _known(f.p),
            "q": _known(f.q),
            "stability": _known(f.stability),
            "by": f.by,
            "family": family_of.get(f.feature, fitted.family.name),
        }
        for f in found
    ]
    if json:
        say_json({"model": str(model), "kept": loaded.classifier.n_selected_, "features": rows})
    else:
        _show_ranking(loaded, rows, label)


def _known(value: float) -> float | None:
    return None if value != value else value


def _show_ranking(model: LoadedModel, rows: list[dict[str, Any]], label: str | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from maxdisc.wording import visible

    out = results()
    kept, of = model.classifier.n_selected_, model.classifier.n_features_in_
    what = "words" if model.text is not None else "features"
    title = (
        f"what sets {visible(label)} apart from all other classes"
        if label
        else f"{kept:,} {what} kept of {of:,}"
    )
    out.print(Text(title, style="bold"), soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", justify="right", style="dim")
    table.add_column(what[:-1], overflow="ellipsis", no_wrap=True)
    if model.fitted.mixed:
        table.add_column("family", style="dim")
    table.add_column("divergence", justify="right")
    table.add_column("more in" if label is None else "the class has")
    # A column in which nothing is known is not shown.
    trust = {
        name: form
        for name, form in (("p", ".1e"), ("q", ".1e"), ("stability", ".0%"))
        if any(row[name] is not None for row in rows)
    }
    for name in trust:
        table.add_column(name, justify="right")
    for number, row in enumerate(rows, 1):
        more = row["direction"] > 0
        if label is None:
            says = (
                Text(visible(row["class"])) if more else Text(f"all but {visible(row['class'])}", style="red")
            )
        else:
            says = Text("more" if more else "less", style="green" if more else "red")
        told = ["" if row[name] is None else f"{row[name]:{form}}" for name, form in trust.items()]
        family = [row["family"]] if model.fitted.mixed else []
        table.add_row(str(number), Text(visible(row["by"])), *family, f"{row['score']:.4g}", says, *told)
    out.print(table)
