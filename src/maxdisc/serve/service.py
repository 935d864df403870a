"""State of a service: models, limits, metrics and readiness."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from maxdisc.serve.limits import Limits
from maxdisc.serve.logs import Log
from maxdisc.serve.metrics import Metrics
from maxdisc.serve.model_registry import Shelf
from maxdisc.serve.reading import Bodies
from maxdisc.serve.work import Workshop


class Service:
    """The models, limits and counts that the requests of one process share."""

    def __init__(
        self,
        paths: Mapping[str, Path],
        limits: Limits | None = None,
        token: str | None = None,
        log: Log | None = None,
        reload_seconds: float = 1.0,
        own_names_only: bool = False,
        docs: bool = False,
    ) -> None:
        self.limits, self.token = limits or Limits(), token
        self.log, self.metrics = log or Log(), Metrics()
        self.shelf = Shelf(paths, self.log, self.metrics)
        self.work = Workshop(self.limits, self.metrics)
        self.bodies = Bodies(self.limits)
        self.own_names_only, self.closing = own_names_only, False
        self.docs = docs
        #: Why it could not begin.
        self.failed: Exception | None = None
        #: Called if it cannot.
        self.give_up: Callable[[], None] = lambda: None
        self._reload_seconds = reload_seconds

    @property
    def ready(self) -> bool:
        """Whether requests are answered, now and in the next moment."""
        return self.shelf.loaded and not self.closing

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Load the models, and then watch their files."""
        task = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            self.work.close()

    async def _keep(self) -> None:
        try:
            for name in self.shelf.names:
                self.shelf.put(await asyncio.to_thread(self.shelf.load, name))
        except Exception as error:
            self.failed = error
            self.give_up()
            return
        _set_aside()
        self.log.say("ready", models=self.shelf.names)
        while self._reload_seconds > 0:
            await asyncio.sleep(self._reload_seconds)
            for name in self.shelf.changed():
                await self._reload(name)

    async def _reload(self, name: str) -> None:
        model = await asyncio.to_thread(self.shelf.reload, name)
        self.metrics.add("maxdisc_reloads_total", model=name, ended="failed" if model is None else "ok")
        if model is not None:
            self.work.forget(self.shelf.model(name).file["checksum"])
            self.shelf.put(model)
            _set_aside()


def _set_aside() -> None:
    """Have the collector of garbage pass over all that is there: models stay, and looking at them takes long.

    What was set aside before, and is garbage now, goes first: the model that was replaced.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
