"""Runs saved as recordings, and recordings opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.apps import MOVIE_NIGHT, NEEDY, SMART_HOME, Opened, conversation, opened, suites_in
from workbench.config.folders import bundled
from workbench.trajectory.recording import read_recording
from workbench.tui.runs.dialogs import TrustScreen

LOCAL = """
[models.local]
provider = "openai"
base_url = "http://localhost:11434/v1"
model = "llama3.1"
"""


async def saved(app: Opened) -> Path:
    """Run the first case, save the run, and return the file. It cannot be saved before it is over."""
    (run,) = await app.run("r")
    await app.press("w")
    assert "This run is not finished yet" in app.screen
    app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
    app.session.end_batch()
    await app.settle()
    await app.press("w")
    await app.until(lambda: "Saved in" in app.screen)
    (file,) = (run.file.path.parent / "recordings").iterdir()
    return file


async def test_a_finished_run_is_saved_beside_its_suite_once(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), size=(160, 36)) as app:
        await app.press("w")
        assert "This case has not been run; r runs it" in app.screen
        file = await saved(app)
        shown = app.app.main.selection.run
        assert shown is not None and shown.result is not None
        recording = read_recording(file)
        assert file.name == "smart_home.movie-night.offline.1.run.jsonl"
        assert recording.trajectory == shown.result.trajectory
        assert recording.header.started_at == shown.started_at
        await app.press("up", "down", "w")
        await app.until(lambda: "Already saved in" in app.screen)
        assert list(file.parent.iterdir()) == [file]


async def test_what_cannot_be_saved_says_why(tmp_path: Path) -> None:
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    (suites / "recordings").write_text("a file where the folder should be")
    async with opened(suites) as app:
        (run,) = await app.run("r")
        app.session.finish(run, conversation(run, MOVIE_NIGHT, "Done."))
        await app.settle()
        await app.press("w")
        await app.until(lambda: "Nothing was saved" in app.screen)


async def test_runs_of_the_samples_are_saved_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(bundled("sample_suites") / "weather.toml") as app:
        (run,) = await app.run("r")
        assert app.session.exempt == [True]
        app.session.finish(run, conversation(run, [], "Rain."))
        await app.settle()
        await app.press("w")
        await app.until(lambda: "Saved in" in app.screen)
    assert len(list((tmp_path / "recordings").iterdir())) == 1


async def test_a_recording_opens_with_its_case_its_run_and_its_grade(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        file = await saved(app)
    elsewhere = tmp_path / "elsewhere.run.jsonl"
    file.rename(elsewhere)
    async with opened(tmp_path, paths=[elsewhere]) as app:
        assert "▾ elsewhere" in app.screen
        assert "✗ Movie night" in app.screen
        assert "Lights off" not in app.screen
        assert "Start movie night." in app.screen
        assert "set_tv  expected, never called" in app.screen
        assert "recorded" in app.screen
        await app.press("w")
        assert "This run is a recording already" in app.screen
        await app.press("f5")
        assert "✗ Movie night" in app.screen
    for size in ((80, 24), (60, 20)):
        async with opened(tmp_path, paths=[elsewhere], size=size) as app:  # narrow: on its run at once
            assert "Start movie night." in app.screen
            assert "recorded" in app.screen


@pytest.mark.slow
async def test_the_case_of_a_recording_can_be_run_anew_and_the_new_run_be_saved_beside_it(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        file = await saved(app)
    async with opened(tmp_path, paths=[file]) as app:
        (run,) = await app.run("r")
        right = [("set_lights", {"room": "living room", "brightness": 9}), ("set_tv", {"power": "on"})]
        app.session.finish(run, conversation(run, right, "Done."))  # type: ignore[arg-type]
        app.session.end_batch()
        await app.settle()
        assert "✓ Movie night" in app.screen
        await app.press("f5")
        assert "✓ Movie night" in app.screen
        await app.press("w")
        await app.until(lambda: "Saved in" in app.screen)
        assert "new  ✓ 1.00   recorded  ✗ 0.00" in app.screen
        await app.press("3", "right")
        await app.press("w")
        assert "This run is a recording already" in app.screen
    assert len(list(file.parent.iterdir())) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["copy.jsonl", "x.run.jsonl.part", "noname"])
async def test_a_recording_is_known_by_its_first_line_whatever_its_name(tmp_path: Path, name: str) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        file = await saved(app)
    other = file.rename(tmp_path / name)
    async with opened(tmp_path, paths=[other]) as app:
        assert "✗ Movie night" in app.screen


@pytest.mark.slow
async def test_a_folder_of_recordings_without_suites_opens_on_them(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME)) as app:
        file = await saved(app)
    (file.parent / "second.run.jsonl").write_bytes(file.read_bytes())
    async with opened(file.parent) as app:
        assert app.screen.count("✗ Movie night") == 2
        assert "▾ second" in app.screen


@pytest.mark.slow
async def test_a_recorded_case_runs_on_the_model_on_which_it_was_recorded(tmp_path: Path) -> None:
    settings = tmp_path / "suites" / "workbench.toml"
    suites = suites_in(tmp_path, smart_home=SMART_HOME)
    settings.write_text(LOCAL)
    async with opened(suites, models=["local"], trust=True) as app:
        file = await saved(app)
    async with opened(tmp_path, paths=[file], trust=True) as app:
        assert " local" in app.screen.splitlines()[0]
        (run,) = await app.run("r")
        assert (run.model, run.model_of_suite) == ("local", True)


@pytest.mark.slow
async def test_a_recorded_model_that_is_not_known_here_is_said_and_listed_but_not_asked(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, smart_home=SMART_HOME), models=["openai:x@http://a.example/v1"]) as app:
        file = await saved(app)
    async with opened(tmp_path, paths=[file]) as app:
        (run,) = await app.run("r")
        await app.until(lambda: "which is not named here" in app.screen)
        assert run.model == "offline"
        await app.press("m")
        assert "recorded on" in app.screen


@pytest.mark.slow
async def test_a_recording_of_a_suite_with_local_servers_is_not_run_and_says_which_file_to_open(tmp_path: Path) -> None:
    async with opened(suites_in(tmp_path, needy=NEEDY), trust=True) as app:
        file = await saved(app)
    async with opened(tmp_path, paths=[file]) as app:
        await app.press("r")
        await app.until(lambda: "Nothing was run" in app.screen)
        said = " ".join(app.screen.split())
        assert "is a recording, which does not contain the servers of its suite: open needy.toml itself" in said


@pytest.mark.slow
async def test_a_recording_whose_suite_needs_trust_asks_for_it_before_it_is_run_anew(tmp_path: Path) -> None:
    remote = NEEDY.replace('command = ["python", "server.py"]', 'url = "http://localhost:1/mcp"')
    async with opened(suites_in(tmp_path, needy=remote), trust=True) as app:
        (run,) = await app.run("r")
        app.session.finish(run, conversation(run, [], "Hm."))
        await app.settle()
        await app.press("w")
        await app.until(lambda: "Saved in" in app.screen)
        (file,) = (run.file.path.parent / "recordings").iterdir()
    async with opened(tmp_path, paths=[file]) as app:
        assert "Ask" in app.screen
        await app.press("r")
        await app.until(lambda: isinstance(app.app.screen, TrustScreen))
        await app.press("escape")


@pytest.mark.parametrize(("content", "said"), [("", "is empty, not a recording"), ("nonsense\n", "is not a recording")])
async def test_a_file_that_is_no_recording_is_a_problem_in_the_tree(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "x.run.jsonl"
    file.write_text(content)
    async with opened(tmp_path, paths=[file], size=(300, 20)) as app:
        # The path is long and cut in the tree. The pane next to it shows all of it.
        pane = " ".join(line.split("│")[1].strip() for line in app.screen.split("\n") if "│" in line)
        assert said in pane
        assert "name" not in pane.split(), "there is no form of nothing"
        await app.press("r", "R", "e")
        assert app.app.is_running
