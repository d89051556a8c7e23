"""Edits the text of a suite case by case, and leaves everything else unchanged, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, zip_longest
from typing import TypeVar

from workbench.dataclasses import dataclass
from workbench.encoding import BYTE_ORDER_MARK, toml_of
from workbench.startup import late_pattern
from workbench.suite.positions import scan
from workbench.suite.render import Table, block_text, is_list_of_tables, suite_text
from workbench.suite.sections import gap_without, line_end_of, split_sections
from workbench.suite.toml_equality import toml_equal

# The text is split into the blocks of its cases and the text between them. A change of a case edits only its block, so
# the cost of a change does not grow with the file. A block begins with its header, ends before the next header, and is
# parsed separately. All blocks together must mean the same as each block alone. `SuiteText.checked` confirms this by
# reading the whole text before it is saved.

_ONE_BLOCK = "a case's text is one [[cases]] block, with its comments and the tables below it, and nothing else"
COMMENTS = late_pattern(r"(?:[ \t]*#[^\n]*\n)*")
"""Matches the comment lines directly above a header."""

_Item = TypeVar("_Item")


class SpliceError(ValueError):
    """A change of a suite's text is impossible. The message gives the reason and advice."""


@dataclass(frozen=True)
class SuiteText:
    """The text of a suite and its parsed content.

    Every change creates a new value, so undo can return to the old value.

    `blocks` are the texts of cases without a final line end. Comments directly above a case belong to the case.
    Comments between blank lines belong to no case. `between` is the text before each block and after the last block.
    `header` is the content outside the cases. Do not change its tables in place.

    `in_blocks` is false if cases are written in brackets or with other tables among them. Then `blocks` is empty, and
    each change edits the whole text. `kept_formatting` is false if a change had to rewrite more than it changed. The
    user should then see the difference before saving."""

    between: tuple[str, ...]
    blocks: tuple[str, ...]
    header: Table
    cases: tuple[Table, ...]
    in_blocks: bool
    kept_formatting: bool = True

    @classmethod
    def of(cls, text: str) -> SuiteText:
        """Split a text into cases and the text between them.

        Raises SpliceError if the text is not TOML."""
        return _taken_apart(text, _read(text, "the file"))

    @cached_property
    def text(self) -> str:
        return "".join(_interleaved(self.between, self.blocks))

    @property
    def document(self) -> Table:
        if self.cases:
            return {**self.header, "cases": list(self.cases)}
        return self.header

    def block(self, index: int) -> str:
        r"""Return the text of a case with `\n` as line ends.

        If the cases are not separate `[[cases]]` blocks, the case is written as a block. Raises IndexError if there is
        no such case."""
        self._must_have(index)
        if self.in_blocks:
            return self.blocks[index].replace("\r\n", "\n")
        return _block_of(self.cases[index])

    @property
    def head(self) -> str:
        r"""The text before the first case, or the whole text if cases are not in blocks.

        Line ends are `\n`, and there are no blank lines at the end."""
        return self.between[0].removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n").rstrip("\n")

    def with_head(self, text: str) -> SuiteText:
        """Replace the text before the first case.

        Raises SpliceError if the new text is not TOML, or if it contains a case although there are cases below it."""
        mark = self._mark
        if not self.in_blocks or not self.blocks:
            written = mark + text.rstrip("\n").replace("\n", self._line_end) + self._line_end
            return replace(SuiteText.of(written), kept_formatting=self.kept_formatting)
        gap = self.between[0][len(self.between[0].rstrip()) :] or self._line_end
        first = mark + text.rstrip("\n").replace("\n", self._line_end) + gap
        header = _read("".join((first, *self.between[1:])), "the part before the cases")
        if "cases" in header:
            raise SpliceError("the part before the cases contains a case: write it below, or as a new case")
        return replace(self, between=(first, *self.between[1:]), header=header)

    def with_case(self, index: int, case: Table) -> SuiteText:
        """Replace the content of one case. Unchanged parts keep their comments, order and formatting.

        Raises IndexError if there is no such case, and SpliceError for values that TOML lacks."""
        self._must_have(index)
        if toml_equal(self.cases[index], case):
            return self
        # Lazy import: it loads tomlkit, and most suites are only read.
        from workbench.suite.toml_edit import CannotEditError, edit_toml

        if not self.in_blocks:
            return self._with_cases((*self.cases[:index], case, *self.cases[index + 1 :]), keeps=True)
        written, keeps = self.blocks[index], True
        fresh = _block_of(case)
        try:
            block = edit_toml(written, {"cases": [self.cases[index]]}, {"cases": [case]}, self._line_end)
        except (CannotEditError, ValueError):
            # `fresh` already holds the values, so they can be written. Only the formatting is lost, and the comments
            # above the case stay.
            block, keeps = self._as_written_here(_comments_above(written) + fresh), False
        return self._with_block(index, block, case, keeps)

    def with_case_text(self, index: int, text: str) -> SuiteText:
        """Replace one case by a block of text from the user.

        Raises IndexError if there is no such case, and SpliceError if the text is not one block of TOML."""
        self._must_have(index)
        block, case = _one_block(text)
        if not self.in_blocks:
            return self._with_cases((*self.cases[:index], case, *self.cases[index + 1 :]), keeps=False)
        return self._with_block(index, self._as_written_here(block), case, keeps=True)

    def with_new_case(self, index: int, case: Table) -> SuiteText:
        """Insert a case at an index, from 0 to the number of cases.

        Raises IndexError for another index, and SpliceError for values that TOML lacks."""
        return self.with_new_case_text(index, _block_of(case))

    def with_new_case_text(self, index: int, text: str) -> SuiteText:
        """Insert a case from the user's text, or a case copied from a suite with its comments.

        The text is inserted right after the previous case. A new first case is inserted right before the next case.
        Raises IndexError for an index above the number of cases, and SpliceError if the text is not one block of
        TOML."""
        if not 0 <= index <= len(self.cases):
            raise IndexError(f"there is no place {index} among {len(self.cases)} cases")
        block, case = _one_block(text)
        cases = (*self.cases[:index], case, *self.cases[index:])
        if not self.in_blocks or "cases" in self.header:
            return self._with_cases(cases, keeps=True)
        blocks = (*self.blocks[:index], self._as_written_here(block), *self.blocks[index:])
        apart = self._line_end * 2
        if index:
            between = (*self.between[:index], apart, *self.between[index:])
        elif self.blocks:
            between = (self.between[0], apart, *self.between[1:])
        else:
            head = self.between[0].rstrip()
            if head.strip(BYTE_ORDER_MARK):
                head += apart
            between = (head, self._line_end)
        return replace(self, between=between, blocks=blocks, cases=cases)

    def without_case(self, index: int) -> SuiteText:
        """Remove one case and the comments directly above it.

        Raises IndexError if there is no such case."""
        self._must_have(index)
        cases = self.cases[:index] + self.cases[index + 1 :]
        if not self.in_blocks:
            return self._with_cases(cases, keeps=False)
        gap = gap_without(self.between[index], self.between[index + 1], at_end=index == len(cases))
        between = (*self.between[:index], gap, *self.between[index + 2 :])
        return replace(self, between=between, blocks=self.blocks[:index] + self.blocks[index + 1 :], cases=cases)

    def with_case_moved(self, index: int, to: int) -> SuiteText:
        """Move a case to the index `to`. The text between cases stays in place.

        Raises IndexError if one of the indices has no case."""
        self._must_have(index)
        self._must_have(to)
        cases = _moved(self.cases, index, to)
        if not self.in_blocks:
            if index == to:
                return self
            return self._with_cases(cases, keeps=False)
        return replace(self, blocks=_moved(self.blocks, index, to), cases=cases)

    def with_header(self, key: str, value: object) -> SuiteText:
        """Set a key outside the cases to a value, a table (`limits`) or a list of tables (`servers`).

        `None` removes the key. Tables that stay in a list keep their comments, even if they change places. Raises
        SpliceError for values that TOML lacks, and ValueError for the key `cases`."""
        if key == "cases":
            raise ValueError("`cases` cannot be set as a whole: change each case by itself")
        header = dict(self.header)
        if value is None:
            header.pop(key, None)
        else:
            header[key] = value
        if toml_equal(header, self.header):
            return self
        if not self.in_blocks:
            return self._rewritten(_with(header, list(self.cases)))
        # For the edit, a bare header stands for each case. The cases are therefore not read again and cannot change.
        # Nothing is added between two cases, so one header stands for a row of adjacent cases.
        count = len(self.cases)
        firsts = [at for at in range(count) if at == 0 or not self.between[at].isspace()]
        edges = [*firsts, count]
        empty: list[Table] = [{} for _ in firsts]
        skeleton_text = "".join(_interleaved([self.between[at] for at in edges], ["[[cases]]"] * len(empty)))
        skeleton = _taken_apart(skeleton_text, _with(self.header, empty))._rewritten(_with(header, empty))
        if not skeleton.in_blocks:
            return self._rewritten(_with(header, list(self.cases)))
        keeps = self.kept_formatting and skeleton.kept_formatting
        between = list(self.between)
        for at, text in zip(edges, skeleton.between, strict=True):
            between[at] = text
        return replace(self, between=tuple(between), header=header, kept_formatting=keeps)

    def checked(self) -> SuiteText:
        """Compare the text with its content, and return a value that is ready to be saved.

        Call this before every save. If text and content differ, the text is rewritten from the content, and
        `kept_formatting` is false."""
        if _says(self.text, self.document):
            return self
        return self._from_scratch(self.document)

    @property
    def _mark(self) -> str:
        if self.text.startswith(BYTE_ORDER_MARK):
            return BYTE_ORDER_MARK
        return ""

    @property
    def _line_end(self) -> str:
        return line_end_of(self.between[0] + "".join(self.blocks[:1]))

    def _as_written_here(self, block: str) -> str:
        return block.replace("\n", self._line_end)

    def _must_have(self, index: int) -> None:
        if not 0 <= index < len(self.cases):
            raise IndexError(f"there is no case {index} among {len(self.cases)}")

    def _with_block(self, index: int, block: str, case: Table, keeps: bool) -> SuiteText:
        blocks = (*self.blocks[:index], block, *self.blocks[index + 1 :])
        cases = (*self.cases[:index], case, *self.cases[index + 1 :])
        return replace(self, blocks=blocks, cases=cases, kept_formatting=self.kept_formatting and keeps)

    def _with_cases(self, cases: tuple[Table, ...], keeps: bool) -> SuiteText:
        if not isinstance(self.header.get("cases", []), list):
            raise SpliceError("`cases` is not a list of tables: write [[cases]], with two brackets on each side")
        header = dict(self.header)
        header.pop("cases", None)
        changed = self._rewritten(_with(header, list(cases)))
        return replace(changed, kept_formatting=changed.kept_formatting and keeps)

    def _rewritten(self, document: Table) -> SuiteText:
        from workbench.suite.toml_edit import CannotEditError, edit_toml

        mark = self._mark
        try:
            text = edit_toml(self.text.removeprefix(mark), self.document, document, self._line_end)
        except CannotEditError:
            return self._from_scratch(document)
        except ValueError as error:
            raise SpliceError(str(error)) from error
        return replace(_taken_apart(mark + text, document), kept_formatting=self.kept_formatting)

    def _from_scratch(self, document: Table) -> SuiteText:
        try:
            text = suite_text(document)
        except ValueError as error:
            raise SpliceError(str(error)) from error
        if not toml_equal(_read(text, "the suite written anew"), document):
            raise SpliceError("the suite cannot be written as TOML: edit it in a text editor")
        return replace(_taken_apart(self._as_written_here(text), document), kept_formatting=False)


