"""The requirements in a case's `final`: changes and statements of a run, and the state of tools after the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from workbench.checks.check import EMPTY_CONTEXT, Check, CheckContext, all_hold, describe, evaluate, verdict_text
from workbench.checks.patterns import CheckError
from workbench.checks.values import describe_value, json_equal
from workbench.grading.call_results import result_value
from workbench.grading.grade import Issue
from workbench.grading.matching import MAX_PAIRS, best_pairing, gain_table
from workbench.grading.pairing_issues import describe_call, describe_expected, expected_result
from workbench.numerals import counted
from workbench.startup import late_pattern
from workbench.suite.expected_calls import ExpectedCall, same_tool
from workbench.suite.model import Case, FinalState, FinalTable
from workbench.trajectory.events import JsonValue, OwnCallAnswered, ToolDefinition
from workbench.trajectory.trajectory import CallRecord, Trajectory

_MAX_SHOWN = 200
"""The most characters of a tool error that a message quotes."""


def final_issues(case: Case, trajectory: Trajectory, context: CheckContext = EMPTY_CONTEXT) -> Iterator[Issue]:
    """Yield an issue for each unmet requirement of `final`.

    These issues are the same under every grader and affect no score.

    Raises CheckError if a check cannot be evaluated, or if the tools of the run were not asked for a state."""
    if case.final is None or trajectory.finish is None:
        return
    if case.final.changes is not None:
        yield from _change_issues(case.final.changes, case.final, trajectory, context)
    yield from _said_issues(case.final, trajectory)
    if case.final.goal is not None:
        yield from _goal_issues(case.final.goal, trajectory, context)
    if case.final.state and trajectory.finish.reason == "sent too much":
        yield Issue("final state", "not asked: the run ended with an answer that is too large")
    elif case.final.state and replays_changes(case, trajectory):
        yield Issue("final state", "not asked: the changes were replayed, so this run's own tools did not make them")
    else:
        for number, state in enumerate(case.final.state):
            yield from _state_issues(number, state, trajectory, context)


def met_requirements(final: FinalTable, issues: Sequence[Issue]) -> tuple[list[str], int]:
    """Return the requirements of `final` that a graded run met, in words, and the number of all requirements."""
    wanted: list[tuple[str, bool]] = []
    unmet = {(issue.kind, issue.expected) for issue in issues if issue.decides}
    for change in final.changes or ():
        text = describe_expected(change)
        missed = ("missing change", text) in unmet or ("wrong change", text) in unmet
        wanted.append((f"changes  {text}", not missed))
    if final.changes is not None:
        extra = any(kind == "unexpected change" for kind, _ in unmet)
        wanted.append(("changes  nothing else" if final.changes else "changes  nothing", not extra))
    for said in final.texts:
        text = describe_value(said.text)
        missed = any(
            each.kind == "not said" and (each.expected, each.tool) == (text, said.after_tool) for each in issues
        )
        wanted.append((f"says  {text}" + (f" after {said.after_tool}" if said.after_tool else ""), not missed))
    for state in final.state:
        asked = state_request_text(state.tool, state.args)
        missed = any(each.kind == "final state" and each.why.startswith((asked, "not asked")) for each in issues)
        wanted.append((f"state  {asked}", not missed))
    if final.goal is not None:
        wanted.append(("goal", not any(kind == "final goal" for kind, _ in unmet)))
    return [text for text, met in wanted if met], len(wanted)


def replays_changes(case: Case, trajectory: Trajectory) -> bool:
    """Return whether a fork replays results of calls that changed something.

    The fork's own tools did not execute these calls. The state of these tools lacks the changes, so it is not
    requested."""
    if trajectory.fork is None:
        return False
    patterns = () if case.final is None else case.final.readers
    readers = ReadOnlyTools(patterns, trajectory.offered)
    for record in trajectory.calls:
        if record.result is not None and record.result.source == "replayed" and not readers.has(record.tool):
            return True
    return False


class ReadOnlyTools:
    """The tools that change nothing, according to their annotations or the patterns of `readers`."""

    def __init__(self, patterns: Sequence[str], tools: Iterable[ToolDefinition]) -> None:
        self._patterns = patterns
        self._known: set[str] = set()
        for tool in tools:
            if tool.annotations.get("readOnlyHint") is True:
                # Providers that allow no dots in names get underscores, and models answer with these names.
                self._known |= {tool.name, tool.name.replace(".", "_")}

    def has(self, tool: str) -> bool:
        """Return whether a tool changes nothing. `tool` is its name."""
        return tool in self._known or any(fnmatchcase(tool, pattern) for pattern in self._patterns)


def changing_calls(final: FinalTable, trajectory: Trajectory) -> list[int]:
    """Return the indices of the calls that changed something: successful calls of tools that do more than read.

    A tool that the model's provider runs itself changes nothing that the suite owns."""
    readers, found = ReadOnlyTools(final.readers, trajectory.offered), []
    for index, record in enumerate(trajectory.calls):
        result = record.result
        if record.by_provider or result is None or result.is_error or result.source == "skipped":
            continue
        if readers.has(record.tool):
            continue
        found.append(index)
    return found


