"""The cases of a suite: read the current text of a case, and add, copy, move and remove cases."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from workbench.authoring.document import HEAD, CaseOutline, Document
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun, same_value
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.startup import late_pattern
from workbench.suite.expected_calls import ANY_TOOL
from workbench.suite.model import Case, Suite, derived_id
from workbench.suite.problems import tables
from workbench.suite.render import Table
from workbench.suite.row_files import RowsError, rows_of
from workbench.suite.settings import settings_of
from workbench.suite.suite_file import SuiteFile
from workbench.suite.suite_text import SpliceError
from workbench.suite.variants import UnknownVariantError, variant_of, varied_case, varied_suite

CaseKey = tuple[Path, str]
"""The file of a suite, and the id of one of its cases."""

_EXPECTED = (
    *("ordered", "unordered", "disallowed", "extra_calls", "expect_no_calls", "expect_nothing_yet"),
    *("response_contains", "response", "final"),
)


class CurrentCase(NamedTuple):
    """A case as it is now, with its suite. The suite contains no cases with errors."""

    file: SuiteFile
    suite: Suite
    case: Case


def current_case(suite: OpenSuite, outline: CaseOutline) -> CurrentCase | None:
    """Return a case as it is now, in a suite that can run. Return `None` if the case has errors.

    Other cases with errors are left out of the suite."""
    file = suite.file
    if file.suite is not None:
        return CurrentCase(file, file.suite, file.case_of(outline.index, outline.id))
    # If another case has an error, the suite is read again with this case alone.
    if outline.index in suite.broken_cases:
        return None
    cut = suite.runnable((outline.key,))
    if cut is None or cut.suite is None:
        return None
    return CurrentCase(cut, cut.suite, cut.case_of(0, outline.id))


def has_same_grading(run: PlannedRun, suite: Suite, case: Case) -> bool:
    """Return whether the case still has the expectations and grading options by which a run was graded.

    The run's variant is applied to the case first."""
    try:
        variant = variant_of(suite, run.model)
    except UnknownVariantError:
        return False
    suite, case = varied_suite(suite, variant), varied_case(case, variant)
    # Most cases are identical or equal to the case that ran. This is tested first, because resolving settings takes
    # longer.
    if run.case is not case and not _expect_alike(run.case, case):
        return False
    own_same = run.case is case or (
        run.case.grading == case.grading and run.case.limits == case.limits and run.case.tags == case.tags
    )
    if run.suite.gate.endpoint_faults != suite.gate.endpoint_faults:
        return False
    quarantine_same = (run.suite.gate.quarantine, run.suite.tags) == (suite.gate.quarantine, suite.tags)
    if own_same and quarantine_same and run.suite.grading == suite.grading and run.suite.limits == suite.limits:
        return True
    before, now = run.settings, settings_of(suite, case)
    return before.grading == now.grading and before.limits == now.limits


def stops_at_same_step(case: Case, result: RunResult) -> bool:
    """Return whether the chain, as the case defines it now, would have stopped at the same step as the run."""
    if not case.stop_on_failure:
        return True
    failed = next((step.step for step in result.steps if step.status == Status.FAILED), None)
    if failed is None:
        return result.trajectory.finish is None or result.trajectory.finish.reason != "step failed"
    # Steps that the run never reached have no status.
    return all(step.status is None for step in result.steps[failed:])


def _expect_alike(case: Case, other: Case) -> bool:
    if not all(same_value(getattr(case, name), getattr(other, name)) for name in _EXPECTED):
        return False
    return same_value(_steps_expected(case), _steps_expected(other))


def _steps_expected(case: Case) -> list[object]:
    return [(step.tool, step.args, step.forbidden_args, step.only_args) for step in case.steps]


_NUMBERED = late_pattern(r"(.*\S)\s+\d+")


@dataclass(frozen=True)
class CaseListChange:
    """The result of a change: the new document, a summary, and the case that gets the cursor.

    `case` is the key of that case, or `None` for the suite itself. `deleted_key` is the key of a deleted case, which
    gets the cursor after an undo."""

    document: Document
    summary: str
    case: str | None
    deleted_key: str | None = None

    @property
    def cursor_key(self) -> str | None:
        """The key of the case that gets the cursor after an undo, or `None` for the suite itself."""
        return self.deleted_key or self.case


def index_of(suite: OpenSuite, key: str | None) -> int:
    """Return the index of the case with this key, or `HEAD` for the key `None`.

    Raises SpliceError for an unknown key."""
    if key is None:
        return HEAD
    for outline in suite.cases:
        if outline.key == key:
            return outline.index
    for outline in suite.run_cases:
        if outline.key == key:
            raise SpliceError(row_note(suite, outline))
    raise SpliceError(f"the case is no longer in {suite.path.name}")


