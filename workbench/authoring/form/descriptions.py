"""The explanations in a form: a sentence for each key that can be added, and a hint in each empty field."""

from __future__ import annotations

from workbench.authoring.form.cells import class_of
from workbench.authoring.form.field_text import ABSENT, value_at
from workbench.authoring.form.row import Cell, CellKind, FormSource
from workbench.numerals import setting_text
from workbench.suite.problems import Place

_ABOUT = {
    # A case
    "tags": "words to find and group cases by",
    "user": "what the user asks",
    # A conversation
    "user.messages": "a message of the user: makes a conversation with a script",
    "user.goal": "what the user wants: a model plays the user of a conversation",
    "user.otherwise": "what the user says when no message fits",
    "user.patience": "how often that is said before the user gives up",
    "user.opening": "the user's first message, as written",
    "user.style": "how the user speaks",
    "user.facts": "what the user knows",
    "user.model": "the model that plays the user",
    "user.prompt": "instructions for the model that plays the user",
    "user.tries": "attempts at a message that breaks the rules",
    "user.vary": "each repeat asks the user's model anew",
    "user.review": "whether a judge looks for the user's mistakes in failed runs",
    "user.max_turns": "messages of the user in a run",
    "stop.answer": "the run ends after an answer that meets a check",
    "stop.called": "the run ends once these tools were called",
    "when.answer": "only after an answer that meets a check",
    "when.called": "only once these tools were called",
    "messages.id": "its name for after_message",
    "messages.end": "the user leaves after the answer to this message",
    "messages.ordered": "a call that is expected in this turn, in this order",
    "messages.unordered": "a call that is expected in this turn",
    "messages.disallowed": "a call that must not happen in this turn",
    "messages.response": "a check of the answer in this turn",
    "system": "the system prompt, in place of the one above",
    "images": "a picture in the request",
    "messages": "the conversation before the request",
    "steps": "a chain: one request after the other, each with its own call",
    "stop_on_failure": "a failed step ends the chain",
    "ordered": "a call that is expected, in this order",
    "unordered": "a call that is expected at any time",
    "disallowed": "a call that must not happen",
    "extra_calls": "whether calls beyond the expected ones are allowed",
    "duplicate_calls": "a call that succeeded must not be made again",
    "at_most.calls": "calls in a run before it fails",
    "at_most.rounds": "model requests in a run before it fails",
    "at_most.tokens": "tokens of a run before it fails",
    "at_most.cost_usd": "US dollars of a run before it fails",
    "at_most.latency_ms": "the model's time in a run before it fails",
    "before": "forbidden until this call was made",
    "after": "forbidden once this call was made",
    "expect_no_calls": "calling nothing is right",
    "expect_nothing_yet": "the case runs without any expectation yet",
    "response_contains": "texts that the final answer contains",
    "response": "a check of the final answer",
    "setup": "a call before each run, to bring the tools into a state",
    "final.changes": "the changes that a run makes",
    "final.readers": "tools that only read, so that their calls change nothing",
    "final.says": "a text that some answer must contain",
    "final.goal": "what a judge must find true of the whole conversation",
    "after_tool": "only an answer after the last call of this tool counts",
    "after_message": "the call is wrong before this message of the user",
    "final.state": "a call after the run, and the check of its result",
    "answers": "an answer to a request that a server sends during a call",
    "answers.tool": "the tool whose call asks",
    "answers.message": "a check of the text of the request",
    "answers.action": "whether the request is accepted",
    "answers.content": "a field of the form that is sent back",
    "answers.text": "what the model says",
    "mocks": "an answer to calls of a tool, in place of its server",
    "tools": "a tool, written out",
    "repeats": "how often the case runs",
    "skip": "why the case does not run",
    "cluster": "groups cases that count as one observation in statistics",
    "offer": "the only tools that the model is offered",
    "models": "the models to run on",
    "execute": "tools are really run on their servers",
    "clock": "the time given to the model, for relative dates",
    "each": "one case for each row of a table or a file",
    "id": "the name by which the case keeps its history",
    # The keys of calls, messages and mocks.
    "args": "an argument, with the check of its value",
    "when": "an argument that the mock answers for",
    "forbidden_args": "arguments that must not be given",
    "only_args": "arguments beyond the listed ones are wrong",
    "optional": "it may be left out",
    "times": "how often the call is made",
    "result": "a check of the result of the call",
    "parallel": "the calls are in one answer",
    "any_of": "another call that is right as well",
    "required": "whether a failed check fails the run",
    "because": "why it is there, shown with the issue",
    "mock_result": "the result of the step's call",
    "content": "what is said",
    "tool_calls": "a call in the answer",
    "is_error": "the result is an error",
    "results": "another answer, for the next call",
    "mocks.state": "whether its variables last for a run or for the batch",
    "mocks.times": "how many calls of a run it answers before other mocks or the server do",
    "delay_ms": "how long to wait before answering",
    # Limits
    "limits.max_rounds": "model requests in a run",
    "limits.max_tool_calls": "calls in a run before it may make no more",
    "limits.max_latency_ms": "the model's time in a run",
    "limits.timeout_s": "the time of a run, after which it is an error",
    "limits.batch_cost_usd": "US dollars that a batch may cost",
    # Grading
    "grading.by": "the grader that decides",
    "grading.fail_threshold": "a lower score is failed",
    "grading.warn_threshold": "a lower score is warned",
    "grading.repeat_rule": "how several runs of a case become one status",
    "grading.invalid_arguments": "the effect of arguments that the tool's schema refuses",
    "grading.whole_numbers": "whether 5.0 is a whole number",
    "grading.extra_calls": "whether calls beyond the expected ones are allowed",
    "grading.compare_by": "the measure that decides a comparison",
    "grading.published_report": "reports include the published system's own lines",
    "critics.weights": "the weights of arguments, for all calls of a case",
    "tool_selection_weight": "the weight of the right tool, relative to its arguments",
    "fail_on_tool_selection": "a wrong tool fails the case",
    "fail_on_tool_call_quantity": "more or fewer calls fail the case",
    "arcade_compatible": "compute exactly as Arcade evals",
    "accuracy.mode": "whether the order of calls counts",
    "name_only": "credit for the right tool with wrong arguments",
    "extra_penalty": "the cost of an extra call",
    "wrong_penalty": "the cost of a wrong call",
    "answer_checks": "whether the score is the mean of the calls and the named checks of the answer",
    "dimensions.latency": "which time is compared with the limit",
    "repeated_calls": "how repeated calls of a tool count",
    # A suite
    "description": "what it is about",
    "servers": "an MCP server with tools",
    "provider_tools": "a tool that the provider of a model runs",
    "aggregates": "statistics over all runs",
    "variants": "a named change of the suite, to compare it with",
    "gate.min_score": "the mean score that all runs must reach",
    "gate.min_pass_rate": "the share of runs that must pass",
    "gate.per": "whether each model must reach it, or all together",
    "gate.quarantine": "tags of cases that count in no gate",
    "gate.max_user_errors": "the share of conversations that the simulated user may spoil",
    "gate.endpoint_faults": "whether faults of an endpoint count as failed",
    "subject.name": "its name in reports",
    "subject.python": "the Python function that is asked, as `module:function`",
    "subject.timeout_s": "how long one run may take",
    "env": "an environment variable",
    "format": "the version of the format",
    # A tool
    "tools.description": "what the model reads about the tool",
    "parameters": "the JSON Schema of its arguments",
    "annotations.title": "a name for people",
    "readOnlyHint": "the tool changes nothing",
    "destructiveHint": "the tool may destroy something",
    "idempotentHint": "a second equal call changes nothing",
    "openWorldHint": "the tool reaches beyond its server",
    "provider_tools.chat": "what a request of Chat Completions offers",
    "provider_tools.messages": "what a request of Messages offers",
    "provider_tools.responses": "what a request of Responses offers",
    # A server
    "prefix": "text before the names of its tools",
    "protocol": "how the connection begins",
    "start_timeout_s": "the limit of its start",
    "call_timeout_s": "the limit of one call",
    "instructions": "whether its instructions go into the system prompt",
    "servers.answers": "which of its own requests are answered",
    "roots": "folders that it is given",
    "cwd": "the folder in which its command runs",
    "transport": "streamable HTTP or server-sent events",
    "headers": "a header of every request",
    "auth": "how to log in",
    "client_id": "a client that is registered already",
    "client_secret": "the variable with the client's secret",
    "issuer": "the only authorization server",
    "scope": "what to ask for at login",
    "object": "the server object in the module",
    "servers.state": "whether all runs share it, or each has its own",
    # The keys of aggregates and variants.
    "aggregates.of": "the measure",
    "aggregates.tags": "only cases with one of these tags",
    "aggregates.per": "for each model, or for all together",
    "statistics": "what is printed",
    "at_least": "a gate: at least this number",
    "above": "a gate: more than this number",
    "at_most": "a gate: at most this number",
    "model": "run on this model alone",
    "params": "parameters of each request",
    "changes": "a change of one tool",
    "changes.name": "another name for the tool",
    "variants.names": "another name for a tool",
    "arguments": "other names for arguments",
    "hidden": "the tool is not offered",
}
"""Sentences by the last keys of a place. The longest entry that fits applies."""


