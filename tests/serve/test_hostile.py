"""Clients that break the rules of HTTP or hold on to connections: what they are told; others are served."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import sys
import threading
import time

import h11
import httpx
import pytest

from maxdisc.serve.strict_http import StrictConnection

PLACES = 24
BODY = b'{"texts": ["orbit"]}'
POST = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
GOOD = POST + LENGTH + b"\r\n" + BODY
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
# Follows each request: answered where the connection goes on, and never where it must not.
LAST = GET + b"Connection: close\r\n\r\n"


def get(target, version=b"1.1"):
    return b"GET " + target + b" HTTP/" + version + b"\r\nHost: localhost\r\n\r\n"


def post(*headers, body=BODY):
    return POST + b"".join(header + b"\r\n" for header in headers) + b"\r\n" + body


def chunked(chunks):
    return POST + CHUNKED + b"\r\n" + chunks


# Requests whose connection goes on, with the statuses of their answers.
ANSWERED = {
    "a body with its length": (GOOD, [200]),
    "a body in chunks": (chunked(CHUNKS), [200]),
    "chunks with extensions and trailers": (
        chunked(CHUNKS.replace(b"\r\n{", b";a=b\r\n{").replace(b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n")),
        [200],
    ),
    "chunked in capitals": (POST + b"TRANSFER-ENCODING: Chunked\r\n\r\n" + CHUNKS, [200]),
    "one length twice": (post(LENGTH.strip(), LENGTH.strip()), [200]),
    "one length in a list": (post(LENGTH.strip() + b", %d" % len(BODY)), [200]),
    "a body that nobody asked for": (GET + b"Content-Length: 5\r\n\r\nhello", [200]),
    "a body for no path": (GOOD.replace(b"/predict", b"/nothing"), [404]),
    "pipelined": (get(b"/healthz") * 3 + GOOD + get(b"/nothing") + GOOD, [200] * 4 + [404, 200]),
    "an empty line before": (b"\r\n" + get(b"/healthz"), [200]),
    "an empty line after a body": (GOOD + b"\r\n" + GOOD, [200, 200]),
    "absolute form": (get(b"http://localhost/healthz"), [200]),
    "absolute form without a path": (get(b"http://localhost?x=1"), [200]),
    "absolute form of another host": (get(b"http://evil.example/model"), [421]),
    "another host": (get(b"/model").replace(b"localhost", b"evil.example"), [421]),
    "an empty host": (get(b"/model").replace(b" localhost", b""), [421]),
    "a version to come": (get(b"/healthz", b"1.9"), [200]),
    "a method in small letters": (get(b"/healthz").replace(b"GET", b"get"), [405]),
    "a long method": (get(b"/healthz").replace(b"GET", b"G" * 5000), [405]),
    "the whole server": (get(b"*").replace(b"GET", b"OPTIONS"), [404]),
    "two slashes": (get(b"//healthz"), [404]),
    "a fragment": (get(b"/healthz#x"), [404]),
    "a long target": (get(b"/" + b"a" * 10_000), [404]),
    **{
        f"escapes {target.decode()[:20]}": (get(target), [404])
        for target in (
            *(b"/%", b"/%z", b"/%zz", b"/%ff", b"/%00", b"/%c0%ae", b"/%ed%a0%80", b"/%0d%0aX:%20y"),
            *(b"/static/%00", b"/static/%ff", b"/static/%2e%2e/app.py", b"/static/..%2fapp.py"),
            *(b"/static/..", b"/static/" + b"a/" * 3000),
        )
    },
    "escapes in a query": (get(b"/ranking?search=%zz%ff%00&limit=1"), [200]),
    "an upgrade to websockets": (GET + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", [200]),
    "an upgrade to HTTP/2": (GET + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", [200]),
    "many headers": (GET + b"X: y\r\n" * 90 + b"\r\n", [200]),
    "bytes beyond ASCII in a header": (GET + b"X: \xff\xfe\x80\r\n\r\n", [200]),
    "keys that occur twice": (
        post(b"Content-Length: 42", body=b'{"texts": ["orbit"], "texts": ["goalies"]}'),
        [422],
    ),
}

# Requests after which nothing may be read from the connection any more.
CLOSED = {
    "length and chunks": (post(LENGTH.strip(), CHUNKED.strip(), body=CHUNKS), [400]),
    "chunks and length": (post(CHUNKED.strip(), LENGTH.strip(), body=CHUNKS), [400]),
    "length 0 and chunks, a request in the body": (
        post(b"Content-Length: 0", CHUNKED.strip(), body=b"0\r\n\r\n" + get(b"/healthz")),
        [400],
    ),
    "two lengths": (post(LENGTH.strip(), b"Content-Length: 0", body=get(b"/healthz")), [400]),
    "two lengths in a list": (post(b"Content-Length: 20, 0"), [400]),
    "no coding but chunks": (post(b"Transfer-Encoding: identity", body=CHUNKS), [400]),
    "chunks twice": (post(CHUNKED.strip(), CHUNKED.strip(), body=CHUNKS), [400]),
    "chunks in HTTP/1.0": (post(CHUNKED.strip(), body=CHUNKS).replace(b"HTTP/1.1", b"HTTP/1.0"), [400]),
    **{
        f"a length of {length!r}": (post(b"Content-Length: " + length), [400])
        for length in (b"", b"+20", b"-1", b"0x14", b"20 20", b"2_0", b"20.0", b"\xb2", b"9" * 30)
    },
    **{
        f"a coding of {coding!r}": (post(b"Transfer-Encoding" + coding, body=CHUNKS), [400])
        for coding in (
            *(b" : chunked", b"\t: chunked", b": xchunked", b": chunked;q=1", b": chunked\x01"),
            *(b": \x0bchunked", b": gzip, chunked", b": chunked, chunked", b':"chunked"'),
            *(b":\r\n chunked", b": chunked\r\n x", b":"),
        )
    },
    "a length larger than any body": (post(b"Content-Length: " + b"9" * 19), [413]),
    **{
        f"a chunk size of {size!r}": (chunked(size + b"\r\n" + BODY + b"\r\n0\r\n\r\n"), [400])
        for size in (
            *(b"zz", b"-1", b"+14", b"0x14", b"14 14", b" 14", b"", b"f" * 21, b"14\n", b"14;a\nb", b";a"),
        )
    },
    "a chunk size that ends with LF": (chunked(b"14\n" + BODY + b"\r\n0\r\n\r\n"), [400]),
    "a chunk longer than its size": (chunked(b"13\r\n" + BODY + b"\r\n0\r\n\r\n"), [400]),
    "a chunk that ends with LF": (chunked(b"14\r\n" + BODY + b"\n0\r\n\r\n"), [400]),
    "trailers that are none": (chunked(b"14\r\n" + BODY + b"\r\n0\r\nX y\r\n\r\n"), [400]),
    "a chunk that is no HTTP, for no path": (
        chunked(b"14\r\n" + BODY + b"\r\nzz\r\n").replace(b"/predict", b"/nothing"),
        # It may be answered before, or after, all of it is read.
        None,
    ),
    "a folded header": (GET + b"X: y\r\n z\r\n\r\n", [400]),
    "a folded first header": (get(b"/healthz").replace(b"Host", b" Host"), [400]),
    "LF alone": (get(b"/healthz").replace(b"\r\n", b"\n"), [400]),
    "LF alone in a header": (GET + b"X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]),
    "LF alone after the head": (GET + b"X: y\r\n\n", [400]),
    "CR alone": (get(b"/healthz").replace(b"\r\n", b"\r"), [400]),
    "CR alone in a header": (GET + b"X: y\rTransfer-Encoding: chunked\r\n\r\n", [400]),
    "CR twice": (get(b"/healthz").replace(b"\r\n", b"\r\r\n"), [400]),
    "NUL in a header": (GET + b"X: a\0b\r\n\r\n", [400]),
    "NUL in a name": (GET + b"X\0: y\r\n\r\n", [400]),
    "NUL in a target": (get(b"/health\0z"), [400]),
    "bytes beyond ASCII in a target": (get(b"/\xff"), [400]),
    "bytes beyond ASCII in a name": (GET + b"\xc3\xa9: y\r\n\r\n", [400]),
    "a space before a colon": (GET + b"X : y\r\n\r\n", [400]),
    "a header without a colon": (GET + b"X\r\n\r\n", [400]),
    "a header without a name": (GET + b": y\r\n\r\n", [400]),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", [400]),
    "two hosts": (GET + b"Host: evil.example\r\n\r\n", [400]),
    "no version": (b"GET /healthz\r\n\r\n", [400]),
    **{
        f"version {version.decode()}": (get(b"/healthz", version), [400])
        for version in (b"0.9", b"2.0", b"9.9", b"1", b"11.1", b"1.10", b"-1.1", b"1.x", b"")
    },
    "http in small letters": (get(b"/healthz").replace(b"HTTP", b"http"), [400]),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", [400]),
    "two spaces": (get(b" /healthz"), [400]),
    "tabs for spaces": (get(b"/healthz").replace(b" /healthz ", b"\t/healthz\t"), [400]),
    "a space at the end": (get(b"/healthz").replace(b"1.1", b"1.1 "), [400]),
    "a target that is no path": (get(b"healthz"), [400]),
    "another scheme": (get(b"ftp://localhost/healthz"), [400]),
    "a proxy": (get(b"localhost:80").replace(b"GET", b"CONNECT"), [400]),
    "a target of 30,000 bytes": (get(b"/" + b"a" * 30_000), [431]),
    "a header of 30,000 bytes": (GET + b"X: " + b"a" * 30_000 + b"\r\n\r\n", [431]),
    "5,000 headers": (GET + b"X: y\r\n" * 5000 + b"\r\n", [431]),
    "500 small headers": (GET + b"X: y\r\n" * 500 + b"\r\n", [431]),
    "a line without an end": (b"G" * 100_000, [431]),
    "no HTTP after a good request": (get(b"/healthz") + b"\x01\x02\r\n\r\n", [200, 400]),
    "a request after the last one": (GET + b"Connection: close\r\n\r\n" + get(b"/nothing"), [200]),
    "HTTP/1.0": (get(b"/healthz", b"1.0"), [200]),
    "HTTP/1.0 in absolute form": (b"GET http://localhost/healthz HTTP/1.0\r\n\r\n", [200]),
    "a body after 100 Continue": (post(LENGTH.strip(), b"Expect: 100-continue"), [100, 200]),
    # Whether the client sends the body all the same, nobody can know.
    "no body after another answer than 100 Continue": (
        POST.replace(b"/predict", b"/nothing") + LENGTH + b"Expect: 100-continue\r\n\r\n",
        [404],
    ),
}


@pytest.fixture(scope="module")
def service(serving_all, models):
    """A service with few places and little patience, for all tests here."""
    options = ("--max-seconds", "2", "--max-idle", "1", "--max-connections", PLACES)
    with serving_all(models / "text.maxdisc", *options) as service:
        yield service
        assert not service.events("defect")
        assert service.end() == 0


def answers(service, data, ended=False):
    """The status of each answer to some bytes, until the connection is closed."""
    with service.connected() as connection:
        # Whoever is refused may be cut off before all is sent.
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
            if ended:
                connection.shutdown(socket.SHUT_WR)
        return statuses_of(received(connection))


def received(connection):
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            data += piece
    return data


def statuses_of(data):
    """The statuses of answers; all of them whole, and refusals with one line."""
    stream, statuses = io.BytesIO(data), []
    while line := stream.readline():
        version, status = line.split()[:2]
        assert version == b"HTTP/1.1"
        statuses.append(int(status))
        headers = http.client.parse_headers(stream)
        body = stream.read(int(headers["Content-Length"] or 0))
        if statuses[-1] >= 400:
            told = json.loads(body)["error"]
            assert 0 < len(told) <= 300
            assert "\n" not in told
            assert "localhost" not in told, "what was sent is not sent back"
    return statuses


def status_of(connection):
    """The status of one answer, whose connection may go on."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer.status


