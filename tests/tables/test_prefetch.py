from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from polyseme.tables.io.shuffle import in_parallel


def test_results_come_in_order_however_long_each_takes() -> None:
    second = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            assert second.wait(10), "the second is made before the first is done"
        if number == 1:
            second.set()
        return number

    assert list(in_parallel(work, range(20), threads=2)) == list(range(20))


def test_few_pieces_wait_however_many_there_are() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1_000):
            made.append(number)
            yield number

    results = in_parallel(str, items(), threads=3)
    for number in range(5):
        assert next(results) == str(number)
        assert len(made) <= number + 4
    results.close()
    assert len(made) < 10


def test_what_a_thread_raises_is_raised_in_its_turn() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    results = in_parallel(work, range(9), threads=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)
