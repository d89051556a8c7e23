"""Validation rules of suites that the types of single values cannot express, such as mutually exclusive keys.

The rules read the parsed TOML and not the models, so they find problems even if some value has a wrong type. Rules of
checks and of servers are in separate modules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final, cast, get_args

from pydantic import JsonValue

from workbench.checks.answer_checks import are_named_checks
from workbench.checks.check import (
    RESERVED_NAMES,
    check_names_in,
)
from workbench.checks.schemas import (
    BrokenSchemaError,
    dangling_references,
    dialect_of,
    formats_of_schemas,
    is_plainly_valid,
)
from workbench.checks.structure_kinds import mixed_check
from workbench.checks.values import file_name_fault
from workbench.suite.call_rules import ARGUMENT_KEYS, call_rules, nothing_scored
from workbench.suite.check_rules import (
    check_rules,
    checks_rules,
    given_rules,
    mixed_rules,
    unknown_text_check,
    weight_rules,
)
from workbench.suite.grading_model import GRADERS, GraderName, Statistic
from workbench.suite.model import Suite, derived_id
from workbench.suite.problems import (
    Finding,
    Place,
    did_you_mean,
    duplicate_findings,
    exactly_one,
    in_backticks,
    kind_of_value,
    place_text,
    quoted,
    requires_key,
    table,
    tables,
    warning,
)
from workbench.suite.server_rules import reply_rules, server_rules, subject_rules, unrequested_answer_rules
from workbench.suite.user_rules import after_message_rules, goal_rules, user_rules

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
"""Every statistic that an aggregate can have."""

GRADER_QUANTITIES: dict[GraderName, tuple[str, ...]] = {
    "critics": ("earned", "possible"),
    "decision": ("items", "total", "should_call", "tool_name", "arguments"),
    "accuracy": ("expected", "made", "exact", "name_only", "wrong", "extra", "missing", "calls"),
    "trajectory": ("matched", "total", "unexpected", "all_pass"),
    "dimensions": ("precision", "recall", "parameters", "content", "latency_ms", "latency_ok"),
}
"""The quantities in each grader's formula, under the names that grades use."""

RUN_MEASURES: Final = ("score", "latency_ms", "tokens", "cost_usd", "valid_arguments")
"""The measures of every run, independent of its grader. `analysis.measures` defines them."""


def _quantities() -> Iterator[str]:
    for grader, numbers in GRADER_QUANTITIES.items():
        for number in numbers:
            yield f"{grader}.{number}"


PERCENTAGE: Final = "trajectory.percentage"
"""Apple's name for the score of `trajectory`. Checks of the answer do not change it."""

MEASURES: tuple[str, ...] = (*RUN_MEASURES, *GRADERS, *_quantities(), PERCENTAGE)
"""The values of `of` in every suite.

First come the deciding grader's score, the model's latency, its tokens (input and output), their cost in US dollars,
and the share of calls with valid arguments. Then come the score of each grader and the quantities of graders."""

NAMED_MEASURE: Final = "response."
"""The prefix of measures that one suite defines: the named checks of its answers."""


_SHARES: Final = (
    *("accuracy.calls", "trajectory.all_pass", PERCENTAGE),
    *("dimensions.precision", "dimensions.recall", "dimensions.parameters", "dimensions.content"),
)
"""The quantities of graders that are themselves scores (0..1)."""


def is_score(measure: str) -> bool:
    """Return whether the name of a measure means a score.

    If a suite has a lower limit for a score, that limit decides the exit code in place of the statuses of single cases.
    A limit for any other measure counts in addition to the statuses."""
    return measure == "score" or measure in GRADERS or measure in _SHARES or measure.startswith(NAMED_MEASURE)


def replaces_statuses(suite: Suite) -> bool:
    """Return whether a limit for the scores of all runs decides the exit code.

    A single failed case then does not fail the batch."""
    gate = suite.gate
    if gate.min_score is not None or gate.min_pass_rate is not None:
        return True
    for aggregate in suite.aggregates:
        limits = [*aggregate.at_least, *aggregate.above]
        if is_score(aggregate.of) and any(value is not None for _, value in limits):
            return True
    return False


