"""Conversations in the app: held before the user speaks, forked at a message, frozen as a script."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.events import Paste

from tests.cli.conversations import DESK, HEAD, PLAYED, SCRIPTED, agent, player
from tests.providers.server import Answer, Request, Server, base_url_of
from tests.tui.apps import Opened, opened
from tests.tui.stepped import shown
from workbench.show.views.run_items import MessageItem
from workbench.suite.suite_file import load_suite
from workbench.suite.user_model import UserTable
from workbench.tui.holds.fork_screen import ForkScreen


@asynccontextmanager
async def desk_app(folder: Path, cases: str, size: tuple[int, int] = (100, 40)) -> AsyncIterator[Opened]:
    """The app on the returns desk, whose models answer over HTTP."""

    def answer(request: Request) -> Answer:
        return player(request.json) if request.json["model"] == "player" else agent(request.json)

    with Server(answer) as server:
        suites = folder / "suites"
        suites.mkdir()
        url = base_url_of(server, "openai")
        models = ""
        for name, price in (("agent", 1000.0), ("player", 2000.0)):
            models += f'[models.{name}]\nprovider = "openai"\nmodel = "{name}"\nbase_url = "{url}"\n'
            models += f"price = {{ input = {price}, output = {price} }}\n"
        (suites / "workbench.toml").write_text(models, encoding="utf-8")
        (suites / "desk.toml").write_text(HEAD + cases, encoding="utf-8")
        (suites / "desk.py").write_text(DESK, encoding="utf-8")
        async with opened(suites, live=True, trust=True, models=("agent",), size=size) as app:
            await app.press("down")
            yield app


async def held_at(app: Opened, place: str) -> None:
    await app.until(lambda: (run := app.app.main.selection.run) is not None and run.is_held and place in app.screen)


async def typed(app: Opened, text: str) -> None:
    await app.press("f7")
    app.app.post_message(Paste(text))
    await app.settle()
    await app.press("ctrl+s")


async def finished(app: Opened) -> None:
    await app.until(lambda: (run := app.app.main.selection.run) is not None and run.result is not None)
    await app.settle()


def words(app: Opened) -> list[str | None]:
    return [turn.text for turn in shown(app).trajectory.user_turns if turn.said is not None]


async def to_message(app: Opened, text: str) -> None:
    run_list = app.app.main.run_pane.run_list
    assert run_list.lines is not None
    for index, item in enumerate(run_list.lines.view.items):
        if isinstance(item, MessageItem) and item.text.text == text:
            run_list.move_cursor(run_list.lines.start_of(index))
    await app.settle()


async def test_a_person_changes_and_replaces_messages_of_the_user(tmp_path: Path) -> None:
    async with desk_app(tmp_path, SCRIPTED) as app:
        await app.press("s")
        await held_at(app, "held before a message of the user")
        assert "» I want to cancel an order." in app.screen
        await app.press("3", "L")
        assert "No model plays this user" in app.screen and "L retry" not in app.screen
        await app.press("e")
        assert "Message of the user" in app.screen
        await typed(app, "Cancel an order, please.")
        await held_at(app, "» Cancel an order, please.  (✎ by hand)")
        await app.press("s")
        await held_at(app, "held before the request of round 1")
        await app.press("s")
        await held_at(app, "» It is A17.")
        await app.press("i")
        assert "In place of the user" in app.screen
        await typed(app, "A17, of course.")
        await held_at(app, "held before the request of round 2")
        await app.press("c")
        await finished(app)
        assert words(app)[:2] == ["Cancel an order, please.", "A17, of course."]
        assert "A17, of course.  ✎ by hand" in app.screen
        assert shown(app).result is not None and shown(app).status == "passed"
        assert "final: 4 of 4 hold" in app.screen
        await app.press("ctrl+p", *"freezetheuser", "enter")
        assert "each said whatever the answer" in " ".join(app.screen.split())


async def test_a_played_user_is_asked_again_forked_and_frozen(tmp_path: Path) -> None:
    async with desk_app(tmp_path, PLAYED, size=(140, 60)) as app:
        await app.press("s")
        await held_at(app, "» Hello, I changed my mind.")
        await app.press("s")
        await held_at(app, "before the request of round 1")
        await app.press("s")
        await held_at(app, "» it is A17.")
        await app.press("3", "L")
        await held_at(app, "» it is A17.")
        await app.press("c")
        await finished(app)
        assert "it is A17.  played · 2nd try" in app.screen
        assert " + user $" in app.screen
        await to_message(app, "it is A17.")
        await app.press("enter")
        assert "not sent, asked again: it is A17." in app.screen
        await app.press("Y")
        assert "from round 2" in app.screen and "user  it is A17." in app.screen
        assert isinstance(screen := app.app.screen, ForkScreen)
        assert {choice.name for choice in screen._draft.models if ":" not in choice.name} >= {"agent", "offline"}
        assert not [choice for choice in screen._draft.models if choice.name.startswith("agent:")]
        await app.press("down", "down", "down", "enter", "f7")
        app.app.post_message(Paste("Number A17."))
        await app.settle()
        await app.press("escape")
        assert "user  ✎ Number A17." in app.screen
        await app.press("up", "up", "up", "enter")
        await app.until(lambda: shown(app).is_fork and shown(app).result is not None)
        assert 'instead of "it is A17."; the model does' in app.screen
        rows = [row.rstrip() for row in app.screen.splitlines()]
        [end] = [at for at, row in enumerate(rows) if row.endswith("ended: done (the order is cancelled)")]
        assert rows[end + 1].endswith(" played")
        said = ["Hello, I changed my mind.", "Number A17.", "yes please"]
        assert words(app) == said
        before = (tmp_path / "suites/desk.toml").read_text(encoding="utf-8")
        await app.press("ctrl+p", *"freezetheuser", "enter")
        assert "the user is a script of 3 messages" in app.screen
        await app.press("ctrl+s")
        await app.until(lambda: (tmp_path / "suites/desk.toml").read_text(encoding="utf-8") != before)
        file = load_suite(tmp_path / "suites/desk.toml")
        assert file.suite is not None
        user = file.suite.cases[0].user
        assert isinstance(user, UserTable)
        assert [message.say for message in user.messages] == said
        assert (user.goal, user.max_turns, user.facts) == (None, 6, {})
        assert (tmp_path / "suites/desk.toml").read_text(encoding="utf-8").startswith(HEAD)
        await app.press("u", "ctrl+s")
        await app.until(lambda: (tmp_path / "suites/desk.toml").read_text(encoding="utf-8") == before)
