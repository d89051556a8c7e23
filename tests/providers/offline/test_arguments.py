from __future__ import annotations

import pytest

from tests.providers.offline.asking import ask, choice, number, text, tool
from tests.tables import each_row
from workbench.trajectory.events import JsonValue, ToolDefinition

CALCULATE = tool(
    "calculate", "Arithmetic.", operation=choice("add", "subtract", "multiply", "divide"), a=number(), b=number()
)
MAIL = tool(
    "send_email",
    "Send an e-mail.",
    required=["to", "subject", "body"],
    to=text("Recipient address"),
    subject=text("Subject line"),
    body=text("Message text"),
    cc={"type": ["array", "null"], "items": {"type": "string"}, "default": None},
)
TASK = tool(
    "create_task",
    "Create a task.",
    required=["title"],
    title=text(),
    priority=choice("low", "medium", "high", default="medium"),
    due_date={"type": ["string", "null"], "default": None, "description": "YYYY-MM-DD"},
    urgent={"type": "boolean"},
)


def arguments(request: str, *tools: ToolDefinition) -> dict[str, JsonValue]:
    """Of the only call."""
    (call,) = ask(request, *tools).calls
    return dict(call[1])


@each_row(
    ("request_text", "operation", "a", "b"),
    [
        ("What is 15 * 23?", "multiply", 15, 23),
        ("What is 15 multiplied by 23?", "multiply", 15, 23),
        ("Divide 100 by 4", "divide", 100, 4),
        ("2.5 plus -3", "add", 2.5, -3),
        ("Subtract 10 from 30", "subtract", 30, 10),
        ("What is 9 / 2?", "divide", 9, 2),
    ],
)
def test_arithmetic_becomes_an_operation_and_numbers(request_text: str, operation: str, a: float, b: float) -> None:
    assert arguments(request_text, CALCULATE) == {"operation": operation, "a": a, "b": b}


def test_arithmetic_may_be_asked_for_as_an_expression() -> None:
    assert arguments("Calculate 15 * 23", tool("calculate", expression=text())) == {"expression": "15 * 23"}


def test_values_go_to_the_parameters_that_the_request_names() -> None:
    request = "Send an email to john@example.com with subject 'Hi' and body 'Don't forget our 10am meeting'"
    assert arguments(request, MAIL) == {
        "to": "john@example.com",
        "subject": "Hi",
        "body": "Don't forget our 10am meeting",
    }


def test_optional_parameters_are_filled_only_where_the_request_speaks_of_them() -> None:
    assert arguments("Create a task called 'Water plants'", TASK) == {"title": "Water plants"}
    assert arguments("Create a high priority task called 'Fix' due 2025-12-01", TASK) == {
        "title": "Fix",
        "priority": "high",
        "due_date": "2025-12-01",
    }
    assert arguments("Create an urgent task called 'Fix'", TASK) == {"title": "Fix", "urgent": True}
    assert arguments("Create a task called 'Fix', not urgent", TASK) == {"title": "Fix", "urgent": False}


@pytest.mark.parametrize(
    ("request_text", "title"),
    [
        ("Remind me to call Sam on 10 June 2026 at 3 pm", "Call Sam"),
        ("Create a reminder for 10 June 2026 at 3 pm: water the plants", "Water the plants"),
        ("Set a reminder called tax return for 10 June 2026 at 3 pm", "Tax return"),
    ],
)
def test_the_rest_of_the_request_is_the_title_and_dates_take_the_form_asked_for(request_text: str, title: str) -> None:
    reminder = tool("create_reminder", "Create a reminder.", title=text(), due=text(format="date-time"))
    assert arguments(request_text, reminder) == {"title": title, "due": "2026-06-10T15:00:00"}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (text(format="date"), "2026-06-10"),
        (text("Start, YYYY-MM-DD"), "2026-06-10"),
        (text(format="time"), "15:00"),
        (text("HH:MM"), "15:00"),
        (text(), "2026-06-10T15:00:00"),
    ],
)
def test_a_moment_takes_the_form_of_its_parameter(schema: JsonValue, value: str) -> None:
    assert arguments("Find slots on 10 June 2026 at 3 pm", tool("find_slots", when=schema)) == {"when": value}


