"""Import results of Evalite, which `evalite run --outputPath results.json` writes.

Evals become cases with their runs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from workbench.authoring.from_calls import case_with_expected_call
from workbench.engine.ai_sdk import native_run
from workbench.engine.external_run import RunDocumentError, parse_run_document
from workbench.exchange.importers.conversations import (
    NO_TOOLS,
    Format,
    ImportedCase,
    ImportedFile,
    ImportedRun,
    MappedPart,
    Note,
    case_name,
    collect_cases,
    first_refusal,
    graded_as,
    merge_cases,
)
from workbench.exchange.importers.source_files import Node, Source, as_text
from workbench.suite.render import Table
from workbench.trajectory.events import SourceScore
from workbench.trajectory.external_run import ExternalRun

_REQUESTS = ("prompt", "input", "question", "query", "userMessage", "user", "message", "content", "text")
"""The keys of an input that is a table. One of them holds the request."""

_CHECKS = {"exact match": "equals", "contains": "contains", "levenshtein": "similar"}
"""The checks for Evalite's scorers of a text, by the scorers' names in lower case."""

_CALLS_SCORER = "tool call accuracy"
_GOOD = 0.8
"""The score from which Evalite shows an eval in green. Evalite has no other verdict on a single eval."""


def _suites(source: Source) -> list[Node]:
    """Return the suites in a file of results.

    Version 0 of the format calls suites `evals`, and the evals of a suite `results`."""
    root = source.root
    found: list[Node] = []
    for key, inner in (("suites", "evals"), ("evals", "results")):
        listed = root.at(key)
        if isinstance(listed.value, list):
            found += [each for each in listed.items() if isinstance(each.at(inner).value, list)]
    return found


def _recognizes(source: Source) -> bool:
    return source.kind == "json" and source.root.at("run").has("runType") and bool(_suites(source))


def _read(source: Source) -> ImportedFile:
    cases, notes = collect_cases(partial(_case, suite, result) for suite, result in _evals(_suites(source)))
    if not cases:
        raise first_refusal(notes, "holds no eval")
    return ImportedFile(merge_cases(cases), notes=notes)


def _evals(suites: list[Node]) -> Iterator[tuple[Node, Node]]:
    for suite in suites:
        for each in suite.items_of("evals", "results"):
            yield suite, each


def _case(suite: Node, result: Node) -> ImportedCase:
    request = _request(result.at("input"))
    group = suite.text_of("variantGroup") or suite.text_of("name")
    table: Table = {"name": case_name(request, result.place), "tags": [group], "user": request}
    case = ImportedCase(result.place, table, (MappedPart("input", "user"),), ())
    case = _expecting(case, result)
    run, why = _run(result)
    if run is None:
        return case.with_notes(Note(result.place, f"the output is not a run: {why}"))
    if run.rounds[-1].calls:
        # The task ended with the model's calls. A run to compare with it must end there too.
        case.table["limits"] = {"max_rounds": len(run.rounds)}
    name = suite.text_of("variantName") or "imported"
    # Version 0 writes times as SQLite does, without a time zone. The times are UTC.
    at = result.text_of("createdAt")
    if " " in at:
        at = at.replace(" ", "T") + "Z"
    imported = ImportedRun(name, run.rounds, at, tuple(_scores(result, case.table)))
    return replace(case, runs=(imported,))


def _request(node: Node) -> str:
    if isinstance(node.value, str):
        return node.value
    if (messages := node.get("messages")) is not None:
        node = messages
    if isinstance(node.value, list):
        asked = [each for each in node.items() if each.text_of("role") in ("", "user")]
        if asked:
            node = asked[-1]
    if text := node.text_of(*_REQUESTS):
        return text
    if node.value is None:
        raise node.refused("has no input")
    return as_text(node.value)


def _expecting(case: ImportedCase, result: Node) -> ImportedCase:
    table, notes, mapped = dict(case.table), list(case.notes), list(case.mapped)
    scores = {score.text_of("name").lower(): score for score in result.items_of("scores")}
    metadata = scores.get(_CALLS_SCORER, Node({})).at("metadata")
    is_flexible = metadata.text_of("mode") == "flexible"
    calls = _expected_calls(result.at("expected"), metadata)
    if calls:
        key = "unordered" if is_flexible else "ordered"
        table[key] = [_expected(call) for call in calls]
        mapped.append(MappedPart("expected calls", key))
        notes.append(Note(case.place, NO_TOOLS, "no tools"))
    elif calls is not None:
        table["expect_no_calls"] = True
        mapped.append(MappedPart("no expected call", "expect_no_calls"))
    if is_flexible:
        table["grading"] = {"accuracy": {"mode": "flexible"}}
    checks: Table = {}
    if isinstance(text := result.value_of("expected"), str) and text:
        for name, score in scores.items():
            if name in _CHECKS:
                checks[score.text_of("name")] = {_CHECKS[name]: text, "required": False}
        if "levenshtein" in scores:
            notes.append(Note(case.place, "Levenshtein becomes `similar`, which compares words: its scores differ"))
        if not checks:
            checks["expected"] = {"similar": text, "required": False}
            notes.append(Note(case.place, "the expected text is compared by `similar`"))
        mapped.append(MappedPart("expected text", "response"))
    if checks:
        table["response"] = checks
    for name, score in scores.items():
        if name != _CALLS_SCORER and score.text_of("name") not in checks:
            own = score.text_of("name")
            why = f"the scorer {own!r} is not mapped, and left out of the score: write it as a check of the answer"
            notes.append(Note(case.place, why))
    if not checks and calls is None:
        table["expect_nothing_yet"] = True
        notes.append(Note(case.place, "no expected calls or text: the case expects nothing yet", "expects nothing yet"))
    return replace(case, table=table, mapped=tuple(mapped), notes=tuple(notes))


def _expected_calls(expected: Node, metadata: Node) -> list[Node] | None:
    """Return the expected calls of an eval; `None` if the file does not say which calls are expected.

    If the eval itself lists no calls, the metadata of its scorer may list them. A scorer in flexible mode lists all
    expected calls. If no call is expected, the metadata shows this in every mode, and the result is an empty list."""
    listed = expected.get("toolCalls") or expected
    if isinstance(listed.value, list) and all(each.has("toolName") for each in listed.items()):
        return listed.items()
    details = metadata.at("details")
    if details.has("matches", "missingToolCalls"):
        return [*details.items_of("matches"), *details.items_of("missingToolCalls")]
    return [] if metadata.has("outputCount") or metadata.has("note") else None


def _expected(call: Node) -> Table:
    tool = call.need("toolName").text()
    given = call.first("input", "args")
    if given is None:
        return {"tool": tool}
    (made,) = _listed(case_with_expected_call({}, tool, given.table())["ordered"])
    return made


def _listed(value: object) -> list[Table]:
    assert isinstance(value, list)
    return value


def _run(result: Node) -> tuple[ExternalRun | None, str]:
    """Return the run that an eval's output describes, or `None` and the reason.

    An output is a text, calls of the AI SDK, or a result of the SDK."""
    output = result.value_of("output")
    if output is None:
        return None, "the task ended with an error"
    document = native_run(output)
    if isinstance(document, str):
        document = {"calls": [], "answer": document}
    elif isinstance(document, list):
        document = {"calls": [document] if document else []}
    try:
        return parse_run_document(document).external_run, ""
    except RunDocumentError as error:
        return None, str(error)


def _scores(result: Node, table: Table) -> Iterator[SourceScore]:
    """Yield the score of an eval, if there is a score: the mean of those scorers that became checks of the case."""
    checks = table.get("response", {})
    assert isinstance(checks, dict)
    found: list[float] = []
    for score in result.items_of("scores"):
        value = score.value_of("score")
        if score.text_of("name").lower() == _CALLS_SCORER or score.text_of("name") in checks:
            found.append(float(value) if isinstance(value, int | float) else 0.0)
    if found:
        average = statistics.fmean(found)
        yield SourceScore("score of Evalite", average, average >= _GOOD, result.place)


EVALITE = Format(_recognizes, _read, {"by": "accuracy", "accuracy": {"answer_checks": "averaged"}} | graded_as("mean"))
