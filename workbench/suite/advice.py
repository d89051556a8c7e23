"""Warnings about valid settings that contradict each other, have no effect or cannot work.

Examples are unknown tools, judges that are not models, invalid dates, patterns that may search for too long, and
settings that `arcade_compatible` cannot express."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from workbench.checks.check import CHECK_CLASSES, Check, CheckBase, Checks
from workbench.checks.fields import JSON_TYPES
from workbench.checks.structure_kinds import mixed_check
from workbench.numerals import counted, setting_text
from workbench.suite.call_rules import arcade_rules
from workbench.suite.expected_calls import ANY_TOOL, AnyOrder, ExpectedCall
from workbench.suite.model import Case, Mock, Suite, written_tools
from workbench.suite.problems import Finding, Place, did_you_mean, in_backticks, place_text, quoted, warning
from workbench.suite.rules import is_score
from workbench.suite.server_model import Answer
from workbench.suite.settings import Grading, settings_of
from workbench.suite.tool_names import unknown_in_suite

_DEFAULT_GRADING = Grading()


def advice(suite: Suite, case_indices: Sequence[int]) -> Iterator[Finding]:
    """Yield warnings about a valid suite. `case_indices` are the indices of its cases in the file."""
    if suite.execute and not suite.servers:
        yield warning(("execute",), "there is nothing to execute: the suite has no server")
    yield from _thresholds(suite, None, ())
    yield from _conditions_advice(suite.mocks, suite.answers, (), has_clock=suite.clock is not None)
    yield from _aggregate_advice(suite)
    yield from _shared_state(suite, case_indices)
    yield from unknown_in_suite(suite, case_indices, (), [server.prefix for server in suite.servers])
    for index, case in zip(case_indices, suite.cases, strict=True):
        place: Place = ("cases", index)
        yield from _case_advice(suite, case, place)


def _shared_state(suite: Suite, case_indices: Sequence[int]) -> Iterator[Finding]:
    """Find calls in `setup` and `final` that cannot see the state of a single run.

    Either all runs share the state of the called tool, or the tool's mock always gives the same answer."""
    cases: dict[Place, list[str]] = {}
    for index, case in zip(case_indices, suite.cases, strict=True):
        for at, call in case.own_calls():
            place: Place = ("cases", index, *at)
            mock_place, mock = _mock_of(suite, case, index, call.tool)
            if mock is None:
                written = [tool.name for tool in written_tools(suite, case)]
                owner = None if call.tool in written else _shared_server(suite, call.tool)
                if owner is not None:
                    cases.setdefault(("servers", owner), []).append(case.id)
            elif mock.python is not None and mock.state == "batch":
                cases.setdefault(mock_place, []).append(case.id)
            elif mock.python is None and at[0] == "final":
                message = f"{quoted(call.tool)} is mocked with a fixed answer: it answers the same whatever a run did"
                yield warning((*place, "tool"), message, "mock it with `python`, or let its server answer")
    for place, ids in cases.items():
        count = len(set(ids))
        message = f"all runs share this state, but `setup` or `final` of {counted(count, 'case')} depends on it"
        yield warning((*place, "state"), message, 'write state = "run", which gives each run its own')


def _mock_of(suite: Suite, case: Case, index: int, tool: str) -> tuple[Place, Mock | None]:
    for place, mocks in ((("cases", index, "mocks"), case.mocks), (("mocks",), suite.mocks)):
        for number, mock in enumerate(mocks):
            if mock.tool == tool:
                return (*place, number), mock
    return (), None


def _shared_server(suite: Suite, tool: str) -> int | None:
    """Return the index of the only server that can provide a tool, if all runs share that server's state.

    Otherwise, return `None`."""
    able = []
    for number, server in enumerate(suite.servers):
        if tool.startswith(server.prefix):
            able.append(number)
    if len(able) == 1 and suite.servers[able[0]].state == "batch":
        return able[0]
    return None


