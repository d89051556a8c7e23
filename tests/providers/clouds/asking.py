"""Cloud models whose addresses are local servers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.providers.clouds.frames import frames_of, streamed
from tests.providers.server import Answer, Api, Call, Server, said
from workbench.config.model_book import ModelBook
from workbench.config.models import ModelSpec
from workbench.trajectory.events import CallArgumentsDelta, CallStarted

AWS_KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE0123456",
    "AWS_SECRET_ACCESS_KEY": "planted-secret-key-0123",
    "AWS_SESSION_TOKEN": "planted-session-token-0123",
}
FORMS: Mapping[str, Api] = {"chat": "openai", "responses": "openai-responses", "messages": "anthropic"}


def cloud_spec(
    server: Server, folder: Path, settings: str, environment: Mapping[str, str], path: str = ""
) -> ModelSpec:
    """Return the model of a `workbench.toml` with these settings at the server's address."""
    (folder / "workbench.toml").write_text(f'[models.m]\nbase_url = "{server.url}{path}"\n{settings}\n')
    book = ModelBook(folder, environment=lambda _folder: environment)
    return book.resolve("m", folder, by_suite=False)


def answer_for(api: str, text: str = "", *calls: Call, binary: bool = False) -> Answer:
    if binary:
        return streamed(*frames_of(text, calls))
    return said(FORMS[api], text, calls)


def calls_in(said: list[object]) -> dict[str, str]:
    """Return the calls of an answer: the JSON text of the arguments by tool."""
    tools = {event.call_id: event.tool for event in said if isinstance(event, CallStarted)}
    found = dict.fromkeys(tools.values(), "")
    for event in said:
        if isinstance(event, CallArgumentsDelta):
            found[tools[event.call_id]] += event.fragment
    return found
