"""From UTF-8 bytes to counts of words: an open hash table of terms, filled while the text is read.

A table of terms is five arrays that only their owner (``CompiledTerms``) makes and grows:

``slots``   term number and upper half of its hash, or EMPTY; a power of two of them, at most half full
``hashes``  hash of each term, for when the slots become too few
``ends``    term t is ``pool[ends[t]:ends[t + 1]]``
``pool``    the bytes of all terms, one after the other, in groups of 8
``usage``   for each term: its first 8 bytes, rows it occurs in, times it occurs, and one past where its
            latest count stands

A kernel that might run out of room in the next document returns before it; the caller makes room and goes on.

Text is looked at 8 bytes at a time where it can be: most words are no longer, and are then compared and
hashed as one number. All words of a document are looked up together, step by step: memory is then waited for
once for many words, and what a processor would have to guess is left out of the loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiled_prefetching import prefetch
from maxdisc.numerics.compiling import inlined, kernel

FACTOR = np.uint64(0x9E3779B97F4A7C15)
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
TAG = np.uint64(0xFFFFFFFF00000000)
NUMBER = np.uint64(0x00000000FFFFFFFF)
ONE = np.uint64(1)
SPACE, NEWLINE = np.uint8(32), np.uint8(10)
#: Rows are sorted by so many bits of their columns at a time, and rows of so few cells by comparing them.
DIGIT, FEW = np.uint64(9), np.uint64(24)

# The columns of ``usage``.
HEAD, IN_ROWS, TIMES, LATEST = range(4)


@inlined
def _eight(words: Any, at: Any) -> Any:
    """The 8 bytes from byte ``at`` on, the first of them lowest; ``words`` are bytes in groups of 8."""
    group, shift = at >> np.uint64(3), (at & np.uint64(7)) << np.uint64(3)
    return (words[group] >> shift) | ((words[group + ONE] << ONE) << (np.uint64(63) - shift))


@inlined
def _head(words: Any, start: Any, size: Any) -> Any:
    """The first 8 bytes of a term, or all of a shorter one with zeros behind it."""
    half = (np.uint64(8) - min(size, np.uint64(8))) << np.uint64(2)
    # In two steps: a number cannot be shifted by all of its 64 bits at once.
    return _eight(words, start) & ((EMPTY >> half) >> half)


@inlined
def _mixed(state: Any, eight: Any) -> Any:
    state = (state ^ eight) * FACTOR
    return state ^ (state >> np.uint64(32))


@inlined
def _hashed_tail(words: Any, start: Any, size: Any, state: Any) -> Any:
    """The state of a hash when it has gone on with what is behind the head, 8 bytes at a step."""
    done = np.uint64(8)
    while done < size:
        state = _mixed(state, _head(words, start + done, size - done))
        done += np.uint64(8)
    return state


@inlined
def _hashed(words: Any, start: Any, size: Any, head: Any, seed: Any) -> Any:
    """The hash of a term of ``size`` bytes."""
    return _hashed_tail(words, start, size, _mixed(seed, head)) * FACTOR


@inlined
def _slot(state: Any, mask: Any) -> Any:
    return (state ^ (state >> np.uint64(32))) & mask


@inlined
def _same_tail(words: Any, start: Any, others: Any, at: Any, size: Any) -> Any:
    """Whether two terms of ``size`` bytes agree behind their heads."""
    done = np.uint64(8)
    while done < size:
        if _head(words, start + done, size - done) != _head(others, at + done, size - done):
            return False
        done += np.uint64(8)
    return True


@inlined
def _is_long(words: Any, start: Any, size: Any, ends: Any, pool: Any, term: Any) -> Any:
    """Whether a word of at least 8 bytes is the known term whose head it has."""
    at = np.uint64(ends[term])
    same_size = np.uint64(ends[term + ONE]) - at == size
    return same_size and _same_tail(words, start, pool, at, size)


@inlined
def _number(
    slots: Any,
    hashes: Any,
    ends: Any,
    pool: Any,
    usage: Any,
    n_terms: Any,
    words: Any,
    start: Any,
    size: Any,
    seed: Any,
) -> Any:
    """The number of the term at byte ``start`` of ``words``; ``n_terms`` if it was new and is now known."""
    head = _head(words, start, size)
    state = _hashed(words, start, size, head, seed)
    mask = np.uint64(slots.size - 1)
    tag = state & TAG
    slot = _slot(state, mask)
    while True:
        entry = slots[slot]
        if entry == EMPTY:
            begin = np.uint64(ends[n_terms])
            pool_bytes, word_bytes = pool.view(np.uint8), words.view(np.uint8)
            for k in range(size):
                pool_bytes[begin + k] = word_bytes[start + k]
            slots[slot] = tag | np.uint64(n_terms)
            hashes[n_terms] = state
            ends[n_terms + 1] = begin + size
            usage[n_terms, HEAD] = head
            usage[n_terms, IN_ROWS] = 0
            usage[n_terms, TIMES] = 0
            usage[n_terms, LATEST] = 0
            return np.uint64(n_terms)
        term = entry & NUMBER
        # A head of less than 8 bytes, which ends in a zero, is the whole term.
        same_head = entry & TAG == tag and usage[term, HEAD] == head
        if same_head and (size < np.uint64(8) or _is_long(words, start, size, ends, pool, term)):
            return term
        slot = (slot + ONE) & mask


@inlined
def _look_up(
    slots: Any,
    ends: Any,
    pool: Any,
    usage: Any,
    words: Any,
    begins: Any,
    sizes: Any,
    n_words: Any,
    seed: Any,
    heads: Any,
    found: Any,
    long: Any,
) -> None:
    """Numbers of the words that stand in the first slot they can; EMPTY for others."""
    mask, n_long = np.uint64(slots.size - 1), np.uint64(0)
    for i in range(n_words):
        start, size = np.uint64(begins[i]), np.uint64(sizes[i])
        heads[i] = _head(words, start, size)
        found[i] = _mixed(seed, heads[i])
        long[n_long] = i
        n_long += np.uint64(size >= np.uint64(8))
    for k in range(n_long):
        at = np.uint64(long[k])
        found[at] = _hashed_tail(words, np.uint64(begins[at]), np.uint64(sizes[at]), found[at])
    for i in range(n_words):
        found[i] *= FACTOR
        prefetch(slots, _slot(found[i], mask))
    for i in range(n_words):
        entry = slots[_slot(found[i], mask)]
        found[i] = entry & NUMBER if entry & TAG == found[i] & TAG else EMPTY
        prefetch(usage, np.uint64(4) * (entry & NUMBER))
    for k in range(n_long):
        maybe = found[np.uint64(long[k])]
        prefetch(ends, maybe if maybe != EMPTY else np.uint64(0))
    for i in range(n_words):
        maybe = found[i] if found[i] != EMPTY else np.uint64(0)
        right = (usage[maybe, HEAD] == heads[i]) & (found[i] != EMPTY)
        found[i] = maybe if right else EMPTY
    # A head of less than 8 bytes, which ends in a zero, is the whole term; of others the rest is compared.
    for k in range(n_long):
        maybe = found[np.uint64(long[k])]
        prefetch(pool, np.uint64(ends[maybe if maybe != EMPTY else np.uint64(0)]) >> np.uint64(3))
    for k in range(n_long):
        at = np.uint64(long[k])
        maybe, size = found[at], np.uint64(sizes[at])
        if maybe != EMPTY and not _is_long(words, np.uint64(begins[at]), size, ends, pool, maybe):
            found[at] = EMPTY


@inlined
def _counted(term: Any, row: Any, filled: Any, usage: Any, indices: Any, counts: Any) -> Any:
    """Count a term once more in the row that began at ``row``; returns where the row now ends."""
    latest = usage[term, LATEST]
    new = np.uint64(latest <= row)
    at = filled if new else latest - ONE
    before = np.int32(0) if new else counts[at]
    indices[at] = term
    counts[at] = before + np.int32(1)
    usage[term, IN_ROWS] += new
    usage[term, TIMES] += ONE
    usage[term, LATEST] = at + ONE
    return filled + new


@inlined
def _blank_what_ends_words(text: Any, start: Any, stop: Any, is_word: Any, folded: Any) -> None:
    """Put 0 for the characters beyond ASCII that do not belong to words."""
    i = start
    while i < stop:
        lead = np.int64(text[i])
        size = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        if size > 1:
            point = lead & (0xFF >> (size + 1))
            for k in range(1, size):
                point = (point << 6) | (np.int64(text[i + np.uint64(k)]) & 0x3F)
            if is_word[point] == 0:
                for k in range(size):
                    folded[i - start + np.uint64(k)] = 0
        i += np.uint64(size)


@inlined
def _find_words(folded: Any, size: Any, edges: Any, begins: Any, sizes: Any, shortest: Any) -> Any:
    """Where words of so many bytes or more begin, and how many bytes they have; returns their number."""
    n_edges = np.uint64(0)
    inside = False
    for i in range(size):
        word = folded[i] != 0
        edges[n_edges] = i
        n_edges += np.uint64(word != inside)
        inside = word
    edges[n_edges] = size
    n_words = np.uint64(0)
    for edge in range(np.uint64(0), n_edges, np.uint64(2)):
        begins[n_words] = edges[edge]
        sizes[n_words] = edges[edge + ONE] - edges[edge]
        n_words += np.uint64(sizes[n_words] >= shortest)
    return n_words


@inlined
def _n_characters(folded: Any, start: Any, size: Any) -> Any:
    found = 0
    for k in range(size):
        found += (folded[start + k] & 0xC0) != 0x80
    return found


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
) -> tuple[int, int]:
    """Count the terms of documents from ``first`` on; return where it stopped and the number of terms.

    ``fold`` maps bytes to lower case, 0 for bytes that end a word; terms numbered below ``n_skipped`` are
    stop words; rows are written in CSR form from ``indptr[first]`` on.
    """
    n_documents = starts.size - 1
    longest = 0
    for d in range(first, n_documents):
        longest = max(longest, starts[d + 1] - starts[d])
    # The document at hand, folded; its words, their first bytes and their numbers; and words joined.
    folded_words = np.empty(longest // 8 + 2, dtype=np.uint64)
    folded = folded_words.view(np.uint8)
    edges = np.empty(longest + 2, dtype=np.uint32)
    begins, sizes = np.empty(longest // 2 + 2, dtype=np.uint32), np.empty(longest // 2 + 2, dtype=np.uint32)
    heads, numbers = np.empty(longest // 2 + 2, dtype=np.uint64), np.empty(longest // 2 + 2, dtype=np.uint64)
    long = np.empty(longest // 2 + 2, dtype=np.uint32)
    joined_words = np.empty(longest // 8 + 2 if max_n > 1 else 0, dtype=np.uint64)
    # Zeros by numpy's name for them take a tenth of a second more to compile.
    folded_words[:] = 0
    joined_words[:] = 0
    joined, pool_bytes = joined_words.view(np.uint8), pool.view(np.uint8)
    beyond = is_word.size > 1
    filled = np.uint64(indptr[first])
    for d in range(first, n_documents):
        length = starts[d + 1] - starts[d]
        most = (length + 1) // 2 + 1
        if (
            n_terms + most * max_n >= hashes.size
            or 2 * (n_terms + most * max_n) > slots.size
            or ends[n_terms] + (length + 1) * (max_n * (max_n + 1) // 2 + 1) + 16 > 8 * pool.size
            or filled + most * max_n > indices.size
        ):
            return d, n_terms
        row = filled
        start, size = np.uint64(starts[d]), np.uint64(length)
        for i in range(size):
            folded[i] = fold[text[start + i]]
        if beyond:
            _blank_what_ends_words(text, start, start + size, is_word, folded)
        n_words = _find_words(folded, size, edges, begins, sizes, np.uint32(shortest))
        table = (slots, ends, pool, usage)
        _look_up(*table, folded_words, begins, sizes, n_words, seed, heads, numbers, long)
        n_tokens = np.uint64(0)
        for i in range(n_words):
            begin, width, term = np.uint64(begins[i]), np.uint64(sizes[i]), numbers[i]
            if beyond and width < np.uint64(4 * shortest) and _n_characters(folded, begin, width) < shortest:
                continue
            if term == EMPTY:
                term = _number(slots, hashes, ends, pool, usage, n_terms, folded_words, begin, width, seed)
                n_terms += term == np.uint64(n_terms)
            if term < np.uint64(n_skipped):
                continue
            numbers[n_tokens] = term
            n_tokens += ONE
            if min_n == 1:
                filled = _counted(term, row, filled, usage, indices, counts)
        for n in range(max(2, min_n), max_n + 1):
            for first_token in range(np.int64(n_tokens) - n + 1):
                width = np.uint64(0)
                for k in range(n):
                    if k > 0:
                        joined[width] = SPACE
                        width += ONE
                    part = numbers[np.uint64(first_token + k)]
                    for at in range(np.uint64(ends[part]), np.uint64(ends[part + ONE])):
                        joined[width] = pool_bytes[at]
                        width += ONE
                term = _number(
                    slots, hashes, ends, pool, usage, n_terms, joined_words, np.uint64(0), width, seed
                )
                n_terms += term == np.uint64(n_terms)
                filled = _counted(term, row, filled, usage, indices, counts)
        indptr[d + 1] = filled
    return n_documents, n_terms


@kernel
def add_terms(
    more: Any,
    more_ends: Any,
    seed: Any,
    slots: Any,
    hashes: Any,
    ends: Any,
    pool: Any,
    usage: Any,
    n_terms: int,
) -> int:
    """Add terms given as bytes in groups of 8, with room for all; returns how many are then known."""
    for t in range(more_ends.size - 1):
        start = np.uint64(more_ends[t])
        size = np.uint64(more_ends[t + 1]) - start
        term = _number(slots, hashes, ends, pool, usage, n_terms, more, start, size, seed)
        n_terms += term == np.uint64(n_terms)
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
def rename(terms: Any, numbers: Any) -> None:
    """Put for each term its number in another table."""
    for p in range(terms.size):
        terms[p] = numbers[np.uint32(terms[p])]


@inlined
def _insert(cells: Any, n: Any) -> None:
    """Sort the first few numbers, each put before all those that are larger."""
    for i in range(ONE, n):
        cell, at = cells[i], np.uint64(i)
        while at > 0 and cells[at - ONE] > cell:
            cells[at] = cells[at - ONE]
            at -= ONE
        cells[at] = cell


@inlined
def _sort_by_digit(cells: Any, n: Any, shift: Any, stops: Any, out: Any) -> None:
    """Put the first numbers in the order of their bits from ``shift`` on, else as they were, in ``out``."""
    mask = np.uint64(stops.size - 1)
    stops[:] = 0
    for i in range(n):
        stops[(cells[i] >> shift) & mask] += np.uint32(1)
    before = np.uint32(0)
    for digit in range(stops.size):
        count = stops[digit]
        stops[digit] = before
        before += count
    for i in range(n):
        its = (cells[i] >> shift) & mask
        out[np.uint64(stops[its])] = cells[i]
        stops[its] += np.uint32(1)


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

    ``out_indptr`` says where the rows will be.
    """
    longest, last = 0, np.uint64(max(n_columns - 1, 1))
    for r in range(indptr.size - 1):
        longest = max(longest, indptr[r + 1] - indptr[r])
    n_bits = np.uint64(0)
    while last >> n_bits != 0:
        n_bits += ONE
    n_digits = (n_bits + DIGIT - ONE) // DIGIT
    width = (n_bits + n_digits - ONE) // n_digits
    # Column and count in one number; one more than there can be, as what is left out is written, too.
    cells, spare = np.empty(longest + 1, dtype=np.uint64), np.empty(longest + 1, dtype=np.uint64)
    stops = np.empty(1 << width, dtype=np.uint32)
    for r in range(indptr.size - 1):
        n = np.uint64(0)
        for p in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            column = column_of[np.uint32(indices[p])]
            cells[n] = (np.uint64(np.uint32(column)) << np.uint64(32)) | np.uint64(np.uint32(counts[p]))
            n += np.uint64(column >= 0)
        if n <= FEW:
            _insert(cells, n)
        else:
            for digit in range(n_digits):
                _sort_by_digit(cells, n, np.uint64(32) + np.uint64(digit) * width, stops, spare)
                cells, spare = spare, cells
        into = np.uint64(out_indptr[r])
        for i in range(n):
            out_columns[into + i] = cells[i] >> np.uint64(32)
            out_counts[into + i] = cells[i] & NUMBER


