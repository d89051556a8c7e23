"""Three-way merge of a suite that was edited in the app and by another program: table by table, case by case.

A text is read as a sequence of units: its beginning, each top-level table or element of a list of tables, and each
case. Comments directly above a unit belong to it. A unit that only one side changed is taken from that side. If both
sides changed a unit differently, it is a conflict, which the user decides."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal, TypeAlias, TypeVar

from workbench.authoring.document import Document
from workbench.authoring.form.field_text import without_keys
from workbench.dataclasses import dataclass
from workbench.encoding import BYTE_ORDER_MARK
from workbench.numerals import counted
from workbench.startup import late_pattern
from workbench.suite.problems import tables
from workbench.suite.render import Table
from workbench.suite.sections import line_end_of, split_sections
from workbench.suite.suite_text import SpliceError, SuiteText
from workbench.suite.toml_equality import toml_equal

Side = Literal["mine", "theirs"]
Key: TypeAlias = tuple[Hashable, ...]
"""The identity of a unit in all versions: `("cases", id)`, `("tools", name)` or `("limits",)`, for example. The
beginning of the file has the key `()`."""

_HEAD: Key = ()
_NAMES = ("id", "name", "tool")
"""The keys that name an element of a list of tables."""
_AGAIN = 0
"""Separates the name in a key from the number that distinguishes units of the same name."""
_COMMENTS = late_pattern(r"[ \t]*#.*(?:\n[ \t]*#.*)*")
"""Comment lines without a blank line between them."""


@dataclass(frozen=True)
class Conflict:
    """A unit that was changed differently in the app and on disk.

    `mine` (the app) and `theirs` (the disk) are the texts of the unit, or `None` for a side that deleted it. `what` is
    the unit's name, written as the beginning of a sentence."""

    key: Key
    what: str
    mine: str | None
    theirs: str | None


@dataclass(frozen=True)
class MergeResult:
    """The merged text, and its conflicts. An undecided conflict has the text of `mine`."""

    text: str
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True)
class _Unit:
    """A part of a text: a table or a case.

    `text` does not include the last line end. `gap` is the text up to the next unit. `case` is the table of a case, and
    `title` its name. `is_last` is whether no unit follows."""

    text: str
    gap: str
    title: str = ""
    case: Table | None = None
    is_last: bool = False


_Units: TypeAlias = dict[Key, _Unit]
_Any = TypeVar("_Any", bound=Hashable)


def merge(
    base: SuiteText, mine: SuiteText, theirs: SuiteText, chosen: Mapping[Key, Side] | None = None
) -> MergeResult | None:
    """Merge two versions of a suite that were both made from `base`.

    `chosen` decides conflicts by key. The result has the order of `theirs`, and units added in `mine` keep their
    neighbours. If only `mine` moved units, the result has the order of `mine`. Returns `None` if cases are not in
    separate blocks, or if the changes contradict each other. Only the whole texts can then be compared."""
    if mine.text in (base.text, theirs.text):
        return MergeResult(theirs.text)
    if theirs.text == base.text:
        return MergeResult(mine.text)
    if not all(version.in_blocks for version in (base, mine, theirs)):
        return None
    before = _units(base)
    here, there = _keyed_like(before, mine), _keyed_like(before, theirs)
    # If it is uncertain which units belong to which units of `base`, the wrong units might be merged.
    if here is None or there is None:
        return None
    chosen = chosen or {}
    conflicts: list[Conflict] = []
    texts: dict[Key, str] = {}
    for key in _all(there, here, before):
        old, left, right = _text_of(before, key), _text_of(here, key), _text_of(there, key)
        if key == _HEAD:
            text, conflict = _head(old or "", left or "", right or "")
        else:
            text, conflict = _decided(old, left, right)
        if conflict is not None:
            title = (here.get(key) or there[key]).title
            conflicts.append(Conflict(key, _what(key, title), *conflict))
            left, right = conflict
            text = right if chosen.get(key) == "theirs" else left
        if text is not None:
            texts[key] = text
    # The order on disk is kept, unless units were moved only in the app.
    if _is_moved(before, here) and not _is_moved(before, there):
        order = _ordered(texts, here, there)
    else:
        order = _ordered(texts, there, here)
    text = _joined(order, texts, before, here, there)
    text = text.replace("\n", line_end_of(theirs.text))
    if theirs.text.startswith(BYTE_ORDER_MARK):
        text = BYTE_ORDER_MARK + text
    # Text is merged, which may change its meaning as TOML. Therefore the result is parsed and compared with the units.
    if not _reads_as_units(text, order, texts, mine, theirs):
        return None
    return MergeResult(text, tuple(conflicts))


