"""A small office as an MCP server over stdio: documents, weather, arithmetic, e-mail and tasks.

Everything is made up and stays in this process: no e-mail is sent, no service is asked, the same call always gets the
same answer. It is here so that `office.toml` has a real server to call. Started by hand, it waits for a client:

    python office_server.py
"""

from __future__ import annotations

import math
import re
import threading
from datetime import date
from typing import Annotated, Literal, TypedDict

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

server = MCPServer("office")

# What a client may tell its user before a call. An e-mail cannot be taken back, hence "destructive".
READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
SENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)

DOCUMENTS = {
    "Vacation policy": "Thirty days of vacation a year. Ask your manager two weeks ahead.",
    "PTO policy for new hires": "New hires earn paid time off (PTO) from the first day, two and a half days a month.",
    "Handbook": "How we work: meetings, expenses, travel, who to ask.",
    "Travel expenses": "Keep receipts. Trains before planes. Hand in expenses within thirty days.",
}

ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
SKIES = ("clear", "partly cloudy", "light rain", "windy")


class Weather(TypedDict):
    """Weather at a place."""

    location: str
    temperature: float
    units: str
    conditions: str


class Calculation(TypedDict):
    """What was calculated, and what came out."""

    expression: str
    result: int | float


class Sent(TypedDict):
    """What became of an e-mail."""

    status: str
    message_id: str


class Task(TypedDict):
    """A task as it was written down."""

    id: str
    title: str
    priority: str
    due_date: str | None
    status: str


# Tools run in threads of their own, so what they share needs a lock.
lock = threading.Lock()
outbox: list[tuple[str, str, str]] = []
tasks: list[Task] = []


@server.tool(annotations=READS)
def search_docs(query: Annotated[str, Field(description="Words to look for")]) -> str:
    """Search the company's documents."""
    wanted = set(re.findall(r"\w+", query.lower()))
    found = [
        f"{title}: {text}"
        for title, text in DOCUMENTS.items()
        if wanted & set(re.findall(r"\w+", f"{title} {text}".lower()))
    ]
    return "\n".join(found) if found else f"No document mentions {query!r}."


@server.tool(annotations=READS)
def get_weather(
    location: Annotated[str, Field(description="City or place")],
    units: Annotated[Literal["celsius", "fahrenheit"], Field(description="Temperature units")] = "celsius",
) -> Weather:
    """Current weather for a place."""
    seed = sum(ord(letter) for letter in location.lower())  # invented, but the same for a place every time
    celsius = 5 + seed % 25
    temperature = celsius if units == "celsius" else celsius * 9 / 5 + 32
    return Weather(location=location, temperature=temperature, units=units, conditions=SKIES[seed % len(SKIES)])


@server.tool(annotations=READS)
def calculate(
    operation: Annotated[Literal["add", "subtract", "multiply", "divide"], Field(description="Which operation")],
    a: Annotated[float, Field(description="First number")],
    b: Annotated[float, Field(description="Second number")],
) -> Calculation:
    """One arithmetic operation on two numbers."""
    if operation == "divide" and b == 0:
        raise ToolError("Division by zero has no result. Divide by another number.")
    results = {"add": a + b, "subtract": a - b, "multiply": a * b, "divide": a / b if b else 0.0}
    result = results[operation]
    if not math.isfinite(result):
        raise ToolError("The result is too large for a number.")
    return Calculation(expression=f"{_plain(a)} {SIGNS[operation]} {_plain(b)}", result=_plain(result))


@server.tool(annotations=SENDS)
def send_email(
    to: Annotated[str, Field(description="Recipient address")],
    subject: Annotated[str, Field(description="Subject line")],
    body: Annotated[str, Field(description="Message text")],
    cc: Annotated[list[str] | None, Field(description="Copies to")] = None,
) -> Sent:
    """Send an e-mail."""
    addresses = [to, *(cc or ())]
    for address in addresses:
        if not ADDRESS.fullmatch(address):
            raise ToolError(f"{address!r} is not an address. Write it as name@example.com.")
    with lock:
        outbox.extend((address, subject, body) for address in addresses)
        number = len(outbox)
    return Sent(status="kept in memory only, this sample sends nothing", message_id=f"message-{number}")


@server.tool(annotations=ADDS)
def create_task(
    title: Annotated[str, Field(description="Title")],
    description: Annotated[str, Field(description="Details")] = "",
    priority: Annotated[Literal["low", "medium", "high"], Field(description="Priority")] = "medium",
    due_date: Annotated[str | None, Field(description="YYYY-MM-DD")] = None,
) -> Task:
    """Create a task."""
    if due_date is not None:
        try:
            date.fromisoformat(due_date)
        except ValueError:
            raise ToolError(f"{due_date!r} is not a date. Write it as YYYY-MM-DD.") from None
    with lock:
        task = Task(id=f"task-{len(tasks) + 1}", title=title, priority=priority, due_date=due_date, status="open")
        tasks.append(task)
    return task


def _plain(number: float) -> int | float:
    """Without a decimal point where there is nothing behind it."""
    return int(number) if number.is_integer() else number


if __name__ == "__main__":
    server.run("stdio")
