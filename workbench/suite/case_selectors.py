"""Words that select cases: ids, names, and patterns of both, as in `--case`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

MAX_NEAR = 3


class NamedCase(Protocol):
    """A case that `--case` can select: a case of a suite or of a history."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


def matching_ids(word: str, cases: Collection[NamedCase]) -> list[str]:
    """Return the distinct ids of the cases that a word selects, or an empty list.

    The word is tried in this order, and the first reading that finds a case decides:

    1. an id
    2. a name
    3. an id or a name in other letter case (`Oslo` for `oslo`)
    4. the id of a case with rows (`refund` for its rows `refund/1` and `refund/2`)
    5. a pattern with `*`, `?` or `[…]` for ids and names"""
    folded = word.casefold()

    def fits(case: NamedCase, test: Callable[[str], bool]) -> bool:
        return test(case.id.casefold()) or test(case.name.casefold())

    # The order matters: an exact id must select its case only, even if the word would also match other cases.
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
    """Return the ids of the cases that a misspelt word may mean, most similar first."""
    # Lazy import: only mistakes need this module.
    from difflib import get_close_matches

    ids: dict[str, str] = {}
    for case in cases:
        ids.setdefault(case.name.casefold(), case.id)
        ids.setdefault(case.id.casefold(), case.id)
    bare = word.casefold().strip("*?")
    near = get_close_matches(bare, ids, n=MAX_NEAR * 2, cutoff=0.6)
    return list(dict.fromkeys(ids[text] for text in near))[:MAX_NEAR]
