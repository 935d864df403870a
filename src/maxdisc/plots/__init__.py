"""Displays in the style of scikit-learn."""

from __future__ import annotations

from maxdisc.numerics.installation import pip_line

try:
    import matplotlib  # noqa: F401  # asked for once, here, with the way out
except ImportError as error:
    raise ImportError(f"maxdisc.plots needs matplotlib: {pip_line('plots')}") from error

from maxdisc.plots.density import DensityDisplay
from maxdisc.plots.evidence import EvidenceDisplay
from maxdisc.plots.path import PathDisplay
from maxdisc.plots.ranking import RankingDisplay
from maxdisc.plots.reliability import ReliabilityDisplay

__all__ = ["DensityDisplay", "EvidenceDisplay", "PathDisplay", "RankingDisplay", "ReliabilityDisplay"]
