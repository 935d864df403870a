"""Threads that compute answers, with a bounded queue and time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from maxdisc.serve.limits import Limits
from maxdisc.serve.metrics import Metrics
from maxdisc.serve.refusals import busy

Result = TypeVar("Result")


class Workshop:
    """Pool that runs functions off the event loop, with limits on concurrency, queue and time."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._pool = ThreadPoolExecutor(limits.workers, thread_name_prefix="maxdisc")
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="maxdisc-aside")
        self._jobs: dict[Any, Future[Any]] = {}
        self._pending = 0

    async def do(self, function: Callable[..., Result], *given: Any) -> Result:
        """Return what the function returns; a refusal if too many wait already, or if it takes too long."""
        if self._pending >= self._limits.queue:
            self._metrics.add("maxdisc_refused_busy_total")
            raise busy("too many requests wait already: ask again in a moment.")
        loop = asyncio.get_running_loop()
        self._pending += 1
        future = self._pool.submit(function, *given)
        # Nobody may wait any more, but until a thread is free again it counts.
        future.add_done_callback(lambda done: self._settled(loop, done))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self._limits.seconds)
        except TimeoutError:
            self._metrics.add("maxdisc_timeouts_total")
            told = f"this took longer than {self._limits.seconds:g} seconds: send less at once, or ask again."
            raise busy(told, self._limits.seconds) from None

    async def once(self, key: Any, function: Callable[[], Result]) -> Result:
        """Run a long job once in the background, for all who ask for its result."""
        if key not in self._jobs:
            self._jobs[key] = self._aside.submit(function)
        try:
            waiting = asyncio.shield(asyncio.wrap_future(self._jobs[key]))
            return await asyncio.wait_for(waiting, self._limits.seconds)
        except TimeoutError:
            raise busy("this is being computed: ask again in a moment.", self._limits.seconds) from None

    @property
    def busy(self) -> bool:
        """Whether threads are still working; abandoned work cannot be stopped."""
        return self._pending > 0 or any(not job.done() for job in self._jobs.values())

    def forget(self, key: Any) -> None:
        """Forget the result of a job."""
        self._jobs.pop(key, None)

    def _settled(self, loop: asyncio.AbstractEventLoop, done: Future[Any]) -> None:
        def settle() -> None:
            self._pending -= 1
            if not done.cancelled():
                done.exception()  # seen, even if nobody waits

        if loop.is_closed():
            settle()
        else:
            loop.call_soon_threadsafe(settle)

    def close(self) -> None:
        """Take no more work and drop what is waiting."""
        for pool in (self._pool, self._aside):
            pool.shutdown(wait=False, cancel_futures=True)