def measures_of(cases: object) -> tuple[str, ...]:
    """Return the measures that an aggregate may name in `of`, in a suite with these cases.

    `cases` is parsed TOML."""
    measures = dict.fromkeys(MEASURES)
    for _, case in tables(cases):
        response = table(case.get("response"))
        # A table that contains a check's name as a key is one unnamed check.
        if response and (are_named_checks(response) or not check_names_in(response)):
            measures |= dict.fromkeys(f"{NAMED_MEASURE}{name}" for name in response)
    return tuple(measures)


_KEPT_SCHEMAS = 1024
_SCHEMA_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


def suite_rules(raw: dict[str, object]) -> Iterator[Finding]:
    """Find problems in everything outside the cases."""
    if "cases" not in raw or raw["cases"] == []:
        yield warning((), "the suite has no cases", "write [[cases]] with `name` and `user`", "no cases")
    if raw.get("models") == []:
        yield Finding(("models",), "must not be empty", "omit it to use the offline model")
    if isinstance(subject := raw.get("subject"), dict):
        yield from subject_rules(raw, subject)
    yield from duplicate_findings(raw.get("servers"), "name", ("servers",), "servers")
    for index, server in tables(raw.get("servers")):
        yield from server_rules(server, ("servers", index))
    yield from tools_rules(raw.get("tools"), ("tools",))
    yield from _provider_tools_rules(raw)
    yield from mock_rules(raw.get("mocks"), ("mocks",))
    yield from reply_rules(raw.get("answers"), ("answers",))
    yield from unrequested_answer_rules(raw)
    yield from _state_rules(raw)
    yield from _variants_rules(raw.get("variants"))
    yield from _named_variants_rules(raw)
    for index, aggregate in tables(raw.get("aggregates")):
        of = aggregate.get("of", "score")
        if isinstance(of, str) and of not in (measures := measures_of(raw.get("cases"))):
            names = ", ".join(f'"{name}"' for name in RUN_MEASURES)
            others = f"write {names}, a grader, or one of its numbers"
            if of.startswith(NAMED_MEASURE):
                others = f"no case has a check of this name in `response`; {others}"
            hint = did_you_mean(of, measures) or others
            yield Finding(("aggregates", index, "of"), f"there is no {quoted(of)} to aggregate", hint)


def _provider_tools_rules(raw: dict[str, object]) -> Iterator[Finding]:
    yield from duplicate_findings(raw.get("provider_tools"), "name", ("provider_tools",), "provider_tools")
    names = {tool.get("name") for _, tool in tables(raw.get("provider_tools"))}
    if not names:
        return
    owners: list[tuple[dict[str, object], Place]] = [(raw, ())]
    for key in ("variants", "cases"):
        for number, each in tables(raw.get(key)):
            owners.append((each, (key, number)))
    for owner, place in owners:
        for index, tool in tables(owner.get("tools")):
            if (name := tool.get("name")) in names:
                message = f"{quoted(str(name))} is also one of `provider_tools`"
                yield Finding((*place, "tools", index, "name"), message, "give one of them another name")
        for key in ("mocks", "setup"):
            for index, item in tables(owner.get(key)):
                if (name := item.get("tool")) in names:
                    message = f"{quoted(str(name))} is never called here: the provider runs it"
                    yield warning((*place, key, index, "tool"), message, f"remove it from `{key}`")


def _variants_rules(variants: object) -> Iterator[Finding]:
    yield from duplicate_findings(variants, "name", ("variants",), "variants")
    for index, variant in tables(variants):
        place: Place = ("variants", index)
        name = variant.get("name")
        if isinstance(name, str) and name and (not name.isprintable() or name != name.strip()):
            yield Finding((*place, "name"), "must be one line without blanks around it", "write a short name")
        if not variant.keys() - {"name", "description"}:
            yield warning(
                place, "the variant changes nothing", "write `system`, `model`, `params` or [[variants.changes]]"
            )
        yield from duplicate_findings(variant.get("servers"), "name", (*place, "servers"), "servers")
        for number, server in tables(variant.get("servers")):
            yield from server_rules(server, (*place, "servers", number))
        yield from tools_rules(variant.get("tools"), (*place, "tools"))
        yield from mock_rules(variant.get("mocks"), (*place, "mocks"))
        yield from duplicate_findings(variant.get("changes"), "tool", (*place, "changes"), "changes")
        for number, change in tables(variant.get("changes")):
            at: Place = (*place, "changes", number)
            yield from _tool_rules(change, at)
            if not change.keys() - {"tool"}:
                yield warning(
                    at, "changes nothing", "write `description`, `parameters`, `name`, `arguments` or `hidden`"
                )
            if "parameters" in change and "arguments" in change:
                yield Finding(
                    (*at, "arguments"),
                    "`arguments` renames arguments of the old schema, which `parameters` replaces",
                    "rename them in `parameters`",
                )


