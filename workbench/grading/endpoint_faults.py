"""Faults of the endpoint rather than the model: calls left in the text, lost tools, residue in names, repeated pieces.

A model writes its calls in the notation of its chat template, and the server's tool parser turns them into structured
calls. If the parser is off or expects another notation, a correct call stays in the text, and the run seems to have no
call. The notations below are those of the templates and parsers of vLLM, SGLang, llama.cpp and Ollama.

A call with a template's mark (`<tool_call>`, `[TOOL_CALLS]`) is found anywhere outside Markdown's code. JSON, Python
and ReAct also occur in explanations, so they are calls only if the answer consists of nothing else. A call counts only
if its tool was offered and, without a mark, only if its arguments are valid by the tool's schema. A false alarm would
blame the endpoint for a wrong answer of the model."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from workbench.checks.schemas import ArgumentSchema, BrokenSchemaError
from workbench.checks.values import cut_text
from workbench.dataclasses import cached_by_identity
from workbench.grading.grade import ENDPOINT_FAULT, Issue, call_text
from workbench.numerals import count_text
from workbench.startup import late_pattern
from workbench.suite.expected_calls import same_tool
from workbench.trajectory.events import JsonValue, ToolDefinition, names_of_tools, tools_by_name
from workbench.trajectory.json_schema import properties_of
from workbench.trajectory.system_prompt import prompt_of
from workbench.trajectory.trajectory import Round, Trajectory

# Residue is a piece of a chat template next to a tool's name, which the endpoint's parser should have removed, as in
# `functions.get_weather:0` or `get_weather<|channel|>commentary`.

# The words that templates write around a name. A name next to any other word belongs to another tool.
_WORDS = (
    r"functions?|tools?|tool_calls?|function_calls?|default_api|assistant|analysis|commentary|final|json|to|recipient"
    r"|namespace|call|name|code|constrain|message|channel"
)
_BEFORE = late_pattern(rf"""(?:<[^<>]*>|[\s.:=/<"'`,\[\](){{}}|]|{_WORDS})*""")
_AFTER = late_pattern(rf"""(?:<[|｜/].*|[\s.:=/"'`,\[\](){{}}|>]|:\d+|{_WORDS})*""", re.DOTALL)


def is_offered(name: str, tools: Iterable[ToolDefinition]) -> bool:
    return any(same_tool(tool.name, name) for tool in tools)


def intended_tool(written: str, names: Iterable[str]) -> str | None:
    r"""Return the offered tool whose name stands between remains of a chat template, or `None` for any other name.

    >>> intended_tool("functions.get_weather:0", ["get_weather"])
    'get_weather'
    """
    # The longest name comes first because `get_weather` is also a part of `get_weather_report`.
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


# Calls in the text of an answer.

MAX_TEXT_CHARS = 50_000
"""The longest answer that is searched for calls, in characters."""

_DECODER = json.JSONDecoder()

_THOUGHTS = late_pattern(
    r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)"
    r"|<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z)",
    re.DOTALL,
)
# Some templates write the opening mark of thoughts into the prompt, so the answer contains only the closing mark.
_END_OF_THOUGHTS = late_pattern(r"\A.*</(?:think|thinking|thought|reasoning)>", re.DOTALL)
# The search begins only at the first of several blanks. Otherwise, many blanks would take quadratic time.
_END_OF_ANSWER = late_pattern(r"(?<!\s)(?:\s|<\|[\w▁]+\|>|<｜[^｜]*｜>|</s>)*\Z")

_CODE = late_pattern(
    r"```.*?(?:```|\Z)|^[ \t]*~~~[^\n]*\n.*?(?:^[ \t]*~~~|\Z)|(`+)[^`\n][^\n]*?\1", re.DOTALL | re.MULTILINE
)
_FENCE = late_pattern(r"```([^\n`]*)\n(.*?)```", re.DOTALL)

