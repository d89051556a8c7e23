"""Import suites of Arcade evals.

`workbench.exchange.importers.scripts` has run their Python files. This module reads what they printed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from workbench.evaluation.client_servers import ClientConfigError, Reading, read_servers, server_name
from workbench.exchange.importers.conversations import (
    Format,
    ImportedCase,
    ImportedFile,
    MappedPart,
    Note,
    case_of,
    collect_cases,
    first_refusal,
    graded_as,
    last_request,
    not_imported,
    notes_without,
    tool_of,
    without_tool_note,
)
from workbench.exchange.importers.messages import conversation_of
from workbench.exchange.importers.source_files import Node, Source, bare_values
from workbench.numerals import counted, setting_text
from workbench.suite.render import Table, holds_null
from workbench.trajectory.events import JsonValue

_USUAL: dict[str, JsonValue] = {
    "fail_threshold": 0.8,
    "warn_threshold": 0.9,
    "fail_on_tool_selection": True,
    "fail_on_tool_call_quantity": True,
    "tool_selection_weight": 1.0,
}
"""Arcade's default rubric, which is also the default of `critics`."""


def _recognizes(source: Source) -> bool:
    return source.root.has("arcade_suites")


def suite_documents(root: dict[str, JsonValue]) -> list[dict[str, JsonValue]]:
    """Return a document for each suite file to write.

    Suites with the same servers share a file. Cases that compare tracks (sets of tools) get their own file, because the
    tools of a track may be offered only in this track."""
    documents: dict[str, dict[str, JsonValue]] = {}

    def add(suite: dict[str, JsonValue], *offered: JsonValue) -> None:
        document = documents.setdefault(json.dumps(offered), {"arcade_suites": []})
        held = document["arcade_suites"]
        assert isinstance(held, list)
        held.append(suite)

    for node in Node(root).need("arcade_suites").items():
        suite = node.table()
        servers: dict[bool, list[JsonValue]] = {True: [], False: []}
        for server in node.items_of("servers"):
            servers[server.value_of("track") is None].append(server.value)
        if node.items_of("cases"):
            tools = suite.get("tools") if servers[True] else None
            add({**suite, "servers": servers[True], "tracks": [], "comparative": []}, servers[True], tools)
        if node.items_of("comparative"):
            compared = {**suite, "servers": servers[False], "tools": [], "cases": []}
            add(compared, servers[False], suite.get("tracks"))
    return list(documents.values()) or [root]


def _read(source: Source) -> ImportedFile:
    suites = source.root.need("arcade_suites").items()
    notes = []
    for each in source.root.items_of("problems"):
        notes.append(not_imported(each.text_of("name"), each.text_of("error")))
    every = []
    for suite in suites:
        every += [*suite.items_of("cases"), *suite.items_of("comparative")]
    if not every:
        raise first_refusal(notes, "holds no suite with cases")
    # The suite gets the rubric (thresholds and weights) of the first case. A case with another rubric gets its own.
    usual = _rubric(every[0])
    top: Table = {"limits": {"max_rounds": 1}, "grading": _grading(usual, _USUAL, {"arcade_compatible": True})}
    systems = {case.text_of("system") for case in every}
    system = systems.pop() if len(systems) == 1 else ""
    if system:
        top["system"] = system
    # All suites of one document have the same servers and tracks, so only those of the first suite are read.
    servers = _servers(source.root, suites[0].items_of("servers"), notes)
    if shared := servers.pop(None, []):
        top["servers"] = shared
        if tools := list(map(tool_of, suites[0].items_of("tools"))):
            top["tools"] = tools
    variants: list[Table] = []
    for track in suites[0].items_of("tracks"):
        name = track.need("name").text()
        variants.append(_variant(name, servers.get(name, []), list(map(tool_of, track.items_of("tools")))))
    if variants:
        top["variants"] = variants
    makers: list[Callable[[], ImportedCase]] = []
    for suite in suites:
        name = suite.need("name").text()
        of_case: Table = {}
        if len(suites) == 1:
            top["name"] = name
        else:
            of_case["tags"] = [name]
        if not shared and not variants:
            of_case["tools"] = list(map(tool_of, suite.items_of("tools")))
        names = _dotted_names(suite.items_of("tools"))
        for case in (*suite.items_of("cases"), *suite.items_of("comparative")):
            own_system = "" if system else case.text_of("system")
            makers.append(partial(_case, case, names, usual, of_case, own_system))
    cases_made, others = collect_cases(makers)
    if not cases_made:
        raise first_refusal([*notes, *others], "holds no suite with cases")
    if len(suites) > 1:
        notes.append(Note("", f"{len(suites)} suites became one: each case has the name of its suite as a tag"))
    return ImportedFile(cases_made, top, (*notes, *others))


