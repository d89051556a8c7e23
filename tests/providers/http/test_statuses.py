from __future__ import annotations

import json
import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_row
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.providers.http.errors import EndpointErrors, HttpStatusError, requested_wait_s, shown_url

NOON = 1795262400.0  # 2026-11-21 12:00:00 UTC


@each_row(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT", "date": "Sat, 21 Nov 2026 10:59:50 GMT"}, 10.0),
        ({"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT", "date": "soon"}, 30.0),
        ({"retry-after": "Sat, 99 Nov 2026 11:00:00 GMT"}, None),
    ],
)
def test_how_long_an_endpoint_asks_to_wait_is_read_in_all_its_forms(
    headers: Mapping[str, str], wait_s: float | None
) -> None:
    assert requested_wait_s(headers, NOON) == wait_s


@each_row(
    ("status", "said", "tool", "sentence"),
    [
        (400, "this model does not support image input", None, "does not accept the media in the messages"),
        (404, "no endpoints found that support image input", None, "does not accept the media in the messages"),
        (500, "image input is not supported: provide the mmproj", None, "does not accept the media in the messages"),
        (404, "no model 'pixel-vision'", None, "has no model 'pixel-vision'"),
        (503, "the model for images is overloaded", None, "is overloaded"),
        (413, "the image is larger than 5 MB", None, "rejects the request as too large"),
        (429, "too many images per minute", None, "asks for fewer requests"),
        (400, "invalid schema of tools[0], edit_image", "edit_image", "does not accept the tool edit_image"),
    ],
)
def test_only_a_refusal_of_images_themselves_is_explained_by_them(
    status: int, said: str, tool: str | None, sentence: str
) -> None:
    errors = EndpointErrors(ModelSpec("m", "openai", "pixel-vision", "http://h/v1"), Secrets())
    refused = HttpStatusError(status, {}, json.dumps({"error": {"message": said}}).encode())
    error = errors.of_exception(refused, path="/chat/completions", tool_at=lambda _: tool, has_media=True)
    assert str(error).startswith(f"http://h/v1 {sentence} ({status}: {said}")


@given(st.text(), st.floats(0, 1e10))
def test_no_header_breaks_the_reading(text: str, now_s: float) -> None:
    wait_s = requested_wait_s({"retry-after": text}, now_s)
    assert wait_s is None or (math.isfinite(wait_s) and wait_s >= 0)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://localhost:1234/v1", "http://localhost:1234/v1"),
        ("https://user:secret@host/v1?key=secret#secret", "https://host/v1"),
        ("/elsewhere?key=secret", "/elsewhere"),
        ("http://[broken", "the endpoint"),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown
