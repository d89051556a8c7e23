"""Finds calls that stand in the text of an answer, in the forms of the common chat templates.

A form with a template's mark (`<tool_call>`, `[TOOL_CALLS]`) is found anywhere outside Markdown's code. JSON, Python
and ReAct also occur in explanations, so they are calls only where the answer consists of nothing else. A call counts
only if its tool was offered and its arguments are valid by the tool's schema.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from workbench.checks.schemas import ArgumentSchema, BrokenSchemaError
from workbench.checks.values import cut, describe_value
from workbench.dataclasses import ByIdentity
from workbench.grading.grade import ENDPOINT_FAULT, Issue
from workbench.numerals import count_text
from workbench.startup import late_pattern
from workbench.suite.model import same_tool
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import properties_of
from workbench.trajectory.trajectory import Round, Trajectory

# Names of tools with pieces of a chat template in them, which an endpoint's parser should have removed.

_WORDS = (
    r"functions?|tools?|tool_calls?|function_calls?|default_api|assistant|analysis|commentary|final|json|to|recipient"
    r"|namespace|call|name|code|constrain|message|channel"
)
_BEFORE = late_pattern(rf"""(?:<[^<>]*>|[\s.:=/<"'`,\[\](){{}}|]|{_WORDS})*""")
_AFTER = late_pattern(rf"""(?:<[|｜/].*|[\s.:=/"'`,\[\](){{}}|>]|:\d+|{_WORDS})*""", re.DOTALL)


def is_offered(name: str, tools: Iterable[ToolDefinition]) -> bool:
    """Return whether a name is that of one of the tools."""
    return any(same_tool(tool.name, name) for tool in tools)


def meant_tool(written: str, names: Iterable[str]) -> str | None:
    """Return the tool that is meant by a name with a template's residue around it; `None` for any other name."""
    for name in sorted(names, key=len, reverse=True):
        place = written.find(name) if name else -1
        if place < 0 or name == written:
            continue
        before, after = written[:place], written[place + len(name) :]
        touches = (before and _of_name(before[-1])) or (after and _of_name(after[0]))
        if not touches and _BEFORE.fullmatch(before) and _AFTER.fullmatch(after):
            return name
    return None


def _of_name(character: str) -> bool:
    return character.isalnum() or character in "_-"


MAX_TEXT_CHARS = 50_000
"""Longer answers are not searched."""

_DECODER = json.JSONDecoder()

_THOUGHTS = late_pattern(
    r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)"
    r"|<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z)",
    re.DOTALL,
)
# Some templates write the opening mark into the prompt.
_END_OF_THOUGHTS = late_pattern(r"\A.*</(?:think|thinking|thought|reasoning)>", re.DOTALL)
_END_OF_ANSWER = late_pattern(r"(?:\s|<\|[\w▁]+\|>|<｜[^｜]*｜>|</s>)*\Z")

_CODE = late_pattern(
    r"```.*?(?:```|\Z)|^[ \t]*~~~[^\n]*\n.*?(?:^[ \t]*~~~|\Z)|(`+)[^`\n][^\n]*?\1", re.DOTALL | re.MULTILINE
)
_FENCE = late_pattern(r"```([^\n`]*)\n(.*?)```", re.DOTALL)