def counted(service, why):
    text = httpx.get(f"{service.url}/metrics").text
    name = f'maxdisc_connections_closed_total{{why="{why}"}} '
    return sum(float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name))


@pytest.mark.parametrize("name", ANSWERED)
def test_a_request_that_is_understood_is_answered_and_so_is_the_next(service, name):
    data, statuses = ANSWERED[name]
    assert answers(service, data + LAST) == [*statuses, 200]


@pytest.mark.parametrize("name", CLOSED)
def test_a_request_that_could_be_taken_for_another_is_the_last_of_its_connection(service, name):
    data, statuses = CLOSED[name]
    said = answers(service, data + LAST)
    assert said == statuses if statuses else said in ([400], [404])


def test_what_is_no_http_is_counted(service):
    before = counted(service, "malformed")
    answers(service, b"\r\n\r\n\r\n")
    assert counted(service, "malformed") == before + 1


@pytest.mark.parametrize("name", [*ANSWERED, *CLOSED])
def test_a_request_is_the_same_however_its_bytes_arrive(name):
    """The reader alone, against itself: all at once, and byte by byte."""
    data = (ANSWERED | CLOSED)[name][0].removeprefix(b"\r\n")

    def read(pieces):
        reader, events = StrictConnection(), []
        try:
            for piece in pieces:
                reader.receive_data(piece)
                while (event := reader.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                    if isinstance(event, h11.Request):
                        events.append((event.method, event.target, list(event.headers), event.http_version))
                    elif isinstance(event, h11.Data):
                        events.append(bytes(event.data))
        except h11.RemoteProtocolError:
            events.append("refused")
        heads = [event for event in events if not isinstance(event, bytes)]
        return heads, b"".join(event for event in events if isinstance(event, bytes))

    assert read([data]) == read([data[at : at + 1] for at in range(len(data))])


@pytest.mark.parametrize(
    ("data", "statuses"),
    [
        (GOOD, [200]),
        (GOOD * 3, [200] * 3),
        (GOOD.replace(b"/predict", b"/explain").replace(b'"texts": ["orbit"]', b'"text":    "orbit"'), [200]),
        (GOOD[:-1], [400]),
        (GOOD + GOOD[:-5], [200, 400]),
        (chunked(CHUNKS[:-2]), [400]),
        (chunked(CHUNKS[:9]), [400]),
        (GET, [400]),
        (GOOD + GET, [200]),
        (b"", []),
    ],
)
def test_whoever_ends_its_side_is_answered_what_it_asked_in_full(service, data, statuses):
    said = answers(service, data, ended=True)
    # A head that was cut off after a request may be told so, or not.
    assert said in (statuses, [*statuses, 400])


def test_a_body_waits_for_100_continue(service):
    with service.connected() as connection:
        connection.sendall(POST + LENGTH + b"Expect: 100-continue\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(BODY)
        assert statuses_of(received(connection)) == [200]


def answered_and_kept(service):
    """A connection on which a request was answered, and nothing more is asked."""
    connection = service.connected()
    connection.sendall(GET + b"\r\n")
    assert status_of(connection) == 200
    return connection


def assert_served(service, n=3):
    for _ in range(n):
        assert answers(service, GOOD + LAST) == [200, 200]


@pytest.mark.parametrize(
    "begin",
    [
        answered_and_kept,
        lambda service: service.connected(),
        lambda service: sent(service, GET[:10]),
        lambda service: sent(service, GOOD[:-1]),
        lambda service: sent(service, chunked(CHUNKS[:-1])),
    ],
    ids=["kept", "silent", "half a head", "half a body", "half the chunks"],
)
def test_those_who_ask_for_nothing_keep_nobody_out(service, begin):
    before = counted(service, "room")
    with contextlib.ExitStack() as held:
        for _ in range(2 * PLACES):
            held.enter_context(begin(service))
        assert_served(service)
        with service.connected() as other:
            other.sendall(get(b"/readyz"))
            assert status_of(other) == 200
    # Those who were answered while places ran short were told that it was the last answer.
    assert begin is answered_and_kept or counted(service, "room") > before


def sent(service, data):
    connection = service.connected()
    connection.sendall(data)
    return connection


def test_whoever_has_begun_something_is_not_closed_for_idle_ones(service):
    with contextlib.ExitStack() as held, sent(service, GOOD[:-1]) as half:
        for _ in range(3 * PLACES):
            held.enter_context(service.connected())
        assert_served(service)
        half.sendall(GOOD[-1:])
        assert status_of(half) == 200


def test_whoever_is_about_to_ask_is_not_closed_for_those_who_never_end(service):
    with contextlib.ExitStack() as held:
        for _ in range(2 * PLACES):
            held.enter_context(sent(service, GOOD[:-1]))
        new = held.enter_context(service.connected())
        for _ in range(3):
            held.enter_context(sent(service, GOOD[:-1]))
        new.sendall(GOOD)
        assert status_of(new) == 200


def test_a_connection_without_a_request_is_closed_soon_and_told_nothing(service):
    with answered_and_kept(service) as idle:
        idle.settimeout(30)
        assert received(idle) == b""


def test_where_places_run_short_an_answer_is_the_last_of_its_connection(service):
    with contextlib.ExitStack() as held:
        for _ in range(PLACES):
            held.enter_context(service.connected())
        assert httpx.get(f"{service.url}/healthz").headers["connection"] == "close"


# May open few files, and is never done with a prediction, whose connection is thus never idle.
NARROW = """
import resource
import time
import maxdisc.serve.answers as answers
from maxdisc.cli import main
answers.predicted = lambda *given: time.sleep(600)
resource.setrlimit(resource.RLIMIT_NOFILE, (76, 76))
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit on files")
def test_readiness_is_told_where_all_are_at_work_and_files_are_few(serving, models):
    options = ("--workers", "4", "--max-seconds", "60", "--drain", "0", "--quiet")
    long = json.dumps({"texts": ["orbit " * 500]}).encode()
    with (
        serving(models / "text.maxdisc", *options, program=NARROW) as service,
        contextlib.ExitStack() as held,
    ):
        n_places = service.wait_for("fewer connections")["connections"]
        assert n_places == 4
        for _ in range(100):
            held.enter_context(answered_and_kept(service))
        for _ in range(n_places):
            held.enter_context(sent(service, POST + b"Content-Length: %d\r\n\r\n" % len(long) + long))
        deadline = time.monotonic() + 60
        while (busy := httpx.get(f"{service.url}/model")).status_code != 503:
            assert time.monotonic() < deadline
        assert "too many connections" in busy.json()["error"]
        assert int(busy.headers["retry-after"]) >= 1
        # The spare places are not for those who ask for nothing either.
        for _ in range(20):
            held.enter_context(service.connected())
        ready = httpx.get(f"{service.url}/readyz")
        assert ready.status_code == 200
        assert ready.headers["connection"] == "close"
        answers(service, b"no HTTP\r\n\r\n")
        assert not service.events("server"), "a quiet log has no line for each request"
        service.process.kill()


def test_honest_clients_are_answered_whatever_others_do(service):
    """Every request is answered, over connections that are kept or new, without a second try."""
    stop, wrong = threading.Event(), []
    attacks = [data for data, _ in (ANSWERED | CLOSED).values()]

    def attack(number):
        for data in [*attacks[number:], *attacks[:number]] * 100:
            if stop.is_set():
                break
            with contextlib.suppress(OSError), service.connected() as connection:
                connection.sendall(data)
                connection.recv(1)

    def hold():
        while not stop.is_set():
            with contextlib.ExitStack() as held, contextlib.suppress(OSError):
                for n in range(2 * PLACES):
                    held.enter_context(sent(service, GOOD[: -n % 3 * len(GOOD) // 2]))
                stop.wait(0.3)

    def dribble():
        while not stop.is_set():
            with contextlib.suppress(OSError), service.connected() as connection:
                for byte in GOOD[:-1]:
                    connection.sendall(bytes([byte]))
                    if stop.wait(0.01):
                        break

    def ask(number):
        with httpx.Client(base_url=service.url, timeout=60) as client:
            for n in range(60):
                # Every third time on a connection of its own.
                headers = {"Connection": "close"} if (n + number) % 3 == 0 else {}
                try:
                    said = client.post("/predict", json={"texts": ["orbit"]}, headers=headers)
                    if said.status_code != 200:
                        wrong.append((said.status_code, said.text))
                except httpx.HTTPError as error:
                    wrong.append(repr(error))

    hostile = [threading.Thread(target=attack, args=(n * len(attacks) // 2,)) for n in range(2)]
    hostile += [threading.Thread(target=target) for target in (hold, hold, dribble, dribble)]
    honest = [threading.Thread(target=ask, args=(n,)) for n in range(3)]
    for thread in hostile:
        thread.start()
    time.sleep(0.5)
    for thread in honest:
        thread.start()
    for thread in honest:
        thread.join()
    stop.set()
    for thread in hostile:
        thread.join()
    assert not wrong
    assert_served(service)
