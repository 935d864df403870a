"""What a benchmark says: our figure beside those of others, the goal for their ratio, and if it is met."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

HEADINGS = ("what", "ours", "floor", "peer", "ratio", "goal", "")


@dataclass(frozen=True)
class Goal:
    """A bound for a ratio: "at most" for ours to the other's, "at least" for the other's to ours."""

    sense: str
    bound: float

    def met(self, ratio: float) -> bool:
        return ratio <= self.bound if self.sense == "at most" else ratio >= self.bound

    def __str__(self) -> str:
        sign = {"at most": "<=", "at least": ">="}[self.sense]
        fraction = 1 / self.bound
        if self.bound < 1 and math.isclose(fraction, round(fraction)):
            return f"{sign} 1/{round(fraction)}"
        return f"{sign} {self.bound:g} x"


@dataclass(frozen=True)
class Comparison:
    """Another's figure. A "floor" is what nobody can be faster than, a "peer" does a like task.

    Without a goal it is shown for information; ``absent`` says why there is no figure.
    """

    other: str
    figure: float | None
    role: str = "peer"
    goal: Goal | None = None
    absent: str = ""

    def ratio(self, ours: float) -> float | None:
        if self.figure is None:
            return None
        # Without a goal: how many times as fast as a peer we are, how many times a floor we take.
        inverse = self.goal.sense == "at least" if self.goal else self.role == "peer"
        return self.figure / ours if inverse else ours / self.figure

    def met(self, ours: float) -> bool | None:
        """Whether the goal is; None if there is none, or nothing to compare."""
        ratio = self.ratio(ours)
        return None if self.goal is None or ratio is None else self.goal.met(ratio)


@dataclass(frozen=True)
class Row:
    """One thing measured, and all that it is compared with; ``skipped`` says why it was not measured."""

    what: str
    ours: float | None = None
    comparisons: Sequence[Comparison] = ()
    unit: str = "s"
    threads: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    skipped: str = ""

    @classmethod
    def timed(cls, what: str, seconds: Mapping[str, float], others: Iterable[Comparison], **more: Any) -> Row:
        """From the times of all works, of which ours is named "ours"."""
        found = [
            other if other.absent else Comparison(other.other, seconds[other.other], other.role, other.goal)
            for other in others
        ]
        return cls(what, seconds["ours"], found, **more)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Row:
        """What :meth:`record` made."""
        known = {name: record[name] for name in cls.__dataclass_fields__ if name in record}
        known["comparisons"] = [
            Comparison(
                c["other"], c["figure"], c["role"], Goal(**c["goal"]) if c["goal"] else None, c["absent"]
            )
            for c in record["comparisons"]
        ]
        return cls(**known)

    def record(self) -> dict[str, Any]:
        """As it is stored; ratios and whether goals are met are there for readers, and computed anew."""
        told = asdict(self)
        for comparison, entry in zip(self.comparisons, told["comparisons"], strict=True):
            if self.ours is not None:
                entry["ratio"], entry["met"] = comparison.ratio(self.ours), comparison.met(self.ours)
        return told

    def lines(self) -> list[list[str]]:
        """Cells under :data:`HEADINGS`, a line for each comparison; the first says what is compared."""
        if self.ours is None:
            return [[self.what, "", "", "", "", "", f"not run: {self.skipped}"]]
        lines = []
        for comparison in self.comparisons:
            figure = shown(comparison.figure, self.unit)
            told = f"{comparison.other} {figure}".strip()
            ratio, met = comparison.ratio(self.ours), comparison.met(self.ours)
            outcome = {True: "met", False: "missed", None: comparison.absent}[met]
            lines.append(
                [
                    "" if lines else self.what,
                    "" if lines else shown(self.ours, self.unit),
                    told if comparison.role == "floor" else "",
                    told if comparison.role != "floor" else "",
                    "" if ratio is None else f"{ratio:.3g} x",
                    str(comparison.goal or ""),
                    outcome,
                ]
            )
        return lines


def at_most(bound: float) -> Goal:
    return Goal("at most", bound)


def at_least(bound: float) -> Goal:
    return Goal("at least", bound)


def shown(figure: float | None, unit: str) -> str:
    """A figure with its unit, in as many digits as it deserves."""
    if figure is None:
        return ""
    if unit != "s":
        return f"{figure:.3g} {unit}".strip()
    return f"{figure:.3g} s" if figure >= 1 else f"{1000 * figure:.3g} ms"


def as_text(rows: Iterable[Row]) -> str:
    """A table for the terminal."""
    lines = [list(HEADINGS), *(line for row in rows for line in row.lines())]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    return "\n".join(
        " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
