"""Suites that are built in Python: written, validated, approved and run like suites of files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

import workbench
from tests.tables import each_row
from workbench import checks
from workbench.checks import any_of, contains, equals_null, has_fields, has_length, near, one_of, present, same_elements
from workbench.checks.check import CHECK_CLASSES, read_check


def search_docs(query: str, limit: int = 10) -> list[str]:
    """Search the documents.

    Args:
        query: The words to find,
            in any order.
        limit (int): At most so many.

    Returns:
        The names of files.
    """
    raise AssertionError("tools that are given for their definitions are not called")


async def agent(request: workbench.AgentRequest) -> workbench.AgentReply:
    """Gets both cases of `docs` right, and answers with the system prompt and the last result."""
    if request.results or "vacation" not in request.prompt:
        return f"{request.system}: {[message.content for message in request.results]}"
    return workbench.call("search_docs", query="vacation policy", limit=3)


def docs() -> workbench.Suite:
    return (
        workbench.Suite("Docs", tools=[search_docs], mocks={"search_docs": ["policy.md"]}, system="Be brief.")
        .case("Vacation", "Find our vacation policy", tags=("search",))
        .expects("search_docs", query=contains("vacation"), limit=near(3, tolerance=1))
        .forbids(search_docs, query="everything")
        .answers(contains("policy.md"))
        .case("Small talk", "How are you?", system="Talk.")
        .expects_nothing()
        .suite
    )


DOCS = """format = 1
name = "Docs"
system = "Be brief."

[[tools]]
name = "search_docs"
description = "Search the documents."
[tools.parameters]
type = "object"
required = ["query"]
additionalProperties = false
[tools.parameters.properties]
query = { type = "string", description = "The words to find, in any order." }
limit = { default = 10, type = "integer", description = "At most so many." }

[[mocks]]
tool = "search_docs"
result = ["policy.md"]

[[cases]]
name = "Vacation"
tags = ["search"]
user = "Find our vacation policy"
response = { contains = "policy.md" }

[[cases.ordered]]
tool = "search_docs"
args = { query = { contains = "vacation" }, limit = { near = 3, tolerance = 1 } }

[[cases.disallowed]]
tool = "search_docs"
args = { query = "everything" }

