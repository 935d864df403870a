"""Build what would be released, look into it, install it into an empty environment, and use it.

``make release-check``; ``--extras`` says what is installed with it, and ``--keep DIR`` where the files stay.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Beside the package, what a source archive must have so that it can be built, tested and cited.
IN_SOURCES = (
    *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md"),
    *("constraints/serve.txt", "docs/index.md", "pyproject.toml", "tests/release/smoke.py"),
)


def package_files(root=ROOT):
    """Every file of the package, as a wheel names it."""
    source = root / "src"
    files = (path for path in (source / "maxdisc").rglob("*") if path.is_file())
    return {path.relative_to(source).as_posix() for path in files if "__pycache__" not in path.parts}


def built(folder):
    """The source archive and the wheel, made from it in an environment of its own."""
    step("build")
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (archive,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return archive, wheel


def check_contents(archive, wheel):
    """Nothing is missing, nothing is there that should not be."""
    step("contents")
    with zipfile.ZipFile(wheel) as file:
        packed = {name for name in file.namelist() if ".dist-info/" not in name}
        told = [file.read(name) for name in file.namelist() if name.endswith(".dist-info/licenses/LICENSE")]
    assert packed == package_files(), f"the wheel differs from src: {sorted(packed ^ package_files())}"
    assert told == [(ROOT / "LICENSE").read_bytes()], "the wheel has not the license"
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    wanted = {*IN_SOURCES, *(f"src/{name}" for name in package_files())}
    assert wanted <= names, f"the source archive lacks {sorted(wanted - names)}"


def check_metadata(archive, wheel):
    """What an index will ask."""
    step("twine check")
    command = [sys.executable, "-m", "twine", "check", "--strict", str(archive), str(wheel)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def check_installed(wheel, extras, folder):
    """The wheel in an empty environment, used."""
    step(f"install {wheel.name}[{extras}] into an empty environment")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--no-compile"]
    subprocess.run([*install, "--upgrade", "pip"], check=True)
    subprocess.run([*install, f"{wheel}[{extras}]"], check=True)
    step("smoke test")
    place = folder / "elsewhere"
    place.mkdir()
    shutil.copy(ROOT / "tests" / "release" / "smoke.py", place)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([str(python), "smoke.py", version()], check=True, cwd=place, env=alone)


def version():
    """That of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def step(what):
    """Say what is done next."""
    print(f"release: {what}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extras", default="all")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        archive, wheel = built(place / "dist")
        check_contents(archive, wheel)
        check_metadata(archive, wheel)
        check_installed(wheel, given.extras, place)
        if given.keep is not None:
            shutil.copytree(place / "dist", given.keep, dirs_exist_ok=True)
    step("all is well")


if __name__ == "__main__":
    main()