def _text_of(units: _Units, key: Key) -> str | None:
    return units[key].text if key in units else None


def changes_summary(before: SuiteText, after: SuiteText) -> str:
    """Return a summary of the differences between two texts, such as `1 case changed, 1 added; limits changed`."""
    if not (before.in_blocks and after.in_blocks):
        return "reloaded"
    old = _units(before)
    new = _keyed_like(old, after)
    if new is None:
        return "reloaded"
    kept = _shared(new, old)
    changed = [key for key in kept if new[key].text != old[key].text]
    # The summary counts cases, but names every other table.
    counts = (
        (sum(map(_is_case, changed)), "changed"),
        (sum(map(_is_case, new.keys() - old.keys())), "added"),
        (sum(map(_is_case, old.keys() - new.keys())), "deleted"),
    )
    parts: list[str] = []
    for count, what in counts:
        if count:
            parts.append(f"{count} {what}" if parts else f"{counted(count, 'case')} {what}")
    if not parts and _shared(old, new) != kept:
        parts = ["the order changed"]
    names: set[str] = set()
    for key in (*changed, *(new.keys() ^ old.keys())):
        if not _is_case(key):
            names.add(_section(key))
    sentences = [", ".join(parts)] if parts else []
    if names:
        sentences.append(f"{', '.join(sorted(names))} changed")
    return "; ".join(sentences) or "only blank lines and comments"


def _units(version: SuiteText) -> _Units:
    # The result gets its line ends and byte order mark from `theirs`, so they are not compared.
    text = version.text.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")
    outlines = Document.of_parts(version, "").cases
    units: _Units = {}
    counts: Counter[Key] = Counter()
    last: tuple[object, ...] | None = None
    key = _HEAD
    for section in split_sections(text):
        # A unit is a case, an element of a list of tables, or a table. It includes the tables inside it.
        place = section.place[: 1 + (len(section.place) > 1 and isinstance(section.place[1], int))]
        content = section.lead + section.body
        if place == last:
            unit = units[key]
            units[key] = replace(unit, text=unit.text + unit.gap + content, gap=section.gap)
            continue
        last, title, case, name = place, "", None, None
        if place[:1] == ("cases",):
            index = int(place[1])
            case, title = version.cases[index], outlines[index].name
            if "id" in case or "name" in case:
                name = outlines[index].id
        elif len(place) > 1:
            name = _name(version.header, place)
        if len(place) > 1:
            key = _free((place[0], name), counts, is_named=name is not None)
        else:
            key = _free(place, counts, is_named=True)
        units[key] = _Unit(content, section.gap, title, case)
    units[key] = replace(units[key], is_last=True)
    return units


def _name(header: Table, place: Sequence[str | int]) -> str | None:
    element = dict(tables(header.get(str(place[0])))).get(int(place[1]), {})
    for name in _NAMES:
        if isinstance(found := element.get(name), str):
            return found
    return None


def _free(key: Key, counts: Counter[Key], *, is_named: bool) -> Key:
    """Return `key`, made unique.

    A number is added if a table occurs in several places, or if several elements have the same name or no name."""
    counts[key] += bool(key)
    if is_named and counts[key] <= 1:
        return key
    return (*key, _AGAIN, counts[key])


def _keyed_like(before: _Units, version: SuiteText) -> _Units | None:
    """Return the units of a version. A unit that was in `before` keeps its key.

    A renamed case keeps its key, too, and so does a moved unit among units of the same name. Returns `None` if units of
    the same name cannot be paired with certainty."""
    units = _units(version)
    gone: dict[str, list[Key]] = {}
    for key, unit in before.items():
        if unit.case is not None and key not in units:
            gone.setdefault(_nameless(unit.case), []).append(key)
    names: dict[Key, Key] = {}
    for key, unit in units.items():
        if unit.case is not None and key not in before and (known := gone.get(_nameless(unit.case))):
            names[key] = known.pop(0)
    units = _renamed(units, names)
    names = {}
    groups: dict[Key, None] = {}
    for key in (*before, *units):
        if _AGAIN in key:
            groups[_group(key)] = None
    for group in groups:
        found = _partners(_in_group(before, group), _in_group(units, group))
        if found is None:
            return None
        names |= found
    return _renamed(units, names)


