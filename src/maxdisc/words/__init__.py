"""From documents to scaled counts of terms."""

from __future__ import annotations

from maxdisc.words.scaling import CountScaler
from maxdisc.words.vectorizer import TermFrequencyVectorizer

__all__ = ["CountScaler", "TermFrequencyVectorizer"]
