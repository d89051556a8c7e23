"""The rows of the palette: actions by area of the app, recent ones first, unavailable ones at the end with why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.cells import cell_len

from workbench.dataclasses import dataclass
from workbench.show.search import NO_QUERY, fuzzy_match, marked_spans
from workbench.show.spans import EMPTY, Line, Span, behind, wrap_line
from workbench.show.visible import one_line
from workbench.tui.kit.actions import Action

Groups = Sequence[tuple[str, Sequence[Action]]]
"""The actions of each area of the app, with its title."""

RECENT, UNAVAILABLE = "Recent", "Not now"

MAX_RECENT = 5

_INDENT, _WHY_INDENT, _GAP = 2, 4, 2

_OTHER_WORD = 250
"""What another word for an action scores: less than one at the beginning of its title, more than one inside."""

_MIN_TYPED = 2
"""The letters of another word that are typed at least."""

_MIN_TITLE_CELLS = 12
"""With less room than this for titles, the keys are left out."""


@dataclass(frozen=True)
class Entry:
    """One action, why it is unavailable, if so, and the positions in its title that the query matched."""

    action: Action
    why: str | None = None
    matched: frozenset[int] = NO_QUERY.positions
    also: str = ""
    """Other words for the action that the query matched."""


@dataclass(frozen=True)
class Section:
    """Entries below a title. Search results have none."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Row:
    """One line of the palette, and the index of its entry, `None` for titles and blank lines."""

    line: Line
    entry: int | None = None


def sections_for(
    groups: Groups, recent: Sequence[str], why_not: Callable[[Action], str | None], query: str
) -> list[Section]:
    """Return what the palette shows for a query: without one, everything by area; otherwise what matches, the best
    match first."""
    if not query.strip():
        return _by_area(groups, recent, why_not)
    found: list[tuple[int, Entry]] = []
    for action in (action for _, actions in groups for action in actions):
        score, positions, also = 0, set[int](), dict[str, None]()
        for word in query.casefold().split():
            match, other = fuzzy_match(word, action.title), _other_word(word, action)
            if other is not None and (match is None or match.score < _OTHER_WORD):
                score += _OTHER_WORD
                also[other] = None
            elif match is not None:
                score += match.score
                positions |= match.positions
            else:
                break
        else:
            found.append((score, Entry(action, why_not(action), frozenset(positions), " ".join(also))))
    entries = [entry for _, entry in sorted(found, key=lambda each: (-each[0], _age(each[1].action, recent)))]
    return _with_unavailable_last([Section("", tuple(entry for entry in entries if entry.why is None))], entries)


def _other_word(typed: str, action: Action) -> str | None:
    """Return the other word for an action that begins as it was typed, if there is one."""
    words = action.words.split() if len(typed) >= _MIN_TYPED else ()
    return next((word for word in words if word.startswith(typed)), None)


def _by_area(groups: Groups, recent: Sequence[str], why_not: Callable[[Action], str | None]) -> list[Section]:
    entries = {action.id: Entry(action, why_not(action)) for _, actions in groups for action in actions}
    latest = [entries[action_id] for action_id in recent if action_id in entries and entries[action_id].why is None]
    first = Section(RECENT, tuple(latest[:MAX_RECENT]))
    known = {entry.action.id for entry in first.entries}
    sections = [first]
    for title, actions in groups:
        own = [entries[action.id] for action in actions if action.id not in known]
        sections.append(Section(title, tuple(entry for entry in own if entry.why is None)))
    return _with_unavailable_last(sections, entries.values())


def _with_unavailable_last(sections: Iterable[Section], entries: Iterable[Entry]) -> list[Section]:
    last = Section(UNAVAILABLE, tuple(entry for entry in entries if entry.why is not None))
    return [section for section in (*sections, last) if section.entries]


def _age(action: Action, recent: Sequence[str]) -> int:
    return recent.index(action.id) if action.id in recent else len(recent)


def rows_of(sections: Sequence[Section], names: Mapping[str, str], width: int) -> list[Row]:
    """Return the rows in a width: the titles of actions, wrapped if necessary, and their keys in a column. `names` are
    the keys of all actions by id, found or not, so that the column stays where it is during a search."""
    keys_width = max(map(cell_len, names.values()), default=0)
    room = width - _INDENT - _GAP - keys_width - 1
    if room < _MIN_TITLE_CELLS:
        room, names = width - _INDENT - 1, dict.fromkeys(names, "")
    rows: list[Row] = []
    at = 0
    for section in sections:
        if section.title:
            rows += [Row(EMPTY)] if rows else []
            rows.append(Row((Span(f" {section.title}", "heading"),)))
        for entry in section.entries:
            rows += [Row(line, at) for line in _entry_lines(entry, names[entry.action.id], room, width)]
            at += 1
    return rows


def _entry_lines(entry: Entry, keys: str, room: int, width: int) -> list[Line]:
    able = entry.why is None
    title = tuple(
        marked_spans(entry.action.title, entry.matched, 0, "text" if able else "muted", "heading" if able else "strong")
    )
    if entry.also:
        title += (Span(f"  {entry.also}", "muted"),)
    first, *others = wrap_line(title, max(room, 1))
    gap = " " * max(room - sum(cell_len(span.text) for span in first) + _GAP, 0)
    lines: list[Line] = [(Span(" " * _INDENT), *first, Span(gap), Span(keys, "accent" if able else "muted"))]
    lines += [(Span(" " * _INDENT), *row) for row in others]
    if entry.why is not None:
        lines += behind((Span(" " * _WHY_INDENT),), one_line(entry.why), "muted", max(width - _WHY_INDENT - 1, 10))
    return lines
