"""A model is found, added and run from within the app, by keys alone."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from textual import events

from tests.durations import DURATION
from tests.providers.server import Answer, Request, Server, document, error_document, models_document, said, serve
from tests.tui.apps import Opened, opened, suites_in
from workbench.config import models
from workbench.config.models import Preset
from workbench.tui.terminal.output_stage import Update

KEY = "sk-planted-0123456789-abcdef"
TALK = """
format = 1
name = "Talk"
[[cases]]
name = "Rain"
user = "Say rain."
response_contains = ["rain"]
"""


def _rain(request: Request) -> Answer:
    return said("openai", text="It will rain.") if request.method == "POST" else document({}, 404)


def offer(monkeypatch: pytest.MonkeyPatch, *known: Preset) -> None:
    monkeypatch.setattr(models, "PRESETS", known)


async def typed(app: Opened, text: str) -> None:
    await app.press(*("space" if character == " " else character for character in text))


async def to(app: Opened, field: str) -> None:
    """Go to a field of the form with the arrow keys."""
    for _ in range(12):
        focused = app.app.focused
        if focused is not None and focused.id == field:
            return
        await app.press("down")
    raise AssertionError(f"no way to {field}")


@pytest.mark.slow
async def test_a_local_endpoint_is_added_and_run_by_keys_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the dialog over the form to a run; comments of the file stay."""
    suites = suites_in(tmp_path, talk=TALK)
    (suites / "workbench.toml").write_text("# ours\n")
    with Server(_rain, models=document(models_document("test-model", "other"))) as server:
        offer(monkeypatch, Preset("near", "Near", f"{server.url}/v1"))
        async with opened(suites, size=(80, 24), variables={"HOME": str(tmp_path)}, live=True) as app:
            assert server.listings == []  # asked when the dialog opens, not before
            await app.press("m")
            await app.until(lambda: "lists 2 models" in app.screen)
            assert "Near  answers at 127.0.0.1" in app.screen
            await app.press("end", "up", "ctrl+n")  # on the first model that it lists
            assert "Add a model" in app.screen
            assert "‹ Near ›" in app.screen
            assert "The endpoint lists test-model, other." in app.screen
            await to(app, "name")
            await app.press(*["backspace"] * len("test-model"))
            await typed(app, "rainy")
            await to(app, "price")
            await typed(app, "1, 2")
            await app.press("enter")
            await app.until(lambda: "[✓] rainy" in app.screen)
            await app.until(lambda: re.search(rf"✓ rainy answered in {DURATION} +Enter use", app.screen) is not None)
            written = (suites / "workbench.toml").read_text()
            assert written.startswith("# ours\n\n[models.rainy]\n")
            assert tomllib.loads(written)["models"]["rainy"] == {
                "provider": "openai",
                "base_url": f"{server.url}/v1",
                "model": "test-model",
                "price": {"input": 1.0, "output": 2.0},
            }
            await app.press("enter")
            assert app.app.main.selection.models == ("rainy",)
            await app.pilot.press("r")
            await app.until(lambda: "This suite wants to ask a model" in app.screen)  # a project's model needs trust
            assert server.requests == []
            await app.pilot.press("1")
            await app.until(lambda: "✓ passed" in app.screen or "1/1" in app.screen)
            assert server.requests[-1].json["model"] == "test-model"


@pytest.mark.slow
async def test_a_listed_model_runs_without_being_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(models=document(models_document("one", "two"))) as server:
        offer(monkeypatch, Preset("near", "Near", f"{server.url}/v1"))
        async with opened(suites_in(tmp_path, talk=TALK), size=(160, 48)) as app:
            await app.press("m")
            await app.until(lambda: "lists 2 models" in app.screen)
            await app.press("end", "space", "up", "up", "space")  # check "two", then fold
            assert "show or hide its models" in app.screen
            assert "[✓] two" not in app.screen
            await app.press("enter")
            assert app.app.main.selection.models == (f"openai:two@{server.url}/v1",)
            await app.press("m")
            await app.until(lambda: "lists 2 models" in app.screen)
            assert f"[✓] openai:two@{server.url}/v1" in app.screen


@pytest.mark.slow
async def test_an_endpoint_with_a_key_is_asked_when_its_row_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = suites_in(tmp_path, talk=TALK)
    (suites / ".env").write_text(f"FAR_KEY={KEY}\n")
    with serve(models=document(models_document("big"))) as server:
        monkeypatch.setattr(Preset, "is_local", property(lambda preset: False))  # the server stands for a vendor's
        offer(
            monkeypatch,
            Preset("far", "Far", f"{server.url}/v1", "FAR_KEY"),
            Preset("none", "None", "https://none.test/v1", "NONE_KEY"),
        )
        async with opened(suites, size=(80, 24), variables={"HOME": str(tmp_path)}) as app:
            await app.press("m")
            assert "Far  key found in FAR_KEY: Space lists its models" in app.screen
            assert "No key is found for None." in app.screen
            assert server.listings == []
            await app.press("end", "space")
            await app.until(lambda: "lists 1 model" in app.screen)
            assert server.listings[0].headers["authorization"] == f"Bearer {KEY}"
            await app.press("end", "space")  # it runs only by a name of its own, which brings its key
            assert "Add a model" in app.screen
            assert "✓ The key is found in FAR_KEY." in app.screen
            await app.press("enter")
            await app.until(lambda: "[✓] big" in app.screen)
            assert KEY not in app.screen
    written = tomllib.loads((tmp_path / "state" / "config" / "workbench.toml").read_text())
    assert written["models"]["big"]["api_key_env"] == "FAR_KEY"


