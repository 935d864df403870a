"""Counting of words, in Python for small texts and compiled for large ones."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.numerics.matrices import Booleans, Integers, Matrix
from maxdisc.numerics.switches import batch_size, is_compiled
from maxdisc.numerics.threads import in_threads, n_threads

#: Number of characters in a batch.
BATCH = 2**20
#: Fewer characters than this are counted in Python, ...
MANY_CHARACTERS = 2**20
#: ... and fewer counts than this are put in order by scipy.
MANY_COUNTS = 2**20

# Patterns for runs of at least a number of word characters; others are left to ``re``.
_RUNS = {
    pattern: length
    for length, spellings in (
        (1, (r"\w+", r"\w\w*")),
        (2, (r"\w\w+", r"\w{2,}")),
        (3, (r"\w\w\w+", r"\w{3,}")),
    )
    for spelling in spellings
    for bounded in (rf"\b{spelling}\b", spelling)
    for pattern in (bounded, rf"(?u){bounded}")
}


@dataclass(frozen=True)
class WordRule:
    """Definition of a term: pattern, case, stop words and n-grams."""

    pattern: str = r"(?u)\b\w\w+\b"
    lowercase: bool = True
    stop_words: frozenset[str] = frozenset()
    ngram_range: tuple[int, int] = (1, 1)

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    @property
    def shortest(self) -> int | None:
        """Length of the shortest word, if a word is any unbroken run of letters, digits and underscores."""
        return _RUNS.get(self.pattern)

    def terms(self, document: str) -> list[str]:
        """Return the terms of one document: its words in order, then its pairs, and so on."""
        words = self._expression.findall(document.lower() if self.lowercase else document)
        if self.stop_words:
            words = [word for word in words if word not in self.stop_words]
        low, high = self.ngram_range
        if high == 1:
            return words
        return [
            " ".join(words[i : i + n])
            for n in range(low, min(high, len(words)) + 1)
            for i in range(len(words) - n + 1)
        ]

    def spans(self, document: str) -> list[tuple[str, int, int]]:
        """Return the terms of one document with their start and end in the original text."""
        text = document.lower() if self.lowercase else document
        group = self._expression.groups
        words = []
        for match in self._expression.finditer(text):
            # A group that takes no part is an empty word.
            word = match[group] or ""
            start = match.start(group) if word else match.start()
            if word not in self.stop_words:
                words.append((word, start, start + len(word)))
        if len(text) != len(document):
            # Of some letters the lower case is longer: "\u0130" becomes two characters.
            place = [at for at, letter in enumerate(document) for _ in letter.lower()] + [len(document)]
            words = [(word, place[a], place[b - 1] + 1 if a < b else place[a]) for word, a, b in words]
        low, high = self.ngram_range
        return [
            (" ".join(word for word, _, _ in words[i : i + n]), words[i][1], words[i + n - 1][2])
            for n in range(low, min(high, len(words)) + 1)
            for i in range(len(words) - n + 1)
        ]


@dataclass(frozen=True, eq=False)
class Counts:
    """How often each term occurs in each document: CSR arrays, the terms of a row in no order."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]

    def renumber(self, numbers: Integers) -> Counts:
        """Give the terms other numbers, in place."""
        from maxdisc.words.compiled_words import rename

        rename(self.indices, numbers)
        return self

    def kept_before(self, kept: Booleans) -> Integers:
        """Return the number of kept counts before each row, and in all."""
        return self.indptr if kept.all() else np.r_[0, np.cumsum(kept[self.indices])][self.indptr]


