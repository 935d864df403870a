"""Output of commands: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from maxdisc.inspection.safe_text import visible

# A table that goes to a file must not be cut at the width of no terminal.
_WIDE = 200


def results(least: int = 0) -> Console:
    """Return the console for results; a narrower terminal breaks lines of a table, but loses no figure."""
    out = _Results(width=None if sys.stdout.isatty() else _WIDE, highlight=False)
    out.width = max(out.width, least)
    return out


class _Results(Console):
    """Console that sanitizes untrusted text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(shown(segment.text), segment.style)


def shown(text: str) -> str:
    """Return text of several lines, each without control characters."""
    return "\n".join(map(readable, text.split("\n")))


def readable(text: str) -> str:
    """Return a line without control characters; spaces are kept."""
    return text if text.isprintable() else "".join(c if c.isprintable() else visible(c) or " " for c in text)


def say_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one per line; on a terminal, long values are wrapped."""
    facts = list(facts)
    if sys.stdout.isatty():
        table = Table.grid(padding=(0, 2))
        for name, value in facts:
            table.add_row(Text(name, style="bold"), Text(visible(value), overflow="fold"))
        results().print(table)
        return
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        results().print(Text(f"{name:{width}}  {visible(value)}"), soft_wrap=True)


def say_json(facts: dict[str, Any]) -> None:
    """One object on standard output, for machines."""
    text = json.dumps(facts, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # the name of a file need not be UTF-8, nor standard output
        text = json.dumps(facts, indent=2)
    print(shown(text) if sys.stdout.isatty() else text)


def say_failure(text: str) -> None:
    """The one line of a failure."""
    line = visible(text)
    _aside().print(Text.assemble(("maxdisc: ", "bold red"), line), soft_wrap=True)


def say_traceback(error: BaseException) -> None:
    """Show where in the program an error arose."""
    print(shown("".join(traceback.format_exception(error))), end="", file=sys.stderr)


def _aside() -> Console:
    return Console(stderr=True, width=None if sys.stderr.isatty() else _WIDE, highlight=False)


class Speech:
    """Notes and progress of one command, written to standard error.

    Notes are held back until the data has been validated, so that a failure prints one line and nothing
    else.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self._notes: list[str] = []
        # Put back by whoever runs the command.
        warnings.showwarning = lambda message, *_, **__: self.note(str(message))

    def note(self, text: str) -> None:
        """Remember something to be said."""
        line = visible(text)
        if line not in self._notes:
            self._notes.append(line)

    def say_notes(self, done: bool = True) -> None:
        """Say what was noted so far; before the work is done, only on a terminal."""
        if not done and not sys.stderr.isatty():
            return
        if not self.quiet:
            for note in self._notes:
                _aside().print(Text(note, style="dim"), soft_wrap=True)
        self._notes.clear()

    @contextmanager
    def progress(self, task: str, total: int = 0, has_output: bool = False) -> Iterator[Callable[..., None]]:
        """Show a progress bar on a terminal; yield a function of rows done and amount done of ``total``.

        A third argument replaces the task.
        A task that ``has_output`` writes it to standard output: on a terminal that shows its progress.
        """
        console = _aside()
        if self.quiet or not console.is_terminal or (has_output and sys.stdout.isatty()):
            yield lambda *_: None
            return
        bar = [BarColumn(), TaskProgressColumn()] if total else []
        left = [TimeRemainingColumn(compact=True)] if total else [TimeElapsedColumn()]
        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), *bar, _Rate(), *left]
        # Results stay on standard output while the bar is on standard error.
        with Progress(*columns, console=console, transient=True, redirect_stdout=False) as live:
            handle = live.add_task(visible(task), total=total or None)

            def tell(rows: int, done: int, task: str | None = None) -> None:
                described = None if task is None else visible(task)
                live.update(handle, completed=done, rows=rows, description=described)

            yield tell


class _Rate(ProgressColumn):
    """Rows, and how many in a second."""

    def render(self, task: Task) -> Text:
        rows = int(task.fields.get("rows", 0))
        if not rows:
            return Text("")
        seconds = task.finished_time or task.elapsed
        rate = f", {rows / seconds:,.0f}/s" if seconds else ""
        return Text(f"{rows:,} rows{rate}", style="cyan")


def size_of(n_bytes: int) -> str:
    """Format a number of bytes with a unit."""
    size = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError  # the loop always returns


def marked(value: float, digits: int = 2) -> Text:
    """Format a signed number so that its sign is readable without colours."""
    return Text(f"{value:+.{digits}f}", style="bold green" if value > 0 else "red" if value < 0 else "dim")


def calibration_line(evidence: dict[str, Any], log_loss: float | None, compared: str = "") -> str:
    """Describe the calibration: the held-out log-loss, what it is ``compared`` with, and corrections."""
    if evidence["kind"] == "raw" and log_loss is None:
        return "none, raw evidence"
    parts = ["none, raw evidence"] if evidence["kind"] == "raw" else []
    if log_loss is not None:
        parts.append(f"log-loss {log_loss:.3f} on held-out folds{f' ({compared})' if compared else ''}")
    if evidence["kind"] == "averaged":
        parts.append("an average of joint densities")
    if evidence["corrected"]:
        parts.append(f"{evidence['corrected']:,} features corrected")
    if evidence.get("by_length"):
        parts.append("by length of the row")
    return ", ".join(parts)


def unlabelled_line(told: dict[str, Any]) -> str:
    """Describe how rows without a label were used."""
    rows = f"{told['rows']:,} rows" if "rows" in told else "rows"
    if not told["weight"]:
        return f"{rows}, left alone: held-out rows are not told better with them"
    return f"{rows} of weight {told['weight']:.2g}, labels shared out in {told['steps']} steps"
