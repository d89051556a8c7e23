"""Images and sounds: sent to models that take them, in each API's own form, and placeholders everywhere else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.pictures import in_base64, png, wav
from tests.providers.server import Answer, Api, Call, Server, base_url_of, document, said, serve

PLAIN = Path(__file__).parents[1] / "tools" / "servers" / "plain.py"
IMAGE, OTHER = png(4, 3), png(5, 2)
SHOWN = f"[image/png, 4×3, {len(IMAGE)} bytes]"
SHOWN_OTHER = f"[image/png, 5×2, {len(OTHER)} bytes]"
SHOWN_SOUND = f"[audio/wav, {len(wav())} bytes]"

SERVER = f"""
from plain import PlainServer

server = PlainServer("pictures")


def image(data: str, kind: str = "image") -> dict:
    return {{"type": kind, "data": data, "mimeType": "application/octet-stream"}}


@server.tool(readOnlyHint=True)
def look(at: str) -> object:
    text = {{"type": "text", "text": f"This is {{at}}."}}
    return {{"content": [text, image({in_base64(IMAGE)!r}), {{"type": "text", "text": "Nice?"}}]}}


@server.tool(readOnlyHint=True)
def other(failed: bool = False) -> object:
    return {{"content": [image({in_base64(OTHER)!r})], "isError": failed}}


@server.tool(readOnlyHint=True)
def listen() -> object:
    return {{"content": [image({in_base64(wav())!r}, "audio")]}}


server.run()
"""

SUITE = """format = 1
name = "Pictures"
execute = true

[[servers]]
name = "pictures"
command = ["python", "server.py"]

[[cases]]
name = "Look"
user = "Look at the door."
limits = { max_rounds = 3 }
[[cases.ordered]]
tool = "look"
"""

LOOK, AGAIN = Call("look", {"at": "the door"}, "call_1"), Call("look", {"at": "the wall"}, "call_3")
OTHER_CALL, FAILED = Call("other", {}, "call_2"), Call("other", {"failed": True}, "call_2")
LISTEN = Call("listen", {}, "call_1")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a suite and its server; what the program stores lies below it."""
    for variable in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.chdir(tmp_path)
    shutil.copy(PLAIN, "plain.py")
    Path("server.py").write_text(SERVER, encoding="utf-8")
    Path("s.toml").write_text(SUITE, encoding="utf-8")
    return tmp_path


def ran(server: Server, api: Api, settings: str = "images = true", **options: Any) -> workbench.Report:
    url = base_url_of(server, api)
    text = f'[models.seer]\nprovider = "{api}"\nmodel = "m"\nbase_url = "{url}"\n{settings}\n'
    Path("workbench.toml").write_text(text, encoding="utf-8")
    return workbench.evaluate("s.toml", model="seer", approve=workbench.ALL, **options)


def url_of(image: bytes) -> str:
    return f"data:image/png;base64,{in_base64(image)}"


def asked(server: Server) -> list[dict[str, Any]]:
    """Return the conversation of the last request."""
    body = server.requests[-1].json
    conversation: list[dict[str, Any]] = body.get("messages") or body["input"]
    return conversation


def test_chat_completions_get_images_after_all_results_of_a_turn() -> None:
    answers = (said("openai", "", [LOOK, OTHER_CALL]), said("openai", "", [AGAIN]), said("openai", "Fine."))
    with serve(*answers) as server:
        report = ran(server, "openai")
    assert report.results[0].trajectory.final_answer == "Fine."
    results = {"call_1": f"This is the door.\n{SHOWN}\nNice?", "call_2": SHOWN_OTHER}
    results["call_3"] = f"This is the wall.\n{SHOWN}\nNice?"
    assert [message.get("content") for message in asked(server) if message["role"] == "tool"] == [*results.values()]
    roles = [message["role"] for message in asked(server)]
    assert roles == ["user", "assistant", "tool", "tool", "user", "assistant", "tool", "user"]
    assert asked(server)[4] == {
        "role": "user",
        "content": [
            {"type": "text", "text": f"{SHOWN} in the result of the call call_1 of look:"},
            {"type": "image_url", "image_url": {"url": url_of(IMAGE)}},
            {"type": "text", "text": f"{SHOWN_OTHER} in the result of the call call_2 of other:"},
            {"type": "image_url", "image_url": {"url": url_of(OTHER)}},
        ],
    }


def test_responses_get_images_in_the_output_of_the_call() -> None:
    answers = (said("openai-responses", "", [LOOK]), said("openai-responses", "Fine."))
    with serve(*answers) as server:
        ran(server, "openai-responses")
    assert asked(server)[-1]["output"] == [
        {"type": "input_text", "text": "This is the door."},
        {"type": "input_image", "image_url": url_of(IMAGE), "detail": "auto"},
        {"type": "input_text", "text": "Nice?"},
    ]


def test_messages_get_images_in_results_that_are_no_errors() -> None:
    answers = (said("anthropic", "", [LOOK, FAILED]), said("anthropic", "Fine."))
    with serve(*answers) as server:
        ran(server, "anthropic")
    source = {"type": "base64", "media_type": "image/png", "data": in_base64(IMAGE)}
    assert asked(server)[-1]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "call_1",
            "content": [
                {"type": "text", "text": "This is the door."},
                {"type": "image", "source": source},
                {"type": "text", "text": "Nice?"},
            ],
        },
        {"type": "tool_result", "tool_use_id": "call_2", "content": SHOWN_OTHER, "is_error": True},
    ]


@pytest.mark.parametrize("api", ["openai", "openai-responses", "anthropic"])
@pytest.mark.parametrize("settings", ["", "images = false"])
def test_a_model_at_another_address_reads_placeholders(api: Api, settings: str) -> None:
    with serve(said(api, "", [LOOK]), said(api, "Fine.")) as server:
        ran(server, api, settings)
    assert f"This is the door.\n{SHOWN}\nNice?" in json.dumps(asked(server), ensure_ascii=False).replace("\\n", "\n")
    assert in_base64(IMAGE)[-40:] not in server.requests[-1].body.decode()


def test_sounds_go_to_a_model_of_chat_completions_that_takes_them() -> None:
    with serve(said("openai", "", [LISTEN]), said("openai", "Fine.")) as server:
        ran(server, "openai", "audio = true")
    assert asked(server)[-2]["content"] == SHOWN_SOUND
    assert asked(server)[-1]["content"] == [
        {"type": "text", "text": f"{SHOWN_SOUND} in the result of the call call_1 of listen:"},
        {"type": "input_audio", "input_audio": {"data": in_base64(wav()), "format": "wav"}},
    ]


REFUSALS = [
    (400, "this model does not support image input"),
    (404, "No endpoints found that support image input"),
    (422, "messages.3.content: Input should be a valid string"),
    (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
]


@pytest.mark.parametrize(("status", "message"), REFUSALS)
def test_an_endpoint_that_refuses_images_is_told_by_its_setting(status: int, message: str) -> None:
    refusal: Answer = document({"error": {"message": message}}, status, {"x-should-retry": "false"})
    with serve(said("openai", "", [LOOK]), refusal) as server:
        (result,) = ran(server, "openai").results
    assert result.error is not None
    assert f"({status}: {message})" in result.error
    assert result.error.endswith("set images = false for the model, or choose one that takes it")
