"""The causes of failed runs, the advice on each, and the failed runs grouped by cause."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args

from workbench.dataclasses import dataclass
from workbench.limits import CUT_OFF_REMEDY

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
    "wrong result",
    "schema violation",
    "missing argument",
    "wrong argument",
    "invalid argument",
    "forbidden argument",
    "unexpected argument",
    "content",
    "final state",
    "over budget",
    "low score",
    "over calling",
    "latency",
]

CAUSES: tuple[Cause, ...] = get_args(Cause)
"""All causes in the order of reports.

The main cause of a run is its first cause in this order, because an earlier cause tends to entail the later causes. For
example, a call with broken JSON also lacks the expected arguments."""

SECONDARY_CAUSES: frozenset[Cause] = frozenset({"over calling", "latency"})
"""The causes that never fail a run alone. They are noted for runs that fail for another cause."""


@dataclass(frozen=True)
class Advice:
    """The meaning of a cause, and one sentence of advice (`first`).

    `{where}` in the sentence stands for the tool or parameter concerned. A symptom may have its own advice, which fits
    its run better (`Symptom.advice`)."""

    meaning: str
    first: str


ADVICE: Mapping[Cause, Advice] = {
    "endpoint": Advice(
        "The endpoint, not the model, lost or damaged a request or an answer.",
        "fix the endpoint that serves the model, or use another one",
    ),
    "sent too much": Advice(
        "An answer was longer than Workbench reads.",
        "limit the model's output tokens in its parameters",
    ),
    "cut off": Advice(
        "An answer reached the limit on output tokens, or the end of the model's context.",
        CUT_OFF_REMEDY,
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
    "wrong result": Advice(
        "A call did not return what the case expects of it.",
        "say in the description of {where} what has to be true before it is called",
    ),
    "wrong order": Advice(
        "The calls were made, but in the wrong order, or not all in one answer.",
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
    "final state": Advice(
        "The run did not leave the state, or make exactly the changes, that `final` of its case expects.",
        "compare what {where} did or reports with `final` of the case, and describe what is left to do",
    ),
    "over budget": Advice(
        "The run took more calls, rounds, tokens, money or time than the case allows.",
        "say in the system prompt when to stop, offer fewer tools, or raise `at_most`",
    ),
    "low score": Advice(
        "Nothing is plainly wrong, but values that are only close, or a rule of the grader, make the score too low.",
        "look at the grades, which show how {where} earned the score",
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

BASELINE_MODEL = "offline"
"""The model id of the offline baseline, which matches words and is not a language model."""

BASELINE_ADVICE = "this baseline matches words: write the request in words of the tool, or choose a model"
"""The advice on failures of the offline baseline. A better description does not prevent them."""

# Advice that depends on more than the cause of a failure.
ASKED_BACK_ADVICE = "put the details that the answer asks for into the request, or offer a tool that finds them"
USED_UP_ADVICE = "let the tools' results say that a call worked, or raise max_rounds"
REPEATED_ADVICE = "let the result of {where} say that the call worked: the same call was made again"


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a failure: a tool.

    If known, `argument` is the parameter of the tool, or `instead` is the tool that was called in its place."""

    tool: str
    argument: str | None = None
    instead: str | None = None

    def __str__(self) -> str:
        if self.instead is not None:
            return f"{self.tool}, but {self.instead} was called"
        if self.argument is None:
            return self.tool
        return f"{self.tool}.{self.argument}"


def advice_text(advice: str, cause: Cause, subject: Subject | None) -> str:
    """Return the advice with `{where}` replaced by the subject. Without a subject, general words replace it."""
    if subject is None:
        where = _NOWHERE.get(cause, "the tool")
    elif subject.instead is not None:
        where = f"{subject.tool} and {subject.instead}"
    else:
        where = str(subject)
    # `format` would fail on a tool name with braces, which a model may have invented.
    return advice.replace("{where}", where)


_NOWHERE: Mapping[Cause, str] = {
    "gave up": "those of the case",
    "wrong tool": "the tools",
    "low score": "each argument",
    "unknown tool": "as the call",
}


# The confusion table: the called tools for each expected tool, over many runs.

