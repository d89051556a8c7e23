"""A run in the HTML report: request, expectations, conversation and grades.

Some parts depend on the grader. Such a part is written once for all graders with the same content, and its attribute
`data-grade` has the indices of these graders. The page's script shows the part of the selected grader."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workbench.analysis.expectations import Expectation, Expectations, expectations_of
from workbench.analysis.measures import COST, TOKENS
from workbench.grading.explanation import explain, formula_in_numbers
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, RunResult, StepGrade
from workbench.grading.status import NOT_APPLICABLE, Status, passed_or_failed
from workbench.numerals import (
    NOTHING,
    cost_text,
    count_text,
    counted,
    duration_text,
    figure,
    score_text,
    with_user_cost,
)
from workbench.show.html.elements import (
    Element,
    Node,
    Redact,
    badge,
    el,
    filled_el,
    flat,
    fold,
    items,
    long_text,
    pairs,
    sign,
    tree,
)
from workbench.show.text import Paint
from workbench.show.views.agents import agent_text, note_text
from workbench.show.views.grades import issue_text, judgement_text, metric_text, step_lines
from workbench.show.views.runs_report import ShownRun
from workbench.show.views.server_output import output_title
from workbench.show.views.trajectory import (
    EDITED,
    asked_head,
    deviation_lines,
    fork_text,
    own_source_text,
    reply_text,
    unread_text,
)
from workbench.show.views.user_turns import ended_text, refused_text, source_of
from workbench.show.views.values import call_text, usage_text
from workbench.show.visible import after
from workbench.suite.expected_calls import tool_text
from workbench.suite.settings import Grading
from workbench.trajectory.events import Message, OwnCallAnswered, ServerAsked
from workbench.trajectory.system_prompt import time_text
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory, UserTurn

_LINE = 80
"""Longest JSON value, in characters, on one line."""
_LAID_OUT_MAX = 100_000
"""Length in characters above which a result is not laid out."""
_FOLDED = 160
"""Length in characters from which a system prompt is initially folded."""
_PLAIN = Paint(False)
_ENDINGS = ("answered", "steps done", "decided", "user done", "user gave up", "stopped by rule")
"""Ends of runs that were complete."""


def page_run(run: ShownRun, redact: Redact) -> dict[str, Any]:
    """Return a run as JSON for the page's script.

    `view` is the whole run. `head` and `steps` serve to show two runs side by side: the script aligns steps with equal
    keys."""
    expected = Expectations()
    if run.case is not None:
        expected = expectations_of(run.case, run.result.grading)
    steps = []
    for key, step in _steps(run.result):
        steps.append({"key": key, "view": tree(step, redact)})
    head = [tree(node, redact) for node in flat(_side_head(run.result))]
    return {"view": tree(_run(run.result, expected), redact), "head": head, "steps": steps}


def _run(run: RunResult, expected: Expectations) -> Element:
    trajectory = run.trajectory
    notices = [f"▲ {notice}" for notice in trajectory.notices]
    if trajectory.fork is not None:
        notices.append(f"↳ {fork_text(trajectory.fork)}")
    if trajectory.touched:
        notices.append(f"✎ {EDITED}")
    if unread := unread_text(trajectory):
        notices.append(f"▲ {unread}")
    aside = el("div", _tabs(run.grades), _graded(run), _expected(expected), class_="aside")
    beside = el("div", _chain(run), _metrics(run), _judgements(run), _measures(run), _servers(run), class_="beside")
    return el(
        "div",
        el("div", _result(run), class_="result"),
        (el("p", notice, class_="notice") for notice in notices),
        el("div", aside, el("div", _conversation(run, expected), class_="story"), beside, class_="columns"),
        class_="run",
    )


def _result(run: RunResult) -> Iterator[Node]:
    why = run.error or run.reason
    if not why and run.grade is not None:
        why = run.grade.reason
    yield badge(run.status, filled_el("b", _score(run.score)))
    yield f" {why or ''}"


def _score(score: float | None) -> str:
    return after(" ", score_text(score, ""))


# Grades


def _tabs(grades: Sequence[Grade]) -> Element | None:
    tabs = [_tab(at, grade) for at, grade in enumerate(grades)]
    return filled_el("div", tabs, class_="tabs", role="group", aria_label="Grades")


def _tab(at: int, grade: Grade) -> Element:
    if grade.verdict == NOT_APPLICABLE:
        role, value = "muted", score_text(None)
    else:
        status = grade.status or Status(grade.verdict)
        role, value = status.role, status.sign + _score(grade.score)
    # The first grade decides, so its tab is open at first.
    decides, pressed = (el("small", " decides"), "true") if at == 0 else (None, "false")
    name = el("span", grade.grader, decides)
    return el("button", name, el("b", value), type="button", class_=f"tab {role}", aria_pressed=pressed, data_tab=at)


def _by_grade(views: Sequence[Sequence[Element]]) -> Iterator[Element]:
    # The five grades of a run agree on most calls, so equal views are written only once.
    distinct: list[Sequence[Element]] = []
    for view in views:
        if view not in distinct:
            distinct.append(view)
    for view in distinct:
        numbers = [at for at, other in enumerate(views) if other == view]
        if len(distinct) == 1:
            yield from view
        else:
            yield el("div", view, data_grade=" ".join(map(str, numbers)), hidden=0 not in numbers)


def _graded(run: RunResult) -> Element:
    return el("div", _by_grade([[_grade(grade, run.grading)] for grade in run.grades]), class_="graded")


def _grade(grade: Grade, grading: Grading) -> Element:
    found = explain(grade, grading)
    rows = [el("dt", found.rule)]
    if found.formula is not None:
        rows.append(el("dd", formula_in_numbers(found.formula)))
    if found.shortcut:
        rows.append(el("dd", found.shortcut))
    for line in filter(None, (found.verdict, f"as {found.system} grades")):
        rows.append(el("dd", line, class_="quiet"))
    numbers = []
    # The numbers have the order of the formula above them.
    for name, value in grade.numbers.items():
        numbers.append(el("span", f"{name.replace('_', ' ')} ", el("b", figure(value))))
    return el(
        "div",
        el("p", grade.reason),
        el("dl", rows, class_="formula"),
        filled_el("p", numbers, class_="numbers"),
        filled_el("ul", (el("li", issue_text(issue)) for issue in grade.issues), class_="issues"),
        class_="grade",
    )


# What was expected


def _expected(expected: Expectations) -> Element:
    lines: list[Node] = []
    if expected.no_calls:
        lines.append(el("p", "no calls at all"))
    lines += map(_expected_call, expected.calls)
    if expected.others:
        lines.append(el("p", expected.others))
    if expected.disallowed:
        lines += [el("p", "disallowed:"), *map(_expected_call, expected.disallowed)]
    for text in expected.answer:
        lines.append(el("p", "the answer: ", el("code", text)))
    for text in expected.final:
        lines.append(el("p", "in the end: ", el("code", text)))
    if not lines:
        nothing = el("p", "The case expects nothing yet.", class_="quiet")
        return fold("expected", "Expects nothing", nothing, is_open=True)
    return fold("expected", "Expected", lines, is_open=True)


def _expected_call(call: Expectation) -> Element:
    notes = filled_el("p", ", ".join(call.notes), class_="quiet")
    if call.alternatives:
        head = el("div", "one of", el("small", call.place), class_="call-head")
        return el("div", head, notes, [_expected_call(each) for each in call.alternatives], class_="call expected")
    head = el("div", el("code", tool_text(call.tool), class_="tool"), el("small", call.place), class_="call-head")
    if call.arguments:
        arguments: Node = pairs(((each.argument, each.check) for each in call.arguments), "checks")
    elif call.arguments is None:
        arguments = el("p", "with any arguments", class_="quiet")
    else:
        arguments = el("p", "no arguments listed", class_="quiet")
    return el(
        "div",
        head,
        arguments,
        filled_el("p", "and no others" if call.only_args else None, class_="quiet"),
        filled_el("p", after("without ", ", ".join(call.forbidden)), class_="quiet"),
        notes,
        class_="call expected",
    )


# Beside the conversation


def _chain(run: RunResult) -> Element | None:
    if not run.steps:
        return None
    return fold("steps", "Steps, each on its own", el("ul", map(_chain_step, run.steps)), is_open=True)


def _chain_step(step: StepGrade) -> Element:
    role = step.status.role if step.status else "muted"
    return el("li", step_lines([step], _PLAIN, sys.maxsize), class_=role)


def _metrics(run: RunResult) -> Element | None:
    if not run.metrics:
        return None
    lines = []
    for metric in run.metrics:
        lines.append(_held(metric.holds, metric_text(metric)))
    return fold("metrics", "Checks of the answer", items(lines), is_open=True)


def _judgements(run: RunResult) -> Element | None:
    if not run.judgements:
        return None
    lines = []
    for each in run.judgements:
        lines.append([*_held(each.holds, judgement_text(each)), long_text(each.value)])
    return fold("judgements", f"Judgements: {len(lines)}", items(lines))


def _held(holds: bool, text: str) -> list[Node]:
    status = passed_or_failed(holds)
    return [el("strong", status.sign, class_=status.role), f" {text}"]


def _measures(run: RunResult) -> Element:
    trajectory = run.trajectory
    facts = [
        ("ended", trajectory.finish_reason or NOTHING),
        ("model's answers", duration_text(trajectory.model_latency_ms or None)),
        ("whole loop", duration_text(trajectory.loop_ms or None)),
        (TOKENS.title, NOTHING if run.usage is None else usage_text(run.usage)),
        (COST.title, with_user_cost(COST.text(run.cost_usd), run.user_cost_usd)),
    ]
    if trajectory.user_requests:
        facts.append(("user's answers", duration_text(trajectory.user_latency_ms or None)))
    if trajectory.user_usage is not None:
        facts.append(("user's tokens", usage_text(trajectory.user_usage)))
    if trajectory.retries:
        facts.append(("retries", count_text(trajectory.retries)))
    if trajectory.held_ms:
        facts.append(("held", duration_text(trajectory.held_ms)))
    if offered := trajectory.offered:
        facts.append(("tools offered", ", ".join(tool.name for tool in offered)))
    return fold("measures", "Time, tokens, cost", pairs(facts), is_open=True)


def _servers(run: RunResult) -> Iterator[Element]:
    for output in run.trajectory.server_outputs:
        yield fold("server", output_title(output), long_text("\n".join(output.lines)))


# The conversation


def _conversation(run: RunResult, expected: Expectations) -> Iterator[Node]:
    trajectory, start = run.trajectory, run.trajectory.start
    system = None
    if trajectory.agent is not None:
        yield el("p", agent_text(trajectory.agent), class_="notice")
    if start is not None:
        system = start.system
        yield _said("system", "system prompt", system, is_folded=True)
        for of in start.instructions:
            yield _said("system", f"instructions of the server {of.server}", of.text, is_folded=True)
        if start.clock is not None:
            yield _said("system", "clock", time_text(start.clock))
        for message in start.messages:
            yield from _message(message)
    yield from map(_asked, trajectory.asked_in("setup"))
    yield from map(_own_call, trajectory.setup_calls)
    # Grades refer to calls by number, so calls are numbered across all rounds.
    at = 0
    for each in trajectory.rounds:
        if each.said is not None:
            yield from _turn(next(turn for turn in trajectory.user_turns if turn.number == each.turn))
        yield _round_head(each)
        # Each step of a chain may have its own prompt. An unchanged prompt is shown once.
        if each.step is not None and each.step.system not in (None, system):
            system = each.step.system
            yield _said("system", "system prompt of the step", system, is_folded=True)
        yield from _round(each, run, expected, at)
        at += len(each.calls)
    if trajectory.user_turns:
        yield from _end_of_user(trajectory)
    yield from map(_asked, trajectory.asked_in("final"))
    yield from map(_own_call, trajectory.final_calls)
    yield from _by_grade([list(_missing(grade, expected)) for grade in run.grades])
    if trajectory.finish_reason not in (None, *_ENDINGS):
        yield el("p", f"■ ended: {trajectory.finish_reason}", class_="ending")
    if run.error is not None:
        yield _said("problem", "▲ why", run.error)


def _turn(turn: UserTurn) -> Iterator[Node]:
    for refused in turn.refused:
        yield el("p", f"user, {refused_text(refused)}", class_="notice")
    if turn.said is not None:
        source = source_of(turn.said, len(turn.refused))
        yield _said("user", f"user {turn.number}" + (f", {source}" if source else ""), turn.said.text)


def _end_of_user(trajectory: Trajectory) -> Iterator[Node]:
    last = trajectory.user_turns[-1]
    if not trajectory.rounds or trajectory.rounds[-1].turn != last.number:
        yield from _turn(last)
    if last.ended is not None:
        yield el("p", f"user {ended_text(last.ended)}", class_="ending")


def _own_call(call: OwnCallAnswered) -> Element:
    title = el("small", f"{call.stage}, by the suite · {own_source_text(call)}", class_="who")
    tool = el("code", call_text(call.tool, call.arguments), class_="tool")
    return el("div", title, tool, long_text(call.content), class_="said problem" if call.is_error else "said prior")


def _asked(request: ServerAsked) -> Element:
    notice = request.notice
    who = el("small", f"? {asked_head(request)}", class_="who")
    reply = el("p", notice or f"← {reply_text(request)}", class_="notice" if notice else "")
    form = fold("aside", "what it asked", long_text(laid_out(dict(request.request)))) if request.request else None
    return el("div", who, form, reply, class_="returned problem" if notice else "returned")


def _message(message: Message) -> Iterator[Node]:
    who: str = message.role
    if who == "tool":
        who = "tool result, an error" if message.is_error else "tool result"
    yield _said(message.role, who, message.content)
    for prior in message.tool_calls:
        title = el("small", "call before the request", class_="who")
        tool = el("code", prior.tool, class_="tool")
        yield el("div", title, tool, long_text(laid_out(dict(prior.arguments))), class_="said prior")


def _round_head(round_: Round) -> Element:
    facts: list[str] = []
    if round_.replayed:
        facts.append("replayed")
    elif round_.latency_ms:
        facts.append(duration_text(round_.latency_ms))
    if round_.usage is not None:
        facts.append(f"{counted(round_.usage.output_tokens, 'token')} out")
    if round_.stop_reason:
        facts.append(round_.stop_reason)
    title = f"round {round_.number}"
    if round_.step is not None:
        title += f", step {round_.step.step}"
    return el("h4", title, el("small", " · ".join(facts)), class_="round")


def _round(round_: Round, run: RunResult, expected: Expectations, at: int) -> Iterator[Node]:
    """Yield the elements of a round of the conversation. `at` is the index of the round's first call in the run."""
    if round_.step is not None:
        yield _said("user", "user", round_.step.user)
    for text in round_.added:
        yield _said("user", "✎ user, added by hand", text)
    for text in round_.errors:
        yield _said("problem", "▲ the request failed", text)
    for note in round_.notes:
        yield el("p", note_text(note), class_="notice")
    for line in deviation_lines(round_.deviations):
        yield el("p", f"▲ {line}", class_="notice")
    for answer in round_.superseded:
        calls = (_call(call, [None], expected) for call in answer.calls)
        yield fold("aside", "an earlier answer, made again by hand", _said("model", "model", answer.text), calls)
    if round_.reasoning:
        yield fold("reasoning", "reasoning", long_text(round_.reasoning))
    yield _said("model", "model", round_.text)
    yield from map(_bare_call, round_.not_offered)
    for number, call in enumerate(round_.calls, at):
        pairings = [_pairing_of(number, grade) for grade in run.grades]
        yield _call(call, pairings or [None], expected)
    # A round without text and calls is shown as such, because a gap would look like a missing round.
    if not round_.calls and not round_.text.strip() and round_.stop_reason is not None:
        yield _said("model", "model", "(empty)")


