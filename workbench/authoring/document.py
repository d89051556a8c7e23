"""The text of a suite while it is edited. Some of its parts may not be valid TOML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from itertools import chain, islice, zip_longest
from pathlib import Path
from types import MappingProxyType

from workbench.dataclasses import dataclass
from workbench.encoding import BYTE_ORDER_MARK
from workbench.suite.model import EXPECTATIONS, Case, derived_id
from workbench.suite.problems import Problem, is_within, place_text
from workbench.suite.render import Table
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.suite.suite_text import SpliceError, SuiteText
from workbench.suite.user_model import IN_TURNS


def with_unparsed(document: Document, parsed: SuiteFile) -> SuiteFile:
    """Build the suite file of a document in which some texts are not valid TOML.

    `parsed` is the suite file with the last valid versions of these texts."""
    parts = document.parts
    assert parts is not None
    remaining: list[Problem] = []
    for problem in parsed.problems:  # problems in an unparsed text refer to its last valid version
        if not any(is_in(problem, at) for at in document.unparsed):
            remaining.append(problem)
    if remaining:
        # If an unparsed text has become longer or shorter since its last valid version, move the problems below it.
        ends: dict[int, int] = {}
        grown: dict[int, int] = {}
        for at, text in document.unparsed.items():
            ends[at] = _end(parts, at)
            grown[at] = text.rstrip("\n").count("\n") - _lines(parts, at)
        remaining = [_moved(problem, ends, grown) for problem in remaining]
    problems = [_problem(document, parts, at, parsed.path) for at in document.unparsed]
    ordered = sorted((*problems, *remaining), key=lambda problem: problem.line or 0)
    return replace(parsed, suite=None, text=document.text, problems=tuple(ordered))


def _problem(document: Document, suite_text: SuiteText, at: int, path: Path) -> Problem:
    text = document.unparsed[at]
    first, position = 1, ""
    if at != HEAD:
        first, position = document.first_line(at), place_text(("cases", at))
    if Document.of(text).parts is None:
        problem = parse_suite(text, path).errors[0]
        return replace(problem, line=(problem.line or 1) + first - 1, where=position)
    try:
        _replaced(suite_text, at, text)
    except SpliceError as error:
        return Problem(path, first, position, str(error))
    raise AssertionError("an unparsed text is no block")
    raise AssertionError("an unparsed text is no block")


def _replaced(suite_text: SuiteText, at: int, text: str) -> SuiteText:
    if at == HEAD:
        return suite_text.with_head(text)
    return suite_text.with_case_text(at, text)


def is_in(problem: Problem, at: int) -> bool:
    """Return whether a problem is in the case with the index `at`, or, for `HEAD`, outside all cases."""
    if at == HEAD:
        return not problem.where.startswith("cases[")
    return is_within(problem.where, place_text(("cases", at)))


def _lines(suite_text: SuiteText, at: int) -> int:
    text = suite_text.between[0].rstrip() if at == HEAD else suite_text.blocks[at]
    return text.count("\n")


def _end(suite_text: SuiteText, at: int) -> int:
    before = 1 if at == HEAD else Document.of_parts(suite_text, "").first_line(at)
    return before + _lines(suite_text, at)


def _moved(problem: Problem, ends: dict[int, int], added_lines: dict[int, int]) -> Problem:
    if problem.line is None:
        return problem
    moved_by = sum(added_lines[at] for at, end in ends.items() if problem.line > end)
    return replace(problem, line=problem.line + moved_by)


HEAD = -1
"""The index of everything before the first case."""

_NOTHING_UNPARSED: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True)
class CaseOutline:
    """What the tree shows of a case.

    `key` is the case's id, made unique if several cases have it. `steps` has the expected tool of each step of a chain,
    or "" for a step that expects no tool."""

    index: int
    key: str
    id: str
    name: str
    tags: tuple[str, ...] = ()
    skip: str | None = None
    steps: tuple[str, ...] = ()
    is_row: bool = False
    """Whether this is a row of the case at `index`, where the row is edited."""


_Outlined = tuple[tuple[Table, ...], tuple[CaseOutline, ...]]
"""Tables of cases and their outlines."""


@dataclass(frozen=True)
class Document:
    """The text of a suite while it is edited.

    `parts` is the parsed suite. `unparsed` has the texts that are not valid TOML, by the index of their case. The
    settings before the first case have the index `HEAD`. For these texts, `parts` has the last valid versions. If the
    whole file is not valid TOML, `parts` is `None` and `whole` is its text."""

    parts: SuiteText | None
    whole: str = ""
    unparsed: Mapping[int, str] = field(default_factory=lambda: _NOTHING_UNPARSED)
    _known: _Outlined = field(default=((), ()), repr=False, compare=False)
    """Outlines of the previous document, reused for unchanged cases."""

    @classmethod
    def of(cls, text: str) -> Document:
        try:
            return cls(SuiteText.of(text))
        except SpliceError:
            return cls(None, text)

    @classmethod
    def of_parts(cls, suite_text: SuiteText | None, text: str, outlines: tuple[CaseOutline, ...] = ()) -> Document:
        """Return the document of a parsed text. `suite_text` is `None` if the text is not TOML.

        `outlines` are the outlines of its cases, if known."""
        if suite_text is None:
            return cls(None, text)
        return cls(suite_text, _known=(suite_text.cases, outlines))

    @property
    def is_sound(self) -> bool:
        """Whether the whole text is valid TOML."""
        return self.parts is not None and not self.unparsed

    @property
    def in_blocks(self) -> bool:
        """Whether each case, and the settings before the first case, can be edited as a separate block of text."""
        return self.parts is not None and (self.parts.in_blocks or not self.parts.cases)

    @cached_property
    def text(self) -> str:
        """The whole text, as it is written to disk."""
        if self.parts is None:
            return self.whole
        if not self.unparsed:
            return self.parts.text
        return "".join(self._pieces(self.parts))

    @cached_property
    def cases(self) -> tuple[CaseOutline, ...]:
        """The cases in the order of the file. A case that is not TOML keeps its last valid outline."""
        outlines = self._outlines
        if len({outline.id for outline in outlines}) == len(outlines):
            return outlines
        seen: dict[str, int] = {}
        unique = []
        for outline in outlines:
            count = seen[outline.id] = seen.get(outline.id, 0) + 1
            if count > 1:
                outline = replace(outline, key=f"{outline.id}\0{count}")
            unique.append(outline)
        return tuple(unique)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(chain.from_iterable(outline.tags for outline in self._outlines)))

    @cached_property
    def _outlines(self) -> tuple[CaseOutline, ...]:
        """The outlines of the cases. Their keys may not be unique yet."""
        # An edit changes one case. For each case whose table is the same object as before, the outline is reused.
        tables, known = self._known
        elsewhere: dict[int, CaseOutline] | None = None
        outlines: list[CaseOutline] = []
        for index, case in enumerate(self.parts.cases if self.parts is not None else ()):
            if index < len(known) and tables[index] is case:
                outlines.append(known[index])
                continue
            if elsewhere is None:
                elsewhere = dict(zip(map(id, tables), known, strict=False))
            outlines.append(_outline(index, case, elsewhere.get(id(case))))
        return tuple(outlines)

    def reuse(self, other: Document) -> None:
        """Reuse the outlines of another version of this document for unchanged cases."""
        if "_outlines" not in self.__dict__ and other.parts is not None:
            object.__setattr__(self, "_known", (other.parts.cases, other._outlines))

    def forget(self) -> None:
        """Drop cached values, which can be computed again. The undo history then needs less memory."""
        # Cached properties are in the `__dict__` of the frozen object.
        for held in (self, self.parts):
            if held is not None:
                held.__dict__.pop("text", None)
        for name in ("cases", "tags", "_outlines"):
            self.__dict__.pop(name, None)
        object.__setattr__(self, "_known", ((), ()))

    def table(self, index: int) -> Table:
        """Return the table of a case. For `HEAD`, return the table of everything outside the cases.

        For text that is not TOML, the last valid table is returned. Raises IndexError if there is no such case."""
        if self.parts is None:
            raise IndexError("a file that is not TOML has no cases")
        if index == HEAD:
            return self.parts.header
        return self.parts.cases[index]

    def block(self, index: int) -> str:
        r"""Return the text of a case, or of the settings for `HEAD`, with `\n` as line ends.

        Raises IndexError if there is no such case."""
        if index in self.unparsed:
            return self.unparsed[index]
        if self.parts is None:
            raise IndexError("a file that is not TOML has no cases")
        if index == HEAD:
            return self.parts.head
        return self.parts.block(index)

    def first_line(self, index: int) -> int:
        """Return the line of the file, from 1, where the block of a case begins.

        Raises IndexError if there is no such case."""
        if self.parts is None or not 0 <= index < len(self.parts.blocks):
            raise IndexError(f"there is no block {index}")
        if any(at < index for at in self.unparsed):
            above = "".join(islice(self._pieces(self.parts), 2 * index + 1))
        else:
            above = "".join((*self.parts.between[: index + 1], *self.parts.blocks[:index]))
        return 1 + above.count("\n")

    def with_block(self, index: int, text: str) -> Document:
        """Replace the text of a case, or of the settings for `HEAD`.

        Text that is not TOML, or not exactly one block, is stored unparsed. Raises IndexError if the case does not
        exist. Raises SpliceError if the cases are not in separate blocks, because the file can then only be edited as a
        whole."""
        if self.parts is None or not self.in_blocks:
            raise SpliceError("the cases of this file are not written as [[cases]] blocks: edit the whole file")
        unparsed = dict(self.unparsed)
        unparsed.pop(index, None)
        try:
            parts = _replaced(self.parts, index, text)
        except SpliceError:
            return self._of(self.parts, unparsed | {index: text})
        return self._of(parts, unparsed)

    def with_case(self, index: int, case: Table) -> Document:
        """Replace the table of a case.

        When the case gets its first expectation, the key `expect_nothing_yet` is removed. When the last expectation is
        removed, the key is added.

        Raises IndexError if there is no such case, and SpliceError for values that TOML lacks."""
        if expects_something(case):
            case = dict(case)
            case.pop("expect_nothing_yet", None)
        elif expects_something(self.table(index)) and "expect_nothing_yet" not in case and "steps" not in case:
            case = {**case, "expect_nothing_yet": True}
        return self._with(self._sound_parts().with_case(index, case), {index: None})

    def with_header(self, key: str, value: object) -> Document:
        """Replace a value of the settings.

        Raises SpliceError for values that TOML lacks. Also raises it while the settings are not valid TOML, because
        their text would be lost."""
        if HEAD in self.unparsed:
            raise SpliceError("the head of this suite is not TOML: correct it first, or undo it with Ctrl+Z")
        return self._with(self._sound_parts().with_header(key, value), {})

    def with_new_case(self, index: int, case: Table) -> Document:
        """Add a case. Raises IndexError for an index above the number of cases.

        Raises SpliceError for values that TOML lacks."""
        return self._inserted(index, self._sound_parts().with_new_case(index, case))

    def with_new_block(self, index: int, text: str) -> Document:
        """Add a case as text. Raises IndexError for an index above the number of cases.

        Raises SpliceError if the text is not one block of TOML."""
        return self._inserted(index, self._sound_parts().with_new_case_text(index, text))

    def without_case(self, index: int) -> Document:
        """Remove a case. Raises IndexError if there is no such case."""
        parts = self._sound_parts().without_case(index)
        # The index of each case after the removed case becomes smaller by one.
        places: dict[int, int | None] = {at: at - (at > index) for at in self.unparsed}
        places[index] = None
        document = self._with(parts, places)
        if HEAD in self.unparsed and not parts.cases:
            # If no case has a separate block, cases may be in the part before the first block.
            return document.with_block(HEAD, self.unparsed[HEAD])
        return document

    def with_case_moved(self, index: int, to: int) -> Document:
        """Move a case. Raises IndexError if one of the indices has no case."""
        parts = self._sound_parts().with_case_moved(index, to)
        # Unparsed texts are keyed by index, so they move with their cases.
        order = list(range(len(parts.cases)))
        order.remove(index)
        order.insert(to, index)
        places: dict[int, int | None] = {old: new for new, old in enumerate(order)}
        return self._with(parts, places)

    def only(self, indices: frozenset[int]) -> str:
        """Return the text with only these cases. They can then run while another case is being edited."""
        parts = self._sound_parts()
        # The blocks of all other cases become empty. The text between blocks stays.
        blocks = list(parts.blocks)
        for index in range(len(blocks)):
            if index not in indices:
                blocks[index] = ""
        return "".join(chain.from_iterable(zip_longest(parts.between, blocks, fillvalue="")))

    def _sound_parts(self) -> SuiteText:
        if self.parts is None:
            raise SpliceError("the file is not TOML: correct its text first")
        return self.parts

    def _inserted(self, index: int, suite_text: SuiteText) -> Document:
        return self._with(suite_text, {at: at + (at >= index) for at in self.unparsed})

    def _with(self, suite_text: SuiteText, places: Mapping[int, int | None]) -> Document:
        unparsed: dict[int, str] = {}
        for at, text in self.unparsed.items():
            to = places.get(at, at)
            if to is not None:
                unparsed[to] = text
        return self._of(suite_text, unparsed)

    def _of(self, suite_text: SuiteText, unparsed: Mapping[int, str]) -> Document:
        known = self._known
        if self.parts is not None and "_outlines" in self.__dict__:
            known = self.parts.cases, self._outlines
        return replace(self, parts=suite_text, unparsed=MappingProxyType(dict(unparsed)), _known=known)

    def _pieces(self, suite_text: SuiteText) -> Iterator[str]:
        """Yield the parts of the text in order: the settings, then each case and the text after it."""
        # Unparsed texts have the editor's line ends, which are replaced by the line ends of the file.
        line_end = "\r\n" if "\r\n" in suite_text.between[0] else "\n"
        yield self._head_written(suite_text, line_end) if HEAD in self.unparsed else suite_text.between[0]
        for index, (block, gap) in enumerate(zip(suite_text.blocks, suite_text.between[1:], strict=True)):
            unparsed = self.unparsed.get(index)
            yield block if unparsed is None else unparsed.replace("\n", line_end)
            yield gap

    def _head_written(self, suite_text: SuiteText, line_end: str) -> str:
        # The editor does not show the byte order mark and the blank lines before the first case, so they are added
        # here.
        before = suite_text.between[0]
        mark = before[: before.startswith(BYTE_ORDER_MARK)]
        ending = before[len(before.rstrip()) :] if suite_text.blocks else line_end
        return mark + self.unparsed[HEAD].rstrip("\n").replace("\n", line_end) + ending


def expects_something(case: Table) -> bool:
    """Return whether a case has an expectation. `case` need not be valid."""
    if any(case.get(key) for key in EXPECTATIONS):
        return True
    user = case.get("user")
    if isinstance(user, dict) and any(map(_expects_in_turn, _list(user.get("messages")))):
        return True
    return any(map(_tool, _list(case.get("steps"))))


def _expects_in_turn(message: object) -> bool:
    return isinstance(message, dict) and any(message.get(key) for key in IN_TURNS)


def outline_of(index: int, case: Case) -> CaseOutline:
    steps = tuple(step.tool or "" for step in case.steps)
    return CaseOutline(index, case.id, case.id, case.name, case.tags, case.skip, steps, case.each is not None)


def _outline(index: int, case: Table, known: CaseOutline | None) -> CaseOutline:
    """Return the outline of a case's table. `known` is the outline of the same table at another index, if any."""
    name = _text(case.get("name"))
    if known is not None and name:
        return CaseOutline(index, known.id, known.id, name, known.tags, known.skip, known.steps, known.is_row)
    # The table need not be valid. A value of the wrong type counts as missing.
    name = name or f"case {index + 1}"
    case_id = _text(case.get("id")) or derived_id(name)
    tags = tuple(tag for tag in _list(case.get("tags")) if isinstance(tag, str))
    steps = tuple(map(_tool, _list(case.get("steps"))))
    skip = case.get("skip")
    if not isinstance(skip, str):
        skip = None
    return CaseOutline(index, case_id, case_id, name, tags, skip, steps)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _tool(step: object) -> str:
    if isinstance(step, dict):
        return _text(step.get("tool"))
    return ""
