"""Images and sounds: sent to models that take them, in each API's own form, and placeholders everywhere else."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.engine.stepped import Person
from tests.pictures import in_base64, png, wav
from tests.programs import begin, program_of
from tests.providers.server import APIS, Answer, Api, Call, Server, base_url_of, document, said, serve
from tests.sampled_rows import first_of, first_rows
from tests.show.html_page import Page
from workbench.cli.main import main
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.engine import media_store
from workbench.engine.events import BatchEvent, RunDone
from workbench.engine.fork import Fork, ForkPoint
from workbench.engine.plan import plan_fork
from workbench.engine.turns import conversation_after
from workbench.grading.grade import RunResult
from workbench.limits import MAX_MEDIA_BYTES, MAX_RUN_MEDIA_BYTES, Limit
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import HttpRequest, ModelRequest, http_request_of
from workbench.suite.suite_file import load_suite
from workbench.trajectory.events import Message
from workbench.trajectory.media import media_of, text_and_media
from workbench.trajectory.recording import read_recording
from workbench.trajectory.trajectory import Trajectory

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
    """The current folder, with a suite and its server. The program stores its data below it."""
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


@pytest.mark.parametrize("api", first_of(["openai", "openai-responses", "anthropic"], 1))
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


@pytest.mark.parametrize(("status", "message"), first_rows(REFUSALS, 2))
def test_an_endpoint_that_refuses_images_is_told_by_its_setting(status: int, message: str) -> None:
    refusal: Answer = document({"error": {"message": message}}, status, {"x-should-retry": "false"})
    with serve(said("openai", "", [LOOK]), refusal) as server:
        (result,) = ran(server, "openai").results
    assert result.error is not None
    assert f"({status}: {message})" in result.error
    assert result.error.endswith("set images = false for the model, or choose another model")


CASE = """format = 1
name = "Pictures"

