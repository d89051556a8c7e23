from __future__ import annotations

from tests.providers.offline.asking import ask, choice, number, text, tool
from tests.tables import each_row
from workbench.providers.offline.tools import CALL_THRESHOLD, ToolIndex
from workbench.trajectory.events import ToolDefinition

ISSUES = (
    tool("list_issues", "List the issues of a repository.", owner=text(), repo=text()),
    tool("create_issue", "Create a new issue in a repository.", owner=text(), repo=text(), title=text()),
    tool("search_code", "Search for code in all repositories.", query=text()),
    tool("merge_pull_request", "Merge a pull request.", owner=text(), repo=text(), number=number()),
    tool("deleteFile", "Delete a file from a repository.", owner=text(), repo=text(), path=text()),
    tool("star_repository", "Star a repository.", owner=text(), repo=text()),
)


def best(request: str, *tools: ToolDefinition) -> str:
    return ToolIndex(tools).rank(request)[0].tool.name


@each_row(
    ("request_text", "name"),
    [
        ("list the open issues", "list_issues"),
        ("open a new issue", "create_issue"),
        ("look for code with a main function", "search_code"),
        ("merge the pull request", "merge_pull_request"),
        ("remove the file", "deleteFile"),
        ("star this repo", "star_repository"),
        ("serch for code", "search_code"),
    ],
)
def test_the_tool_that_shares_the_rarest_words_ranks_first(request_text: str, name: str) -> None:
    assert best(request_text, *ISSUES) == name


def test_scores_lie_between_nothing_and_one_and_fall() -> None:
    scores = [one.score for one in ToolIndex(ISSUES).rank("create an issue in the repository")]
    assert all(0 <= score < 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_equal_tools_stay_in_the_order_on_offer() -> None:
    twins = [ToolDefinition("b_tool", "Do it."), ToolDefinition("a_tool", "Do it.")]
    assert [one.tool.name for one in ToolIndex(twins).rank("do it with a tool")] == ["b_tool", "a_tool"]


def test_a_word_that_every_tool_has_counts_less_than_a_rare_one() -> None:
    tools = [ToolDefinition(f"weather_{kind}") for kind in ("radar", "alerts", "history")]
    ranked = ToolIndex(tools).rank("weather alerts")
    assert ranked[0].tool.name == "weather_alerts"
    assert ranked[0].score > CALL_THRESHOLD > ranked[1].score


def test_a_general_verb_alone_is_no_reason_to_call() -> None:
    assert ToolIndex([tool("create_task", "Create a task.")]).rank("create a poem")[0].score < CALL_THRESHOLD


def test_a_question_prefers_the_tool_that_only_reads() -> None:
    setting = tool("set_thermostat", "Set the temperature.", degrees=number())
    reading = tool("get_thermostat", "Read the temperature.")
    ranked = ToolIndex([setting, reading]).rank("What is the temperature of the thermostat?", question=True)
    assert [one.tool.name for one in ranked] == ["get_thermostat", "set_thermostat"]


def test_the_read_only_hint_outranks_what_the_name_suggests() -> None:
    plain = ToolDefinition("set_report", "Weather report.")
    hinted = ToolDefinition("set_report_2", "Weather report.", annotations={"readOnlyHint": True})
    scores = {one.tool.name: one.score for one in ToolIndex([plain, hinted]).rank("weather report", question=True)}
    assert scores["set_report_2"] > scores["set_report"]


def test_a_word_that_names_a_quoted_value_speaks_for_a_parameter() -> None:
    invite = tool("contact", "Contact a person.", to=text("Recipient"), subject=text())
    rename = tool("subject_rename", "Rename a course.", course=text())
    assert ask("Invite Ann, subject 'Lunch'", rename, invite).calls == [("contact", {"to": "Ann", "subject": "Lunch"})]


def test_the_reasoning_shows_the_ranking() -> None:
    weather = tool("get_weather", "Current weather.", city=text())
    docs = tool("search_docs", "Search documents about anything, the weather too.", query=text())
    assert ask("Weather in Paris?", weather, docs).reasoning.startswith("Ranked by words: get_weather 0.")


def test_choices_of_a_parameter_count_as_words_of_the_tool() -> None:
    power = tool("device", "", state=choice("standby", "sleeping"), power=text())
    other = tool("widget", "", colour=text())
    assert best("standby", other, power) == "device"


def test_no_tools_rank_as_nothing() -> None:
    assert ToolIndex(()).rank("anything") == []
