"""The steps of a run as lines, written as the steps happen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from workbench.numerals import count_text, counted, duration_text
from workbench.show.glyphs import GLYPHS
from workbench.show.views.agents import agent_text, note_text
from workbench.show.views.user_turns import ended_text, last_lines, lines_before, refused_text, said_line
from workbench.show.views.values import call_text, content_text, progress_text, waited_text
from workbench.show.visible import after, compact_json, one_line, shortened
from workbench.trajectory.events import (
    AgentNoted,
    AgentStarted,
    AnswerPaused,
    CallEdited,
    CallFinished,
    CallStarted,
    Deviation,
    Event,
    ExecutionProgress,
    ExecutionStarted,
    Forked,
    JsonValue,
    MessageAdded,
    OwnCallAnswered,
    Paused,
    ReasoningDelta,
    Regenerated,
    ReplySource,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultEdited,
    ResultReceived,
    ResultSource,
    Resumed,
    RetryScheduled,
    RunFinished,
    RunStarted,
    ServerAsked,
    StepStarted,
    TextDelta,
    TextWasReasoning,
    UserEnded,
    UserRefused,
    UserSaid,
)

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.grading.run_summary import RunSummary
    from workbench.show.text import Paint
    from workbench.trajectory.trajectory import Trajectory


_UNTIMED: Mapping[ResultSource, str] = {
    "edited": f"{GLYPHS.by_hand} answered by hand",
    "skipped": f"{GLYPHS.by_hand} skipped by hand",
    "replayed": "replayed",
    "reported": "reported",
    "provider": "provider",
}
"""Sources of results that take no time. Such results are shown without a time."""


def source_text(result: ResultReceived, server: str | None = None) -> str:
    """Return where a result came from and how long it took, such as `server home · 3 ms` or `✎ answered by hand`."""
    if result.source in _UNTIMED:
        return _UNTIMED[result.source]
    who: str = result.source
    if server is not None:
        who = f"server {server}"
    return f"{one_line(who)} {GLYPHS.dot} {duration_text(result.latency_ms)}"


def own_source_text(call: OwnCallAnswered) -> str:
    """Return where the result of a call by the suite came from, and how long the call took."""
    who: str = call.source
    if call.server is not None:
        who = f"server {call.server}"
    error = f" {GLYPHS.dot} error" if call.is_error else ""
    return f"{one_line(who)} {GLYPHS.dot} {duration_text(call.latency_ms)}{error}"


def own_call_line(call: OwnCallAnswered) -> str:
    """Return a call by the suite and its result on one line."""
    shown = f"{call.stage}  {call_text(call.tool, call.arguments)}"
    return f"{shown}  ← {own_source_text(call)}  {content_text(call.content)}"


_REPLIERS: Mapping[ReplySource, str] = {
    "case": "the case",
    "suite": "the suite",
    "person": f"{GLYPHS.by_hand} by hand",
    "nobody": "nobody",
}


def asked_head(request: ServerAsked) -> str:
    """Return a server's request to the client on one line, such as `server shop asks in book: Size?`."""
    shown = f"server {request.server} asks in {request.tool}: {request.message}"
    if url := request.request.get("url"):
        shown += f" {url}"
    return one_line(shown)


def reply_text(request: ServerAsked) -> str:
    """Return the reply to a server's request, with its origin, such as `the case · accept {"size":42}`."""
    reply: str = request.action
    if request.text is not None:
        reply += f" {one_line(request.text)}"
    if request.content is not None:
        reply += f" {compact_json(dict(request.content))}"
    shown = f"{_REPLIERS[request.source]} {GLYPHS.dot} {reply}"
    if request.problem is not None:
        shown += f" {GLYPHS.dot} {one_line(request.problem)}"
    return shown


def asked_lines(request: ServerAsked) -> list[str]:
    """Return a request of a server and its reply as lines of a run."""
    if (notice := request.notice) is not None:
        return [f"{GLYPHS.warned} {one_line(notice)}"]
    return [f"{GLYPHS.asks} {asked_head(request)}  {GLYPHS.result} {reply_text(request)}"]


def _answer_line(result: ResultReceived, server: str | None) -> str:
    return f"← {source_text(result, server)}  {_content(result.content, is_error=result.is_error)}"


