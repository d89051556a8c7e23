"""A suite for a small model: tools of common size, and requests that each need one of them or none."""

SUITE = """format = 1
name = "Small model"

[limits]
max_rounds = 2
max_latency_ms = 120_000

[[tools]]
name = "get_weather"
description = "Get the current weather of a city: the temperature, the wind and whether it rains"
[tools.parameters]
type = "object"
required = ["city"]
[tools.parameters.properties]
city = { type = "string" }
unit = { type = "string", enum = ["celsius", "fahrenheit"] }

[[tools]]
name = "send_email"
description = "Send an email to one person. Ask for the address if it is not known, and never send a mail twice"
[tools.parameters]
type = "object"
required = ["to", "subject", "text"]
properties = { to = { type = "string" }, subject = { type = "string" }, text = { type = "string" } }

[[tools]]
name = "find_flights"
description = "Find flights between two airports on one day, the cheapest first"
[tools.parameters]
type = "object"
required = ["from", "to", "date"]
[tools.parameters.properties]
from = { type = "string" }
to = { type = "string" }
date = { type = "string", format = "date" }

[[cases]]
name = "Weather"
user = "What is the weather in Paris?"
[[cases.ordered]]
tool = "get_weather"
args = { city = "Paris" }

[[cases]]
name = "Email"
user = "Send an email to ada@example.com that says hello."
[[cases.ordered]]
tool = "send_email"
args = { to = "ada@example.com" }

[[cases]]
name = "Flights"
user = "Which flights go from OSL to CDG on 2026-12-24?"
[[cases.ordered]]
tool = "find_flights"
args = { from = "OSL", to = "CDG" }

[[cases]]
name = "Greeting"
user = "Hello!"
expect_no_calls = true
"""
