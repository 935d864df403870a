"""A session of Spark for a command: quiet, and gone when the command is done."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession


@contextmanager
def session(master: str) -> Iterator[Any]:
    """A session of Spark; one that was there before stays."""
    spark = SparkSession.getActiveSession()
    if spark is not None:
        yield spark
        return
    builder = SparkSession.builder.appName("maxdisc fit").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").master(master)
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        for setting in ("spark.driver.host", "spark.driver.bindAddress"):
            builder = builder.config(setting, "127.0.0.1")
    with _log_aside() as log:
        try:
            spark = builder.getOrCreate()
        except Exception as error:
            raise ValueError(_why(error, log, master)) from error
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _log_aside() -> Iterator[Any]:
    """Processes that start inside write their log to a file, not between the lines of this program."""
    sys.stderr.flush()
    mine = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield log
        finally:
            os.dup2(mine, 2)
            os.close(mine)


def _why(error: Exception, log: Any, master: str) -> str:
    """Why Spark did not start, in one line."""
    log.seek(0)
    said = f"{log.read().decode(errors='replace')}\n{error}".splitlines()
    told = next(
        (line for line in said if re.search("Exception|Error|JAVA_HOME|java.*not found", line)), said[-1]
    )
    told = re.sub(r"^.*?(\w+\.)+\w*(Exception|Error): ", "", told.strip())
    return f"Spark did not start at {master}: {told} (It needs Java 17.)"