@pytest.mark.slow
async def test_a_filter_finds_models_that_are_folded_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [f"model-{number}" for number in range(40)]
    with serve(models=document(models_document(*many, "small-one"))) as server:
        offer(monkeypatch, Preset("near", "Near", f"{server.url}/v1"))
        async with opened(suites_in(tmp_path, talk=TALK), size=(80, 24)) as app:
            await app.press("m")
            await app.until(lambda: "lists 41 models" in app.screen)
            assert "model-1" not in app.screen  # so many are folded away
            await app.press(*"small")
            assert "small-one" in app.screen
            assert "[ ] offline" not in app.screen
            await app.press(*"xyz")
            assert "no model has 'smallxyz' in its name" in app.screen
            await app.press(*["backspace"] * 3, "down", "space", "escape")
            assert "[ ] offline" in app.screen
            await app.press("enter")
            assert app.app.main.selection.models == (f"openai:small-one@{server.url}/v1",)


async def test_a_refusal_is_told_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(models=document(error_document("openai", f"no such key {KEY}"), 401)) as server:
        offer(monkeypatch, Preset("near", "Near", f"{server.url}/v1", "NEAR_KEY"))
        async with opened(suites_in(tmp_path, talk=TALK), size=(160, 48), variables={"NEAR_KEY": KEY}) as app:
            await app.press("m")
            await app.until(lambda: "does not accept the key in NEAR_KEY (401" in app.screen)
            assert KEY not in app.screen


@pytest.mark.slow
async def test_what_is_wrong_is_told_in_the_form_and_what_is_not_confirmed_needs_a_second_enter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state" / "config" / "workbench.toml"
    with Server(_rain) as server:
        offer(monkeypatch, Preset("near", "Near", f"{server.url}/v1"))
        async with opened(suites_in(tmp_path, talk=TALK), size=(120, 36)) as app:
            await app.press("m", "ctrl+n", "enter")
            assert "‹ another endpoint ›" in app.screen
            assert "▲ is missing: write the model's name at its endpoint" in app.screen
            assert "▲ cannot" not in app.screen
            assert app.app.focused is not None
            assert app.app.focused.id == "model"
            await to(app, "preset")
            await app.press("right")  # round to the first
            assert "‹ Near ›" in app.screen
            await to(app, "api_key_env")
            app.app.post_message(events.Paste(KEY))
            await app.settle()
            assert "That may be a key, so it was removed" in app.screen
            assert KEY[:9] not in app.screen
            await to(app, "model")
            await typed(app, "absent")
            await app.press("enter")
            await app.until(lambda: "has no model 'absent': it lists test-model" in app.screen)
            assert "Enter add it all the same" in app.screen
            assert not file.exists()
            await app.press("enter")
            assert "[✓] absent" in app.screen
            assert "model = " not in file.read_text()
            await app.press("ctrl+n")
            await to(app, "model")
            await typed(app, "absent")
            await app.press("enter")
            lines = app.screen.splitlines()
            wrong = next(at for at, line in enumerate(lines) if "▲ is taken: " in line)
            assert "name here  " in lines[wrong - 1], "what is wrong stands below its field"
            assert app.app.focused is not None and app.app.focused.id == "name"
            await app.press("escape", "escape")
            assert app.app.main.selection.models == ()


@pytest.mark.slow
async def test_of_two_dialogs_only_the_upper_one_is_seen(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, talk=TALK), size=(160, 48)) as app:
        await app.press("m")
        await app.until(lambda: "In use: the suite's own" in seen(app))
        await app.press("ctrl+n")
        assert "Add a model" in seen(app)
        assert "In use: the suite's own" not in seen(app)
        assert "1 Suites" in seen(app)
        await app.press("escape")
        assert "In use: the suite's own" in seen(app)


def seen(app: Opened) -> str:
    """Return the text of all screens."""
    update = app.app.screen._compositor.render_update(full=True, screen_stack=app.app._background_screens)
    assert isinstance(update, Update)
    return "\n".join(piece.strip.text for piece in update.pieces)