def _servers(root: Node, added: Iterable[Node], notes: list[Note]) -> dict[str | None, list[Table]]:
    """Return the servers of a suite as tables, by track. Servers without a track have the key `None`.

    Secrets become variables, which `notes` names."""
    found: dict[str | None, list[Table]] = {}
    reading = Reading("the servers of the file", None, Path(), typed=True)
    taken: set[str] = set()
    for server in added:
        entry: Table = dict(server.need("entry").table())
        entry["cwd"] = root.text_of("cwd") or None
        if entry.get("command") in ("python", "python3") and root.has("python"):
            entry["command"] = root.text_of("python")
        if isinstance(url := entry.get("url"), str):
            entry["url"] = _mcp_address(url)
        name = _server_name(entry, taken)
        track = server.value_of("track")
        try:
            tables = read_servers({name: entry}, reading).tables
        except ClientConfigError as error:
            notes.append(not_imported(name, str(error)))
            continue
        found.setdefault(track if isinstance(track, str) else None, []).extend(tables)
    for variable, value in reading.variables.items():
        why = f"a server reads ${variable}: set this variable"
        if value is not None:
            why = f"a value that may be secret became ${variable}: set this variable"
        notes.append(Note("", why))
    notes += (Note("", each) for each in reading.notes)
    return found


def _server_name(entry: Table, used_names: set[str]) -> str:
    name = entry.pop("name", None)
    if not isinstance(name, str) or not name:
        args = entry.get("args")
        name = str(urlsplit(str(entry.get("url"))).hostname or "server")
        if isinstance(args, list):
            name = server_name([str(entry["command"]), *map(str, args)])
    unique, number = name, 1
    while unique in used_names:
        number += 1
        unique = f"{name}-{number}"
    used_names.add(unique)
    return unique


def _mcp_address(url: str) -> str:
    """Return the address to which Arcade connects: it appends `/mcp` unless a part of the path is `mcp`."""
    parts = urlsplit(url)
    segments = list(filter(None, parts.path.split("/")))
    if "mcp" not in segments:
        segments.append("mcp")
    return parts._replace(path="/" + "/".join(segments)).geturl()


def _variant(name: str, servers: list[Table], tools: list[Table]) -> Table:
    variant: Table = {"name": " ".join(name.split())}
    if servers:
        variant["servers"] = servers
    if tools:
        variant["tools"] = tools
    return variant


def _dotted_names(tools: Iterable[Node]) -> dict[str, str]:
    names = {}
    for tool in tools:
        name = tool.text_of("name")
        names[name.replace(".", "_")] = name
    return names


def _rubric(case: Node) -> dict[str, JsonValue]:
    rubric = case.at("rubric")
    found = dict(_USUAL)
    for key in _USUAL:
        value = rubric.get(key)
        if value is None:
            continue
        if not isinstance(value.value, int | float):
            raise value.refused("must be a number, or true or false")
        found[key] = value.value
    return found


def _grading(rubric: dict[str, JsonValue], usual: dict[str, JsonValue], critics: Table) -> Table:
    grading: Table = {}
    critics = dict(critics)
    for key, value in rubric.items():
        if value != usual[key]:
            keys = grading if key.endswith("_threshold") else critics
            keys[key] = value
    if critics:
        grading["critics"] = critics
    return grading


def _case(case: Node, names: dict[str, str], usual: dict[str, JsonValue], of_case: Table, system: str) -> ImportedCase:
    name = case.need("name").text()
    messages = bare_values(case.items_of("messages"))
    messages.append({"role": "user", "content": case.need("user").text()})
    document: dict[str, JsonValue] = {"system": system, "name": name}
    conversation = conversation_of(Node({**document, "messages": messages}, case.place))
    asked = case_of(conversation, last_request(conversation.messages))
    table = asked.table_without("expect_nothing_yet")
    table |= of_case
    own = _grading(_rubric(case), usual, {})
    notes = notes_without(without_tool_note(asked.notes), "no tools", "expects nothing yet")
    if not case.has("tracks"):
        expected, mapped = _expectation(case, names, notes)
        calls = expected.get("unordered")
        if isinstance(calls, list) and len(calls) > 1:
            # In Arcade, all calls of a case share one list of critics.
            critics = _grading(_rubric(case), usual, {"weights": _weights_of(calls)})["critics"]
            own["critics"] = critics
        if own:
            table["grading"] = own
        return ImportedCase(case.place, table | expected, (*asked.mapped, *mapped), tuple(notes))
    if own:
        table["grading"] = own
    tracks = []
    every: dict[MappedPart, None] = {}
    for track in case.items_of("tracks"):
        expected, mapped = _expectation(track, {}, notes)
        tracks.append({"name": " ".join(track.need("track").text().split()), **expected})
        every.update(dict.fromkeys(mapped))
    table["variants"] = tracks
    tracks_mapped = MappedPart(counted(len(tracks), "track"), "variants")
    return ImportedCase(case.place, table, (*asked.mapped, tracks_mapped, *every), tuple(notes))


