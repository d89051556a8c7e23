"""The rows of the form of a case or of a suite's settings. Each row has the problems of its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import get_args

from workbench.authoring.form.answer_rows import answers_section
from workbench.authoring.form.call_rows import calls_section, messages_section, mocks_section, response_rows, step_rows
from workbench.authoring.form.field_text import ABSENT, items_at, only_keys, shown_name, shown_value, value_at
from workbench.authoring.form.final_rows import final_section, setup_section
from workbench.authoring.form.inner_rows import PATH
from workbench.authoring.form.row import (
    DETAIL,
    Cell,
    CellKind,
    Field,
    FormRow,
    FormSource,
    Limits,
    cell_id,
    field_row,
    heading,
    holds_arguments,
    one_of_keys,
    raw_row,
    section,
    tool_cell,
    tool_marks,
    unknown_rows,
)
from workbench.authoring.form.user_rows import user_section
from workbench.limits import MAX_REPEATS
from workbench.numerals import setting_text
from workbench.show.visible import widest_cells
from workbench.suite.grading_model import (
    EXTRA_CALLS_RULES,
    GRADERS,
    REPEAT_RULES,
    Aggregate,
    ComparedBy,
    Gate,
    GatePer,
    InvalidArguments,
    WholeNumbers,
)
from workbench.suite.model import API_NAMES, Case, CaseImage, CaseVariant, ProviderTool, Subject, Suite, derived_id
from workbench.suite.problems import Place, Problem, is_within, place_text
from workbench.suite.render import Table
from workbench.suite.rules import MEASURES, STATISTICS
from workbench.suite.settings import CONVERSATION_TIMEOUT_S, CriticsOptions, Grading, surplus_rule
from workbench.suite.settings import Limits as LimitsInForce

UNIT = Limits(0, 1)
GATE_PER: tuple[str, ...] = get_args(GatePer)
INVALID_ARGUMENTS: tuple[str, ...] = get_args(InvalidArguments)
WHOLE_NUMBERS: tuple[str, ...] = get_args(WholeNumbers)
COMPARED_BY: tuple[str, ...] = get_args(ComparedBy)

_TABLES: dict[Place, tuple[Field, ...]] = {
    ("limits",): (
        Field("max_rounds", "number", limits=Limits(1, whole=True)),
        Field("max_tool_calls", "number", limits=Limits(0, whole=True)),
        Field("max_latency_ms", "number", limits=Limits(0)),
        Field("timeout_s", "number", limits=Limits(0)),
    ),
    ("at_most",): (
        Field("calls", "number", limits=Limits(0, whole=True)),
        Field("rounds", "number", limits=Limits(1, whole=True)),
        Field("tokens", "number", limits=Limits(1, whole=True)),
        Field("cost_usd", "number", limits=Limits(0)),
        Field("latency_ms", "number", limits=Limits(0)),
    ),
    ("grading",): (
        Field("by", "choice", choices=GRADERS),
        Field("fail_threshold", "number", limits=UNIT),
        Field("warn_threshold", "number", limits=UNIT),
        Field("repeat_rule", "choice", choices=REPEAT_RULES),
        Field("invalid_arguments", "choice", choices=INVALID_ARGUMENTS),
        Field("whole_numbers", "choice", choices=WHOLE_NUMBERS),
        Field("extra_calls", "choice", choices=EXTRA_CALLS_RULES),
        Field("compare_by", "choice", choices=COMPARED_BY),
        Field("published_report", "yes_no"),
    ),
    ("grading", "critics"): (
        Field("tool_selection_weight", "number", limits=Limits(0)),
        Field("fail_on_tool_selection", "yes_no"),
        Field("fail_on_tool_call_quantity", "yes_no"),
        Field("arcade_compatible", "yes_no"),
        Field("weights", "value"),
    ),
    ("grading", "accuracy"): (
        Field("mode", "choice", choices=("exact", "flexible")),
        Field("name_only", "number"),
        Field("extra_penalty", "number"),
        Field("wrong_penalty", "number"),
        Field("answer_checks", "choice", choices=("apart", "averaged")),
    ),
    ("grading", "dimensions"): (
        Field("latency", "choice", choices=("wall", "model")),
        Field("repeated_calls", "choice", choices=("as expected", "as published")),
    ),
    ("gate",): (
        Field("min_score", "number", limits=UNIT),
        Field("min_pass_rate", "number", limits=UNIT),
        Field("per", "choice", choices=GATE_PER),
        Field("quarantine", "names"),
        Field("endpoint_faults", "choice", choices=("fail", "error")),
        Field("max_user_errors", "number", limits=UNIT),
    ),
}
"""The keys of each settings table."""

_SUITE_FIELDS: dict[Place, tuple[Field, ...]] = {("limits",): (Field("batch_cost_usd", "number", limits=Limits(0)),)}
"""The further keys that only a suite has."""

_DEFAULTS: dict[str, object] = {"limits": LimitsInForce(), "grading": Grading(), "gate": Gate.model_construct()}


def settings_rows(source: FormSource, key: str, *, is_rare: bool) -> Iterator[FormRow]:
    """Yield the rows of `limits`, `grading`, `gate` or `at_most`, for a case or for the suite."""
    for place in _TABLES:
        if place[0] == key:
            yield from _table_rows(source, place, is_rare or len(place) > 1)


def _table_rows(source: FormSource, place: Place, is_rare: bool) -> Iterator[FormRow]:
    written = value_at(source.table, place)
    if written is not ABSENT and not isinstance(written, dict):
        yield raw_row(place, 0, written, ".".join(map(str, place)))
        return
    table: Table = written if isinstance(written, dict) else {}
    # A table inside this table has its own section.
    below = [str(inner[-1]) for inner in _TABLES if inner[:-1] == place]
    yield FormRow("section", place, 0, " ".join(map(str, place)), absent=not table, rare=is_rare)
    fields = _TABLES[place]
    if not source.is_case:
        fields += _SUITE_FIELDS.get(place, ())
    for field in fields:
        # In a case, `extra_calls` has its row among the expectations, so it has no row here unless the key is written
        # here.
        if field.key in table or not (source.is_case and field.key == "extra_calls"):
            yield field_row(table, place, _with_default(source, place, field, is_rare), 1 + DETAIL)
    yield from unknown_rows(table, place, 1 + DETAIL, (*_keys_of(fields), *below))


def _keys_of(fields: Iterable[Field]) -> tuple[str, ...]:
    return tuple(field.key for field in fields)


def _with_default(source: FormSource, place: Place, field: Field, is_rare: bool) -> Field:
    at = (*place, field.key)
    inherited = value_at(source.header, at) if source.is_case else ABSENT
    value: object = inherited
    if inherited is ABSENT and place[0] in _DEFAULTS:
        value = _DEFAULTS[str(place[0])]
        for part in at[1:]:  # the attributes have the names of the keys
            value = getattr(value, str(part), None)  # an option that only a suite has is not an attribute here
    if at == ("limits", "timeout_s") and inherited is ABSENT and source.has_conversation:
        value = CONVERSATION_TIMEOUT_S
    text = default_text(value, inherited is not ABSENT)
    if field.key == "extra_calls" and inherited is ABSENT:
        text = surplus_default(source)
    return Field(field.key, field.kind, text, is_rare, field.choices, limits=field.limits)


def surplus_default(source: FormSource) -> str:
    """Return the default of `extra_calls`: the value in the suite, or else the rule of the deciding grader."""
    of_suite = value_at(source.header, ("grading", "extra_calls")) if source.is_case else ABSENT
    if of_suite is not ABSENT:
        return default_text(of_suite, True)
    by = _in_force(source, ("grading", "by"), "critics")
    quantity = _in_force(source, ("grading", "critics", "fail_on_tool_call_quantity"), True)
    if by not in GRADERS or not isinstance(quantity, bool):
        return "the grader's own rule"
    rule = surplus_rule(Grading(by=by, critics=CriticsOptions(fail_on_tool_call_quantity=quantity)))
    return rule.removesuffix(" for the run")


def _in_force(source: FormSource, place: Place, default: object) -> object:
    """Return the value of an option that applies: the case's, or else the suite's, or else the default."""
    for table in (source.table, source.header):
        if (value := value_at(table, place)) is not ABSENT:
            return value
    return default


def default_text(value: object, of_suite: bool) -> str:
    """Return the text of a default value. It mentions the suite if the value comes from there (`of_suite`)."""
    text = str(value)
    match value:
        case bool():
            text = "yes" if value else "no"
        case float():
            text = setting_text(value)
        case list() | tuple():
            text = ", ".join(map(str, value)) or "none"
        case "":
            text = '""'
        case None:
            text = "none"
    if value is ABSENT:
        text = "none"
    return f"suite: {text}" if of_suite else text


# A case with steps must not have these keys. They are shown if written, so that they can be removed.
_EXCLUDED_BY_STEPS = ("user", "ordered", "unordered", "disallowed", "extra_calls", "expect_no_calls")


def rows_of_case(source: FormSource) -> Iterator[FormRow]:
    """Yield all rows of a case, including the rows of rarely used keys."""
    table = source.table
    yield from _head(source)
    yield from section(source, "images", _image_rows, is_rare=True)
    yield from messages_section(source)
    if source.is_chain:
        yield from _steps(source)
        written = list(only_keys(table, _EXCLUDED_BY_STEPS[1:]))
    else:
        written = ["ordered", "unordered", "disallowed"]
    for key in ("ordered", "unordered", "disallowed"):
        if key in written:
            yield from calls_section(source, (key,))
    if not source.is_chain:
        written += ["extra_calls", "expect_no_calls"]
    yield from _rest(source, written)
    yield from setup_section(source)
    yield from final_section(source)
    yield from mocks_section(source)
    yield from answers_section(source)
    yield from section(source, "tools", tool_rows, is_rare=True)
    yield from _seldom(source)
    if not source.is_chain or "variants" in table:
        yield from section(source, "variants", _own_variant_rows, is_rare=True)
    if not source.is_chain and not source.has_conversation and not only_keys(table, _EXCLUDED_BY_STEPS[1:]):
        yield FormRow("section", ("steps",), 0, "steps", absent=True, rare=True, note="none")
    yield from settings_rows(source, "limits", is_rare=True)
    yield from settings_rows(source, "grading", is_rare=True)
    yield from unknown_rows(table, (), 0, tuple(Case.model_fields))
    # The row of the id is last. The first edit writes the id, which must not move the row that is being edited.
    name = table.get("name")
    own_id = derived_id(name) if isinstance(name, str) else "none"
    yield field_row(table, (), Field("id", "text", own_id, rare=True))


def _head(source: FormSource) -> Iterator[FormRow]:
    table, header = source.table, source.header
    yield field_row(table, (), Field("name", "text", "which name?", empty_stays=True))
    yield field_row(table, (), Field("tags", "names"))
    if not source.is_chain or "user" in table:
        yield from user_section(source)
    yield field_row(table, (), Field("system", "lines", _of_suite(header, "system", "none"), empty_stays=True))
    yield field_row(table, (), Field("clock", "text", _of_suite(header, "clock", "none"), rare=True))


def _image_rows(source: FormSource, place: Place, image: Table) -> Iterator[FormRow]:
    file = field_row(image, place, Field("file", "text", "which file?"))
    yield FormRow("item", place, 1, str(int(place[-1]) + 1), file.cells)
    yield from unknown_rows(image, place, 1 + DETAIL, tuple(CaseImage.model_fields))


def _own_variant_rows(_: FormSource, place: Place, variant: Table) -> Iterator[FormRow]:
    yield named_row(place, variant)
    indent = 1 + DETAIL
    for key in ("ordered", "unordered", "disallowed"):
        yield field_row(variant, place, Field(key, "value", "none"), indent)
    yield field_row(variant, place, Field("expect_no_calls", "yes_no", "no"), indent)
    yield from unknown_rows(variant, place, indent, tuple(CaseVariant.model_fields))


def _of_suite(header: Table, key: str, default: str) -> str:
    value = header.get(key, ABSENT)
    if value is ABSENT:
        return default
    return default_text(value, True)


def _steps(source: FormSource) -> Iterator[FormRow]:
    steps = source.table["steps"]
    items = items_at(source.table, ("steps",))
    if not isinstance(steps, list):
        yield from unknown_rows({"steps": steps}, (), 0, ())
        return
    yield heading(("steps",), 0, items)
    system = _of_suite(source.header, "system", "none")
    if (own := source.table.get("system", ABSENT)) is not ABSENT:
        system = f"case: {default_text(own, False)}"
    for index, step in enumerate(items):
        yield from step_rows(source, index, step, system)
    yield field_row(source.table, (), Field("stop_on_failure", "yes_no", "no"))


def _rest(source: FormSource, written: list[str]) -> Iterator[FormRow]:
    table = source.table
    if "extra_calls" in written:
        yield field_row(table, (), Field("extra_calls", "choice", surplus_default(source), choices=EXTRA_CALLS_RULES))
    yield field_row(table, (), Field("duplicate_calls", "choice", "allowed", rare=True, choices=("forbid",)))
    yield from settings_rows(source, "at_most", is_rare=True)
    if "expect_no_calls" in written:
        yield field_row(table, (), Field("expect_no_calls", "yes_no", "no"))
    if "expect_nothing_yet" in table:
        yield field_row(table, (), Field("expect_nothing_yet", "yes_no", "no"))
    if not source.is_chain and "stop_on_failure" in table:
        yield field_row(table, (), Field("stop_on_failure", "yes_no", "no"))
    yield field_row(table, (), Field("response_contains", "names"))
    yield from response_rows(("response",), table.get("response", ABSENT))


def _seldom(source: FormSource) -> Iterator[FormRow]:
    table, header = source.table, source.header
    yield field_row(table, (), Field("repeats", "number", "1", limits=Limits(1, MAX_REPEATS, whole=True)))
    yield field_row(table, (), Field("skip", "text"))
    yield field_row(table, (), Field("each", "value", rare=True))
    yield field_row(table, (), Field("cluster", "text", rare=True))
    yield field_row(table, (), Field("offer", "names", "all tools", rare=True))
    yield field_row(table, (), Field("models", "names", _of_suite(header, "models", "offline"), rare=True))
    yield field_row(table, (), Field("execute", "yes_no", _of_suite(header, "execute", "no"), rare=True))


_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def tool_rows(_: FormSource, place: Place, tool: Table) -> Iterator[FormRow]:
    yield named_row(place, tool)
    indent = 1 + DETAIL
    fields = (Field("description", "lines"), Field("parameters", "json", "no arguments"))
    annotations = tool.get("annotations", {})
    for field in fields:
        yield field_row(tool, place, field, indent)
    yield from unknown_rows(tool, place, indent, ("name", "description", "parameters", "annotations"))
    at = (*place, "annotations")
    if not isinstance(annotations, dict):
        yield raw_row(at, indent, annotations)
        return
    yield FormRow("section", at, indent, "annotations", absent=not annotations, rare=True)
    yield field_row(annotations, at, Field("title", "text", rare=True), indent + 2)
    for hint in _HINTS:
        yield field_row(annotations, at, Field(hint, "yes_no", "not said", rare=True), indent + 2)
    yield from unknown_rows(annotations, at, indent + 2, ("title", *_HINTS))


def _provider_tool_rows(_: FormSource, place: Place, tool: Table) -> Iterator[FormRow]:
    yield named_row(place, tool)
    for api in API_NAMES:
        yield field_row(tool, place, Field(api, "json", "not offered there"), 1 + DETAIL)
    yield from unknown_rows(tool, place, 1 + DETAIL, tuple(ProviderTool.model_fields))


def named_row(place: Place, table: Table) -> FormRow:
    index = place[-1]
    assert isinstance(index, int)
    name = table.get("name", ABSENT)
    at = (*place, "name")
    if name is ABSENT:
        cell = Cell("text", at, absent=True, shown="which name?", empty_stays=True)
    elif isinstance(name, str):
        cell = Cell("text", at, name, shown="" if name else "which name?", empty_stays=True)
    else:
        cell = raw_row(at, 0, name).cells[0]
    return FormRow("item", place, 1, str(index + 1), (cell,))


ADDRESS_KEYS: tuple[str, ...] = ("command", "url", "module")
"""The keys that say how a server is reached. Each server has exactly one of them."""

_ADDRESS_KINDS: dict[str, CellKind] = {"command": "words", "url": "text", "module": "text"}

_HEAD = (
    Field("name", "text", "which name?", empty_stays=True),
    Field("description", "lines"),
    Field("system", "lines"),
    Field("clock", "text", "none", rare=True),
    Field("tags", "names"),
    Field("models", "names", "offline"),
    Field("execute", "yes_no", "no"),
)


def rows_of_suite(source: FormSource) -> Iterator[FormRow]:
    """Yield all rows of a suite's settings, including the rows of rarely used keys."""
    table = source.table
    for field in _HEAD:
        yield field_row(table, (), field)
    # Every valid suite has the same format, so there is a row only for a wrong format.
    if table.get("format") != 1:
        yield field_row(table, (), Field("format", "number", "which format?"))
    yield from _subject_rows(table)
    yield from section(source, "servers", _server_rows)
    yield from section(source, "tools", tool_rows)
    yield from section(source, "provider_tools", _provider_tool_rows, is_rare=True)
    yield from mocks_section(source)
    yield from answers_section(source)
    for key in ("limits", "grading", "gate"):
        yield from settings_rows(source, key, is_rare=False)
    yield from section(source, "aggregates", _aggregate_rows, is_rare=True)
    yield from section(source, "variants", _variant_rows, is_rare=True)
    yield from unknown_rows(table, (), 0, tuple(Suite.model_fields))