_MARK = late_pattern(
    r"""
      <(?:[\w-]+:|｜\w+｜)?(?: tool_?calls? | function_?calls? )>
    | <[|｜] (?: tool[_▁]calls? (?:[_▁]\w+)* | python_tag | START_ACTION | action_start | plugin ) [|｜]>
    | \[TOOL_CALLS\]
    | <function= | <(?:\w+:|｜\w+｜)?(?: invoke | function )\ name=
    | \bfunctools (?= \[ )
    | \bto= (?= functions\. )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FILLING = late_pattern(
    r"(?:\s|<[|｜][^<>|｜]*[|｜]>|\[(?:ARGS|TOOL_CALLS)\]|\[CALL_ID\]\w+|```\w*|(?:function|json|commentary|code)(?=[\s<{])|[\"'>:])*"
)
_NAME = late_pattern(r"[\w.:-]+?(?=:\d+\b|[^\w.:-]|\Z)|[\w.:-]+")
_PAIR = late_pattern(
    r"<(?:\w+:|｜\w+｜)?parameter(?:=|\ name=)[\"']?(?P<name>[^\"'<>]+)[\"']?[^<>]*>(?P<value>.*?)"
    r"</(?:\w+:|｜\w+｜)?parameter>"
    r"|<arg_key>(?P<key>[^<]+)</arg_key>\s*<arg_value>(?P<written>.*?)</arg_value>",
    re.DOTALL,
)
_CLOSING = late_pattern(r"</(?!(?:\w+:|｜\w+｜)?param|arg_)|<[|｜](?!\w+｜param)|\[/?TOOL|<tool_?call", re.IGNORECASE)

_REACT = late_pattern(
    r"(?:(?:Thought|Question)\s*:(?:(?!```).)*?\n)?\s*Action\s*:\s*[`\"']?(?P<name>[\w.:-]+)[`\"']?\s*\n"
    r"\s*Action[ _]Input\s*:",
    re.DOTALL,
)
_REACT_JSON = late_pattern(r"(?:(?:Thought|Question)\s*:(?:(?!```).)*?\n)?\s*Action\s*:\s*(?=```|\{)", re.DOTALL)
_OBSERVED = late_pattern(r"\s*Observation\s*:")

_WRAPPED = late_pattern(r"\A<(\w+)>(.*)</\1>\Z", re.DOTALL)
"""One pair of tags around everything, such as `<tools>`."""

_END_OF_CALL = late_pattern(
    r"(?: </(?:[\w:]+|｜\w+｜)?(?: tool_?calls? | function_?calls? | function | invoke )>"
    r" | <[|｜][\w▁]{0,20}call[\w▁]{0,20}end[|｜]> | <\|call\|> )\s*\Z",
    re.VERBOSE | re.IGNORECASE,
)

_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "tool_arguments", "kwargs")
_LIST_KEYS = ("tool_calls", "function_calls", "calls")
_OTHER_KEYS = frozenset({"id", "type", "index", "call_id", "tool_call_id"})


class TextCall(NamedTuple):
    """A call in the text of an answer."""

    tool: str
    arguments: Mapping[str, JsonValue]


class _Python(NamedTuple):
    """A call in Python: its arguments without a name have a place alone."""

    name: str
    positional: tuple[JsonValue, ...]
    named: Mapping[str, JsonValue]


def calls_in_text(text: str, tools: Sequence[ToolDefinition]) -> tuple[TextCall, ...]:
    """Return the calls of offered tools that an answer's text consists of, or that a template's mark announces."""
    if len(text) > MAX_TEXT_CHARS or not any(tool.name in text for tool in tools):
        return ()
    answer = _without_thoughts(text)
    reader = _Reader(tools)
    bodies = [body for _, body in _fences(answer)] or [answer]
    marked = []
    for body in bodies:
        marked.extend(reader.marked(body))
    found = marked or reader.whole(answer)
    return tuple(each for at, each in enumerate(found) if each not in found[:at])


def calls_after_thoughts(thoughts: str, tools: Sequence[ToolDefinition]) -> tuple[TextCall, ...]:
    """Return the calls with a template's marks that thoughts without an answer end in."""
    if len(thoughts) > MAX_TEXT_CHARS or not _END_OF_CALL.search(thoughts):
        return ()
    return tuple(_Reader(tools).marked(thoughts)[-1:])


def _without_thoughts(text: str) -> str:
    answer = _END_OF_THOUGHTS.sub("", _THOUGHTS.sub("", text))
    return _END_OF_ANSWER.sub("", answer).strip()


def _fences(answer: str) -> list[tuple[str, str]]:
    """Return language and body of each fenced block of an answer that consists of such blocks alone."""
    if _FENCE.sub("", answer).strip():
        return []
    return _FENCE.findall(answer)


def _unwrapped(body: str) -> str:
    wrapped = _WRAPPED.match(body)
    return body if wrapped is None else wrapped[2].strip()


class _Reader:
    """Reads calls of offered tools."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def marked(self, text: str) -> list[TextCall]:
        """Read the calls after the marks of templates, as far as they are not in code or quoted."""
        code = [match.span() for match in _CODE.finditer(text)]
        found = []
        for mark in _MARK.finditer(text):
            at = mark.start()
            if any(start <= at < end for start, end in code) or text[at - 1 : at] in ('"', "'", "`"):
                continue
            found += self._after_mark(text, mark.end())
        return found

    def whole(self, answer: str) -> list[TextCall]:
        """Read an answer that consists of calls alone; any other has none."""
        if (react := self._react(answer)) is not None:
            return react
        found = []
        for language, body in _fences(answer) or [("", answer.strip("`"))]:
            calls = self._body(_unwrapped(body.strip()), printed=language.strip() == "tool_code")
            if not calls:
                return []
            found += calls
        return found

    def _after_mark(self, text: str, at: int) -> list[TextCall]:
        at = _filled(text, at)
        rest = text[at : _end_of_call(text, at)].strip().strip("`").strip()
        if text[at : at + 1] in ("{", "["):
            values, _ = _json_values(text, at)
            if not values:  # a list that was cut off after whole calls
                values, _ = _json_values(text, _filled(text, at + 1))
            return (
                self._valid(_named_in(map(_with_arguments, values)))
                or self._valid(_named_in(_literal(rest)))
                or self._python(rest)
            )
        name = _NAME.match(text, at)
        if name is None:
            return []
        # A dot before `call` belongs to the form, not to the name.
        if text[name.end() : name.end() + 1] == "(":
            return self._python(rest)
        return self._valid([(name.group().removesuffix(".call"), self._arguments(text, name.end(), rest))])

    def _arguments(self, text: str, at: int, rest: str) -> JsonValue | list[tuple[str, str]]:
        """Return the arguments after a tool's name: an object, or pairs of texts."""
        number = re.compile(r":\d+\b").match(text, at)
        begin = _filled(text, number.end() if number is not None else at)
        if text[begin : begin + 1] == "{":
            values, _ = _json_values(text, begin)
            return values[0] if values else None
        end = _end_of_call(text, at)
        pairs = []
        for each in _PAIR.finditer(rest):
            pairs.append((each["name"] or each["key"], each["value"] or each["written"] or ""))
        if pairs or not text[begin:end].strip():
            return pairs
        return None

    def _react(self, answer: str) -> list[TextCall] | None:
        """Read a call in the form of ReAct; `None` for an answer of another form."""
        if (head := _REACT.match(answer)) is not None:
            name = head["name"]
        elif (head := _REACT_JSON.match(answer)) is not None:
            name = None
        else:
            return None
        values, end = _json_values(answer, _filled(answer, head.end()))
        if len(values) != 1:
            return None
        rest = answer[end:].strip().strip("`")
        if rest and not _OBSERVED.match(rest):
            return []
        return self._valid([(name, values[0])] if name is not None else _named_in(values))

    def _body(self, text: str, *, printed: bool) -> list[TextCall]:
        values, end = _json_values(text, 0)
        if values and end == len(text):
            named = _named_in(values)
            calls = self._valid(named)
            return calls if len(calls) == len(named) else []
        if text.startswith(("{", "[")) and (calls := self._valid(_named_in(_literal(text)))):
            return calls
        return self._python(text, printed=printed)

    def _python(self, text: str, *, printed: bool = False) -> list[TextCall]:
        """Read a text that is nothing but calls in Python, alone, in a list, or one a line."""
        written = _python_calls(text, printed=printed)
        calls = []
        for each in written:
            calls.append(self._call(each.name, self._by_name(each)))
        right = [call for call in calls if call is not None]
        return right if len(right) == len(calls) else []

    def _by_name(self, call: _Python) -> JsonValue:
        tool = self._tools.get(call.name)
        names = [*properties_of(tool.parameters)] if tool is not None else []
        if len(call.positional) > len(names):
            return None
        return {**dict(zip(names, call.positional, strict=False)), **call.named}

    def _valid(self, named: Iterable[tuple[object, object]]) -> list[TextCall]:
        calls = (self._call(name, arguments) for name, arguments in named)
        return [call for call in calls if call is not None]

    def _call(self, name: object, arguments: object) -> TextCall | None:
        if not isinstance(name, str):
            return None
        tool = self._tools.get(name) or self._tools.get(meant_tool(name, self._tools) or "")
        if tool is None:
            return None
        for candidate in _objects(arguments):
            if _accepts(tool, candidate):
                return TextCall(tool.name, candidate)
        return None


def _objects(arguments: object) -> Iterator[dict[str, JsonValue]]:
    """Yield the possible meanings of written arguments: the object, the object in a text, or pairs as text and JSON."""
    if isinstance(arguments, dict):
        yield arguments
    elif isinstance(arguments, str):
        value = _parsed(arguments)
        if isinstance(value, dict):
            yield value
    elif isinstance(arguments, list) and all(isinstance(each, tuple) for each in arguments):
        stripped = {name.strip(): value.strip() for name, value in arguments}
        yield dict(stripped)
        yield {name: _parsed(value) for name, value in stripped.items()}


def _parsed(text: str) -> JsonValue:
    """Return the JSON that a text holds, else the text."""
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


_schema_of: ByIdentity[ToolDefinition, ArgumentSchema] = ByIdentity(lambda tool: ArgumentSchema(tool.parameters))


def _accepts(tool: ToolDefinition, arguments: Mapping[str, JsonValue]) -> bool:
    try:
        return not _schema_of(tool).violations(arguments)
    except BrokenSchemaError:
        return True


def _filled(text: str, at: int) -> int:
    filling = _FILLING.match(text, at)
    return filling.end() if filling is not None else at


def _end_of_call(text: str, at: int) -> int:
    closing = _CLOSING.search(text, at)
    return closing.start() if closing is not None else len(text)


def _json_values(text: str, at: int) -> tuple[list[JsonValue], int]:
    """Return the JSON values that follow each other from a place on, and where they end."""
    values: list[JsonValue] = []
    end = at
    while text[end : end + 1] in ("{", "["):
        try:
            value, end = _DECODER.raw_decode(text, end)
        except (ValueError, RecursionError):
            break
        values.append(value)
        separator = re.compile(r"[\s,;]*(?=[{\[])").match(text, end)
        end = separator.end() if separator is not None else end
    return values, end


def _literal(text: str) -> list[JsonValue]:
    """Return the value of a text in Python's notation, as the only one."""
    try:
        return [ast.literal_eval(text)]
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return []


def _named_in(values: Iterable[JsonValue]) -> list[tuple[object, object]]:
    """Return name and arguments of each value; both are `None` where a value is no call."""
    found: list[tuple[object, object]] = []
    for value in values:
        if isinstance(value, list):
            found += _named_in(value)
        elif isinstance(value, dict) and len(value) == 1 and isinstance(inner := next(iter(value.values())), list):
            is_list = next(iter(value)) in _LIST_KEYS
            found += _named_in(inner) if is_list else [(None, None)]
        else:
            found.append(_named(value))
    return found


def _with_arguments(value: JsonValue) -> JsonValue:
    """Return a value after a mark, where calls without arguments need none written."""
    if isinstance(value, list):
        return [_with_arguments(each) for each in value]
    if isinstance(value, dict) and value.keys().isdisjoint((*_ARGUMENT_KEYS, *_LIST_KEYS, "function", "function_call")):
        return {**value, "arguments": {}}
    return value


def _named(value: JsonValue) -> tuple[object, object]:
    if not isinstance(value, dict):
        return None, None
    inner = value.get("function", value.get("function_call"))
    if isinstance(inner, dict):
        if value.keys() - {"function", "function_call"} <= _OTHER_KEYS:
            return _named(inner)
        return (None, None)
    arguments = [key for key in _ARGUMENT_KEYS if key in value]
    names = [key for key in _NAME_KEYS if isinstance(value.get(key), str)]
    if len(arguments) != 1 or len(names) != 1:
        return None, None
    rest = value.keys() - {names[0], arguments[0]}
    if rest <= _OTHER_KEYS:
        return (value[names[0]], value[arguments[0]])
    return (None, None)


_PYTHON_START = late_pattern(r"[\[(\s]*[A-Za-z_][\w.]*\s*(?:\(|=\s*[A-Za-z_][\w.]*\()")
_JSON_NAMES: Mapping[str, JsonValue] = {"true": True, "false": False, "null": None}


def _python_calls(text: str, *, printed: bool) -> list[_Python]:
    """Return the calls of a text that consists of calls in Python; none for any other text."""
    if not _PYTHON_START.match(text):
        return []
    try:
        nodes = [_expression(statement) for statement in ast.parse(text).body]
        calls = [call for node in nodes for call in _calls_of(node, printed=printed)]
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return []
    return calls


def _expression(statement: ast.stmt) -> ast.expr:
    if isinstance(statement, ast.Expr):
        return statement.value
    raise ValueError("not an expression")


def _calls_of(node: ast.expr, *, printed: bool) -> Iterator[_Python]:
    """Yield the calls of an expression.

    Raises ValueError where it is something else."""
    if isinstance(node, ast.List | ast.Tuple):
        for each in node.elts:
            yield from _calls_of(each, printed=printed)
        return
    if not isinstance(node, ast.Call):
        raise ValueError("not a call")
    name = ast.unparse(node.func).removesuffix(".call")
    if printed and name == "print":
        for each in node.args:
            yield from _calls_of(each, printed=False)
        return
    positional = tuple(_value(each) for each in node.args)
    named = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise ValueError("unpacked arguments")
        named[keyword.arg] = _value(keyword.value)
    yield _Python(name, positional, named)


def _value(node: ast.expr) -> JsonValue:
    if isinstance(node, ast.Name) and node.id in _JSON_NAMES:
        return _JSON_NAMES[node.id]
    if isinstance(node, ast.List):
        return [_value(each) for each in node.elts]
    if isinstance(node, ast.Dict):
        keys = []
        for key in node.keys:
            if key is not None:
                keys.append(ast.literal_eval(key))
        return dict(zip(keys, map(_value, node.values), strict=True))
    value: JsonValue = ast.literal_eval(node)
    return value


CALL_AS_TEXT = "the endpoint returned the call as text: its tool parser is off or of another format"
TOOLS_NEVER_ARRIVED = "the prompt is smaller than the tools that were sent"
RESIDUE = "unknown tool: name with the template's residue"
SENT_SEVERAL_TIMES = "the endpoint sent several objects as the arguments of one call"
"""How the reasons of faults begin."""

_ADVICE: Mapping[str, str] = {
    CALL_AS_TEXT: "turn on the tool parser of the model's format: vLLM `--enable-auto-tool-choice --tool-call-parser"
    " NAME`, llama.cpp `--jinja`, SGLang `--tool-call-parser NAME`, LM Studio a model marked for tool use, Ollama a"
    " model whose template has tools",
    TOOLS_NEVER_ARRIVED: "use a chat template that writes the tools into the prompt: llama.cpp `--jinja`, Ollama"
    " `TEMPLATE` with .Tools",
    RESIDUE: "update the server, or choose the tool parser of the model's format: it leaves the template's marks in"
    " names",
    SENT_SEVERAL_TIMES: "update the server or the gateway before it: each piece of the arguments must be sent once",
}
"""The advice on each fault, by the beginning of its reason."""

MIN_TOOL_TOKENS = 40
"""Smaller tools could be hidden in the inaccuracy of the estimate."""

_CHARACTERS_PER_TOKEN = 6
"""English and identifiers have 3 to 5 with the tokenizers in use."""
_MIN_PROMPT = 16
"""A short message takes more in the chat templates in use: a smaller number is no count of tokens."""


def endpoint_faults(trajectory: Trajectory) -> tuple[Issue, ...]:
    """Return the faults of the endpoint, each of which decides."""
    return tuple(_faults(trajectory))


def advice_about_fault(fault: Issue) -> str | None:
    """Return the advice on a fault; `None` for one that another version found."""
    return next((advice for why, advice in _ADVICE.items() if fault.why.startswith(why)), None)


def fault_as_error(fault: Issue) -> str:
    """Return a fault as the error of a run: the event and the advice."""
    got = "" if fault.got is None else f" (got {fault.got})"
    return f"{ENDPOINT_FAULT}{fault.why}{got}: {advice_about_fault(fault)}"


def _faults(trajectory: Trajectory) -> Iterator[Issue]:
    tools = trajectory.start.tools if trajectory.start is not None else ()
    if not tools:
        return
    as_text = False
    for round_ in trajectory.rounds:
        for issue in _calls_as_text(round_, tools):
            as_text = True
            yield issue
    if not as_text and (lost := _lost_tools(trajectory, tools)) is not None:
        yield lost
    cut_off = {round_.number for round_ in trajectory.rounds if round_.stop_reason == "truncated"}
    for index, record in enumerate(trajectory.calls):
        if (meant := _meant(record.tool, tools)) is not None:
            yield Issue("endpoint fault", f"{RESIDUE}; {meant} is meant", tool=record.tool, call=index, decides=True)
        if record.is_broken and record.round not in cut_off and (objects := _objects_in(record.call.raw or "")):
            got = cut(record.call.raw or "")
            why = f"{SENT_SEVERAL_TIMES}: {objects}"
            yield Issue("endpoint fault", why, tool=record.tool, call=index, got=got, decides=True)


def _calls_as_text(round_: Round, tools: tuple[ToolDefinition, ...]) -> Iterator[Issue]:
    no_answer = not round_.text.strip() and not round_.calls
    text = round_.reasoning if no_answer else round_.text
    if round_.replayed or not any(tool.name in text for tool in tools):
        return
    from workbench.grading.endpoint_faults import calls_after_thoughts, calls_in_text  # on use: few answers name a tool

    # Some endpoints repeat in the text what they return as calls.
    made = [(call.tool, dict(call.arguments)) for call in round_.calls]
    search = calls_after_thoughts if no_answer else calls_in_text
    for call in search(text, tools):
        if (call.tool, dict(call.arguments)) not in made:
            arguments = ", ".join(f"{name}={describe_value(value)}" for name, value in call.arguments.items())
            yield Issue("endpoint fault", CALL_AS_TEXT, got=cut(f"{call.tool}({arguments})"), decides=True)


def _lost_tools(trajectory: Trajectory, tools: tuple[ToolDefinition, ...]) -> Issue | None:
    """Return an issue if the tools never reached the model.

    The prompt then has fewer tokens than the tools and the conversation by a safe estimate. A model that called an
    offered tool has seen them."""
    first = trajectory.rounds[0] if trajectory.rounds else None
    if first is None or first.number != 1 or first.replayed or first.usage is None:
        return None
    prompt, least, said = first.usage.input_tokens, _least_tokens(tools), _least_of_messages(trajectory)
    if least < MIN_TOOL_TOKENS or not max(_MIN_PROMPT, said) <= prompt < least + said:
        return None
    if any(is_offered(call.tool, tools) for call in trajectory.calls):
        return None
    beside = f" beside {count_text(said)} for the conversation" if prompt >= least else ""
    return Issue(
        "endpoint fault",
        TOOLS_NEVER_ARRIVED,
        expected=f"at least {count_text(least)} tokens for the tools alone{beside}",
        got=f"a prompt of {count_text(prompt)} tokens",
        decides=True,
    )


def _least_tokens(tools: tuple[ToolDefinition, ...]) -> int:
    return sum(map(_least_of_tool, tools))


def _tool_tokens(tool: ToolDefinition) -> int:
    properties = properties_of(tool.parameters)
    characters = len(tool.name) + len(tool.description) + sum(map(len, properties))
    # A tool and a property each take some signs, whatever the template's notation.
    return characters // _CHARACTERS_PER_TOKEN + 4 + 2 * len(properties)


_least_of_tool: ByIdentity[ToolDefinition, int] = ByIdentity(_tool_tokens)


def _least_of_messages(trajectory: Trajectory) -> int:
    """Return a safe estimate of the conversation's own tokens: an endpoint that tells fewer does not count them."""
    start = trajectory.start
    assert start is not None
    texts = [start.system or "", *(message.content for message in start.messages)]
    return sum(map(len, texts)) // (2 * _CHARACTERS_PER_TOKEN)


def _meant(name: str, tools: tuple[ToolDefinition, ...]) -> str | None:
    """Return the offered tool that is meant by a name with residue, `None` for an offered name and for any other."""
    if is_offered(name, tools):
        return None

    return meant_tool(name, [tool.name for tool in tools])


def _objects_in(raw: str) -> str:
    """Return how often arguments were sent, in words: several whole objects, or the beginning of one before all of it.

    Returns nothing for any other text."""
    decoder, at, objects = json.JSONDecoder(), 0, list[JsonValue]()
    try:
        while at < len(raw):
            value, at = decoder.raw_decode(raw, at)
            objects.append(value)
            at += len(raw[at:]) - len(raw[at:].lstrip())
    except (ValueError, RecursionError):
        if _is_repeated(raw):
            return "an object after pieces of itself"
        return ""
    several = len(objects) > 1 and all(isinstance(each, dict) for each in objects)
    return f"{len(objects)} of them" if several else ""


_MAX_REPEATED = 20_000


def _is_repeated(raw: str) -> bool:
    """Return whether a text is a JSON object preceded by beginnings of itself.

    An endpoint writes it if its chunks each hold the whole text so far."""
    if len(raw) > _MAX_REPEATED:
        return False
    for begin in (at for at, sign in enumerate(raw) if sign == "{" and at):
        try:
            whole = json.loads(raw[begin:])
        except (ValueError, RecursionError):
            continue
        return isinstance(whole, dict) and _consists_of_beginnings(raw[:begin], raw[begin:])
    return False


def _consists_of_beginnings(text: str, whole: str) -> bool:
    while text:
        common = 0
        while common < min(len(text), len(whole)) and text[common] == whole[common]:
            common += 1
        if not common:
            return False
        text = text[common:]
    return True