def _interleaved(between: Sequence[str], blocks: Sequence[str]) -> Iterator[str]:
    return chain.from_iterable(zip_longest(between, blocks, fillvalue=""))


def _with(header: Table, cases: list[Table]) -> Table:
    if cases:
        return {**header, "cases": cases}
    return header


def _moved(items: tuple[_Item, ...], index: int, to: int) -> tuple[_Item, ...]:
    others = items[:index] + items[index + 1 :]
    return (*others[:to], items[index], *others[to:])


def _read(text: str, description: str) -> Table:
    try:
        return toml_of(text)
    except (ValueError, RecursionError) as error:
        raise SpliceError(f"{description} is not valid TOML; correct the text first: {error}") from error


def places_of_blocks(text: str, header: Table | None) -> tuple[tuple[int, int], ...]:
    """Return start and end of each case's block in a text, as indices of characters.

    Returns an empty tuple if the cases are not in blocks. The blank lines below a case belong to its block. `header` is
    the content of the text outside the cases. Without it, the text is parsed."""
    if header is None:
        try:
            header = _taken_apart(text, _read(text, "the file")).header
        except SpliceError:
            return ()
    parts = _blocks(text)
    if parts is None or not _says("".join(parts[0]), header):
        return ()
    between, blocks = parts
    places = []
    end = 0
    for before, block, after in zip(between, blocks, between[1:], strict=False):
        first = end + len(before)
        end = first + len(block)
        places.append((first, end + len(after) - len(after.lstrip())))
    return tuple(places)


