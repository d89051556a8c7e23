"""The items of one run: which of them changed, and where calls, requests and the end are."""

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
    """A list of items that grows at its end. Each call is directly followed by its result."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.order: list[int] = []
        """The indices of calls, in the order in which they were emitted."""
        self.rounds: list[int] = []
        """The indices of requests, superseded ones excluded."""
        self.steps: list[int] = []
        """The indices of step headings."""
        self.round: int | None = None
        """The index of the last request."""
        self.outcome: int | None = None
        self.held: int | None = None
        """The index of the item where the run is held or asks."""
        self._calls: dict[str, int] = {}
        self._changed: set[int] = set()
        self._rebuilt = False
        self._cut: int | None = None

    def append(self, item: Item) -> int:
        """Append an item."""
        self.items.append(item)
        self._changed.add(len(self.items) - 1)
        return len(self.items) - 1

    def append_round(self, item: RoundItem) -> None:
        """Append a request, which becomes the last one."""
        self.round = self.append(item)
        self.rounds.append(self.round)

    def append_step(self, item: StepItem) -> None:
        """Append the heading of a step."""
        self.steps.append(self.append(item))

    def append_call(self, call_id: str, tool: str) -> None:
        """Append a call. An id that already exists is ignored."""
        if call_id not in self._calls:
            self._calls[call_id] = self.append(CallItem(call_id, tool, len(self.order)))
            self.order.append(self._calls[call_id])
            self.append(ResultItem(tool=tool))

    def finish_text(self) -> None:
        """Mark streaming text at the end as complete."""
        last = self.items[-1] if self.items else None
        if isinstance(last, TextItem) and not last.done:
            last.done = True
            self._changed.add(len(self.items) - 1)

    def insert(self, index: int, item: Item) -> None:
        """Insert an item. Call `rebuild` after the last change."""
        self.items.insert(index, item)
        self._move_from(index, 1)

    def remove(self, index: int) -> None:
        """Remove an item. Call `rebuild` after the last change."""
        del self.items[index]
        self._move_from(index, -1)

    def cut(self, first: int) -> list[Item]:
        """Remove and return all items from an index on."""
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

    # Items about to change

    def changed(self, index: int) -> Item:
        """Mark an item as changed and return it."""
        self._changed.add(index)
        return self.items[index]

    def request(self) -> RoundItem | None:
        """Return the last request, marked as changed."""
        if self.round is None:
            return None
        item = self.changed(self.round)
        assert isinstance(item, RoundItem)
        return item

    def end(self) -> OutcomeItem:
        """Return the end of the run, marked as changed. Created on first use."""
        if self.outcome is None:
            self.outcome = self.append(OutcomeItem())
        item = self.changed(self.outcome)
        assert isinstance(item, OutcomeItem)
        return item

    def call(self, call_id: str | None) -> CallItem | None:
        """Return a call, marked as changed."""
        index = self.index_of(call_id)
        item = self.changed(index) if index is not None else None
        assert item is None or isinstance(item, CallItem)
        return item

    def result(self, call_id: str | None) -> ResultItem | None:
        """Return the result of a call, marked as changed."""
        index = self.index_of(call_id)
        item = self.changed(index + 1) if index is not None else None
        assert item is None or isinstance(item, ResultItem)
        return item

    def index_of(self, call_id: str | None) -> int | None:
        """Return the index of a call."""
        return self._calls.get(call_id) if call_id is not None else None

    def take_held(self) -> CallItem | ResultItem | HoldItem | None:
        """Return the item where the run was held, marked as changed, and clear the hold."""
        item = self.changed(self.held) if self.held is not None else None
        self.held = None
        assert item is None or isinstance(item, CallItem | ResultItem | HoldItem)
        return item

    # Reporting changes

    def rebuild(self) -> None:
        """Mark all indices as changed."""
        self._rebuilt = True

    def take_changes(self) -> tuple[bool, list[int]]:
        """Return whether items moved, and the indices of changed items, since the last call."""
        rebuilt, changed = self._rebuilt, sorted(self._changed)
        self._rebuilt = False
        self._changed.clear()
        return rebuilt, changed

    def take_cut(self) -> int | None:
        """Return how many of the first items are unchanged objects since the last call, `None` for all. Those after
        were removed, and new ones may have taken their place."""
        cut, self._cut = self._cut, None
        return cut

    def _move_from(self, index: int, by: int) -> None:
        """Adjust all indices from here on."""

        def moved(at: int) -> int:
            return at + by if at >= index else at

        self._calls = {call: moved(at) for call, at in self._calls.items()}
        for indices in (self.order, self.rounds, self.steps):
            indices[:] = map(moved, indices)
        self._changed = {moved(at) for at in self._changed}
        self.round = moved(self.round) if self.round is not None else None
        self.outcome = moved(self.outcome) if self.outcome is not None else None
        self.held = moved(self.held) if self.held is not None else None
