"""Scripts that put no spaces between words."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Han, Hiragana, Katakana and Bopomofo, as the inside of a set of characters in a regular expression.
UNSPACED = (
    r"\u3005\u3007\u3021-\u3029\u3040-\u30ff\u3105-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
#: Each such character is a word; other words are runs of at least two letters and digits.
CHARACTERS = rf"[{UNSPACED}]|[^\W{UNSPACED}]{{2,}}"
#: Documents are taken for unspaced if such characters are this share of all, ...
LEAST_SHARE = 0.1
#: ... and their runs are at least this long on average. Runs of segmented text are words: one or two long.
LEAST_RUN = 4.0

_RUN = re.compile(f"[{UNSPACED}]+")


def is_unspaced(documents: Iterable[str | bytes]) -> bool:
    """Return whether documents are of a script without spaces between words, and were not segmented."""
    n_runs = n_unspaced = n_characters = 0
    for document in documents:
        n_characters += len(document)
        if document.isascii():
            continue
        text = document if isinstance(document, str) else document.decode("utf-8", "replace")
        runs = _RUN.findall(text)
        n_runs += len(runs)
        n_unspaced += sum(map(len, runs))
    return n_unspaced > LEAST_SHARE * n_characters and n_unspaced >= LEAST_RUN * n_runs
