"""Converts tools to the format of an API, and assembles the calls of an answer from streamed fragments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from typing import Any

from workbench.config.clouds import Api
from workbench.config.models import ModelSpec
from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.limits import MAX_ANSWER_CALLS, MAX_ANSWER_CHARS, MAX_TOOL_NAME_CHARS
from workbench.providers.model import AnswerTooLargeError, ModelError, ModelRequest
from workbench.providers.wire.repairs import (
    DETAILS,
    RepairedArguments,
    json_object,
    repair,
    repeats_key,
    same_json,
    unwrap,
)
from workbench.providers.wire.wire import AnswerEvents, as_dict
from workbench.trajectory.events import (
    REPEATED_KEY,
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Deviation,
    JsonValue,
    ToolCall,
    ToolDefinition,
)

# Model APIs accept only names of ASCII letters, digits, `_` and `-`. Names of tools may have at most 64 characters.

_ACCEPTED = re.compile(r"[A-Za-z0-9_-]+")
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


def accepted_names(names: Iterable[str], longest: int | None = None) -> dict[str, str]:
    """Map each name to a unique name that APIs accept, of at most `longest` characters.

    Names that APIs already accept stay unchanged. Equal names in equal order always give the same result."""
    wanted = list(dict.fromkeys(names))
    # Accepted names come first: `get time` must not take the name of an existing tool `get_time`.
    given = {name: name for name in wanted if accepted_name(name, longest) == name}
    taken = set(given)
    for name in wanted:
        if name in given:
            continue
        base = candidate = accepted_name(name, longest)
        number = 1
        while candidate in taken:
            number += 1
            ending = f"_{number}"
            candidate = base + ending
            if longest is not None:
                candidate = base[: longest - len(ending)] + ending
        taken.add(candidate)
        given[name] = candidate
    return given


def accepted_name(name: str, longest: int | None = None) -> str:
    """Replace every character that APIs do not accept by `_`, and cut the name to `longest` characters."""
    if _ACCEPTED.fullmatch(name) and (longest is None or len(name) <= longest):
        return name
    return _REFUSED.sub("_", name)[:longest] or "unnamed"


class ToolNames:
    """The names of the offered tools, in the suite and for the API.

    The names in `as_they_are` are the names of tools that the provider runs, and stay unchanged."""

    def __init__(self, names: Iterable[str], as_they_are: Iterable[str] = ()) -> None:
        self._accepted = accepted_names(names, MAX_TOOL_NAME_CHARS) | {name: name for name in as_they_are}
        self._ours = {accepted: name for name, accepted in self._accepted.items()}

    def accepted_name(self, name: str) -> str:
        """Return the name under which a tool is sent to the API.

        The conversation may also name tools of earlier requests, and tools that the model invented."""
        return self._accepted.get(name) or accepted_name(name, MAX_TOOL_NAME_CHARS)

    def suite_name(self, accepted: str) -> str:
        """Return the suite's name of a tool, given its API name. A name that the model invented stays unchanged."""
        return self._ours.get(accepted, accepted)

    def offers(self, accepted: str) -> bool:
        """Return whether a tool with that name in the API is offered."""
        return accepted in self._ours


MAX_CACHED_OFFERS = 8
"""The number of sets of tools that are cached as JSON, about the number of suites in parallel runs."""

_TOOL_NUMBER = re.compile(r"\btools(?:\.|\[|/|['\"], ?| -> )(\d+)\b")
_NAMED = re.compile(r"\b(?:function|tool)s?(?: name)?:? ?['\"`]([^'\"`]+)['\"`]", re.IGNORECASE)
_QUOTED = re.compile(r"['\"`]([^'\"`]+)['\"`]")

ToolShape = Callable[[ToolDefinition, str], dict[str, Any]]
"""A function that returns a tool in an API's format, under the accepted name."""


