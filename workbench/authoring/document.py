"""A suite's text while it is edited: an immutable value, which may hold text that is not TOML at the moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice, zip_longest
from types import MappingProxyType

from workbench.suite.model import Case, derived_id
from workbench.suite.render import Table
from workbench.suite.splice import SpliceError, SuiteText

HEAD = -1
"""Stands for what a file says before its first case, where a case's index is meant."""

_BYTE_ORDER_MARK = "\ufeff"
_NOTHING_LOOSE: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True)
class CaseOutline:
    """What the tree shows of a case. `key` is its id, told apart from equal ids before it; `steps` names each step of a
    chain by its tool, empty where none is expected."""

    index: int
    key: str
    id: str
    name: str
    tags: tuple[str, ...] = ()
    skip: str | None = None
    steps: tuple[str, ...] = ()


_Outlined = tuple[tuple[Table, ...], tuple[CaseOutline, ...]]
"""Tables of cases, and their outlines."""


@dataclass(frozen=True)
class Document:
    """A suite's text.

    `loose` holds the texts of cases (by index) and of the head (`HEAD`) that are not TOML; `parts` says the rest, and
    what they last said. `parts` is `None` when the file as a whole is not TOML: then `whole` is its text.
    """

    parts: SuiteText | None
    whole: str = ""
    loose: Mapping[int, str] = field(default_factory=lambda: _NOTHING_LOOSE)
    _known: _Outlined = field(default=((), ()), repr=False, compare=False)
    """Of the document before: outlines that need not be made again."""

    @classmethod
    def of(cls, text: str) -> Document:
        """Take a text as it is, whatever it is."""
        try:
            return cls(SuiteText.of(text))
        except SpliceError:
            return cls(None, text)

    @classmethod
    def of_parts(cls, parts: SuiteText | None, text: str, outlines: tuple[CaseOutline, ...] = ()) -> Document:
        """Take a text that was taken apart already; `None` stands for one that is not TOML. `outlines` are those of its
        cases, where they are known."""
        return cls(None, text) if parts is None else cls(parts, _known=(parts.cases, outlines))

    @property
    def is_sound(self) -> bool:
        """Whether all of it is TOML."""
        return self.parts is not None and not self.loose

    @property
    def in_blocks(self) -> bool:
        """Whether each case, and the head, can be edited as text by itself."""
        return self.parts is not None and (self.parts.in_blocks or not self.parts.cases)

    @cached_property
    def text(self) -> str:
        """The whole text, as it goes to the disk."""
        if self.parts is None:
            return self.whole
        if not self.loose:
            return self.parts.text
        return "".join(self._pieces(self.parts))

    @cached_property
    def cases(self) -> tuple[CaseOutline, ...]:
        """The cases in the order of the file; a case whose text is not TOML as it was before."""
        outlines = self._outlines
        if len({outline.id for outline in outlines}) == len(outlines):
            return outlines
        seen: dict[str, int] = {}
        told_apart = []
        for outline in outlines:
            count = seen[outline.id] = seen.get(outline.id, 0) + 1
            told_apart.append(outline if count == 1 else replace(outline, key=f"{outline.id}\0{count}"))
        return tuple(told_apart)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The tags of all cases, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(outline.tags for outline in self._outlines)))

    @cached_property
    def _outlines(self) -> tuple[CaseOutline, ...]:
        """The outlines before equal ids are told apart."""
        tables, known = self._known
        return tuple(
            known[index] if index < len(known) and tables[index] is case else _outline(index, case)
            for index, case in enumerate(self.parts.cases if self.parts is not None else ())
        )

    def forget(self) -> None:
        """Let go of all that can be found out again: to be kept in a history."""
        for held in (self, self.parts):
            if held is not None:
                held.__dict__.pop("text", None)
        for name in ("cases", "tags", "_outlines"):
            self.__dict__.pop(name, None)
        object.__setattr__(self, "_known", ((), ()))

    def table(self, index: int) -> Table:
        """What a case says (`HEAD`: everything beside the cases); of a loose one, what it said last.

        Raises IndexError when there is no such case.
        """
        if self.parts is None:
            raise IndexError("a file that is not TOML has no cases")
        return self.parts.header if index == HEAD else self.parts.cases[index]

    def block(self, index: int) -> str:
        """A case's text, or the head's, with `\\n` as line ends, loose or not. Raises IndexError."""
        if index in self.loose:
            return self.loose[index]
        if self.parts is None:
            raise IndexError("a file that is not TOML has no cases")
        if index == HEAD:
            return self.parts.head
        return self.parts.block(index)

    def first_line(self, index: int) -> int:
        """The line of the file, from 1, at which a case's block begins. Raises IndexError."""
        if self.parts is None or not 0 <= index < len(self.parts.blocks):
            raise IndexError(f"there is no block {index}")
        if any(at < index for at in self.loose):
            above = "".join(islice(self._pieces(self.parts), 2 * index + 1))
        else:
            above = "".join((*self.parts.between[: index + 1], *self.parts.blocks[:index]))
        return 1 + above.count("\n")

    def with_text(self, text: str) -> Document:
        """Another text for all of it."""
        return Document.of(text)

    def with_block(self, index: int, text: str) -> Document:
        """Another text for a case or the head: kept loose when it is not TOML, or not one block.

        Raises IndexError when there is no such case, and SpliceError where cases do not stand in blocks: such a file is
        edited as a whole.
        """
        if self.parts is None or not self.in_blocks:
            raise SpliceError("the cases of this file do not stand in [[cases]] blocks: edit it as a whole")
        loose = {at: other for at, other in self.loose.items() if at != index}
        try:
            parts = self.parts.with_head(text) if index == HEAD else self.parts.with_case_text(index, text)
        except SpliceError:
            return self._of(self.parts, loose | {index: text})
        return self._of(parts, loose)

    def with_case(self, index: int, case: Table) -> Document:
        """A case that says something else; raises as `SuiteText.with_case`."""
        return self._with(self._sound_parts().with_case(index, case), {index: None})

    def with_header(self, key: str, value: object) -> Document:
        """Something beside the cases that says something else; raises as `SuiteText.with_header`, and while the head is
        not TOML: what is typed there would be lost."""
        if HEAD in self.loose:
            raise SpliceError("the head of this suite is not TOML: mend it first, or Ctrl+Z takes it back")
        return self._with(self._sound_parts().with_header(key, value), {})

    def with_new_case(self, index: int, case: Table) -> Document:
        """A case more; raises as `SuiteText.with_new_case`."""
        return self._inserted(index, self._sound_parts().with_new_case(index, case))

    def with_new_block(self, index: int, text: str) -> Document:
        """A case more, as text; raises as `SuiteText.with_new_case_text`."""
        return self._inserted(index, self._sound_parts().with_new_case_text(index, text))

    def without_case(self, index: int) -> Document:
        """One case less; raises IndexError."""
        parts = self._sound_parts().without_case(index)
        document = self._with(parts, {at: None if at == index else at - (at > index) for at in self.loose})
        # A head may hold cases when there are no others.
        return document.with_block(HEAD, self.loose[HEAD]) if HEAD in self.loose and not parts.cases else document

    def with_case_moved(self, index: int, to: int) -> Document:
        """A case at another place; raises IndexError."""
        parts = self._sound_parts().with_case_moved(index, to)
        order = [at for at in range(len(parts.cases)) if at != index]
        order.insert(to, index)
        places = {old: new for new, old in enumerate(order)} | {HEAD: HEAD}
        return self._with(parts, {at: places[at] for at in self.loose})

    def only(self, indices: frozenset[int]) -> str:
        """The text with no other cases than these, to run what is sound while something else is being typed."""
        parts = self._sound_parts()
        blocks = (block if index in indices else "" for index, block in enumerate(parts.blocks))
        return "".join(chain.from_iterable(zip_longest(parts.between, blocks, fillvalue="")))

    def _sound_parts(self) -> SuiteText:
        if self.parts is None:
            raise SpliceError("the file is not TOML: mend its text first")
        return self.parts

    def _inserted(self, index: int, parts: SuiteText) -> Document:
        return self._with(parts, {at: at + (at >= index) for at in self.loose})

    def _with(self, parts: SuiteText, places: Mapping[int, int | None]) -> Document:
        loose: dict[int, str] = {}
        for at, text in self.loose.items():
            to = places.get(at, at)
            if to is not None:
                loose[to] = text
        return self._of(parts, loose)

    def _of(self, parts: SuiteText, loose: Mapping[int, str]) -> Document:
        known = (self.parts.cases, self._outlines) if self.parts is not None else self._known
        return replace(self, parts=parts, loose=MappingProxyType(dict(loose)), _known=known)

    def _pieces(self, parts: SuiteText) -> Iterator[str]:
        """What makes up the text: the head, the first block, what stands behind it, and so on."""
        line_end = "\r\n" if "\r\n" in parts.between[0] else "\n"
        yield parts.between[0] if HEAD not in self.loose else self._head_written(parts, line_end)
        for index, (block, gap) in enumerate(zip(parts.blocks, parts.between[1:], strict=True)):
            loose = self.loose.get(index)
            yield block if loose is None else loose.replace("\n", line_end)
            yield gap

    def _head_written(self, parts: SuiteText, line_end: str) -> str:
        before = parts.between[0]
        mark = before[: before.startswith(_BYTE_ORDER_MARK)]
        kept = before[len(before.rstrip()) :] if parts.blocks else line_end
        return mark + self.loose[HEAD].rstrip("\n").replace("\n", line_end) + kept


def outline_of(index: int, case: Case) -> CaseOutline:
    """The outline of a case that was read."""
    steps = tuple(step.tool or "" for step in case.steps)
    return CaseOutline(index, case.id, case.id, case.name, case.tags, case.skip, steps)


def _outline(index: int, case: Table) -> CaseOutline:
    name = case.get("name")
    name = name if isinstance(name, str) and name else f"case {index + 1}"
    written = case.get("id")
    case_id = written if isinstance(written, str) and written else derived_id(name)
    tags, steps, skip = case.get("tags"), case.get("steps"), case.get("skip")
    return CaseOutline(
        index,
        case_id,
        case_id,
        name,
        tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
        skip if isinstance(skip, str) else None,
        tuple(_tool(step) for step in steps) if isinstance(steps, list) else (),
    )


def _tool(step: object) -> str:
    tool = step.get("tool") if isinstance(step, dict) else None
    return tool if isinstance(tool, str) else ""