def test_a_search_is_for_the_words_that_the_tool_does_not_say_itself() -> None:
    search = tool("search_docs", "Search the company's documents.", query=text("Words to look for"))
    assert arguments("Find the company vacation policy", search) == {"query": "vacation policy"}
    assert arguments("search the documents for 'how to search'", search) == {"query": "how to search"}
    assert arguments("Search the documents", search) == {"query": "documents"}


@pytest.mark.parametrize(
    ("request_text", "message"),
    [
        ("Tell the team that the build is green", "the build is green"),
        ("Post a message saying: all done", "all done"),
        ('Post the message "All done!"', "All done!"),
        ("Send a message about the launch", "the launch"),
    ],
)
def test_a_message_is_what_is_to_be_said(request_text: str, message: str) -> None:
    assert arguments(request_text, tool("post_message", "Post a message.", message=text())) == {"message": message}


def test_handles_ids_and_paths_find_their_parameters() -> None:
    dm = tool("send_dm", "Send a direct message.", username=text(), message=text())
    assert arguments("Send a DM to @bob saying 'Lunch?'", dm) == {"username": "bob", "message": "Lunch?"}
    assert arguments("Show user u-1042", tool("get_user", user_id=text())) == {"user_id": "u-1042"}
    assert arguments("Show user 1042", tool("get_user", user_id=text())) == {"user_id": "1042"}
    assert arguments("Show user 1042", tool("get_user", user_id={"type": "integer"})) == {"user_id": 1042}
    issue = tool("get_file", "Read a file.", required=["owner", "repo"], owner=text(), repo=text(), path=text())
    assert arguments("Get the file src/main.py of octocat/hello", issue) == {
        "owner": "octocat",
        "repo": "hello",
        "path": "src/main.py",
    }


@each_row("path", ["/tmp/stranger/repo", "/tmp", "./a/b", "../b.txt", "~/x", r"C:\x\y", "src/app", "src/app/"])
def test_a_path_is_found_without_quotes_where_a_parameter_speaks_of_one(path: str) -> None:
    status = tool("git_status", "Shows the working tree status", repo_path=text())
    assert arguments(f"Show the git status of the repository {path}.", status) == {"repo_path": path}
    assert arguments(f"What is the git status, where repo_path is {path}?", status) == {"repo_path": path}
    described = tool("git_status", "Shows the working tree status", where=text("The folder of the repository"))
    assert arguments(f"Show Ann the git status of {path}", described) == {"where": path}
    number = tool("git_status", "Shows the working tree status", path={"type": "integer"})
    assert ask(f"Show the git status of {path}", number).calls == []


def test_an_optional_path_is_not_made_of_two_words_with_a_slash() -> None:
    commits = tool("git_log", "Shows the commits", required=[], path=text())
    assert arguments("Show the commits by date and/or name in the log", commits) == {}
    assert arguments("Show the commits of ./src in the log", commits) == {"path": "./src"}


def test_places_may_be_written_in_lower_case_after_a_preposition() -> None:
    weather = tool("get_weather", city=text())
    assert arguments("weather in new york please", weather) == {"city": "new york"}


def test_from_and_to_tell_source_and_target() -> None:
    trip = tool("find_trains", "Find trains.", target=text(), origin=text())
    assert arguments("Find trains from Lyon to Paris", trip) == {"origin": "Lyon", "target": "Paris"}


def test_cities_become_time_zones_where_time_zones_are_wanted() -> None:
    convert = tool("convert_time", source_timezone=text(), time=text("HH:MM"), target_timezone=text())
    assert arguments("Convert 4 pm from New York to Tokyo", convert) == {
        "source_timezone": "America/New_York",
        "time": "16:00",
        "target_timezone": "Asia/Tokyo",
    }


def test_a_number_goes_with_the_word_beside_it() -> None:
    forecast = tool("get_forecast", "Forecast.", city=text(), days={"type": "integer"}, hour={"type": "integer"})
    assert arguments("The 5-day forecast for Ho Chi Minh City, hour 7", forecast) == {
        "city": "Ho Chi Minh City",
        "days": 5,
        "hour": 7,
    }