def row_note(suite: OpenSuite, row: CaseOutline) -> str:
    """Return the message that a row of a table cannot be edited separately. The message names its case."""
    return f"this is a row of the case {suite.cases[row.index].name} above: edit that case, which changes all its rows"


def row_file(suite: OpenSuite, row: CaseOutline) -> str:
    """Return the path of a row's file, as written in the case. Return "" if the row is in the suite itself."""
    each = suite.document.table(row.index).get("each")
    return each if isinstance(each, str) else ""


def line_of_row(suite: OpenSuite, row: CaseOutline) -> int:
    """Return the line of a row in its file. If the file is no longer readable, return 1."""
    try:
        lines = rows_of(row_file(suite, row), suite.path.parent).lines
    except RowsError:
        return 1
    at = next((at for at, outline in enumerate(suite.rows[row.index]) if outline.key == row.key), 0)
    return lines[at] if at < len(lines) else 1


def index_after(suite: OpenSuite, key: str | None) -> int:
    """Return the index after the case with this key, or the number of cases if the key is unknown."""
    for outline in (*suite.cases, *suite.run_cases):
        if outline.key == key:
            return outline.index + 1
    return len(suite.cases)


def with_new_case(suite: OpenSuite, index: int, case: Table) -> CaseListChange:
    """Add a case at an index. If the id derived from the case's name is taken, the case gets a different id."""
    case = _with_free_id(case, _ids(suite.document))
    return _at(suite.document.with_new_case(index, case), index, f"New case {case['name']}")


def with_new_cases(document: Document, cases: Iterable[Table], message: str) -> CaseListChange:
    first = len(document.cases)
    for at, case in enumerate(cases, first):  # one by one, because each id must differ from the ids before it
        document = document.with_new_case(at, _with_free_id(case, _ids(document)))
    return _at(document, first, message)


def with_copy(suite: OpenSuite, index: int) -> CaseListChange:
    """Duplicate a case, including its comments, directly after the original. The copy gets a different name and id."""
    document = suite.document
    case = _sound(document, index)
    name = free_name(_name(suite, index), [outline.name for outline in document.cases])
    copied = {**case, "name": name}
    if "id" in case:
        copied["id"] = free_id(suite.cases[index].id, _ids(document))
    copied = _with_free_id(copied, _ids(document))
    # The copy is first added as text, which keeps its comments. Then it gets its own name and id.
    document = document.with_new_block(index + 1, document.block(index)).with_case(index + 1, copied)
    return _at(document, index + 1, f"Duplicated {_name(suite, index)}")


def with_name(suite: OpenSuite, index: int, name: str) -> CaseListChange:
    """Rename the case at an index, or the suite if the index is `HEAD`.

    A saved case keeps its id, because the id identifies its runs."""
    document = suite.document
    if index == HEAD:
        return CaseListChange(document.with_header("name", name), f"Renamed the suite to {name}", None)
    case, outline = _sound(document, index), document.cases[index]
    renamed = {**case, "name": name}
    # If the case was saved, runs refer to the id derived from the old name, so that id is written into the case.
    if "id" not in case and suite.is_saved(outline.id):
        renamed = {"id": outline.id, **renamed}
    elif "id" not in case:
        renamed = _with_free_id(renamed, _ids(document) - {outline.id})
    return _at(document.with_case(index, renamed), index, f"Renamed {outline.name} to {name}")


def with_moved(suite: OpenSuite, index: int, to: int) -> CaseListChange:
    direction = "up" if to < index else "down"
    return _at(suite.document.with_case_moved(index, to), to, f"Moved {_name(suite, index)} {direction}")


def without(suite: OpenSuite, index: int) -> CaseListChange:
    """Delete a case. The cursor goes to the next case, or to the last case if there is no next."""
    document = suite.document.without_case(index)
    after = document.cases[min(index, len(document.cases) - 1)].key if document.cases else None
    return CaseListChange(document, f"Deleted {_name(suite, index)}", after, suite.cases[index].key)


def moved_to_suite(source: OpenSuite, index: int, target: OpenSuite) -> tuple[CaseListChange, CaseListChange]:
    """Move a case, including its comments, to the end of another suite. Return the changes of source and target."""
    case = _sound(source.document, index)
    at = len(target.document.cases)
    arrived = target.document.with_new_block(at, source.document.block(index))
    free = _with_free_id(case, _ids(target.document))
    if free != case:
        arrived = arrived.with_case(at, free)
    name = _name(source, index)
    left = without(source, index)
    return (
        replace(left, summary=f"Moved {name} to {target.path.name}"),
        _at(arrived, at, f"Moved {name} here from {source.path.name}"),
    )