def _case_advice(suite: Suite, case: Case, place: Place) -> Iterator[Finding]:
    calls = [((*place, *at), call) for at, call in case.placed_expected_calls()]
    for number, step in enumerate(case.steps):
        if step.expected_call is not None:
            calls.append(((*place, "steps", number), step.expected_call))
    settings = settings_of(suite, case)
    if case.grading.model_fields_set:
        yield from _thresholds(suite, case, place)
    yield from _contradictions(suite, case, settings.grading, place, calls)
    has_clock = settings.clock is not None
    if case.mocks or case.answers:
        yield from _conditions_advice(case.mocks, case.answers, place, has_clock=has_clock)
    yield from _blank_requests(case, place)
    if case.response_contains:
        yield from _blank_keywords(case, place)
    yield from _ignored_expectations(settings.grading, case, place, calls)
    if case.execute and not suite.servers:
        yield warning((*place, "execute"), "there is nothing to execute: the suite has no server")
    for at, call in case.written_calls():
        yield from _checks_advice(call.args, (*place, *at, "args"), has_clock)
    for name, check in case.answer_checks:
        at_check: Place = (*place, "response")
        if name is not None:
            at_check = (*at_check, name)
        yield from _check_advice(check, at_check, has_clock)
    for at, check in case.checked_results():
        yield from _check_advice(check, (*place, *at), has_clock)
    for at, check in case.conversation_checks():
        yield from _check_advice(check, (*place, *at), has_clock)
    for number, state in enumerate(case.final_states):
        if state.result is not None:
            yield from _check_advice(state.result, (*place, "final", "state", number, "result"), has_clock)
    if settings.grading.critics.arcade_compatible:
        yield from _arcade_rules(calls)
        for at, call in calls:
            yield from arcade_rules(call, at)
        for key, items in (("ordered", case.ordered), ("unordered", case.unordered)):
            for index, item in enumerate(items):
                if isinstance(item, AnyOrder):
                    yield from arcade_rules(item, (*place, key, index))


def _blank_requests(case: Case, place: Place) -> Iterator[Finding]:
    requests: list[tuple[Place, str | None]] = [(place, case.request)]
    for number, step in enumerate(case.steps):
        requests.append(((*place, "steps", number), step.user))
    for at, user in requests:
        if user is not None and not user.strip():
            hint = "write the request, or leave `user` out of a later step to let the model go on"
            yield warning((*at, "user"), "the message to the model is blank, which many models refuse", hint)


def _blank_keywords(case: Case, place: Place) -> Iterator[Finding]:
    for index, keyword in enumerate(case.response_contains):
        if not keyword.strip():
            message = "the keyword is blank" if keyword else "the keyword is empty, so every answer contains it"
            yield warning((*place, "response_contains", index), message, "write a word, or remove it")


def _ignored_expectations(
    grading: Grading, case: Case, place: Place, calls: list[tuple[Place, ExpectedCall]]
) -> Iterator[Finding]:
    grader = f"`{grading.by}`"
    flexible = grading.by == "accuracy" and grading.accuracy.mode == "flexible"
    if flexible:
        grader = "`accuracy` in flexible mode"
    if len(case.ordered) > 1 and (grading.by in ("critics", "dimensions") or flexible):
        message = f"{grader} ignores the order of calls"
        hint = 'list them as `unordered`, or grade the case by "trajectory"'
        yield warning((*place, "ordered"), message, hint, "order ignored")
    if grading.by == "critics":
        for at, call in calls:
            if call.args and all(check.weight == 0 for check in call.args.values()):
                message = "every argument of this call has weight 0, so none of them is judged"
                yield warning((*at, "args"), message, "give a weight to the arguments that matter, or leave `args` out")


def _thresholds(suite: Suite, case: Case | None, place: Place) -> Iterator[Finding]:
    own = suite.grading if case is None else case.grading
    for key in ("fail_threshold", "warn_threshold"):
        if getattr(own, key) == 0:
            message = f"with {key} = 0, no run fails by its score"
            yield warning((*place, "grading", key), message, "write the lowest score that is good enough")
    # If a case sets no threshold, the suite's thresholds apply, and these are compared once for the whole suite.
    if own.fail_threshold is None and own.warn_threshold is None:
        return
    fail = _first(own.fail_threshold, suite.grading.fail_threshold, _DEFAULT_GRADING.fail_threshold)
    warn = _first(own.warn_threshold, suite.grading.warn_threshold, _DEFAULT_GRADING.warn_threshold)
    if warn < fail:
        # Report the threshold that this table sets. The other threshold may be inherited.
        key = "fail_threshold" if own.warn_threshold is None else "warn_threshold"
        both = f"the warn threshold ({setting_text(warn)}) is below the fail threshold ({setting_text(fail)})"
        message = f"{both}: scores below the lower one fail"
        yield warning((*place, "grading", key), message, "write both, with `fail_threshold` below `warn_threshold`")


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)


