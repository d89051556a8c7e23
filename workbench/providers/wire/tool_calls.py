"""The tools of a request in the form of an API, serialised once for many requests, and the calls of an answer,
assembled from the fragments in which APIs send them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from workbench.config.models import ModelSpec
from workbench.dataclasses import dataclass, json_text, parsed_json
from workbench.limits import MAX_ANSWER_CALLS, MAX_ANSWER_CHARS, MAX_TOOL_NAME_CHARS
from workbench.providers.model import ModelError, ModelRequest, TooMuchError
from workbench.providers.wire.repairs import DETAILS, Repaired, json_object, repaired, same_json, unwrapped
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Deviation,
    JsonValue,
    ToolCall,
    ToolDefinition,
)

# Converts names to those that model APIs accept: ASCII letters, digits, `_` and `-`, at most 64 characters for a
# tool.

_ACCEPTED = re.compile(r"[A-Za-z0-9_-]+")
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


def accepted_names(names: Iterable[str], longest: int | None = None) -> dict[str, str]:
    """Return each name with an accepted one, unique among them; the same names in the same order give the same result.

    Accepted names stay as they are."""
    wanted = list(dict.fromkeys(names))
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
            candidate = (base if longest is None else base[: longest - len(ending)]) + ending
        taken.add(candidate)
        given[name] = candidate
    return given


def accepted_name(name: str, longest: int | None = None) -> str:
    """Return the name with `_` in place of every character that is not accepted, cut to `longest`."""
    if _ACCEPTED.fullmatch(name) and (longest is None or len(name) <= longest):
        return name
    return _REFUSED.sub("_", name)[:longest] or "unnamed"


class ToolNames:
    """The names of the offered tools as an API accepts them, and back."""

    def __init__(self, names: Iterable[str]) -> None:
        self._accepted = accepted_names(names, MAX_TOOL_NAME_CHARS)
        self._ours = {accepted: name for name, accepted in self._accepted.items()}

    def accepted(self, name: str) -> str:
        """Return the API's name of a tool; a tool that is not offered (an invented one, an earlier one) gets an
        accepted name too."""
        return self._accepted.get(name) or accepted_name(name, MAX_TOOL_NAME_CHARS)

    def ours(self, accepted: str) -> str:
        """Return the suite's name for an accepted name; a name that the model invented is unchanged."""
        return self._ours.get(accepted, accepted)

    def offers(self, accepted: str) -> bool:
        """Return whether a tool of that accepted name is offered."""
        return accepted in self._ours


REMEMBERED_OFFERS = 8
"""How many sets of tools are cached as JSON: those of suites that run at the same time."""

_TOOL_NUMBER = re.compile(r"\btools(?:\.|\[|/|['\"], ?| -> )(\d+)\b")
_NAMED = re.compile(r"\b(?:function|tool)s?(?: name)?:? ?['\"`]([^'\"`]+)['\"`]", re.IGNORECASE)
_QUOTED = re.compile(r"['\"`]([^'\"`]+)['\"`]")

ToolShape = Callable[[ToolDefinition, str], dict[str, Any]]
"""A tool in the form of an API, under the name that the API accepts."""


class Offer:
    """The tools of a request: their accepted names, and all of them as JSON."""

    def __init__(self, tools: tuple[ToolDefinition, ...], shape: ToolShape) -> None:
        self.tools = tools
        self.names = ToolNames(tool.name for tool in tools)
        self.json = json_or_error([shape(tool, self.names.accepted(tool.name)) for tool in tools]) if tools else None

    def tool_at(self, error_text: str) -> str | None:
        """Return the tool that an error complains about: by its number among the tools, or by its name in quotes."""
        for name in _NAMED.findall(error_text):
            if self.names.offers(name):
                return self.names.ours(name)
        for number in _TOOL_NUMBER.findall(error_text):
            if int(number) < len(self.tools):
                return self.tools[int(number)].name
        quoted = {name for name in _QUOTED.findall(error_text) if self.names.offers(name)}
        return self.names.ours(quoted.pop()) if len(quoted) == 1 else None


class Offers:
    """The latest offers of one model."""

    def __init__(self, shape: ToolShape) -> None:
        self._shape = shape
        self._latest: list[Offer] = []

    def of(self, tools: tuple[ToolDefinition, ...]) -> Offer:
        """Return the offer of these tools.

        Raises ModelError when a schema holds what JSON cannot express."""
        for offer in self._latest:
            if offer.tools == tools:
                return offer
        offer = Offer(tools, self._shape)
        self._latest = [offer, *self._latest[: REMEMBERED_OFFERS - 1]]
        return offer


