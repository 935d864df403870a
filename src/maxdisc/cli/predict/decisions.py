"""Decisions from probabilities: a label, none, or the decision with the lowest expected cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from maxdisc.cli.console import Speech
from maxdisc.cli.failures import BadInputError

if TYPE_CHECKING:
    from maxdisc.cli.model import LoadedModel
    from maxdisc.inspection.model_input import Predictions

DECISIONS = "Decisions"


@dataclass(frozen=True)
class DecisionOptions:
    """Options for unknown rows, uncertain rows, and costs."""

    unknown: Annotated[
        Optional[float],
        typer.Option(
            "--unknown",
            metavar="P",
            help="Label rows unknown whose p-value of belonging to a known class is at most this, such"
            " as 0.01.",
            rich_help_panel=DECISIONS,
        ),
    ] = None
    unknown_label: Annotated[
        str,
        typer.Option(
            "--unknown-label", metavar="LABEL", help="The label of unknown rows.", rich_help_panel=DECISIONS
        ),
    ] = "unknown"
    abstain_below: Annotated[
        Optional[float],
        typer.Option(
            "--abstain-below",
            metavar="P",
            help="Leave the label empty if the largest probability is lower, such as 0.8.",
            rich_help_panel=DECISIONS,
        ),
    ] = None
    costs: Annotated[
        Optional[Path],
        typer.Option(
            "--costs",
            metavar="FILE",
            help="Cost matrix, with a row per true class and a column per decision: adds the decision "
            "with the lowest expected cost.",
            rich_help_panel=DECISIONS,
        ),
    ] = None
    top: Annotated[
        int,
        typer.Option(
            "--top",
            metavar="N",
            min=0,
            help="Add the N most probable classes, with their probabilities.",
            rich_help_panel=DECISIONS,
        ),
    ] = 0

    def validate(self) -> None:
        """Raise ``BadInputError`` for values out of range, and for options that exclude each other."""
        if self.unknown is not None and not 0 < self.unknown < 1:
            raise BadInputError(
                f"--unknown takes a share of the known rows between 0 and 1, not {self.unknown:g}."
            )
        if self.abstain_below is not None and not 0 < self.abstain_below <= 1:
            raise BadInputError(
                f"--abstain-below takes a probability above 0 and up to 1, not {self.abstain_below:g}."
            )
        if self.abstain_below is not None and self.costs is not None:
            raise BadInputError(
                "--abstain-below and --costs both decide which rows to leave out: give the cost matrix a "
                "column for that, such as 'ask', and leave out --abstain-below."
            )


class Decisions:
    """Labels of rows and the columns that decisions add; counts what became of the rows."""

    def __init__(self, options: DecisionOptions, model: LoadedModel, speech: Speech) -> None:
        self.options, self.model = options, model
        self.n_rows = self.n_unknown = self.n_abstained = 0
        self.cost = 0.0
        n_classes = len(model.classes)
        if options.top > n_classes:
            raise BadInputError(f"--top {options.top}: {model.path} has only {n_classes} classes.")
        if options.unknown is not None:
            least = model.require_novelty(options.unknown_label)
            if least > options.unknown:
                speech.note(
                    f"no row can be unknown: fitted on few rows, the model has no p-value below {least:.2g}; "
                    "raise --unknown"
                )
        if options.abstain_below is not None and options.abstain_below * n_classes <= 1:
            speech.note(
                f"no row can be below --abstain-below {options.abstain_below:g}: of {n_classes} classes one "
                f"always has {1 / n_classes:.2g} or more; raise it"
            )
        self.costs = None if options.costs is None else CostMatrix.read(options.costs, model.classes)
        self.columns: list[tuple[str, type]] = []
        if options.unknown is not None:
            self.columns.append(("novelty", float))
        if self.costs is not None:
            self.columns += [("decision", str), ("expected_cost", float)]
        for rank in range(1, options.top + 1):
            self.columns += [(f"top_{rank}", str), (f"top_{rank}_probability", float)]

    def of(self, said: Predictions) -> tuple[list[str | None], list[Any]]:
        """Return the labels of a batch, and the cells of the further columns, column by column."""
        import numpy as np

        options, probabilities = self.options, np.exp(said.log_probability)
        self.n_rows += len(said)
        labels: list[str | None] = list(said.label(said.first))
        columns: list[Any] = []
        strange = np.zeros(len(said), dtype=np.bool_)
        if options.unknown is not None:
            p_values = self.model.novelty(said)
            strange = p_values <= options.unknown
            self.n_unknown += int(strange.sum())
            columns.append(p_values.tolist())
        unsure = np.zeros_like(strange)
        if options.abstain_below is not None:
            unsure = (probabilities.max(axis=1) < options.abstain_below) & ~strange
            self.n_abstained += int(unsure.sum())
        for row in np.flatnonzero(strange | unsure):
            labels[row] = options.unknown_label if strange[row] else None
        if self.costs is not None:
            expected = probabilities @ np.array(self.costs.costs)
            best = expected.argmin(axis=1)
            least = expected[np.arange(len(best)), best]
            self.cost += float(least[~strange].sum())
            decided = [self.costs.decisions[d] for d in best]
            # Costs are known for the known classes alone.
            columns.append([options.unknown_label if s else d for d, s in zip(decided, strange, strict=True)])
            columns.append([None if s else c for c, s in zip(least.tolist(), strange, strict=True)])
        if options.top:
            order = np.argsort(-said.log_probability, axis=1, kind="stable")
            for which in order[:, : options.top].T:
                columns += [said.label(which), said.probability(which)]
        return labels, columns

    @property
    def summary(self) -> str:
        """What became of the rows, for the last line; empty if nothing was decided."""
        told, options = [], self.options
        if options.unknown is not None:
            told.append(f"{self.n_unknown:,} of them {options.unknown_label}")
        if options.abstain_below is not None:
            told.append(f"{self.n_abstained:,} of them without a label (below {options.abstain_below:g})")
        if self.costs is not None and self.n_rows > self.n_unknown:
            n_decided = self.n_rows - self.n_unknown
            whose = f" of the {n_decided:,} others" if self.n_unknown else ""
            told.append(f"expected cost {self.cost / n_decided:.4g} a row{whose}")
        return ", ".join(told)


@dataclass(frozen=True)
class CostMatrix:
    """What each decision costs for each true class."""

    decisions: list[str]
    costs: list[list[float]]  # (C, decisions), rows in the order of the classes

    @classmethod
    def read(cls, path: Path, classes: Sequence[str]) -> CostMatrix:
        """Read a cost matrix; raise ``BadInputError`` if its first column does not name the true classes."""
        from maxdisc.files import Dataset, nearest

        if not path.exists():
            raise BadInputError(f"--costs: {path} does not exist.")
        dataset = Dataset([str(path)], header=True)
        if dataset.preview().matrix is not None:
            raise BadInputError(f"{path} has no named columns: a cost matrix has one for each decision.")
        first, *decisions = dataset.names
        _require_decisions(decisions, classes, path)
        rows: dict[str, list[float]] = {}
        for batch in dataset.batches(dataset.names):
            cells = [batch.strings(name) for name in decisions]
            for row, label in enumerate(batch.labels(first)):
                if label not in classes:
                    told = nearest(label or "", classes)
                    raise BadInputError(f"{batch.where(row)}: the model has no class {label or ''!r}{told}")
                if label in rows:
                    raise BadInputError(f"{batch.where(row)}: {label!r} has a row already: leave one out.")
                rows[label] = [
                    _cost(column[row], f"{batch.where(row)}, column {name!r}")
                    for name, column in zip(decisions, cells, strict=True)
                ]
        missing = [label for label in classes if label not in rows]
        if missing:
            raise BadInputError(f"{path} has no row for the class {missing[0]!r}: give each true class one.")
        return cls(decisions, [rows[label] for label in classes])


def _require_decisions(decisions: list[str], classes: Sequence[str], path: Path) -> None:
    """Raise ``BadInputError`` unless there are columns of decisions, for all of the classes or for none."""
    from maxdisc.files import nearest

    twice = [name for name in decisions if decisions.count(name) > 1]
    if not decisions or twice:
        wrong = f"has two columns {twice[0]!r}" if twice else "has no column behind the true class"
        raise BadInputError(f"{path} {wrong}: give each decision one column.")
    absent = [label for label in classes if label not in decisions]
    if 0 < len(absent) < len(classes):
        others = [name for name in decisions if name not in classes]
        told = nearest(absent[0], others) if others else ": each class that can be said has a column."
        raise BadInputError(f"{path} has columns for some classes but none for {absent[0]!r}{told}")


def _cost(cell: str | None, where: str) -> float:
    """Return the cost in a cell; raise ``BadInputError`` if it holds no finite number."""
    try:
        cost = float(cell or "")
    except ValueError:
        cost = math.nan
    if not math.isfinite(cost):
        raise BadInputError(f"{where}: {cell or ''!r} is not a cost; write a number, 0 for a right decision.")
    return cost
