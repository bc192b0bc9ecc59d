"""Work beside the main thread, and how much memory a process has held."""

import threading
import time

import pytest

from embedtopics._utils import machine
from embedtopics._utils.machine import in_background, side_by_side
from tests.factories import python, raising


@pytest.fixture(autouse=True)
def two_threads():
    """Pieces are side by side in two threads, also in tests that have one thread each."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    yield
    numba.set_num_threads(before)


@pytest.fixture(params=[True, False], ids=["beside", "afterwards"])
def may_meet(request, monkeypatch):
    monkeypatch.setattr(machine, "numba_is_threadsafe", lambda: request.param)
    return request.param


def test_work_is_done_beside_the_main_thread_where_it_may(may_meet):
    with in_background(lambda _: threading.get_ident(), runs_loops=True) as result:
        assert (result() != threading.get_ident()) is may_meet


def test_work_without_loops_is_always_done_beside(may_meet):
    with in_background(lambda _: threading.get_ident(), runs_loops=False) as result:
        assert result() != threading.get_ident()


def test_its_error_is_raised_where_the_result_is_asked_for(may_meet):
    work = raising(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"), in_background(work, runs_loops=True) as result:
        result()


def test_work_learns_that_it_is_unwanted(monkeypatch):
    monkeypatch.setattr(machine, "numba_is_threadsafe", lambda: True)
    begun, ended = threading.Event(), threading.Event()

    def work(unwanted):
        begun.set()
        while not unwanted():
            time.sleep(0.001)
        ended.set()

    with pytest.raises(KeyboardInterrupt), in_background(work, runs_loops=True):
        assert begun.wait(10)
        raise KeyboardInterrupt
    assert ended.wait(10)


def test_without_any_loop_run_so_far_nothing_may_meet(monkeypatch):
    import numba

    monkeypatch.setattr(numba, "threading_layer", raising(ValueError("is not initialized")))
    assert not machine.numba_is_threadsafe()
    for layer, may in (("omp", True), ("tbb", True), ("workqueue", False)):
        monkeypatch.setattr(numba, "threading_layer", lambda layer=layer: layer)
        assert machine.numba_is_threadsafe() is may


def test_pieces_come_in_order_and_errors_stop_them(may_meet):
    import numba

    def piece(number):
        time.sleep(0.01 * (number % 3))
        if number == 7:
            raise ValueError("broken")
        return number, numba.get_num_threads()

    found = []
    with pytest.raises(ValueError, match="broken"):
        for number, threads in side_by_side(piece, 20):
            found.append(number)
            assert threads == 1 or not may_meet
    assert found == list(range(7))


def test_the_peak_is_that_of_this_process_and_stays():
    # In a process of its own: what this one has held before may be more.
    code = (
        "from embedtopics._utils.machine import peak_memory; before = peak_memory();"
        "held = b'x' * 200_000_000; grown = peak_memory(); del held;"
        "print(before, grown, peak_memory())"
    )
    before, grown, after = map(float, python(code).split())
    # The kernel counts by thread and adds up now and then: the last pages may be missing.
    assert 1.9e8 < grown - before < 2.2e8
    assert after > 0.99 * grown