def _change_issues(
    expected: Sequence[ExpectedCall], final: FinalTable, trajectory: Trajectory, context: CheckContext
) -> Iterator[Issue]:
    calls, made = trajectory.calls, changing_calls(final, trajectory)

    def fits_both(row: int, call: int) -> int:
        early = is_early_call(expected[row], calls[call], trajectory)
        return int(not early and _fits(expected[row], calls[call], context))

    if len(expected) * len(made) > MAX_PAIRS:
        message = f"final.changes: {counted(len(made), 'change')} are too many to compare with {len(expected)}"
        raise CheckError(message)
    fits = gain_table(range(len(expected)), made, fits_both)
    met: dict[int, int] = {}
    for row, column in best_pairing(fits):
        if fits[row][column]:
            met[row] = made[column]
    left = [call for call in made if call not in met.values()]
    for row, wanted in enumerate(expected):
        if row in met:
            continue
        near = next((call for call in left if wanted.may_be_call_of(calls[call].tool)), None)
        if near is None:
            yield _missing(wanted, trajectory)
        else:
            left.remove(near)
            yield _differs(wanted, calls[near], near, trajectory, context)
    for call in left:
        yield Issue(
            "unexpected change",
            "final.changes does not list this call, which succeeded",
            tool=calls[call].tool,
            call=call,
            got=describe_call(calls[call]),
            decides=True,
        )


def _fits(expected: ExpectedCall, record: CallRecord, context: CheckContext) -> bool:
    if not expected.may_be_call_of(record.tool) or expected.disallowed_arguments(record.arguments):
        return False
    if expected.args is None:
        return True
    if not expected.args:
        return not record.arguments
    try:
        return all_hold(expected.args, record.arguments, context=context)
    except CheckError as error:
        raise CheckError(f"final.changes {expected.tool}: {error}") from error


def _missing(expected: ExpectedCall, trajectory: Trajectory) -> Issue:
    reason = "no such call was made"
    tried = [index for index, record in enumerate(trajectory.calls) if expected.may_be_call_of(record.tool)]
    call = None
    if tried:
        call = tried[-1]
        result = trajectory.calls[call].result
        reason = "the call has no result"
        if result is not None:
            reason = "the call failed"
            if not result.is_error:
                reason = "the call accounts for another change, or its tool is a reader"
    text = f"final.changes expects this call to succeed, and {reason}"
    wanted = describe_expected(expected)
    return Issue("missing change", text, tool=expected.tool, call=call, expected=wanted, decides=True)


def is_early_call(expected: ExpectedCall, record: CallRecord, trajectory: Trajectory) -> bool:
    """Return whether a call was made before the user's message that the call must follow."""
    if expected.after_message is None:
        return False
    for round_ in trajectory.rounds:
        if round_.said is not None and round_.said.message == expected.after_message:
            return record.round < round_.number
    return True


def early_call_reason(expected: ExpectedCall) -> str:
    """Return the reason for the issue of a call that comes too early."""
    return f'made before the user said the message "{expected.after_message}"'


def _differs(
    expected: ExpectedCall, record: CallRecord, index: int, trajectory: Trajectory, context: CheckContext
) -> Issue:
    wrong = []
    if is_early_call(expected, record, trajectory):
        wrong.append(early_call_reason(expected))
    for name, check in (expected.args or {}).items():
        value, given = record.arguments.get(name), name in record.arguments
        found = evaluate(check, value, given, context=context)
        if not found.holds:
            wrong.append(f"{name}: {verdict_text(check, found, value, given)}")
    wrong += [f"{name}: must not be given" for name in expected.disallowed_arguments(record.arguments)]
    if not wrong:
        wrong.append("no arguments are expected")
    return Issue(
        "wrong change",
        f"final.changes expects another change: {'; '.join(wrong)}",
        tool=record.tool,
        call=index,
        expected=describe_expected(expected),
        got=describe_call(record),
        decides=True,
    )


