"""From UTF-8 bytes to counts of words: an open hash table of terms, filled while the text is read.

A table of terms is five arrays that only their owner (:class:`maxdisc.words.CompiledTerms`) makes and grows:

``slots``   term number and upper half of its hash, or EMPTY; a power of two of them, at most half full
``hashes``  hash of each term, for when the slots become too few
``ends``    term t is ``pool[ends[t]:ends[t + 1]]``
``pool``    the bytes of all terms, one after the other, with room for what is being read
``usage``   for each term: rows it occurs in, times it occurs, and one past where its latest count stands

A kernel that might run out of room in the next document returns before it; the caller makes room and goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.kernels.compiling import inlined, kernel

PRIME = np.uint64(0x100000001B3)
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
TAG = np.uint64(0xFFFFFFFF00000000)
NUMBER = np.uint64(0x00000000FFFFFFFF)
ONE = np.uint64(1)
SPACE = np.uint8(32)


@inlined
def _mixed(state: Any, byte: Any) -> Any:
    """One step of FNV-1a."""
    return (state ^ np.uint64(byte)) * PRIME


@inlined
def _number(
    slots: Any, hashes: Any, ends: Any, pool: Any, n_terms: Any, start: Any, stop: Any, state: Any
) -> Any:
    """The number of the term ``pool[start:stop]``, which is ``n_terms`` if it was new and is now known."""
    mask = np.uint64(slots.size - 1)
    tag = state & TAG
    slot = (state ^ (state >> np.uint64(32))) & mask
    while True:
        entry = slots[slot]
        if entry == EMPTY:
            slots[slot] = tag | np.uint64(n_terms)
            hashes[n_terms] = state
            ends[n_terms + 1] = stop
            return np.uint64(n_terms)
        if entry & TAG == tag:
            term = entry & NUMBER
            at = np.uint64(ends[term])
            if np.uint64(ends[term + np.uint64(1)]) - at == stop - start:
                k = start
                while k < stop and pool[k] == pool[at]:
                    k += np.uint64(1)
                    at += np.uint64(1)
                if k == stop:
                    return term
        slot = (slot + np.uint64(1)) & mask


@inlined
def _counted(term: Any, row: Any, filled: Any, usage: Any, indices: Any, counts: Any) -> Any:
    """Count a term once more in the row that began at ``row``; returns where the row now ends."""
    at = usage[term, 2]
    usage[term, 1] += 1
    if at > row:
        counts[np.uint64(at - 1)] += 1
        return filled
    usage[term, 0] += 1
    usage[term, 2] = filled + 1
    indices[np.uint64(filled)] = term
    counts[np.uint64(filled)] = 1
    return filled + 1


@inlined
def _code_point(text: Any, i: Any) -> Any:
    """The code point that starts at byte i of valid UTF-8, and its number of bytes."""
    lead = np.int64(text[i])
    second = np.int64(text[i + ONE]) & 0x3F
    if lead < 0xE0:
        return ((lead & 0x1F) << 6) | second, 2
    third = np.int64(text[i + ONE + ONE]) & 0x3F
    if lead < 0xF0:
        return ((lead & 0x0F) << 12) | (second << 6) | third, 3
    return ((lead & 0x07) << 18) | (second << 12) | (third << 6) | (
        np.int64(text[i + np.uint64(3)]) & 0x3F
    ), 4


@kernel
def count_documents(
    text: Any,
    starts: Any,
    first: int,
    fold: Any,
    is_word: Any,
    shortest: int,
    min_n: int,
    max_n: int,
    seed: Any,
    n_skipped: int,
    slots: Any,
    hashes: Any,
    ends: Any,
    pool: Any,
    usage: Any,
    n_terms: int,
    indptr: Any,
    indices: Any,
    counts: Any,
    tokens: Any,
) -> tuple[int, int]:
    """Count the terms of documents ``first``, ``first + 1``, ... and return where it stopped.

    Parameters
    ----------
    text, starts : uint8 (B,), int64 (n + 1,)
        Document d is ``text[starts[d]:starts[d + 1]]``.
    fold : uint8 (256,)
        0 for bytes that end a word, else the byte that stands for it (lower case); from 128 on, itself.
    is_word : uint8 (P,)
        For each code point that occurs, whether it belongs to words.
    shortest : int
        Length of the shortest word, in code points.
    min_n, max_n : int
        How many words are taken together.
    n_skipped : int
        Terms numbered below this are stop words.
    indptr, indices, counts
        The rows, in CSR form, filled from where ``indptr[first]`` says.
    tokens : int32 (T,)
        Room for the words of one document.

    Returns
    -------
    tuple of int
        The first document not counted, and the number of terms known.
    """
    n_documents = starts.size - 1
    filled = indptr[first]
    for d in range(first, n_documents):
        length = starts[d + 1] - starts[d]
        most = (length + 1) // 2 + 1
        if (
            n_terms + most * max_n >= hashes.size
            or 2 * (n_terms + most * max_n) > slots.size
            or ends[n_terms] + (length + 1) * (max_n * (max_n + 1) // 2 + 1) > pool.size
            or most > tokens.size
            or filled + most * max_n > indices.size
        ):
            return d, n_terms
        row = filled
        n_tokens = 0
        i = np.uint64(starts[d])
        stop = np.uint64(starts[d + 1])
        while i < stop:
            # The word is written behind all terms; if it is new, there it stays.
            begin = np.uint64(ends[n_terms])
            end = begin
            state = seed
            size = 0
            step = 1
            while i < stop:
                byte = fold[text[i]]
                if byte == 0:
                    break
                if byte < 128:
                    pool[end] = byte
                    state = _mixed(state, byte)
                    end += ONE
                    i += ONE
                else:
                    point, step = _code_point(text, i)
                    if is_word[point] == 0:
                        break
                    for _ in range(step):
                        pool[end] = text[i]
                        state = _mixed(state, text[i])
                        end += ONE
                        i += ONE
                    step = 1
                size += 1
            i += np.uint64(step)
            if size < shortest:
                continue
            term = _number(slots, hashes, ends, pool, n_terms, begin, end, state)
            if term == n_terms:
                n_terms += 1
            if term < n_skipped:
                continue
            tokens[n_tokens] = term
            n_tokens += 1
            if min_n == 1:
                filled = _counted(term, row, filled, usage, indices, counts)
        for n in range(max(2, min_n), max_n + 1):
            for first_token in range(n_tokens - n + 1):
                begin = np.uint64(ends[n_terms])
                end = begin
                state = seed
                for k in range(n):
                    if k > 0:
                        pool[end] = SPACE
                        state = _mixed(state, SPACE)
                        end += ONE
                    part = tokens[first_token + k]
                    for at in range(ends[part], ends[part + 1]):
                        pool[end] = pool[at]
                        state = _mixed(state, pool[at])
                        end += ONE
                term = _number(slots, hashes, ends, pool, n_terms, begin, end, state)
                if term == n_terms:
                    n_terms += 1
                filled = _counted(term, row, filled, usage, indices, counts)
        indptr[d + 1] = filled
    return n_documents, n_terms


@kernel
def number_terms(
    more: Any,
    more_ends: Any,
    seed: Any,
    slots: Any,
    hashes: Any,
    ends: Any,
    pool: Any,
    n_terms: int,
    out: Any,
) -> int:
    """Fill ``out`` with the numbers of terms given as bytes; returns how many are then known.

    New ones are added; there must be room for all.
    """
    for t in range(out.size):
        begin = np.uint64(ends[n_terms])
        end = begin
        state = seed
        for i in range(more_ends[t], more_ends[t + 1]):
            pool[end] = more[i]
            state = _mixed(state, more[i])
            end += ONE
        term = _number(slots, hashes, ends, pool, n_terms, begin, end, state)
        if term == n_terms:
            n_terms += 1
        out[t] = term
    return n_terms


@kernel
def refill(slots: Any, hashes: Any, n_terms: int) -> None:
    """Put all terms into an empty, larger set of slots."""
    mask = np.uint64(slots.size - 1)
    for term in range(n_terms):
        state = hashes[term]
        slot = (state ^ (state >> np.uint64(32))) & mask
        while slots[slot] != EMPTY:
            slot = (slot + ONE) & mask
        slots[slot] = (state & TAG) | np.uint64(term)


@kernel
def arrange(
    indptr: Any,
    indices: Any,
    counts: Any,
    column_of: Any,
    n_columns: int,
    out_indptr: Any,
    out_columns: Any,
    out_counts: Any,
) -> None:
    """Rows with their terms renamed to columns, in increasing order; terms whose column is -1 are left out.

    Two counting sorts, by column and then by row, so that no row is ever sorted. ``out_indptr`` says where
    the rows will be.
    """
    stops = np.zeros(n_columns + 1, dtype=np.int32)
    for p in range(indices.size):
        column = column_of[np.uint32(indices[p])]
        if column >= 0:
            stops[np.uint32(column) + np.uint32(1)] += 1
    for column in range(n_columns):
        stops[column + 1] += stops[column]
    # What stands before a column becomes, one by one, where it stops.
    by_column = np.empty((out_columns.size, 2), dtype=np.int32)
    for r in range(indptr.size - 1):
        for p in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            column = column_of[np.uint32(indices[p])]
            if column >= 0:
                at = np.uint32(stops[np.uint32(column)])
                by_column[at, 0] = r
                by_column[at, 1] = counts[p]
                stops[np.uint32(column)] = at + 1
    filled = out_indptr[:-1].astype(np.int32)
    at = np.uint32(0)
    for column in range(n_columns):
        while at < stops[column]:
            row = np.uint32(by_column[at, 0])
            into = np.uint32(filled[row])
            out_columns[into] = column
            out_counts[into] = by_column[at, 1]
            filled[row] = into + 1
            at += np.uint32(1)


@kernel
def leading_bytes(pool: Any, ends: Any, out: Any) -> None:
    """The first 16 bytes of each term as two numbers, so that the order of numbers is that of the bytes."""
    for term in range(out.shape[0]):
        start, stop = ends[term], ends[term + 1]
        for half in range(2):
            number = np.uint64(0)
            for k in range(start + 8 * half, start + 8 * half + 8):
                byte = np.uint64(pool[k]) if k < stop else np.uint64(0)
                number = (number << np.uint64(8)) | byte
            out[term, half] = number


@kernel
def lines(pool: Any, ends: Any, terms: Any, out: Any) -> None:
    """The bytes of some terms, one after the other, each followed by a newline, which no term contains."""
    filled = np.uint64(0)
    for term in terms:
        for k in range(np.uint64(ends[term]), np.uint64(ends[term + 1])):
            out[filled] = pool[k]
            filled += ONE
        out[filled] = ord("\n")
        filled += ONE
