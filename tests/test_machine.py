"""Work beside the main thread, and how much memory a process has held."""

import threading
import time

import pytest

from embedtopics._utils.machine import in_background, in_parts
from tests.factories import python, raising


@pytest.fixture(autouse=True)
def two_threads():
    """Pieces are side by side in two threads, also in tests that have one thread each."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
    yield
    numba.set_num_threads(before)


def test_work_is_done_beside_the_main_thread():
    with in_background(lambda _: threading.get_ident()) as result:
        assert result() != threading.get_ident()


def test_work_learns_that_it_is_unwanted():
    begun, ended = threading.Event(), threading.Event()

    def work(unwanted):
        begun.set()
        while not unwanted():
            time.sleep(0.001)
        ended.set()

    with pytest.raises(KeyboardInterrupt), in_background(work):
        assert begun.wait(10)
        raise KeyboardInterrupt
    assert ended.wait(10)


@pytest.mark.parametrize("n", [0, 1, 3, 1000])
def test_parts_of_a_loop_are_all_rows_once(n):
    for few in (0, 10**6):
        rows = [0] * n

        def loop(first, end, step, rows=rows):
            for row in range(first, end):
                rows[row] += step

        in_parts(loop, n, 2, few=few)
        assert rows == [2] * n
    if n:
        with pytest.raises(ValueError, match="broken"):
            in_parts(raising(ValueError("broken")), n, few=0)


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
