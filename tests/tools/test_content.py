"""What results of every kind of content become."""

from __future__ import annotations

import base64

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

from tests.pictures import gif, in_base64, jpeg, png, wav, webp
from tests.tables import each_row
from workbench.limits import MAX_MEDIA_BYTES
from workbench.tools.answer import ToolAnswer, answer_of, error_of
from workbench.trajectory.media import Media, text_and_media

BLOB = base64.b64encode(b"12345").decode()
LINK = ResourceLink(name="a", uri="file:///a.txt")


@each_row(
    ("block", "text"),
    [
        (TextContent(text="two\nlines"), "two\nlines"),
        (AudioContent(data=BLOB, mime_type="audio/wav"), "[audio/wav, 5 bytes]"),
        (ImageContent(data="no base64", mime_type="image/png"), "[image/png, 6 bytes]"),
        (LINK, "[resource a: file:///a.txt]"),
        (ResourceLink(name="b", uri="x:b", description="A note."), "[resource b: x:b] A note."),
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
        '[resource a: file:///a.txt]\n{"straße":[1,2]}'
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
    assert answer_of(CallToolResult(content=[image])).content.endswith(f", {len(data)} bytes]")


KINDS = {
    "image/png": png(40, 30),
    "image/jpeg": jpeg(40, 30),
    "image/gif": gif(40, 30),
    "image/webp": webp(b"VP8X", 40, 30),
    "image/webp, lossless": webp(b"VP8L", 40, 30),
    "image/webp, lossy": webp(b"VP8 ", 40, 30),
}


@each_row(("kind", "content"), KINDS.items())
def test_an_image_is_known_by_its_content_wherever_it_stands(kind: str, content: bytes) -> None:
    media_type, data = kind.partition(",")[0], in_base64(content)
    blob = BlobResourceContents(uri="x:y", blob=data, mime_type="text/plain")
    for block in (ImageContent(data=data, mime_type="text/plain"), EmbeddedResource(resource=blob)):
        answer = answer_of(CallToolResult(content=[TextContent(text="Look:"), block]))
        assert answer.content == f"Look:\n[{media_type}, 40×30, {len(content)} bytes]"
        (media,) = answer.media
        assert (media.media_type, media.width, media.height, media.data) == (media_type, 40, 30, data)


@given(st.sampled_from([*KINDS.values(), wav()]), st.integers(0, 60), st.binary(max_size=8))
def test_a_cut_or_damaged_image_is_shown_all_the_same(content: bytes, until: int, more: bytes) -> None:
    answer = answer_of(CallToolResult(content=[ImageContent(data=in_base64(content[:until] + more), mime_type="a/b")]))
    for media in answer.media:
        assert answer.content == media.placeholder
    assert answer.content.startswith("[") and answer.content.endswith(" bytes]")


def test_an_image_above_the_limit_says_so() -> None:
    data = in_base64(png() + bytes(MAX_MEDIA_BYTES))
    answer = answer_of(CallToolResult(content=[ImageContent(data=data, mime_type="image/png")]))
    assert answer == ToolAnswer("[image/png, 21.0 MB, not sent: it is larger than 20 MiB]")


PARTS = st.lists(st.sampled_from([png(4, 3), png(5, 3), gif(), b"text"]), max_size=6)


@given(PARTS)
def test_texts_and_images_keep_their_places(parts: list[bytes]) -> None:
    blocks: list[ContentBlock] = []
    for part in parts:
        if part == b"text":
            blocks.append(TextContent(text="a text"))
        else:
            blocks.append(ImageContent(data=in_base64(part), mime_type="image/png"))
    answer = answer_of(CallToolResult(content=blocks))
    found: list[object] = []
    for each in text_and_media(answer.content, answer.media):
        found += [each.data] if isinstance(each, Media) else each.split("\n")
    assert found == ["a text" if part == b"text" else in_base64(part) for part in parts]