class ToolOffer:
    """The tools of a request: their names in the API and their JSON text."""

    def __init__(self, tools: tuple[ToolDefinition, ...], shape: ToolShape, api: Api) -> None:
        self.tools = tools
        self._sent: list[ToolDefinition] = []
        self._of_provider: dict[str, str] = {}
        own = [tool.name for tool in tools if tool.provider is None]
        forms = []
        for tool in tools:
            if tool.provider is not None:
                form = as_dict(tool.provider.get(api))
                for name in (tool.name, form.get("name"), _kind_of(form)):
                    if isinstance(name, str) and name:
                        self._of_provider.setdefault(name, tool.name)
        self.names = ToolNames(own, self._of_provider)
        for tool in tools:
            if tool.provider is None:
                forms.append(shape(tool, self.names.accepted_name(tool.name)))
            elif api in tool.provider:
                forms.append(as_dict(tool.provider[api]))
            else:
                continue  # the endpoint offers the tool by itself
            self._sent.append(tool)
        self.json: str | None = None
        if forms:
            self.json = json_or_error(forms)

    def of_provider(self, name: str) -> tuple[str, bool]:
        """Return the suite's name for a tool that the provider ran, and whether the suite offers it."""
        if name in self._of_provider:
            return self._of_provider[name], True
        # A provider's tool may have several functions: `code_execution` has `bash_code_execution`.
        for known, tool in self._of_provider.items():
            if name.endswith(f"_{known}"):
                return tool, True
        return name, False

    def tool_at(self, error_text: str) -> str | None:
        """Return the tool that an error is about, found by a name or an index in the error's text."""
        # The most certain signs come first: a name after "tool" or "function", then an index as in "tools[3]", then any
        # quoted name.
        for name in _NAMED.findall(error_text):
            if self.names.offers(name):
                return self.names.suite_name(name)
        for number in _TOOL_NUMBER.findall(error_text):
            if int(number) < len(self._sent):
                return self._sent[int(number)].name
        quoted = {name for name in _QUOTED.findall(error_text) if self.names.offers(name)}
        if len(quoted) != 1:
            return None
        return self.names.suite_name(quoted.pop())


_VERSION = re.compile(r"(_preview)?(_?\d{4}_?\d{2}_?\d{2})?\Z")


def _kind_of(form: Mapping[str, Any]) -> str | None:
    """Return the type of a provider's tool without the version: `web_search` for `web_search_20250305`.

    Returns `None` if the tool has no type."""
    kind = form.get("type")
    return _VERSION.sub("", kind, count=1) if isinstance(kind, str) else None


class ToolOfferCache:
    """Caches the latest sets of tools for one model, so that each set is converted to JSON only once."""

    def __init__(self, shape: ToolShape, api: Api) -> None:
        self._shape = shape
        self._api: Api = api
        self._latest: list[ToolOffer] = []

    def of(self, tools: tuple[ToolDefinition, ...]) -> ToolOffer:
        """Return these tools in the format of the API.

        Raises ModelError if a schema holds a value that JSON cannot express."""
        for offer in self._latest:
            if offer.tools == tools:
                return offer
        offer = ToolOffer(tools, self._shape, self._api)
        self._latest = [offer, *self._latest[: MAX_CACHED_OFFERS - 1]]
        return offer


def name_and_description(tool: ToolDefinition, name: str) -> dict[str, Any]:
    """Return a tool's name and description as fields of a request; a missing description is left out."""
    if not tool.description:
        return {"name": name}
    return {"name": name, "description": tool.description}