def _subject_rows(table: Table) -> Iterator[FormRow]:
    subject = table.get("subject")
    if not isinstance(subject, dict):
        if subject is not None:
            yield raw_row(("subject",), 0, subject)
        return
    place: Place = ("subject",)
    yield FormRow("section", place, 0, "subject")
    if "command" in subject:
        yield raw_row((*place, "command"), 1, subject["command"])
    if "python" in subject:
        yield field_row(subject, place, Field("python", "text"), 1)
    yield field_row(subject, place, Field("name", "text", "subject"), 1)
    yield field_row(subject, place, Field("timeout_s", "number"), 1)
    if "python" not in subject or "env" in subject:
        yield from _map_rows(subject, (*place, "env"), 1)
    yield from unknown_rows(subject, place, 1, tuple(Subject.model_fields))


_LOGIN_KEYS = ("client_id", "client_secret", "issuer", "scope")
"""The keys of a server's login, shown if the server has a login."""


def _server_rows(_: FormSource, place: Place, server: Table) -> Iterator[FormRow]:
    yield named_row(place, server)
    indent = 1 + DETAIL
    yield one_of_keys(server, place, ADDRESS_KEYS, _ADDRESS_KINDS, indent)
    # A server may have only one of these keys. All are shown, so that the user can remove the others.
    for key in list(only_keys(server, ADDRESS_KEYS))[1:]:
        yield raw_row((*place, key), indent, server[key])
    fields = [
        Field("prefix", "text", rare=True),
        Field("protocol", "choice", "auto", choices=("auto", "legacy"), rare=True),
        Field("start_timeout_s", "number", "60", rare=True, limits=Limits(0)),
        Field("call_timeout_s", "number", "60", rare=True, limits=Limits(0)),
        Field("instructions", "choice", "system", choices=("system", "off"), rare=True),
        Field("answers", "names", "none", rare=True),
        Field("roots", "names", "none", rare=True),
    ]
    if "command" in server or "cwd" in server:
        fields.insert(0, Field("cwd", "text", "the suite's folder"))
    if "url" in server or "transport" in server:
        fields.append(Field("transport", "choice", "http", choices=("http", "sse"), rare=True))
    if "url" in server or "auth" in server:
        fields.append(Field("auth", "choice", choices=("oauth", "client_credentials"), rare=True))
    fields += (Field(key, "text", rare=True) for key in _LOGIN_KEYS if "auth" in server or key in server)
    if "module" in server or "object" in server:
        fields.append(Field("object", "text", "mcp", rare=True))
    fields.append(Field("state", "choice", "batch", choices=("run", "batch"), rare=True))
    for field in fields:
        yield field_row(server, place, field, indent)
    # Only a server with a command has variables, and only a server with an address has headers.
    for key, beside in (("env", "command"), ("headers", "url")):
        if key in server or beside in server:
            yield from _map_rows(server, (*place, key), indent)
    known = ("name", *ADDRESS_KEYS, "env", "headers", *_keys_of(fields))
    yield from unknown_rows(server, place, indent, known)


