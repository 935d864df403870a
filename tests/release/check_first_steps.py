"""Follow the README and the tutorial from nothing: their own install lines, in empty environments.

``python tests/release/check_first_steps.py``. Compiled code is kept in one folder for both.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INSTALL = re.compile(r"^python -m pip install .*$", re.M)
#: A page, and the tests that run what it shows.
PAGES = (
    ("README.md", "tests/test_readme.py", "python_example or three_commands"),
    ("docs/tutorial.md", "tests/docs/test_tutorial.py", "says_what_is_printed"),
)


def copy_sources(folder: Path) -> Path:
    """Copy the files that git tracks, as a clone has them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def follow(page: str, test: str, chosen: str, place: Path) -> None:
    """Run the install line of a page in an empty environment, and there what the page shows."""
    clone, own = copy_sources(place / "clone"), place / "venv"
    line = INSTALL.search((clone / page).read_text(encoding="utf-8"))
    assert line, f"{page} has no line that installs maxdisc"
    print(f"first steps of {page}: {line[0]}", flush=True)
    venv.create(own, with_pip=True)
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["PATH"] = os.pathsep.join([str(own / "bin"), environment["PATH"]])
    environment |= {"PIP_QUIET": "1", "NUMBA_CACHE_DIR": str(place.parent / "compiled")}

    def run(*command: str) -> None:
        subprocess.run(command, cwd=clone, env=environment, check=True)

    run("sh", "-ec", line[0])
    run("python", "-m", "pip", "install", "pytest")
    # What is installed is run, not the sources beside it.
    shutil.rmtree(clone / "src")
    options = ("--quiet", "--noconftest", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={clone}")
    run("python", "-m", "pytest", *options, test, "-k", chosen)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, page in enumerate(PAGES):
            follow(*page, Path(folder) / str(number))
    print("first steps: all is well")


if __name__ == "__main__":
    sys.exit(main())
