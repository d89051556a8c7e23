"""Words that choose cases: ids, names, and patterns of both, as `--case` takes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

MAX_NEAR = 3


class NamedCase(Protocol):
    """The parts of a case, of a suite or of a history, by which words choose it."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


def ids_of(word: str, cases: Collection[NamedCase]) -> list[str]:
    """Return the ids of the cases that a word chooses, each once; none if it chooses no case.

    The word is an id, else a name, else either of them in other letter case (`Oslo` for `oslo`), else the id of a
    template (`refund` for its rows `refund/1`, `refund/2`), else a pattern with `*`, `?` or `[…]` for ids and names.
    """
    folded = word.casefold()

    def fits(case: NamedCase, test: Callable[[str], bool]) -> bool:
        return test(case.id.casefold()) or test(case.name.casefold())

    # The first way that finds a case decides, so that an exact id never chooses more than that case.
    ways: tuple[Callable[[NamedCase], bool], ...] = (
        lambda case: case.id == word,
        lambda case: case.name == word,
        lambda case: fits(case, folded.__eq__),
        lambda case: case.id.casefold().startswith(f"{folded}/"),
        lambda case: fits(case, lambda text: fnmatchcase(text, folded)),
    )
    for chooses in ways:
        if found := [case.id for case in cases if chooses(case)]:
            return list(dict.fromkeys(found))
    return []


def near_ids(word: str, cases: Iterable[NamedCase]) -> Sequence[str]:
    """Return the ids of the cases whose id or name is most similar to a word, the nearest first."""
    # Lazy import: only mistakes need it.
    from difflib import get_close_matches

    ids: dict[str, str] = {}
    for case in cases:
        ids.setdefault(case.name.casefold(), case.id)
        ids.setdefault(case.id.casefold(), case.id)
    bare = word.casefold().strip("*?")
    near = get_close_matches(bare, ids, n=MAX_NEAR * 2, cutoff=0.6)
    return list(dict.fromkeys(ids[text] for text in near))[:MAX_NEAR]