def _map_rows(table: Table, place: Place, indent: int) -> Iterator[FormRow]:
    written = table.get(str(place[-1]), {})
    if not isinstance(written, dict):
        yield raw_row(place, indent, written)
        return
    yield heading(place, indent, written)
    for name, value in written.items():
        at = (*place, name)
        cell = Cell("value", at, shown_value(value), empty_stays=True)
        if isinstance(value, str):
            cell = replace(cell, kind="text", text=value)
        yield FormRow("pair", at, indent + 2, "", (Cell("key", at, shown_name(name)), cell))


_VARIANT_FIELDS = (
    Field("description", "lines", rare=True),
    Field("system", "lines", "as written", empty_stays=True),
    Field("model", "text", "each model", rare=True),
    Field("offer", "names", "as written", rare=True),
    Field("params", "json", "as written", rare=True),
)
_TOOL_CHANGE_FIELDS = (
    Field("name", "text", "as written"),
    Field("description", "lines", "as written", empty_stays=True),
    Field("parameters", "json", "as written", rare=True),
    Field("hidden", "yes_no", "no", rare=True),
)


def _variant_rows(source: FormSource, place: Place, variant: Table) -> Iterator[FormRow]:
    """Yield the rows of one variant. Tools, servers and mocks that the variant defines cannot be edited in the form."""
    yield named_row(place, variant)
    indent = 1 + DETAIL
    for field in _VARIANT_FIELDS:
        yield field_row(variant, place, field, indent)
    if "names" in variant:
        yield from _map_rows(variant, (*place, "names"), indent)
    at = (*place, "changes")
    changes = variant.get("changes", [])
    if isinstance(changes, list):
        yield heading(at, indent, changes)
        for index, change in enumerate(changes):
            yield from _change_rows(source, (*at, index), change, indent + 1)
    else:
        yield raw_row(at, indent, changes)
    yield from unknown_rows(variant, place, indent, ("name", "names", "changes", *_keys_of(_VARIANT_FIELDS)))