def _taken_apart(text: str, document: Table) -> SuiteText:
    written = document.get("cases")
    cases: tuple[Table, ...] = ()
    header = document
    if is_list_of_tables(written):
        cases = tuple(written)
        header = {key: value for key, value in document.items() if key != "cases"}
    parts = _blocks(text)
    if parts is not None and len(parts[1]) == len(cases) and _says("".join(parts[0]), header):
        return SuiteText(tuple(parts[0]), tuple(parts[1]), header, cases, in_blocks=True)
    return SuiteText((text,), (), header, cases, in_blocks=False)


def _blocks(text: str) -> tuple[list[str], list[str]] | None:
    """Return the text between the blocks of cases, and the blocks.

    Return `None` if the tables of a case are not adjacent, or if the lines of the text are not known."""
    between, blocks = [text[: text.startswith(BYTE_ORDER_MARK)]], list[str]()
    gap = ""
    inside = False
    try:
        sections = split_sections(text.removeprefix(BYTE_ORDER_MARK))
    except ValueError:
        return None
    for section in sections:
        of_case = section.place[:1] == ("cases",)
        content = section.lead + section.body
        if of_case and section.place == ("cases", len(blocks)):
            between[-1] += gap
            blocks.append(content)
            between.append("")
        elif of_case and inside and section.place[:2] == ("cases", len(blocks) - 1):
            blocks[-1] += gap + content
        elif of_case:
            return None
        else:
            between[-1] += gap + content
        inside = of_case
        gap = section.gap
    between[-1] += gap
    return between, blocks


def _says(text: str, document: Table) -> bool:
    try:
        return toml_equal(toml_of(text), document)
    except ValueError:
        return False


def _block_of(case: Table) -> str:
    try:
        text = block_text(("cases",), case, of_array=True)
    except ValueError as error:
        raise SpliceError(str(error)) from error
    if not _says(text, {"cases": [case]}):
        raise SpliceError("the case cannot be written as TOML: edit it in a text editor")
    return text


def _comments_above(block: str) -> str:
    found = COMMENTS.match(block)
    if found is None:
        return ""
    return found[0].replace("\r\n", "\n")


def _one_block(text: str) -> tuple[str, Table]:
    block = text.replace("\r\n", "\n").strip("\n")
    document = _read(block, "the case's text")
    cases = document.get("cases")
    if document.keys() != {"cases"} or not is_list_of_tables(cases) or len(cases) != 1:
        raise SpliceError(_ONE_BLOCK)
    positions = scan(block)
    if not positions.headers or positions.headers[0].place != ("cases", 0) or positions.head_end:
        raise SpliceError(_ONE_BLOCK)
    return block, cases[0]
