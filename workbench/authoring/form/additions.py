"""The search for what can be added to a form: keys that are not written yet, and elements of lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.authoring.form.cells import class_of
from workbench.authoring.form.completions import Completion, ranked, without_links
from workbench.authoring.form.descriptions import key_description
from workbench.authoring.form.edits import Edit, edited, toggled
from workbench.authoring.form.field_text import CellError, items_at, only_keys, shown_name, value_at
from workbench.authoring.form.row import FormRow, FormSource, holds_arguments, in_turn
from workbench.authoring.form.row_changes import PendingAddition, addition_at, alternative, has_elements, item_of
from workbench.authoring.form.rows import every_row
from workbench.dataclasses import dataclass
from workbench.show.visible import one_line
from workbench.suite.problems import Place, place_text


@dataclass(frozen=True)
class Addition:
    """A key or element that can be added to a form.

    `row` is the row where it is added, and `line` is its entry in the search. `question` asks the user for a name or
    value. If it is `None`, the row asks its own question. `answer` is set if the answer is already known."""

    row: FormRow
    line: Completion
    answer: str | None = None
    question: PendingAddition | None = None


@dataclass(frozen=True)
class AdditionSearch:
    """A search for what can be added to a form. It began at the row of `place`."""

    source: FormSource
    place: Place
    asks: str = "add what?"
    must_choose: bool = True

    def suggest(self, typed: str) -> tuple[Completion, ...]:
        return tuple(ranked((addition.line for addition in additions(self.source, self.place)), typed))

    def choose(self, text: str) -> Edit | PendingAddition | Place:
        """Return what follows a choice: a change, a question to the user, or the place of a key to fill in.

        Raises CellError if `text` is not among the suggestions."""
        for addition in additions(self.source, self.place):
            if text == addition.line.text:
                return _first_step(self.source, addition)
        raise CellError("choose an entry from the list, or type a word that it contains")


def additions(source: FormSource, place: Place) -> list[Addition]:
    """Return what can be added at a place.

    First come keys of the element at `place`, then keys of the case or suite, other elements, and calls. Each of these
    groups begins with the common keys."""
    here = item_of(place) or _fact((*place, ""))
    found: list[tuple[tuple[bool, bool, bool, int], Addition]] = []
    owners: set[Place] = set()
    for row in every_row(source):
        owner = row.place
        if _may_have_alternatives(source, row):
            is_here = here is not None and owner[: len(here)] == here
            about = f"{_element(source, owner)}: a call that may be made in its place"
            line = Completion(place_text((*owner, "any_of")), "any_of", about)
            asked = alternative(source, owner)
            found.append(((not is_here, not is_here, True, len(_USUAL)), Addition(row, line, question=asked)))
        # A table of arguments may have no row of its own, so the row of its first argument stands for the table.
        if row.kind == "pair" and holds_arguments(row.place[:-1]):
            owner = row.place[:-1]
        if owner in owners or (owner == row.place and not _is_open(source, row)):
            continue
        owners.add(owner)
        is_here = here is not None and owner[: len(here)] == here
        is_elsewhere = not is_here and any(isinstance(part, int) for part in owner)
        usual = _USUAL.get(owner[0], len(_USUAL)) if len(owner) == 1 else len(_USUAL)
        rank = (not is_here, is_elsewhere, row.rare, usual)
        found.append((rank, Addition(row, _line(source, row, owner))))
    found.sort(key=lambda each: each[0])
    keys, calls = [addition for _, addition in found], list(_calls(source))
    # If a case expects nothing yet, a call is the most likely addition.
    if not only_keys(source.table, _EXPECTATIONS):
        return [*calls, *keys]
    return [*keys, *calls]


_EXPECTATIONS = ("ordered", "unordered", "disallowed", "steps", "expect_no_calls", "response", "response_contains")
_FIRST = ("ordered", "response_contains", "disallowed", "expect_no_calls", "tools", "servers", "mocks", "tags")
_USUAL: dict[str | int, int] = {key: at for at, key in enumerate(_FIRST)}
"""The order of the keys that are added most."""


def _may_have_alternatives(source: FormSource, row: FormRow) -> bool:
    is_expected = row.kind == "item" and in_turn(row.place)[:1] in (("ordered",), ("unordered",), ("steps",))
    return is_expected and "any_of" not in row.place and "tool" in _keys(source, row.place)


def _keys(source: FormSource, place: Place) -> Iterable[str]:
    table = value_at(source.table, place)
    return table if isinstance(table, dict) else ()


def _is_open(source: FormSource, row: FormRow) -> bool:
    if row.kind == "section":
        return has_elements(row.place) and not isinstance(addition_at(source, row), str)
    return row.kind == "field" and row.absent


def _line(source: FormSource, row: FormRow, owner: Place) -> Completion:
    # If the place is inside an element of a list, the label leaves out the element, because the description names it.
    start = max((at + 1 for at, part in enumerate(owner) if isinstance(part, int)), default=len(_fact(owner) or ()))
    label = place_text(owner[start:]).removeprefix("args.")
    if owner[0] == "mocks":
        label = label.removeprefix("when.")
    about = key_description(owner)
    cell = row.cells[0] if row.cells else None
    if cell is not None and cell.kind == "option":
        check = class_of(value_at(source.table, cell.place))
        about = without_links(check.options.get(cell.option, about))
    if start:
        about = f"{_element(source, owner[:start])}: {about}"
    return Completion(place_text(owner), one_line(label), about)


def _fact(place: Place) -> Place | None:
    """Return the place of the simulated user's fact that contains a place."""
    return place[:3] if place[:2] == ("user", "facts") and len(place) > 3 else None


def _element(source: FormSource, place: Place) -> str:
    """Return a name for a fact or an element of a list.

    The name is the element's tool or its own name, otherwise the name of the list and the element's number."""
    for key in ("tool", "name", "role"):
        name = value_at(source.table, (*place, key))
        if isinstance(name, str) and name:
            return one_line(name)
    if isinstance(place[-1], str):
        return one_line(place[-1])
    return f"{place[-2]} {place[-1] + 1}"


def _calls(source: FormSource) -> Iterator[Addition]:
    if not source.is_case or source.is_chain:
        return
    row = FormRow("section", ("ordered",), 0, "ordered")
    # If the case has a list of calls without an order, the new call goes there.
    if items_at(source.table, ("unordered",)) and not items_at(source.table, ("ordered",)):
        row = FormRow("section", ("unordered",), 0, "unordered")
    for tool in source.tools:
        about = one_line(f"expect a call · {tool.description.strip().partition(chr(10))[0]}".rstrip(" ·"))
        name = shown_name(tool.name)
        yield Addition(row, Completion(f"{row.label} {name}", one_line(tool.name), about), name)


def _first_step(source: FormSource, addition: Addition) -> Edit | PendingAddition | Place:
    row = addition.row
    if addition.question is not None:
        return addition.question
    if row.kind in ("section", "pair"):
        question = addition_at(source, row)
        if isinstance(question, str):
            raise CellError(question)
        if addition.answer is not None:
            return question.make(addition.answer)
        if not question.asks:
            return question.make("")
        return question
    cell = row.cells[0]
    switched = toggled(cell)
    if switched is not None:
        return edited(source, row, cell, switched)
    return row.place