def _pairing_of(call: int, grade: Grade) -> CallPairing | None:
    return next((pairing for pairing in grade.pairings if pairing.call == call), None)


def _said(kind: str, who: str, text: str | None, *, is_folded: bool = False) -> Element | None:
    if text is None or (not text and kind != "tool"):
        return None
    if is_folded and len(text) > _FOLDED:
        return fold(kind, who, long_text(text))
    return _words(kind, who, text)


def _words(kind: str, who: str, text: str) -> Element:
    return el("div", el("small", who, class_="who"), long_text(text), class_=f"said {kind}")


def _missing(grade: Grade, expected: Expectations) -> Iterator[Element]:
    who = el("small", f"{Status.FAILED.sign} expected and not called", class_="who")
    for pair in grade.pairings:
        if pair.call is None and pair.expected_call is not None:
            call = None
            # If the stored suite cannot be read, the run has no case and no expected calls.
            if pair.expected_call < len(expected.calls):
                call = _expected_call(expected.calls[pair.expected_call])
            yield el("div", who, call, class_="said missing")


def _call(call: CallRecord, pairings: Sequence[CallPairing | None], expected: Expectations) -> Element:
    parts: list[Node] = [*_by_grade([[_call_with_verdict(call, pairing, expected)] for pairing in pairings])]
    if call.call.problem is not None:
        parts += [
            el("p", f"{Status.FAILED.sign} the arguments are not a JSON object: {call.call.problem}", class_="failed"),
            long_text(call.call.raw or ""),
        ]
    if call.edited is not None:
        who = el("small", "✎ sent instead, changed by hand", class_="who")
        parts.append(el("div", who, long_text(laid_out(dict(call.edited)))))
    if call.unedited is not None:
        who = el("small", "result before it was changed by hand", class_="who")
        parts.append(el("div", who, long_text(_pretty(call.unedited.content)), class_="returned"))
    parts += map(_asked, call.asked)
    return el("div", parts, _returned(call), class_="call actual")


