"""Curves of all thresholds between two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxdisc.plots.canvas import FAINT, PALETTE, drawing_axes


def draw_roc(ax: Any, false_positive_rate: Sequence[float], recall: Sequence[float]) -> None:
    """Draw recall against the false-positive rate, with the diagonal of random guessing."""
    drawing_axes(ax)
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=0.9, linestyle="--", label="by chance")
    ax.plot(false_positive_rate, recall, color=PALETTE[0], linewidth=1.6)
    _finish(ax, "false-positive rate", "recall (true-positive rate)", "lower right")


def draw_precision_recall(ax: Any, recall: Sequence[float], precision: Sequence[float], share: float) -> None:
    """Draw precision against recall, with the share of the class, the precision of random guessing."""
    drawing_axes(ax)
    ax.axhline(share, color=FAINT, linewidth=0.9, linestyle="--", label="by chance")
    ax.plot(recall, precision, color=PALETTE[0], linewidth=1.6, drawstyle="steps-post")
    _finish(ax, "recall", "precision", "lower left")


def _finish(ax: Any, x: str, y: str, where: str) -> None:
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.04), xlabel=x, ylabel=y)
    ax.legend(frameon=False, loc=where)
