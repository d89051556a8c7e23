"""The changes of grades by a regrade, as text and as lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import RunSummary
from workbench.numerals import count_text, counted, score_text
from workbench.show.signs import FORK
from workbench.show.visible import one_line

if TYPE_CHECKING:
    from workbench.show.text import Paint


@dataclass(frozen=True, slots=True)
class Move:
    """The results of a run before and after a regrade. `before` is `None` if the run had no grade."""

    before: RunResult | RunSummary | None
    after: RunResult | RunSummary

    @property
    def moved(self) -> bool:
        """Whether the status or the score differs."""
        return self.before is None or (self.before.status, self.before.score) != (self.after.status, self.after.score)


def graded_text(result: RunResult | None) -> str:
    """Return the status and the score of a result, such as `failed 0.50`."""
    if result is None:
        return "not graded"
    if result.grades:
        return f"{result.status} {score_text(result.score)}"
    return result.status


def moves_text(moves: Iterable[Move]) -> str:
    """Return in words how grades changed when runs were graded again, as `MovesFold.text` does."""
    fold = MovesFold()
    for move in moves:
        fold.add(move)
    return fold.text


class MovesFold:
    """A running summary of how grades changed when runs were graded again. It keeps no run in memory."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._cases: set[tuple[str, str]] = set()
        self._numbers = ""

    def add(self, move: Move) -> None:
        """Count a run if its grade changed."""
        if move.moved:
            self._kinds[_kind(move)] += 1
            self._cases.add((move.after.suite, move.after.case_id))
            # Scores are shown only if the grade of a single run changed, so it is enough to keep the last scores.
            self._numbers = _numbers(move)

    @property
    def text(self) -> str:
        """The changes in words, most frequent first, or "" if nothing changed.

        Examples: `15 runs: 12 passed → failed, 3 scores higher`, or `4 runs of 2 cases: failed → warned`. If only the
        score of one run changed: `score 0.85 → 0.92`."""
        moved = self._kinds.total()
        if not moved or (moved == 1 and self._numbers):
            return self._numbers
        runs = counted(moved, "run")
        if len(self._cases) < moved:
            runs += f" of {counted(len(self._cases), 'case')}"
        if len(self._kinds) == 1:
            return f"{runs}: {next(iter(self._kinds))}"
        parts: list[str] = []
        for kind, count in self._kinds.most_common():
            if count > 1:
                kind = _PLURALS.get(kind, kind)
            parts.append(f"{count_text(count)} {kind}")
        return f"{runs}: {', '.join(parts)}"


_PLURALS = {f"score {way}": f"scores {way}" for way in ("higher", "lower", "gone", "new")}


def _kind(move: Move) -> str:
    before, after = move.before, move.after
    if before is None:
        return f"not graded → {after.status}"
    if before.status != after.status:
        return f"{before.status} → {after.status}"
    if after.score is None:
        return "score gone"
    if before.score is None:
        return "score new"
    if after.score > before.score:
        return "score higher"
    return "score lower"


def _numbers(move: Move) -> str:
    """Return the scores of a run before and after, such as `score 0.85 → 0.92`.

    Return "" if the status changed too, or if both scores are equal when rounded."""
    before = move.before
    if before is None or before.status != move.after.status:
        return ""
    was, is_now = score_text(before.score), score_text(move.after.score)
    if was == is_now:
        return ""
    return f"score {was} → {is_now}"


@dataclass(frozen=True, slots=True)
class Regraded:
    """A recording that was graded again: its file, its new result, and its recorded result if there is one."""

    recording: str
    before: RunResult | None
    after: RunResult

    @property
    def not_regraded(self) -> str | None:
        """The reason why the run keeps its recorded verdict, or `None` if it was regraded."""
        return self.after.not_regraded

    @property
    def move(self) -> Move:
        """The change from the recorded grade to the new grade."""
        return Move(self.before, self.after)

    @property
    def moved(self) -> bool:
        """Whether the status or the score differs."""
        return self.move.moved


def move_lines(regraded: Iterable[Regraded], paint: Paint) -> Iterator[str]:
    """Yield a line for each recording whose grade changed, then the counts. Without recordings, yield nothing."""
    regraded = list(regraded)
    for each in regraded:
        if each.not_regraded is not None:
            yield f"{one_line(each.recording)} {one_line(each.not_regraded)}"
    moved = [each for each in regraded if each.moved]
    for each in moved:
        name = one_line(each.recording)
        if each.after.is_fork:
            name += f" ({FORK})"
        after = paint(graded_text(each.after), each.after.status.role)
        yield f"{name}: {graded_text(each.before)} → {after}"
    if regraded:
        yield moves_text(each.move for each in moved) or "no grade differs from the recorded one"