def _returned(call: CallRecord) -> Element | None:
    result = call.result
    if result is None:
        return None
    origin, kind = str(result.source), "returned"
    if result.is_error:
        origin, kind = f"error from {result.source}", "returned problem"
    who = el("small", f"← {origin} {duration_text(result.latency_ms)}", class_="who")
    return el("div", who, long_text(_pretty(result.content)), class_=kind)


def _call_with_verdict(call: CallRecord, pairing: CallPairing | None, expected: Expectations) -> Element:
    """Return the tool and the arguments of a call. `pairing` has one grader's verdict on the call."""
    status, role, note = None, "", ""
    if pairing is not None:
        # An unchecked argument (`None`) is not wrong.
        right = pairing.same_tool and all(each.holds is not False for each in pairing.arguments)
        status = passed_or_failed(pairing.expected_call is not None and right)
        role, note = status.role, _outcome(pairing, expected)
    head = el(
        "div",
        sign(status, "→"),
        el("code", call.tool, class_="tool"),
        filled_el("span", note, class_=f"outcome {role}"),
        filled_el("small", after("server ", call.server)),
        class_="call-head",
    )
    arguments = None
    if call.call.problem is None:
        arguments = _arguments(call, pairing)
    return el("div", head, arguments, class_=f"judged {role}")