def _content(content: str, *, is_error: bool) -> str:
    text = content_text(content)
    if is_error:
        return f"error {text}"
    return text


def _call_line(tool: str, arguments: Mapping[str, JsonValue] | None, raw: str | None, problem: str | None) -> str:
    if problem is None:
        return f"→ {call_text(tool, arguments or {})}"
    return one_line(f"→ {tool} broken arguments ({problem}): {raw or ''}")


_EMPTY = "(empty)"


class StepLines:
    """A converter of the events of one run into lines of text.

    `verbose` adds reasoning, latencies, the progress of executions and whole results."""

    def __init__(self, paint: Paint, *, verbose: bool, width: int) -> None:
        self._paint = paint
        self._verbose = verbose
        self._width = width
        self._tools: dict[str, str] = {}
        self._servers: dict[str, str] = {}
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._failure = ""
        self._silent = True
        """Whether the answer under way has shown nothing yet."""
        self._suites: str | None = None
        self._instructed = False
        self._system: str | None = None
        self._round = 0
        self._step_due: bool | None = None
        self._step = 0
        self._refused = 0

    def lines(self, event: Event) -> list[str]:
        """Return the lines of the next event, cut to the width unless `verbose` is set."""
        lines = self._lines_of(event)
        if self._verbose:
            return lines
        return [shortened(line, self._width) for line in lines]

    def _lines_of(self, event: Event) -> list[str]:
        match event.payload:
            case RunStarted(notices=notices, system=system, instructions=instructions):
                self._suites, self._instructed = system or None, bool(instructions)
                return [f"▲ {one_line(notice)}" for notice in notices]
            case RequestStarted(round=number):
                # If this is a retry, the partial answer of the failed attempt is void.
                self._text.clear()
                self._reasoning.clear()
                self._silent = True
                # The first request of a step and the retries of that request belong to the step. All other requests
                # belong to no step.
                of_none = number != self._round and self._step_due is False
                self._round, self._step_due = number, self._step_due and False
                if of_none:
                    return [self._answer()]
                return []
            case StepStarted(step=step, user=user, system=system):
                continues = user is None and step == self._step
                self._step_due, self._system, self._step = True, system or None, step
                if continues:
                    return []  # a further request of an agent in the same step
                if user is None:
                    return [f"step {step}"]
                return [f"step {step}  » {one_line(user).strip() or _EMPTY}"]
            case CallStarted(call_id=call_id, tool=tool):
                self._tools[call_id] = tool
                self._silent = False
                return self._words()
            case CallFinished(call_id=call_id) as call:
                return [_call_line(self._tools[call_id], call.arguments, call.raw, call.problem)]
            case ExecutionStarted(call_id=call_id, server=server):
                self._servers[call_id] = server
            case ResultReceived(call_id=call_id) as result:
                return [_answer_line(result, self._servers.get(call_id))]
            case ServerAsked() as asked:
                return asked_lines(asked)
            case OwnCallAnswered() as call:
                return [own_call_line(call)]
            case TextDelta(text=text):
                self._text.append(text)
            case ReasoningDelta(text=text):
                self._reasoning.append(text)
            # Some endpoints send reasoning as text and mark only its end. The text before the mark becomes reasoning.
            case TextWasReasoning():
                self._reasoning += self._text
                self._text.clear()
            case AnswerPaused() as pause:
                return [*self._words(), self._paint(f"· {pause_text(pause)}", "muted")]
            case AgentStarted() as agent:
                return [self._paint(f"· {agent_text(agent)}", "muted")]
            case AgentNoted() as note:
                return [*self._words(), self._paint(f"· {note_text(note)}", "muted")]
            case ExecutionProgress(call_id=call_id) as progress if self._verbose:
                return [self._paint(f"· {one_line(self._tools[call_id])}: {progress_text(progress)}", "muted")]
            case RequestFailed(error=error):
                # The failure is shown by the next event: the retry or the end of the run.
                self._failure = error
            case RetryScheduled(attempt=attempt, wait_ms=wait_ms, reason=reason):
                retry = f"↻ retry {attempt} in {duration_text(wait_ms)}"
                # The reason is omitted if it is the failure that the previous line shows.
                if reason != self._failure:
                    retry += f": {one_line(reason)}"
                return [f"▲ {one_line(self._failure)}", retry]
            case RunFinished(reason="sent too much", error=error):
                return [f"▲ {one_line(error or '')}"]
            case Paused(why=why, call_id=call_id) as paused:
                where = hold_text(paused, self._tools.get(call_id or ""))
                return [one_line(f"‖ held{after(' ', where)}: {why}")]
            case Resumed(held_ms=held_ms):
                return [f"‖ continues after {duration_text(held_ms)}"]
            case CallEdited(call_id=call_id, arguments=arguments):
                return [f"✎ edited: {call_text(self._tools[call_id], arguments)}"]
            case ResultEdited(content=content, is_error=is_error):
                return [f"✎ edited result: {_content(content, is_error=is_error)}"]
            case MessageAdded(text=text):
                return [f"✎ added: {one_line(text)}"]
            case Regenerated(round=number):
                return [f"↻ the answer of round {number} is superseded; the model is asked again"]
            case UserRefused() as refused:
                self._refused += 1
                return [f"{GLYPHS.warned} user, {refused_text(refused)}"]
            case UserSaid() as said:
                refusals, self._refused = self._refused, 0
                return [said_line(said, refusals)]
            case UserEnded() as ended:
                return [f"» user {ended_text(ended)}"]
            case Forked() as fork:
                return [f"↳ {one_line(fork_text(fork))}"]
            case ResponseFinished() as response:
                return self._answered(response)
            case _:
                pass
        return []

    def _answered(self, response: ResponseFinished) -> list[str]:
        lines: list[str] = []
        if response.waited_ms:
            lines.append(f"· {waited_text(response.waited_ms)}")
        # An answer without text and calls gets a line too.
        is_silent = self._silent and not "".join(self._text).strip()
        lines += self._words()
        if is_silent:
            lines.append(f"« {_EMPTY}")
        for line in deviation_lines(response.deviations):
            lines.append(f"▲ {line}")
        if self._verbose:
            time = ""
            if response.latency_ms:
                time = f" in {duration_text(response.latency_ms)}"
            lines.append(self._paint(f"· model answered{time}", "muted"))
        return lines

    def _answer(self) -> str:
        """Return the line before a chain's final answer.

        If the system prompt differs from the prompt of the last step, the line shows the prompt."""
        if self._suites == self._system:
            return "answer"
        if self._suites:
            return f"answer  system: {one_line(self._suites)}"
        if self._instructed:
            return "answer  no system prompt but the servers' instructions"
        return "answer  no system prompt"

    def _words(self) -> list[str]:
        """Return the lines of the model's text since the last request. With `verbose`, include its reasoning."""
        text, reasoning = "".join(self._text).strip(), "".join(self._reasoning).strip()
        self._text.clear()
        self._reasoning.clear()
        lines = []
        if self._verbose and reasoning:
            lines.append(self._paint(f"· {one_line(reasoning)}", "muted"))
        if text:
            self._silent = False
            lines.append(f"« {one_line(text)}")
        return lines


