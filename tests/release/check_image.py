"""Take the steps of ``deploy/Dockerfile`` in an empty environment, and ask the service that they end in.

``python tests/release/check_image.py``: there need be no Docker. As root, the service runs as another user.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from contextlib import closing
from pathlib import Path
from socket import socket
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[2]
USER = 10001
TOKEN = "of this check alone"
MODEL = """
from maxdisc import MaxDiscClassifier, save
from maxdisc.datasets import load_docstrings
documents = load_docstrings("package")
model = MaxDiscClassifier(evidence="calibrated").fit(documents.data[::30], documents.target[::30])
save(model, "model.maxdisc")
"""


def read_instructions() -> list[tuple[str, str]]:
    """Return the instructions of the last stage, in order, each on one line."""
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in re.sub(r"\\\n", " ", text).splitlines() if line and not line.startswith("#")]
    found = [tuple(line.split(maxsplit=1)) for line in lines]
    last = max(place for place, (name, _) in enumerate(found) if name == "FROM")
    return [(name, rest) for name, rest in found[last + 1 :]]  # type: ignore[misc]


def free_port() -> int:
    with closing(socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def files_of(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.stat().st_size) for path in folder.rglob("*") if path.is_file()}


def main() -> None:
    instructions = read_instructions()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "wheels").mkdir()
        wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
        subprocess.run([*wheel, str(place / "wheels"), str(ROOT)], check=True)
        shutil.copy(ROOT / "constraints" / "serve.txt", place)
        venv.create(place / "venv", with_pip=True)
        compiled = place / "compiled"
        compiled.mkdir()
        # Where the image has them, and where they are here.
        moved = {
            "/tmp/serve.txt": str(place / "serve.txt"),
            "/tmp/wheels": str(place / "wheels"),
            "/var/cache/maxdisc": str(compiled),
            "/usr/local/share/maxdisc": str(ROOT / "deploy"),
        }
        environment = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environment |= {"PATH": f"{place / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}", "PIP_QUIET": "1"}
        for kind, text in instructions:
            for before, here in moved.items():
                text = text.replace(before, here)
            if kind == "ENV":
                environment |= dict(part.split("=", 1) for part in shlex.split(text))
            if kind == "RUN":
                steps = [s.strip() for s in text.split("&&")]
                # Users and folders of the image are not made here.
                for step in (s for s in steps if not s.startswith(("useradd", "mkdir", "chown", "rm "))):
                    print(f"image: {step}", flush=True)
                    subprocess.run(["sh", "-ec", step], check=True, cwd=place, env=environment)
        subprocess.run(["python", "-c", MODEL], check=True, cwd=place, env=environment)
        ask_service(place, environment, dict(instructions))
    print("image: all is well")


def ask_service(place: Path, environment: dict[str, str], last: dict[str, str]) -> None:
    """Start the service as the image does, and check health, answers, and that nothing is compiled anew."""
    port, user = free_port(), USER if os.name == "posix" and os.geteuid() == 0 else None
    command = json.loads(last["ENTRYPOINT"])
    command[command.index("8000")] = str(port)
    before = files_of(place / "compiled")
    assert before, "the warm-up left no compiled code"
    service = subprocess.Popen(
        [*command, str(place / "model.maxdisc")],
        cwd="/",
        env=environment | {"MAXDISC_TOKEN": TOKEN.replace(" ", "-")},
        user=user,
    )
    try:
        health = json.loads(last["HEALTHCHECK"].partition("CMD")[2])
        health[-1] = health[-1].replace("8000", str(port))
        # Long enough for a busy machine.
        for _ in range(360):
            done = subprocess.run(health, env=environment, check=False, stderr=subprocess.DEVNULL)
            if done.returncode == 0 or service.poll() is not None:
                break
            time.sleep(0.5)
        assert done.returncode == 0, "the health check of the image failed"
        texts = {"texts": ["the Hessian of a sparse matrix"]}
        headers = {"Authorization": f"Bearer {TOKEN.replace(' ', '-')}", "Content-Type": "application/json"}
        request = Request(f"http://127.0.0.1:{port}/predict", json.dumps(texts).encode(), headers)
        answer = json.loads(urlopen(request, timeout=30).read())
        print(f"image: {str(answer)[:100]}")
    finally:
        service.terminate()
        code = service.wait(30)
    assert code == 0, f"the service ended with exit code {code}"
    assert files_of(place / "compiled") == before, "the service compiled what the image should have"


if __name__ == "__main__":
    main()