def _outcome(pairing: CallPairing, expected: Expectations) -> str:
    outcome = str(pairing.outcome)
    if pairing.prohibition is not None:
        outcome = f"forbidden: {outcome}"
    meant = pairing.expected_call
    if meant is not None and not pairing.same_tool and meant < len(expected.calls):
        wanted = expected.calls[meant]
        outcome += f", expected {' or '.join(each.tool for each in wanted.alternatives or (wanted,))}"
    return outcome


def _arguments(call: CallRecord, pairing: CallPairing | None) -> Element:
    verdicts: Sequence[ArgumentVerdict] = ()
    unchecked = ""
    if pairing is not None:
        verdicts = pairing.arguments
        if pairing.expected_call is not None:
            unchecked = "not checked"
    judged = {each.argument for each in verdicts}
    rows = list(map(_verdict, verdicts))
    for name, value in call.arguments.items():
        if name not in judged:
            rows.append(_argument(name, laid_out(value), why=unchecked))
    if not rows:
        return el("p", "no arguments", class_="quiet")
    titles = ("argument", "value", "", "")
    if verdicts:
        titles = ("argument", "got", "expected", "why")
    head = el("tr", el("td"), map(_head_cell, titles))
    return el("table", el("thead", head), el("tbody", rows), class_="arguments")


