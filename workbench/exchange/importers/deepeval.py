"""Import goldens (test cases) of DeepEval.

The files are JSON, JSON lines or CSV, as `EvaluationDataset.save_as` writes them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from workbench.exchange.importers.conversations import (
    CallRegistry,
    Conversation,
    Format,
    ImportedCase,
    ImportedFile,
    ImportedRun,
    MappedPart,
    Note,
    case_name,
    case_of,
    graded_as,
    imported_of,
    not_imported,
    with_reference_calls,
)
from workbench.exchange.importers.match import Match, match_in
from workbench.exchange.importers.source_files import Node, Source, as_text
from workbench.trajectory.events import Message, ToolCall
from workbench.trajectory.external_run import ExternalResult, ExternalRound

_READ = {"input", "name", "expected_output", "expected_tools", "actual_output", "tools_called"}


def _keys(source: Source) -> set[str]:
    # A CSV record lacks empty cells, but the first line names all columns.
    keys = set(source.columns)
    if isinstance(first := source.beginning.value, dict):
        keys.update(first)
    return keys


def _recognizes(source: Source) -> bool:
    keys = _keys(source)
    return ("input" in keys and bool(keys & {"expected_tools", "tools_called"})) or _is_conversational(keys)


def _is_conversational(keys: set[str]) -> bool:
    return "scenario" in keys and bool(keys & {"expected_outcome", "turns", "user_description"})


def _read(source: Source) -> ImportedFile:
    return imported_of(source.records, partial(_case, match=match_in(source)), "golden")


def _case(record: Node, match: Match | None) -> ImportedCase:
    if _is_conversational({*record.table()}):
        raise record.refused("is a conversational golden: its requests come from a simulated user, not from the file")
    request = record.need("input").text()
    name = record.text_of("name") or case_name(request, record.place)
    case = case_of(Conversation(record.place, (Message("user", request),), name=name))
    case = replace(case, mapped=(MappedPart("input", "user"),))
    ids = CallRegistry()
    wanted, of_wanted = _calls(record, "expected_tools", ids)
    made, of_made = _calls(record, "tools_called", ids)
    notes: list[Note] = []
    if answer := record.text_of("expected_output"):
        case.table["response"] = {"similar": answer}
        notes.append(Note(record.place, "expected_output is compared by `similar`; in DeepEval you choose the metric"))
    if wanted:
        # By default, DeepEval ignores the order of calls and all further calls.
        case = with_reference_calls(
            case, wanted, of_wanted, key="unordered", match=match, answers=[[call] for call in wanted]
        )
        if match is None:
            case.table["extra_calls"] = "allow"
        if match is None and any(call.arguments for call in wanted):
            notes.append(Note(record.place, "arguments are checked, which DeepEval does only with INPUT_PARAMETERS"))
    else:
        notes.append(Note(record.place, "no expected_tools: DeepEval omits the key also where no call is expected"))
        if answer:
            case = replace(case, table=case.table_without("expect_nothing_yet"), notes=())
    # The golden's calls may have results, which become mocks for the expected calls.
    if made:
        mocked = with_reference_calls(replace(case, mapped=(), notes=()), made, of_made)
        notes += [note for note in mocked.notes if note.kind == "no mock"]
        if "mocks" in mocked.table:
            case.table["mocks"] = mocked.table["mocks"]
            case = replace(case, mapped=(*case.mapped, *(each for each in mocked.mapped if each.into == "mocks")))
    if others := record.other_keys(_READ):
        notes.append(not_imported(record.place, ", ".join(others)))
    run = _run(record, made, of_made)
    if run is not None and made:
        notes.append(
            Note(record.place, "the file does not state the order of the calls: the run has them in one answer")
        )
    return replace(case.with_notes(*notes), runs=(run,) if run is not None else ())


def _calls(record: Node, key: str, ids: CallRegistry) -> tuple[list[ToolCall], dict[str, ExternalResult]]:
    """Return the calls that a golden lists under `key`, and their results by call id.

    In CSV, the calls are a JSON text."""
    calls: list[ToolCall] = []
    results: dict[str, ExternalResult] = {}
    if not record.value_of(key):
        return calls, results
    for each in record.at(key).parsed().listed():
        arguments = each.first("inputParameters", "input_parameters") or Node({})
        call = ids.call(each, "", each.text_of("name"), arguments.value)
        calls.append(call)
        if each.has("output"):
            results[call.id] = ExternalResult(as_text(each.value_of("output")))
    return calls, results


def _run(record: Node, calls: list[ToolCall], results: dict[str, ExternalResult]) -> ImportedRun | None:
    rounds: list[ExternalRound] = []
    if calls:
        rounds.append(ExternalRound(calls=tuple(calls), results=results))
    if answer := record.text_of("actual_output"):
        rounds.append(ExternalRound(answer))
    if not rounds:
        return None
    return ImportedRun("imported", tuple(rounds))


DEEPEVAL = Format(_recognizes, _read, graded_as("every"))
