"""What moved between two grades of the same runs, in words: how many went from which status to which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from workbench.grading.grade import RunResult
from workbench.reports.values import score_text


@dataclass(frozen=True, slots=True)
class Move:
    """What a run came to before, `None` when it was not graded, and what it comes to now."""

    before: RunResult | None
    after: RunResult

    @property
    def moved(self) -> bool:
        """Whether status or score are other ones."""
        return self.before is None or (self.before.status, self.before.score) != (self.after.status, self.after.score)


def graded_text(result: RunResult | None) -> str:
    """Status and score: `failed 0.50`."""
    if result is None:
        return "not graded"
    return f"{result.status} {score_text(result.score)}" if result.grades else result.status


def moves_said(moves: Iterable[Move]) -> str:
    """What moved, the most frequent first: `12 passed → failed, 3 scores higher`; a single score with its numbers:
    `score 0.85 → 0.92`. Empty when nothing moved."""
    moved = [each for each in moves if each.moved]
    kinds = Counter(_kind(each) for each in moved)
    if len(moved) == 1 and (numbers := _numbers(moved[0])):
        return numbers
    return ", ".join(f"{count} {kind if count == 1 else _MANY.get(kind, kind)}" for kind, count in kinds.most_common())


_MANY = {f"score {way}": f"scores {way}" for way in ("higher", "lower", "gone", "there now")}


def _kind(move: Move) -> str:
    before, after = move.before, move.after
    if before is None or before.status != after.status:
        return f"{before.status if before is not None else 'not graded'} → {after.status}"
    if before.score is None or after.score is None:
        return "score gone" if after.score is None else "score there now"
    return "score higher" if after.score > before.score else "score lower"


def _numbers(move: Move) -> str:
    """From which score to which, where nothing else moved and two decimals show it."""
    before = move.before
    if before is None or before.status != move.after.status:
        return ""
    was, is_now = score_text(before.score), score_text(move.after.score)
    return f"score {was} → {is_now}" if was != is_now else ""
