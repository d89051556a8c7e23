"""Markdown as its reader sees it."""

from __future__ import annotations

from markdown_it import MarkdownIt


def tables(markdown: str) -> list[list[list[str]]]:
    """Return the tables of a Markdown text: their rows, and the text of each cell."""
    found: list[list[list[str]]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and found and token.level >= 4 and token.map is not None:
            assert all(child.type in ("text", "code_inline", "text_special") for child in token.children or ()), (
                markdown
            )
            found[-1][-1].append("".join(child.content for child in token.children or ()))
    return found