[[cases]]
name = "Look"
user = "What is this?"
response_contains = ["door"]
[[cases.images]]
file = "pictures/door.png"
"""
CASE_STEPS = CASE.replace('user = "What is this?"\n', "").replace('response_contains = ["door"]\n', "") + (
    '[[cases.steps]]\nuser = "What is this?"\n[[cases.steps]]\nuser = "And now?"\n'
)


def with_picture(content: bytes = IMAGE, suite: str = CASE) -> None:
    Path("pictures").mkdir(exist_ok=True)
    Path("pictures/door.png").write_bytes(content)
    Path("s.toml").write_text(suite, encoding="utf-8")


IN_REQUEST: dict[Api, list[dict[str, Any]]] = {
    "openai": [
        {"type": "image_url", "image_url": {"url": url_of(IMAGE)}},
        {"type": "text", "text": "What is this?"},
    ],
    "openai-responses": [
        {"type": "input_image", "image_url": url_of(IMAGE), "detail": "auto"},
        {"type": "input_text", "text": "What is this?"},
    ],
    "anthropic": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": in_base64(IMAGE)}},
        {"type": "text", "text": "What is this?"},
    ],
}


@pytest.mark.parametrize("api", ["openai", "openai-responses", "anthropic"])
def test_an_image_of_a_case_begins_its_request(api: Api) -> None:
    with_picture()
    with serve(said(api, "A door.")) as server:
        report = ran(server, api)
    assert report.results[0].status == "passed"
    assert asked(server)[0]["content"] == IN_REQUEST[api]
    with_picture(suite=CASE_STEPS)
    with serve(said(api, "A door."), said(api, "Still.")) as server:
        ran(server, api)
    assert asked(server)[0]["content"] == IN_REQUEST[api]
    assert url_of(IMAGE)[-40:] not in json.dumps(asked(server)[1:])


def test_an_image_of_a_case_is_a_placeholder_for_other_models() -> None:
    with_picture()
    with serve(said("openai", "A door.")) as server:
        report = ran(server, "openai", "")
    assert asked(server)[0]["content"] == f"{SHOWN}\nWhat is this?"
    (notice,) = report.results[0].trajectory.notices
    assert notice == "seer reads placeholders of the case's images: set images = true if the model takes them"


BOTH = SUITE + '[[cases.images]]\nfile = "pictures/door.png"\n'


def forked(trajectory: Trajectory, model: str, at: ForkPoint) -> RunResult:
    file = load_suite(Path("s.toml"))
    assert file.suite is not None
    person = Person(program_of(Path("home")))
    try:
        begin(person.session, [plan_fork(file, file.suite.cases[0], model, Fork(trajectory, at))])
        while not isinstance(event := person.said.get(timeout=30), RunDone):
            pass
    finally:
        person.session.close()
    return event.result


@pytest.mark.parametrize("api", first_of(APIS, 1))
def test_a_fork_of_a_recording_sends_the_same_images(api: Api) -> None:
    picture = png(7, 7)
    with_picture(picture, BOTH)
    with serve(said(api, "", [LOOK]), said(api, "", [AGAIN]), said(api, "Fine."), said(api, "Fine.")) as server:
        report = ran(server, api, record="out")
        assert report.results[0].trajectory.final_answer == "Fine."
        (file,) = Path("out").iterdir()
        result = forked(read_recording(file).trajectory, "seer", ForkPoint(3))
    assert result.error is None
    assert server.requests[-1].body == server.requests[-2].body
    assert server.requests[-1].body.count(in_base64(IMAGE).encode()) == 2
    recorded = file.read_text(encoding="utf-8")
    assert (recorded.count(in_base64(IMAGE)), recorded.count(in_base64(picture))) == (1, 0)
    assert in_base64(IMAGE) not in report.json()
    (run,) = json.loads(report.json())["runs"]
    shown = [each for round_ in run["rounds"] for call in round_["calls"] for each in call["media"]]
    digest = hashlib.sha256(IMAGE).hexdigest()
    assert shown == [{"media_type": "image/png", "size": len(IMAGE), "width": 4, "height": 3, "sha256": digest}] * 2


@pytest.mark.slow
def test_a_fork_says_which_image_it_lacks() -> None:
    with_picture(png(7, 7), BOTH)
    with serve(said("openai", "", [LOOK]), said("openai", "Fine.")) as server:
        report = ran(server, "openai")
        with_picture(png(8, 8), BOTH)
        result = forked(report.results[0].trajectory, "seer", ForkPoint(2))
        assert result.error == (
            f"pictures/door.png [image/png, 7×7, {len(png(7, 7))} bytes] of the forked run is missing or changed: "
            "restore the file, or run the case again"
        )
        assert forked(report.results[0].trajectory, "offline", ForkPoint(2)).error is None
        with_picture(png(7, 7), BOTH)
        trajectory = report.results[0].trajectory
        (round_, *rest), limit = trajectory.rounds, "4 MiB of images and sounds of a run: run the case again"
        (call,) = round_.calls
        assert call.result is not None
        emptied = replace(call.result, media=tuple(each.without_data for each in call.result.media))
        calls = (replace(call, result=emptied),)
        lacking = replace(trajectory, rounds=(replace(round_, calls=calls), *rest))
        result = forked(lacking, "seer", ForkPoint(2))
    assert result.error is not None
    assert result.error.endswith(f"was not stored: the history and recordings keep {limit}")


def test_an_image_whose_placeholder_a_person_deletes_is_not_sent() -> None:
    media = media_of(IMAGE)
    assert media is not None
    message = Message("tool", f"before\n{SHOWN}\nafter", call_id="c", media=(media,))
    assert list(text_and_media(message.content, message.media)) == ["before", media, "after"]
    assert list(text_and_media("before after", message.media)) == ["before after"]


WRONG: list[tuple[str, str]] = [
    ("pictures/none.png", "pictures/none.png does not exist (check the path, from the suite's folder)"),
    ("s.toml", "s.toml is not an image that models take (save it as PNG, JPEG, GIF or WebP)"),
    ("pictures", "pictures is not a regular file"),
    ("pictures/pipe.png", "pictures/pipe.png is not a regular file"),
    ("pictures/out.png", "pictures/out.png leads out of the folder of the suite (copy the file into that folder)"),
    ("pictures/circle.png", "pictures/circle.png "),
    ("up/door.png", "up/door.png leads out of the folder of the suite (copy the file into that folder)"),
    ("pictures/huge.png", "pictures/huge.png is larger than 20 MiB (make it smaller)"),
    ("../door.png", "leads out of the folder of the suite (copy the file into that folder)"),
    ("/etc/passwd", "must be a path from the folder of the suite"),
    ("c:\\\\door.png", "must be a path from the folder of the suite"),
]


@pytest.mark.parametrize(("file", "problem"), WRONG)
def test_only_images_in_the_suites_folder_are_read(
    file: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "door.png").write_bytes(IMAGE)
    with_picture(suite=CASE.replace("pictures/door.png", file))
    os.mkfifo("pictures/pipe.png")
    Path("pictures/out.png").symlink_to(outside / "door.png")
    Path("pictures/circle.png").symlink_to("circle.png")
    Path("up").symlink_to(outside)
    with Path("pictures/huge.png").open("wb") as huge:
        huge.write(IMAGE)
        huge.truncate(MAX_MEDIA_BYTES + 1)
    assert main(["validate", "s.toml"]) != 0
    assert f's.toml:9: error: cases[0].images[0].file of "Look": {problem}' in capsys.readouterr().err
    # A link inside the folder is followed.
    Path("pictures/link.png").symlink_to("door.png")
    with_picture(suite=CASE.replace("pictures/door.png", "pictures/link.png"))
    assert main(["validate", "s.toml"]) == 0


def test_an_image_that_vanishes_before_the_run_ends_it_as_an_error() -> None:
    with_picture()
    suite = workbench.load("s.toml")
    Path("pictures/door.png").unlink()
    report = workbench.evaluate(suite, model="offline")
    assert report.results[0].error == "the image pictures/door.png of the case 'Look' does not exist"


def test_redaction_never_changes_an_image() -> None:
    media = media_of(IMAGE, "photo-secret-12345.png")
    assert media is not None
    secrets = Secrets()
    secrets.add_text("KEY", media.data[10:30])
    secrets.add_text("HASH", media.sha256[10:30])
    secrets.add_text("NAME", "secret-12345")
    message = Message("user", f"{SHOWN}\n{media.data[10:30]}", media=(media,))
    shown = secrets.redacted(message)
    assert (shown.content, shown.media) == (f"{SHOWN}\n$KEY", (replace(media, file="photo-$NAME.png"),))


async def agent(request: workbench.AgentRequest) -> workbench.AgentReply:
    return "A door."


def test_a_baseline_with_another_image_under_the_same_name_is_named_as_such(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with_picture(png(7, 7))
    model = workbench.Agent(agent, name="seer")
    workbench.evaluate("s.toml", model=model, history=True)
    same = workbench.evaluate("s.toml", model=model, history=True, baseline=1)
    assert same.against is not None and same.against.notes == ()
    with_picture(png(8, 8))
    other = workbench.evaluate("s.toml", model=model, history=True, baseline=1)
    differs = "the image pictures/door.png of the case 'Look' differs between "
    assert other.against is not None and other.against.notes == (f"{differs}the baseline and this batch",)
    assert main(["history", "diff", "1", "3"]) == 0
    assert f"{differs}#1 and #3" in capsys.readouterr().out


def test_a_batch_whose_images_have_changed_is_not_resumed_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    with_picture(png(7, 7), CASE.replace('name = "Look"', 'name = "Look"\nrepeats = 2'))

    def interrupt(event: BatchEvent) -> None:
        if isinstance(event, RunDone):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workbench.evaluate("s.toml", model="offline", concurrency=1, history=True, on_event=interrupt)
    Path("pictures/door.png").write_bytes(png(8, 8))
    assert main(["run", "--resume"]) != 0
    said_then = capsys.readouterr().err
    assert "s.toml have changed since batch 1\nnothing was run" in said_then
    assert "--anyway to resume regardless" in said_then
    Path("pictures/door.png").write_bytes(png(7, 7))
    main(["run", "--resume"])
    assert "have changed" not in capsys.readouterr().err


def test_images_above_the_limits_of_a_run_are_sent_but_not_kept_or_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = (said("openai", "", [LOOK, OTHER_CALL]), said("openai", "Fine."))
    monkeypatch.setattr(media_store, "MAX_KEPT_MEDIA_BYTES", len(IMAGE))
    with serve(*calls) as server:
        report = ran(server, "openai")
    assert url_of(OTHER) in server.requests[-1].body.decode()
    kept = [
        bool(media.data) for call in report.results[0].trajectory.calls if call.result for media in call.result.media
    ]
    assert kept == [True, False]
    too_many = Limit(len(IMAGE), MAX_RUN_MEDIA_BYTES.happened)
    monkeypatch.setattr(media_store, "MAX_RUN_MEDIA_BYTES", too_many)
    with serve(*calls) as server:
        ran(server, "openai")
    (first, second) = [message["content"] for message in asked(server) if message["role"] == "tool"]
    assert SHOWN in first
    assert second == f"{SHOWN_OTHER[:-1]}, not sent: {too_many.exceeded()}]"
    assert url_of(IMAGE) in (body := server.requests[-1].body.decode()) and url_of(OTHER) not in body


def test_a_page_and_a_preview_show_placeholders_alone() -> None:
    with serve(said("openai", "", [LOOK]), said("openai", "Fine.")) as server:
        report = ran(server, "openai")
        report.write("page.html")
        result = report.results[0]
        page = Path("page.html").read_text(encoding="utf-8")
        shown = json.dumps(list(Page(page).records("runs")), ensure_ascii=False)
        assert SHOWN in shown and in_base64(IMAGE) not in shown and "data:image" not in page
        spec = ModelSpec("seer", "openai", "m", base_url_of(server, "openai"), images=True)
        request = ModelRequest(2, None, conversation_after((), result.trajectory.rounds[:1]), ())

        async def preview() -> HttpRequest:
            endpoints = Endpoints(Secrets())
            try:
                shown = await http_request_of(endpoints.open(spec, {}), request)
            finally:
                await endpoints.close()
            assert shown is not None
            return shown

        body = json.dumps(asyncio.run(preview()).body)
    assert f"data:image/png;base64,({len(IMAGE)} bytes)" in body