def _renamed(units: _Units, names: Mapping[Key, Key]) -> _Units:
    return {names.get(key, key): unit for key, unit in units.items()}


def _in_group(units: _Units, group: Key) -> _Units:
    return {key: unit for key, unit in units.items() if _group(key) == group}


def _group(key: Key) -> Key:
    return key[: key.index(_AGAIN)] if _AGAIN in key else key


def _partners(old: _Units, new: _Units) -> dict[Key, Key] | None:
    """Pair units of two versions that have the same name. Return the old key for each new key.

    Units with the same text are paired first. The other units are paired in order. Returns `None` if the versions have
    different numbers of other units."""
    known: dict[str, list[Key]] = {}
    for key, unit in old.items():
        known.setdefault(unit.text, []).append(key)
    names, rest = dict[Key, Key](), list[Key]()
    for key, unit in new.items():
        if keys := known.get(unit.text):
            names[key] = keys.pop(0)
        else:
            rest.append(key)
    left = _besides(old, set(names.values()))
    if left and rest and len(left) != len(rest):
        return None
    # The key of an added unit contains its text, so that the same addition on both sides is a single unit.
    added = Counter[str]()
    for number, key in enumerate(rest):
        if left:
            names[key] = left[number]
            continue
        text = new[key].text
        added[text] += 1
        names[key] = (*_group(key), _AGAIN, text, added[text])
    return names


def _nameless(case: Table) -> str:
    """Return a text that is equal for cases that differ only in name and id."""
    # JSON has no dates and times, so these are compared by `repr`.
    return json.dumps(without_keys(case, "name", "id"), sort_keys=True, default=repr)


def _all(*versions: _Units) -> Iterable[Key]:
    return dict.fromkeys(chain.from_iterable(versions))


def _section(key: Key) -> str:
    return str(key[0]) if key else "the settings"


def _is_case(key: Key) -> bool:
    return key[:1] == ("cases",)


def _what(key: Key, title: str) -> str:
    if not key:
        return "The head of the file"
    if _is_case(key):
        return f'The case "{title}"'
    section, *name = _group(key)
    if not name:
        return f"[{section}]"
    return f"[[{section}]] {name[0] or 'without a name'}"


_Texts: TypeAlias = tuple[str | None, str | None]
"""The texts of both sides: the app's, then the disk's."""


def _decided(old: str | None, mine: str | None, theirs: str | None) -> tuple[str | None, _Texts | None]:
    if mine == theirs or theirs == old:
        return mine, None
    if mine == old:
        return theirs, None
    return None, (mine, theirs)


def _head(old: str, mine: str, theirs: str) -> tuple[str | None, _Texts | None]:
    # If one side changed only values, they are put into the other side's text, so that no comment is lost.
    text, conflict = _decided(old, mine, theirs)
    if conflict is None:
        return text, None
    before, here, there = SuiteText.of(old).header, SuiteText.of(mine).header, SuiteText.of(theirs).header
    by_me, by_them = _changed(before, here), _changed(before, there)
    by_both = _shared(by_me, by_them)
    contested = [key for key in by_both if _differs(here, there, key)]
    try:
        if _with(old, here, by_me) == mine:
            right = _with(theirs, here, _besides(by_me, by_them))
            left = _with(right, here, contested)
        elif _with(old, there, by_them) == theirs:
            left = _with(mine, there, _besides(by_them, by_me))
            right = _with(left, there, contested)
        else:
            return None, (mine, theirs)
    except SpliceError:
        return None, (mine, theirs)
    if not contested:
        return left, None
    return None, (left, right)


def _changed(before: Table, after: Table) -> list[str]:
    return [key for key in {**before, **after} if _differs(before, after, key)]


def _differs(before: Table, after: Table, key: str) -> bool:
    return not toml_equal(before.get(key), after.get(key))


def _with(head: str, values: Table, keys: Iterable[str]) -> str:
    text = SuiteText.of(head)
    for key in keys:
        text = text.with_header(key, values.get(key))
    return text.text


def _is_moved(before: _Units, after: _Units) -> bool:
    return _shared(before, after) != _shared(after, before)


