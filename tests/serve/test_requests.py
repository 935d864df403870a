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


def test_loopback_is_this_machine_alone():
    hosts = ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")
    assert [is_loopback(host) for host in hosts] == [True, True, True, False, False]
    names = (b"localhost:80", b"[::1]:80", b"evil.example")
    assert [is_for_loopback([(b"host", name)]) for name in names] == [True, True, False]


def test_a_message_has_one_line():
    assert one_line("no such\n column") == "no such column"
