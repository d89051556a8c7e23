"""Events from other threads: one wake-up for many, in order, none lost."""

from __future__ import annotations

import threading

from workbench.tui.runs.runner import Drain


def test_the_first_item_wakes_and_the_others_do_not() -> None:
    woken: list[int] = []
    drain: Drain[int] = Drain(lambda: woken.append(1))
    assert not drain.is_waiting
    drain.put(1)
    drain.put(2)
    assert woken == [1]
    assert drain.is_waiting
    assert drain.take() == [1, 2]
    assert drain.take() == []
    drain.put(3)
    assert woken == [1, 1]


def test_nothing_is_lost_between_threads() -> None:
    drain: Drain[int] = Drain(lambda: None)
    taken: list[int] = []

    def put_all() -> None:
        for number in range(2_000):
            drain.put(number)

    threads = [threading.Thread(target=put_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        taken += drain.take()
    taken += drain.take()
    assert sorted(taken) == sorted(list(range(2_000)) * 4)
