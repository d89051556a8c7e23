"""Finds faults of the endpoint in a trajectory: calls as text, tools that never arrived, names with a template's
residue, arguments that were sent several times.

Faults fail a run, because users of the endpoint meet them, and are named as the endpoint's, because nobody can mend
them in a prompt or a description.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from workbench.checks.values import cut, describe_value
from workbench.dataclasses import ByIdentity
from workbench.grading.grade import ENDPOINT_FAULT, Issue
from workbench.grading.text_calls import meant_tool
from workbench.suite.tool_names import is_offered
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import properties_of
from workbench.trajectory.trajectory import Round, Trajectory

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
"""What to do about each, by the beginning of its reason."""

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
    """Return what to do about a fault, `None` for one that another version found."""
    return next((advice for why, advice in _ADVICE.items() if fault.why.startswith(why)), None)


def fault_as_error(fault: Issue) -> str:
    """Return a fault as the error of a run: what happened, and what to do."""
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
    from workbench.grading.text_calls import calls_after_thoughts, calls_in_text  # on use: few answers name a tool

    # Some endpoints repeat in the text what they return as calls.
    made = [(call.tool, dict(call.arguments)) for call in round_.calls]
    search = calls_after_thoughts if no_answer else calls_in_text
    for call in search(text, tools):
        if (call.tool, dict(call.arguments)) not in made:
            arguments = ", ".join(f"{name}={describe_value(value)}" for name, value in call.arguments.items())
            yield Issue("endpoint fault", CALL_AS_TEXT, got=cut(f"{call.tool}({arguments})"), decides=True)


def _lost_tools(trajectory: Trajectory, tools: tuple[ToolDefinition, ...]) -> Issue | None:
    """Return that the first prompt has fewer tokens than the tools and the conversation by a safe estimate, `None`
    where nothing shows it. A model that called an offered tool has seen them."""
    first = trajectory.rounds[0] if trajectory.rounds else None
    if first is None or first.number != 1 or first.replayed or first.usage is None:
        return None
    prompt, least, said = first.usage.input_tokens, _least_tokens(tools), _least_of_messages(trajectory)
    if least < MIN_TOOL_TOKENS or not max(_MIN_PROMPT, said) <= prompt < least + said:
        return None
    if any(is_offered(call.tool, tools) for call in trajectory.calls):
        return None
    beside = f" beside {said:,} for the conversation" if prompt >= least else ""
    return Issue(
        "endpoint fault",
        TOOLS_NEVER_ARRIVED,
        expected=f"at least {least:,} tokens for the tools alone{beside}",
        got=f"a prompt of {prompt:,} tokens",
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
        return "an object after pieces of itself" if _is_repeated(raw) else ""
    several = len(objects) > 1 and all(isinstance(each, dict) for each in objects)
    return f"{len(objects)} of them" if several else ""


_MAX_REPEATED = 20_000


def _is_repeated(raw: str) -> bool:
    """Return whether a text is a JSON object after beginnings of itself, as of an endpoint whose chunks each hold the
    whole text so far."""
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