@kernel
def leading_bytes(pool: Any, ends: Any, out: Any) -> None:
    """The first 16 bytes of each term as two numbers, so that the order of numbers is that of the bytes."""
    pool_bytes = pool.view(np.uint8)
    for term in range(out.shape[0]):
        start, stop = ends[term], ends[term + 1]
        for half in range(2):
            number = np.uint64(0)
            for k in range(start + 8 * half, start + 8 * half + 8):
                byte = np.uint64(pool_bytes[k]) if k < stop else np.uint64(0)
                number = (number << np.uint64(8)) | byte
            out[term, half] = number


@kernel
def copy_terms(pool: Any, ends: Any, terms: Any, out_pool: Any, out_ends: Any) -> None:
    """Some terms, one after the other."""
    source, target = pool.view(np.uint8), out_pool.view(np.uint8)
    filled = np.uint64(0)
    for i in range(terms.size):
        filled = _copied(source, ends, np.uint64(terms[i]), target, filled)
        out_ends[i + 1] = filled


@inlined
def _copied(source: Any, ends: Any, term: Any, target: Any, filled: Any) -> Any:
    for k in range(np.uint64(ends[term]), np.uint64(ends[term + ONE])):
        target[filled] = source[k]
        filled += ONE
    return filled


@kernel
def merge_terms(
    pool_a: Any,
    ends_a: Any,
    pool_b: Any,
    ends_b: Any,
    out_pool: Any,
    out_ends: Any,
    numbers_a: Any,
    numbers_b: Any,
) -> int:
    """Two lists of terms, each in order, as one; says where each term is, returns how many there are."""
    bytes_a, bytes_b, target = pool_a.view(np.uint8), pool_b.view(np.uint8), out_pool.view(np.uint8)
    a, b, n = np.uint64(0), np.uint64(0), 0
    filled = np.uint64(0)
    while a < numbers_a.size or b < numbers_b.size:
        sign = -1 if b == numbers_b.size else 1 if a == numbers_a.size else 0
        if sign == 0:
            i, j = np.uint64(ends_a[a]), np.uint64(ends_b[b])
            stop_i, stop_j = np.uint64(ends_a[a + ONE]), np.uint64(ends_b[b + ONE])
            while i < stop_i and j < stop_j and bytes_a[i] == bytes_b[j]:
                i += ONE
                j += ONE
            sign = (0 if i == stop_i else 1 + bytes_a[i]) - (0 if j == stop_j else 1 + bytes_b[j])
        if sign > 0:
            filled = _copied(bytes_b, ends_b, b, target, filled)
        else:
            filled = _copied(bytes_a, ends_a, a, target, filled)
        if sign <= 0:
            numbers_a[a] = n
            a += ONE
        if sign >= 0:
            numbers_b[b] = n
            b += ONE
        n += 1
        out_ends[n] = filled
    return n


@kernel
def lines(pool: Any, ends: Any, terms: Any, out: Any) -> None:
    """The bytes of some terms, one after the other, each followed by a newline, which no term contains."""
    filled = np.uint64(0)
    pool_bytes = pool.view(np.uint8)
    for term in terms:
        for k in range(np.uint64(ends[term]), np.uint64(ends[term + 1])):
            out[filled] = pool_bytes[k]
            filled += ONE
        out[filled] = NEWLINE
        filled += ONE
