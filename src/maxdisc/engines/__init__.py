"""Fits on streams and partitions, with checkpoints."""

from __future__ import annotations

from maxdisc.engines.checkpoints import Journal
from maxdisc.engines.labelled_stream import LabelledStream

__all__ = ["Journal", "LabelledStream"]