# The marks before a call: Hermes and Qwen, Gemma, DeepSeek (with `｜` and `▁`), Llama and InternLM, Mistral, the
# XML-like `<function=…>` and `<invoke name=…>`, Functionary, and gpt-oss (`to=functions.…`).
_MARK = late_pattern(
    r"""
      <(?:[\w-]+:|｜\w+｜)?(?: tool_?calls? | function_?calls? )>
    | <start_function_call>(?=call:) | <\|tool_call>(?=call:)
    | <[|｜] (?: tool[_▁]calls? (?:[_▁]\w+)* | python_tag | START_ACTION | action_start | plugin ) [|｜]>
    | \[TOOL_CALLS\]
    | <function= | <(?:\w+:|｜\w+｜)?(?: invoke | function )\ name=
    | \bfunctools (?= \[ )
    | \bto= (?= functions\. )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# The punctuation between a mark and the name, and between the name and the arguments.
_FILLING = late_pattern(
    r"(?:\s|<[|｜][^<>|｜]*[|｜]>|\[(?:ARGS|TOOL_CALLS)\]|\[CALL_ID\]\w+|```\w*|(?:function|json|commentary|code)(?=[\s<{])|[\"'>:])*"
)
_NAME = late_pattern(r"[\w.:-]+?(?=:\d+\b|[^\w.:-]|\Z)|[\w.:-]+")
# Arguments as pairs of tags: `<parameter=…>` (Qwen's coder models, MiniMax, DeepSeek) and `<arg_key>` (GLM).
_PAIR = late_pattern(
    r"<(?:\w+:|｜\w+｜)?parameter(?:=|\ name=)[\"']?(?P<name>[^\"'<>]+)[\"']?[^<>]*>(?P<value>.*?)"
    r"</(?:\w+:|｜\w+｜)?parameter>"
    r"|<arg_key>(?P<key>[^<]+)</arg_key>\s*<arg_value>(?P<written>.*?)</arg_value>",
    re.DOTALL,
)
# Gemma's calls: `call:get_weather{city:<escape>Oslo<escape>,days:3}`, or `<|"|>` in place of `<escape>`.
_GEMMA = late_pattern(
    r"call:(?P<name>[\w.-]+)\{(?P<arguments>.*?)\}(?:<tool_call\|>|<end_function_call>|\Z)", re.DOTALL
)
_PAIR_OF_GEMMA = late_pattern(r'\b(\w+):(?:(<escape>|<\|"\|>)(.*?)\2|([^,]*))', re.DOTALL)
_CLOSING = late_pattern(r"</(?!(?:\w+:|｜\w+｜)?param|arg_)|<[|｜](?!\w+｜param)|\[/?TOOL|<tool_?call", re.IGNORECASE)

_REACT = late_pattern(
    r"(?:(?:Thought|Question)\s*:(?:(?!```).)*?\n)?\s*Action\s*:\s*[`\"']?(?P<name>[\w.:-]+)[`\"']?\s*\n"
    r"\s*Action[ _]Input\s*:",
    re.DOTALL,
)
_REACT_JSON = late_pattern(r"(?:(?:Thought|Question)\s*:(?:(?!```).)*?\n)?\s*Action\s*:\s*(?=```|\{)", re.DOTALL)
_OBSERVED = late_pattern(r"\s*Observation\s*:")

_WRAPPED = late_pattern(r"\A<(\w+)>(.*)</\1>\Z", re.DOTALL)
"""An answer inside one pair of tags, such as `<tools>`."""

_END_OF_CALL = late_pattern(
    r"(?: </(?:[\w:]+|｜\w+｜)?(?: tool_?calls? | function_?calls? | function | invoke )>"
    r" | <[|｜][\w▁]{0,20}call[\w▁]{0,20}end[|｜]> | <\|call\|> )\s*\Z",
    re.VERBOSE | re.IGNORECASE,
)

# Models invent keys when no parser is configured. An object counts as a call if it has exactly one name and one object
# of arguments.
_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input", "tool_input", "action_input", "tool_arguments", "kwargs")
_LIST_KEYS = ("tool_calls", "function_calls", "calls")
_OTHER_KEYS = frozenset({"id", "type", "index", "call_id", "tool_call_id"})


class TextCall(NamedTuple):
    """A call that was found in the text of an answer."""

    tool: str
    arguments: Mapping[str, JsonValue]


class _Python(NamedTuple):
    name: str
    positional: tuple[JsonValue, ...]
    named: Mapping[str, JsonValue]


def calls_in_text(text: str, tools: Sequence[ToolDefinition]) -> tuple[TextCall, ...]:
    """Return the calls of offered tools that a model wrote into the text of its answer.

    Either the text consists only of calls, or each call follows a template's mark. Equal calls count once."""
    if len(text) > MAX_TEXT_CHARS or not _names_a_tool(text, tools):
        return ()
    answer = _without_thoughts(text)
    reader = _Reader(tools)
    bodies = [body for _, body in _fences(answer)] or [answer]
    marked = []
    for body in bodies:
        marked.extend(reader.marked(body))
    # This is a list and not a set, because the arguments of calls are dictionaries, which are not hashable.
    found: list[TextCall] = []
    for call in marked or reader.whole(answer):
        if call not in found:
            found.append(call)
    return tuple(found)


_BROKEN_CALL = late_pattern(
    r"<tool_?call>\s*(?=\{\s*[\"']name[\"']\s*:\s*[\"'](?P<name>[\w.:-]+)[\"']\s*,"
    r"\s*[\"'](?:arguments|parameters)[\"']\s*:)",
    re.IGNORECASE,
)
_LAST_CLOSING = late_pattern(r"</tool_?call>\Z", re.IGNORECASE)
_TOOL_CLOSING = late_pattern(r"</tool", re.IGNORECASE)


def broken_call_in_text(text: str, tools: Sequence[ToolDefinition]) -> str | None:
    """Return the call of an offered tool that ends an answer in the notation `<tool_call>`, but is no JSON."""
    if len(text) > MAX_TEXT_CHARS:
        return None
    rest = _TOOL_CLOSING.split(_LAST_CLOSING.sub("", _without_thoughts(text)))[-1]
    if (found := _BROKEN_CALL.search(rest)) is None or not is_offered(found["name"], tools):
        return None
    written = rest[found.end() :].rstrip()
    values, _ = _json_values(written, 0)
    if values or _literal(written):
        return None
    return written


def calls_after_thoughts(thoughts: str, tools: Sequence[ToolDefinition]) -> tuple[TextCall, ...]:
    """Return the last call in a model's thoughts, if the thoughts end with a call in a chat template's notation."""
    # Earlier calls in the thoughts may be abandoned plans.
    if len(thoughts) > MAX_TEXT_CHARS or not _END_OF_CALL.search(thoughts):
        return ()
    return tuple(_Reader(tools).marked(thoughts)[-1:])


def _without_thoughts(text: str) -> str:
    answer = _END_OF_THOUGHTS.sub("", _THOUGHTS.sub("", text))
    return _END_OF_ANSWER.sub("", answer).strip()


def _fences(answer: str) -> list[tuple[str, str]]:
    """Return the language and body of each fenced block, or an empty list if there is text outside the blocks."""
    if _FENCE.sub("", answer).strip():
        return []
    return _FENCE.findall(answer)


def _unwrapped(body: str) -> str:
    if (wrapped := _WRAPPED.match(body)) is not None:
        return wrapped[2].strip()
    return body


def _names_a_tool(text: str, tools: Iterable[ToolDefinition]) -> bool:
    return any(tool.name in text for tool in tools)


class _Reader:
    """A reader of calls in text. It accepts only calls of offered tools.

    Arguments must be valid. After a mark, arguments that the tool's schema refuses are accepted too, if there are
    any."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._tools = tools_by_name(tools)

    def marked(self, text: str) -> list[TextCall]:
        code = [match.span() for match in _CODE.finditer(text)]
        found = []
        for mark in _MARK.finditer(text):
            at = mark.start()
            if any(start <= at < end for start, end in code) or text[at - 1 : at] in ('"', "'", "`"):
                continue
            found += self._after_mark(text, mark.end())
        return found

    def whole(self, answer: str) -> list[TextCall]:
        if (react := self._react(answer)) is not None:
            return react
        found = []
        for language, body in _fences(answer) or [("", answer.strip("`"))]:
            calls = self._body(_unwrapped(body.strip()), is_printed=language.strip() == "tool_code")
            if not calls:
                return []
            found += calls
        return found

    def _after_mark(self, text: str, position: int) -> list[TextCall]:
        if (gemma := _GEMMA.match(text, position)) is not None:
            pairs = [(name, quoted or bare) for name, _, quoted, bare in _PAIR_OF_GEMMA.findall(gemma["arguments"])]
            return self._calls([(gemma["name"], pairs)], is_marked=True)
        position = _filled(text, position)
        rest = text[position : _end_of_call(text, position)].strip().strip("`").strip()
        if text[position : position + 1] in ("{", "["):
            values, _ = _json_values(text, position)
            if not values:
                # A list cut off at the token limit still has complete calls at its beginning.
                values, _ = _json_values(text, _filled(text, position + 1))
            return (
                self._calls(_named_in(map(_with_arguments, values)), is_marked=True)
                or self._calls(_named_in(_literal(rest)), is_marked=True)
                or self._python(rest, is_marked=True)
            )
        name = _NAME.match(text, position)
        if name is None:
            return []
        # Some templates write `name.call(…)`: the dot and `call` are not part of the name.
        if text[name.end() : name.end() + 1] == "(":
            return self._python(rest, is_marked=True)
        arguments = self._arguments(text, name.end(), rest)
        return self._calls([(name.group().removesuffix(".call"), arguments)], is_marked=True)

    def _arguments(self, text: str, position: int, rest: str) -> JsonValue | list[tuple[str, str]]:
        # Kimi writes the number of the call after the name: `functions.get_weather:0`.
        number = re.compile(r":\d+\b").match(text, position)
        begin = _filled(text, number.end() if number is not None else position)
        if text[begin : begin + 1] == "{":
            values, _ = _json_values(text, begin)
            return next(iter(values), None)
        end = _end_of_call(text, position)
        pairs = []
        for each in _PAIR.finditer(rest):
            pairs.append((each["name"] or each["key"], each["value"] or each["written"] or ""))
        if pairs or not text[begin:end].strip():
            return pairs
        return None

    def _react(self, answer: str) -> list[TextCall] | None:
        if (head := _REACT.match(answer)) is not None:
            name = head["name"]
        elif (head := _REACT_JSON.match(answer)) is not None:
            name = None
        else:
            return None
        values, end = _json_values(answer, _filled(answer, head.end()))
        if len(values) != 1:
            return None
        # Models that write ReAct often continue with an invented observation.
        rest = answer[end:].strip().strip("`")
        if rest and not _OBSERVED.match(rest):
            return []
        if name is None:
            return self._calls(_named_in(values))
        return self._calls([(name, values[0])])

    def _body(self, text: str, *, is_printed: bool) -> list[TextCall]:
        values, end = _json_values(text, 0)
        if values and end == len(text):
            # If one value is not a call, the answer does not consist of calls.
            named = _named_in(values)
            calls = self._calls(named)
            if len(calls) == len(named):
                return calls
            return []
        if text.startswith(("{", "[")) and (calls := self._calls(_named_in(_literal(text)))):
            return calls
        return self._python(text, is_printed=is_printed)

    def _python(self, text: str, *, is_printed: bool = False, is_marked: bool = False) -> list[TextCall]:
        calls = []
        for written in _python_calls(text, is_printed=is_printed):
            call = self._call(written.name, self._by_name(written), is_marked=is_marked)
            if call is None:
                return []
            calls.append(call)
        return calls

    def _by_name(self, call: _Python) -> JsonValue:
        names: list[str] = []
        if (tool := self._tools.get(call.name)) is not None:
            names = [*properties_of(tool.parameters)]
        # Positional arguments are in the order of the schema's properties.
        if len(call.positional) > len(names):
            return None
        return {**dict(zip(names, call.positional, strict=False)), **call.named}

    def _calls(self, named: Iterable[tuple[object, object]], *, is_marked: bool = False) -> list[TextCall]:
        calls = []
        for name, arguments in named:
            call = self._call(name, arguments, is_marked=is_marked)
            if call is not None:
                calls.append(call)
        return calls

    def _call(self, name: object, arguments: object, *, is_marked: bool = False) -> TextCall | None:
        if not isinstance(name, str):
            return None
        tool = self._tools.get(name) or self._tools.get(intended_tool(name, self._tools) or "")
        if tool is None:
            return None
        readings = list(_objects(arguments))
        for candidate in readings:
            if _accepts(tool, candidate):
                return TextCall(tool.name, candidate)
        if is_marked and readings and readings[0]:
            return TextCall(tool.name, readings[0])
        return None


def _objects(arguments: object) -> Iterator[dict[str, JsonValue]]:
    """Yield each way to read written arguments as a JSON object.

    Pairs of tags have two readings: every value as text, and every value as JSON if it is valid JSON."""
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
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


_schema_of: Callable[[ToolDefinition], ArgumentSchema] = cached_by_identity(
    lambda tool: ArgumentSchema(tool.parameters)
)


def _accepts(tool: ToolDefinition, arguments: Mapping[str, JsonValue]) -> bool:
    try:
        return not _schema_of(tool).violations(arguments)
    except BrokenSchemaError:
        return True


def _filled(text: str, position: int) -> int:
    if (filling := _FILLING.match(text, position)) is not None:
        return filling.end()
    return position


def _end_of_call(text: str, position: int) -> int:
    """Return the position of the next closing mark, or the end of the text."""
    if (closing := _CLOSING.search(text, position)) is not None:
        return closing.start()
    return len(text)


def _json_values(text: str, position: int) -> tuple[list[JsonValue], int]:
    values: list[JsonValue] = []
    end = position
    while text[end : end + 1] in ("{", "["):
        try:
            value, end = _DECODER.raw_decode(text, end)
        except (ValueError, RecursionError):
            break
        values.append(value)
        if (separator := re.compile(r"[\s,;]*(?=[{\[])").match(text, end)) is not None:
            end = separator.end()
    return values, end


def _literal(text: str) -> list[JsonValue]:
    """Return the value of a Python literal as a list of one element, or an empty list for any other text."""
    # Some models write dictionaries as Python does, with single quotes and `True`.
    try:
        return [ast.literal_eval(text)]
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return []


def _named_in(values: Iterable[JsonValue]) -> list[tuple[object, object]]:
    """Return the name and the arguments of each value that is a call. Both are `None` for any other value."""
    found: list[tuple[object, object]] = []
    for value in values:
        inner = value
        if isinstance(value, dict) and len(value) == 1 and (key := next(iter(value))) in _LIST_KEYS:
            inner = value[key]
        if isinstance(inner, list):
            found += _named_in(inner)
        else:
            found.append(_named(value))
    return found


def _with_arguments(value: JsonValue) -> JsonValue:
    """Add empty arguments to a call that has only a name. After a template's mark, such a call is complete."""
    if isinstance(value, list):
        return list(map(_with_arguments, value))
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
        return None, None
    arguments = [key for key in _ARGUMENT_KEYS if key in value]
    names = [key for key in _NAME_KEYS if isinstance(value.get(key), str)]
    if len(arguments) != 1 or len(names) != 1:
        return None, None
    # An object with any further key is not a call, but a record that the user asked for, for example.
    rest = value.keys() - {names[0], arguments[0]}
    if rest <= _OTHER_KEYS:
        return value[names[0]], value[arguments[0]]
    return None, None


_PYTHON_START = late_pattern(r"[\[(\s]*[A-Za-z_][\w.]*\s*(?:\(|=\s*[A-Za-z_][\w.]*\()")
# Models mix the notations: `get_weather(metric=true)`.
_JSON_NAMES: Mapping[str, JsonValue] = {"true": True, "false": False, "null": None}


def _python_calls(text: str, *, is_printed: bool) -> list[_Python]:
    """Return the calls of a text that consists only of Python calls, or an empty list for any other text.

    With `is_printed`, a call inside `print(…)` counts too, as in Gemini's `tool_code` blocks."""
    if not _PYTHON_START.match(text):
        return []
    calls: list[_Python] = []
    try:
        for statement in ast.parse(text).body:
            calls.extend(_calls_of(_expression(statement), is_printed=is_printed))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return []
    return calls


def _expression(statement: ast.stmt) -> ast.expr:
    if isinstance(statement, ast.Expr):
        return statement.value
    raise ValueError("not an expression")


def _calls_of(node: ast.expr, *, is_printed: bool) -> Iterator[_Python]:
    if isinstance(node, ast.List | ast.Tuple):
        for each in node.elts:
            yield from _calls_of(each, is_printed=is_printed)
        return
    if not isinstance(node, ast.Call):
        raise ValueError("not a call")
    name = ast.unparse(node.func).removesuffix(".call")
    if is_printed and name == "print":
        for each in node.args:
            yield from _calls_of(each, is_printed=False)
        return
    positional = tuple(map(_value, node.args))
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
        return list(map(_value, node.elts))
    if isinstance(node, ast.Dict):
        # An unpacked dictionary (`**other`) has `None` as its key. Then the lengths differ, and `zip` raises
        # ValueError.
        keys = [ast.literal_eval(key) for key in node.keys if key is not None]
        return dict(zip(keys, map(_value, node.values), strict=True))
    value: JsonValue = ast.literal_eval(node)
    return value


# The faults of a run, with advice.

CALL_AS_TEXT = "the endpoint returned the call as text: its tool parser is off or of another format"
TOOLS_NEVER_ARRIVED = "the prompt is smaller than the tools that were sent"
NAME_RESIDUE = "unknown tool: name with the template's residue"
NAME_LOST = "unknown tool: a call came without a name"
SENT_SEVERAL_TIMES = "the endpoint sent several objects as the arguments of one call"
BROKEN_CALL_AS_TEXT = "the answer has a call as text that is not JSON"
CALLS_NEVER_ARRIVED = "the endpoint announced calls, but sent none"
"""The seven kinds of faults, each as the beginning of its reason."""

_ADVICE: Mapping[str, str] = {
    CALL_AS_TEXT: "turn on the tool parser of the model's format: vLLM `--enable-auto-tool-choice --tool-call-parser"
    " NAME`, llama.cpp `--jinja`, SGLang `--tool-call-parser NAME`, LM Studio a model marked for tool use, Ollama a"
    " model whose template has tools",
    TOOLS_NEVER_ARRIVED: "use a chat template that writes the tools into the prompt: llama.cpp `--jinja`, Ollama"
    " `TEMPLATE` with .Tools",
    NAME_RESIDUE: "update the server, or choose the tool parser of the model's format: it leaves the template's marks"
    " in names",
    NAME_LOST: "update the server or its gateway: it loses the names of calls",
    BROKEN_CALL_AS_TEXT: "check that the server's tool parser is on; if it is, choose a model that writes valid JSON,"
    " because no parser can read this call",
    CALLS_NEVER_ARRIVED: "update the server, or choose the tool parser of the model's format: it drops calls that it"
    " cannot read; if this goes on, the model writes invalid calls",
    SENT_SEVERAL_TIMES: "update the server or its gateway: each piece of the arguments must be sent once",
}
"""The advice on each fault, by the beginning of its reason."""

MIN_TOOL_TOKENS = 40
"""The smallest token estimate of the tools at which their loss is detected. Smaller estimates are too inaccurate."""

# With current tokenizers, English and identifiers have 3 to 5 characters per token. A value of 6 makes the estimate a
# safe lower bound: a complete prompt is never mistaken for a prompt without tools.
_CHARACTERS_PER_TOKEN = 6

# In current chat templates, even the shortest message takes more tokens. A smaller number is not a token count.
_MIN_PROMPT = 16


def endpoint_faults(trajectory: Trajectory) -> tuple[Issue, ...]:
    """Return an issue for each fault of the endpoint in a run. Each of these issues makes the run fail."""
    return tuple(_faults(trajectory))


def advice_about_fault(fault: Issue) -> str | None:
    """Return advice on a fault of an endpoint, or `None` for a fault from another version of Workbench."""
    for why, advice in _ADVICE.items():
        if fault.why.startswith(why):
            return advice
    return None


def fault_as_error(fault: Issue) -> str:
    """Return a fault of the endpoint as the error message of a run, with advice."""
    reason = fault.why
    if fault.got is not None:
        reason += f" (got {fault.got})"
    return f"{ENDPOINT_FAULT}{reason}: {advice_about_fault(fault)}"


def _faults(trajectory: Trajectory) -> Iterator[Issue]:
    tools = trajectory.offered
    if not tools:
        return
    # A call in the text shows that the model has seen the tools, whatever the token count suggests.
    as_text = False
    for round_ in trajectory.rounds:
        if round_.replayed:
            continue
        in_text = list(_calls_as_text(round_, tools))
        as_text = as_text or bool(in_text)
        yield from in_text
        if not in_text and round_.stop_reason == "tool calls" and not (round_.calls or round_.not_offered):
            yield Issue("endpoint fault", CALLS_NEVER_ARRIVED, decides=True)
    if not as_text and (lost := _lost_tools(trajectory, tools)) is not None:
        yield lost
    # A call that the token limit cut off also has incomplete arguments. It is reported elsewhere.
    cut_off = trajectory.cut_off_rounds
    for index, record in enumerate(trajectory.calls):
        if (meant := _meant(record.tool, tools)) is not None:
            yield Issue(
                "endpoint fault", f"{NAME_RESIDUE}; {meant} is meant", tool=record.tool, call=index, decides=True
            )
        if not record.tool.strip():
            yield Issue("endpoint fault", NAME_LOST, tool=record.tool, call=index, decides=True)
        if record.is_broken and record.round not in cut_off and (objects := _objects_in(record.call.raw or "")):
            got = cut_text(record.call.raw or "")
            why = f"{SENT_SEVERAL_TIMES}: {objects}"
            yield Issue("endpoint fault", why, tool=record.tool, call=index, got=got, decides=True)


def _calls_as_text(round_: Round, tools: tuple[ToolDefinition, ...]) -> Iterator[Issue]:
    text = round_.text
    search: Callable[[str, Sequence[ToolDefinition]], tuple[TextCall, ...]] = calls_in_text
    if not round_.text.strip() and not round_.calls:
        # Some parsers move a reasoning model's call into the reasoning and return no answer.
        text, search = round_.reasoning, calls_after_thoughts
    if not _names_a_tool(text, tools):
        return
    # Some endpoints repeat structured calls in the text. Such a repetition is no fault.
    made = [(call.tool, dict(call.arguments)) for call in round_.calls]
    found = search(text, tools)
    # A call that the token limit cut off is reported elsewhere.
    if not found and round_.stop_reason != "truncated" and (broken := broken_call_in_text(text, tools)) is not None:
        yield Issue("endpoint fault", BROKEN_CALL_AS_TEXT, got=cut_text(broken), decides=True)
    for call in found:
        if (call.tool, dict(call.arguments)) not in made:
            got = call_text(call.tool, call.arguments)
            yield Issue("endpoint fault", CALL_AS_TEXT, got=got, decides=True)


def _lost_tools(trajectory: Trajectory, tools: tuple[ToolDefinition, ...]) -> Issue | None:
    """Return an issue if the first prompt has too few tokens to contain the offered tools.

    Some chat templates ignore the tools of a request, so the model never sees them. The prompt then has fewer tokens
    than a lower bound for the tools and the conversation together. Returns `None` if the tools may have arrived, or if
    too little is known."""
    first = next(iter(trajectory.rounds), None)
    if first is None or first.number != 1 or first.replayed or first.usage is None:
        return None
    prompt, least, conversation = first.usage.input_tokens, _least_tokens(tools), _least_of_messages(trajectory)
    if least < MIN_TOOL_TOKENS or not max(_MIN_PROMPT, conversation) <= prompt < least + conversation:
        return None
    # A model that called an offered tool has seen the tools. The small number of tokens then comes from another way of
    # counting, not from lost tools.
    if any(is_offered(call.tool, tools) for call in trajectory.calls):
        return None
    beside = f" beside {count_text(conversation)} for the conversation" if prompt >= least else ""
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
    # Each tool and each property takes some punctuation, whatever the template's notation.
    return characters // _CHARACTERS_PER_TOKEN + 4 + 2 * len(properties)


_least_of_tool: Callable[[ToolDefinition], int] = cached_by_identity(_tool_tokens)


def _least_of_messages(trajectory: Trajectory) -> int:
    start = trajectory.start
    assert start is not None
    texts = [prompt_of(start, start.system) or ""]
    texts += [message.content for message in start.messages]
    # The estimate is halved for safety. An endpoint that reports even fewer tokens does not count the prompt at all.
    return sum(map(len, texts)) // (2 * _CHARACTERS_PER_TOKEN)


def _meant(name: str, tools: tuple[ToolDefinition, ...]) -> str | None:
    if is_offered(name, tools):
        return None
    return intended_tool(name, names_of_tools(tools))


def _objects_in(raw: str) -> str:
    """Describe arguments that an endpoint sent several times. Return an empty text for any other arguments."""
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
    if len(objects) > 1 and all(isinstance(each, dict) for each in objects):
        return f"{len(objects)} of them"
    return ""


# The search takes quadratic time, so the length of the text is limited.
_MAX_REPEATED = 20_000


def _is_repeated(raw: str) -> bool:
    """Return whether a text is a JSON object preceded by beginnings of the same object.

    An endpoint sends such arguments if each chunk of its stream repeats the text so far."""
    if len(raw) > _MAX_REPEATED:
        return False
    begin = raw.find("{", 1)
    while begin > 0:
        try:
            json.loads(raw[begin:])
        except (ValueError, RecursionError):
            begin = raw.find("{", begin + 1)
        else:
            return _consists_of_beginnings(raw[:begin], raw[begin:])
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