def changes_by_hand(trajectory: Trajectory) -> int:
    """Return the number of changes that a person made in a run.

    Changes are edited calls and results, results that a person typed or withheld, messages that a person added or wrote
    in place of the simulated user, and regenerated answers."""
    changes = 0
    for call in trajectory.calls:
        changes += call.edited is not None
        changes += call.unedited is not None
        changes += call.result is not None and call.result.source in ("edited", "skipped")
    for round_ in trajectory.rounds:
        changes += len(round_.added) + len(round_.superseded)
        changes += round_.said is not None and round_.said.by == "person"
    return changes


EDITED = "a person edited this run: the result is not the model's alone"


def unread_text(trajectory: Trajectory) -> str:
    """Return a note that the run ended before the model read the last messages.

    Return "" if the model read them or the run has not ended."""
    # A message that a later request included is no longer in `added`.
    if trajectory.finish is None or not trajectory.added:
        return ""
    return "the model never read the last message of a person: no request followed it"


def hold_text(paused: Paused, tool: str | None) -> str:
    """Return where a run is paused, as the end of a sentence, or "" if the run only asks for permission.

    `tool` is the tool of the call at which it is paused."""
    tool = tool or "a call"
    match paused.at:
        case "user":
            return "before a message of the user"
        case "request":
            if paused.round is None:
                return "before a request"
            return f"before the request of round {paused.round}"
        case "call":
            return f"before {tool}"
        case "question":
            return f"while a server asks in {tool}"
        case "result":
            return f"after the result of {tool}"
        case _:
            return ""


