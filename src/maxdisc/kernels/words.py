"""From UTF-8 bytes to counts of words: an open hash table of terms, filled while the text is read.

A table of terms is five arrays that only their owner (:class:`maxdisc.words.CompiledTerms`) makes and grows:

``slots``   term number, or -1; a power of two of them, at most half full
``hashes``  hash of each term
``ends``    term t is ``pool[ends[t]:ends[t + 1]]``
``pool``    the bytes of all terms, one after the other, with room for what is being read
``usage``   for each term: rows it occurs in, times it occurs, and where its latest count stands

A kernel that might run out of room in the next document returns before it; the caller makes room and goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.kernels.compiling import inlined, kernel

PRIME = np.uint64(0x100000001B3)
SPACE = np.uint8(32)


@inlined
def _mixed(state: Any, byte: Any) -> Any:
    """One step of FNV-1a."""
    return (state ^ np.uint64(byte)) * PRIME


@inlined
def _find(slots: Any, hashes: Any, ends: Any, pool: Any, start: Any, stop: Any, state: Any) -> Any:
    """The slot of the term whose bytes are ``pool[start:stop]``, or the empty one where it belongs."""
    mask = np.uint64(slots.size - 1)
    slot = (state ^ (state >> np.uint64(32))) & mask
    while True:
        term = slots[slot]
        if term < 0:
            return slot
        if hashes[term] == state and ends[term + 1] - ends[term] == stop - start:
            at = ends[term]
            k = start
            while k < stop and pool[k] == pool[at]:
                k += 1
                at += 1
            if k == stop:
                return slot
        slot = (slot + np.uint64(1)) & mask


@inlined
def _number(
    slots: Any, hashes: Any, ends: Any, pool: Any, n_terms: Any, start: Any, stop: Any, state: Any
) -> Any:
    """The number of the term ``pool[start:stop]``, which is ``n_terms`` if it was new and is now known."""
    slot = _find(slots, hashes, ends, pool, start, stop, state)
    term = slots[slot]
    if term >= 0:
        return np.int64(term)
    slots[slot] = n_terms
    hashes[n_terms] = state
    ends[n_terms + 1] = stop
    return np.int64(n_terms)


@inlined
def _code_point(text: Any, i: Any) -> Any:
    """The code point that starts at byte i of valid UTF-8, and its number of bytes."""
    lead = np.int64(text[i])
    if lead < 0xE0:
        return ((lead & 0x1F) << 6) | (np.int64(text[i + 1]) & 0x3F), 2
    if lead < 0xF0:
        high = ((lead & 0x0F) << 12) | ((np.int64(text[i + 1]) & 0x3F) << 6)
        return high | (np.int64(text[i + 2]) & 0x3F), 3
    high = ((lead & 0x07) << 18) | ((np.int64(text[i + 1]) & 0x3F) << 12)
    return high | ((np.int64(text[i + 2]) & 0x3F) << 6) | (np.int64(text[i + 3]) & 0x3F), 4


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
        i = starts[d]
        stop = starts[d + 1]
        while i < stop:
            # The word is written behind all terms; if it is new, there it stays.
            begin = ends[n_terms]
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
                    end += 1
                    i += 1
                else:
                    point, step = _code_point(text, i)
                    if is_word[point] == 0:
                        break
                    for _ in range(step):
                        pool[end] = text[i]
                        state = _mixed(state, text[i])
                        end += 1
                        i += 1
                    step = 1
                size += 1
            i += step
            if size < shortest:
                continue
            term = _number(slots, hashes, ends, pool, n_terms, begin, end, state)
            if term == n_terms:
                usage[term, 2] = -1
                n_terms += 1
            if term < n_skipped:
                continue
            tokens[n_tokens] = term
            n_tokens += 1
            if min_n == 1:
                at = usage[term, 2]
                if at >= row:
                    counts[at] += 1
                else:
                    usage[term, 2] = filled
                    usage[term, 0] += 1
                    indices[filled] = term
                    counts[filled] = 1
                    filled += 1
                usage[term, 1] += 1
        for n in range(max(2, min_n), max_n + 1):
            for first_token in range(n_tokens - n + 1):
                begin = ends[n_terms]
                end = begin
                state = seed
                for k in range(n):
                    if k > 0:
                        pool[end] = SPACE
                        state = _mixed(state, SPACE)
                        end += 1
                    part = tokens[first_token + k]
                    for at in range(ends[part], ends[part + 1]):
                        pool[end] = pool[at]
                        state = _mixed(state, pool[at])
                        end += 1
                term = _number(slots, hashes, ends, pool, n_terms, begin, end, state)
                if term == n_terms:
                    usage[term, 2] = -1
                    n_terms += 1
                at = usage[term, 2]
                if at >= row:
                    counts[at] += 1
                else:
                    usage[term, 2] = filled
                    usage[term, 0] += 1
                    indices[filled] = term
                    counts[filled] = 1
                    filled += 1
                usage[term, 1] += 1
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
        begin = ends[n_terms]
        end = begin
        state = seed
        for i in range(more_ends[t], more_ends[t + 1]):
            pool[end] = more[i]
            state = _mixed(state, more[i])
            end += 1
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
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = term


@kernel
def arrange(
    indptr: Any, indices: Any, counts: Any, column_of: Any, n_columns: int, out_indptr: Any
) -> tuple[Any, Any]:
    """Rows with their terms renamed to columns, in increasing order; terms whose column is -1 are left out.

    Two counting sorts, by column and then by row, so that no row is ever sorted. Fills ``out_indptr`` and
    returns columns and counts.
    """
    n_rows = indptr.size - 1
    heads = np.zeros(n_columns + 1, dtype=np.int64)
    for r in range(n_rows):
        kept = 0
        for p in range(indptr[r], indptr[r + 1]):
            column = column_of[indices[p]]
            if column >= 0:
                heads[column + 1] += 1
                kept += 1
        out_indptr[r + 1] = out_indptr[r] + kept
    for column in range(n_columns):
        heads[column + 1] += heads[column]
    total = out_indptr[n_rows]
    by_column_row = np.empty(total, dtype=np.int32)
    by_column_count = np.empty(total, dtype=np.int32)
    stops = heads[:-1].copy()
    for r in range(n_rows):
        for p in range(indptr[r], indptr[r + 1]):
            column = column_of[indices[p]]
            if column >= 0:
                at = stops[column]
                by_column_row[at] = r
                by_column_count[at] = counts[p]
                stops[column] = at + 1
    columns = np.empty(total, dtype=np.int32)
    values = np.empty(total, dtype=np.int64)
    filled = out_indptr[:-1].copy()
    for column in range(n_columns):
        for at in range(heads[column], heads[column + 1]):
            r = by_column_row[at]
            p = filled[r]
            columns[p] = column
            values[p] = by_column_count[at]
            filled[r] = p + 1
    return columns, values
