"""Events from other threads: one wake-up for many, in order, none lost."""

from __future__ import annotations

import threading

from workbench.engine.events import Inbox


def test_the_first_item_wakes_and_the_others_do_not() -> None:
    woken: list[int] = []
    inbox: Inbox[int] = Inbox(lambda: woken.append(1))
    assert not inbox.is_waiting
    inbox.put(1)
    inbox.put(2)
    assert woken == [1]
    assert inbox.is_waiting
    assert inbox.take_all() == [1, 2]
    assert inbox.take_all() == []
    inbox.put(3)
    assert woken == [1, 1]


def test_nothing_is_lost_between_threads() -> None:
    inbox: Inbox[int] = Inbox(lambda: None)
    taken: list[int] = []

    def put_all() -> None:
        for number in range(2_000):
            inbox.put(number)

    threads = [threading.Thread(target=put_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        taken += inbox.take_all()
    taken += inbox.take_all()
    assert sorted(taken) == sorted(list(range(2_000)) * 4)
