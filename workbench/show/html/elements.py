"""Elements of the HTML report, as markup in the page or as JSON for the script.

Text from models, tools and files appears only as the text of an element or the value of an attribute. Its control
characters are made visible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from typing import Any, NamedTuple, TypeAlias

from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.doc import Block, Diff, Heading, Items, Matrix, Paragraph, Section, Table
from workbench.show.spans import Line
from workbench.show.visible import visible

MAX_UNFOLDED_CHARACTERS, MAX_UNFOLDED_LINES = 1_500, 24
"""Length in characters and in lines above which a text is initially folded."""

Node: TypeAlias = "Element | str | Iterable[Node] | None"


_FOREIGN = frozenset({"title", "aria-label"})
"""Attributes whose values may be text from models, tools and files."""

Redact: TypeAlias = Callable[[str], str]
"""A function that replaces the secrets in a text."""


class Element(NamedTuple):
    """An HTML element. Its name and the names of its attributes are literals of this program."""

    name: str
    attributes: Mapping[str, str]
    children: tuple[Element | str, ...]


def el(name: str, *children: Node, **attributes: str | float | bool | None) -> Element:
    """Return an HTML element with children and attributes.

    Write attribute names as Python names: `class_`, `aria_label`. An attribute that is `None` or `False` is omitted,
    and `True` becomes an attribute without a value."""
    given = {}
    for key, value in attributes.items():
        if value is not None and value is not False:
            given[_ATTRIBUTES.get(key) or key.replace("_", "-")] = "" if value is True else str(value)
    return Element(name, given, tuple(flat(children)))


def filled_el(name: str, *children: Node, **attributes: str | float | bool | None) -> Element | None:
    """Return an HTML element as `el` does, or `None` if it would have no children."""
    element = el(name, *children, **attributes)
    return element if element.children else None


_ATTRIBUTES = {"class_": "class"}


def flat(nodes: Iterable[Node]) -> list[Element | str]:
    """Return the elements and texts of nested iterables in one list, without empty texts."""
    found: list[Element | str] = []
    for node in nodes:
        if isinstance(node, (Element, str)):
            if node:
                found.append(node)
        elif node is not None:
            found += flat(node)
    return found


def markup(node: Element | str, redact: Redact) -> Iterator[str]:
    """Yield an element as HTML. Texts from outside the program are redacted and escaped."""
    if isinstance(node, str):
        # Secrets are redacted first, because a secret that was escaped would not be found.
        yield escape(visible(redact(node)))
        return
    yield f"<{node.name}"
    for key, value in _attributes(node, redact).items():
        yield f' {key}="{escape(value)}"'
    yield ">"
    for child in node.children:
        yield from markup(child, redact)
    yield f"</{node.name}>"


def tree(node: Element | str, redact: Redact) -> Any:
    """Return an element as JSON: a list of its name, attributes and children. Texts become strings."""
    if isinstance(node, str):
        return visible(redact(node))
    return [node.name, _attributes(node, redact), *[tree(child, redact) for child in node.children]]


def _attributes(node: Element, redact: Redact) -> Mapping[str, str]:
    # All other values are literals of this program, so redacting them could only break the page.
    foreign = {}
    for name in _FOREIGN & node.attributes.keys():
        foreign[name] = visible(redact(node.attributes[name]))
    if foreign:
        return {**node.attributes, **foreign}
    return node.attributes


def sign(status: Status | None, other: str = "·") -> Element:
    """Return the sign of a status, or `other` if the status is `None`.

    Screen readers skip the sign and read the word beside it."""
    shown = other if status is None else status.sign
    return el("span", shown, class_="sign", aria_hidden="true")


def badge(status: Status, *more: Node) -> Element:
    """Return a badge with the sign and the word of a status, followed by `more`."""
    return el("span", sign(status), " ", status.word, more, class_=f"badge {status.role}")


def section(name: str, title: str, *children: Node) -> Element:
    # The heading labels its section, so that screen readers list the section by its heading.
    heading = el("h2", title, id=f"{name}-title")
    return el("section", heading, children, id=name, aria_labelledby=f"{name}-title")


def items(texts: Iterable[Node], class_: str | None = None) -> Element:
    return el("ul", map(_item, texts), class_=class_)


def _item(text: Node) -> Element:
    return el("li", text)


def pairs(facts: Iterable[tuple[str, Node]], class_: str | None = None) -> Element:
    """Return an HTML list of names with their values."""
    return el("dl", ((el("dt", name), el("dd", value)) for name, value in facts), class_=class_)


def table(titles: Iterable[str], rows: Iterable[Iterable[Node]], class_: str | None = None) -> Element:
    """Return an HTML table. The first cell of each row is its heading."""
    head = el("tr", (el("th", title, scope="col") for title in titles))
    return el("table", el("thead", head), el("tbody", map(_row, rows)), class_=class_)


def _row(cells: Iterable[Node]) -> Element:
    first, *others = cells
    return el("tr", el("th", first, scope="row"), (el("td", cell) for cell in others))


def spans(line: Line) -> Iterator[Node]:
    """Yield a line as HTML, with a `span` for each part that has a role.

    The blanks that align the line in a terminal stay, because HTML collapses them."""
    for text, role in line:
        if role == "text":
            yield text
        else:
            yield el("span", text, class_=f"role {role}")


def blocks(view: Iterable[Block], link: Callable[[Any], str | None] = lambda row: None) -> Iterator[Element]:
    """Yield the HTML elements of a view's blocks.

    `link` returns the address that a row of a table links to, or `None` for a row without a link."""
    for block in view:
        match block:
            case Heading(line, level):
                yield el(f"h{level + 1}", spans(line))
            case Paragraph(line):
                yield el("p", spans(line))
            case Items(lines, noun, most):
                yield items(map(spans, lines[:most]))
                if rest := lines[most:]:
                    yield el("details", el("summary", counted(len(rest), noun)), items(map(spans, rest)))
            case Section(title, inside):
                yield el("div", el("h3", spans(title)), blocks(inside, link))
            case Table():
                yield scrolled("Table", _table(block, link))
            case Matrix():
                yield scrolled(f"Table of {block.first.name}", _matrix(block))
            case Diff():
                yield el("pre", "\n".join(block.lines), class_="text")


def _table(shown: Table[Any], link: Callable[[Any], str | None]) -> Element:
    columns = shown.lasting_columns
    rows = []
    for row in shown.rows:
        cells: list[Node] = []
        for column in columns:
            cells.append([*spans(column.cell(row).spans)])
        address = link(row)
        for at, column in enumerate(columns):
            if column.name == "case" and address is not None:
                cells[at] = el("a", cells[at], href=address)
        rows.append(cells)
    return table([column.name for column in columns], rows)


def _matrix(shown: Matrix[Any]) -> Element:
    rows: list[list[Node]] = []
    for row in shown.rows:
        cells: list[Node] = [spans(shown.first.cell(row).spans)]
        for at in range(len(shown.heads)):
            cells.append(spans(shown.cell(row, at).spans))
        rows.append(cells)
    return table((shown.first.name, *shown.heads), rows, "totals")


def scrolled(label: str, *children: Node) -> Element:
    """Return an element that scrolls sideways if its children are wider than the page."""
    # The keyboard can scroll an element only if it is in the tab order.
    return el("div", children, class_="scrolled", tabindex="0", role="region", aria_label=label)


def fold(kind: str, title: str, *children: Node, is_open: bool = False) -> Element:
    """Return an element that shows its children when the user clicks its title."""
    return el("details", el("summary", title), children, class_=f"fold {kind}", open=is_open)


def long_text(text: str) -> Element:
    """Return a text as an element that keeps line breaks. The page's script hides the end of a long text."""
    is_long = len(text) > MAX_UNFOLDED_CHARACTERS or text.count("\n") >= MAX_UNFOLDED_LINES
    more = None
    if is_long:
        more = f"show all {counted(len(text), 'character')}"
    return el("pre", text, class_="text", data_more=more)
