"""Work beside the main thread."""

import threading
import time

import pytest

from embedtopics._utils.machine import in_background, in_parts
from tests.factories import raising


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
