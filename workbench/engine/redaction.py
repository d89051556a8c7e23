"""Redaction of runs: their events, results and suites, before they are stored or shown.

Data is redacted when it leaves the program. Inside the program it keeps its true values, because graders, forks and the
model need them. `tests/test_output_paths.py` finds every call that writes data, and tests each call with secrets.

A secret is replaced by the name of its variable. A check of such a value would grade the name instead of the secret. So
a stored run lists its redacted places. If the case checks one of these places, `regrade_refusal` refuses to regrade the
run, and the run keeps its verdict."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from workbench.checks.check import asks_for_run
from workbench.config.secret_forms import LOOK_BACK_CHARS
from workbench.config.secrets import Finder, Secrets
from workbench.dataclasses import cached_by_identity, dataclass
from workbench.encoding import toml_of
from workbench.grading.grade import RedactedPlace, RunResult
from workbench.startup import late_pattern
from workbench.suite.expected_calls import ANY_TOOL, same_tool
from workbench.suite.model import Case
from workbench.suite.settings import Grading
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Event,
    ReasoningDelta,
    RunStarted,
    TextDelta,
    ToolDefinition,
)
from workbench.trajectory.trajectory import CallRecord, Trajectory

if TYPE_CHECKING:
    from workbench.history.packing import Search
    from workbench.history.records import RunWithEvents


def redacted_places(
    raw: Trajectory, stored: Trajectory, case: Case | None, stored_case: Case | None
) -> list[RedactedPlace]:
    """Return the places where redaction changed a run or its case.

    `raw` and `case` are the originals, `stored` and `stored_case` their redacted forms."""
    places: list[RedactedPlace] = []
    sees_run = case is not None and any(asks_for_run(check) for _, check in case.answer_checks)
    if stored is not raw:
        for index, (before, after) in enumerate(zip(raw.calls, stored.calls, strict=True)):
            places += _in_call(index, before, after)
            if sees_run and before.result != after.result:
                places.append(RedactedPlace("result", index))
        if _schemas(raw) != _schemas(stored):
            places.append(RedactedPlace("schema"))
        if stored.final_calls != raw.final_calls:
            places.append(RedactedPlace("state"))
        if stored.final_answer != raw.final_answer:
            places.append(RedactedPlace("answer"))
    if (
        case is not None
        and stored_case is not None
        and stored_case is not case
        and _expectations(case) != _expectations(stored_case)
    ):
        places.append(RedactedPlace("case"))
    return places


def regrade_refusal(result: RunResult, case: Case, *, as_stored: bool) -> str | None:
    """Return why a stored run cannot be regraded by a case; `None` if regrading is possible.

    The reason is a check of a value that redaction has changed. `as_stored` means that `case` is the case stored with
    the run."""
    for place in result.redacted:
        if place.what == "case":
            if as_stored:
                return _kept("what the case expects holds a secret, which is not stored")
        elif place.call is not None and any(asks_for_run(check) for _, check in case.answer_checks):
            which = f"call {place.call + 1}"
            return _kept(f"{which} holds a secret, which is not stored, and a Python function sees the run")
        elif place.what == "answer":
            if case.checks_answer:
                return _kept("the answer holds a secret, which is not stored, and the case checks the answer")
        elif place.what == "state":
            if case.final_states:
                return _kept(
                    "the answer of a tool after the run holds a secret, which is not stored, and the case checks it"
                )
        elif place.what == "schema":
            if any(call.args for _, call in case.written_calls()):
                return _kept("the schema of a tool holds a secret, which is not stored, and arguments are checked")
        elif place.call is not None and place.call < len(result.trajectory.calls):
            why = _why_of_call(place, result.trajectory.calls[place.call], case)
            if why is not None:
                return _kept(why)
    return None


def _schemas(trajectory: Trajectory) -> list[object]:
    start = trajectory.start
    if start is not None:
        return [tool.parameters for tool in start.tools]
    return []


def _kept(reason: str) -> str:
    return f"cannot be regraded and keeps its verdict: {reason}"


def _in_call(index: int, before: CallRecord, after: CallRecord) -> Iterator[RedactedPlace]:
    if before is after:
        return
    if before.tool != after.tool:
        yield RedactedPlace("tool", index)
    if list(before.arguments) != list(after.arguments):
        yield RedactedPlace("names", index)
    for name, value in before.arguments.items():
        if name in after.arguments and after.arguments[name] is not value:
            yield RedactedPlace("argument", index, name)


def _why_of_call(place: RedactedPlace, record: CallRecord, case: Case) -> str | None:
    assert place.call is not None
    which = f"call {place.call + 1} ({record.tool})"
    if place.what == "tool":
        return f"the name of the tool of call {place.call + 1} holds a secret, which is not stored"
    if place.what == "result":
        others = [other for disallowed in case.disallowed for _, other in disallowed.conditions]
        for wanted in (*case.expected_calls(), *others):
            if wanted.may_be_call_of(record.tool) and any(
                each.result is not None for each in (wanted, *wanted.alternatives)
            ):
                return f"the result of {which} holds a secret, which is not stored, and the case checks it"
        return None
    checks = []
    for _, call in case.written_calls():
        if call.tool and _is_meant(call.tool, record.tool):
            checks.append(call.args)
    if place.what == "names" and any(each is not None for each in checks):
        return f"the name of an argument of {which} holds a secret, which is not stored"
    if any(place.argument in (each or ()) for each in checks):
        return f"the argument {place.argument!r} of {which} holds a secret, which is not stored, and the case checks it"
    return None


def _is_meant(expected: str, tool: str) -> bool:
    return expected == ANY_TOOL or same_tool(expected, tool)


def _expectations(case: Case) -> tuple[object, ...]:
    steps = tuple((step.expected_call, step.forbidden_args) for step in case.steps)
    expected: Sequence[object] = (case.ordered, case.unordered, case.disallowed, case.response, case.response_contains)
    return (*expected, case.final, steps)


_Delta = TextDelta | ReasoningDelta | CallArgumentsDelta


class SuiteParts:
    """Redacts the parts of suites that many runs share, such as tools and cases, and caches the results.

    When another secret becomes known, the parts are redacted again."""

    def __init__(self, secrets: Secrets) -> None:
        self.secrets = secrets
        self._finder = secrets.finder
        self._tools: dict[tuple[str, str, str | None], tuple[ToolDefinition, ToolDefinition]] = {}
        self._cases: dict[int, tuple[Case, Case]] = {}
        self._options: dict[Grading, Grading] = {}
        self._are_clean = self._cleanness_of_options()

    def tool(self, tool: ToolDefinition) -> ToolDefinition:
        self._forget_if_more_is_secret()
        # Compare by value, because runs from another process have equal tools, but not the same objects.
        key = (tool.name, tool.description, tool.server)
        known = self._tools.get(key)
        if known is None or known[0] != tool:
            known = self._tools[key] = (tool, self.secrets.redacted(tool))
        return tool if known[1] is known[0] else known[1]

    def case(self, case: Case) -> Case:
        self._forget_if_more_is_secret()
        known = self._cases.get(id(case))
        if known is None:
            known = self._cases[id(case)] = (case, self.secrets.redacted(case))
        return known[1]

    def grading(self, options: Grading) -> Grading:
        self._forget_if_more_is_secret()
        if self._are_clean(options):
            return options
        return self._redacted_options(options)

    def _cleanness_of_options(self) -> Callable[[Grading], bool]:
        return cached_by_identity(lambda options: self._redacted_options(options) == options)

    def _redacted_options(self, options: Grading) -> Grading:
        if options not in self._options:
            self._options[options] = self.secrets.redacted(options)
        return self._options[options]

    def _forget_if_more_is_secret(self) -> None:
        # The finder is replaced whenever another secret becomes known. The cached results are then discarded.
        if self._finder is not self.secrets.finder:
            self._finder = self.secrets.finder
            self._tools.clear()
            self._cases.clear()
            self._options.clear()
            self._are_clean = self._cleanness_of_options()


def redacted_run(
    events: Iterable[Event], result: RunResult, parts: SuiteParts, case: Case | None
) -> tuple[tuple[Event, ...], RunResult]:
    """Return the events and the result of a finished run without secrets.

    `RunResult.redacted` of the returned result lists the redacted places that a check may need."""
    return tuple(EventRedaction(parts).redact_all(events)), redacted_result(result, parts, case)


def redacted_result(result: RunResult, parts: SuiteParts, case: Case | None) -> RunResult:
    """Return a result without secrets, as `redacted_run` does."""
    shown = parts.secrets.redacted(result)
    stored_case = None if case is None else parts.case(case)
    places = redacted_places(result.trajectory, shown.trajectory, case, stored_case)
    if places:
        return replace(shown, redacted=tuple(dict.fromkeys((*result.redacted, *places))))
    return shown


class RunRedaction:
    """Redacts the runs of a batch before they are stored in the history. `cases` maps run ids to cases."""

    # Most runs have no secret. Searching the JSON, which is needed anyway, costs less than searching all objects.

    def __init__(self, parts: SuiteParts, cases: Mapping[str, Case]) -> None:
        self._parts = parts
        self._cases = cases

    def search(self, run: RunWithEvents) -> Search | None:
        """Return a function that searches a run's JSON for secrets; `None` if the run must always be redacted.

        A run in which the function finds nothing may be stored unchanged."""
        finder = self._parts.secrets.finder
        tools: tuple[ToolDefinition, ...] = ()
        if run.events and isinstance(started := run.events[0].payload, RunStarted):
            tools = started.tools
        case = self._cases[run.run_id]
        shared_are_clean = (
            self._parts.case(case) is case
            and all(self._parts.tool(tool) is tool for tool in tools)
            and self._parts.grading(run.result.grading) is run.result.grading
        )
        if shared_are_clean and not finder.may_contain(_texts_in_pieces(run.events)):
            return finder.json_may_contain
        return None

    def redacted(self, run: RunWithEvents) -> RunWithEvents:
        events, result = redacted_run(run.events, run.result, self._parts, self._cases[run.run_id])
        return replace(run, events=events, result=result)


def _texts_in_pieces(events: Iterable[Event]) -> str:
    """Return all streamed texts of a run, each joined from its pieces, because a secret may span several pieces."""
    texts: dict[object, list[str]] = {}
    for event in events:
        what = event.payload
        match what:
            case TextDelta(text=piece) | ReasoningDelta(text=piece):
                texts.setdefault(type(what), []).append(piece)
            case CallArgumentsDelta(call_id=call_id, fragment=piece):
                texts.setdefault(call_id, []).append(piece)
            # Each text ends with a line break, where `EventRedaction` also ends it. So no secret spans the texts of two
            # calls.
            case CallFinished(call_id=call_id):
                texts.get(call_id, []).append("\n")
            case CallStarted():
                pass
            case _:
                for pieces in texts.values():
                    pieces.append("\n")
    return "\n".join(map("".join, texts.values()))


def redacted_suite_text(text: str, secrets: Secrets) -> str:
    """Redact the secrets in the text of a suite. The result is still valid TOML."""
    shown = secrets.redact(text)
    if shown is text or _is_toml(shown):
        return shown
    # A secret number becomes `$NAME`, which TOML allows only within quotes.
    bare = _BARE_NUMBER.sub(lambda match: _quoted_if_secret(match[0], secrets), text)
    shown_bare = secrets.redact(bare)
    return shown_bare if _is_toml(shown_bare) else shown


_BARE_NUMBER = late_pattern(r"(?<=[=,\[ ])[+-]?\d[\d._]*(?=\s*[,\]}#\n]|\s*$)")


def _quoted_if_secret(number: str, secrets: Secrets) -> str:
    shown = secrets.redact(number)
    if shown is number:
        return number
    return f'"{shown}"'


def _is_toml(text: str) -> bool:
    try:
        toml_of(text)
    except (ValueError, RecursionError):
        return False
    return True


def shown_result(result: RunResult, secrets: Secrets) -> RunResult:
    """Return a result for a report, with secrets redacted."""
    # The suite, the case id and the model stay unchanged, because reports find and group runs by them.
    shown = secrets.redacted(result)
    if shown is result:
        return result
    return replace(shown, suite=result.suite, case_id=result.case_id, model=result.model)


class EventRedaction:
    """Redacts the events of one run. Each event keeps its sequence number and time.

    A streamed text may split a secret between several events. An event is held back while its text may end with the
    beginning of a secret, and all later events wait behind it. The replacement of a secret goes into the event in which
    the secret begins."""

    def __init__(self, parts: SuiteParts) -> None:
        self._parts = parts
        self._waiting: deque[_HeldEvent] = deque()
        self._texts: dict[tuple[type[_Delta], str], _TextTail] = {}

    def add(self, event: Event) -> list[Event]:
        """Add the next event, and return the events, redacted and in order, that need not be held back any longer."""
        finder = self._parts.secrets.finder
        what = event.payload
        if not self._waiting and isinstance(what, _Delta) and self._passes_unchanged(what, finder):
            return [event]
        slot = _HeldEvent(event)
        self._waiting.append(slot)
        match what:
            case TextDelta(text=text) | ReasoningDelta(text=text):
                self._text(what, "").add(slot, text, finder)
            case CallArgumentsDelta(call_id=call_id, fragment=fragment):
                self._text(what, call_id).add(slot, fragment, finder)
            case CallStarted():
                slot.shown = self._whole(event)
            case CallFinished(call_id=call_id):
                self._end((CallArgumentsDelta, call_id), finder)
                slot.shown = self._whole(event)
            case _:
                for key in tuple(self._texts):
                    self._end(key, finder)
                slot.shown = self._whole(event)
        return list(self._free())

    def redact_all(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield all events of a run, redacted, up to the run's end."""
        for event in events:
            yield from self.add(event)
        yield from self.flush()

    def _passes_unchanged(self, delta: _Delta, finder: Finder) -> bool:
        """Return whether no secret begins or ends in a piece of text, so that its event needs no redaction."""
        if isinstance(delta, CallArgumentsDelta):
            text, piece = self._text(delta, delta.call_id), delta.fragment
            if self._parts.secrets.redact(delta.call_id) is not delta.call_id:
                return False
        else:
            text, piece = self._text(delta, ""), delta.text
        return text.try_pass(piece, finder)

    def flush(self) -> list[Event]:
        """Return the events that are still held back at the end of the run."""
        finder = self._parts.secrets.finder
        for key in tuple(self._texts):
            self._end(key, finder)
        return list(self._free())

    def _whole(self, event: Event) -> Event:
        what, secrets = event.payload, self._parts.secrets
        if isinstance(what, RunStarted):
            tools = tuple(map(self._parts.tool, what.tools))
            without_tools = replace(what, tools=())
            shown = secrets.redacted(without_tools)
            same = shown is without_tools and all(a is b for a, b in zip(tools, what.tools, strict=True))
            if same:
                return event
            return replace(event, payload=replace(shown, tools=tools))
        shown_what = secrets.redacted(what)
        if shown_what is what:
            return event
        return replace(event, payload=shown_what)

    def _text(self, delta: _Delta, call_id: str) -> _TextTail:
        text = self._texts.get((type(delta), call_id))
        if text is None:
            text = self._texts[type(delta), call_id] = _TextTail(self._parts.secrets)
        return text

    def _end(self, key: tuple[type[_Delta], str], finder: Finder) -> None:
        text = self._texts.pop(key, None)
        if text is not None:
            text.end(finder)

    def _free(self) -> Iterator[Event]:
        while self._waiting and (event := self._waiting[0].shown) is not None:
            self._waiting.popleft()
            yield event