[[cases]]
name = "Small talk"
user = "How are you?"
expect_no_calls = true
system = "Talk."
"""


def test_a_built_suite_is_saved_as_a_person_writes_it_and_loads_equal(folder: Path) -> None:
    suite = docs()
    saved = suite.save("docs.toml")
    assert (folder / "docs.toml").read_text() == DOCS
    assert saved.definition == suite.load().definition
    assert suite == workbench.Suite.from_toml("docs.toml") == workbench.Suite.from_dict(suite.to_dict())
    with pytest.raises(workbench.UsageError, match=r"docs\.toml exists: name another file, or replace it with force"):
        suite.save("docs.toml")
    suite.case("More", "More?").expects_nothing()
    assert [case.id for case in suite.save("docs.toml", force=True).cases] == ["vacation", "small-talk", "more"]
    assert repr(suite) == "Suite('Docs', 3 cases)"
    assert suite != docs()


def test_a_built_suite_is_run_with_its_own_or_another_system_prompt_and_with_variants(folder: Path) -> None:
    def answers(**options: Any) -> list[tuple[str, str]]:
        report = workbench.evaluate(docs(), model=agent, **options)
        report.assert_passed()
        return [(run.model, run.trajectory.final_answer) for run in report.results]

    assert answers() == [("agent", "Be brief.: ['[\"policy.md\"]']"), ("agent", "Talk.: []")]
    assert answers(system="Hm.", cases=["small-talk"]) == [("agent", "Hm.: []")]
    terse = {"name": "terse", "system": "Terse.", "tools": [search_docs]}
    assert answers(variants=[terse], tags=["search"]) == [("agent × terse", "Terse.: ['[\"policy.md\"]']")]
    # The suite of a file, in a notebook's event loop.
    saved = docs().save("docs.toml")

    async def in_a_loop() -> workbench.Report:
        return workbench.evaluate(saved, model=agent, system="Hm.", cases=["small-talk"])

    assert asyncio.run(in_a_loop()).results[0].trajectory.final_answer == "Hm.: []"


CASE = {"name": "A", "user": "b"}


@pytest.mark.parametrize(
    "document",
    [
        {"tag": ["x"], "cases": [{**CASE, "expect_no_cals": True}]},
        {"cases": [{**CASE, "ordered": [{"tool": "t", "args": {"x": {"contains": 5}}}]}, {"name": "B"}]},
        {"tools": [{"name": "t"}], "cases": [{**CASE, "ordered": [{"tool": "u", "args": {}}]}]},
        {"cases": [CASE, {**CASE, "id": "A"}], "gate": {"min_score": 7}},
        {"cases": {"name": "A"}},
        {},
    ],
)
def test_problems_have_the_messages_of_a_file_and_the_names_of_cases(document: dict[str, Any], folder: Path) -> None:
    suite = workbench.Suite.from_dict({"name": "Wrong", **document})
    (folder / "wrong.toml").write_text(suite.to_toml())

    def problems(load: Callable[[], workbench.LoadedSuite]) -> list[tuple[str, str, str, str]]:
        try:
            found = load().warnings
        except workbench.SuiteError as error:
            found = error.problems
        return [(problem.where, problem.message, problem.hint, problem.case) for problem in found]

    of_file = problems(lambda: workbench.load("wrong.toml"))
    assert of_file
    assert problems(suite.load) == of_file


def test_further_checks_of_an_answer_must_be_met_too() -> None:
    case = workbench.Suite("A").case("A", "b").answers(contains("x")).answers(near(5))
    assert case.suite.to_dict()["cases"][0]["response"] == {"all_of": [{"contains": "x"}, {"near": 5}]}


def test_a_problem_names_the_suite_and_the_case(folder: Path) -> None:
    suite = workbench.Suite("Docs", tools=[search_docs])
    suite.case("Vacation", "Find it").expects("search_docs", query=contains("x", weight="lots"))
    with pytest.raises(workbench.SuiteError, match=r'^Docs: error: cases\[0\].ordered\[0\].args.query.weight of "Vac'):
        workbench.evaluate(suite)
    suite.case("Two", "Find it").expects({"tool": "search_docs", "args": {"query": {1, 2}}})
    with pytest.raises(workbench.SuiteError, match=r'cases\[1\].*of "Two": TOML has no value of the type set \(give'):
        suite.save("docs.toml")


@each_row(
    ("given", "message"),
    [
        (lambda: workbench.evaluate(docs().cases), r"is one case: give its suite, for example"),  # type: ignore[arg-type]
        (lambda: workbench.evaluate([docs(), workbench.Suite("docs").case("A", "b").suite]), "two suites are called"),
        (lambda: workbench.Suite("A", tools=[3]), "a tool must be a function, a table, or a tool"),  # type: ignore[list-item]
        (lambda: workbench.Suite("A", tools=[lambda x: x]), "a tool needs a name"),
        (lambda: workbench.Suite("A", tools=[print]), "the type hints of print cannot be turned into a schema"),
        (lambda: workbench.Suite("A", tools=print), "tools must be a list, not builtin_function_or_method"),  # type: ignore[arg-type]
        (lambda: workbench.Suite("A", servers="uvx x"), "servers must be a list, not str"),
        (lambda: workbench.Suite("A", servers=[["uvx", 5]]), "a command must be a list of strings"),  # type: ignore[list-item]
        (
            lambda: workbench.Suite("A", servers=["https://me:pw@h/x?token=key"]),
            r"^'https://h/x' is not .* holds a secret",
        ),
        (lambda: docs().cases[0].expects("t", ["x"]), "the arguments of 't' must be keywords or a dict"),  # type: ignore[arg-type]
        (lambda: workbench.Suite("A", servers=["API_KEY=sk-12345678901234567890 uvx x"]), "value of API_KEY"),
        (lambda: workbench.Suite("A", servers=["ftp://x"]), "'ftp://x' is not a server"),
        (lambda: docs().cases[0].expects({"tool": "t"}, x=1), "a call given as a table takes no arguments beside it"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_way_out(given: Callable[[], object], message: str) -> None:
    with pytest.raises(workbench.UsageError, match=message):
        given()


def test_what_the_callers_code_wrote_is_approved_and_what_came_from_a_file_is_not(folder: Path) -> None:
    (folder / "answers.py").write_text("def answer(arguments): return 'from Python'\n")
    (folder / "more.toml").write_text('name = "more"\nmocks = [{ tool = "search_docs", python = "more:answer" }]\n')
    (folder / "more.py").write_text("open('imported', 'w').close()\n")
    suite = workbench.Suite("Own", tools=[search_docs], mocks=[{"tool": "search_docs", "python": "answers:answer"}])
    suite.case("Vacation", "Find our vacation policy").expects("search_docs", query=checks.python("answers:answer"))
    own = {"name": "own", "mocks": [{"tool": "search_docs", "python": "answers:answer"}]}
    for added in ((), [own]):
        report = workbench.evaluate(suite, model=agent, variants=added or False)
        assert report.results[0].trajectory.final_answer == "None: ['from Python']"
    saved = suite.save("own.toml")
    calls = {"cases": {"vacation": [{"tool": "search_docs", "arguments": {"query": "x"}}]}}
    assert len(workbench.grade_calls(suite, calls).runs) == 1
    case = suite.load().case("vacation")
    assert workbench.grade(case, [workbench.call("search_docs", query="x")]).status != "passed"
    foreign: tuple[tuple[workbench.Suite | workbench.LoadedSuite, bool | list[str]], ...] = (
        (saved, False),
        (workbench.Suite.from_toml("own.toml"), False),
        (workbench.Suite.from_dict(suite.to_dict()), False),
        (suite, ["more.toml"]),
    )
    for evaluated, variants in foreign:
        with pytest.raises(workbench.ApprovalError):
            workbench.evaluate(evaluated, model=agent, variants=variants)
    assert not (folder / "imported").exists()


class Place(BaseModel):
    title: str
    floor: int | None = None


async def documented(
    where: Place, unit: Annotated[str, "C or F"], days: tuple[int, ...] = (), by: Literal["a", "b"] | None = None
) -> None:
    pass


def test_the_definition_of_a_function_has_the_schema_of_its_type_hints() -> None:
    (tool,) = workbench.Suite("A", tools=[documented]).to_dict()["tools"]
    assert tool == {
        "name": "documented",
        "parameters": {
            "type": "object",
            "properties": {
                "where": {"$ref": "#/$defs/Place"},
                "unit": {"type": "string", "description": "C or F"},
                "days": {"type": "array", "items": {"type": "integer"}, "default": []},
                "by": {"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]},
            },
            "required": ["where", "unit"],
            "additionalProperties": False,
            "$defs": {
                "Place": {
                    "type": "object",
                    "properties": {
                        "title": {"type": "string"},
                        "floor": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    },
                    "required": ["title"],
                }
            },
        },
    }


def test_definitions_of_other_programs_and_servers_in_all_forms_are_taken() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    tools = [
        {"type": "function", "function": {"name": "t", "parameters": schema}},
        {"name": "t", "inputSchema": schema},
        {"name": "t", "parameters": schema},
    ]
    assert {str(workbench.Suite("A", tools=[tool]).to_dict()["tools"]) for tool in tools} == {
        str([{"name": "t", "parameters": schema}])
    }
    url = "https://mcp.example.com/mcp"
    servers: list[Any] = [
        "uvx mcp-server-git",
        ["node", "shop/dist/index.js"],
        {"command": ["uvx", "mcp-server-git"]},
        url,
    ]
    written = workbench.Suite("A", servers=servers).to_dict()["servers"]
    assert [server["name"] for server in written] == ["git", "shop", "git", "mcp.example.com"]
    assert workbench.Suite("A", servers={"mine": url}).to_dict()["servers"] == [{"name": "mine", "url": url}]


def test_a_secret_of_the_environment_is_not_saved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCS_TOKEN", "planted-docs-0815")
    suite = workbench.Suite("A", servers=[{"command": ["docs"], "env": {"TOKEN": os.environ["DOCS_TOKEN"]}}])
    suite.case("A", "b").expects_nothing()
    with pytest.raises(workbench.UsageError, match=r'secret of the environment: env = \{ TOKEN = "\$DOCS_TOKEN" \}'):
        suite.save("a.toml")
    assert not (folder / "a.toml").exists()


def test_a_server_that_does_not_start_is_an_error_of_list_tools(folder: Path) -> None:
    with pytest.raises(workbench.ServerError, match="there is no program 'no-such-program'"):
        workbench.list_tools("no-such-program --x")


WRITTEN = [
    (contains("a", ignore_case=True), {"contains": "a", "ignore_case": True}),
    (any_of("a", near(1, tolerance=0), None), {"any_of": ["a", {"near": 1, "tolerance": 0}, {"equals_null": True}]}),
    (one_of(["a", "b"]), {"one_of": ["a", "b"]}),
    (checks.range(1, 5, required=True), {"range": [1, 5], "required": True}),
    (
        has_fields({"optional": 1}, city="Oslo", only_fields=True),
        {"has_fields": {"optional": 1, "city": "Oslo"}, "only_fields": True},
    ),
    (has_length(1, 3), {"has_length": [1, 3]}),
    (has_length(2), {"has_length": 2}),
    (equals_null(), {"equals_null": True}),
    (present(), {"present": True}),
    (present(False), {"present": False}),
    (checks.each_element(has_fields(a=None)), {"each_element": {"has_fields": {"a": {"equals_null": True}}}}),
    (same_elements([1, None]), {"same_elements": [1, {"equals_null": True}]}),
]


@each_row(("made", "written"), WRITTEN)
def test_a_check_function_returns_the_check_as_a_suite_writes_it(made: object, written: object) -> None:
    assert made == written
    assert read_check(made).as_written()


def test_each_kind_of_check_has_a_documented_function() -> None:
    assert dir(checks) == sorted(CHECK_CLASSES)
    for kind, check in CHECK_CLASSES.items():
        assert check.meaning[1:] in (getattr(checks, kind).__doc__ or "")
    with pytest.raises(
        TypeError, match=r"check near: got an unexpected keyword argument 'tolerence'; call it as near\("
    ):
        near(1, tolerence=2)
    with pytest.raises(ImportError):
        from workbench.checks import nearly  # noqa: F401