ToolPair = tuple[str | None, str | None]
"""The expected tool (`None`: no call was expected) and the called tool (`None`: no call was made)."""


@dataclass(frozen=True)
class ConfusionCounts:
    """The confusion table of tools: how often each tool was called in place of each expected tool."""

    counts: Mapping[ToolPair, int]

    @cached_property
    def confused_pairs(self) -> list[tuple[ToolPair, int]]:
        """The pairs of an expected tool and a different called tool (or none), the most frequent first."""
        off = []
        for pair, count in self.counts.items():
            if pair[0] is not None and pair[0] != pair[1]:
                off.append((pair, count))
        return sorted(off, key=lambda entry: (-entry[1], entry[0][0] or "", entry[0][1] or ""))

    @cached_property
    def _tools(self) -> list[str]:
        confused: Counter[str] = Counter()
        for (expected, called), count in self.counts.items():
            for tool in (expected, called):
                if tool is not None:
                    confused[tool] += count if expected != called else 0
        return sorted(confused, key=lambda tool: (-confused[tool], tool))

    @cached_property
    def rows(self) -> list[str | None]:
        """The expected tools. If there were unexpected calls, the last row is `None`."""
        there = {expected for expected, _ in self.counts}
        return list(filter(there.__contains__, (*self._tools, None)))

    @cached_property
    def columns(self) -> list[str | None]:
        """The called tools. If calls were missing, the first column is `None`."""
        there = {called for _, called in self.counts}
        return list(filter(there.__contains__, (None, *self._tools)))

    @property
    def without_correct_tools(self) -> ConfusionCounts:
        """The table without the tools that were called exactly when they were expected."""
        unsure: set[str | None] = set()
        for expected, called in self.counts:
            if expected != called:
                unsure |= {expected, called}
        counts = {}
        for pair, count in self.counts.items():
            if unsure.intersection(pair):
                counts[pair] = count
        return ConfusionCounts(counts)


@dataclass(frozen=True, slots=True)
class Symptom:
    """One fault of a run.

    `expected` and `got` are short texts. `why` is one line. `advice` replaces the advice on the cause, if set."""

    cause: Cause
    why: str
    subject: Subject | None = None
    expected: str | None = None
    got: str | None = None
    advice: str | None = None

    @property
    def advice_template(self) -> str:
        """The advice, with the placeholder `{where}` for its subject."""
        return self.advice or ADVICE[self.cause].first

    @property
    def remark(self) -> str:
        """The reason `why`, or an empty text if the subject already names the expected and the called tool."""
        if self.instead is not None:
            return ""
        return self.why

    @property
    def tool(self) -> str | None:
        """The tool that the symptom concerns, or `None` if it concerns the whole run."""
        if self.subject is not None:
            return self.subject.tool
        return None

    @property
    def instead(self) -> str | None:
        """The tool called in place of the expected tool, or `None` if there is no such tool."""
        if self.subject is not None:
            return self.subject.instead
        return None


def causes_of(symptoms: Iterable[Symptom]) -> tuple[Cause, ...]:
    return tuple(dict.fromkeys([symptom.cause for symptom in symptoms]))


@dataclass(frozen=True)
class FailedRun:
    """A failed run, its index among all runs (from 0), and its symptoms in the order of causes.

    To save memory, `result` has no rounds or is compressed."""

    index: int
    result: RunResult
    symptoms: tuple[Symptom, ...]

    @property
    def main(self) -> Cause:
        """The first cause. It probably led to the other causes."""
        return self.symptoms[0].cause

    @property
    def advice(self) -> str:
        """The advice on the main cause and its subject, in one line."""
        first = self.symptoms[0]
        return advice_text(first.advice_template, first.cause, first.subject)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """All causes of the run, each once, the main cause first."""
        return causes_of(self.symptoms)

    def symptoms_of(self, cause: Cause) -> list[Symptom]:
        return [symptom for symptom in self.symptoms if symptom.cause == cause]


