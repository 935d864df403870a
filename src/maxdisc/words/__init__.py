"""From documents to scaled counts of terms."""

from __future__ import annotations

from maxdisc.words.scaling import CountScaler

__all__ = ["CountScaler"]
