"""The tools of the sample suites' office, on a server that starts quickly."""

from plain import PlainServer, ToolError

server = PlainServer("office")


@server.tool(readOnlyHint=True)
def search_docs(query: str) -> str:
    """Search the company's documents."""
    return f"Handbook, on {query!r}:\nHow we work: meetings, expenses, travel, who to ask."


@server.tool(readOnlyHint=True)
def get_weather(location: str, units: str = "celsius") -> str:
    """Current weather for a place."""
    return f"partly cloudy at {location}, 21.5 degrees {units}"


@server.tool(readOnlyHint=True)
def calculate(operation: str, a: float, b: float) -> float:
    """One arithmetic operation on two numbers."""
    if operation == "divide" and b == 0:
        raise ToolError("Division by zero has no result. Divide by another number.")
    return {"add": a + b, "subtract": a - b, "multiply": a * b}.get(operation, a)


@server.tool(destructiveHint=True)
def send_email(to: str, subject: str, body: str) -> str:
    """Send an e-mail."""
    return f"kept in memory only: {subject}, to {to}"


@server.tool(readOnlyHint=False, destructiveHint=False)
def create_task(title: str, description: str = "", priority: str = "medium", due_date: str = "") -> str:
    """Create a task."""
    return f"task-1: {title}, {priority}"


if __name__ == "__main__":
    server.run()
