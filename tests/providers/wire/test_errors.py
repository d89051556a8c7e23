from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.providers.wire.reading import a_request, a_spec
from tests.strategies import json_values
from tests.tables import each_row
from workbench.config.models import OWN_URLS, Provider
from workbench.config.secrets import Secrets
from workbench.providers.http.answers import SseParser
from workbench.providers.http.endpoints import wire_of
from workbench.providers.model import ModelError
from workbench.providers.wire.errors import error_text, is_retryable_error, quoted, reports_error
from workbench.trajectory.events import ToolDefinition

KEY = "sk-" + "0123456789abcdef" * 100


@each_row(
    ("document", "words"),
    [
        ({"error": {"message": "no such model", "type": "invalid_request_error", "code": None}}, "no such model"),
        ({"error": "no such model"}, "no such model"),
        ({"error": {"code": "model_not_found"}}, "model_not_found"),
        ({"object": "error", "message": "too long", "code": 400}, "too long"),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "Overloaded"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"loc": ["body", "tools", 0], "msg": "Field required"}]}, "Field required (body.tools.0)"),
        ({"errors": [{"message": "one"}, {"message": "two"}]}, "one; two"),
        ([{"error": {"message": "in a list"}}], "in a list"),
        ({"message": "Unauthorized"}, "Unauthorized"),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": '{"error":{"message":"no tools"}}'}}},
            "Provider returned error: no tools",
        ),
        ('{"error": {"message": "as text"}}', "as text"),
        ('{"unheard_of": 1}', '{"unheard_of": 1}'),
        ("{broken", "{broken"),
        ("  upstream\n timed out ", "upstream timed out"),
        ("<html><head><title>502 Bad Gateway</title></head><body>x</body></html>", "502 Bad Gateway"),
        ("<!DOCTYPE html><style>p{}</style><p>Sorry &amp; bye</p>", "Sorry & bye"),
        ("", None),
        ({}, None),
        ({"id": "1", "type": "message", "content": []}, None),
        (None, None),
        (5, None),
    ],
)
def test_the_words_of_an_error(document: object, words: str | None) -> None:
    assert error_text(document) == words


def test_what_is_quoted_is_short_and_holds_no_half_of_a_secret() -> None:
    secrets = Secrets()
    secrets.add("MY_KEY", KEY)
    assert quoted("x" * 5000, secrets, 80) == "x" * 79 + "…"
    assert quoted(f"wrong\n\tkey {KEY}!", secrets, 80) == "wrong key $MY_KEY!"


@pytest.mark.parametrize("provider", OWN_URLS)
@pytest.mark.parametrize(
    "stream",
    [
        f"data: wrong key {KEY}\n\n",
        f'data: {{"error": {{"message": "{KEY} {KEY}"}}}}\n\n',
        f"event: error\ndata: {KEY}\n\n",
    ],
)
def test_no_part_of_a_long_key_is_left_in_what_is_quoted_of_a_stream(provider: Provider, stream: str) -> None:
    secrets = Secrets()
    secrets.add("MY_KEY", KEY)
    reader = wire_of(a_spec(provider), secrets).reader(a_request())
    with pytest.raises(ModelError, match=r"\$MY_KEY") as raised:
        for event in SseParser().feed(stream.encode()):
            reader.feed(event)
    assert KEY[:20] not in str(raised.value)


@each_row(
    ("document", "is_one"),
    [
        ({"error": {"message": "x"}}, True),
        ([{"error": "x"}], True),
        ({"object": "error"}, True),
        ({"type": "error"}, True),
        ({"error": None, "choices": []}, False),
        ([], False),
        ("error", False),
    ],
)
def test_what_is_an_error(document: object, is_one: bool) -> None:
    assert reports_error(document) is is_one


@each_row(
    ("error", "passing"),
    [
        ({"code": 429}, True),
        ({"code": "503"}, True),
        ({"code": 400}, False),
        ({"code": 500000}, False),
        ({"type": "InternalServerError"}, True),
        ({"status": "UNAVAILABLE"}, True),
        ({"code": "insufficient_quota", "type": "rate_limit_error"}, False),
        ({"type": "invalid_request_error"}, False),
        ("overloaded_error", False),
    ],
)
def test_which_errors_pass(error: object, passing: bool) -> None:
    assert is_retryable_error({"error": error}) is passing


@given(json_values)
def test_any_document_can_be_asked_for_its_error(document: Any) -> None:
    words = error_text(document)
    assert words is None or words
    assert isinstance(is_retryable_error({"error": document}), bool)


TOOLS = [ToolDefinition("get_weather"), ToolDefinition("home.set_tv"), ToolDefinition("x.y")]


@each_row(
    ("error", "tool"),
    [
        ("Invalid schema for function 'home_set_tv': schema must be of type 'object'", "home.set_tv"),
        ("tools.1.custom.input_schema: JSON schema is invalid", "home.set_tv"),
        ("Invalid type for 'tools[2].function.parameters'", "x.y"),
        ("[{'loc': ('body', 'tools', 0, 'function'), 'msg': 'x'}]", "get_weather"),
        ("body -> tools -> 1 -> function", "home.set_tv"),
        ("the schema of `x_y` is too deep", "x.y"),
        ("Tool 'get_weather' and tool 'x_y' clash", "get_weather"),
        ("'get_weather' and 'x_y' clash", None),
        ("Invalid schema for function 'another'", None),
        ("tools[17] is too much", None),
        ("too many tools: 2 allowed", None),
        ("slow down", None),
    ],
)
def test_the_tool_of_which_an_error_speaks(error: str, tool: str | None) -> None:
    for provider in ("openai", "openai-responses", "anthropic"):
        assert wire_of(a_spec(provider)).tool_at(a_request(tools=TOOLS), error) == tool
