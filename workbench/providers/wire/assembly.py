"""Assembles tool calls from the fragments in which APIs send them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from workbench.dataclasses import dataclass, parsed_json
from workbench.limits import MAX_ANSWER_CALLS, MAX_ANSWER_CHARS
from workbench.providers.model import ModelRequest, TooMuchError
from workbench.providers.wire.offer import ToolNames
from workbench.providers.wire.repairs import DETAILS, Repaired, json_object, repaired, same_json
from workbench.trajectory.events import CallArgumentsDelta, CallFinished, CallStarted, Deviation, JsonValue

# Joins the surrogate pairs of characters that arrive in two pieces: servers may cut a text anywhere.

_SURROGATE = re.compile("[\ud800-\udfff]")


def joined_surrogates(text: str) -> str:
    """Returns the text with adjacent surrogates of one pair joined to their character."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class TextPieces:
    """Streams a text in pieces. A high surrogate at the end of a piece is held back for the next one."""

    def __init__(self) -> None:
        self._pending = ""

    def next(self, piece: str) -> str:
        """Returns what is complete with this piece, which must not be empty."""
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
        """Whether whole arguments for the id of this call, of which all came, are the same once more."""
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
    """The calls of one answer. Their ids are unique within the run: the API's own, or a new one where it gives none or
    repeats one."""

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
        """Begin a new call. No event is emitted before its name is known."""
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
        """Add a piece of the tool's name. The call starts as soon as that is the name of an offered tool, else with its
        first arguments; a repeated name changes nothing."""
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
        """Finish a call. `arguments`, which some APIs repeat whole at the end, take precedence."""
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
    """Returns the raw text of repaired arguments. Pieces that were each repeated may add up to more than an answer can
    hold: then the last one, which has them all."""
    return call.said if raw is not None and len(raw) > MAX_ANSWER_CHARS else raw


def _repair(call: OpenCall, given: object) -> Repaired | None:
    """Returns the arguments that were meant by `given`, which is no JSON object."""
    if not isinstance(given, str):
        return None
    if call.whole is None and given == joined_surrogates("".join(call.pieces)):
        return repaired([joined_surrogates(piece) for piece in call.pieces])
    return repaired([given])


def _repaired_by_end(call: OpenCall, arguments: object, read: Mapping[str, Any]) -> Repaired | None:
    """Returns what pieces mean that only the whole arguments at the end set right."""
    if not arguments or not call.pieces or json_object("".join(call.pieces)) is not None:
        return None
    found = repaired(call.pieces)
    return found if found is not None and same_json(found.arguments, read) else None


def read_arguments(given: object) -> tuple[Mapping[str, Any], str | None]:
    """Returns the arguments and, when they are no JSON object, why not; nothing and `null` count as no arguments."""
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
