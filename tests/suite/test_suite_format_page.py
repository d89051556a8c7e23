"""The user's page on the suite format is true: its examples load, its tables name every key and the real defaults."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tests.cli.program import Program
from tests.suite.examples import HEAD, parsed
from tests.tables import each_row
from workbench.checks.fields import NAMED_WEIGHTS
from workbench.engine.turns import CONTINUE
from workbench.suite.expected_calls import ExpectedCall
from workbench.suite.grading_model import Aggregate
from workbench.suite.model import (
    Annotations,
    Case,
    FinalTable,
    Mock,
    PriorMessage,
    Step,
    Subject,
    Suite,
    Tool,
    ToolChange,
    Variant,
)
from workbench.suite.server_model import Server
from workbench.suite.settings import Grading, Limits
from workbench.suite.shape import TABLES
from workbench.suite.user_model import ScriptedMessage, UserTable

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "suite-format.md").read_text(encoding="utf-8")
LATENCY = re.compile(r"<?\d+(\.\d+)? ms")
EXAMPLES = [
    text
    for page in ("suite-format.md", "checks.md", "tools-and-mocks.md", "comparing.md")
    for text in re.findall(r"^```toml\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if not text.startswith("response")  # a line of a case
]
DEFAULTS = dict(re.findall(r"^- `((?:limits|grading)\.[\w.]+)` \(.*; default (.+?)\): ", PAGE, re.MULTILINE))


def section(title: str) -> str:
    """The part of the page under a heading, up to the next one of any level."""
    without_examples = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    return without_examples.split(f"# {title}\n", 1)[1].split("\n#", 1)[0]


@each_row("text", EXAMPLES)
def test_every_example_loads_without_errors(text: str) -> None:
    whole = text if text.startswith("format = 1") else HEAD + text
    assert [str(problem) for problem in parsed(whole).errors] == []


def test_there_are_whole_suites_among_the_examples() -> None:
    assert sum(text.startswith("format = 1") for text in EXAMPLES) >= 4


def default_of(settings: object, path: str) -> Any:
    value: Any = settings
    for name in path.split(".")[1:]:
        value = getattr(value, name)
    return value


@each_row("path", DEFAULTS)
def test_limits_and_grading_have_the_defaults_that_the_page_shows(path: str) -> None:
    real = default_of(Limits() if path.startswith("limits") else Grading(), path)
    shown = DEFAULTS[path].strip("`")
    assert shown == real or tomllib.loads(f"x = {shown}")["x"] == real


def test_every_limit_and_grading_option_has_its_row() -> None:
    shown = {*re.findall(r"^- `((?:limits|grading|gate)\.[\w.]+)`", PAGE, re.MULTILINE)}
    for keys, (_, table) in TABLES.items():
        if keys[:1] in (("limits",), ("grading",), ("gate",)):
            for name, field in table.model_fields.items():
                nested = isinstance(field.default, BaseModel)
                assert nested or ".".join((*keys, name)) in shown


@each_row(
    ("title", "table"),
    [
        ("The suite", Suite),
        ("Aggregates", Aggregate),
        ("A subject", Subject),
        ("Servers", Server),
        ("Tools written out", Tool),
        ("Tools written out", Annotations),
        ("What answers a tool call", Mock),
        ("Variants", Variant),
        ("Variants", ToolChange),
        ("Cases", Case),
        ("Cases", ExpectedCall),
        ("Cases", PriorMessage),
        ("Chains", Step),
        ("Conversations", UserTable),
        ("Conversations", ScriptedMessage),
        ("After the run", FinalTable),
    ],
)
def test_every_key_of_a_table_is_explained_in_its_section(title: str, table: type[BaseModel]) -> None:
    rows = "\n".join(line for line in section(title).split("\n") if line.startswith(("| `", "- `")))
    assert [name for name in table.model_fields if f"`{name}`" not in rows] == []


def test_every_named_weight_is_listed() -> None:
    page = (DOCS / "checks.md").read_text(encoding="utf-8")
    assert [name for name in NAMED_WEIGHTS if f"`{name}`" not in page] == []


def example(marker: str) -> str:
    """Return the example after a marker."""
    found = re.search(rf"<!-- {marker} -->\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_chain_of_the_page_runs_as_it_says(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.write("trip.toml", example("the suite"))
    done = program.run("run", "trip.toml")
    told = [line for line in done.stdout.splitlines() if line.startswith("Pack for Oslo")]
    assert [LATENCY.sub("ms", line) for line in told] == [
        LATENCY.sub("ms", line) for line in example("what it prints").splitlines()
    ]


def test_the_page_quotes_what_is_said_where_a_step_says_nothing() -> None:
    assert f'"{CONTINUE}"' in PAGE
