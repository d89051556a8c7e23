"""Reads the errors that endpoints report in many formats, and makes the errors for broken streams."""

from __future__ import annotations

import json
import re
from collections.abc import Sized
from typing import Any

from pydantic_core import from_json

from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass, json_text
from workbench.limits import MAX_ANSWER_PARTS
from workbench.providers.model import AnswerTooLargeError, ModelError
from workbench.providers.wire.wire import SseEvent, as_dict
from workbench.trajectory.events import JsonValue

MAX_QUOTE_CHARS = 300
_SHOWN_CHARACTERS = 80
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_HTML = re.compile(r"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)

_WORDS_IN = ("message", "detail", "msg", "error_description", "errors", "title", "reason")
_NAMES_OF_ERRORS = ("code", "type", "status")

_RETRYABLE = {
    "api_error",
    "engine_overloaded_error",
    "internal_error",
    "internal_server_error",
    "internalserverexception",
    "internalservererror",
    "modelstreamerrorexception",
    "modeltimeoutexception",
    "overloaded",
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "server_error",
    "server_overloaded",
    "service_unavailable",
    "serviceunavailableexception",
    "throttlingexception",
    "timeout_error",
    "unavailable",
}
_NOT_RETRYABLE = {"insufficient_quota", "billing_error", "billing_hard_limit_reached"}


def quoted(text: str, secrets: Secrets, longest: int = MAX_QUOTE_CHARS) -> str:
    """Return a text from an endpoint as one line of at most `longest` characters, without secrets."""
    # Secrets are removed before the cut, so no part of a secret remains.
    clean = secrets.redact(text)[: 10 * longest]
    clean = " ".join("".join(map(_printable, clean)).split())
    if len(clean) <= longest:
        return clean
    return clean[: longest - 1] + "…"


def _printable(sign: str) -> str:
    # Control characters could change the terminal on which the text is shown.
    return sign if sign.isprintable() else " "


def error_text(document: object) -> str | None:
    """Return the endpoint's message in an error response; `None` if there is none.

    `document` is the body as parsed JSON or as text."""
    if isinstance(document, str):
        return _words_of_text(document)
    if isinstance(document, list):
        return "; ".join(filter(None, map(error_text, document[:5]))) or None
    if not isinstance(document, dict):
        return None
    error = document.get("error")
    if isinstance(error, dict):
        return _words_of_error(error) or error_text(document.get("message"))
    if error and (words := error_text(error)):
        return words
    for key in _WORDS_IN:
        if document.get(key) and (words := error_text(document[key])):
            if place := _place(document.get("loc")):
                return f"{words} ({place})"
            return words
    return None


def reports_error(document: object) -> bool:
    """Return whether a JSON document is an error report instead of an answer or a part of an answer."""
    if isinstance(document, dict):
        return bool(document.get("error")) or document.get("object") == "error" or document.get("type") == "error"
    return isinstance(document, list) and bool(document) and reports_error(document[0])


def is_retryable_error(document: object) -> bool:
    """Return whether a request with this error may succeed later, as after an overload or a rate limit."""
    names = _names(document)
    if not _NOT_RETRYABLE.isdisjoint(names):
        return False
    return any(name in _RETRYABLE or (name.isdecimal() and _is_retryable_status(int(name))) for name in names)


def _is_retryable_status(status: int) -> bool:
    return status in (408, 409, 429) or 500 <= status < 600


def _names(document: object) -> set[str]:
    if isinstance(document, list) and document:
        return _names(document[0])
    if not isinstance(document, dict):
        return set()
    names = {str(document[key]).lower() for key in _NAMES_OF_ERRORS if document.get(key)}
    return names | _names(document.get("error"))


def _words_of_error(error: dict[str, Any]) -> str | None:
    words = error_text({key: value for key, value in error.items() if key != "error"})
    if words is None:
        words = next((str(error[key]) for key in _NAMES_OF_ERRORS if error.get(key)), None)
    # Routers such as OpenRouter send the provider's own message in `metadata.raw`, in addition to their own message.
    raw = error_text(as_dict(error.get("metadata")).get("raw"))
    if words and raw and raw not in words:
        return f"{words}: {raw}"
    return words or raw


def _words_of_text(text: str) -> str | None:
    text = text.strip()
    if text.startswith(("{", "[")):
        try:
            return error_text(json.loads(text)) or text
        except (ValueError, RecursionError):
            return text
    if _HTML.match(text):
        import html  # lazy import: few answers are pages

        # The title of a proxy's error page names the error.
        title = _TITLE.search(text)
        shown = title[1] if title else ""
        if not shown.strip():
            shown = _TAG.sub(" ", text)
        text = html.unescape(shown)
    return " ".join(text.split()) or None


def _place(loc: object) -> str:
    """Convert the path to a mistake in a request, which FastAPI reports as a list, to text.

    For example, `["body", "tools", 0]` becomes `body.tools.0`."""
    if isinstance(loc, list):
        return ".".join(map(str, loc))
    return str(loc or "")


def _parsed(data: str) -> object:
    # Pydantic's parser takes half the time of Python's. But it refuses lone surrogates and deep nesting, which Python's
    # parser accepts.
    try:
        parsed: object = from_json(data, cache_strings="keys")
    except ValueError:
        parsed = json.loads(data)
    return parsed


class NotJsonError(ModelError):
    """Raised when a stream contains data that is not JSON."""


@dataclass(frozen=True, slots=True)
class AnswerErrors:
    """Makes the errors of one model's answers. `api` is the expected API, and `base_url` is the API's address."""

    model: str
    api: str
    base_url: str
    secrets: Secrets

    def document(self, event: SseEvent) -> dict[str, Any] | None:
        """Return the JSON object in an event; `None` for an event without one.

        Raises ModelError for data that is not JSON, and for an error that the event reports."""
        data = event.data
        try:
            document = _parsed(data)
        except (ValueError, RecursionError):
            if event.event == "error":
                raise self.reported(data) from None
            if data.strip() in ("", "[DONE]"):  # some gateways send OpenAI's end mark in every API
                return None
            raise self.not_json(data) from None
        if event.event == "error" or reports_error(document):
            raise self.reported(document)
        if isinstance(document, dict):
            return document
        return None

    def check_parts(self, parts: Sized) -> None:
        """Raise AnswerTooLargeError if `parts` already has as many parts as an answer may have."""
        if len(parts) >= MAX_ANSWER_PARTS:
            raise AnswerTooLargeError(MAX_ANSWER_PARTS.reached())

    def storable_state(self, state: JsonValue) -> JsonValue:
        """Return the provider state of an answer unchanged, after checking it.

        Raises ModelError if JSON cannot express it."""
        if state is None:
            return None
        try:
            json_text(state)
        except (ValueError, RecursionError) as error:
            raise ModelError(
                f"the answer of {self.model} holds a value that cannot be written as JSON: {error}"
            ) from None
        return state

    def reported(self, error: object) -> ModelError:
        if words := error_text(error):
            report = quoted(words, self.secrets)
        else:
            report = f"an error without a message: {self._excerpt(error)}"
        return ModelError(f"the endpoint of {self.model} reports: {report}", retryable=is_retryable_error(error))

    def not_json(self, text: str) -> NotJsonError:
        """Return the error for data in the stream that is not JSON."""
        return NotJsonError(
            f"the stream of {self.model} contains something that is not JSON: {self._excerpt(text)} ({self._remedy})"
        )

    def no_answer(self, document: object) -> ModelError:
        """Return the error for a JSON document that is neither an answer nor an error."""
        return ModelError(f"the response of {self.model} is not an answer: {self._excerpt(document)} ({self._remedy})")

    def empty_stream(self) -> ModelError:
        return ModelError(f"the stream held no answer of {self.model} ({self._remedy})", retryable=True)

    def incomplete_stream(self, missing: str) -> ModelError:
        """Return the error for a stream that ended before the answer was complete.

        `missing` names the fields or events that did not arrive, as in "neither finish_reason nor [DONE]"."""
        return ModelError(f"the answer of {self.model} ended too early: {missing} came", retryable=True)

    def ended_early(self, reason: str) -> ModelError:
        """Return the error for an answer that the endpoint ended early because of a failure."""
        return ModelError(f"the endpoint of {self.model} ended its answer early: {reason}", retryable=True)

    @property
    def _remedy(self) -> str:
        return f"is {self.base_url} the base URL of the {self.api} API?"

    def _excerpt(self, value: object) -> str:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return repr(quoted(text, self.secrets, _SHOWN_CHARACTERS))