_THOUSANDS = late_pattern(r"(?<=\d),(?=\d{3}(?!\d))")


def comparable_text(text: str) -> str:
    r"""Return a text in the form in which `final.says` compares texts: in lower case, without commas between thousands.

    >>> comparable_text("You get $1,200 BACK")
    'you get $1200 back'
    """
    return _THOUSANDS.sub("", text.lower())


def _said_issues(final: FinalTable, trajectory: Trajectory) -> Iterator[Issue]:
    # A text beside calls is not an answer, because the user of a conversation does not receive it.
    answers = [each for each in trajectory.rounds if each.stop_reason is not None and not each.calls_to_answer]
    for wanted in final.texts:
        since, where = 0, ""
        if wanted.after_tool is not None:
            where = f" after {wanted.after_tool}"
            made = [record.round for record in trajectory.calls if same_tool(record.tool, wanted.after_tool)]
            if not made:
                why = f"no answer contains the text, because {wanted.after_tool} was never called"
                yield Issue("not said", why, tool=wanted.after_tool, expected=describe_value(wanted.text), decides=True)
                continue
            since = max(made)
        wanted_text = comparable_text(wanted.text)
        if any(each.number > since and wanted_text in comparable_text(each.text) for each in answers):
            continue
        got = describe_value(answers[-1].text) if answers else "no answer"
        expected = describe_value(wanted.text)
        yield Issue(
            "not said",
            f"no answer{where} contains the text",
            tool=wanted.after_tool,
            expected=expected,
            got=got,
            decides=True,
        )


def transcript_of(trajectory: Trajectory) -> list[JsonValue]:
    """Return the messages, calls and results of a run as JSON values, for a judge who reads the whole run."""
    lines: list[JsonValue] = []
    if trajectory.start is not None:
        lines += [{"role": message.role, "text": message.content} for message in trajectory.start.messages]
    for round_ in trajectory.rounds:
        if round_.user_message is not None:
            lines.append({"role": "user", "text": round_.user_message})
        if round_.text:
            lines.append({"role": "assistant", "text": round_.text})
        for record in round_.calls:
            call: dict[str, JsonValue] = {"role": "call", "tool": record.tool, "arguments": dict(record.arguments)}
            if record.result is not None:
                call["result"], call["is_error"] = record.result.content, record.result.is_error
            lines.append(call)
    return lines


def _goal_issues(goal: Check, trajectory: Trajectory, context: CheckContext) -> Iterator[Issue]:
    try:
        found = evaluate(goal, transcript_of(trajectory), context=context)
    except CheckError as error:
        raise CheckError(f"final.goal: {error}") from error
    if not found.holds:
        why = found.note or "the judge says no"
        yield Issue("final goal", why, expected=describe(goal), decides=True, because=goal.because)


def _state_issues(number: int, state: FinalState, trajectory: Trajectory, context: CheckContext) -> Iterator[Issue]:
    answer = _answer_to(state, trajectory)
    asked = state_request_text(state.tool, state.args)
    if answer is None:
        raise CheckError(f"final.state[{number}]: after the run, {asked} was not called: run the case again")
    expected = expected_result(state.result, state.is_error)
    if answer.is_error is not bool(state.is_error):
        why = "the tool answered, and an error was expected"
        if answer.is_error:
            why = f"the tool answered with an error: {error_text(answer.content)}"
        yield Issue("final state", f"{asked}: {why}", tool=state.tool, expected=expected, decides=True)
        return
    if state.result is None:
        return
    value = result_value(answer.content, state.result)
    try:
        found = evaluate(state.result, value, context=context)
    except CheckError as error:
        raise CheckError(f"final.state[{number}]: {error}") from error
    if not found.holds:
        yield Issue(
            "final state",
            f"{asked}: {found.note or 'not as expected'}",
            tool=state.tool,
            expected=expected,
            got=describe_value(value),
            decides=True,
            because=state.result.because,
        )


def error_text(content: str) -> str:
    text = " ".join(content.split())
    if len(text) > _MAX_SHOWN:
        text = f"{text[:_MAX_SHOWN]} …"
    return text


def state_request_text(tool: str, args: Mapping[str, JsonValue]) -> str:
    """Return a description of a requested state, as the start of an issue's reason."""
    return f"{tool} {describe_value(dict(args))}"


def _answer_to(state: FinalState, trajectory: Trajectory) -> OwnCallAnswered | None:
    for call in trajectory.final_calls:
        if call.tool == state.tool and json_equal(dict(call.arguments), state.args):
            return call
    return None
