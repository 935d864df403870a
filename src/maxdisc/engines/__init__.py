"""Fits on rows that are not in memory: streams, partitions and checkpoints."""

from __future__ import annotations

from maxdisc.engines.checkpoints import Journal
from maxdisc.engines.labelled_stream import LabelledStream

__all__ = ["Journal", "LabelledStream"]
