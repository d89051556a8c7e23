"""Converts calls that the provider executes itself, such as web searches, to events of the run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workbench.dataclasses import dataclass, json_text
from workbench.limits import MAX_PROVIDER_RESULT_CHARS
from workbench.providers.wire.tool_calls import CallAssembly, ToolOffer, joined_surrogates, read_arguments
from workbench.providers.wire.wire import as_dict, dicts_in
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    JsonValue,
    Message,
    ProviderTool,
    ResultReceived,
)


def ids_of_blocks(messages: Iterable[Message], wire: str) -> Iterator[str]:
    """Yield the ids of the calls that the provider ran in earlier answers, as their provider states contain them."""
    for message in messages:
        state = as_dict(message.provider_state)
        if state.get("wire") == wire:
            for part in dicts_in(state.get("parts")):
                block = as_dict(part.get("block"))
                for name in ("id", "tool_use_id"):
                    if isinstance(call_id := block.get(name), str):
                        yield call_id


@dataclass(slots=True, eq=False)
class ProviderCall:
    """A call, in the present answer, of a tool that the provider runs."""

    id: str
    is_finished: bool = False


class ProviderCalls:
    """Turns the calls that a provider runs in one answer into events of the run.

    `known` are the ids of the provider's calls in earlier answers, because their results may arrive in this answer."""

    def __init__(self, round_number: int, calls: CallAssembly, offer: ToolOffer, known: Iterable[str] = ()) -> None:
        self._round = round_number
        self._calls = calls
        self._events = calls.events
        self._offer = offer
        # Maps the ids that the API gives to the ids in the run's events.
        self._ids = {given: given for given in known}
        calls.reserve_ids(self._ids)

    def begin(self, given_id: object, name: object) -> ProviderCall:
        call = ProviderCall(self._calls.free_id(given_id))
        if isinstance(given_id, str):
            self._ids[given_id] = call.id
        tool, is_offered = self._offer.of_provider(str(name or "unnamed"))
        by: ProviderTool = "offered" if is_offered else "other"
        self._events.append(CallStarted(self._round, call.id, tool, by))
        return call

    def piece(self, call: ProviderCall, fragment: object) -> None:
        if isinstance(fragment, str) and fragment and not call.is_finished:
            self._events.append(CallArgumentsDelta(call.id, fragment))

    def finish(self, call: ProviderCall, call_input: object) -> None:
        """Finish a call. `call_input` is its input, as an object or as JSON text."""
        if call.is_finished:
            return
        call.is_finished = True
        if isinstance(call_input, str):
            call_input = joined_surrogates(call_input)
        arguments, problem = read_arguments(call_input)
        raw: str | None = None
        if problem is not None:
            raw = call_input if isinstance(call_input, str) else json.dumps(call_input, ensure_ascii=False)
        self._events.append(CallFinished(call.id, arguments, raw, problem))

    def result(self, given_id: object, content: JsonValue, *, is_error: bool, name: str) -> None:
        """Add the result of a call.

        If the call itself never arrived, a new call named `name` gets the result."""
        call_id = self._ids.get(given_id) if isinstance(given_id, str) else None
        if call_id is None:
            call = self.begin(given_id, name)
            self.finish(call, None)
            call_id = call.id
        self._events.append(ResultReceived(call_id, result_text(content), is_error, "provider", 0.0))


_ENCRYPTED_PREFIX = "encrypted_"
"""The prefix of the names of fields that only the provider can read."""


def result_text(content: JsonValue) -> str:
    """Return the result of a provider's tool as a shortened text for people.

    The whole result is sent back to the provider separately."""
    texts = _texts_in(content)
    text = content if isinstance(content, str) else texts
    if text is None:
        try:
            text = json_text(_readable(content))
        except (ValueError, RecursionError) as error:
            # The content is also sent back to the provider. The check of that data will raise an error that names the
            # model.
            text = f"(JSON cannot express it: {error})"
    text = joined_surrogates(text)
    if len(text) <= MAX_PROVIDER_RESULT_CHARS:
        return text
    return f"{text[:MAX_PROVIDER_RESULT_CHARS]}…"


def _texts_in(content: JsonValue) -> str | None:
    if not isinstance(content, list) or not content:
        return None
    texts = []
    for item in content:
        if not isinstance(item, dict) or item.get("type") != "text" or not isinstance(text := item.get("text"), str):
            return None
        texts.append(text)
    return "\n".join(texts)


def _readable(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_readable(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept: dict[str, JsonValue] = {}
    for name, item in value.items():
        if item is not None and not name.startswith(_ENCRYPTED_PREFIX):
            kept[name] = _readable(item)
    return kept


_RESULTS = ("output", "outputs", "results", "result", "error", "tools")
_ABOUT_ITEMS = ("type", "id", "status", "name", "created_by", "server_label")


def item_call(item: Mapping[str, Any]) -> tuple[str, object]:
    """Return the tool's name and the input of a call, given as an item of the Responses API."""
    kind = str(item.get("type"))
    name = item.get("name")
    if not isinstance(name, str) or not name:
        name = kind.removesuffix("_call")
    arguments = item.get("arguments")
    if isinstance(arguments, str | dict):
        return name, arguments
    given = {}
    for field, value in item.items():
        if field not in _ABOUT_ITEMS and field not in _RESULTS and value is not None:
            given[field] = value
    if given.keys() == {"action"} and isinstance(given["action"], dict):
        # The input of a search call is its action; the action's type names the kind of search.
        given = given["action"]
    return name, _readable(given)


def item_result(item: Mapping[str, Any]) -> tuple[JsonValue, bool] | None:
    """Return the result in an item of the Responses API that describes a call, and whether the result is an error.

    Returns `None` for an item without a result, because the API sends results only if the request asks for them."""
    if item.get("error"):
        return item["error"], True
    is_error = item.get("status") in ("failed", "incomplete")
    for field in _RESULTS:
        if (value := item.get(field)) not in (None, [], ""):
            return value, is_error
    if is_error:
        return f"the provider reports: {item['status']}", True
    return None
