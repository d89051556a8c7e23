"""The causes for which runs fail, and what to do about each: in the tool's description, its schema or the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from workbench.dataclasses import dataclass

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
    """What a cause means, and what to do about it in one sentence; `{where}` is what it concerns most. Where what was
    seen of a run asks for something else, its symptoms say so (`Symptom.advice`)."""

    meaning: str
    first: str


ADVICE: Mapping[Cause, Advice] = {
    "endpoint": Advice(
        "The endpoint failed, not the model: it lost or spoiled what was sent, or what the model answered.",
        "mend the endpoint that serves the model, or use another one",
    ),
    "sent too much": Advice(
        "An answer was longer than any suite needs, so the rest of it was not read.",
        "limit the model's output tokens in its parameters",
    ),
    "cut off": Advice(
        "An answer reached the limit on output tokens, so the rest of it is missing.",
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
        "The run ended before everything was there: it answered in words without calling anything, said nothing, or"
        " went on calling until the rounds were used up.",
        "say in the system prompt that requests like these should be handled with tools such as {where}",
    ),
    "forbidden call": Advice(
        "A call was made that the case disallows.",
        "say in the description of {where} when it must not be called, and what to do instead",
    ),
    "wrong tool": Advice(
        "Another tool was called than the one that was expected.",
        "tell {where} apart: say in both descriptions when to use which",
    ),
    "missing call": Advice(
        "A call that was expected was never made.",
        "say in the description of {where} for which requests it is meant, in the words that users use",
    ),
    "extra call": Advice(
        "More was called than was expected.", "say in the description of {where} when it is not needed"
    ),
    "wrong order": Advice(
        "The calls were made, but not in the sequence in which they were expected.",
        "say in the description of {where} what has to be called before it",
    ),
    "schema violation": Advice(
        "The tool's own schema refuses the arguments of a call.",
        "describe {where} as its schema demands it, with an example of a valid value",
    ),
    "missing argument": Advice(
        "An argument that was expected was left out.",
        "make {where} required in the schema, or describe when it is to be given",
    ),
    "wrong argument": Advice(
        "An argument has another value than expected.",
        "describe the values of {where} with an example, or list them as enum in the schema",
    ),
    "invalid argument": Advice(
        "An optional argument was given with a value that it must not have.",
        "say in the schema of {where} which values are allowed, and that it may be left out",
    ),
    "forbidden argument": Advice(
        "An argument was given that must not be.",
        "say in the description of {where} when it must not be given",
    ),
    "unexpected argument": Advice(
        "A call has arguments, and none were expected.",
        "say in the description of {where} that it is to be left out unless the user asks for it",
    ),
    "content": Advice(
        "The final answer does not say what it should.",
        "say in the system prompt what an answer must contain",
    ),
    "low score": Advice(
        "Nothing is plainly wrong, but too little was earned: values that are only near what was expected, or a rule"
        " of the grader.",
        "look at the grades: what {where} earned, and how the score came about",
    ),
    "over calling": Advice(
        "More calls were made than the limit allows. This is noted, and fails no run by itself.",
        "say in the system prompt when to stop, or raise max_tool_calls",
    ),
    "latency": Advice(
        "The run took longer than its budget. This is noted, and fails no run by itself.",
        "offer fewer tools and shorter descriptions, choose a faster model, or raise max_latency_ms",
    ),
}

BASELINE = "offline"
"""The offline model, which is no language model."""

FOR_BASELINE = "this baseline matches words: choose a model with m"
"""What to do about failures of the offline model, which no description can teach."""

ASKED_BACK = "put what the answer asks for into the request, or name a tool that finds it out"
USED_UP = "let the answers of the tools say that a call worked, or raise max_rounds"
REPEATED = "let the answer of {where} say that it worked: the same call was made again"
"""What to do where more is known than the cause."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a failure concerns, as far as known: a tool, one of its parameters, the tool that was called `instead`."""

    tool: str
    argument: str | None = None
    instead: str | None = None

    def __str__(self) -> str:
        if self.instead is not None:
            return f"{self.tool}, but {self.instead} was called"
        return self.tool if self.argument is None else f"{self.tool}.{self.argument}"


def advice_about(advice: str, cause: Cause, subject: Subject | None) -> str:
    """Return an advice in one line, about what is concerned most."""
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
