"""The causes for which runs fail, what to do about each, and failed runs by cause."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from workbench.dataclasses import dataclass

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult

Cause = Literal[
    "endpoint",
    "sent too much",
    "cut off",
    "refused",
    "unknown tool",
    "broken JSON",
    "gave up",
    "forbidden call",
    "wrong tool",
    "missing call",
    "extra call",
    "wrong order",
    "schema violation",
    "missing argument",
    "wrong argument",
    "invalid argument",
    "forbidden argument",
    "unexpected argument",
    "content",
    "low score",
    "over calling",
    "latency",
]

CAUSES: tuple[Cause, ...] = get_args(Cause)
"""All causes in the order in which they are shown. A run's main cause is its first one: earlier causes tend to entail
later ones, as a call with broken arguments has no right ones either."""

NEVER_ALONE: frozenset[Cause] = frozenset({"over calling", "latency"})
"""Recorded for failed runs, but never a reason to fail: the main cause of such a run is another one."""

ABOUT_TOOLS: frozenset[Cause] = frozenset(
    {"unknown tool", "gave up", "forbidden call", "wrong tool", "missing call", "extra call"}
)
"""The causes for which the confusion table is useful."""


@dataclass(frozen=True)
class Advice:
    """What a cause means, and what to do about it in one sentence; `{where}` is what it concerns most.

    Where what was seen of a run asks for something else, its symptoms say so (`Symptom.advice`)."""

    meaning: str
    first: str


ADVICE: Mapping[Cause, Advice] = {
    "endpoint": Advice(
        "The endpoint, not the model, lost or damaged a request or an answer.",
        "fix the endpoint that serves the model, or use another one",
    ),
    "sent too much": Advice(
        "An answer was too long, and its rest was not read.",
        "limit the model's output tokens in its parameters",
    ),
    "cut off": Advice(
        "An answer reached the limit on output tokens.",
        "raise `max_tokens` in the model's parameters",
    ),
    "refused": Advice(
        "The model, or a content filter of its endpoint, refused to answer.",
        "say in the system prompt why such requests are legitimate, or use an endpoint whose filter allows them",
    ),
    "unknown tool": Advice(
        "A call had a name that no offered tool has.",
        "say in the system prompt that only the offered tools exist, or offer one named {where}",
    ),
    "broken JSON": Advice(
        "The arguments of a call were not a JSON object, so the tool received none.",
        "make the schema of {where} flatter, with fewer and shorter free texts",
    ),
    "gave up": Advice(
        "The run ended too early: with words instead of a call, with nothing, or because the rounds were used up.",
        "say in the system prompt that requests like these should be handled with tools such as {where}",
    ),
    "forbidden call": Advice(
        "A call was made that the case disallows.",
        "say in the description of {where} when it must not be called, and what to do instead",
    ),
    "wrong tool": Advice(
        "A different tool was called than expected.",
        "tell {where} apart: say in both descriptions when to use which",
    ),
    "missing call": Advice(
        "An expected call was never made.",
        "say in the description of {where} for which requests it is meant, in the words that users use",
    ),
    "extra call": Advice(
        "More calls were made than expected.", "say in the description of {where} when it is not needed"
    ),
    "wrong order": Advice(
        "The calls were made, but not in the expected order.",
        "say in the description of {where} what has to be called before it",
    ),
    "schema violation": Advice(
        "The tool's own schema refuses the arguments of a call.",
        "describe {where} as its schema demands, with an example of a valid value",
    ),
    "missing argument": Advice(
        "An expected argument was left out.",
        "make {where} required in the schema, or describe when it must be given",
    ),
    "wrong argument": Advice(
        "An argument has a different value than expected.",
        "describe the values of {where} with an example, or list them as enum in the schema",
    ),
    "invalid argument": Advice(
        "An optional argument has a value that it must not have.",
        "say in the schema of {where} which values are allowed, and that it may be left out",
    ),
    "forbidden argument": Advice(
        "A forbidden argument was given.",
        "say in the description of {where} when it must not be given",
    ),
    "unexpected argument": Advice(
        "A call has arguments, and none were expected.",
        "say in the description of {where} to leave it out unless the user asks for it",
    ),
    "content": Advice(
        "The final answer does not say what it should.",
        "say in the system prompt what an answer must contain",
    ),
    "low score": Advice(
        "Nothing is plainly wrong, but the score is too low, by values that are only close or by a rule of the grader.",
        "look at the grades: what {where} earned, and how the score came about",
    ),
    "over calling": Advice(
        "More calls were made than the limit allows. This alone fails no run.",
        "say in the system prompt when to stop, or raise max_tool_calls",
    ),
    "latency": Advice(
        "The run took longer than its budget. This alone fails no run.",
        "offer fewer tools and shorter descriptions, choose a faster model, or raise max_latency_ms",
    ),
}

BASELINE = "offline"
"""The offline model, which is no language model."""

FOR_BASELINE = "this baseline matches words: choose another model"
"""Advice on failures of the offline model, which no description can teach."""

ASKED_BACK = "put what the answer asks for into the request, or name a tool that finds it out"
USED_UP = "let the answers of the tools say that a call worked, or raise max_rounds"
REPEATED = "let the answer of {where} say that it worked: the same call was made again"
"""Advice that depends on more than the cause."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a failure, as far as known: a tool, one of its parameters, the tool that was called `instead`."""

    tool: str
    argument: str | None = None
    instead: str | None = None

    def __str__(self) -> str:
        if self.instead is not None:
            return f"{self.tool}, but {self.instead} was called"
        if self.argument is None:
            return self.tool
        return f"{self.tool}.{self.argument}"