def _weights_of(calls: Iterable[Table]) -> Table:
    """Remove the weights from the checks of calls, and return the weights by argument name."""
    weights: Table = {}
    for call in calls:
        args = call["args"]
        assert isinstance(args, dict)
        for name, check in args.items():
            weights[name] = check.pop("weight")
            if check.keys() == {"equals"} and isinstance(check["equals"], str | int | float):
                args[name] = check["equals"]
    return weights


def _expectation(case: Node, names: dict[str, str], notes: list[Note]) -> tuple[Table, list[MappedPart]]:
    calls = case.need("calls").items()
    critics = {}
    for critic in case.need("critics").items():
        critics[critic.need("field").text()] = critic
    expected: list[Table] = []
    named: set[str] = set()
    for call in calls:
        tool, given = call.need("tool").text(), call.need("args")
        args: Table = {}
        for field in given.table():
            named.add(field)
            value = Node(given.table()[field], f"{given.place}.{field}")
            check = _check(field, critics.get(field), value, notes)
            if check is not None:
                args[field] = check
        expected.append({"tool": names.get(tool.replace(".", "_"), tool), "args": args})
    if not expected:
        return {"expect_no_calls": True}, [MappedPart("no expected call", "expect_no_calls")]
    of_call = expected[0]["args"]
    assert isinstance(of_call, dict)
    for field, critic in critics.items():
        if field in named:
            continue
        # If no call has the argument of a critic, Arcade compares null with the argument that the model sends.
        check = _check(field, critic, Node(None, critic.place), notes)
        if check is not None:
            of_call[field] = check
    mapped = [MappedPart("expected calls", "unordered")]
    graded = sum(critic.text_of("critic") != "NoneCritic" for critic in critics.values())
    if graded:
        mapped.append(MappedPart(counted(graded, "critic"), "checks with their weights"))
    return {"unordered": expected}, mapped


def _check(name: str, critic: Node | None, value: Node, notes: list[Note]) -> Table | None:
    kind = "NoneCritic"
    weight: object = 0
    if critic is not None:
        kind = critic.text_of("critic")
        # A weight is a number or one of Arcade's names, which suites also accept.
        weight = critic.need("weight").value

    def refused(reason: str) -> Table | None:
        notes.append(Note(value.place, f"the {kind} of {name} is not mapped: {reason}"))
        return None

    if critic is None or kind in ("NoneCritic", "BinaryCritic", "custom"):
        if kind == "custom" and critic is not None:
            kind = critic.text_of("class")
            refused(
                "its class is defined in the script. Write a check with `python`; until then the argument has no weight"
            )
            weight = 0
        if kind == "NoneCritic":
            weight = 0
        if value.value is None:
            return {"equals_null": True, "weight": weight}
        if holds_null(value.value):
            return refused("its expected value contains null, which TOML lacks")
        return {"equals": value.value, "weight": weight}
    if value.value is None:
        return refused("it has no expected value to compare with")
    if kind == "NumericCritic":
        near = _finite(value.value)
        if near is None:
            return refused("its expected value is not a number")
        exact = value.value if isinstance(value.value, int) and not isinstance(value.value, bool) else near
        bounds = bare_values(critic.need("value_range").items())
        return {"near": exact, "value_range": bounds, **_option(critic, "match_threshold"), "weight": weight}
    if kind == "SimilarityCritic":
        # Arcade compares the text of a Python value, such as `True` and not `true`.
        text = str(value.value)
        if isinstance(value.value, list):
            text = " ".join(map(str, value.value))
        return {"similar": text, **_option(critic, "similarity_threshold", "threshold"), "weight": weight}
    if kind == "DatetimeCritic":
        times: Table = {}
        for key in ("tolerance", "max_difference"):
            if (each := critic.get(key)) is not None:
                times[key] = f"{setting_text(_seconds(each))}s"
        return {"datetime": value.text(), **times, "weight": weight}
    return refused("no such critic is known")


def _finite(value: JsonValue) -> float | None:
    if not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _seconds(node: Node) -> float:
    if isinstance(node.value, bool) or not isinstance(node.value, int | float):
        raise node.refused("must be a number of seconds")
    return node.value


def _option(critic: Node, key: str, name: str = "") -> Table:
    if not critic.has(key):
        return {}
    return {name or key: critic.value_of(key)}


ARCADE = Format(_recognizes, _read, graded_as("last"))