def _head_cell(title: str) -> Element:
    if not title:
        return el("td")
    return el("th", title, scope="col")


def _verdict(verdict: ArgumentVerdict) -> Element:
    why: list[Node] = [verdict.why]
    if verdict.weight or verdict.score:
        gap = " · " if verdict.why else ""
        why.append(el("small", f"{gap}{figure(verdict.score)} of {figure(verdict.weight)}"))
    status, got = None, None
    if verdict.holds is not None:
        status = passed_or_failed(verdict.holds)
    if verdict.given:
        got = laid_out(verdict.got)
    return _argument(verdict.argument, got, status, verdict.required, verdict.expected, why)


def _argument(
    name: str,
    got: str | None,
    status: Status | None = None,
    required: bool = False,
    expected: str = "",
    why: Node = None,
) -> Element:
    heading: list[Node] = [name]
    if required:
        heading.append(el("small", " required", title="the run fails without it, whatever the score is"))
    mark, role = "·", None
    if status is not None:
        mark, role = status.mark
    given: Node = el("em", "not given")
    if got is not None:
        given = long_text(got)
    cells = (el("td", given), el("td", filled_el("code", expected)), el("td", why, class_="why"))
    return el("tr", el("td", mark, class_="sign"), el("th", heading, scope="row"), cells, class_=role)


