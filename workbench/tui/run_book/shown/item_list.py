"""The items of one run, with word of which of them changed and where the run's calls, its request and its end stand."""

from __future__ import annotations

from bisect import bisect_left

from workbench.tui.run_book.shown.items import (
    CallItem,
    HoldItem,
    Item,
    OutcomeItem,
    ResultItem,
    RoundItem,
    StepItem,
    TextItem,
)


class RunItems:
    """A list of items that grows at its end. A call is followed by its result at once."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.order: list[int] = []
        """Where the calls of the run stand, in the order in which they were emitted."""
        self.rounds: list[int] = []
        """Where the requests stand, those of answers set aside not among them."""
        self.steps: list[int] = []
        """Where the headings of steps stand."""
        self.round: int | None = None
        """Where the request stands that was made last."""
        self.outcome: int | None = None
        self.held: int | None = None
        """The item that shows where the run is held, or what it asks."""
        self._calls: dict[str, int] = {}
        self._changed: set[int] = set()
        self._rebuilt = False
        self._cut: int | None = None

    def append(self, item: Item) -> int:
        """Put an item at the end."""
        self.items.append(item)
        self._changed.add(len(self.items) - 1)
        return len(self.items) - 1

    def append_round(self, item: RoundItem) -> None:
        """Put a request at the end: it is the one that was made last."""
        self.round = self.append(item)
        self.rounds.append(self.round)

    def append_step(self, item: StepItem) -> None:
        """Put the heading of a step at the end."""
        self.steps.append(self.append(item))

    def append_call(self, call_id: str, tool: str) -> None:
        """Put a call at the end; one with an id that is there already is none."""
        if call_id not in self._calls:
            self._calls[call_id] = self.append(CallItem(call_id, tool, len(self.order)))
            self.order.append(self._calls[call_id])
            self.append(ResultItem(tool=tool))

    def finish_text(self) -> None:
        """The text that came in at the end, if there is one, is whole."""
        last = self.items[-1] if self.items else None
        if isinstance(last, TextItem) and not last.done:
            last.done = True
            self._changed.add(len(self.items) - 1)

    def insert(self, index: int, item: Item) -> None:
        """Put an item before another one; whoever does that says so in the end, with `rebuild`."""
        self.items.insert(index, item)
        self._move_from(index, 1)

    def remove(self, index: int) -> None:
        """Take an item out; as with `insert`."""
        del self.items[index]
        self._move_from(index, -1)

    def cut(self, first: int) -> list[Item]:
        """Take all items from one on out: they are void."""
        void = self.items[first:]
        if void:
            del self.items[first:]
            self._cut = first if self._cut is None else min(self._cut, first)
            self._changed = {index for index in self._changed if index < first}
            self._calls = {call: index for call, index in self._calls.items() if index < first}
            for indices in (self.order, self.rounds, self.steps):
                del indices[bisect_left(indices, first) :]
            if self.held is not None and self.held >= first:
                self.held = None
        return void

    # What is about to be changed

    def changed(self, index: int) -> Item:
        """An item that changes."""
        self._changed.add(index)
        return self.items[index]

    def request(self) -> RoundItem | None:
        """The request that was made last, to be changed."""
        if self.round is None:
            return None
        item = self.changed(self.round)
        assert isinstance(item, RoundItem)
        return item

    def end(self) -> OutcomeItem:
        """The end of the run, to be changed."""
        if self.outcome is None:
            self.outcome = self.append(OutcomeItem())
        item = self.changed(self.outcome)
        assert isinstance(item, OutcomeItem)
        return item

    def call(self, call_id: str | None) -> CallItem | None:
        """A call, to be changed."""
        index = self.index_of(call_id)
        item = self.changed(index) if index is not None else None
        assert item is None or isinstance(item, CallItem)
        return item

    def result(self, call_id: str | None) -> ResultItem | None:
        """What answers a call, to be changed."""
        index = self.index_of(call_id)
        item = self.changed(index + 1) if index is not None else None
        assert item is None or isinstance(item, ResultItem)
        return item

    def index_of(self, call_id: str | None) -> int | None:
        """Where a call stands."""
        return self._calls.get(call_id) if call_id is not None else None

    def take_held(self) -> CallItem | ResultItem | HoldItem | None:
        """The item that shows where the run is held, to be changed: it no longer is."""
        item = self.changed(self.held) if self.held is not None else None
        self.held = None
        assert item is None or isinstance(item, CallItem | ResultItem | HoldItem)
        return item

    # Word of what changed

    def rebuild(self) -> None:
        """Items may be anywhere now."""
        self._rebuilt = True

    def take_changes(self) -> tuple[bool, list[int]]:
        """Whether items were put in between, and the indices of those that changed since this was last asked."""
        rebuilt, changed = self._rebuilt, sorted(self._changed)
        self._rebuilt = False
        self._changed.clear()
        return rebuilt, changed

    def take_cut(self) -> int | None:
        """How many of the first items are still those that they were when this was last asked; `None` for all of them.
        The others were void, and there may be new ones in their places."""
        cut, self._cut = self._cut, None
        return cut

    def _move_from(self, index: int, by: int) -> None:
        """What stood at an index, or below, is elsewhere now."""

        def moved(at: int) -> int:
            return at + by if at >= index else at

        self._calls = {call: moved(at) for call, at in self._calls.items()}
        for indices in (self.order, self.rounds, self.steps):
            indices[:] = map(moved, indices)
        self._changed = {moved(at) for at in self._changed}
        self.round = moved(self.round) if self.round is not None else None
        self.outcome = moved(self.outcome) if self.outcome is not None else None
        self.held = moved(self.held) if self.held is not None else None
