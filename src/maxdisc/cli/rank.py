"""``rank``: the features that distinguish the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from maxdisc.cli.console import Speech, results, say_json
from maxdisc.cli.failures import BadInputError, command
from maxdisc.cli.option_groups import flatten_groups
from maxdisc.cli.options import (
    DATA,
    OUTPUT,
    FileOptions,
    JsonOption,
    LabelOption,
    ModelArgument,
    QuietOption,
    SkipUnlabelledOption,
    TextOption,
)

if TYPE_CHECKING:
    from maxdisc.cli.model import LoadedModel
    from maxdisc.files import Dataset
    from maxdisc.significance.table import Significance


#: The figures of a ranking need this many columns.
_WIDTH = 80


@command
@flatten_groups
def rank(
    model: ModelArgument,
    *,
    n: Annotated[
        int, typer.Option("-n", metavar="N", min=1, help="Number of features.", rich_help_panel=OUTPUT)
    ] = 20,
    label: Annotated[
        Optional[str],
        typer.Option(
            "--class",
            metavar="LABEL",
            help="Features that distinguish this class from all others.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    q: Annotated[
        Optional[float],
        typer.Option(
            "--q",
            metavar="SHARE",
            help="Only features with at most this false discovery rate.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    data: Annotated[
        Optional[list[str]],
        typer.Option(
            "--data",
            metavar="DATA",
            help="Labelled rows: compute p-values by permutation of their labels, for any "
            "distribution. May be repeated.",
            rich_help_panel=DATA,
        ),
    ] = None,
    text: TextOption = None,
    label_column: LabelOption = None,
    data_format: Annotated[
        Optional[str],
        typer.Option("--data-format", help="Format of the data, if not recognised.", rich_help_panel=DATA),
    ] = None,
    files: FileOptions,
    skip_unlabelled: SkipUnlabelledOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """List the features that distinguish the classes, best first, with their reliability.

    [bold]Examples[/]

    maxdisc rank topics.maxdisc

    maxdisc rank topics.maxdisc --class sci.space -n 10

    maxdisc rank topics.maxdisc --q 0.1 -n 100

    maxdisc rank measurements.maxdisc --data measurements.csv --q 0.1
    """
    speech = Speech(quiet)
    from maxdisc.cli.model import LoadedModel
    from maxdisc.inspection.ranking import ranking_table

    loaded = LoadedModel.read(model, text, label_column)
    if label is not None:
        loaded.require_class(label)
    trust = None
    if data:
        dataset = loaded.dataset(data, data_format, files)
        trust = _by_rows(loaded, dataset, skip_unlabelled, speech)
    table = ranking_table(loaded.fitted, n=n, per_class=n, q=q, trust=trust)
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
    unknown = sum(row["p"] is None for row in rows)
    classifier = fitted.classifier
    some = classifier._learnt.moments is None and classifier.n_selected_ < classifier.n_features_in_
    if trust is None and some:
        speech.note(
            f"the file has the {classifier.n_selected_:,} selected features, without q-values: "
            "--data with labelled rows finds these, and maxdisc fit --keep-moments writes all features"
        )
    elif unknown:
        speech.note(
            f"{unknown} of these features have no p-value: moments do not tell it of their families; "
            "--data with labelled rows does"
        )
    speech.say_notes()
    if json:
        say_json({"model": str(model), "kept": loaded.classifier.n_selected_, "features": rows})
    else:
        _show_ranking(loaded, rows, label)


def _by_rows(model: LoadedModel, dataset: Dataset, skip_unlabelled: bool, speech: Speech) -> Significance:
    """P-values by permutation of the labels of these rows."""
    import numpy as np

    from maxdisc.cli.evaluate import label_column
    from maxdisc.cli.labelled import read_labelled
    from maxdisc.files import nearest

    column = label_column(model, dataset)
    columns = (column, model.text, [] if model.text else model.wanted(dataset))
    rows = read_labelled(dataset, *columns, skip_unlabelled, speech, words=model.words)
    position = {known: c for c, known in enumerate(model.classes)}
    codes = np.array([position.get(y, -1) for y in rows.y])
    if (codes < 0).any():
        first = str(rows.y[int(np.argmin(codes))])
        raise BadInputError(
            f"{int((codes < 0).sum()):,} rows of {dataset.name} have a label that the model does not know, "
            f"first {first!r}: leave them out{nearest(first, model.classes)}"
        )
    classifier = model.classifier
    if classifier.random_state is None:
        classifier.set_params(random_state=0)  # the same command says the same
    with speech.progress(f"dealing out the labels of {len(rows):,} rows"), rows.located():
        X = model.fitted.rows(model.fitting(rows.X, dataset.matrix_names))
        return classifier._permuted(X, classifier.classes_[codes], None, None)


def _known(value: float) -> float | None:
    return None if value != value else value


def _show_ranking(model: LoadedModel, rows: list[dict[str, Any]], label: str | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from maxdisc.inspection.safe_text import visible

    out = results(_WIDTH)
    kept, of = model.classifier.n_selected_, model.classifier.n_features_in_
    what = "words" if model.text is not None else "features"
    title = (
        f"what sets {visible(label)} apart from all other classes"
        if label
        else f"{kept:,} of {of:,} {what} selected"
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