def _named_variants_rules(raw: dict[str, object]) -> Iterator[Finding]:
    """Warn about variants that a case names and the suite lacks. The user may add them with `--variant`."""
    known = [str(variant.get("name")) for _, variant in tables(raw.get("variants"))]
    for number, case in tables(raw.get("cases")):
        for index, own in tables(case.get("variants")):
            name = own.get("name")
            if isinstance(name, str) and name not in known:
                place: Place = ("cases", number, "variants", index, "name")
                hint = did_you_mean(name, known) or "write it in [[variants]], or give its file with --variant"
                yield warning(place, f"the suite has no variant {quoted(name)}", hint)


_TOOL_KEYS = ("name", "parameters", "annotations")
"""The keys of a tool that users write below `[tools.parameters]` by mistake."""


def tools_rules(tools: object, place: Place) -> Iterator[Finding]:
    """Check the tools that a suite or a case defines."""
    yield from duplicate_findings(tools, "name", place, "tools")
    for index, tool in tables(tools):
        yield from _tool_rules(tool, (*place, index))


def _tool_rules(tool: dict[str, object], place: Place) -> Iterator[Finding]:
    if "parameters" not in tool:
        return
    place = (*place, "parameters")
    parameters = tool["parameters"]
    if isinstance(parameters, str):
        try:
            parameters = json.loads(parameters)
        except (ValueError, RecursionError):
            return
    elif isinstance(parameters, dict):
        for key in _TOOL_KEYS:
            if key in parameters:
                hint = f"keys below a table header belong to that table: write `{key}` above `[tools.parameters]`"
                yield Finding((*place, key), f"`{key}` is a key of the tool, not of its schema", hint)
        # These keys are already reported. The other keys are checked as a schema.
        parameters = parameters.copy()
        for key in _TOOL_KEYS:
            parameters.pop(key, None)
    if isinstance(parameters, dict):
        for finding in _schema_findings(parameters):
            yield replace(finding, place=(*place, *finding.place))


