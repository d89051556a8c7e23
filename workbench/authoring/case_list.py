"""Changes of a suite's structure: cases that come, go, move and are named, each as the document that follows.

Everything here raises SpliceError, with its reason, where a suite's text cannot be changed so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.authoring.document import HEAD, Document
from workbench.authoring.open_suite import OpenSuite
from workbench.suite.model import ANY_TOOL, derived_id
from workbench.suite.problems import tables
from workbench.suite.render import Table
from workbench.suite.splice import SpliceError

_NUMBERED = re.compile(r"(.*\S)\s+\d+")


@dataclass(frozen=True)
class Restructured:
    """What a change leads to: the document, what was done in words, and the key of the case on which the cursor is
    then; `None` for the suite itself. `gone` is the key of a case that is there only after an undo."""

    document: Document
    said: str
    case: str | None
    gone: str | None = None

    @property
    def about(self) -> str | None:
        """The case on which the cursor is after an undo."""
        return self.gone or self.case


def index_of(suite: OpenSuite, key: str | None) -> int:
    """Where the case with this key stands now; `HEAD` for `None`, which is the suite itself."""
    if key is None:
        return HEAD
    for outline in suite.cases:
        if outline.key == key:
            return outline.index
    raise SpliceError(f"the case is no longer in {suite.path.name}")


def index_behind(suite: OpenSuite, key: str | None) -> int:
    """Where a case stands that comes behind the one with this key; at the end, when that is not there or `None`."""
    return next((outline.index + 1 for outline in suite.cases if outline.key == key), len(suite.cases))


def with_new_case(suite: OpenSuite, index: int, case: Table) -> Restructured:
    """A case more, which then has this index; its id is written out where its name makes one that is taken."""
    case = _with_free_id(case, _ids(suite.document))
    return _at(suite.document.with_new_case(index, case), index, f"New case {case['name']}")


def with_copy(suite: OpenSuite, index: int) -> Restructured:
    """A case twice, its comments too, the second one directly behind the first, with a name and an id of its own."""
    document = suite.document
    case = _sound(document, index)
    name = free_name(_name(suite, index), [outline.name for outline in document.cases])
    copied = {**case, "name": name}
    if "id" in case:
        copied["id"] = free_id(suite.cases[index].id, _ids(document))
    copied = _with_free_id(copied, _ids(document))
    document = document.with_new_block(index + 1, document.block(index)).with_case(index + 1, copied)
    return _at(document, index + 1, f"Duplicated {_name(suite, index)}")


def with_name(suite: OpenSuite, index: int, name: str) -> Restructured:
    """A case under another name, or with `HEAD` the suite. A case that is on the disk keeps its id, by which its runs
    are known."""
    document = suite.document
    if index == HEAD:
        return Restructured(document.with_header("name", name), f"Renamed the suite to {name}", None)
    case, outline = _sound(document, index), document.cases[index]
    renamed = {**case, "name": name}
    if "id" not in case:
        others = _ids(document) - {outline.id}
        renamed = {"id": outline.id, **renamed} if suite.is_saved(outline.id) else _with_free_id(renamed, others)
    return _at(document.with_case(index, renamed), index, f"Renamed {outline.name} to {name}")


def with_moved(suite: OpenSuite, index: int, to: int) -> Restructured:
    """A case at another place of its suite."""
    said = f"Moved {_name(suite, index)} {'up' if to < index else 'down'}"
    return _at(suite.document.with_case_moved(index, to), to, said)


def without(suite: OpenSuite, index: int) -> Restructured:
    """A case less; the cursor is then on the next one, or on the one before it."""
    document = suite.document.without_case(index)
    after = document.cases[min(index, len(document.cases) - 1)].key if document.cases else None
    return Restructured(document, f"Deleted {_name(suite, index)}", after, suite.cases[index].key)


def moved_over(source: OpenSuite, index: int, target: OpenSuite) -> tuple[Restructured, Restructured]:
    """A case taken from one suite and put at the end of another one, its comments too: what follows in each."""
    case = _sound(source.document, index)
    at = len(target.document.cases)
    arrived = target.document.with_new_block(at, source.document.block(index))
    free = _with_free_id(case, _ids(target.document))
    if free != case:
        arrived = arrived.with_case(at, free)
    name = _name(source, index)
    left = without(source, index)
    return (
        replace(left, said=f"Moved {name} to {target.path.name}"),
        _at(arrived, at, f"Moved {name} here from {source.path.name}"),
    )


def tools_used(case: Table) -> tuple[str, ...]:
    """The tools of others that a case names, each once: in what it expects, forbids, offers and mocks."""
    own = {ANY_TOOL, *(tool.get("name") for _, tool in tables(case.get("tools")))}
    return tuple(dict.fromkeys(name for name in _tools_named(case) if isinstance(name, str) and name not in own))


def _tools_named(case: Table) -> Iterator[object]:
    for key in ("ordered", "unordered", "disallowed", "steps", "mocks"):
        for _, call in tables(case.get(key)):
            yield call.get("tool")
            for _, inner in tables(call.get("any_order")):
                yield inner.get("tool")
    offer = case.get("offer")
    if isinstance(offer, list):
        yield from offer


def free_id(wanted: str, taken: Collection[str]) -> str:
    """An id that no other case has: the wanted one, or that with a number behind it, from 2 on."""
    numbered = (f"{wanted}-{number}" for number in range(2, len(taken) + 3))
    return next(found for found in (wanted, *numbered) if found not in taken)


def free_name(name: str, taken: Iterable[str]) -> str:
    """A name with the first number behind it, from 2 on, that makes it one of its own."""
    match = _NUMBERED.fullmatch(name)
    base = match[1] if match else name
    names = set(taken)
    ids = {derived_id(other) for other in names}
    numbered = (f"{base} {number}" for number in range(2, len(names) + 3))
    return next(found for found in numbered if found not in names and derived_id(found) not in ids)


def free_path(path: Path, taken: Iterable[Path]) -> Path:
    """A path at which there is nothing, on the disk or among those taken: this one, or with a number behind its name.
    Looks at the disk."""
    others = set(taken)
    found, number = path, 1
    while found in others or found.exists() or found.is_symlink():
        number += 1
        found = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return found


def suite_name(path: Path) -> str:
    """What a new suite is called by its file: `smart_home.toml` becomes Smart home."""
    words = re.sub(r"[-_\s]+", " ", path.stem).strip()
    return words[:1].upper() + words[1:] or "Suite"


def _at(document: Document, index: int, said: str) -> Restructured:
    return Restructured(document, said, document.cases[index].key)


def _ids(document: Document) -> set[str]:
    return {outline.id for outline in document.cases}


def _with_free_id(case: Table, taken: Collection[str]) -> Table:
    """A case whose id, written or made from its name, no other one has."""
    written, name = case.get("id"), case.get("name")
    wanted = written if isinstance(written, str) else derived_id(name) if isinstance(name, str) else None
    if wanted is None or wanted not in taken:
        return case
    return {"id": free_id(wanted, taken), **{key: value for key, value in case.items() if key != "id"}}


def _sound(document: Document, index: int) -> Table:
    """What a case says; its text as it is typed must be TOML, or what is not would be lost."""
    if index in document.loose:
        raise SpliceError("the text of this case is not TOML: mend it first, or Ctrl+Z takes it back")
    return document.table(index)


def _name(suite: OpenSuite, index: int) -> str:
    return suite.cases[index].name


def named_path(folder: Path, text: str, why_not: Callable[[Path], str | None]) -> Path | str:
    """The path that a text names, relative to a folder and with `.toml` where it has no ending; or why it will not do,
    as a sentence without its end. `why_not` may look at the disk, and says what else is wrong."""
    try:
        path = folder / Path(text).expanduser()
        if path.name == "..":
            raise ValueError(path)
        path = path if path.suffix else path.with_suffix(".toml")
        return why_not(path) or path
    except RuntimeError:  # of expanduser
        return f"there is no home folder for {Path(text).parts[0]}"
    except ValueError:
        return f"{text} names no file"
    except OSError as error:
        return f"{text} cannot be looked at: {error.strerror or error}"