def _change_rows(source: FormSource, place: Place, change: object, indent: int) -> Iterator[FormRow]:
    label = str(int(place[-1]) + 1)
    if not isinstance(change, dict):
        yield raw_row(place, indent, change, label)
        return
    cell = tool_cell((*place, "tool"), change.get("tool", ABSENT))
    yield FormRow("item", place, indent, label, (cell,), marks=tool_marks(source, change))
    inner = indent + DETAIL
    for field in _TOOL_CHANGE_FIELDS:
        yield field_row(change, place, field, inner)
    if "arguments" in change:
        yield from _map_rows(change, (*place, "arguments"), inner)
    yield from unknown_rows(change, place, inner, ("tool", "arguments", *_keys_of(_TOOL_CHANGE_FIELDS)))


def _aggregate_rows(_: FormSource, place: Place, aggregate: Table) -> Iterator[FormRow]:
    yield named_row(place, aggregate)
    indent = 1 + DETAIL
    fields = (
        Field("of", "choice", "score", choices=MEASURES),
        Field("tags", "names", "all cases"),
        Field("per", "choice", Aggregate.model_fields["per"].default, choices=GATE_PER),
        Field("statistics", "names", ", ".join(Aggregate.model_fields["statistics"].default)),
    )
    for field in fields:
        yield field_row(aggregate, place, field, indent)
    yield from unknown_rows(aggregate, place, indent, tuple(Aggregate.model_fields))
    for key in ("at_least", "above", "at_most"):
        at, written = (*place, key), aggregate.get(key, {})
        if not isinstance(written, dict):
            yield raw_row(at, indent, written)
            continue
        yield heading(at, indent, written)
        for name in STATISTICS:
            yield field_row(written, at, Field(name, "number", rare=True), indent + 2)
        yield from unknown_rows(written, at, indent + 2, STATISTICS)