def fork_text(fork: Forked, origin: str = "") -> str:
    """Return a text that names the run and the place from which a run was forked.

    `origin`, if given, describes the original run more precisely than the name of its model."""
    if fork.answered is None:
        where = f"before round {fork.round}"
    elif fork.answered:
        where = f"after result {fork.answered} of round {fork.round}"
    else:
        where = f"after the answer of round {fork.round}"
    return f"forked from {origin or f'the run on {fork.model}'} {where}; live from here on"


def pause_text(pause: AnswerPaused) -> str:
    which = ""
    if pause.times > 1:
        which = f" (pause {pause.times})"
    return f"the provider paused the answer, and was asked to go on{which}"


def deviation_text(deviation: Deviation) -> str:
    return f"repaired: {one_line(deviation.detail)}"


def deviation_lines(deviations: Iterable[Deviation]) -> list[str]:
    """Return a line for each way in which an endpoint's answer deviates from its API. Equal lines appear once."""
    return list(dict.fromkeys(map(deviation_text, deviations)))


def repaired_line(results: Sequence[RunResult]) -> str | None:
    """Return a line on the repaired deviations of endpoints: each kind, with its share of the runs that asked a model.

    Return `None` if there are no deviations."""
    kinds = Counter[str]()
    for result in results:
        # For each run, `repaired` lists a kind at most once, so the counts are numbers of runs.
        kinds.update(result.repaired)
    return _line(kinds, sum(result.was_asked for result in results))


def repaired_line_of(runs: Iterable[RunSummary]) -> str | None:
    """Return the line that `repaired_line` returns, from summaries of runs."""
    kinds = Counter[str]()
    asked = 0
    for run in runs:
        kinds.update(run.repaired)
        asked += run.asked
    return _line(kinds, asked)


def _line(kinds: Mapping[str, int], runs_asked: int) -> str | None:
    if not kinds:
        return None
    asked = counted(runs_asked, "run")
    parts = []
    for kind, runs in kinds.items():
        parts.append(f"{one_line(kind)} in {count_text(runs)} of {asked}")
    return f"repaired: {', '.join(parts)}"


def made_lines(trajectory: Trajectory) -> list[str]:
    """Return the calls that a run made, as lines."""
    return [call_text(call.tool, call.arguments) for call in trajectory.calls]


def trajectory_lines(trajectory: Trajectory) -> Iterator[str]:
    """Yield the lines of a finished run: the calls, results, texts and errors of its rounds."""
    if trajectory.agent is not None:
        yield f"· {agent_text(trajectory.agent)}"
    for asked in trajectory.asked_in("setup"):
        yield from asked_lines(asked)
    for own in trajectory.setup_calls:
        yield own_call_line(own)
    for round_ in trajectory.rounds:
        if round_.said is not None:
            yield from lines_before(trajectory, round_.turn)
        for error in round_.errors:
            yield f"▲ {one_line(error)}"
        for note in round_.notes:
            yield f"· {note_text(note)}"
        for call in (*round_.not_offered, *round_.calls):
            yield _call_line(call.tool, call.arguments, call.call.raw, call.call.problem)
            for asked in call.asked:
                yield from asked_lines(asked)
            if call.result is not None:
                yield _answer_line(call.result, call.server)
        if round_.text.strip():
            yield f"« {one_line(round_.text.strip())}"
        if round_.stop_reason == "truncated":
            yield f"▲ cut off {round_.cut_off}"
        elif round_.stop_reason == "refused":
            yield "▲ refused"
        for line in deviation_lines(round_.deviations):
            yield f"▲ {line}"
    yield from last_lines(trajectory)
    for asked in trajectory.asked_in("final"):
        yield from asked_lines(asked)
    for own in trajectory.final_calls:
        yield own_call_line(own)
