"""Suites for tests of the command line. The offline model passes the first case and always fails the second."""

WEATHER = """
format = 1
name = "Weather"
tags = ["demo"]

[[tools]]
name = "get_weather"
description = "Current weather for a city."
[tools.parameters]
type = "object"
required = ["city"]
[tools.parameters.properties.city]
type = "string"
description = "City name"

[[mocks]]
tool = "get_weather"
result = "Rain in {city}"

[[cases]]
name = "Right"
user = "What is the weather in Oslo?"
tags = ["easy"]
[[cases.ordered]]
tool = "get_weather"
args = { city = "Oslo" }
"""

WRONG = """
[[cases]]
name = "Wrong"
user = "What is the weather in Oslo?"
[[cases.ordered]]
tool = "get_weather"
args = { city = { equals = "Nowhere", weight = 1 } }
"""

SLOW = """
[[cases]]
name = "Slow"
user = "What is the weather in Bergen?"
mocks = [{ tool = "get_weather", result = "late", delay_ms = 60000 }]
[[cases.ordered]]
tool = "get_weather"
args = { city = "Bergen" }
"""

TOO_LATE = """
[[cases]]
name = "Later"
user = "What is the weather in Oslo?"
mocks = [{ tool = "get_weather", result = "late", delay_ms = 60000 }]
limits = { timeout_s = 0.05 }
"""
"""A case that ends with an error."""

CHAIN = """
[[cases]]
name = "Chain"
steps = [
  { user = "What is the weather in Oslo?", tool = "get_weather", args = { city = "Oslo" } },
  { user = "What is the weather in Bergen?", tool = "get_weather", args = { city = "Rome" } },
]
"""
"""A chain whose first step the offline model passes, and whose second step it always fails."""