WIDEST_LABEL = 18
"""The maximum width of aligned labels, argument names and checks."""

CASE_LABELS, SUITE_LABELS = len("response_contains"), len("description")
"""The widths of labels for the keys of a case and a suite. They are fixed so that values do not move when a key is
added."""

_MORE_OF_CASE = "a call, mock, tag, limit, answer …"
_MORE_OF_SUITE = "a tool, server, mock, limit, gate …"


def every_row(source: FormSource) -> list[FormRow]:
    """Return the rows of all keys that a case or the settings of a suite may have, written or not."""
    if source.is_case:
        return list(rows_of_case(source))
    return list(rows_of_suite(source))


def form_rows(source: FormSource) -> list[FormRow]:
    """Return the rows of the form of a case or of a suite's settings, aligned and with their problems.

    Rows of keys that are not written are hidden. The last row opens a search for them."""
    rows = every_row(source)
    more = _MORE_OF_CASE if source.is_case else _MORE_OF_SUITE
    # Problems are attached before rows are hidden, because a row with a problem stays visible even if its key is not
    # written.
    rows = [_with_invalid_texts(source, row) for row in _with_problems(source, rows)]
    labels = CASE_LABELS if source.is_case else SUITE_LABELS
    last = FormRow("more", (), 0, "less", note="shows only what is written", label_cells=labels)
    if not source.every_key:
        rows = list(_unfolded(rows, source.revealed))
        last = FormRow("more", (), 0, "add …", note=more, label_cells=labels)
    return [*aligned(rows, labels), last]


