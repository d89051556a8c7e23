"""A suite's text as a value that is changed case by case, everything that was not edited staying byte for byte.

The text is cut into the blocks of its cases and the text between them. A case is changed in its block alone, so that
the cost does not grow with the file. A block opens with its own header and ends before another, and is parsed by itself
to check it. So the parts together mean what they mean apart. `SuiteText.checked` reads the whole once more.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, zip_longest
from typing import TypeVar

from workbench.dataclasses import dataclass
from workbench.startup import late_pattern
from workbench.suite.positions import scan
from workbench.suite.render import Table, block_text, is_list_of_tables, suite_text
from workbench.suite.sameness import same
from workbench.suite.sections import cut, gap_without, line_end_of

_BYTE_ORDER_MARK = "\ufeff"
_ONE_BLOCK = "a case's text is one [[cases]] block, with its comments and the tables below it, and nothing else"
_COMMENTS = late_pattern(r"(?:[ \t]*#[^\n]*\n)*")

_Item = TypeVar("_Item")


class SpliceError(ValueError):
    """A suite's text cannot be changed as asked.

    The message names the reason and the way out, in one sentence."""


@dataclass(frozen=True)
class SuiteText:
    """A suite's text and its content.

    Every change makes a new value; the old one is the undo.

    `blocks` are the cases' texts, without a final line end: comments directly above a case belong to it, a comment
    between blank lines does not. `between` is the text before each block and after the last one. `header` is the
    content outside the cases. None of the tables may be changed in place.

    `in_blocks` is false where cases are written in brackets or with other tables among them: `blocks` is empty then,
    and each change edits the whole file. `kept_formatting` is false once a change had to rewrite more than it meant:
    show the difference before saving.
    """

    between: tuple[str, ...]
    blocks: tuple[str, ...]
    header: Table
    cases: tuple[Table, ...]
    in_blocks: bool
    kept_formatting: bool = True

    @classmethod
    def of(cls, text: str) -> SuiteText:
        """Split a text.

        Raises SpliceError when it is not TOML: such a text is edited as a whole."""
        return _taken_apart(text, _read(text, "the file"))

    @cached_property
    def text(self) -> str:
        """The whole text, as it is saved."""
        return "".join(_interleaved(self.between, self.blocks))

    @property
    def document(self) -> Table:
        """The content of the text, as `tomllib` reads it."""
        if self.cases:
            return {**self.header, "cases": list(self.cases)}
        return self.header

    def block(self, index: int) -> str:
        """Return the text of a case with `\n` as line ends, as it would be written if cases are not in blocks.

        Raises IndexError when there is no such case.
        """
        self._must_have(index)
        if self.in_blocks:
            return self.blocks[index].replace("\r\n", "\n")
        return _block_of(self.cases[index])

    @property
    def head(self) -> str:
        """The text before the first case, or all of it if cases are not in blocks.

        It has `\n` as line ends, and no trailing blank lines."""
        return self.between[0].removeprefix(_BYTE_ORDER_MARK).replace("\r\n", "\n").rstrip("\n")

    def with_head(self, text: str) -> SuiteText:
        """Replace the text before the first case.

        Raises SpliceError when it is not TOML, or contains cases where there are some below.
        """
        mark = _BYTE_ORDER_MARK if self.text.startswith(_BYTE_ORDER_MARK) else ""
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
        """Change one case to `case`, keeping the comments, order and formatting of its unchanged parts.

        Raises IndexError when there is no such case, and SpliceError for values that TOML lacks."""
        self._must_have(index)
        if same(self.cases[index], case):
            return self
        from workbench.suite.toml_edit import CannotEditError, edited  # imports tomlkit, not needed to look at a suite

        if not self.in_blocks:
            return self._with_cases((*self.cases[:index], case, *self.cases[index + 1 :]), keeps=True)
        written, keeps = self.blocks[index], True
        fresh = _block_of(case)
        try:
            block = edited(written, {"cases": [self.cases[index]]}, {"cases": [case]}, self._line_end)
        except (CannotEditError, ValueError):  # regarding values, too, only tomlkit can have failed: `fresh` holds them
            block, keeps = self._as_written_here(_comments_above(written) + fresh), False
        return self._with_block(index, block, case, keeps)

    def with_case_text(self, index: int, text: str) -> SuiteText:
        """Replace one case by a block that a person wrote.

        Raises IndexError when there is no such case, and SpliceError when the text is not one block of TOML.
        """
        self._must_have(index)
        block, case = _one_block(text)
        if not self.in_blocks:
            return self._with_cases((*self.cases[:index], case, *self.cases[index + 1 :]), keeps=False)
        return self._with_block(index, self._as_written_here(block), case, keeps=True)

    def with_new_case(self, index: int, case: Table) -> SuiteText:
        """Add a case with this index (0 to the number of cases), written as a person would.

        Raises IndexError for an impossible index, and SpliceError for values that TOML lacks.
        """
        return self.with_new_case_text(index, _block_of(case))

    def with_new_case_text(self, index: int, text: str) -> SuiteText:
        """Add a case as a person wrote it, which also copies one with its comments, from another suite too.

        It is placed directly behind the case before it; a first one directly before the next. Raises IndexError for an
        impossible index, and SpliceError when the text is not one block of TOML.
        """
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
            between = (head + apart if head.strip(_BYTE_ORDER_MARK) else head, self._line_end)
        return replace(self, between=between, blocks=blocks, cases=cases)

    def without_case(self, index: int) -> SuiteText:
        """Remove one case, with the comments directly above it.

        Raises IndexError when there is no such case."""
        self._must_have(index)
        cases = self.cases[:index] + self.cases[index + 1 :]
        if not self.in_blocks:
            return self._with_cases(cases, keeps=False)
        gap = gap_without(self.between[index], self.between[index + 1], at_end=index == len(cases))
        between = (*self.between[:index], gap, *self.between[index + 2 :])
        return replace(self, between=between, blocks=self.blocks[:index] + self.blocks[index + 1 :], cases=cases)

    def with_case_moved(self, index: int, to: int) -> SuiteText:
        """Move a case, which then has the index `to`; the text between cases stays where it is.

        Raises IndexError when one of the two is no case.
        """
        self._must_have(index)
        self._must_have(to)
        cases = _moved(self.cases, index, to)
        if not self.in_blocks:
            if index == to:
                return self
            return self._with_cases(cases, keeps=False)
        return replace(self, blocks=_moved(self.blocks, index, to), cases=cases)

    def with_header(self, key: str, value: object) -> SuiteText:
        """Change something outside the cases: a key's value, a table (`limits`), or a list of tables (`servers`).

        `None` removes it. Tables that stay in a list keep their comments, wherever they are now. Raises SpliceError for
        values that TOML lacks, and ValueError for `cases`."""
        if key == "cases":
            raise ValueError("cases are changed one by one")
        header = {}
        for name, inner in self.header.items():
            if name != key or value is not None:
                header[name] = inner
        if value is not None:
            header[key] = value
        if same(header, self.header):
            return self
        if not self.in_blocks:
            return self._rewritten({**header, "cases": list(self.cases)} if self.cases else header)
        # Each case by its header alone: the cases need not be read again, and nothing can touch them.
        empty: list[Table] = [{} for _ in self.cases]
        skeleton_text = "".join(_interleaved(self.between, ["[[cases]]"] * len(empty)))
        skeleton = _taken_apart(skeleton_text, _with(self.header, empty))._rewritten(_with(header, empty))
        if not skeleton.in_blocks:
            return self._rewritten(_with(header, list(self.cases)))
        keeps = self.kept_formatting and skeleton.kept_formatting
        return replace(self, between=skeleton.between, header=header, kept_formatting=keeps)

    def checked(self) -> SuiteText:
        """Return the value after reading the whole text and comparing it with the document; call it before every save.

        If they differ, the text is rewritten from the document, and `kept_formatting` is false.
        """
        try:
            if same(tomllib.loads(self.text.removeprefix(_BYTE_ORDER_MARK)), self.document):
                return self
        except ValueError:
            pass  # rewritten below, as when the content differs
        return self._from_scratch(self.document)

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
        header = {}
        for key, value in self.header.items():
            if key != "cases":
                header[key] = value
        changed = self._rewritten(_with(header, list(cases)))
        return replace(changed, kept_formatting=changed.kept_formatting and keeps)

    def _rewritten(self, document: Table) -> SuiteText:
        """Edit the whole file to hold another document."""
        from workbench.suite.toml_edit import CannotEditError, edited

        mark = _BYTE_ORDER_MARK if self.text.startswith(_BYTE_ORDER_MARK) else ""
        try:
            text = edited(self.text.removeprefix(mark), self.document, document, self._line_end)
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
        if not same(_read(text, "the suite written anew"), document):
            raise SpliceError("the suite cannot be written as TOML: edit it in a text editor")
        return replace(_taken_apart(self._as_written_here(text), document), kept_formatting=False)


def _interleaved(between: Sequence[str], blocks: Sequence[str]) -> Iterator[str]:
    return chain.from_iterable(zip_longest(between, blocks, fillvalue=""))


def _with(header: Table, cases: list[Table]) -> Table:
    return {**header, "cases": cases} if cases else header


def _moved(items: tuple[_Item, ...], index: int, to: int) -> tuple[_Item, ...]:
    others = items[:index] + items[index + 1 :]
    return (*others[:to], items[index], *others[to:])


def _read(text: str, what: str) -> Table:
    try:
        return tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK))
    except (ValueError, RecursionError) as error:
        raise SpliceError(f"{what} is not valid TOML; correct the text first: {error}") from error


def _taken_apart(text: str, document: Table) -> SuiteText:
    written = document.get("cases")
    cases: tuple[Table, ...] = tuple(written) if is_list_of_tables(written) else ()
    header = {key: value for key, value in document.items() if key != "cases"} if cases else document
    parts = _blocks(text)
    if parts is not None and len(parts[1]) == len(cases) and _says("".join(parts[0]), header):
        return SuiteText(tuple(parts[0]), tuple(parts[1]), header, cases, in_blocks=True)
    return SuiteText((text,), (), header, cases, in_blocks=False)


def _blocks(text: str) -> tuple[list[str], list[str]] | None:
    """Return the text between the blocks of cases, and the blocks.

    It is `None` if a case is not all in one place, or the text cannot be cut."""
    between, blocks = [text[: text.startswith(_BYTE_ORDER_MARK)]], list[str]()
    gap = ""
    inside = False
    try:
        sections = cut(text.removeprefix(_BYTE_ORDER_MARK))
    except ValueError:
        return None  # edited as a whole, which says so
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
        return same(tomllib.loads(text.removeprefix(_BYTE_ORDER_MARK)), document)
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
    found = _COMMENTS.match(block)
    return found[0].replace("\r\n", "\n") if found else ""


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