# Two runs side by side


def _side_head(run: RunResult) -> Iterator[Node]:
    name = run.model
    if run.repeat:
        name += f" #{run.repeat + 1}"
    yield el("strong", name)
    yield " "
    yield from _result(run)
    yield el("p", f"{duration_text(run.limited_ms or None)} · {cost_text(run.cost_usd)}", class_="quiet")


def _steps(run: RunResult) -> Iterator[tuple[str, Element]]:
    """Yield the key and the element of each step of the conversation. Steps with equal keys in two runs are aligned."""
    for each in run.trajectory.rounds:
        if each.step is not None and each.step.user:
            yield "user", _words("user", "user", each.step.user)
        if each.text.strip():
            yield "text", _words("model", "model", each.text)
        for call in each.calls:
            yield f"call {call.tool}", _bare_call(call)


def _bare_call(call: CallRecord) -> Element:
    """Return a call without the verdict of a grade."""
    head = el("div", sign(None, "→"), el("code", call.tool, class_="tool"), class_="call-head")
    if call.call.problem is None:
        rows = []
        for name, value in call.arguments.items():
            rows.append(_bare_argument(name, laid_out(value)))
        made = el("table", el("tbody", rows), class_="arguments")
    else:
        made = long_text(call.call.raw or "")
    returned = None
    if (result := call.result) is not None:
        who = el("small", f"← {result.source}", class_="who")
        returned = el("div", who, long_text(_pretty(result.content)), class_="returned")
    return el("div", head, made, returned, class_="call actual")


def _bare_argument(name: str, value: str) -> Element:
    return el("tr", el("td", "·", class_="sign"), el("th", name, scope="row"), el("td", long_text(value)))


# JSON in lines


class _Numeral(str):
    """A number of a JSON result in its original notation, such as `1.0` or `1e3`."""


class _Members(tuple[tuple[str, Any], ...]):
    """The members of a JSON object in their original order, including duplicate names."""


def laid_out(value: Any, indent: str = "") -> str:
    """Return a value as JSON, on one line if it is short and indented otherwise.

    `indent` is the indentation of the line on which the value begins."""
    inner = f"{indent}  "
    if isinstance(value, _Numeral):
        return str(value)
    if isinstance(value, (Mapping, _Members)):
        members: Iterable[tuple[str, Any]] = value
        if isinstance(value, Mapping):
            members = value.items()
        parts = []
        for name, item in members:
            parts.append(f"{json.dumps(name, ensure_ascii=False)}: {laid_out(item, inner)}")
        begin, end = "{", "}"
    elif isinstance(value, (list, tuple)):
        parts = [laid_out(item, inner) for item in value]
        begin, end = "[", "]"
    else:
        return json.dumps(value, ensure_ascii=False)
    line = f"{begin}{', '.join(parts)}{end}"
    if len(line) <= _LINE and "\n" not in line:
        return line
    between = f",\n{inner}"
    return f"{begin}\n{inner}{between.join(parts)}\n{indent}{end}"


def _pretty(text: str) -> str:
    """Return a tool result for display. JSON on one line is indented, and nothing but its white space changes."""
    if text[:1] not in ("{", "[") or "\n" in text or len(text) > _LAID_OUT_MAX:
        return text
    try:
        # Numbers and members are read as texts, because a `float` or a `dict` would change or drop some of them.
        return laid_out(json.loads(text, parse_int=_Numeral, parse_float=_Numeral, object_pairs_hook=_Members))
    except (ValueError, RecursionError):
        return text
