"""``compare``: two models on the same labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxdisc.cli.console import Speech, results, say_json
from maxdisc.cli.evaluate import judged_batches, log_probability_of, note_unknown
from maxdisc.cli.failures import BadInputError, command
from maxdisc.cli.option_groups import flatten_groups
from maxdisc.cli.options import (
    DataArgument,
    FileOptions,
    FormatOption,
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

#: Significance level of differences.
LEVEL = 0.05
#: The figures of a comparison need this many columns.
_WIDTH = 58


@command
@flatten_groups
def compare(
    model: ModelArgument,
    other: Annotated[Path, typer.Argument(metavar="OTHER", help="The other model.", show_default=False)],
    data: DataArgument,
    *,
    text: TextOption = None,
    label: LabelOption = None,
    format: FormatOption = None,
    files: FileOptions,
    skip_unlabelled: SkipUnlabelledOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare two models on the same labelled rows, and test whether the difference is significant.

    Accuracies are compared by McNemar's exact test, on the rows that only one
    of the models gets right; log-losses by the paired differences of rows.
    The rows must be new to both models.

    [bold]Examples[/]

    maxdisc compare old.maxdisc new.maxdisc test.csv

    maxdisc compare a.maxdisc b.maxdisc test.csv --label topic --json
    """
    speech = Speech(quiet)
    if "-" in data:
        raise BadInputError("compare reads the rows twice, and standard input is there once: name a file.")
    from maxdisc.cli.model import LoadedModel, note_missing

    judged = []
    for path in (model, other):
        loaded = LoadedModel.read(path, text, label)
        dataset = loaded.dataset(data, None if format is None else format.value, files)
        note_missing(loaded, dataset, speech)
        judged.append(JudgedRows.of(loaded, dataset, skip_unlabelled, speech))
    facts = compared(judged[0], judged[1], (str(model), str(other)))
    speech.say_notes()
    say_json(facts) if json else _show(facts)


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Labels of rows, which of them a model gets right, and its log-probabilities of the labels."""

    column: str | None
    labels: list[str]
    right: Any  # (N,)
    log_probability: Any  # (N,), NaN where the model does not know the label

    @classmethod
    def of(cls, model: LoadedModel, dataset: Dataset, skip_unlabelled: bool, speech: Speech) -> JudgedRows:
        """Predict all rows."""
        import numpy as np

        labels: list[str] = []
        unknown: dict[str, int] = {}
        right, log_probability = [], []
        for y, codes, said in judged_batches(model, dataset, skip_unlabelled, speech):
            labels += y.tolist()
            right.append(said.first == codes)
            known = codes < len(model.classes)
            log_probability.append(np.full(len(y), np.nan))
            log_probability[-1][known] = log_probability_of(codes, said)
            for label in y[~known]:
                unknown[label] = unknown.get(label, 0) + 1
        note_unknown(unknown, model, dataset, len(labels), speech)
        return cls(model.label, labels, np.concatenate(right), np.concatenate(log_probability))


def compared(first: JudgedRows, second: JudgedRows, names: tuple[str, str]) -> dict[str, Any]:
    """Return how two models did on the same rows, and the differences, first minus second."""
    import numpy as np

    if first.labels != second.labels:
        raise BadInputError(
            f"the models were fitted to different labels, {first.column!r} and {second.column!r}: name the "
            "column to compare with --label."
        )
    known = ~np.isnan(first.log_probability) & ~np.isnan(second.log_probability)
    losses = [-judged.log_probability[known] for judged in (first, second)]
    return {
        "rows": len(first.labels),
        "models": [
            {"model": name, "accuracy": float(judged.right.mean()), "log_loss": _mean(loss)}
            for name, judged, loss in zip(names, (first, second), losses, strict=True)
        ],
        "accuracy": accuracy_difference(first.right, second.right),
        "log_loss": {"rows": int(known.sum()), **log_loss_difference(*losses)},
    }


def accuracy_difference(first: Any, second: Any) -> dict[str, Any]:
    """Compare correctness, pair by pair: McNemar's exact test, and an interval for the difference.

    The interval is that of Bonett and Price (2012), Wald's after a row is added to each kind of pair that
    differs: it is not empty where the models never differ.
    """
    import numpy as np
    from scipy.stats import binomtest, norm

    n, only_first, only_second = len(first), int((first & ~second).sum()), int((second & ~first).sum())
    p_value = 1.0 if not only_first + only_second else binomtest(only_first, only_first + only_second).pvalue
    shares = np.array([only_first + 1, only_second + 1]) / (n + 2)
    middle = shares[0] - shares[1]
    half = norm.ppf(1 - LEVEL / 2) * np.sqrt((shares.sum() - middle**2) / (n + 2))
    return {
        "difference": (only_first - only_second) / n,
        "interval": [float(max(-1.0, middle - half)), float(min(1.0, middle + half))],
        "only_first_right": only_first,
        "only_second_right": only_second,
        "p_value": float(p_value),
        "better": _better(only_first - only_second, p_value < LEVEL),
    }


def log_loss_difference(first: Any, second: Any) -> dict[str, Any]:
    """Compare log-losses, pair by pair: Student's interval for the mean difference."""
    import numpy as np
    from scipy.stats import t

    differences = first - second
    n = len(differences)
    if n < 2:
        return {"difference": _mean(differences), "interval": None, "better": None}
    mean = float(differences.mean())
    half = float(t.ppf(1 - LEVEL / 2, n - 1) * differences.std(ddof=1) / np.sqrt(n))
    return {
        "difference": mean,
        "interval": [mean - half, mean + half],
        "better": _better(-mean, abs(mean) > half),
    }


def _mean(values: Any) -> float | None:
    return float(values.mean()) if len(values) else None


def _better(gain: float, is_certain: bool) -> str | None:
    """Return which model is better, "first" or "second"; None if chance could do that."""
    return None if not is_certain or not gain else "first" if gain > 0 else "second"


def _show(facts: dict[str, Any]) -> None:
    """Show the figures of both models, and a sentence for each difference."""
    from rich.table import Table
    from rich.text import Text

    from maxdisc.inspection.safe_text import counted, visible

    out = results(_WIDTH)
    names = [visible(m["model"]) for m in facts["models"]]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(counted(facts["rows"], "row"), overflow="fold")
    for name in ("accuracy", "log-loss"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, m in zip(names, facts["models"], strict=True):
        table.add_row(Text(name), f"{m['accuracy']:.1%}", _shown(m["log_loss"], ".4f"))
    difference, loss = facts["accuracy"], facts["log_loss"]
    low, high = difference["interval"]
    table.add_row("difference", f"{difference['difference']:+.1%}", _shown(loss["difference"], "+.4f"))
    between = "-" if loss["interval"] is None else "{:+.4f} to {:+.4f}".format(*loss["interval"])
    table.add_row("95 % interval", f"{low:+.1%} to {high:+.1%}", between)
    out.print(table)
    pairs = (
        f"only {names[0]} is right in {difference['only_first_right']:,} rows, "
        f"only {names[1]} in {difference['only_second_right']:,}, p = {difference['p_value']:.2g}"
    )
    out.print(Text(f"accuracy: {_verdict(difference['better'], names)} ({pairs})"), soft_wrap=True)
    told = f"log-loss: {_verdict(loss['better'], names)}"
    if loss["rows"] < facts["rows"]:
        told += f" (of {counted(loss['rows'], 'row')} whose label both models know)"
    out.print(Text(told), soft_wrap=True)


def _shown(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


def _verdict(better: str | None, names: list[str]) -> str:
    return "no difference beyond chance" if better is None else f"{names[better == 'second']} is better"
