"""Suites for several tests: one that uses every feature of format 1, and functions that load a text."""

from __future__ import annotations

from pathlib import Path

from workbench.suite.model import Suite
from workbench.suite.suite_file import SuiteFile, parse_suite

PATH = Path("a.toml")

HEAD = 'format = 1\nname = "A suite"\n'

CASE = '[[cases]]\nname = "A case"\nuser = "Do it."\n'

WHOLE = r"""
format = 1
name = "Everything"
description = "One of each"
system = "You help."
models = ["offline", "openai:gpt-6-luna"]
tags = ["demo"]
execute = false

[limits]
max_rounds = 4
max_tool_calls = 9
max_latency_ms = 2500.5
timeout_s = inf

[grading]
by = "critics"
fail_threshold = 0.7
warn_threshold = 0.95
repeat_rule = "last"

[grading.critics]
tool_selection_weight = 2
fail_on_tool_selection = false
fail_on_tool_call_quantity = false
arcade_compatible = false

[grading.accuracy]
mode = "flexible"
name_only = 0.4
extra_penalty = 0.1
wrong_penalty = 0.2

[grading.dimensions]
latency = "model"

[gate]
min_score = 0.85
min_pass_rate = 1

[[aggregates]]
name = "Strict"
of = "trajectory.all_pass"
tags = ["demo"]
statistics = ["mean", "variance"]
at_least = { mean = 0.5, minimum = 0 }

[[aggregates]]
name = "Strict"
[aggregates.above]
mean = 0.9

[[servers]]
name = "home"
command = ["python", "home.py", "--port", "0"]
env = { TOKEN = "$HOME_TOKEN", PRICE = "$$5", PATHS = "${ROOT}/bin:${ROOT}" }
prefix = "home_"

[[servers]]
name = "hosted"
url = "https://example.test/mcp"
transport = "sse"
headers = { Authorization = "Bearer $MCP_TOKEN" }

[[servers]]
name = "mine"
module = "servers.mine"
object = "app"

[[tools]]
name = "set_tv"
description = "Turns the TV on or off."
[tools.parameters]
type = "object"
required = ["power"]
[tools.parameters.properties.power]
type = "string"
enum = ["on", "off"]
[tools.annotations]
readOnlyHint = false
title = "TV"

[[tools]]
name = "from_json"
parameters = '{"type": "object", "properties": {"x": {"enum": [null, 1]}}}'

[[tools]]
name = "bare"

[[mocks]]
tool = "get_weather"
when = { city = "Seattle", days = { range = [1, inf] } }
result = { temperature_c = 14, notes = ["{city}", 1, true] }

[[mocks]]
tool = "get_weather"
result = "Weather in {city}: clear"

[[mocks]]
tool = "flaky"
results = ["first", 2, false]

[[mocks]]
tool = "broken"
error = "503 Service Unavailable"
delay_ms = 250

[[mocks]]
tool = "calculate"
python = "mocks:calculate"

[[cases]]
id = "bedtime"
name = "Bedtime routine"
tags = ["ordered", "slow"]
user = "Run my bedtime routine."
repeats = 3
extra_calls = "allow"
response_contains = ["door", "lights"]
response = { similar = "Good night.", threshold = 0.5 }
offer = ["lock_door", "set_lights", "set_thermostat", "close_blinds"]
system = ""
models = ["offline"]
execute = true
limits = { max_rounds = 2 }
grading.critics.tool_selection_weight = 0.5

[[cases.messages]]
role = "user"
content = "I'm home."

[[cases.messages]]
role = "assistant"
tool_calls = [{ id = "c1", tool = "get_thermostat", args = {} }]

[[cases.messages]]
role = "tool"
call = "c1"
content = "21"
is_error = false

[[cases.mocks]]
tool = "lock_door"
result = ""

[[cases.tools]]
name = "set_tv"
description = "As this case has it."
[cases.tools.parameters]
type = "object"
[cases.tools.parameters.properties.power]
type = "boolean"
[cases.tools.annotations]
title = "TV"

[[cases.tools]]
name = "with_null"
parameters = '{"type": "object", "properties": {"x": {"enum": [null, 1]}}}'

[[cases.ordered]]
tool = "lock_door"
args = { door = "front" }

[[cases.ordered]]
any_order = [
  { tool = "set_lights", args = { room = "bedroom", brightness = { range = [5, 20] } } },
  { tool = "set_thermostat", args = { preset = "cool" } },
]

[[cases.unordered]]
tool = "close_blinds"
args = { room = "bedroom" }
forbidden_args = ["speed"]

[[cases.disallowed]]
tool = "unlock_door"

[[cases.disallowed]]
tool = "*"
args = { force = true }
only_args = true

[[cases]]
name = "Every check"
user = "Check."
response = "Done."

[[cases.ordered]]
tool = "t"
[cases.ordered.args]
a = { equals = { range = [1, 2] }, cast = false, weight = "low" }
b = { equals_null = true, weight = 0 }
c = { present = true, weight = "critical" }
d = { one_of = [1, "x", { y = 1 }], weight = 1.5 }
e = { range = [-inf, 5], weight = 1 }
f = { near = 5, tolerance = 1, weight = 1 }
g = { near = 5, value_range = [0, 10], match_threshold = 0.5, weight = 1 }
h = { similar = "x", metric = "token_set_ratio", threshold = 1, weight = 1 }
i = { datetime = "2026-05-27T10:00", tolerance = "90s", max_difference = "1d", weight = 1 }
j = { contains = "x", weight = 1 }
k = { prefix = "x", weight = 1 }
l = { suffix = "x", optional = true, weight = 1 }
m = { pattern = '^\d+$', weight = 1 }
n = { judged = "polite", model = "offline", weight = 1 }
o = { python = "checks:is_fine", weight = 1 }
p = { type = "integer", weight = 1 }
q = { equals_text = "New York, NY", weight = 1 }
r = { all_of = [{ type = "string" }, { any_of = ["x", { range = [1, inf] }] }], weight = 1 }
args = { equals = [1], weight = 1 }

[[cases.ordered]]
tool = "t"
args = { plain = { x = { range = [1, 2] } }, list = [1, 2.5, "x"], mock_result = { present = true } }

[[cases]]
name = "Says nothing about calls"
user = "Hello"
skip = "later"

[[cases]]
name = "No calls"
user = "Hi"
expect_no_calls = true

[[cases]]
id = "multiply-then-divide"
name = "Multiply, then divide"
stop_on_failure = false

[[cases.steps]]
user = "Calculate 15 * 23, then divide the result by 5"
system = "You are a math expert."
tool = "calculate"
args = { operation = "multiply", a = 15, b = 23 }
mock_result = "345"

[[cases.steps]]
tool = "calculate"
args = { operation = "divide", a = { present = true }, b = 5 }
forbidden_args = ["c"]

[[cases.steps]]
mock_result = { any = "value" }
"""


def parsed(text: str) -> SuiteFile:
    """Return the suite file of a text."""
    return parse_suite(text, PATH)


def suite_of(text: str) -> Suite:
    """Return the suite of a text without errors."""
    file = parsed(text)
    assert file.suite is not None, [str(problem) for problem in file.errors]
    return file.suite
