"""Text of unknown origin, made fit to be shown."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from maxdisc.inspection.safe_text import shortened, visible


@given(st.text())
def test_visible_text_hides_nothing_and_is_settled(text):
    seen = visible(text)
    assert not {unicodedata.category(c) for c in seen if c not in "\u200c\u200d"} & {"Cc", "Cf", "Cs", "Cn"}
    assert not any(c in seen for c in "\n\t\u2028\u2029\x85")
    assert visible(seen) == seen
    seen.encode("utf-8")


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S"))))
def test_ordinary_text_stays_as_it_is(text):
    assert visible(text) == text


@given(st.text(), st.integers(2, 50))
def test_shortened_text_fits_and_says_what_it_leaves_out(text, width):
    short = shortened(text, width)
    assert len(short) <= width
    whole = visible(text)
    if len(whole) <= width:
        assert short == whole
    else:
        assert short.endswith("…")
        assert whole.startswith(short[:-1])


def test_a_book_is_not_read_to_its_end():
    assert shortened("word " * 10**6, 12) == "word word w…"
    assert shortened(" " * 10**4 + "end", 20) == "…"
