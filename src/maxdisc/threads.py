"""How many things are done at once: over ranges of rows or features, so that results never depend on it."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


#: What :func:`limited_threads` allows in the current context.
_limit: ContextVar[int | None] = ContextVar("threads", default=None)


@contextmanager
def limited_threads(n_jobs: int | None) -> Iterator[None]:
    """Use so many threads inside; None for what is usual, -1 for one for each usable core, -2 for one less.

    Examples
    --------
    >>> from maxdisc.threads import limited_threads, n_threads
    >>> with limited_threads(1):
    ...     print(n_threads())
    1
    """
    if n_jobs is None:
        yield
        return
    token = _limit.set(n_jobs if n_jobs > 0 else max(1, _usable_cores() + 1 + n_jobs))
    try:
        yield
    finally:
        _limit.reset(token)


def n_threads() -> int:
    """How many threads to use: as :func:`limited_threads` says, ``MAXDISC_NUM_THREADS``,
    ``OMP_NUM_THREADS``, or one for each usable core.
    """
    if (limit := _limit.get()) is not None:
        return limit
    for name in ("MAXDISC_NUM_THREADS", "OMP_NUM_THREADS"):
        if (value := os.environ.get(name, "")).isdecimal() and int(value) > 0:
            return int(value)
    return _usable_cores()


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], most: int | None = None
) -> list[Result]:
    """``function`` of every item, in order; side by side where there is more than one thread.

    Parameters
    ----------
    function : callable
        It gains only if it spends its time in code that holds no lock, such as numpy's and the kernels'.
    items : sequence
        What it is called with.
    most : int, optional
        At most so many at once, where each takes much memory.

    Examples
    --------
    >>> from maxdisc.threads import in_threads
    >>> in_threads(len, ["a", "bb", ""])
    [1, 2, 0]
    """
    threads = min(n_threads(), len(items), most or len(items))
    if threads < 2:
        return [function(item) for item in items]
    # What threads start themselves is bound by the same limit.
    contexts = [copy_context() for _ in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda context, item: context.run(function, item), contexts, items))


@dataclass(frozen=True, eq=False)
class Work(Generic[Result]):
    """What is left to do: parts, and what their results come to together."""

    parts: Sequence[Callable[[], Any]]
    together: Callable[[list[Any]], Result]


def in_turn(tasks: Sequence[Callable[[int], Work[Result]]], most: int) -> list[Result]:
    """What the work comes to that every task leaves to do, where only so many tasks may be unfinished.

    Parameters
    ----------
    tasks : sequence of callable
        Each is given the number of its seat, from 0 to ``most`` - 1, which no other has until its work is
        done: whatever belongs to a seat can be used again.
    most : int
        How many seats there are.

    Examples
    --------
    >>> from maxdisc.threads import Work, in_turn
    >>> in_turn([lambda seat: Work([lambda: 1, lambda: 2], sum), lambda seat: Work([], len)], most=1)
    [3, 0]
    """
    if n_threads() < 2:
        return [work.together([part() for part in work.parts]) for work in (task(0) for task in tasks)]
    with ThreadPoolExecutor(n_threads()) as pool:
        try:
            return _seated(pool, tasks, most)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _seated(pool: Executor, tasks: Sequence[Callable[[int], Work[Result]]], most: int) -> list[Result]:
    free, waiting = list(range(most)), list(enumerate(tasks))[::-1]
    # By what runs: the number of a task, that of a part of its work (-1: the task itself), and their seat.
    running: dict[Future[Any], tuple[int, int, int]] = {}
    works: dict[int, Work[Result]] = {}
    parts: dict[int, list[Any]] = {}
    # The same for parts that nobody has begun.
    ready: deque[tuple[int, int, int]] = deque()
    unfinished: Counter[int] = Counter()

    def start(function: Callable[..., Any], at: tuple[int, int, int], *given: int) -> None:
        # What threads start themselves is bound by the same limit.
        running[pool.submit(copy_context().run, function, *given)] = at

    while waiting or ready or running:
        # One more than there are threads, so that none waits for this one; and no more than that, as a task
        # that has got a seat goes before the parts of others, or in the end it would be alone.
        while len(running) <= n_threads():
            if waiting and free:
                number, task = waiting.pop()
                seat = free.pop()
                start(task, (number, -1, seat), seat)
            elif ready:
                number, i, seat = ready.popleft()
                start(works[number].parts[i], (number, i, seat))
            else:
                break
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            number, i, seat = running.pop(future)
            if i < 0:
                work = works[number] = future.result()
                unfinished[number] = len(work.parts)
                parts[number] = [None] * len(work.parts)
                ready.extend((number, k, seat) for k in range(len(work.parts)))
            else:
                parts[number][i] = future.result()
                unfinished[number] -= 1
            if not unfinished[number]:
                free.append(seat)
    return [works[i].together(parts[i]) for i in range(len(tasks))]