def tools_used(case: Table) -> tuple[str, ...]:
    """Return the names of the tools that a case uses but does not define, without duplicates."""
    own = {ANY_TOOL, *(tool.get("name") for _, tool in tables(case.get("tools")))}
    named: dict[str, None] = {}
    for name in _tools_named(case):
        if isinstance(name, str) and name not in own:
            named[name] = None
    return tuple(named)


def _tools_named(case: Table) -> Iterator[object]:
    for key in ("ordered", "unordered", "disallowed", "steps", "mocks", "setup", "answers"):
        for _, call in tables(case.get(key)):
            yield call.get("tool")
            for _, inner in tables(call.get("any_order")):
                yield inner.get("tool")
    final = case.get("final")
    if isinstance(final, dict):
        for key in ("changes", "state"):
            for _, call in tables(final.get(key)):
                yield call.get("tool")
    offer = case.get("offer")
    if isinstance(offer, list):
        yield from offer


def free_id(case_id: str, taken: Collection[str]) -> str:
    """Return the id `case_id`. If it is taken, append the first free number (from 2)."""
    found, number = case_id, 1
    while found in taken:
        number += 1
        found = f"{case_id}-{number}"
    return found


def free_name(name: str, taken: Iterable[str]) -> str:
    """Append a number (from 2) to a name. Both the new name and the id derived from it are free."""
    match = _NUMBERED.fullmatch(name)
    # "Copy 3" is followed by "Copy 4", not by "Copy 3 2".
    base = match[1] if match else name
    names = set(taken)
    ids = {derived_id(other) for other in names}
    number = 2
    while f"{base} {number}" in names or derived_id(f"{base} {number}") in ids:
        number += 1
    return f"{base} {number}"


def free_path(path: Path, taken: Iterable[Path]) -> Path:
    """Return a path for a new file. If `path` exists or is in `taken`, append a number to its stem.

    Reads the file system."""
    others = set(taken)
    found, number = path, 1
    while found in others or found.exists() or found.is_symlink():  # a dangling link does not `exist`
        number += 1
        found = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return found


def suite_name(path: Path) -> str:
    """Return the default name of the suite in a file: "Smart home" for `smart_home.toml`."""
    words = re.sub(r"[-_\s]+", " ", path.stem).strip()
    return words[:1].upper() + words[1:] or "Suite"


def _at(document: Document, index: int, message: str) -> CaseListChange:
    return CaseListChange(document, message, document.cases[index].key)


def _ids(document: Document) -> set[str]:
    return {outline.id for outline in document.cases}


def _with_free_id(case: Table, taken: Collection[str]) -> Table:
    name, wanted = case.get("name"), case.get("id")
    if not isinstance(wanted, str) and isinstance(name, str):
        wanted = derived_id(name)
    if not isinstance(wanted, str) or wanted not in taken:
        return case
    if "id" in case:
        return {**case, "id": free_id(wanted, taken)}
    # The id goes first, where people write it. A key that the table already has keeps its place.
    return {"id": free_id(wanted, taken), **case}


def _sound(document: Document, index: int) -> Table:
    """Return the table of a case.

    Raises SpliceError if the case's text is not TOML, because a change would lose that text."""
    if index in document.unparsed:
        raise SpliceError("the text of this case is not TOML: correct it first, or undo it with Ctrl+Z")
    return document.table(index)


def _name(suite: OpenSuite, index: int) -> str:
    return suite.cases[index].name


def named_path(folder: Path, text: str, why_not: Callable[[Path], str | None]) -> Path | str:
    """Return the path that the user typed, relative to a folder. `.toml` is added if the path has no suffix.

    If the path cannot be used, return the reason as text without a full stop. `why_not` makes further checks and may
    read the disk."""
    try:
        path = folder / Path(text).expanduser()
        if path.name == "..":  # `with_suffix` would make a file name of it
            raise ValueError(path)
        if not path.suffix:
            path = path.with_suffix(".toml")
        return why_not(path) or path
    except RuntimeError:  # from expanduser
        return f"there is no home folder for {Path(text).parts[0]}"
    except ValueError:
        return f"{text} is not a file name"
    except OSError as error:
        return f"{text} cannot be read: {error.strerror or error}"