def key_description(place: Place) -> str:
    """Return the sentence that explains the key at a place, or "" if there is none."""
    keys = [part for part in place if isinstance(part, str)]
    for start in range(len(keys)):
        sentence = _ABOUT.get(".".join(keys[start:]))
        if sentence is not None:
            return sentence
    # The key of a limit is the name of a statistic. The sentence is the same for all statistics.
    if keys[-2:-1] and keys[-2] in ("at_least", "above", "at_most"):
        return _ABOUT[keys[-2]]
    return ""


_TAKES: dict[CellKind, str] = {
    "text": "a text",
    "lines": "a text; Alt+Enter begins another line",
    "names": "words, with commas between them",
    "words": "a command and its arguments",
    "value": "a value",
    "json": '{ "type": "object", "properties": { … } }',
    "tool": "the name of a tool",
    "key": "a name",
    "weight": "a number, low, medium or high",
    "response": "the whole answer",
    "check": "a check",
}
_READS = {
    "value": "a value",
    "values": "red, blue",
    "checks": '[{ prefix = "u-" }, { suffix = "42" }]',
    "fields": '{ city = { prefix = "O" }, size = 3 }',
    "text": "a text",
    "model": "the name of a model",
    "number": "a number",
    "range": "5..40",
    "duration": "30s, 15m, 2h or 1d",
}


def placeholder(source: FormSource, cell: Cell) -> str:
    """Return the hint in a cell's empty field: a question, or the accepted values and the default."""
    if cell.is_missing:
        return cell.shown
    if cell.kind == "expected" and cell.shown:
        return f"{cell.shown}; type one to require it"
    takes = _TAKES.get(cell.kind, "")
    if cell.kind == "number":
        takes = _number(cell)
    elif cell.kind in ("expected", "option"):
        value = value_at(source.table, cell.place)
        reads = class_of("" if value is ABSENT else value).editor(cell.option).input_kind
        takes = _READS.get(reads, "")
    elif cell.choices:
        takes = " or ".join(cell.choices)
    if cell.absent and cell.shown not in ("", "none"):
        return f"{takes}; default {cell.shown}".removeprefix("; ")
    return takes


def _number(cell: Cell) -> str:
    number = "a whole number" if cell.limits.whole else "a number"
    bounds = [setting_text(bound) for bound in (cell.limits.least, cell.limits.most) if abs(bound) != float("inf")]
    if len(bounds) == 2:
        return f"{number} from {bounds[0]} to {bounds[1]}"
    if bounds:
        return f"{number} from {bounds[0]}"
    return number