def _unfolded(rows: Sequence[FormRow], revealed: Place | None) -> Iterator[FormRow]:
    wanted = {row.place for row in rows if row.absent and (row.place == revealed or _shows_expectation(row))}
    for row in rows:
        is_heading = row.kind == "section" and any(place[: len(row.place)] == row.place for place in wanted)
        if not row.absent or row.place in wanted or is_heading:
            yield row


def _with_invalid_texts(source: FormSource, row: FormRow) -> FormRow:
    if not source.invalid_texts:
        return row
    cells = [replace(cell, invalid=source.invalid_texts.get(cell_id(cell))) for cell in row.cells]
    return replace(row, cells=tuple(cells))


def _shows_expectation(row: FormRow) -> bool:
    # The row of a table of arguments is always shown, because the user adds arguments there. If the table is empty, the
    # row says "any".
    if row.problems or row.kind == "pair" or holds_arguments(row.place):
        return True
    return any(cell.is_missing or cell.invalid is not None for cell in row.cells)


def aligned(rows: Sequence[FormRow], top_labels: int) -> list[FormRow]:
    """Align the labels, names and checks of neighbouring rows that belong to one table.

    `top_labels` is the width of the labels in rows that belong to no inner table."""
    # Rows of one table are aligned as long as they follow each other. A row without columns, such as a heading,
    # interrupts them.
    bands: dict[tuple[int, Place], list[int]] = {}
    finished: list[list[int]] = []
    for at, row in enumerate(rows):
        if not _is_in_column(row):
            for key in list(bands):
                if key[0] >= row.indent:
                    finished.append(bands.pop(key))
        else:
            owner = _owner(row)
            bands.setdefault((row.indent, owner), []).append(at)
    placed = list(rows)
    for band in (*finished, *bands.values()):
        pairs = [rows[at] for at in band if rows[at].kind == "pair"]
        label_cells = top_labels
        if rows[band[0]].place[:-1]:
            label_cells = _widest(rows[at].label for at in band)
        checks = _widest(row.cells[1].text for row in pairs if len(row.cells) > 2)
        widths = (_widest(row.cells[0].text for row in pairs), checks)
        for at in band:
            if rows[at].kind == "pair":
                placed[at] = replace(rows[at], widths=widths)
            else:
                placed[at] = replace(rows[at], label_cells=label_cells)
    return placed


