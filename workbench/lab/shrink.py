"""Delta debugging of a failing case: find a smaller case that still fails in the same way.

The content of a suite with one case is divided into pieces. Pieces are tools, prior messages, and sentences of the
system prompt, of descriptions and of the request. The words of the request are pieces, too. Halves, then quarters, then
single pieces are removed as long as the case still fails, as in Zeller's and Hildebrandt's `ddmin` (2002). The result
is 1-minimal: if any single remaining piece is removed, the case passes or fails in another way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import field
from functools import partial
from typing import Any

from workbench.analysis.causes import Cause, Subject
from workbench.analysis.failures import failures_of
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.suite.model import Case

Document = dict[str, Any]
"""The content of a suite with one case, as parsed TOML."""

FailureMode = tuple[Cause, Subject | None]
"""How a run fails: its main cause, and the tool or argument concerned."""

_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")

_BY_SILENCE: frozenset[Cause] = frozenset({"gave up", "missing call", "content"})
"""Causes with which a case fails even without a request. If a case fails for such a reason, its request is not
shortened."""


class OutOfRunsError(Exception):
    """Shrinking has used all of its runs."""


@dataclass(frozen=True)
class RemovedPieces:
    """The removed pieces of one kind. `of` is the number of pieces of this kind before shrinking."""

    kind: str
    pieces: tuple[str, ...]
    of: int


@dataclass
class ShrinkResult:
    """The smallest failing document that was found, and the removed pieces.

    `complete` is false if the limit of runs ended the search, so that more pieces might be removable."""

    document: Document
    dropped: list[RemovedPieces] = field(default_factory=list)
    complete: bool = True


_KeepPieces = Callable[[Document, Sequence[Any]], Document]
_Kind = tuple[str, Callable[[Document], list[Any]], _KeepPieces]
"""A kind of piece: name, a function that lists a document's pieces, and a function that keeps only some pieces."""


def failure_mode_of(result: RunResult, case: Case) -> FailureMode | None:
    """Return how a run fails (its main cause, and the tool or argument concerned), or `None` if it does not fail."""
    failed = failures_of([(result, case)]).runs
    if not failed:
        return None
    first = failed[0].symptoms[0]
    return first.cause, first.subject


def shrink(
    document: Document, failure_mode: FailureMode, tool_names: Sequence[str], fails: Callable[[Document], bool]
) -> ShrinkResult:
    """Remove every piece of a suite document that its case does not need in order to fail.

    `failure_mode` is how the case must still fail. `tool_names` names the tools that its runs were offered. `fails`
    makes a run and returns whether a document still fails in this way. If `fails` raises OutOfRunsError, the search
    ends with the smallest document so far."""
    shrunk = ShrinkResult(document)
    # Each kind of piece begins with the document that the kinds before it have left.
    for kind, pieces, put in _kinds(document, failure_mode, tool_names):
        found = pieces(shrunk.document)
        kept, shrunk.complete = _minimal_pieces(found, partial(_fails_with, shrunk.document, put, fails))
        if len(kept) < len(found):
            shrunk.document = put(shrunk.document, kept)
            # Pieces are compared by identity, because a word or sentence may occur several times.
            kept_ids = set(map(id, kept))
            dropped = [_shown(piece) for piece in found if id(piece) not in kept_ids]
            shrunk.dropped.append(RemovedPieces(kind, tuple(dropped), len(found)))
        if not shrunk.complete:
            break
    return shrunk


def _fails_with(document: Document, put: _KeepPieces, fails: Callable[[Document], bool], pieces: Sequence[Any]) -> bool:
    return fails(put(document, pieces))


