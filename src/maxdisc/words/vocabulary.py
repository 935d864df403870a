"""Term frequencies as sums, which combine partitions of documents into one vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from maxdisc.numerics.matrices import Integers
from maxdisc.words.counting import WordRule, count_words


@dataclass(frozen=True, eq=False)
class TermTotals:
    """Terms with their document and total frequencies: a commutative monoid under ``+``."""

    terms: list[str]
    n_documents: Integers  # (T,)
    n_times: Integers  # (T,)
    number: int

    @classmethod
    def of(cls, documents: Iterable[str], rule: WordRule) -> TermTotals:
        """Build from some documents, read once."""
        seen = _Numbered(documents)
        terms, _ = count_words(seen, rule, keep=False)
        order = terms.order()
        order = order[terms.n_times[order] > 0]  # stop words have places too
        return cls(terms.strings(order), terms.n_documents[order], terms.n_times[order], seen.number)

    def __add__(self, other: TermTotals) -> TermTotals:
        if not isinstance(other, TermTotals):
            return NotImplemented
        known = {term: place for place, term in enumerate(self.terms)}
        places = np.array([known.setdefault(term, len(known)) for term in other.terms], dtype=np.intp)
        usage = np.zeros((2, len(known)), dtype=np.int64)
        for part, at in ((self, np.arange(len(self.terms))), (other, places)):
            usage[:, at] += [part.n_documents, part.n_times]
        terms = list(known)
        order = np.array(sorted(range(len(terms)), key=terms.__getitem__), dtype=np.intp)
        ordered = [terms[place] for place in order.tolist()]
        return TermTotals(ordered, usage[0, order], usage[1, order], self.number + other.number)


class _Numbered:
    """Iterator that numbers documents."""

    def __init__(self, documents: Iterable[str]) -> None:
        self._documents = documents
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        for document in self._documents:
            self.number += 1
            yield document