def stacked(
    counts: Sequence[Counts], columns: Integers, n_columns: int, dtype: type[np.generic] = np.int64
) -> Matrix:
    """Return all counts as CSR: term t in ``columns[t]``, dropped if that is -1."""
    kept = columns >= 0
    befores = [part.kept_before(kept) for part in counts]
    starts = np.cumsum([0, *(before[-1] for before in befores)])
    index_type = np.int32 if max(starts[-1], n_columns) <= np.iinfo(np.int32).max else np.int64
    indptr = np.concatenate([[0], *(b[1:] + start for b, start in zip(befores, starts, strict=False))])
    indices, data = np.empty(starts[-1], dtype=index_type), np.empty(starts[-1], dtype=dtype)
    columns = columns.astype(np.int32)
    compiled = is_compiled(int(starts[-1]), MANY_COUNTS)

    def fill(job: tuple[Counts, Integers, int]) -> None:
        part, before, start = job
        some = slice(start, start + int(before[-1]))
        if compiled:
            from maxdisc.words.compiled_words import arrange

            rows = (part.indptr, part.indices, part.counts)
            arrange(*rows, columns, n_columns, before, indices[some], data[some])
        else:
            named = columns[part.indices]
            indices[some], data[some] = named[named >= 0], part.counts[named >= 0]

    in_threads(fill, list(zip(counts, befores, starts.tolist(), strict=False)))
    shape = (len(indptr) - 1, n_columns)
    X = sp.csr_array((data, indices, indptr.astype(index_type)), shape=shape)
    if not compiled:
        X.sort_indices()
    return X


class Terms(Protocol):
    """Terms, each with a number, and how they were used."""

    @property
    def n_documents(self) -> Integers:
        """The number of documents with each term."""

    @property
    def n_times(self) -> Integers:
        """The number of occurrences of each term."""

    def strings(self, numbers: Integers | None = None) -> list[str]:
        """Return the terms with these numbers; all, if none are given."""

    def order(self) -> Integers:
        """Their numbers, in the order of their code points."""


class PythonTerms:
    """Terms in a dictionary, for small texts or any rule."""

    def __init__(self, rule: WordRule) -> None:
        self._rule = rule
        self._numbers: dict[str, int] = {}
        self._rows: Counter[int] = Counter()
        self._times: Counter[int] = Counter()

    def count(self, documents: Sequence[str]) -> Counts:
        numbers = self._numbers
        indptr: list[int] = [0]
        indices: list[int] = []
        counts: list[int] = []
        for document in documents:
            row = Counter(numbers.setdefault(term, len(numbers)) for term in self._rule.terms(document))
            indices += row
            counts += row.values()
            indptr.append(len(indices))
            self._rows.update(row.keys())
            self._times.update(row)
        return Counts(np.array(indptr), np.array(indices, dtype=np.int32), np.array(counts, dtype=np.int32))

    @property
    def n_documents(self) -> Integers:
        return np.array([self._rows[t] for t in range(len(self._numbers))], dtype=np.intp)

    @property
    def n_times(self) -> Integers:
        return np.array([self._times[t] for t in range(len(self._numbers))], dtype=np.intp)

    def strings(self, numbers: Integers | None = None) -> list[str]:
        terms = list(self._numbers)
        return terms if numbers is None else [terms[number] for number in numbers.tolist()]

    def order(self) -> Integers:
        return np.array([number for _, number in sorted(self._numbers.items())], dtype=np.intp)


