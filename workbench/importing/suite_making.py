"""Makes the text of a suite out of imported cases, as a person would write it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.authoring.accepting.redaction import places_without_secrets, table_without_secrets
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.importing.bounds import RefusedError
from workbench.importing.imported import Imported, ImportedCase, Note, not_imported
from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile, parse_suite
from workbench.suite.model import derived_id
from workbench.suite.render import Table, block_text, suite_text
from workbench.suite.sameness import same
from workbench.suite.tables import NEW_SUITES_FREE

RULE_OF_NEW_SUITES: Table = {"grading": {"extra_calls": NEW_SUITES_FREE}}
"""What stands at the top of a suite of recorded conversations beside its name."""


@dataclass(frozen=True)
class MadeSuite:
    """A suite that loads, the cases in it in their order, and what is said of no one case."""

    file: SuiteFile
    cases: tuple[ImportedCase, ...]
    notes: tuple[Note, ...]


def made_suite(imported: Imported, name: str, path: Path, secrets: Secrets) -> MadeSuite:
    """Returns the suite of all cases that format 1 can say; the others are among the notes. Raises RefusedError where
    no case is left."""
    shared = table_without_secrets(dict(imported.suite), {}, secrets)
    top: Table = {"format": 1, "name": name} | shared
    notes = [*imported.notes, *(Note("", why) for why in places_without_secrets(dict(imported.suite), shared))]
    cases: list[ImportedCase] = []
    for case in imported.cases:
        try:
            table = table_without_secrets(case.table, {}, secrets)
            block_text(("cases",), table, of_array=True)
        except ValueError as error:
            notes.append(not_imported(case.place, str(error)))
        else:
            replaced = (Note(case.place, why) for why in places_without_secrets(case.table, table))
            cases.append(replace(case, table=table, notes=(*case.notes, *replaced)))
    file = _file(top, cases, path, secrets)
    if file.suite is None:
        sound: list[ImportedCase] = []
        for case in cases:
            alone = _file(top, [case], path, secrets)
            if alone.suite is not None:
                sound.append(case)
            else:
                notes.append(not_imported(case.place, alone.errors[0].message))
        cases, file = sound, _file(top, sound, path, secrets)
    if not cases or file.suite is None:
        why = notes[-1] if notes else Note("", "holds no case")
        raise RefusedError(why.why, why.place)
    return MadeSuite(file, tuple(cases), tuple(notes))


def fitted(case: Table, top: Table) -> Table:
    """Returns a case for a suite that has more at its top than the one it was made for: without what the suite says
    already, and asking the model the same."""
    shared, tools = _tools(top), _tools(case)
    own = [tool for tool in tools if not any(same(tool, other) for other in shared)]
    names = [str(tool["name"]) for tool in tools]
    changed = {key: value for key, value in case.items() if key != "tools"}
    if own:
        changed["tools"] = own
    if "offer" not in case and ("servers" in top or not {str(tool["name"]) for tool in shared} <= set(names)):
        changed["offer"] = names
    if (prompt := case.get("system", "")) == top.get("system", ""):
        changed.pop("system", None)
    else:
        changed["system"] = prompt
    return changed


def _file(top: Table, cases: Sequence[ImportedCase], path: Path, secrets: Secrets) -> SuiteFile:
    given = _tools(top)
    tools, tables = _with_shared_tools(_with_ids(case.table for case in cases), bool(given) or "servers" in top)
    tools = [*given, *tools]
    pieces = [suite_text(top | ({"tools": tools} if tools else {})).rstrip("\n")]
    for case, table in zip(cases, tables, strict=True):
        comments = [f"# {one_line(secrets.redact(why))}" for why in dict.fromkeys(note.why for note in case.notes)]
        pieces.append("\n".join([*comments, block_text(("cases",), table, of_array=True)]))
    return parse_suite("\n\n".join(pieces) + "\n", path)


def _with_ids(tables: Iterable[Table]) -> list[Table]:
    """Returns cases whose ids are unique; only those have one of their own whose name makes none."""
    taken: set[str] = set()
    found = []
    for table in tables:
        wanted = table["id"] if isinstance(table.get("id"), str) else derived_id(str(table["name"]))
        case_id, number = str(wanted), 1
        while case_id in taken:
            number += 1
            case_id = f"{wanted}-{number}"
        taken.add(case_id)
        written = {key: value for key, value in table.items() if key != "id"}
        found.append({"id": case_id, **written} if case_id != derived_id(str(table["name"])) else written)
    return found


def _with_shared_tools(tables: list[Table], offers_others: bool) -> tuple[list[Table], list[Table]]:
    """Returns the tools for the suite, which several cases offer alike, and the cases: with tools of their own, and
    with the names of those on offer where that is not all of the suite's, which may offer others, too."""
    definitions: dict[str, list[Table]] = {}
    offered: Counter[str] = Counter()
    for table in tables:
        for tool in _tools(table):
            name = str(tool["name"])
            offered[name] += 1
            known = definitions.setdefault(name, [])
            if not any(same(tool, other) for other in known):
                known.append(tool)
    most = min(2, len(tables))
    shared = {name: known[0] for name, known in definitions.items() if len(known) == 1 and offered[name] >= most}
    found = []
    for table in tables:
        tools = _tools(table)
        names = [str(tool["name"]) for tool in tools]
        own = [tool for tool in tools if tool["name"] not in shared]
        changed = {key: value for key, value in table.items() if key != "tools"}
        if own:
            changed["tools"] = own
        if "tools" in table and "offer" not in table and (offers_others or not shared.keys() <= set(names)):
            changed["offer"] = names
        found.append(changed)
    return list(shared.values()), found


def _tools(table: Table) -> list[Table]:
    tools = table.get("tools")
    return tools if isinstance(tools, list) else []