def _owner(row: FormRow) -> Place:
    """Return the place of the table with whose rows a row is aligned.

    All parts of a value belong to one table. All parts of a condition belong to one table, too."""
    if PATH in row.label:
        return (row.label.partition(PATH)[0],)
    owner = row.place[:-1]
    if row.kind == "field" and owner[:1] == ("user",) and owner[-1] in ("when", "stop"):
        return owner[:-1]
    return owner


def _is_in_column(row: FormRow) -> bool:
    return row.kind in ("field", "pair") or (row.kind == "section" and (row.absent or bool(row.cells)))


def _widest(texts: Iterable[str]) -> int:
    return min(widest_cells(texts), WIDEST_LABEL)


def _with_problems(source: FormSource, rows: list[FormRow]) -> list[FormRow]:
    """Attach each problem to the row of the innermost place that contains the problem, or else to the first row."""
    own = [problem for problem in source.problems if _is_about(source, problem)]
    if not own:
        return rows
    found: dict[int, list[Problem]] = {}
    # The rows are read backwards. If several rows have the same place, the first of these rows then gets the problems.
    places = {place_text((*source.at, *row.place)): at for at, row in reversed(list(enumerate(rows)))}
    for problem in own:
        at = places.get(nearest(problem.where, places), 0)
        found.setdefault(at, []).append(problem)
    rows = list(rows)
    for at, problems in found.items():
        rows[at] = replace(rows[at], problems=tuple(problems))
    return rows


def _is_about(source: FormSource, problem: Problem) -> bool:
    if not source.at:
        return not problem.where.startswith("cases[")
    return is_within(problem.where, place_text(source.at))


def nearest(where: str, places: Iterable[str]) -> str:
    """Return the longest of `places` that equals or contains the place `where` of a problem."""
    # Each candidate contains the place, so the longest candidate is the innermost.
    return max((place for place in places if is_within(where, place)), key=len, default="")


def row_at(rows: Sequence[FormRow], place: Place) -> int | None:
    """Return the index of the row of a place, or of the nearest place around it.

    Return `None` if there is no such row."""
    places = {}
    for at, row in reversed(list(enumerate(rows))):
        if row.kind != "more":
            places[row.place] = at
    for length in range(len(place), 0, -1):
        if place[:length] in places:
            return places[place[:length]]
    return None
