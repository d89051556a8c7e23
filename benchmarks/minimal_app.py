"""A minimal Textual app with a header, a table and a footer: the cost of any app before it does anything."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import DataTable, Footer, Header


class LeastApp(App[None]):
    """Shows twenty rows."""

    BINDINGS = [("q", "quit", "Quit")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        yield Header()
        yield DataTable()
        yield Footer()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns("Suite", "Case")
        table.add_rows(("Benchmark", f"Case number {number}") for number in range(20))


if __name__ == "__main__":
    LeastApp().run()