class CompiledTerms:
    """Terms in compiled arrays, for large texts: the arrays of :mod:`maxdisc.words.compiled_words`."""

    def __init__(self, rule: WordRule) -> None:
        if rule.shortest is None:
            raise ValueError(f"words by the pattern {rule.pattern!r} cannot be counted by compiled code.")
        from maxdisc.words.compiled_words import EMPTY

        self._rule = rule
        self._shortest = rule.shortest
        self._n = 0
        self._slots = np.full(2**16, EMPTY)
        self._hashes = np.empty(2**15, dtype=np.uint64)
        self._ends = np.zeros(2**15 + 1, dtype=np.int64)
        self._pool = np.zeros(2**15, dtype=np.uint64)
        self._usage = np.zeros((2**15, 4), dtype=np.uint64)
        # Words that fall into one slot here fall into others elsewhere, unless somebody tried very hard.
        self._seed = np.uint64(secrets.randbits(64))
        self._fold = _folded_bytes(rule.lowercase)
        self._scratch = np.empty((2, 0), dtype=np.int32)
        # Others are no words, so they are never met.
        skipped = filter(_is_run, sorted(rule.stop_words))
        if terms := [word.encode("utf-8", "surrogatepass") for word in skipped]:
            self._take(terms)
        self._n_skipped = self._n

    def count(self, documents: Sequence[str]) -> Counts:
        from maxdisc.words.compiled_words import count_documents

        text, starts, is_word = _encoded(documents, self._rule.lowercase)
        low, high = self._rule.ngram_range
        room = ((len(text) + len(documents)) // 2 + len(documents)) * high
        if self._scratch.shape[1] < room:
            self._scratch = np.empty((2, room), dtype=np.int32)
        indices, counts = self._scratch
        indptr = np.zeros(len(starts), dtype=np.int64)
        self._usage[: self._n, 3] = 0
        done = 0
        while done < len(documents):
            self._make_room(int(starts[done + 1] - starts[done]), high)
            done, self._n = count_documents(
                text,
                starts,
                done,
                self._fold,
                is_word,
                self._shortest,
                low,
                high,
                self._seed,
                self._n_skipped,
                self._slots,
                self._hashes,
                self._ends,
                self._pool,
                self._usage,
                self._n,
                indptr,
                indices,
                counts,
            )
        filled = indptr[-1]
        return Counts(indptr, indices[:filled].copy(), counts[:filled].copy())

    def _make_room(self, length: int, high: int) -> None:
        """Make room for the terms of a document of this size, and for twice the current number of terms."""
        terms = 2 * self._n + ((length + 1) // 2 + 1) * high + 1
        self._hashes = _grown(self._hashes, terms)
        self._ends = _grown(self._ends, terms + 1)
        self._usage = _grown(self._usage, terms)
        room = 2 * int(self._ends[self._n]) + (length + 1) * (high * (high + 1) // 2 + 1)
        self._pool = _grown(self._pool, room // 8 + 4)
        if self._slots.size < 2 * terms:
            from maxdisc.words.compiled_words import EMPTY, refill

            self._slots = np.full(1 << (2 * terms - 1).bit_length(), EMPTY)
            refill(self._slots, self._hashes, self._n)

    def _take(self, terms: Sequence[bytes]) -> None:
        """Add new terms, given as bytes."""
        from maxdisc.words.compiled_words import add_terms

        ends = np.r_[0, np.cumsum([len(term) for term in terms], dtype=np.int64)]
        self._make_room(2 * len(ends) + int(ends[-1]), 1)
        table = (self._slots, self._hashes, self._ends, self._pool, self._usage)
        self._n = add_terms(_in_groups(b"".join(terms)), ends, self._seed, *table, self._n)

    @property
    def n_documents(self) -> Integers:
        return self._usage[: self._n, 1].view(np.int64)

    @property
    def n_times(self) -> Integers:
        return self._usage[: self._n, 2].view(np.int64)

    def sorted(self) -> tuple[SortedTerms, Integers]:
        """These terms in order, and the number that each has there."""
        from maxdisc.words.compiled_words import copy_terms

        order = byte_order(self._pool, self._ends[: self._n + 1])
        numbers = np.empty(self._n, dtype=np.intp)
        numbers[order] = np.arange(self._n)
        ends = np.zeros(self._n + 1, dtype=np.int64)
        pool = np.zeros(int(self._ends[self._n]) // 8 + 2, dtype=np.uint64)
        copy_terms(self._pool, self._ends, order, pool, ends)
        return SortedTerms(pool, ends, self.n_documents[order], self.n_times[order]), numbers


@dataclass(frozen=True, eq=False)
class SortedTerms:
    """Terms numbered in the order of their code points; term t is bytes ``ends[t]`` to ``ends[t + 1]``."""

    pool: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.int64]
    n_documents: Integers
    n_times: Integers

    def strings(self, numbers: Integers | None = None) -> list[str]:
        from maxdisc.words.compiled_words import lines

        numbers = self.order() if numbers is None else numbers
        lengths = self.ends[numbers + 1] - self.ends[numbers]
        text = np.empty(int(lengths.sum()) + len(numbers), dtype=np.uint8)
        lines(self.pool, self.ends, numbers, text)
        return text.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1]

    def order(self) -> Integers:
        return np.arange(len(self.n_times))

    def merged(self, other: SortedTerms) -> tuple[SortedTerms, Integers, Integers]:
        """Return the terms of both, and the numbers that those of either have there."""
        from maxdisc.words.compiled_words import merge_terms

        most = len(self.n_times) + len(other.n_times)
        pool = np.zeros(len(self.pool) + len(other.pool), dtype=np.uint64)
        ends = np.zeros(most + 1, dtype=np.int64)
        ours, theirs = np.empty(len(self.n_times), dtype=np.intp), np.empty(len(other.n_times), dtype=np.intp)
        n = merge_terms(self.pool, self.ends, other.pool, other.ends, pool, ends, ours, theirs)
        n_documents, n_times = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        for part, numbers in ((self, ours), (other, theirs)):
            n_documents[numbers] += part.n_documents
            n_times[numbers] += part.n_times
        return SortedTerms(pool, ends[: n + 1], n_documents, n_times), ours, theirs


def _is_run(text: str) -> bool:
    return bool(text) and all(character.isalnum() or character == "_" for character in text)


def _folded_bytes(lowercase: bool) -> npt.NDArray[np.uint8]:
    """For each byte what stands for it in a word, or 0 if it ends one; multi-byte characters as they are."""
    out = np.zeros(256, dtype=np.uint8)
    for byte in range(256):
        if byte >= 128 or chr(byte).isalnum() or byte == ord("_"):
            out[byte] = ord(chr(byte).lower()) if lowercase and byte < 128 else byte
    return out


def _encoded(
    documents: Sequence[str], lowercase: bool
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Encode all documents as UTF-8; return bytes, starts and word characters beyond ASCII."""
    is_word = np.zeros(1, dtype=np.uint8)
    joined = "".join(documents)
    if joined.isascii():
        sizes = [len(document) for document in documents]
        text = joined.encode("ascii")
    else:
        # Beyond ASCII, lower case is a matter of whole strings: "ΣΑΣ" becomes "σας".
        fold = str.lower if lowercase else str
        documents = [d if d.isascii() else fold(d) for d in documents]
        is_word = _word_characters("".join(d for d in documents if not d.isascii()))
        parts = [document.encode("utf-8", "surrogatepass") for document in documents]
        sizes = [len(part) for part in parts]
        text = b"".join(parts)
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return np.frombuffer(text, dtype=np.uint8), starts, is_word


def _word_characters(text: str) -> npt.NDArray[np.uint8]:
    """For each code point up to the largest in ``text``: 1 if it occurs and belongs to words."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    out = np.zeros(int(points.max(initial=0)) + 1, dtype=np.uint8)
    out[points] = 1
    out[[p for p in np.flatnonzero(out).tolist() if not chr(p).isalnum()]] = 0
    return out


def _in_groups(text: bytes) -> npt.NDArray[np.uint64]:
    """Bytes in groups of 8, with zeros behind them."""
    # Arrays that can be written to are of another type to kernels, which would be compiled twice.
    return np.frombuffer(bytearray(text + bytes(16 - len(text) % 8)), dtype=np.uint64)


def _grown(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return the array, or a copy with room for ``size`` entries and more."""
    if len(array) >= size:
        return array
    out = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    out[: len(array)] = array
    return out


def byte_order(pool: npt.NDArray[np.uint64], ends: npt.NDArray[np.int64]) -> Integers:
    """Return the order of byte strings ``pool[ends[i]:ends[i + 1]]``, which is that of their code points.

    They are sorted by the first 8 bytes as a number, then the next 8, and as strings where all 16 agree.
    """
    from maxdisc.words.compiled_words import leading_bytes

    keys = np.empty((len(ends) - 1, 2), dtype=np.uint64)
    leading_bytes(pool, ends, keys)
    order = np.argsort(keys[:, 0])
    first = keys[order, 0]
    same = first[1:] == first[:-1]
    tied = np.flatnonzero(np.r_[False, same] | np.r_[same, False])
    order[tied] = order[tied][np.lexsort((keys[order[tied], 1], first[tied]))]
    same[same] = keys[order[1:][same], 1] == keys[order[:-1][same], 1]
    # Runs of equal heads: from where `same` begins to one past where it ends.
    edges = np.flatnonzero(np.diff(np.r_[False, same, False].astype(np.int8)))
    text = pool.view(np.uint8)
    for start, stop in zip(edges[::2].tolist(), (edges[1::2] + 1).tolist(), strict=True):
        run = order[start:stop]
        run[:] = sorted(run.tolist(), key=lambda i: text[ends[i] : ends[i + 1]].tobytes())
    return order


def in_batches(documents: Iterable[str]) -> Iterator[list[str]]:
    """Documents in lists of about ``BATCH`` characters; there is at least one list."""
    size = batch_size(BATCH)
    batch: list[str] = []
    length = 0
    for document in documents:
        batch.append(document)
        length += len(document)
        if length >= size:
            yield batch
            batch, length = [], 0
    if batch:
        yield batch


def count_words(documents: Iterable[str], rule: WordRule, keep: bool = True) -> tuple[Terms, list[Counts]]:
    """Count the terms of documents in batches; per-document counts are returned only if ``keep``."""
    batches = in_batches(documents)
    first: list[list[str]] = []
    size = 0
    while rule.shortest and size < MANY_CHARACTERS and (batch := next(batches, None)):
        first.append(batch)
        size += sum(map(len, batch))
    if rule.shortest and is_compiled(size, MANY_CHARACTERS):
        return _count_in_threads(chain(first, batches), rule, keep)
    terms = PythonTerms(rule)
    counts = []
    for batch in chain(first, batches):
        counted = terms.count(batch)
        if keep:
            counts.append(counted)
    return terms, counts


def _count_in_threads(
    batches: Iterator[list[str]], rule: WordRule, keep: bool
) -> tuple[SortedTerms, list[Counts]]:
    """Count on threads, each into terms of its own, and merge them in the end."""
    tables = [CompiledTerms(rule) for _ in range(n_threads())]
    counted: dict[int, tuple[int, Counts]] = {}
    busy: dict[Future[Counts], tuple[int, int]] = {}
    idle = list(range(len(tables)))

    def collect(when: str) -> None:
        for future in wait(busy, return_when=when).done:
            number, table = busy.pop(future)
            idle.append(table)
            counts = future.result()
            if keep:
                counted[number] = table, counts

    # Batches are drawn here, not in the threads: what they come from may belong to this one.
    with ThreadPoolExecutor(len(tables)) as pool:
        for number, batch in enumerate(batches):
            if not idle:
                collect(FIRST_COMPLETED)
            table = idle.pop()
            busy[pool.submit(tables[table].count, batch)] = number, table
        collect(ALL_COMPLETED)
    (terms, first), *others = in_threads(CompiledTerms.sorted, tables)
    numbers = [first]
    for more, its in others:
        terms, ours, theirs = terms.merged(more)
        numbers = [*(ours[known] for known in numbers), theirs[its]]
    in_order = [counted[number] for number in sorted(counted)]
    return terms, in_threads(lambda pair: pair[1].renumber(numbers[pair[0]]), in_order)
