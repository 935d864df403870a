"""Real processes: how a service starts, ends, reloads, is killed, and whom it refuses."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from maxdisc import load
from maxdisc.numerics.installation import pip_line

JSON = {"Content-Type": "application/json"}


def head(length, path="/predict"):
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


def received(connection):
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def test_it_starts_answers_and_ends_when_told(serving, models):
    with serving(models / "text.maxdisc", f"numbers={models / 'table.maxdisc'}", "--drain", "0.3") as service:
        with httpx.Client(base_url=service.url) as client:
            assert client.get("/healthz").json() == {"status": "ok"}
            assert client.get("/readyz").json() == {"status": "ready", "models": ["text", "numbers"]}
            said = client.post("/predict", json={"texts": ["orbit"]}).json()["predictions"][0]
            assert said["label"] == load(models / "text.maxdisc").predict(["orbit"])[0]
            assert client.get("/model?model=numbers").json()["name"] == "numbers"
        assert service.end() == 0
        events = [line["event"] for line in service.log()]
        # The server below may say in between what it waits for.
        assert events.index("ending") > events.index("ready")
        assert events[-1] == "ended"


def test_a_request_in_flight_is_finished_and_readiness_goes_first(serving, models):
    body = json.dumps({"texts": ["orbit"]}).encode()
    with serving(models / "text.maxdisc", "--drain", "2") as service, service.connected() as slow:
        slow.sendall(head(len(body)) + body[:5])
        with httpx.Client(base_url=service.url) as client:
            assert client.get("/readyz").status_code == 200
            service.process.send_signal(signal.SIGTERM)
            service.wait_for("ending")
            waiting = client.get("/readyz")
            assert waiting.status_code == 503
            assert int(waiting.headers["retry-after"]) >= 1
            # Whoever has not heard of it yet is served.
            assert client.post("/predict", json={"texts": ["puck"]}).status_code == 200
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:  # until it no longer listens
            try:
                service.connected().close()
                time.sleep(0.05)
            except OSError:
                break
        assert service.process.poll() is None
        slow.sendall(body[5:])
        answer = received(slow)
        assert answer.startswith(b"HTTP/1.1 200")
        assert b'"predictions"' in answer
        assert service.process.wait(60) == 0


def test_killed_and_started_again_under_load(serving, models, tmp_path):
    path = shutil.copy(models / "text.maxdisc", tmp_path / "mine.maxdisc")
    content = path.read_bytes()
    # What readiness said, and what the prediction asked for next came to: a status, or the name of an error.
    seen: list[tuple[object, object]] = []
    stop = threading.Event()

    def asked(client, method, where, **more):
        try:
            return client.request(method, where, **more).status_code
        except httpx.TransportError as error:
            time.sleep(0.02)
            return type(error).__name__

    def load_it(url):
        with httpx.Client(base_url=url, timeout=60) as client:
            while not stop.is_set():
                ready = asked(client, "GET", "/readyz")
                seen.append((ready, asked(client, "POST", "/predict", json={"texts": ["orbit"] * 8})))

    def wait_until(enough):
        deadline = time.monotonic() + 60
        while not enough() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert enough(), seen[-10:]

    with serving(path) as service:
        threads = [threading.Thread(target=load_it, args=(service.url,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: len(seen) >= 30)
            assert set(seen) == {(200, 200)}
            service.process.kill()
            service.process.wait()
            wait_until(lambda: any(isinstance(said, str) for _, said in seen))
            # The load goes on.
            with serving(path, "--port", service.port):
                up = len(seen)
                wait_until(lambda: len(seen) >= up + 30)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    # Whoever asks too early is told so; all else that is not an answer is an error of the connection.
    assert {said for _, said in seen if isinstance(said, int)} <= {200, 503}
    # Ready means that the next request is answered, unless the process is gone by then.
    assert not any(ready == 200 and said == 503 for ready, said in seen)
    assert all(said == 200 for _, said in seen[up + len(threads) :])
    assert path.read_bytes() == content
    assert sorted(one.name for one in tmp_path.iterdir() if "log" not in one.name) == ["mine.maxdisc"]


def test_a_replaced_file_is_served_and_a_broken_one_is_not(serving, models, tmp_path):
    path = tmp_path / "mine.maxdisc"
    shutil.copy(models / "text.maxdisc", path)
    with (
        serving(path, "--reload", "0.05") as service,
        httpx.Client(base_url=service.url, timeout=60) as client,
    ):
        first = client.get("/model").json()
        assert first["kind"] == "text"
        # In place, as cp does, and cut off: the model in memory is its own.
        path.write_bytes(path.read_bytes()[:1000])
        told = service.wait_for("reload failed")
        assert told["model"] == "mine"
        assert told["serving"] == first["file"]["checksum"]
        assert client.post("/predict", json={"texts": ["orbit"]}).status_code == 200
        assert 'maxdisc_reloads_total{ended="failed",model="mine"} 1.0' in client.get("/metrics").text
        new = tmp_path / "new.maxdisc"
        shutil.copy(models / "table.maxdisc", new)
        new.replace(path)
        service.wait_for("loaded", 2)
        assert client.get("/model").json()["kind"] == "table"
        assert client.post("/predict", json={"rows": [{"age": 60}]}).status_code == 200
        path.unlink()
        service.wait_for("reload failed", 2)
        assert client.post("/predict", json={"rows": [{"age": 60}]}).status_code == 200
        assert len(service.events("reload failed")) == 2


def test_no_request_is_lost_while_files_are_replaced(serving, models, tmp_path):
    path = tmp_path / "mine.maxdisc"
    shutil.copy(models / "text.maxdisc", path)
    with (
        serving(path, "--reload", "0.05", "--quiet") as service,
        httpx.Client(base_url=service.url, timeout=60) as client,
    ):
        reloads = 1
        for name in ("grams", "text", "grams"):
            new = tmp_path / "new.maxdisc"
            shutil.copy(models / f"{name}.maxdisc", new)
            new.replace(path)
            reloads += 1
            while len(service.events("loaded")) < reloads:
                assert client.post("/predict", json={"texts": ["orbit"]}).status_code == 200
        assert not service.events("request")


def test_a_token_is_asked_for(serving, models):
    with serving(models / "text.maxdisc", MAXDISC_TOKEN="s3cret-t0ken") as service:
        with httpx.Client(base_url=service.url) as client:
            for path in ("/healthz", "/readyz"):
                assert client.get(path).status_code == 200
            assert client.get("/").status_code in (200, 404)
            assert client.get("/static/page.css").status_code in (200, 404)
            wrong = [
                "",
                "Bearer",
                "Bearer s3cret",
                "Bearer s3cret-t0kenx",
                "Basic s3cret-t0ken",
                "Bearer \xe9",
            ]
            for path in ("/model", "/metrics", "/openapi.json", "/nothing", "/predict"):
                for given in wrong:
                    refused = client.get(path, headers={"Authorization": given.encode("latin-1")})
                    assert refused.status_code == 401
                    assert refused.headers["www-authenticate"] == "Bearer"
            right = client.get("/model", headers={"Authorization": "Bearer s3cret-t0ken"})
            assert right.status_code == 200
        assert service.end() == 0
        assert "s3cret" not in service.log_path.read_text()


def test_names_of_others_do_not_lead_here(serving, models):
    """A page of another site may let its own name lead to this machine; its requests carry that name."""

    def answers(service, host):
        return httpx.get(f"{service.url}/model", headers={"Host": host})

    port = 8000
    with serving(models / "text.maxdisc") as service:
        for name in ("localhost", f"LOCALHOST:{port}", "127.0.0.1", f"127.8.9.1:{port}", f"[::1]:{port}"):
            assert answers(service, name).status_code == 200, name
        for name in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1.evil.example",
            "[2001:db8::1]",
            "0.0.0.0",
            "@",
        ):
            refused = answers(service, name)
            assert refused.status_code == 421, name
            assert "another host" in refused.json()["error"]
    with serving(models / "text.maxdisc", "--no-token") as service:
        assert answers(service, "models.example").status_code == 200


def test_slow_senders_are_not_waited_for(serving, models):
    with serving(models / "text.maxdisc", "--max-seconds", "0.5") as service:
        with service.connected() as nothing, service.connected() as half, service.connected() as dribble:
            half.sendall(b"GET /healthz HTTP/1.1\r\nHos")
            dribble.sendall(head(100) + b'{"te')
            for connection in (nothing, half, dribble):
                answer = received(connection)
                assert answer.startswith(b"HTTP/1.1 408"), answer
                assert b'{"error":' in answer
        # A second request on a connection that was good once.
        with service.connected() as again:
            again.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea")
            answer = received(again)
            assert answer.count(b"HTTP/1.1 200") == 1
            assert answer.count(b"HTTP/1.1 408") == 1
        with service.connected() as nonsense:
            nonsense.sendall(b"\x16\x03\x01nonsense\r\n\r\n")
            assert received(nonsense).startswith(b"HTTP/1.1 400")
        assert httpx.get(f"{service.url}/healthz").status_code == 200
        assert not service.events("defect")


def test_a_body_has_a_limit(serving, models):
    with serving(models / "text.maxdisc", "--max-bytes", "2000") as service:
        for length in (3000, 10**7, 10**12):
            with service.connected() as connection:
                connection.sendall(head(length))
                if length == 3000:
                    connection.sendall(b" " * length)
                    connection.settimeout(30)
                    answer = connection.recv(65536)
                else:
                    answer = received(connection)
                assert answer.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["missing.maxdisc"], "missing.maxdisc does not exist"),
        (["."], "is a folder"),
        (["{models}/text.maxdisc", "{models}/text.maxdisc"], "two models are called 'text'"),
        (["{models}/text.maxdisc", "--host", "0.0.0.0"], "set MAXDISC_TOKEN"),
        (["{models}/text.maxdisc", "--host", "192.0.2.1", "--no-token"], "cannot listen on 192.0.2.1"),
        (["{models}/broken.maxdisc", "--port", "0"], "this is not a model file"),
        (["=x"], "names no model file"),
        ([], "MODEL"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(environment, models, arguments, told):
    (models / "broken.maxdisc").write_bytes(b"broken" * 100)
    given = [argument.format(models=models) for argument in arguments]
    command = [sys.executable, "-m", "maxdisc", "serve", *given]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert told in lines[0].replace("\n", " ")


def test_a_port_that_others_have_is_told(environment, models):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "maxdisc",
            "serve",
            str(models / "text.maxdisc"),
            "--port",
            str(port),
        ]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 2
    assert done.stderr == (
        f"maxdisc: cannot listen on 127.0.0.1 port {port}: Address already in use: choose another port.\n"
    )


def test_without_the_extra_the_way_out_is_named(environment, models, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.modules['fastapi'] = None\n"  # what Python does for a module that is not there
    )
    path = f"{tmp_path}:{environment['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "maxdisc", "serve", str(models / "text.maxdisc")],
        capture_output=True,
        text=True,
        env={**environment, "PYTHONPATH": path},
        timeout=120,
    )
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].endswith(pip_line("serve"))


# A service that is never done with what it is asked for.
STUCK = """
import time
import maxdisc.serve.answers as answers
from maxdisc.cli import main
answers.predicted = lambda *given: time.sleep(600)
main()
"""


def test_it_ends_when_told_whatever_its_threads_do(serving, models):
    with serving(models / "text.maxdisc", "--max-seconds", "0.3", "--drain", "0", program=STUCK) as service:
        told = httpx.post(f"{service.url}/predict", json={"texts": ["orbit " * 500]}, timeout=60)
        assert told.status_code == 503
        assert service.end() == 0
        assert service.log()[-1]["event"] == "ended"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_who_does_not_read_is_not_waited_for(serving, models):
    with serving(models / "text.maxdisc", "--max-seconds", "1") as service:
        ask = b"GET /static/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            silent.settimeout(10)
            silent.connect(("127.0.0.1", service.port))
            # Until no more answers fit between the two: then a little of one lies with the service.
            # Where the machine is busy, a service that only takes its time looks stuck for a moment.
            before, now, still = -1, 0, 0
            with contextlib.suppress(ConnectionError):  # it may be closed by then
                while still < 25 or now < 50_000:
                    silent.sendall(ask)
                    time.sleep(0.02)
                    before, now = now, unsent(service.port, silent.getsockname()[1])
                    still = still + 1 if now == before else 0
            time.sleep(3)
            assert is_closed(silent)
        assert httpx.get(f"{service.url}/readyz").status_code == 200


def unsent(here, there):
    """The bytes that Linux has still to send from one port to another."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if (local[-4:], remote[-4:]) == (f"{here:04X}", f"{there:04X}"):
            return int(queues.partition(":")[0], 16)
    return 0


def is_closed(connection):
    """Whether there is an end to what comes."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True