def _contradictions(
    suite: Suite, case: Case, grading: Grading, place: Place, calls: list[tuple[Place, ExpectedCall]]
) -> Iterator[Finding]:
    if case.steps and case.limits.max_rounds is not None:
        message = "`max_rounds` does not limit a chain: each of its steps is one request"
        yield warning((*place, "limits", "max_rounds"), message, "remove it")
    if case.expect_nothing_yet and not case.expects_nothing_yet:
        message = "`expect_nothing_yet` has no effect: the case expects something"
        yield warning((*place, "expect_nothing_yet"), message, "remove it")
    if case.extra_calls is not None or case.grading.extra_calls is not None:
        yield from _extra_calls(case, grading, place)
    max_rounds = case.limits.max_rounds or suite.limits.max_rounds
    if max_rounds == 1 and not case.steps:
        for at, call in calls:
            if any(each.checks_result for each in (call, *call.any_of)):
                message = "max_rounds = 1 leaves calls without results, and this one must have a certain result"
                yield warning(at, message, "allow a second round")
    if max_rounds == 1 and calls and not case.steps:
        for key in ("response", "response_contains"):
            if getattr(case, key):
                message = f"max_rounds = 1 conflicts with `{key}`: after a call there is no final answer"
                yield warning((*place, key), message, "allow a second round")
    # The finding is placed at the limit of the case. If the case has none, the suite's limit applies.
    budget, at = case.limits.max_tool_calls, (*place, "limits")
    if budget is None:
        budget, at = suite.limits.max_tool_calls, ("limits",)
    if budget is not None and budget < len(calls) and not case.steps:
        message = f"max_tool_calls = {budget} conflicts with {len(calls)} expected calls in cases[{place[1]}]"
        hint = "a correct run would count as over calling"
        yield warning((*at, "max_tool_calls"), message, hint, "several cases")
    never = {call.tool for call in case.disallowed if call.args is None and call.is_unconditional}
    if case.at_most is not None and case.at_most.calls is not None:
        fewest = sum(call.fewest for _, call in calls)
        if case.at_most.calls < fewest:
            message = f"at_most.calls = {case.at_most.calls} conflicts with {fewest} expected calls"
            yield warning((*place, "at_most", "calls"), message, "no run can pass: raise it")
    for at, call in calls:
        if call.tool in never or ANY_TOOL in never:
            yield warning((*at, "tool"), f"{quoted(call.tool)} is expected and disallowed in the same case")
        for index, name in enumerate(call.forbidden_args):
            if name in (call.args or {}):
                message = f"the argument {quoted(name)} is expected and forbidden in the same call"
                yield warning((*at, "forbidden_args", index), message)


def _extra_calls(case: Case, grading: Grading, place: Place) -> Iterator[Finding]:
    own, of_table = case.extra_calls, case.grading.extra_calls
    rule, at = own, (*place, "extra_calls")
    if own is None:
        rule, at = of_table, (*place, "grading", "extra_calls")
    if own is not None and of_table is not None:
        message = "`extra_calls` is written twice, and only the key outside `grading` counts"
        yield warning((*place, "grading", "extra_calls"), message, "remove one of them")
    if rule not in (None, "forbid") and case.expect_no_calls:
        yield warning(at, "`extra_calls` conflicts with expect_no_calls = true", "omit one of them")
    if of_table is not None and case.steps:
        yield warning(at, "`extra_calls` has no effect on a chain: each step is graded with its own calls", "remove it")
    if rule not in (None, "forbid") and grading.by == "critics" and grading.critics.arcade_compatible:
        message = "with arcade_compatible, `extra_calls` frees no call: the score is computed as published"
        yield warning(at, message, "omit one of them")


def _aggregate_advice(suite: Suite) -> Iterator[Finding]:
    yield from _gates_that_everything_meets(suite)
    known = _known_tags(suite)
    for place, tag in _unknown_tags(suite):
        hint = did_you_mean(tag, known) or "an aggregate without runs has no value and misses every gate"
        yield warning(place, f"no case has the tag {quoted(tag)}", hint)
    for number, tag in enumerate(suite.gate.quarantine):
        if tag not in known:
            hint = did_you_mean(tag, known) or "a tag that no case has keeps no case in quarantine"
            yield warning(("gate", "quarantine", number), f"no case has the tag {quoted(tag)}", hint)