@dataclass(slots=True)
class _HeldEvent:
    """An event that is held back until its redacted form, `shown`, is known."""

    event: Event
    shown: Event | None = None
    text: str = ""

    def decide(self, secrets: Secrets) -> None:
        """Set `shown` from `text`, the redacted text of the event. Call this method when `text` is complete."""
        what = self.event.payload
        if isinstance(what, CallArgumentsDelta):
            call_id = secrets.redact(what.call_id)
            same = call_id == what.call_id and self.text == what.fragment
            shown = replace(what, call_id=call_id, fragment=self.text)
            self.shown = self.event if same else replace(self.event, payload=shown)
        else:
            assert isinstance(what, TextDelta | ReasoningDelta)
            same = self.text == what.text
            self.shown = self.event if same else replace(self.event, payload=replace(what, text=self.text))


@dataclass(slots=True)
class _TextTail:
    """The end of one streamed text, which may be the beginning of a secret.

    `undecided` is this end. `pieces` holds the events of which it consists, each with the length of its text. `before`
    is the text just before `undecided`. The patterns that find secrets look back at it."""

    secrets: Secrets
    before: str = ""
    undecided: str = ""
    pieces: deque[tuple[_HeldEvent, int]] = field(default_factory=deque)

    def add(self, slot: _HeldEvent, piece: str, finder: Finder) -> None:
        self.undecided += piece
        self.pieces.append((slot, len(piece)))
        self._decide(finder, is_finished=False)

    def try_pass(self, piece: str, finder: Finder) -> bool:
        """Add a piece only if it needs no redaction, and return whether it was added."""
        text = self.before + piece
        if self.pieces or finder.undecided_from(text) < len(text) or finder.may_contain(text):
            return False
        self.before = text[-LOOK_BACK_CHARS:]
        return True

    def end(self, finder: Finder) -> None:
        self._decide(finder, is_finished=True)

    def _decide(self, finder: Finder, *, is_finished: bool) -> None:
        text, begin = self.before + self.undecided, len(self.before)
        until, places = finder.decided_part(text, begin, is_last=is_finished)
        if not places and until == len(text):
            self._release_unchanged(text)
            return
        # Pieces and secrets are processed together, in the order of the text. A replacement goes into the piece in
        # which its secret begins, and later pieces lose their part of the secret.
        inside = iter([*places, (len(text), len(text), "")])
        first, last, shown = next(inside)
        at = begin
        while self.pieces:
            slot, size = self.pieces[0]
            end = at + size
            while at < min(end, until):
                if first <= at:
                    slot.text += shown
                    shown = ""
                    at = min(last, end, until)
                    if at == last:
                        first, last, shown = next(inside)
                else:
                    step = min(first, end, until)
                    slot.text += text[at:step]
                    at = step
            if end > until:
                self.pieces[0] = (slot, end - at)
                break
            self.pieces.popleft()
            slot.decide(self.secrets)
        self.undecided = text[until:]
        self.before = text[max(until - LOOK_BACK_CHARS, 0) : until]

    def _release_unchanged(self, text: str) -> None:
        at = len(text)
        for slot, size in reversed(self.pieces):
            slot.text += text[at - size : at]
            at -= size
            slot.decide(self.secrets)
        self.pieces.clear()
        self.undecided = ""
        self.before = text[-LOOK_BACK_CHARS:]
