"""Parallel work over ranges of rows or features, with results that do not depend on the number of threads."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


#: What :func:`limited_threads` allows in the current context.
_limit: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def limited_threads(n_jobs: int | None) -> Iterator[None]:
    """Limit the number of threads in a block, by joblib's convention for ``n_jobs``."""
    if n_jobs is None:
        yield
        return
    token = _limit.set(n_jobs if n_jobs > 0 else max(1, _usable_cores() + 1 + n_jobs))
    try:
        yield
    finally:
        _limit.reset(token)


def n_threads() -> int:
    """Return how many threads to use: as :func:`asked_threads` says, ``OMP_NUM_THREADS``, or one for each
    usable core.
    """
    return asked_threads() or _written("OMP_NUM_THREADS") or _usable_cores()


def asked_threads() -> int | None:
    """Return how many threads :func:`limited_threads` or ``MAXDISC_NUM_THREADS`` ask for, if any does."""
    return _limit.get() or _written("MAXDISC_NUM_THREADS")


def _written(name: str) -> int | None:
    """Return the positive number in a variable of the environment, or None."""
    value = os.environ.get(name, "")
    return int(value) or None if value.isdecimal() else None


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], most: int | None = None
) -> list[Result]:
    """Apply a function to every item, in order, on several threads; at most ``most`` at once."""
    threads = min(n_threads(), len(items), most or len(items))
    if threads < 2:
        return [function(item) for item in items]

    def task(item: Item, _: int) -> Work[Result]:
        result = function(item)
        return Work([], lambda _: result)

    return _Turns([partial(task, item) for item in items], threads).taken(threads)


@dataclass(frozen=True, eq=False)
class Work(Generic[Result]):
    """What is left to do: parts, and what their results come to together."""

    parts: Sequence[Callable[[], Any]]
    together: Callable[[list[Any]], Result]


def in_turn(tasks: Sequence[Callable[[int], Work[Result]]], most: int) -> list[Result]:
    """Run tasks and the work they return, with at most ``most`` tasks unfinished at once.

    A task gets the number of its seat, which no other task has until its work is done, so buffers can be
    reused.
    """
    if n_threads() < 2:
        return [work.together([part() for part in work.parts]) for work in (task(0) for task in tasks)]
    return _Turns(tasks, most).taken(n_threads())


@dataclass(frozen=True)
class _Job:
    """A task, or (if it has a part) a part of the work that one left, to be done on its seat."""

    number: int
    part: int | None
    seat: int
    call: Callable[[], Any]


class _Turns(Generic[Result]):
    """Queue of tasks and parts that threads fetch themselves."""

    def __init__(self, tasks: Sequence[Callable[[int], Work[Result]]], most: int) -> None:
        self._tasks, self._free = deque(enumerate(tasks)), list(range(most))
        self._works: list[Work[Result] | None] = [None] * len(tasks)
        self._parts: list[list[Any]] = [[] for _ in tasks]
        self._unfinished = [0] * len(tasks)
        self._ready: deque[_Job] = deque()
        self._running = 0
        self._failures: dict[int, BaseException] = {}
        self._changed = threading.Condition()

    def taken(self, n_threads: int) -> list[Result]:
        """Run the work of all tasks on this many threads, this one included, and return the results.

        Of several failures that of the first task is raised: tasks are begun in their order, so whether it
        has failed does not depend on the others.
        """
        # What threads start themselves is bound by the same limit.
        others = [
            threading.Thread(target=copy_context().run, args=(self._take,)) for _ in range(n_threads - 1)
        ]
        started: list[threading.Thread] = []
        try:
            for thread in others:
                try:
                    thread.start()
                except RuntimeError:  # no more threads are to be had: this one does it
                    break
                started.append(thread)
            self._take()
            for thread in started:
                thread.join()
        except BaseException as error:  # an interrupt, which may come at any time
            self._fail(-1, error)
            for thread in started:
                thread.join()
        if self._failures:
            raise self._failures[min(self._failures)]
        return [work.together(parts) for work, parts in zip(self._works, self._parts, strict=True) if work]

    def _take(self) -> None:
        number = -1
        try:
            while (job := self._next()) is not None:
                number = job.number
                self._done(job, job.call())
                number = -1
        except BaseException as error:
            self._fail(number, error)

    def _fail(self, number: int, error: BaseException) -> None:
        """End the work: nothing more is begun."""
        with self._changed:
            self._failures.setdefault(number, error)
            self._changed.notify_all()

    def _next(self) -> _Job | None:
        with self._changed:
            while True:
                if self._failures:
                    return None
                # A task goes before the parts of others, or in the end it would be alone.
                if self._tasks and self._free:
                    (number, task), seat = self._tasks.popleft(), self._free.pop()
                    job = _Job(number, None, seat, partial(task, seat))
                elif self._ready:
                    job = self._ready.popleft()
                elif self._running:
                    self._changed.wait()
                    continue
                else:
                    return None
                self._running += 1
                return job

    def _done(self, job: _Job, result: Any) -> None:
        number, seat = job.number, job.seat
        with self._changed:
            self._running -= 1
            if job.part is None:
                self._works[number], count = result, len(result.parts)
                self._parts[number], self._unfinished[number] = [None] * count, count
                self._ready.extend(_Job(number, i, seat, part) for i, part in enumerate(result.parts))
            else:
                self._parts[number][job.part] = result
                self._unfinished[number] -= 1
            if not self._unfinished[number]:
                self._free.append(seat)
            self._changed.notify_all()
