"""Interprets an endpoint's refusals: the status, the text, and the time to wait."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from workbench.config.models import ModelSpec
from workbench.dataclasses import dataclass

PASSING_STATUSES = frozenset({408, 409, 425, 429})
"""Retryable in addition to all from 500 on, except 501 and 505."""
TLS_WANTED = ("plain http request was sent to https", "http request to an https server")
"""What web servers reply to a request without TLS where TLS is expected."""
QUOTA_CODES = ("insufficient_quota", "billing_hard_limit", "billing_not_active")
"""Codes with status 429 that waiting does not help."""


@dataclass(frozen=True)
class Refusal:
    """A status with its text: `text` is short and safe to show, `body` is searched for codes."""

    status: int
    text: str
    body: str
    path: str
    location: str = ""
    tool: str | None = None

    @property
    def _why(self) -> str:
        return f"({self.status}: {self.text})" if self.text else f"({self.status})"

    def is_retryable(self, headers: Mapping[str, str]) -> bool:
        """Returns whether the same request may succeed later; an explicit statement of the endpoint takes
        precedence."""
        header = headers.get("x-should-retry", "").lower()
        if header in ("true", "false"):
            return header == "true"
        if self.status == 429 and any(code in self.body for code in QUOTA_CODES):
            return False
        return self.status in PASSING_STATUSES or (self.status >= 500 and self.status not in (501, 505))

    def sentence(self, spec: ModelSpec) -> str:
        """Returns what happened and the way out, as the rest of a sentence that begins with the endpoint."""
        why = self._why
        match self.status:
            case 401 | 403 if spec.api_key_env is None:
                return f"requires a key {why}: name the variable that holds it as api_key_env"
            case 401 | 403:
                return f"does not accept the key in {spec.api_key_env} {why}: correct the variable"
            case 402:
                return f"requires payment {why}: look at the account behind the key"
            case 404 | 405:
                return self._not_there(spec)
            case 413:
                return f"rejects the request as too large {why}: shorten the case or offer fewer tools"
            case 400 | 422 if self.tool is not None:
                return f"does not accept the tool {self.tool} {why}: correct the schema of its parameters"
            case 400 if any(words in self.body.lower() for words in TLS_WANTED):
                return f"expects TLS {why}: write https:// in base_url"
            case 400 | 422:
                return f"does not accept the request {why}: look at the model's params and the suite's tools"
            case 429 if not self.is_retryable({}):
                return f"has no quota left for the account {why}: look at the account behind the key"
            case 429:
                return f"asks for fewer requests {why}: lower concurrency or requests_per_minute of the model"
            case 503 | 529:
                return f"is overloaded {why}: try again later"
            case status if 300 <= status < 400:
                where = f" to {self.location}" if self.location else ""
                return f"redirects{where} ({status}), and keys are not sent along: correct base_url"
            case status if status >= 500:
                return f"failed {why}: try again later, or look at the server's log"
        return f"refuses the request {why}: look at base_url and the model's settings"

    def _not_there(self, spec: ModelSpec) -> str:
        named = re.search(rf"(?<!\w){re.escape(spec.model)}(?!\w)", self.text)
        if named or "model_not_found" in self.body:
            return f"has no model {spec.model!r} {self._why}: correct its name, or load it on the server"
        hint = base_url_hint(spec)
        return f"has no {self.path} {self._why}: " + (hint or "correct base_url or provider")


def base_url_hint(spec: ModelSpec) -> str | None:
    """Returns what the base URL most likely lacks: those of OpenAI's APIs end in `/v1`."""
    if spec.provider == "anthropic" or "/v1" in urlsplit(spec.base_url).path:
        return None
    return f"did you mean {shown_url(spec.base_url).rstrip('/')}/v1 as base_url?"


def shown_url(url: str) -> str:
    """Returns an address without its possible secrets: a user's name and password, the query."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "the endpoint"
    return f"{parts.scheme}://{host}{parts.path}" if host else parts.path


def asked_wait_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Returns the seconds that the headers ask to wait: `retry-after-ms`, or `retry-after` in seconds or as a date. A
    date counts from that of the answer, where it has one, because the clock here may be another's or be set meanwhile.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait_s = float(headers[name]) * unit_s
        except (KeyError, ValueError):
            continue
        if math.isfinite(wait_s):
            return max(wait_s, 0.0)
    try:
        until_s = parsedate_to_datetime(headers["retry-after"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
    with suppress(KeyError, ValueError, OverflowError):
        now_s = parsedate_to_datetime(headers["date"]).timestamp()
    return max(until_s - now_s, 0.0)