def _shared(keys: Iterable[_Any], others: Container[_Any]) -> list[_Any]:
    return [key for key in keys if key in others]


def _besides(keys: Iterable[_Any], others: Container[_Any]) -> list[_Any]:
    return [key for key in keys if key not in others]


def _ordered(keys: Iterable[Key], spine: _Units, other: _Units) -> list[Key]:
    """Return the wanted keys in the order of `spine`. Any other key follows its predecessor in `other`."""
    keys = frozenset(keys)
    order = _shared(spine, keys)
    at = 0
    for key in other:
        if key not in keys:
            continue
        if key not in spine:
            order.insert(at, key)
        # Most keys are already in place. Searching for each key would take quadratic time.
        if order[at : at + 1] == [key]:
            at += 1
        else:
            at = order.index(key) + 1
    return order


def _joined(order: Sequence[Key], texts: Mapping[Key, str], before: _Units, here: _Units, there: _Units) -> str:
    """Join the merged texts of the units into one text.

    `_with_gap` chooses the version whose text between two units is taken. Comments there come from both versions."""
    gaps = []
    for key in order:
        unit = _with_gap(before.get(key), here.get(key), there.get(key))
        gap, is_last = unit.gap, key == order[-1]
        if unit.is_last != is_last:
            gap = _gap(_COMMENTS.findall(gap), is_last=is_last)
        gaps.append(gap)
    _keep_comments(gaps, _lone_of(before), _lone_of(here), _lone_of(there))
    parts: list[str] = []
    for key, gap in zip(order, gaps, strict=True):
        text = texts[key]
        parts.append(text + gap if text else gap.lstrip("\n"))
    return "".join(parts)


def _with_gap(old: _Unit | None, mine: _Unit | None, theirs: _Unit | None) -> _Unit:
    """Return the unit whose `gap` goes into the result: `theirs`, unless `mine` changed the gap."""
    if mine is None:
        assert theirs is not None
        return theirs
    if theirs is not None and old is not None and mine.gap == old.gap:
        return theirs
    return mine


def _lone_of(units: _Units) -> Counter[str]:
    return _lone(unit.gap for unit in units.values())


def _lone(gaps: Iterable[str]) -> Counter[str]:
    comments: Counter[str] = Counter()
    for gap in gaps:
        comments.update(_COMMENTS.findall(gap))
    return comments


def _keep_comments(gaps: list[str], before: Counter[str], here: Counter[str], there: Counter[str]) -> None:
    """Change the gaps so that they contain each comment as often as the changes of both sides require.

    The number of times that a comment occurs is merged three-way. A comment that is missing in all gaps is appended to
    the last gap."""
    found = _lone(gaps)
    for comment in {**here, **there}:
        old, mine, theirs = before[comment], here[comment], there[comment]
        wanted = max(mine, theirs)
        if theirs == old:
            wanted = mine
        elif mine == old:
            wanted = theirs
        surplus = found[comment] - wanted
        for at, gap in enumerate(gaps):
            if surplus <= 0:
                break
            comments = _COMMENTS.findall(gap)
            while surplus > 0 and comment in comments:
                comments.remove(comment)
                surplus -= 1
                gaps[at] = _gap(comments, is_last=at == len(gaps) - 1)
        if surplus < 0:
            gaps[-1] = _gap(_COMMENTS.findall(gaps[-1]) + [comment] * -surplus, is_last=True)


def _gap(comments: Sequence[str], *, is_last: bool) -> str:
    gap = "".join(f"\n\n{comment}" for comment in comments)
    return gap + ("\n" if is_last else "\n\n")


def _reads_as_units(
    text: str, order: Sequence[Key], texts: Mapping[Key, str], mine: SuiteText, theirs: SuiteText
) -> bool:
    """Return whether a merged text is parsed into the units from which it was joined.

    It must also have no more repeated ids than either side."""
    try:
        version = SuiteText.of(text)
    except SpliceError:
        return False
    if not version.in_blocks:
        return False
    read = [unit.text for unit in _units(version).values()]
    if read != [texts[key] for key in order]:
        return False
    # If both sides added a case with the same id, the result has an error that neither side had.
    allowed = max(_repeated_ids(mine), _repeated_ids(theirs))
    return _repeated_ids(version) <= allowed


def _repeated_ids(version: SuiteText) -> int:
    return sum("\0" in case.key for case in Document.of_parts(version, "").cases)
