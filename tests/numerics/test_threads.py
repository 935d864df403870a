"""Work in threads: results in order, seats that nobody shares, failures that end it."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxdisc.numerics.threads import Work, in_threads, in_turn, limited_threads, n_threads
from tests.conftest import examples


@examples(40)
@given(st.lists(st.integers(0, 4), max_size=9), st.integers(1, 4), st.integers(1, 4))
def test_work_in_turn_comes_to_the_same_for_any_number_of_threads_and_seats(n_parts, n_jobs, most):
    def task(number, _seat):
        return Work([lambda i=i: (number, i) for i in range(n_parts[number])], tuple)

    with limited_threads(n_jobs):
        found = in_turn([lambda seat, n=n: task(n, seat) for n in range(len(n_parts))], most)
    assert found == [tuple((n, i) for i in range(count)) for n, count in enumerate(n_parts)]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_seat_is_free_again_only_when_all_parts_are_done(n_jobs):
    lock, taken, seen = threading.Lock(), {}, set()

    def task(number, seat):
        with lock:
            assert seat not in taken
            taken[seat] = (number, 3)
            seen.add(seat)

        def part():
            time.sleep(0.001)
            with lock:
                owner, left = taken[seat]
                assert owner == number
                taken[seat] = (number, left - 1)
                if left == 1:
                    del taken[seat]
            return n_threads()

        return Work([part] * 3, set)

    with limited_threads(n_jobs):
        found = in_turn([lambda seat, n=n: task(n, seat) for n in range(8)], most=2)
    assert not taken
    assert seen <= {0, 1}
    # What threads start themselves is bound by the same limit.
    assert found == [{n_jobs}] * 8


@pytest.mark.parametrize("where", ["task", "part"])
def test_a_failure_ends_the_work_and_is_told(where):
    started = []

    def fail():
        raise OSError("no more")

    def task(number, _seat):
        started.append(number)
        if where == "task":
            fail()
        return Work([fail], list)

    with limited_threads(2), pytest.raises(OSError, match="no more"):
        in_turn([lambda seat, n=n: task(n, seat) for n in range(100)], most=1)
    assert len(started) < 100


@examples(40)
@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 4))
def test_of_several_failures_that_of_the_first_item_is_told(fails, n_jobs):
    def work(i):
        time.sleep(0.0002 * (i % 3))
        if fails[i]:
            raise OSError(i)
        return i

    with limited_threads(n_jobs):
        if not any(fails):
            assert in_threads(work, range(len(fails))) == list(range(len(fails)))
            return
        with pytest.raises(OSError, match=f"^{fails.index(True)}$"):
            in_threads(work, range(len(fails)))


def test_the_thread_that_asks_works_too_and_no_more_than_allowed_do():
    seen = set()

    def work(_):
        seen.add(threading.get_ident())
        time.sleep(0.002)

    with limited_threads(3):
        in_threads(work, range(30))
    assert threading.get_ident() in seen
    assert len(seen) == 3


def test_without_further_threads_the_one_there_is_does_it_all(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with limited_threads(4):
        assert in_threads(str, range(5)) == ["0", "1", "2", "3", "4"]


def test_an_interrupt_ends_the_work_and_no_thread_is_left():
    before, done = threading.active_count(), []

    def work(i):
        if threading.current_thread() is threading.main_thread() and len(done) > 3:
            raise KeyboardInterrupt
        time.sleep(0.001)
        done.append(i)

    with limited_threads(3), pytest.raises(KeyboardInterrupt):
        in_threads(work, range(1000))
    assert len(done) < 1000
    assert threading.active_count() == before


def test_an_interrupt_while_others_are_waited_for_ends_them_too(monkeypatch):
    before, done, join = threading.active_count(), [], threading.Thread.join
    interrupts = iter([KeyboardInterrupt])

    def interrupted(thread, *given):
        if (error := next(interrupts, None)) is not None:
            raise error
        join(thread, *given)

    def work(i):
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.05)
        done.append(i)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with limited_threads(2), pytest.raises(KeyboardInterrupt):
        in_threads(work, range(50))
    assert threading.active_count() == before