def _gates_that_everything_meets(suite: Suite) -> Iterator[Finding]:
    hint = "write what the runs have to reach, or omit it"
    for key in ("min_score", "min_pass_rate"):
        if getattr(suite.gate, key) == 0:
            yield warning(("gate", key), "every batch reaches 0, so that no failed case counts", hint)
    for index, each in enumerate(suite.aggregates):
        for key, table in (("at_least", each.at_least), ("above", each.above), ("at_most", each.at_most)):
            for name, limit in table:
                if limit is not None and _always_met(each.of, key, limit):
                    yield warning(
                        ("aggregates", index, key, name), f"every batch meets {key} {setting_text(limit)}", hint
                    )


def _always_met(measure: str, key: str, limit: float) -> bool:
    # Scores lie between 0 and 1. Times, tokens and costs have no upper end, so only an infinite limit always holds.
    if key == "at_most":
        return limit >= 1 if is_score(measure) else limit == math.inf
    return limit <= 0 if key == "at_least" else limit < 0


def _unknown_tags(suite: Suite) -> Iterator[tuple[Place, str]]:
    """Yield the tags of aggregates that no case has, each with its place."""
    known = _known_tags(suite)
    for index, aggregate in enumerate(suite.aggregates):
        for number, tag in enumerate(aggregate.tags):
            if tag not in known:
                yield ("aggregates", index, "tags", number), tag


def _known_tags(suite: Suite) -> frozenset[str]:
    """Return the tags of the suite's cases, or an empty set if the suite has no aggregates and no quarantine."""
    if not suite.aggregates and not suite.gate.quarantine:
        return frozenset()
    return frozenset(suite.tags).union(*(case.tags for case in suite.cases))


def _conditions_advice(
    mocks: Sequence[Mock], answers: Sequence[Answer], place: Place, *, has_clock: bool
) -> Iterator[Finding]:
    for index, mock in enumerate(mocks):
        yield from _checks_advice(mock.when, (*place, "mocks", index, "when"), has_clock)
    for index, answer in enumerate(answers):
        yield from _checks_advice(answer.when, (*place, "answers", index), has_clock)


def _checks_advice(checks: Checks | None, place: Place, has_clock: bool) -> Iterator[Finding]:
    for name, check in (checks or {}).items():
        yield from _check_advice(check, (*place, name), has_clock)


def _check_advice(check: Check, place: Place, has_clock: bool) -> Iterator[Finding]:
    if not has_clock and (word := check.needs_clock) is not None:
        message = f"`{word}` needs `clock`, which also tells the model the date"
        yield Finding(place, message, 'write clock = "Europe/Berlin" in the suite, or with a time, which is then fixed')
    for at, part in check.placed_parts():
        yield from _check_advice(part, (*place, *at), has_clock)
    if isinstance(check.bare_value, dict):
        yield from _type_advice(check.bare_value, place)
        if (mixed := mixed_check(check.bare_value)) is not None:
            name, others = mixed
            verb = "is not an option" if len(others) == 1 else "are not options"
            message = f"{in_backticks(others)} {verb} of `{name}`, so the whole table is compared as a value"
            yield warning(place, message, did_you_mean(others[0], CHECK_CLASSES[name].options))
    for key, message, hint in check.advice():
        yield warning((*place, key), message, hint)


def _type_advice(value: dict[str, JsonValue], place: Place) -> Iterator[Finding]:
    name, others = value.get("type"), [key for key in value if key != "type"]
    if isinstance(name, str) and not others and name not in JSON_TYPES and (hint := did_you_mean(name, JSON_TYPES)):
        yield warning(
            (*place, "type"), f"{quoted(name)} is not a JSON type, so this table is compared as a value", hint
        )
    if name in JSON_TYPES and len(others) == 1 and (hint := did_you_mean(others[0], CheckBase.model_fields)):
        message = f"{quoted(others[0])} is not an option of the check `type`, so this table is compared as a value"
        yield warning((*place, others[0]), message, hint)


def _arcade_rules(calls: list[tuple[Place, ExpectedCall]]) -> Iterator[Finding]:
    """Find checks that `arcade_compatible` cannot express.

    With this option, a case has one critic for each argument name, so all its calls must check the argument alike."""
    first: dict[str, tuple[Place, tuple[object, ...]]] = {}
    for at, call in calls:
        for name, check in (call.args or {}).items():
            place = (*at, "args", name)
            critic = check.critic_key
            # The first call that has an argument of this name sets the critic. Other calls are compared with it.
            seen_at, seen = first.setdefault(name, (place, critic))
            if seen != critic:
                message = f"with arcade_compatible, every {quoted(name)} of a case must have the same check and weight"
                yield Finding(place, message, f"it differs from {place_text(seen_at[2:])}")
