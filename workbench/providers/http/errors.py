"""Turns every failure of an endpoint into one error with one sentence: where, what happened, the way out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.providers.http.statuses import Refusal, asked_wait_s, base_url_hint, shown_url
from workbench.providers.http.transport import broken_by, causes_of
from workbench.providers.model import ModelError
from workbench.providers.wire.errors import MAX_QUOTE_CHARS, error_text, quoted


class Refused(Exception):  # noqa: N818 (an answer, not a failure of this program)
    """A response other than success: its status, its headers (names in lower case) and the beginning of its body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.headers = headers
        self.body = body


@dataclass(frozen=True)
class EndpointErrors:
    """Makes the errors of one model's endpoint. `now` returns seconds since 1970, for dates in headers."""

    spec: ModelSpec
    secrets: Secrets
    now: Callable[[], float] = time.time

    def error(self, sentence: str, *, retryable: bool = False, retry_after_s: float | None = None) -> ModelError:
        """Returns an error from the rest of a sentence that begins with the endpoint."""
        return ModelError(
            f"{shown_url(self.spec.base_url)} {sentence}", retryable=retryable, retry_after_s=retry_after_s
        )

    def of_reading(self, error: ModelError) -> ModelError:
        """Returns an error of the answer's reader, with the endpoint added."""
        place = shown_url(self.spec.base_url)
        said = self.quoted(str(error), 2 * MAX_QUOTE_CHARS)
        sentence = said if place in said else f"{said} ({place})"
        return ModelError(sentence, retryable=error.retryable, retry_after_s=error.retry_after_s)

    def of_exception(
        self, error: Exception, *, path: str, began: bool = False, tool_at: Callable[[str], str | None] = lambda _: None
    ) -> ModelError:
        """Returns the error for an exception of the HTTP library. `path` was requested; `began` tells that
        part of an answer had come; `tool_at` finds the tool that an error's text complains about."""
        for cause in causes_of(error):
            if isinstance(cause, Refused):
                return self._of_refusal(cause, path, tool_at)
        broken = broken_by(error, self.spec, began=began)
        if broken is not None:
            return self.error(self.quoted(broken.sentence), retryable=broken.retryable)
        return self.error(f"cannot be asked: {self.quoted(f'{type(error).__name__}: {error}')}")

    def of_page(self, body: bytes) -> ModelError:
        """Returns the error for a web page where a model's answer should be."""
        said = words_of(body)
        hint = base_url_hint(self.spec) or "correct base_url"
        return self.error(f"answers with a web page ({self.quoted(said)}), not with a model's answer: {hint}")

    def of_garbage(self, body: bytes) -> ModelError:
        """Returns the error for something that is neither a stream of events nor JSON. Bytes that are not even text may
        have been garbled in transit, and are worth another try."""
        text = body.decode("utf-8", "replace")
        sentence = f"answers with something that is not a model's answer ({self.quoted(text, 80)})"
        return self.error(f"{sentence}: correct base_url or provider", retryable="\0" in text or "\ufffd" in text)

    def of_cut_document(self) -> ModelError:
        """Returns the error for JSON whose end is missing."""
        return self.error("sent only the beginning of its answer: look at the server or its proxy", retryable=True)

    def of_settings(self, error: Exception) -> ModelError:
        """Returns the error for an endpoint that cannot even be tried."""
        way_out = "look at base_url, the proxy variables and SSL_CERT_FILE"
        return self.error(f"cannot be asked: {self.quoted(str(error))}; {way_out}")

    def of_nothing(self) -> ModelError:
        """Returns the error for success without a body."""
        return self.error("answers with nothing: look at the server's log", retryable=True)

    def quoted(self, text: str, longest: int = MAX_QUOTE_CHARS) -> str:
        """Returns foreign text on one line, without secrets, and cut."""
        return quoted(text, self.secrets, longest)

    def _of_refusal(self, refused: Refused, path: str, tool_at: Callable[[str], str | None]) -> ModelError:
        said = words_of(refused.body)
        refusal = Refusal(
            status=refused.status,
            text=self.quoted(said),
            body=refused.body.decode("utf-8", "replace"),
            path=path,
            location=self.quoted(shown_url(refused.headers.get("location", ""))),
            tool=tool_at(said) if refused.status in (400, 422) else None,
        )
        return self.error(
            refusal.sentence(self.spec),
            retryable=refusal.is_retryable(refused.headers),
            retry_after_s=asked_wait_s(refused.headers, self.now()),
        )


def words_of(body: bytes) -> str:
    """Returns what the body of a refusal says, empty where it says nothing."""
    return error_text(body.decode("utf-8", "replace")) or ""
