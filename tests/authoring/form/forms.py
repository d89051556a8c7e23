"""A suite with every key that a case can have, and forms of it."""

from __future__ import annotations

import functools
from pathlib import Path

from workbench.authoring.form.row import FormRow, FormSource
from workbench.authoring.form.rows import form_rows
from workbench.authoring.known_tools import tools_of_suite
from workbench.show.spans import plain
from workbench.suite.problems import Problem
from workbench.suite.suite_file import parse_suite
from workbench.suite.suite_text import SuiteText
from workbench.tools.listings import StoredListings
from workbench.trajectory.events import ToolDefinition
from workbench.tui.case.form.page import lay_out

EVERYTHING = """
format = 1
name = "Smart home"
description = "Lights and doors"
system = "You are a smart home assistant."
models = ["offline", "local-llama"]
tags = ["demo"]
execute = false

[limits]
max_rounds = 7

[grading]
by = "accuracy"

[grading.accuracy]
mode = "flexible"

[gate]
min_score = 0.85

[[aggregates]]
name = "Strict"
of = "trajectory.all_pass"
tags = ["demo"]
statistics = ["mean", "variance"]
at_least = { mean = 0.5, minimum = 0 }

[[aggregates]]
name = "Strict"
of = "response.polite"
[aggregates.above]
mean = 0.9
[aggregates.at_most]
p95 = 1

[[variants]]
name = "careful"
description = "More words"
system = "Be careful."
model = "local-llama"
params = { temperature = 0 }
names = { lock_door = "lock" }
[[variants.mocks]]
tool = "lock"
error = "stuck"
[[variants.changes]]
tool = "set_lights"
name = "dim"
description = ""
arguments = { room = "place" }

[[servers]]
name = "home"
command = ["python", "smart home.py"]
cwd = "home"
env = { HOME_TOKEN = "$HOME_TOKEN" }
prefix = "home_"

[[servers]]
name = "hosted"
url = "https://example.test/mcp"
transport = "sse"
headers = { Authorization = "Bearer $MCP_TOKEN" }

[[servers]]
name = "mine"
module = "my_server"
object = "mcp"

[[tools]]
name = "set_lights"
description = "Sets the lights of a room."
annotations = { readOnlyHint = false }
[tools.parameters]
type = "object"
required = ["room"]
additionalProperties = false
[tools.parameters.properties.room]
type = "string"
enum = ["living room", "bedroom"]
[tools.parameters.properties.brightness]
type = "integer"
minimum = 0
maximum = 100

[[tools]]
name = "lock_door"
parameters = '{"type": "object", "properties": {"door": {"type": ["string", "null"], "default": null}}}'

[[provider_tools]]
name = "web_search"
messages = { type = "web_search_20250305", name = "web_search" }

[[mocks]]
tool = "set_lights"
result = { ok = true }

[[cases]]
id = "bedtime"
name = "Bedtime routine"
tags = ["ordered", "slow"]
user = "Run my bedtime routine.\\nThanks."
system = ""
repeats = 2
skip = "not yet"
extra_calls = "forbid"
response_contains = ["door", "lights, all"]
response = { similar = "Good night.", threshold = 0.5 }
offer = ["set_lights", "lock_door"]
models = ["offline"]
execute = true
limits = { timeout_s = 5 }
grading = { by = "critics", critics = { tool_selection_weight = 2 } }

[[cases.messages]]
role = "user"
content = "I'm home."

[[cases.messages]]
role = "assistant"
tool_calls = [{ id = "c1", tool = "get_thermostat", args = { unit = "celsius" } }]

[[cases.messages]]
role = "tool"
call = "c1"
content = "21"
is_error = true

[[cases.ordered]]
tool = "lock_door"
args = { door = "front" }

[[cases.ordered]]
any_order = [
  { tool = "set_lights", args = { room = "bedroom", brightness = { range = [5, 20], optional = true } } },
  { tool = "set_thermostat", args = { preset = { near = 5, tolerance = 2 }, mode = { one_of = ["a", "b"] } } },
]

[[cases.unordered]]
tool = "close_blinds"
args = { room = { equals = "bedroom", weight = "high", cast = false }, at = { datetime = "2026-01-01", weight = 2 } }
forbidden_args = ["speed"]

[[cases.disallowed]]
tool = "unlock_door"

[[cases.disallowed]]
tool = "set_alarm"
args = {}

[cases.at_most]
rounds = 6
cost_usd = 0.5

[[cases.disallowed]]
tool = "*"
args = { force = { any_of = [true, { equals_text = "Yes" }] }, level = { type = "number" } }
only_args = true
before = { tool = "get_lights", args = { room = "hall" } }
after = { tool = "set_alarm" }

[[cases.mocks]]
tool = "flaky"
when = { city = "Seattle" }
results = ["first answer", { second = 2 }]

[[cases.mocks]]
tool = "broken"
error = "503 Service Unavailable"
delay_ms = 250

[[cases.mocks]]
tool = "calculate"
python = "mocks:calculate"
state = "batch"

[[cases.tools]]
name = "own_tool"
parameters = '{"type": "object", "properties": {"x": {"type": "integer"}}}'

[[cases]]
id = "quiet"
name = "Nothing to do"
user = "Thanks!"
expect_no_calls = true

[cases.response]
polite = { judged = "is polite", scale = [1, 5], at_least = 4 }
welcome = { contains = "welcome", required = false }
mine = { python = "mine:look", sees = "run", at_least = 0.5 }
whole = { equals = "You are welcome." }

[[cases.variants]]
name = "plain"
expect_no_calls = true

[[cases.variants]]
name = "other"
unordered = [{ tool = "set_lights", args = { room = "bedroom" } }]

[[cases]]
id = "chain"
name = "Multiply, then divide"
stop_on_failure = true

[[cases.images]]
file = "pictures/sum.png"

[[cases.setup]]
tool = "set_lights"
args = { room = "bedroom", brightness = 5 }

[cases.final]
changes = [{ tool = "set_lights", args = { room = { prefix = "bed" } }, only_args = true }]
readers = ["get_*"]

[[cases.final.state]]
tool = "get_lights"
args = { room = "bedroom" }
result = { has_fields = { brightness = 5 }, only_fields = true }

[[cases.answers]]
to = "elicitation"
tool = "set_lights"
message = { contains = "size" }
action = "accept"
content = { size = 42, wide = true }

[[cases.answers]]
to = "sampling"
text = "A quiet room."

[[cases.steps]]
user = "Calculate 15 * 23, then divide the result by 5"
system = "You are a math expert."
tool = "calculate"
args = { operation = "multiply", a = 15, b = 23 }
forbidden_args = ["c"]
only_args = true
mock_result = "345"

[[cases.steps]]
tool = "calculate"
args = { operation = "divide", a = { present = true }, b = { equals_null = true } }

[[cases.steps]]
user = "And now nothing."

[[cases]]
id = "talk"
name = "Ask, then dim"

[cases.user]
max_turns = 4
patience = 1
stop = { called = ["unlock_door"] }

[[cases.user.messages]]
say = "It is too bright."
response = { contains = "room" }
ordered = [{ tool = "lock_door" }, { tool = "set_lights" }]

[[cases.user.messages]]
id = "room"
say = "In the bedroom."
when = { answer = { pattern = "(?i)which room" } }
disallowed = [{ tool = "lock_door", because = "nobody asked" }]
[cases.user.messages.response]
polite = { judged = "is polite" }
[[cases.user.messages.ordered]]
any_order = [{ tool = "set_lights", args = { room = "bedroom" } }, { tool = "lock_door" }]

[cases.final]
changes = [{ tool = "set_lights", after_message = "room" }]
says = ["dimmed", { text = "bedroom", after_tool = "set_lights" }]
goal = { judged = "the user can sleep" }

[[cases]]
id = "played"
name = "Too bright"

[cases.user]
goal = "Get the bedroom dimmed."
tries = 2
[cases.user.facts]
name = "Ann"
room = { value = "bedroom", when = { answer = "which room?", called = ["lock_door"] } }

[cases.final]
changes = []
"""


def source_of(text: str = EVERYTHING, index: int | None = 0, *, every_key: bool = True) -> FormSource:
    """Return the form of a case. Without an index, return the form of the suite's settings."""
    parts, problems, tools = _read(text)
    table = parts.header if index is None else parts.cases[index]
    at = () if index is None else ("cases", index)
    return FormSource(table, at, parts.header, problems, tools, every_key=every_key)


@functools.cache
def _read(text: str) -> tuple[SuiteText, tuple[Problem, ...], tuple[ToolDefinition, ...]]:
    parts, path = SuiteText.of(text), Path("home.toml")
    return parts, parse_suite(text, path).problems, tools_of_suite(parts.header, path, StoredListings(Path("nowhere")))


def row_named(source: FormSource, *place: str | int) -> FormRow:
    return next(row for row in form_rows(source) if row.place == place and row.kind != "more")


def shown(source: FormSource, width: int = 60) -> str:
    """Return a form as the screen shows it."""
    return "\n".join(plain(line).rstrip() for row in form_rows(source) for line in lay_out(row, width).lines)
