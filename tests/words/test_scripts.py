"""Scripts without spaces between words: which documents are taken for such, and what their words are."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.fitting.documents import count_training
from maxdisc.words.scripts import CHARACTERS, is_unspaced

CHINESE = ["这个酒店的服务非常好、房间也很干净。", "早餐太差了、下次不会再来住。", "价格便宜、地点方便。"]
JAPANESE = ["このホテルはとても良かったです。", "部屋が狭くて、朝食も普通でした。"]
SEGMENTED = ["这个 酒店 的 服务 非常 好 、 房间 也 很 干净 。", "早餐 太 差 了 、 下次 不会 再 来 住 。"]
SPACED = ["The room was clean.", "Das Zimmer war sauber.", "Kamarnya bersih.", "방이 깨끗했습니다."]


@pytest.mark.parametrize(
    "documents", [CHINESE, JAPANESE, [text.encode() for text in CHINESE], CHINESE + SPACED]
)
def test_documents_without_spaces_are_told(documents):
    assert is_unspaced(documents)


@pytest.mark.parametrize("documents", [SEGMENTED, SPACED, [], [""], ["!?"], ["Tokyo (東京) is large."] * 3])
def test_documents_with_spaces_are_left_alone(documents):
    assert not is_unspaced(documents)


@given(st.text(st.characters(max_codepoint=0x2FFF)))
def test_words_of_other_scripts_are_as_before(text):
    assert re.findall(CHARACTERS, text) == re.findall(r"(?u)\b\w\w+\b", text)


@given(st.text(st.sampled_from("好坏人東京のカ"), min_size=1), st.sampled_from(["", " ", "ab", "a1b2"]))
def test_each_character_is_a_word(text, latin):
    assert re.findall(CHARACTERS, latin.join(text)) == [
        word for at, char in enumerate(text) for word in ([latin] if at and latin.strip() else []) + [char]
    ]


def unspaced(n, seed):
    """Sentences of random characters, with a character in each that its class has."""
    rng, y = np.random.default_rng(seed), np.arange(n) % 2
    texts = ["".join(map(chr, rng.integers(0x4E00, 0x4E40, size=24))) for _ in range(n)]
    return [text[:9] + "好坏"[label] + text[9:] for text, label in zip(texts, y, strict=True)], y


def test_the_default_learns_from_characters():
    (texts, y), (others, truth) = unspaced(300, 0), unspaced(200, 1)
    model = MaxDiscClassifier().fit(texts, y)
    assert model.score(others, truth) > 0.9
    assert model.vectorizer_.token_pattern == CHARACTERS
    assert {"好", "坏"} <= set(model.get_feature_names_out())
    # The words of other sentences occur once.
    words = MaxDiscClassifier(vectorizer=TermFrequencyVectorizer()).fit(texts, y)
    assert words.score(others, truth) < 0.7


def test_pairs_of_characters_take_the_place_of_pairs_of_words():
    X, documents = count_training(MaxDiscClassifier(), CHINESE * 2, [0] * 6, with_pairs=True)
    assert {"酒", "店", "酒 店"} <= set(documents.wide_vectorizer.terms_)
    assert X.shape[1] < documents.wide.shape[1]