def _schema_findings(schema: dict[str, object]) -> Iterable[Finding]:
    # The app reads a suite again after each key typed in a case, and checking schemas takes longest. Results are
    # therefore cached by the text of the schema. A schema with dates or with too deep nesting has no such text.
    try:
        return _findings_of_text(json.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return _schema_rules(schema, ())


@lru_cache(maxsize=_KEPT_SCHEMAS)
def _findings_of_text(text: str) -> tuple[Finding, ...]:
    return tuple(_schema_rules(json.loads(text), ()))


def _schema_rules(schema: dict[str, object], place: Place) -> Iterator[Finding]:
    if "type" not in schema:
        yield Finding(place, "the schema must have a type", 'write type = "object"')
    elif schema["type"] != "object" and schema["type"] in _SCHEMA_TYPES:
        yield Finding((*place, "type"), 'must be "object", because arguments have names', 'write type = "object"')
    if is_plainly_valid(schema):
        return
    dialect: Any = dialect_of(schema)
    checking = dialect(dialect.META_SCHEMA, format_checker=formats_of_schemas(dialect))
    seen: set[Place] = set()
    try:
        for error in checking.iter_errors(schema):
            at = (*place, *error.absolute_path)
            if at in seen:
                continue
            seen.add(at)
            keyword, value = at[-1], error.instance
            hint = ""
            if keyword == "type":
                message = f"{kind_of_value(value)} is not a JSON Schema type"
                hint = (did_you_mean(value, _SCHEMA_TYPES) if isinstance(value, str) else "") or in_backticks(
                    _SCHEMA_TYPES
                )
            elif keyword == "pattern":
                message = f"{kind_of_value(value)} is not a regular expression"
            else:
                message = f"not a valid JSON Schema: {kind_of_value(value)} is not allowed here"
                hint = _schema_hint(str(error.validator), error.validator_value)
            yield Finding(at, message, hint)
        if not seen:
            for dangling in dangling_references(cast("dict[str, JsonValue]", schema)):
                message = f"the reference {quoted(dangling.reference)} leads nowhere in the schema"
                hint = "define its target in the schema, such as below `$defs`"
                yield Finding((*place, *dangling.path, "$ref"), message, hint)
    except RecursionError:
        yield Finding(place, "the schema is nested too deeply")
    # A schema that is invalid, or whose pattern cannot be searched for, is already reported.
    except BrokenSchemaError:
        return


def _schema_hint(validator: str, expected: object) -> str:
    if validator == "type":
        # The keyword `type` takes one or several names.
        names = expected if isinstance(expected, list) else [expected]
        return f"JSON Schema allows: {' or '.join(str(name) for name in names)}"
    return ""


def mock_rules(mocks: object, place: Place) -> Iterator[Finding]:
    for index, mock in tables(mocks):
        at = (*place, index)
        answers = ("result", "results", "error", "python")
        # TOML puts every key below the header `[mocks.when]` into that table.
        swallowed = [key for key in answers if key in table(mock.get("when"))]
        if swallowed and not any(key in mock for key in answers):
            message = f"a mock needs one of {in_backticks(answers)}"
            yield Finding(at, message, f"`{swallowed[0]}` is inside `when`: write it above the header of `when`")
        else:
            yield from exactly_one(mock, answers, at, "a mock")
        yield from checks_rules(mock.get("when"), (*at, "when"))
        yield from requires_key(mock, {"state": "python"}, at)
        faults = file_name_fault(mock.get("python"))
        yield from (Finding((*at, "python"), message, hint) for message, hint in faults)


def _state_rules(raw: dict[str, object]) -> Iterator[Finding]:
    lists: list[tuple[object, Place]] = [(raw.get("mocks"), ("mocks",))]
    for key in ("variants", "cases"):
        for index, owner in tables(raw.get(key)):
            lists.append((owner.get("mocks"), (key, index, "mocks")))
    first: dict[str, tuple[object, Place]] = {}
    for mocks, place in lists:
        for index, mock in tables(mocks):
            reference, at = mock.get("python"), (*place, index)
            if not isinstance(reference, str):
                continue
            module, state = reference.partition(":")[0], mock.get("state", "run")
            known, known_at = first.setdefault(module, (state, at))
            if known != state:
                message = (
                    f"{quoted(module)} has another `state` than at {place_text(known_at)}, but a module has only one"
                )
                yield Finding((*at, "python"), message, "write the same `state` at all mocks of the module")


_EXCLUDED_BY_STEPS = ("user", "ordered", "unordered", "disallowed", "extra_calls", "expect_no_calls", "variants")

_FIELDS_OF_ROLE: dict[object, tuple[str, ...]] = {
    "user": ("role", "content"),
    "assistant": ("role", "content", "tool_calls"),
    "tool": ("role", "call", "content", "is_error"),
}


def cases_rules(cases: object, templates: Sequence[int] = ()) -> Iterator[Finding]:
    """Find problems in the cases of a suite, such as duplicate ids and names.

    `templates` has, for each case, the index of its `[[cases]]` table in the file. It may be empty if no case has
    `each`."""
    yield from _ids(cases, templates)
    yield from _names(cases, templates)
    for index, case in tables(cases):
        yield from _case_rules(case, ("cases", index))


def _ids(cases: object, templates: Sequence[int]) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, case in tables(cases):
        name, case_id = case.get("name"), case.get("id")
        is_derived = "id" not in case
        if is_derived and isinstance(name, str) and name:
            case_id = derived_id(name)
        if not isinstance(case_id, str):
            continue
        if case_id in first:
            key, origin = "id", ""
            if is_derived:
                key, origin = "name", ", derived from the name"
            other = templates[first[case_id]] if templates else first[case_id]
            message = f"two cases have the id {quoted(case_id)}{origin}: also cases[{other}]"
            yield Finding(("cases", index, key), message, "give this case a different `id`", kind="several cases")
        first.setdefault(case_id, index)


def _names(cases: object, templates: Sequence[int]) -> Iterator[Finding]:
    """Find cases with the name of an earlier case. `--case NAME` selects both, and reports do not distinguish them."""
    first: dict[str, int] = {}
    without_id: set[str] = set()
    for index, case in tables(cases):
        name = case.get("name")
        if not isinstance(name, str) or not name:
            continue
        at = templates[index] if templates else index
        # If two cases get the same id from their name, this is already an error. The rows of one case are compared
        # elsewhere.
        is_reported = first.setdefault(name, at) == at or ("id" not in case and name in without_id)
        if not is_reported:
            message = f"two cases have the name {quoted(name)}: also cases[{first[name]}]"
            yield warning(("cases", index, "name"), message, "give one of them another `name`", "several cases")
        if "id" not in case:
            without_id.add(name)


def _case_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    if "steps" in case:
        yield from _chain_rules(case, place)
    elif "user" not in case:
        yield Finding(place, "a case needs `user`, the request, or `steps`")
    if isinstance(user := case.get("user"), dict) and "steps" not in case:
        yield from user_rules(case, user, (*place, "user"))
    yield from after_message_rules(case, place)
    if "stop_on_failure" in case and "steps" not in case:
        yield Finding((*place, "stop_on_failure"), "`stop_on_failure` needs `steps`", "remove it")
    if case.get("skip") == "":
        yield Finding((*place, "skip"), "must say why the case is skipped", "write a reason, or remove the key")
    if case.get("models") == []:
        yield Finding((*place, "models"), "must not be empty", "omit it to use the suite's models")
    for key, rules in _RULES_OF_KEYS.items():
        if key in case:
            yield from rules(case, place)
    for index, message in tables(table(case.get("user")).get("messages")):
        yield from _group_rules(message, (*place, "user", "messages", index))
        yield from _response_rules(message, (*place, "user", "messages", index))
    yield from _calls_rules(case, place)
    if "variants" in case:
        yield from _rules_of_variants(case["variants"], (*place, "variants"))


def _rules_of_variants(variants: object, place: Place) -> Iterator[Finding]:
    yield from duplicate_findings(variants, "name", place, "variants")
    for index, variant in tables(variants):
        at = (*place, index)
        yield from _no_calls_rules(variant, at)
        yield from _group_rules(variant, at)
        yield from _calls_rules(variant, at)


def _no_calls_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    if case.get("expect_no_calls") is True:
        for key in ("ordered", "unordered"):
            if case.get(key):
                message = f"`{key}` expects calls, and `expect_no_calls` expects none"
                yield Finding((*place, key), message, "remove one of them; `disallowed` may stay")


def _calls_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    for call, at in _calls(case, place):
        yield from call_rules(call, at)
        yield from checks_rules(call.get("args"), (*at, "args"))
        if call.get("only_args") is True and "args" not in call and "tool" in call:
            hint = "name the arguments in `args`; args = {} is for a call without any"
            yield Finding((*at, "only_args"), "`only_args` needs `args`", hint)
        if "disallowed" not in at and "final" not in at:
            yield from weight_rules(call.get("args"), (*at, "args"))


def _image_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    """Check the images of a case. `suite.case_images` checks whether their files exist."""
    first = next((step for _, step in tables(case.get("steps"))), case)
    if case.get("images") and "user" not in first:
        message = "`images` are sent with the first message, which the case lacks"
        yield Finding((*place, "images"), message, "write `user`")
    for index, image in tables(case.get("images")):
        at, file = (*place, "images", index, "file"), image.get("file")
        if not isinstance(file, str) or not file:
            continue
        if PurePosixPath(file).is_absolute() or PureWindowsPath(file).drive or "\\" in file:
            yield Finding(at, "must be a path from the folder of the suite", 'write "images/door.png"')
        elif ".." in PurePosixPath(file).parts:
            yield Finding(at, "leads out of the folder of the suite", "copy the file into that folder")


def _calls(case: dict[str, object], place: Place) -> Iterator[tuple[dict[str, object], Place]]:
    """Yield every description of a call. Alternatives follow the call that lists them."""
    for call, at in _whole_calls(case, place):
        yield call, at
        for index, alternative in tables(call.get("any_of")):
            yield alternative, (*at, "any_of", index)


def _whole_calls(case: dict[str, object], place: Place) -> Iterator[tuple[dict[str, object], Place]]:
    for key in ("ordered", "unordered", "disallowed", "steps"):
        for index, item in tables(case.get(key)):
            at = (*place, key, index)
            if key in ("ordered", "unordered") and "any_order" in item:
                for inner, call in tables(item["any_order"]):
                    yield call, (*at, "any_order", inner)
            else:
                yield item, at
                for condition in ("before", "after") if key == "disallowed" else ():
                    if isinstance(other := item.get(condition), dict):
                        yield other, (*at, condition)
    for index, message in tables(table(case.get("user")).get("messages")):
        yield from _whole_calls(message, (*place, "user", "messages", index))
    for index, change in tables(table(case.get("final")).get("changes")):
        yield change, (*place, "final", "changes", index)


def _group_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    for index, item in tables(case.get("unordered")):
        if "any_order" in item and item.get("parallel") is not True:
            hint = "write the calls themselves, or parallel = true for calls of one answer"
            yield Finding((*place, "unordered", index), "a group in `unordered` needs `parallel = true`", hint)


def _chain_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    for key in _EXCLUDED_BY_STEPS:
        if key in case:
            hint = "move it into the first step" if key == "user" else "a case has expectations or steps, not both"
            yield Finding((*place, key), f"`{key}` cannot be used together with `steps`", hint)
    steps = case["steps"]
    if steps == []:
        yield Finding((*place, "steps"), "must not be empty", "write [[cases.steps]] for each step")
    for index, step in tables(steps):
        at = (*place, "steps", index)
        if index == 0 and "user" not in step:
            yield Finding(at, "the first step needs `user`, the request")
        for key in (*ARGUMENT_KEYS, "result", "is_error", "because"):
            if key in step and "tool" not in step and "any_of" not in step:
                message = f"`{key}` needs `tool`: a step without `tool` expects no call"
                yield Finding((*at, key), message, "name the tool, or remove the key")


def _offer_rules(offer: object, place: Place) -> Iterator[Finding]:
    if not isinstance(offer, list):
        return
    for index, name in enumerate(offer):
        if name in offer[:index]:
            yield Finding((*place, index), f"{kind_of_value(name)} is offered twice", "remove one of them")


def _response_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    if "response" not in case:
        return
    place = (*place, "response")
    response = case["response"]
    if isinstance(response, dict):
        by_name = not check_names_in(response) or are_named_checks(response)
        before: list[Finding] = []
        if (mixed := mixed_check(response)) is not None and not are_named_checks(response):
            before = list(mixed_rules(*mixed, place))
        elif not by_name or not check_names_in(response):
            before = list(check_rules(response, place, of_answer=True))
        yield from before
        if by_name and not before:
            yield from _named_rules(response, place)
    elif not isinstance(response, str):
        message = f"must be text or one check, not {kind_of_value(response)}"
        yield Finding(place, message, "the final answer is text")


def _final_rules(case: dict[str, object], place: Place) -> Iterator[Finding]:
    if not isinstance(final := case["final"], dict):
        return
    place = (*place, "final")
    if not final.keys() & {"changes", "says", "state", "goal"}:
        message = "`final` needs `changes`, `says`, `state` or `goal`"
        yield Finding(place, message, "say what must be true when the run has ended")
    yield from requires_key(final, {"readers": "changes"}, place)
    yield from goal_rules(final, (*place, "goal"))
    if final.get("state") == []:
        yield Finding((*place, "state"), "must not be empty", "write [[cases.final.state]] for each call")
    for index, state in tables(final.get("state")):
        at: Place = (*place, "state", index, "result")
        if isinstance(result := state.get("result"), dict):
            yield from check_rules(result, at)
            yield from given_rules(result, at)
            yield from nothing_scored(result, ("weight", "optional", "required"), at, "in `final`")
        if not state.keys() & {"result", "is_error"}:
            hint = "say what the tool must answer, or that it must answer with an error: is_error = true"
            yield Finding(at[:-1], "a final state needs `result` or `is_error`", hint)
    for index, change in tables(final.get("changes")):
        for name, check in table(change.get("args")).items():
            at = (*place, "changes", index, "args", name)
            yield from nothing_scored(check, ("weight", "required"), at, "in `final`")


def _named_rules(checks: dict[str, object], place: Place) -> Iterator[Finding]:
    # A misspelt check looks like a name: `contians = "text"`. Names must therefore have tables as values, and cannot be
    # words of checks.
    if not checks:
        yield Finding(place, "must be text, one check, or checks by name", 'such as { contains = "text" }')
    for name, value in checks.items():
        at = (*place, name)
        if name in RESERVED_NAMES and not (isinstance(value, dict) and check_names_in(value)):
            yield Finding(at, f"`{name}` cannot be the name of a check: it is a check or an option", "choose another")
        elif not name.isprintable() or not name.strip():
            yield Finding(at, f"{quoted(name)} cannot be the name of a check", "write one line of text")
        elif not isinstance(value, dict) or not check_names_in(value):
            yield from _without_check(name, value, at)
        else:
            yield from check_rules(value, at, of_answer=True)


def _without_check(name: str, value: object, place: Place) -> Iterator[Finding]:
    # Either the name or one of the table's keys is a misspelt check.
    words = (name, *islice(table(value), 4))
    yield from unknown_text_check(words, place, "must be a table with one check")


def _message_rules(messages: object, place: Place) -> Iterator[Finding]:
    made: dict[str, Place] = {}
    answered: set[str] = set()
    for index, message in tables(messages):
        at = (*place, index)
        role = message.get("role")
        if not isinstance(role, str) or role not in _FIELDS_OF_ROLE:
            continue
        fields = _FIELDS_OF_ROLE[role]
        for key in ("content", "tool_calls", "call", "is_error"):
            if key in message and key not in fields:
                hint = f"it takes {in_backticks(fields[1:])}"
                yield Finding((*at, key), f"a message with the role `{role}` takes no `{key}`", hint)
        if role == "assistant" and not message.get("content") and not message.get("tool_calls"):
            yield Finding(at, "an assistant message needs `content` or `tool_calls`")
        if role != "assistant" and "content" not in message:
            yield Finding(at, f"a message with the role `{role}` needs `content`")
        for number, call in tables(message.get("tool_calls")):
            call_id = call.get("id")
            if isinstance(call_id, str):
                if call_id in made:
                    hint = "give every call its own id"
                    yield Finding((*at, "tool_calls", number, "id"), f"two calls have the id {quoted(call_id)}", hint)
                made.setdefault(call_id, (*at, "tool_calls", number))
        if role == "tool":
            yield from _answer_rules(message, at, made, answered)
    for call_id, at in made.items():
        if call_id not in answered:
            hint = "many models refuse such a conversation: add a message with the role `tool`"
            yield warning(at, f"the call {quoted(call_id)} has no answer", hint)


def _answer_rules(
    message: dict[str, object], place: Place, calls: dict[str, Place], answered_ids: set[str]
) -> Iterator[Finding]:
    call_id = message.get("call")
    if "call" not in message:
        yield Finding(place, "a message with the role `tool` needs `call`, the id of the call that it answers")
    elif not isinstance(call_id, str):
        return
    elif call_id not in calls:
        hint = "write the `id` of a tool call in an earlier assistant message"
        yield Finding((*place, "call"), f"no earlier call has the id {quoted(call_id)}", hint)
    elif call_id in answered_ids:
        yield Finding((*place, "call"), f"the call {quoted(call_id)} is answered twice")
    else:
        answered_ids.add(call_id)


_RULES_OF_KEYS: Mapping[str, Callable[[dict[str, object], Place], Iterator[Finding]]] = {
    "expect_no_calls": _no_calls_rules,
    "offer": lambda case, place: _offer_rules(case["offer"], (*place, "offer")),
    "response": _response_rules,
    "final": _final_rules,
    "images": _image_rules,
    "messages": lambda case, place: _message_rules(case["messages"], (*place, "messages")),
    "tools": lambda case, place: tools_rules(case["tools"], (*place, "tools")),
    "mocks": lambda case, place: mock_rules(case["mocks"], (*place, "mocks")),
    "answers": lambda case, place: reply_rules(case["answers"], (*place, "answers")),
    "unordered": _group_rules,
}
"""The rules for some keys of a case. Findings are in the order of these keys."""