def test_words_to_which_a_description_gives_numbers_are_numbers() -> None:
    lights = tool("set_lights", "Set lights.", brightness={"type": "integer", "description": "0 (off) to 100 (full)"})
    assert arguments("Turn off the lights", lights) == {"brightness": 0}
    assert arguments("Lights to full", lights) == {"brightness": 100}


def test_a_required_choice_that_nothing_speaks_for_is_the_first_listed() -> None:
    weather = tool("get_weather", city=text(), type=choice("current", "forecast"))
    assert arguments("Weather in Paris", weather) == {"city": "Paris", "type": "current"}
    assert arguments("Weather forecast in Paris", weather) == {"city": "Paris", "type": "forecast"}


def test_a_required_parameter_with_a_default_is_left_out() -> None:
    weather = tool("get_weather", city=text(), units=choice("celsius", "fahrenheit", default="celsius"))
    assert arguments("Weather in Paris", weather) == {"city": "Paris"}


def test_examples_in_a_schema_are_recognised() -> None:
    lights = tool("set_lights", "Set the lights.", room=text(examples=["living room", "bedroom"]))
    assert arguments("Set the living room lights", lights) == {"room": "living room"}


def test_lists_take_what_is_strung_together() -> None:
    assert arguments(
        "Average 1, 2 and 3.5", tool("average", numbers={"type": "array", "items": {"type": "number"}})
    ) == {"numbers": [1, 2, 3.5]}
    invite = tool("invite", emails={"type": "array", "items": {"type": "string", "format": "email"}})
    assert arguments("Invite a@x.org and b@x.org", invite) == {"emails": ["a@x.org", "b@x.org"]}
    lock = tool("lock", "Lock doors.", doors={"type": "array", "items": {"enum": ["front", "back", "garage"]}})
    assert arguments("Lock the front and garage doors", lock) == {"doors": ["front", "garage"]}


def test_nested_objects_are_filled_as_deep_as_they_are_required() -> None:
    place: JsonValue = {"type": "object", "properties": {"city": text(), "note": text()}, "required": ["city"]}
    assert arguments("Weather in Paris", tool("get_weather", place=place)) == {"place": {"city": "Paris"}}


def test_references_and_nullable_unions_are_followed() -> None:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "required": ["city", "units"],
        "properties": {"city": {"$ref": "#/$defs/Place"}, "units": {"anyOf": [{"type": "null"}, choice("c", "f")]}},
        "$defs": {"Place": text("A city")},
    }
    assert arguments("Weather in Paris, in f", ToolDefinition("get_weather", "", schema)) == {
        "city": "Paris",
        "units": "f",
    }


def test_values_that_break_a_bound_are_not_sent() -> None:
    letters = tool("count_letters", "Count a letter in a word.", letter=text(maxLength=1), word=text())
    assert arguments("Count the letter 'r' in 'strawberry'", letters) == {"letter": "r", "word": "strawberry"}
    answer = ask("Set the volume to 300", tool("set_volume", volume={"type": "integer", "maximum": 100}))
    assert answer.calls == []
    assert answer.text == "set_volume fits, but the request does not say: volume."


def test_what_is_missing_is_asked_for_instead_of_made_up() -> None:
    answer = ask("What's the weather?", tool("get_weather", city=text(), days={"type": "integer"}))
    assert answer.calls == []
    assert (
        answer.text
        == "get_weather fits, but the request does not say: city, days. Put the value of city in quotes: 'like this'."
    )


@each_row("schema", [True, None, "text", 5, [], {}, {"$ref": "#/nowhere"}, {"$ref": "#"}, {"type": "?"}])
def test_schemas_that_say_nothing_do_no_harm(schema: JsonValue) -> None:
    request = "Process the thing called 'ABC'"
    (call,) = ask(request, tool("process_thing", thing=schema)).calls or [("process_thing", {})]
    assert set(call[1]) <= {"thing"}
