"""Draw ``page.png`` and ``report.png``: the page of the service, and the report of ``make demo``.

Run with ``python docs/pictures/page_picture.py``; needs the extras cli, plots and serve, playwright, and
Chromium. Both show a model of the docstrings that every machine has.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from maxdisc import MaxDiscClassifier, save
from maxdisc.cli.demo import FOLDS, docstring_task, write_report
from maxdisc.datasets import load_docstrings

HERE = Path(__file__).parent
TEXT = (
    "Solve a sparse linear system by the conjugate gradient method. The matrix must be symmetric and "
    "positive definite; a preconditioner may be given as a linear operator.\n\n"
    "Returns the solution and the number of iterations. An estimator that is fitted on the residuals "
    "predicts how many samples are needed."
)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"]


@contextmanager
def serving(model: Path) -> Iterator[str]:
    """The address of a service of that model, while it runs."""
    log = model.with_suffix(".log")
    with log.open("wb") as out:
        command = [sys.executable, "-m", "maxdisc", "serve", str(model), "--port", "0"]
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        while not (found := re.search(r'"listening".*"port": (\d+)', log.read_text())):
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.1)
        yield f"http://127.0.0.1:{found[1]}/"
    finally:
        process.terminate()
        process.wait()


def draw_page(browser: Browser, folder: Path) -> None:
    documents = load_docstrings()
    save(MaxDiscClassifier().fit(documents.data, documents.target), folder / "docstrings.maxdisc")
    with serving(folder / "docstrings.maxdisc") as address:
        page = browser.new_page(viewport={"width": 1200, "height": 1180}, color_scheme="light")
        page.goto(address)
        page.fill("#text", TEXT, timeout=120_000)
        page.locator("#words mark").first.wait_for(timeout=120_000)
        page.locator("#words mark.s4").first.hover()
        page.screenshot(path=HERE / "page.png")


def draw_report(browser: Browser, folder: Path) -> None:
    task = docstring_task()
    train, _ = next(FOLDS.split(task.y, task.y))
    write_report(task, MaxDiscClassifier().fit(task.X[train], task.y[train]), folder / "demo-report.html")
    page = browser.new_page(viewport={"width": 1200, "height": 1180}, color_scheme="light")
    page.goto((folder / "demo-report.html").as_uri())
    # Down to its second section.
    height = page.locator("h2").nth(1).evaluate("one => one.getBoundingClientRect().top")
    page.screenshot(path=HERE / "report.png", clip={"x": 0, "y": 0, "width": 1200, "height": height})


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        draw_page(browser, Path(folder))
        draw_report(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    main()