@pytest.mark.slow
async def test_a_model_is_changed_in_its_file_with_the_same_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = suites_in(tmp_path, talk=TALK)
    with Server(_rain, models=document(models_document("test-model", "other"))) as server:
        offer(monkeypatch, Preset("near", "Near", f"{server.url}/v1"))
        settings = f'''# ours
[models.rainy]
provider = "openai"  # speaks it
base_url = "{server.url}/v1"
model = "test-model"
params = {{ temperature = 0 }}

# the end
'''
        (suites / "workbench.toml").write_text(settings)
        async with opened(suites, size=(100, 30), variables={"HOME": str(tmp_path)}) as app:
            await app.press("m")
            await app.until(lambda: "lists 2 models" in app.screen)
            await app.press("ctrl+e")
            assert "Offline (baseline) is in no workbench.toml" in app.screen
            await app.press("down", "ctrl+e")
            assert "Change rainy" in app.screen and "name here" not in app.screen
            assert "Enter check and change" in app.screen
            await app.press(*["backspace"] * len("test-model"))
            await typed(app, "other")
            await to(app, "price")
            await typed(app, "1, 2")
            await app.press("enter")
            await app.until(lambda: "Change rainy" not in app.screen)
            assert "[ ] rainy" in app.screen, "a changed model is not checked by that"
    written = (suites / "workbench.toml").read_text()
    price = next(line for line in written.splitlines(keepends=True) if line.startswith("price = "))
    assert tomllib.loads(price) == {"price": {"input": 1.0, "output": 2.0}}
    assert written.replace(price, "") == settings.replace('"test-model"', '"other"')


@pytest.mark.slow
async def test_the_dialog_says_which_models_are_in_use_and_which_will_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch)
    (suites_in(tmp_path, talk=TALK) / "workbench.toml").write_text('[models.rainy]\nprovider = "openai"\n')
    async with opened(tmp_path / "suites", variables={"HOME": str(tmp_path)}) as app:
        await app.press("m")
        assert "In use: the suite's own, offline (baseline)." in app.screen
        assert "offline (baseline)  in use" in app.screen and app.screen.count("  in use") == 1
        await app.press("down", "space")
        assert "Enter: runs use rainy from now on." in app.screen
        await app.press("enter", "m")
        assert "In use: rainy, checked here in place of each suite's own." in app.screen
        row = next(line for line in app.screen.splitlines() if "[✓] rainy" in line)
        assert "in use" in row
        await app.press("down", "space")
        assert "Enter: runs use each suite's own models again." in app.screen


@pytest.mark.slow
async def test_what_thoughts_are_is_chosen_in_the_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suites = suites_in(tmp_path, talk=TALK)
    offer(monkeypatch)
    with Server(_rain, models=document(models_document("test-model"))) as server:
        text = f'[models.near]\nprovider = "openai"\nmodel = "test-model"\nbase_url = "{server.url}/v1"\n'
        (suites / "workbench.toml").write_text(text)
        async with opened(suites, size=(80, 24), variables={"HOME": str(tmp_path)}) as app:
            for key, written in (("right", {"thoughts": "answer"}), ("left", {})):
                await app.press("m", "down", "ctrl+e")
                await to(app, "thoughts")
                await app.press(key, "enter")
                await app.until(lambda: "Change near" not in app.screen)
                settings = tomllib.loads((suites / "workbench.toml").read_text())["models"]["near"]
                assert {key: value for key, value in settings.items() if key == "thoughts"} == written
                await app.press("escape")


async def test_headers_query_and_command_are_written_and_nothing_of_an_untrusted_file_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = suites_in(tmp_path, talk=TALK)
    offer(monkeypatch)
    with Server(_rain, models=document(models_document("test-model"))) as server:
        settings = (
            f'[models.near]\nprovider = "openai"\nmodel = "test-model"\nbase_url = "{server.url}/v1"\n'
            f'key_command = ["touch", "{tmp_path}/ran"]\n'
        )
        (suites / "workbench.toml").write_text(settings)
        variables = {"HOME": str(tmp_path), "GATEWAY": KEY}
        async with opened(suites, size=(100, 30), variables=variables) as app:
            await app.press("m", "down", "ctrl+e")
            assert f"touch {tmp_path}/ran"[:60] in app.screen
            assert "The command runs in the folder of the file" in app.screen
            await to(app, "headers")
            app.app.post_message(events.Paste(f"x-key={KEY}"))
            await app.until(lambda: "That may hold a key, so it was removed" in app.screen)
            assert KEY not in app.screen
            await typed(app, "x-key='a $GATEWAY' x-team=s")
            await to(app, "query")
            await typed(app, "v=1 w")
            await app.press("enter")
            assert "must be words NAME=VALUE" in app.screen
            await app.press("backspace", "backspace", "enter")
            await app.until(lambda: "near is in a workbench.toml that you do not trust yet" in app.screen)
            assert server.listings == [] and not (tmp_path / "ran").exists()
            await app.press("enter")
            await app.until(lambda: "Change near" not in app.screen)
    near = tomllib.loads((suites / "workbench.toml").read_text())["models"]["near"]
    assert near["headers"] == {"x-key": "a $GATEWAY", "x-team": "s"}
    assert (near["query"], near["key_command"]) == ({"v": "1"}, ["touch", f"{tmp_path}/ran"])
