"""What results of every kind of content become."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import MCPError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from workbench.tools.answer import ToolAnswer, answer_of, error_of

BLOB = base64.b64encode(b"12345").decode()
LINK = ResourceLink(name="a", uri="file:///a.txt")


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (TextContent(text="two\nlines"), "two\nlines"),
        (AudioContent(data=BLOB, mime_type="audio/wav"), "[audio audio/wav, 5 bytes]"),
        (LINK, "[resource file:///a.txt]"),
        (EmbeddedResource(resource=TextResourceContents(uri="file:///a.txt", text="inside")), "inside"),
        (
            EmbeddedResource(resource=BlobResourceContents(uri="file:///a.bin", blob=BLOB)),
            "[resource file:///a.bin, 5 bytes]",
        ),
    ],
)
def test_each_kind_of_content_has_its_text(block: ContentBlock, text: str) -> None:
    assert answer_of(CallToolResult(content=[block])) == ToolAnswer(text)


def test_a_result_without_content_is_empty() -> None:
    assert answer_of(CallToolResult(content=[])) == ToolAnswer("")


def test_structured_content_beside_text_is_left_out() -> None:
    result = CallToolResult(content=[TextContent(text="21 °C")], structured_content={"celsius": 21})
    assert answer_of(result) == ToolAnswer("21 °C")


def test_structured_content_follows_what_is_no_text() -> None:
    assert answer_of(CallToolResult(content=[LINK], structured_content={"straße": [1, 2]})) == ToolAnswer(
        '[resource file:///a.txt]\n{"straße":[1,2]}'
    )


def test_a_tool_error_stays_one() -> None:
    assert answer_of(CallToolResult(content=[TextContent(text="no")], is_error=True)) == ToolAnswer("no", True)


def test_numbers_that_json_lacks_are_written_all_the_same() -> None:
    result = CallToolResult(content=[], structured_content={"ratio": float("nan")})
    assert answer_of(result) == ToolAnswer('{"ratio":NaN}')


def test_an_error_of_the_protocol_without_a_word_is_named_by_its_code() -> None:
    assert error_of(MCPError(code=-32602, message="")).content == "The server refused the call with the code -32602."


@given(st.binary(max_size=50))
def test_the_size_of_an_image_is_that_of_its_bytes(data: bytes) -> None:
    image = ImageContent(data=base64.b64encode(data).decode(), mime_type="image/png")
    assert answer_of(CallToolResult(content=[image])).content == f"[image image/png, {len(data)} bytes]"