def _minimal_pieces(pieces: Sequence[Any], fails: Callable[[list[Any]], bool]) -> tuple[list[Any], bool]:
    kept = list(pieces)
    size = max(1, (len(kept) + 1) // 2)
    try:
        # If the case fails without any piece of this kind, one run is enough.
        if kept and fails([]):
            return [], True
        while kept:
            before, at = len(kept), 0
            while at < len(kept):
                rest = [*kept[:at], *kept[at + size :]]
                if rest and fails(rest):
                    kept = rest
                else:
                    at += size
            # The removal of one piece may make the removal of another piece possible. The search therefore ends only
            # after a pass in which no single piece could be removed.
            if size == 1 and len(kept) == before:
                break
            size = max(1, size // 2)
    except OutOfRunsError:
        return kept, False
    return kept, True


def _kinds(document: Document, failure_mode: FailureMode, tool_names: Sequence[str]) -> Iterator[_Kind]:
    yield "tools", lambda _: list(tool_names), _with_tools
    yield "prior messages", lambda each: list(_case(each).get("messages", ())), _with_messages
    yield "sentences of the system prompt", _sentences_of_system, _with_system
    yield "sentences of descriptions", _sentences_of_tools, _with_descriptions
    if failure_mode[0] not in _BY_SILENCE and isinstance(_case(document).get("user"), str):
        yield "sentences of the request", lambda each: _split(_case(each)["user"]), _with_request
        yield "words of the request", lambda each: [*map(_Text, _case(each)["user"].split())], _with_request


class _Text(str):
    """A piece of text that is compared by identity.

    Equal strings may be the same object, but equal sentences or words in a document are different pieces."""

    __slots__ = ()


def _split(text: str) -> list[Any]:
    return [_Text(part) for part in _SENTENCES.split(text) if part.strip()]


def _shown(piece: Any) -> str:
    if isinstance(piece, tuple):
        return f"{piece[0]['name']}: {piece[1]}"
    if isinstance(piece, dict):
        return f"{piece.get('role')}: {piece.get('content', '')}"
    return str(piece)


def _case(document: Document) -> Document:
    case: Document = document["cases"][0]
    return case


def _written(document: Document) -> list[Document]:
    return [*document.get("tools", ()), *_case(document).get("tools", ())]


def _with_tools(document: Document, names: Sequence[Any]) -> Document:
    made = deepcopy(document)
    kept, case = set(names), _case(made)
    dropped = {tool["name"] for tool in _written(made)} - kept
    for table in (made, case):
        for key, name in (("tools", "name"), ("mocks", "tool")):
            if key in table:
                table[key] = [each for each in table[key] if each[name] not in dropped]
        if "answers" in table:
            table["answers"] = [each for each in table["answers"] if each.get("tool") not in dropped]
    # The suite does not define the tools of servers, so only the key `offer` can exclude them.
    if "offer" in case or made.get("servers"):
        case["offer"] = list(map(str, names))
    return _without_nothing(made)


def _with_messages(document: Document, messages: Sequence[Any]) -> Document:
    made = deepcopy(document)
    _case(made)["messages"] = list(messages)
    return _without_nothing(made)


def _without_nothing(document: Document) -> Document:
    # An empty `offer` has a meaning (no tools) and stays. So does an empty prompt of a case, which overrides the
    # suite's prompt.
    if document.get("system") == "":
        del document["system"]
    for table in (document, _case(document)):
        for key in ("tools", "mocks", "answers", "messages"):
            if table.get(key) == []:
                del table[key]
    return document


def _sentences_of_system(document: Document) -> list[Any]:
    return _split(_case(document).get("system") or document.get("system") or "")


def _with_system(document: Document, sentences: Sequence[Any]) -> Document:
    made = deepcopy(document)
    table = _case(made) if _case(made).get("system") else made
    table["system"] = " ".join(sentences)
    return _without_nothing(made)


def _sentences_of_tools(document: Document) -> list[Any]:
    sentences = []
    for tool in _written(document):
        sentences += [(tool, sentence) for sentence in _split(tool.get("description", ""))]
    return sentences


def _with_descriptions(document: Document, sentences: Sequence[Any]) -> Document:
    made = deepcopy(document)
    for before, tool in zip(_written(document), _written(made), strict=True):
        if "description" in tool:
            tool["description"] = " ".join(sentence for owner, sentence in sentences if owner is before)
            if not tool["description"]:
                del tool["description"]
    return made


def _with_request(document: Document, parts: Sequence[Any]) -> Document:
    made = deepcopy(document)
    _case(made)["user"] = " ".join(parts)
    return made
