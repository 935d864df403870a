"""Bodies, hosts and refusals of requests."""

from __future__ import annotations

import pytest

from maxdisc.serve.bodies import PredictBody, parsed
from maxdisc.serve.hosts import is_for_loopback, is_loopback
from maxdisc.serve.refusals import RefusedError, one_line


def test_a_body_is_parsed_or_refused_with_the_place():
    assert parsed(PredictBody, b'{"texts": ["a document"]}').top == 3
    with pytest.raises(RefusedError, match=r"^texts: input should be a valid array\.$"):
        parsed(PredictBody, b'{"texts": "a document"}')


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b'{"texts": ["a"], "texts": ["b"]}', "texts"),
        (b'{"top": 1, "texts": ["a"], "t\\u006fp": 2}', "top"),
        (b'{"rows": [{"age": 1}, {"ward": "n", "age": 1, "age": 1}]}', "age"),
        (b'{"rows": [{"age": {"": 1, "": 2}}]}', ""),
    ],
)
def test_a_key_that_occurs_twice_is_refused(body, key):
    with pytest.raises(RefusedError, match=f"^the key '{key}' occurs twice in one object: ") as refused:
        parsed(PredictBody, body)
    assert refused.value.status == 422


def test_a_key_may_occur_in_every_object():
    body = b'{"rows": [{"age": 1, "rows": {"age": 2}}, {"age": 1}]}'
    assert parsed(PredictBody, body).rows == [{"age": 1, "rows": {"age": 2}}, {"age": 1}]


def test_loopback_is_this_machine_alone():
    hosts = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")
    assert [is_loopback(host) for host in hosts] == [True, True, True, False, False]
    names = (b"localhost:80", b"[::1]:80", b"evil.example")
    assert [is_for_loopback([(b"host", name)]) for name in names] == [True, True, False]


def test_a_message_has_one_line():
    assert one_line("no such\n column") == "no such column"
