"""Divergences between class densities, and feature rankings."""

from __future__ import annotations

from maxdisc.divergences.class_divergences import (
    jeffreys,
    jensen_shannon,
    js_gm,
    kl,
    pairwise,
    rao,
)

__all__ = ["jeffreys", "jensen_shannon", "js_gm", "kl", "pairwise", "rao"]