def object_schema(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a tool's schema in a form that all APIs accept: for an object, with properties even when there are
    none."""
    full = {"type": "object", **{key: value for key, value in schema.items() if key != "type" or value is not None}}
    return full if full["type"] != "object" or "properties" in full else {**full, "properties": {}}


def arguments_to_send(call: ToolCall) -> dict[str, JsonValue]:
    """Return a call's arguments as they go back to the model.

    Broken ones are put into an object as text, because servers parse what they receive."""
    return dict(call.arguments) if call.problem is None else {"unparsed_arguments": call.raw or ""}


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments as text, as they go back to the model: as the model wrote them, in a code fence for
    example. What the endpoint repeated goes back once."""
    if call.problem is None and call.raw and unwrapped(call.raw) is not None:
        return call.raw
    return json_or_error(arguments_to_send(call))


def body_text(fields: dict[str, Any], offer: Offer) -> bytes:
    """Return a request's body with the tools of the offer.

    Raises ModelError when a field holds what JSON cannot express."""
    text = json_or_error(fields)
    if offer.json is not None:
        text = f'{text[:-1]},"tools":{offer.json}}}'
    return text.encode()


def json_or_error(value: object) -> str:
    try:
        return json_text(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError(
            f"a request cannot be written as JSON: {error}; look at params, schemas and arguments"
        ) from None


# The parameters of a model's settings: which of them an API has, and what happens to the others.


def sent_params(
    spec: ModelSpec, api: str, *, lacking: Mapping[str, str] | None = None, renamed: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the parameters to send, and one sentence for each that is not sent.

    `lacking` are parameters of other APIs that this one lacks, with the replacement (or nothing); `renamed` are those
    that it has under a different name. Any other is sent as written."""
    sent: dict[str, Any] = {}
    notices: list[str] = []
    for name, value in spec.params.items():
        field = (renamed or {}).get(name, name)
        if lacking is not None and name in lacking:
            instead = f", write {lacking[name]} instead" if lacking[name] else ""
            notices.append(f"params.{name} is not sent to {spec.name}: the {api} API has no such parameter{instead}")
        elif field != name and field in spec.params:
            notices.append(f"params.{name} is not sent to {spec.name}: params.{field} says the same")
        else:
            sent[field] = value
    return sent, tuple(notices)


def whole_seed(params: Mapping[str, Any]) -> int | None:
    """Return the seed among the parameters that are sent, if it is a whole number."""
    seed = params.get("seed")
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None


# Joins the surrogate pairs of characters that arrive in two pieces: servers may cut a text anywhere.

_SURROGATE = re.compile("[\ud800-\udfff]")


def joined_surrogates(text: str) -> str:
    """Return the text with adjacent surrogates of one pair joined to their character."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class TextPieces:
    """Streams a text in pieces.

    A high surrogate at the end of a piece is held back for the next one."""

    def __init__(self) -> None:
        self._pending = ""

    def next(self, piece: str) -> str:
        """Return what is complete with this piece, which must not be empty."""
        if not self._pending and not "\ud800" <= piece[-1] <= "\udbff":
            return piece
        piece = self._pending + piece
        self._pending = piece[-1] if "\ud800" <= piece[-1] <= "\udbff" else ""
        return joined_surrogates(piece.removesuffix(self._pending))


CallEvent = CallStarted | CallArgumentsDelta | CallFinished

_KINDS = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call whose fragments are still arriving; `given_id` and `name` are the API's, `whole` holds arguments that came
    as an object instead of a text. `repeats`: each fragment so far began with the one before."""

    id: str
    given_id: str | None = None
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    whole: JsonValue = None
    repeats: bool = True
    started: bool = False
    finished: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether the arguments so far are a whole JSON object."""
        return self.whole is not None or (bool(self.pieces) and self._object() is not None)

    def is_repeated_by(self, given_id: str | None, arguments: object) -> bool:
        """Return whether whole arguments for the id of this call, of which all came, are the same once more."""
        if given_id is None or given_id != self.given_id:
            return False
        again = json_object(arguments) if isinstance(arguments, str) else arguments
        return again is not None and same_json(again, self.whole if self.whole is not None else self._object())

    def add(self, piece: str) -> str:
        """Add a fragment of the arguments' text, and return what is new in it: no JSON object begins with `{` twice, so
        a second such fragment repeats the first one."""
        before = self.pieces[-1] if self.pieces else ""
        self.pieces.append(piece)
        self.repeats = self.repeats and piece.startswith(before or "{")
        return piece.removeprefix(before) if self.repeats else piece

    @property
    def said(self) -> str:
        """The text so far, without what fragments repeat."""
        return self.pieces[-1] if self.repeats and self.pieces else "".join(self.pieces)

    def _object(self) -> Mapping[str, Any] | None:
        read, problem = read_arguments("".join(self.pieces))
        if problem is None:
            return read
        found = repaired(self.pieces)
        return found.arguments if found is not None else None


class CallAssembly:
    """The calls of one answer.

    Their ids are unique within the run: the API's own, or a new one where it gives none or repeats one."""

    def __init__(self, request: ModelRequest, names: ToolNames) -> None:
        self.calls: list[OpenCall] = []
        self._round = request.round
        self._names = names
        self._taken = {call.id for message in request.messages for call in message.tool_calls}
        self.deviations: list[Deviation] = []
        """Those that were repaired in the calls that are finished."""
        self._number = request.calls_before
        self._characters = 0

    def begin(self, given_id: object = None) -> OpenCall:
        """Begin a new call.

        No event is emitted before its name is known."""
        self._number += 1
        given = given_id if isinstance(given_id, str) and given_id else None
        call_id = given or f"call-{self._number}"
        extra = 1
        while call_id in self._taken:
            call_id = f"call-{self._number}" if extra == 1 else f"call-{self._number}-{extra}"
            extra += 1
        self._taken.add(call_id)
        if len(self.calls) == MAX_ANSWER_CALLS:
            raise TooMuchError(MAX_ANSWER_CALLS.reached())
        call = OpenCall(call_id, given)
        self.calls.append(call)
        return call

    def name(self, call: OpenCall, piece: object) -> Iterator[CallEvent]:
        """Add a piece of the tool's name.

        The call starts as soon as that is the name of an offered tool, else with its first arguments; a repeated name
        changes nothing."""
        if isinstance(piece, str) and piece and not call.started and piece != call.name:
            call.name += piece
            if self._names.offers(call.name):
                yield from self.start(call)

    def start(self, call: OpenCall) -> Iterator[CallEvent]:
        """Start the call: its name is complete, whatever it is."""
        if not call.started:
            call.started = True
            yield CallStarted(self._round, call.id, self._names.ours(call.name))
            if call.pieces:
                yield CallArgumentsDelta(call.id, call.said)

    def add(self, call: OpenCall, arguments: object) -> Iterator[CallEvent]:
        """Add a fragment of the arguments' JSON text, or arguments that come as an object at once."""
        if arguments is None or arguments == "" or call.finished:
            return
        if call.name:
            yield from self.start(call)
        if not isinstance(arguments, str):
            call.whole = arguments  # type: ignore[assignment]
            arguments = json.dumps(arguments, ensure_ascii=False)
        else:
            arguments = call.add(arguments)
        self._characters += len(arguments)
        if self._characters > MAX_ANSWER_CHARS:
            raise TooMuchError(MAX_ANSWER_CHARS.reached())
        if call.started and arguments:
            yield CallArgumentsDelta(call.id, arguments)

    def finish(self, call: OpenCall, arguments: object = None) -> Iterator[CallEvent]:
        """Finish a call.

        `arguments`, which some APIs repeat whole at the end, take precedence."""
        if call.finished:
            return
        yield from self.start(call)
        if not call.pieces and call.whole is None:
            yield from self.add(call, arguments)
        given = arguments or (call.whole if call.whole is not None else joined_surrogates("".join(call.pieces)))
        call.finished = True
        read, problem = read_arguments(given)
        found = _repair(call, given) if problem is not None else _repaired_by_end(call, arguments, read)
        raw = None if problem is None else given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        if found is not None:
            read, problem = found.arguments, None
            raw = _kept(raw, call)
            self.deviations.append(Deviation(found.kind, DETAILS[found.kind], call.id))
        yield CallFinished(call.id, read, raw, problem)

    def finish_all(self) -> Iterator[CallEvent]:
        """Finish all calls that are still open, in order, at the end of the answer."""
        for call in self.calls:
            yield from self.finish(call)


def _kept(raw: str | None, call: OpenCall) -> str | None:
    """Return the raw text of repaired arguments.

    Pieces that were each repeated may add up to more than an answer can hold: then the last one, which has them all."""
    return call.said if raw is not None and len(raw) > MAX_ANSWER_CHARS else raw


def _repair(call: OpenCall, given: object) -> Repaired | None:
    """Return the arguments that were meant by `given`, which is no JSON object."""
    if not isinstance(given, str):
        return None
    if call.whole is None and given == joined_surrogates("".join(call.pieces)):
        return repaired([joined_surrogates(piece) for piece in call.pieces])
    return repaired([given])


def _repaired_by_end(call: OpenCall, arguments: object, read: Mapping[str, Any]) -> Repaired | None:
    """Return what pieces mean that only the whole arguments at the end set right."""
    if not arguments or not call.pieces or json_object("".join(call.pieces)) is not None:
        return None
    found = repaired(call.pieces)
    return found if found is not None and same_json(found.arguments, read) else None


def read_arguments(given: object) -> tuple[Mapping[str, Any], str | None]:
    """Return the arguments and, when they are no JSON object, why not; nothing and `null` count as no arguments."""
    value = given
    if isinstance(given, str):
        if not given.strip():
            return {}, None
        try:
            value = parsed_json(given)
        except json.JSONDecodeError as error:
            return {}, _broken(given, error)
        except ValueError as error:
            return {}, f"arguments that cannot be read: {error}"
    if value is None:
        return {}, None
    if isinstance(value, dict):
        return value, None
    return {}, f"{_KINDS.get(type(value), 'something')} instead of a JSON object"


def _broken(text: str, error: json.JSONDecodeError) -> str:
    if error.msg == "Extra data":
        return f"text after the end of the JSON value, at character {error.pos + 1}"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "JSON that ends too early"
    return f"not JSON: {error.msg.removesuffix(' at')} at character {error.pos + 1}"
