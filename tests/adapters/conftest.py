"""Engines for tests: one of each in a session, skipped with a reason where they cannot run, never in CI."""

from __future__ import annotations

import os
import shutil
import sys

import pytest


def unavailable(reason):
    """Skip, except where CI promises that every extra is there."""
    (pytest.fail if os.environ.get("MAXDISC_REQUIRE_EXTRAS") else pytest.skip)(reason)


@pytest.fixture(scope="session")
def java():
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        unavailable("needs Java 17")


@pytest.fixture(scope="session")
def spark(java):  # noqa: ARG001
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "OFF",  # faults are made on purpose
        # Small queries are planned and run faster without what makes large ones fast.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    # Four attempts at a task, as on a cluster.
    builder = SparkSession.builder.master("local[2,4]").appName("maxdisc tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
