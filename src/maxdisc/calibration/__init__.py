"""Calibrated probabilities, refined evidence and novelty."""

from __future__ import annotations

from maxdisc.calibration.evidence import Evidence

__all__ = ["Evidence"]