def advice_about(advice: str, cause: Cause, subject: Subject | None) -> str:
    """Return an advice in one line about its most frequent subject."""
    if subject is None:
        where = _NOWHERE.get(cause, "the tool")
    else:
        where = str(subject) if subject.instead is None else f"{subject.tool} and {subject.instead}"
    # Not by `format`: a model may have invented a name with braces.
    return advice.replace("{where}", where)


_NOWHERE: Mapping[Cause, str] = {
    "gave up": "those of the case",
    "wrong tool": "the tools",
    "low score": "each argument",
    "unknown tool": "as the call",
}


# Which tool was called where which one was expected, over many runs.

Pair = tuple[str | None, str | None]
"""The expected tool (`None`: no call was expected) and the called one (`None`: no call was made)."""


@dataclass(frozen=True)
class Confusion:
    """How often each pair occurred."""

    counts: Mapping[Pair, int]

    @cached_property
    def mixed_up(self) -> list[tuple[Pair, int]]:
        """The pairs that differ where a call was expected, the most frequent first."""
        off = []
        for pair, count in self.counts.items():
            if pair[0] is not None and pair[0] != pair[1]:
                off.append((pair, count))
        return sorted(off, key=lambda entry: (-entry[1], entry[0][0] or "", entry[0][1] or ""))

    @cached_property
    def _tools(self) -> list[str]:
        """All tools, the most confused ones first."""
        off: Counter[str] = Counter()
        for (expected, called), count in self.counts.items():
            for tool in (expected, called):
                if tool is not None:
                    off[tool] += count if expected != called else 0
        return sorted(off, key=lambda tool: (-off[tool], tool))

    @cached_property
    def rows(self) -> list[str | None]:
        """The expected tools; `None`, where there is such a row, means calls that were not expected."""
        there = {expected for expected, _ in self.counts}
        return [tool for tool in (*self._tools, None) if tool in there]

    @cached_property
    def columns(self) -> list[str | None]:
        """The called tools; `None`, where there is such a column, means no call, and comes first."""
        there = {called for _, called in self.counts}
        return [tool for tool in (None, *self._tools) if tool in there]

    @property
    def without_sure_ones(self) -> Confusion:
        """Returns the table without the tools that were called exactly where they were expected."""
        unsure = {tool for pair in self.counts if pair[0] != pair[1] for tool in pair}
        return Confusion({pair: count for pair, count in self.counts.items() if unsure.intersection(pair)})


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that went wrong in a run.

    `expected` and `got` are short texts, `why` is one line; `advice` replaces that of the cause, where what was seen
    asks for another."""

    cause: Cause
    why: str
    subject: Subject | None = None
    expected: str | None = None
    got: str | None = None
    advice: str | None = None

    @property
    def to_do(self) -> str:
        """The advice, with `{where}` for its subject."""
        return self.advice or ADVICE[self.cause].first

    @property
    def remark(self) -> str:
        """What `why` says beyond the subject: nothing, where that names both the tool expected and the one called."""
        if self.subject is not None and self.subject.instead is not None:
            return ""
        return self.why


@dataclass(frozen=True)
class FailedRun:
    """A failed run, its number among all runs (from 0), and what went wrong, in the order of causes.

    The `result` is without its rounds, or packed, because thousands may have failed."""

    index: int
    result: RunResult
    symptoms: tuple[Symptom, ...]

    @property
    def main(self) -> Cause:
        """The cause that the others probably follow from."""
        return self.symptoms[0].cause

    @property
    def advice(self) -> str:
        """The advice on the main cause, in one line."""
        first = self.symptoms[0]
        return advice_about(first.to_do, first.cause, first.subject)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """All causes, each once; the first is the main one."""
        return tuple(dict.fromkeys(symptom.cause for symptom in self.symptoms))

    def symptoms_of(self, cause: Cause) -> list[Symptom]:
        """Return the symptoms of this cause."""
        return [symptom for symptom in self.symptoms if symptom.cause == cause]


@dataclass(frozen=True)
class CauseGroup:
    """The failed runs that have a cause, as their main one or not."""

    cause: Cause
    runs: tuple[FailedRun, ...]

    @cached_property
    def numbers(self) -> CauseNumbers:
        """The same in numbers."""
        fold = CauseFold(self.cause)
        for run in self.runs:
            fold.add(run.index, run.result, run.symptoms)
        return fold.numbers()

    @property
    def main(self) -> int:
        """For how many of the runs this is the main cause."""
        return sum(run.main == self.cause for run in self.runs)

    @property
    def cases(self) -> int:
        """How many cases the runs belong to, whatever the model."""
        return len({(run.result.suite, run.result.case_id) for run in self.runs})

    @cached_property
    def subjects(self) -> tuple[tuple[Subject, int], ...]:
        """The tools and parameters concerned, each with its frequency, the most frequent first."""
        return self.numbers.subjects

    @property
    def advice(self) -> str:
        """What to do, in one line."""
        return self.numbers.advice


@dataclass(frozen=True)
class CauseNumbers:
    """The failed runs with one cause.

    Counted are the runs with it, those of which it is the main cause, and their cases, whatever the model. `tools` and
    `parameters` have the most frequent first."""

    cause: Cause
    indices: Sequence[int]
    main_indices: Sequence[int]
    cases: int
    subjects: tuple[tuple[Subject, int], ...]
    to_do: str
    """The advice on the most frequent symptom, with `{where}` for `about`."""
    about: Subject | None

    @property
    def advice(self) -> str:
        """What to do, in one line."""
        return advice_about(self.to_do, self.cause, self.about)


class CauseFold:
    """Counts the failed runs that have a cause, run by run."""

    def __init__(self, cause: Cause) -> None:
        self._cause = cause
        self._indices, self._main = array("L"), array("L")
        self._cases: set[tuple[str, str]] = set()
        self._seen: Counter[tuple[str, Subject | None]] = Counter()

    def add(self, index: int, result: RunResult, symptoms: Sequence[Symptom]) -> None:
        self._indices.append(index)
        if symptoms[0].cause == self._cause:
            self._main.append(index)
        self._cases.add((result.suite, result.case_id))
        mine = (symptom for symptom in symptoms if symptom.cause == self._cause)
        self._seen.update((symptom.to_do, symptom.subject) for symptom in mine)

    def numbers(self) -> CauseNumbers:
        often: Counter[str] = Counter()
        for (to_do, _), count in self._seen.items():
            often[to_do] += count
        # What is said of the baseline does not help those with a model.
        to_do = min(often, key=lambda text: (text == FOR_BASELINE, -often[text], text))
        about = _most_frequent((subject, count) for (text, subject), count in self._seen.items() if text == to_do)
        subjects = _most_frequent((subject, count) for (_, subject), count in self._seen.items())
        first = about[0][0] if about else None
        return CauseNumbers(self._cause, self._indices, self._main, len(self._cases), subjects, to_do, first)


def _most_frequent(counts: Iterable[tuple[Subject | None, int]]) -> tuple[tuple[Subject, int], ...]:
    found: Counter[Subject] = Counter()
    for subject, count in counts:
        if subject is not None:
            found[subject] += count
    return tuple(sorted(found.items(), key=lambda entry: (-entry[1], str(entry[0]))))


@dataclass(frozen=True)
class FailureNumbers:
    """The failed runs by cause, in numbers: some bytes for each.

    Otherwise as `Failures`."""

    graded: int
    failed: int
    groups: tuple[CauseNumbers, ...]
    confusion: Confusion


@dataclass(frozen=True)
class Failures:
    """The failed runs by cause, with causes in their fixed order.

    The confusion table covers all graded runs of cases that expect calls, or none."""

    graded: int
    runs: tuple[FailedRun, ...]
    groups: tuple[CauseGroup, ...]
    confusion: Confusion

    @cached_property
    def numbers(self) -> FailureNumbers:
        """The same in numbers."""
        return FailureNumbers(
            self.graded, len(self.runs), tuple(group.numbers for group in self.groups), self.confusion
        )


NOTHING_FAILED = Failures(0, (), (), Confusion({}))
"""The failures of no runs."""