def object_schema(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a tool's schema in a form that all APIs accept: an object schema always has `properties`."""
    full: dict[str, JsonValue] = {"type": "object"}
    full |= schema
    if full["type"] is None:
        full["type"] = "object"
    if full["type"] == "object":
        full.setdefault("properties", {})
    return full


def arguments_to_send(call: ToolCall) -> dict[str, JsonValue]:
    """Return a call's arguments in the form in which they are sent back to the model.

    Arguments that are not a JSON object are sent as a text inside an object."""
    if call.problem is None:
        return dict(call.arguments)
    # Servers parse the arguments of earlier calls, and fail if they are not JSON.
    return {"unparsed_arguments": call.raw or ""}


def arguments_text(call: ToolCall) -> str:
    """Return the JSON text of a call's arguments in the form in which it is sent back to the model."""
    # The model gets back its own text, even if the text is in a code fence. Repetitions that the endpoint caused are
    # left out.
    if call.problem is None and call.raw and unwrap(call.raw) is not None:
        return call.raw
    return json_or_error(arguments_to_send(call))


def body_text(fields: dict[str, Any], offer: ToolOffer) -> bytes:
    """Return the body of a request, including the offered tools.

    Raises ModelError if a field holds a value that JSON cannot express."""
    text = json_or_error(fields)
    # The JSON text of the tools, often most of a request, is made once for all requests and inserted here.
    if offer.json is not None:
        text = f'{text[:-1]},"tools":{offer.json}}}'
    return text.encode()


def json_or_error(value: object) -> str:
    try:
        return json_text(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"a request cannot be written as JSON: {error}; check params, schemas and arguments") from None


def sent_params(
    spec: ModelSpec, api: str, *, unsupported: Mapping[str, str] | None = None, renamed: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the parameters that are sent, and a sentence for each parameter that is left out.

    `unsupported` maps each parameter that this API lacks to its replacement, which is empty if there is none. `renamed`
    maps parameters to their names in this API. All other parameters are sent unchanged."""
    sent: dict[str, Any] = {}
    notices: list[str] = []
    for name, value in spec.params.items():
        field = (renamed or {}).get(name, name)
        if unsupported is not None and name in unsupported:
            notice = f"params.{name} is not sent to {spec.name}: the {api} API has no such parameter"
            if unsupported[name]:
                notice += f", write {unsupported[name]} instead"
            notices.append(notice)
        elif field != name and field in spec.params:
            notices.append(f"params.{name} is not sent to {spec.name}: params.{field} says the same")
        else:
            sent[field] = value
    return sent, tuple(notices)


def params_for(request: ModelRequest, params: Mapping[str, Any], about_tools: Collection[str]) -> dict[str, Any]:
    """Return the parameters of a request.

    In a request without tools, the parameters in `about_tools` are left out, because APIs refuse them."""
    return {name: value for name, value in params.items() if request.tools or name not in about_tools}


def integer_seed(params: Mapping[str, Any]) -> int | None:
    """Return the seed in the parameters if it is a whole number; otherwise `None`."""
    seed = params.get("seed")
    if isinstance(seed, bool) or not isinstance(seed, int):
        return None
    return seed


# Servers may split a text anywhere, even between the two surrogates with which JSON encodes a character such as an
# emoji.

_SURROGATE = re.compile("[\ud800-\udfff]")


def joined_surrogates(text: str) -> str:
    """Replace each pair of surrogates in a text by its character."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class TextPieces:
    """Joins the surrogate pairs of characters that a stream splits between two pieces of text."""

    def __init__(self) -> None:
        self._pending = ""

    def next(self, piece: str) -> str:
        """Add a piece, and return the text that is complete.

        The first half of a pair at the end of the piece is kept for the next call."""
        ends_within = "\ud800" <= piece[-1] <= "\udbff"
        if not self._pending and not ends_within:
            return piece
        piece = self._pending + piece
        self._pending = piece[-1] if ends_within else ""
        return joined_surrogates(piece.removesuffix(self._pending))


_KINDS = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}


@dataclass(slots=True, eq=False)
class OpenCall:
    """A tool call whose fragments are still arriving.

    `given_id` and `name` come from the API. `pieces` are the fragments of the arguments' text. `complete_arguments` are
    arguments that arrived as an object, not as text. `repeats` means that each fragment so far began with the whole
    previous fragment."""

    id: str
    given_id: str | None = None
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    complete_arguments: JsonValue = None
    repeats: bool = True
    started: bool = False
    finished: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the arguments so far are a whole JSON object."""
        return self.complete_arguments is not None or (bool(self.pieces) and self._object() is not None)

    def is_repeated_by(self, given_id: str | None, arguments: object) -> bool:
        """Return whether a fragment with this id and these arguments only repeats this call, which is complete."""
        if given_id is None or given_id != self.given_id:
            return False
        if isinstance(arguments, str):
            arguments = json_object(arguments)
        own: object = self.complete_arguments
        if own is None:
            own = self._object()
        return arguments is not None and same_json(arguments, own)

    def add(self, piece: str) -> str:
        """Add a fragment of the arguments' text, and return its new part, which does not repeat earlier text."""
        # Some endpoints send the whole text so far in every fragment. No JSON object begins with `{` twice, so a second
        # fragment that begins with the first fragment must be such a repetition.
        before = self.pieces[-1] if self.pieces else ""
        self.pieces.append(piece)
        self.repeats = self.repeats and piece.startswith(before or "{")
        if self.repeats:
            return piece.removeprefix(before)
        return piece

    @property
    def text(self) -> str:
        """The text of the arguments: all fragments joined, even if each fragment repeats the text before it."""
        return joined_surrogates("".join(self.pieces))

    @property
    def text_without_repeats(self) -> str:
        """The text of the arguments. If each fragment repeats the text before it, this is the last fragment."""
        if self.repeats and self.pieces:
            return self.pieces[-1]
        return "".join(self.pieces)

    def _object(self) -> Mapping[str, Any] | None:
        read, problem = read_arguments("".join(self.pieces))
        if problem is None:
            return read
        found = repair(self.pieces)
        if found is None:
            return None
        return found.arguments


class CallAssembly:
    """The calls of one answer, assembled from their fragments. The events of the calls are added to `events`.

    Ids are unique within the run. A call keeps the API's id, but gets a new id if the API gives no id or an id that is
    already taken."""

    def __init__(self, request: ModelRequest, names: ToolNames) -> None:
        self.calls: list[OpenCall] = []
        self.events: AnswerEvents = []
        self._round = request.round
        self._names = names
        self._taken: set[str] = set()
        for message in request.messages:
            for call in message.tool_calls:
                self._taken.add(call.id)
        self.deviations: list[Deviation] = []
        """Deviations from the API that were repaired in finished calls."""
        self._number = request.calls_before
        self._characters = 0

    def begin(self, given_id: object = None) -> OpenCall:
        if len(self.calls) == MAX_ANSWER_CALLS:
            raise AnswerTooLargeError(MAX_ANSWER_CALLS.reached())
        given = given_id if isinstance(given_id, str) else ""
        call = OpenCall(self.free_id(given), given or None)
        self.calls.append(call)
        return call

    def reserve_ids(self, ids: Iterable[str]) -> None:
        """Reserve ids that calls of the run already have."""
        self._taken.update(ids)

    def free_id(self, given_id: object) -> str:
        """Return the id for a new call: the API's id if no other call of the run has it, or else a new id."""
        self._number += 1
        given = given_id if isinstance(given_id, str) else ""
        own = f"call-{self._number}"
        call_id = given or own
        if call_id in self._taken:
            call_id = own
        extra = 1
        while call_id in self._taken:
            extra += 1
            call_id = f"{own}-{extra}"
        self._taken.add(call_id)
        return call_id

    def name(self, call: OpenCall, piece: object) -> None:
        """Add a piece of the tool's name, and start the call when the name is complete.

        The name is complete when a tool of this name is offered. For any other name, the call starts with its first
        arguments."""
        # Some endpoints repeat the name, or the name so far, in every fragment.
        if isinstance(piece, str) and piece and not call.started and piece != call.name:
            is_whole = piece.startswith(call.name) and self._names.offers(piece)
            call.name = piece if is_whole else call.name + piece
            if is_whole or self._names.offers(call.name):
                self.start(call)

    def start(self, call: OpenCall) -> None:
        """Add the first events of a call whose name is complete, unless the call has started."""
        if not call.started:
            call.started = True
            self.events.append(CallStarted(self._round, call.id, self._names.suite_name(call.name)))
            if call.pieces:
                self.events.append(CallArgumentsDelta(call.id, call.text_without_repeats))

    def add(self, call: OpenCall, arguments: object) -> None:
        """Add a fragment of the arguments' text, or all arguments as an object.

        Raises AnswerTooLargeError."""
        if arguments is None or arguments == "" or call.finished:
            return
        if call.name and not call.started:
            self.start(call)
        if not isinstance(arguments, str):
            call.complete_arguments = arguments  # type: ignore[assignment]
            arguments = json.dumps(arguments, ensure_ascii=False)
        else:
            arguments = call.add(arguments)
        self._characters += len(arguments)
        if self._characters > MAX_ANSWER_CHARS:
            raise AnswerTooLargeError(MAX_ANSWER_CHARS.reached())
        if call.started and arguments:
            self.events.append(CallArgumentsDelta(call.id, arguments))

    def finish(self, call: OpenCall, arguments: object = None) -> None:
        """Finish a call, and add its last events.

        `arguments` are the whole arguments, which some APIs send again at the end. They take precedence over the
        fragments."""
        if call.finished:
            return
        self.start(call)
        if not call.pieces and call.complete_arguments is None:
            self.add(call, arguments)
        given = arguments or (call.text if call.complete_arguments is None else call.complete_arguments)
        call.finished = True
        read, problem = read_arguments(given)
        raw: str | None = None
        if problem is None:
            found = _repaired_by_end(call, arguments, read)
        else:
            found = _repair(call, given)
            raw = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        if found is not None:
            read, problem = found.arguments, None
            # If each fragment repeats the text so far, all fragments together may exceed the size limit of an answer.
            # The last fragment has the whole text.
            if raw is not None and len(raw) > MAX_ANSWER_CHARS:
                raw = call.text_without_repeats
            self.deviations.append(Deviation(found.kind, DETAILS[found.kind], call.id))
        elif problem is None and isinstance(given, str) and repeats_key(given, read):
            self.deviations.append(Deviation(REPEATED_KEY, DETAILS[REPEATED_KEY], call.id))
        self.events.append(CallFinished(call.id, read, raw, problem))

    def finish_all(self) -> None:
        """Finish all open calls in order, at the end of the answer."""
        for call in self.calls:
            self.finish(call)


def _repair(call: OpenCall, value: object) -> RepairedArguments | None:
    if not isinstance(value, str):
        return None
    if call.complete_arguments is None and value == call.text:
        return repair([joined_surrogates(piece) for piece in call.pieces])
    return repair([value])


def _repaired_by_end(call: OpenCall, arguments: object, read: Mapping[str, Any]) -> RepairedArguments | None:
    """Return the repair of invalid fragments that gives the same arguments as the end of the call.

    The arguments at the end need no repair, but the deviation of the fragments must be reported. Returns `None` if
    there is no such repair."""
    if not arguments or not call.pieces or json_object("".join(call.pieces)) is not None:
        return None
    found = repair(call.pieces)
    if found is None or not same_json(found.arguments, read):
        return None
    return found


def read_arguments(raw: object) -> tuple[Mapping[str, Any], str | None]:
    """Return the arguments of a call and `None`, or an empty object and the problem if they are not a JSON object."""
    # Many endpoints send an empty text or `null` for a call without arguments.
    value = raw
    if isinstance(raw, str):
        if not raw.strip():
            return {}, None
        try:
            value = parsed_json(raw)
        except json.JSONDecodeError as error:
            return {}, _broken(raw, error)
        except ValueError as error:
            return {}, f"arguments that cannot be read: {error}"
    if value is None:
        return {}, None
    if isinstance(value, dict):
        return value, None
    return {}, f"{_KINDS.get(type(value), 'something')} instead of a JSON object"


def read_input(text: str) -> Mapping[str, JsonValue]:
    """Return, as an object, the input of a call that the provider runs.

    A text that is not a JSON object becomes a value in a new object."""
    arguments, problem = read_arguments(text)
    if problem is None:
        return arguments
    return {"unparsed_arguments": text}


def _broken(text: str, error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return f"text after the end of the JSON value, at character {error.pos + 1}"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "JSON that ends too early"
    return f"not JSON: {error.msg.removesuffix(' at')} at character {error.pos + 1}"