@dataclass(frozen=True)
class CauseGroup:
    """The failed runs that share a cause. The cause may be the main cause of a run or a further cause."""

    cause: Cause
    runs: tuple[FailedRun, ...]

    @cached_property
    def numbers(self) -> CauseNumbers:
        fold = CauseFold(self.cause)
        for run in self.runs:
            fold.add(run.index, run.result, run.symptoms)
        return fold.numbers()

    @property
    def main(self) -> int:
        """The number of runs with this main cause."""
        return sum(run.main == self.cause for run in self.runs)

    @property
    def cases(self) -> int:
        """The number of cases of the runs. A case that fails with several models counts once."""
        return len({(run.result.suite, run.result.case_id) for run in self.runs})

    @cached_property
    def subjects(self) -> tuple[tuple[Subject, int], ...]:
        """The tools and parameters that the symptoms concern, with their frequency, the most frequent first."""
        return self.numbers.subjects

    @property
    def advice(self) -> str:
        return self.numbers.advice


@dataclass(frozen=True)
class CauseNumbers:
    """The failed runs that share a cause, as numbers.

    `indices` are the runs that have the cause. `main_indices` are the runs of which it is the main cause. `cases`
    counts the cases of the runs, each once for all models. `subjects` holds tools and parameters with their
    frequencies, the most frequent first."""

    cause: Cause
    indices: Sequence[int]
    main_indices: Sequence[int]
    cases: int
    subjects: tuple[tuple[Subject, int], ...]
    advice_template: str
    """The most frequent advice, with the placeholder `{where}` for its subject `about`."""
    about: Subject | None

    @property
    def advice(self) -> str:
        """The most frequent advice, in one line."""
        return advice_text(self.advice_template, self.cause, self.about)


class CauseFold:
    """The numbers of one cause, updated by each failed run."""

    def __init__(self, cause: Cause) -> None:
        self._cause = cause
        # Indices are kept in place of runs, because thousands of runs may fail by one cause.
        self._indices, self._main = array("L"), array("L")
        self._cases: set[tuple[str, str]] = set()
        self._seen: Counter[tuple[str, Subject | None]] = Counter()

    def add(self, index: int, result: RunResult, symptoms: Sequence[Symptom]) -> None:
        self._indices.append(index)
        if symptoms[0].cause == self._cause:
            self._main.append(index)
        self._cases.add((result.suite, result.case_id))
        for symptom in symptoms:
            if symptom.cause == self._cause:
                self._seen[symptom.advice_template, symptom.subject] += 1

    def numbers(self) -> CauseNumbers:
        advice: Counter[str] = Counter()
        for (advice_template, _), count in self._seen.items():
            advice[advice_template] += count
        # Advice on the offline baseline does not help a reader who compares the baseline with a model.
        first = min(advice, key=lambda text: (text == BASELINE_ADVICE, -advice[text], text))
        subjects: Counter[Subject] = Counter()
        about: Counter[Subject] = Counter()
        for (advice_template, subject), count in self._seen.items():
            if subject is not None:
                subjects[subject] += count
                about[subject] += count if advice_template == first else 0
        frequent = _most_frequent(about)
        return CauseNumbers(
            self._cause,
            self._indices,
            self._main,
            len(self._cases),
            _most_frequent(subjects),
            first,
            frequent[0][0] if frequent else None,
        )


def _most_frequent(counts: Counter[Subject]) -> tuple[tuple[Subject, int], ...]:
    occurring = +counts
    return tuple(sorted(occurring.items(), key=lambda entry: (-entry[1], str(entry[0]))))


@dataclass(frozen=True)
class FailureNumbers:
    """The failed runs by cause, like `Failures`, but as numbers without the runs, to save memory."""

    graded: int
    failed: int
    groups: tuple[CauseNumbers, ...]
    confusion: ConfusionCounts


@dataclass(frozen=True)
class Failures:
    """The failed runs, and their groups by cause in the order of `CAUSES`.

    The confusion table covers all graded runs, including good ones, of cases that expect calls or forbid all calls."""

    graded: int
    runs: tuple[FailedRun, ...]
    groups: tuple[CauseGroup, ...]
    confusion: ConfusionCounts

    @cached_property
    def numbers(self) -> FailureNumbers:
        groups = tuple(group.numbers for group in self.groups)
        return FailureNumbers(self.graded, len(self.runs), groups, self.confusion)


NO_FAILURES = Failures(0, (), (), ConfusionCounts({}))
"""The failures of an empty set of runs."""
