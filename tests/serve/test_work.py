"""A queue that ends, and a time after which nobody waits."""

from __future__ import annotations

import asyncio
import threading

import pytest

from maxdisc.serve.limits import Limits
from maxdisc.serve.metrics import Metrics
from maxdisc.serve.refusals import RefusedError
from maxdisc.serve.work import Workshop


def test_beyond_the_queue_requests_are_refused_and_then_taken_again():
    release = threading.Event()

    async def crowd():
        work = Workshop(Limits(queue=3, workers=1), Metrics())
        waiting = [asyncio.create_task(work.do(release.wait, 60)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(RefusedError, match="too many") as refused:
            await work.do(int)
        assert refused.value.status == 503
        assert int(refused.value.headers["Retry-After"]) >= 1
        release.set()
        assert await asyncio.gather(*waiting) == [True] * 3
        await asyncio.sleep(0)
        assert await work.do(int) == 0
        work.close()

    asyncio.run(crowd())


def test_what_takes_too_long_is_given_up_but_counts_until_it_is_done():
    release = threading.Event()

    async def slow():
        metrics = Metrics()
        work = Workshop(Limits(queue=1, workers=1, seconds=0.05), metrics)
        assert not work.busy
        with pytest.raises(RefusedError, match="longer than"):
            await work.do(release.wait, 60)
        assert work.busy
        with pytest.raises(RefusedError, match="too many"):
            await work.do(int)
        assert b"maxdisc_timeouts_total 1.0" in metrics.text()
        release.set()
        while True:
            try:
                assert await work.do(int) == 0
                break
            except RefusedError:
                await asyncio.sleep(0.01)
        work.close()

    asyncio.run(slow())


def test_a_long_job_is_done_once():
    calls = []

    async def ask():
        work = Workshop(Limits(), Metrics())
        found = await asyncio.gather(*(work.once("key", lambda: calls.append(1) or 7) for _ in range(5)))
        work.close()
        return found

    assert asyncio.run(ask()) == [7] * 5
    assert calls == [1]
