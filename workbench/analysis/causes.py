"""The causes for which runs fail, and what to do about each: in the tool's description, its schema or the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from workbench.dataclasses import dataclass

Cause = Literal[
    "sent too much",
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

ABOUT_TOOLS: frozenset[Cause] = frozenset({"gave up", "forbidden call", "wrong tool", "missing call", "extra call"})
"""The causes for which the confusion table is useful."""


@dataclass(frozen=True)
class Advice:
    """What a cause means, what to do first (one line; `{where}` is what it concerns most), and what else helps."""

    meaning: str
    first: str
    more: tuple[str, ...] = ()


ADVICE: Mapping[Cause, Advice] = {
    "sent too much": Advice(
        "An answer was longer than any suite needs, so the rest of it was not read.",
        "limit the model's output tokens in its parameters",
        (
            "Read the beginning of the answer: a model that repeats itself may need another temperature, or a"
            " repetition penalty.",
        ),
    ),
    "broken JSON": Advice(
        "The arguments of a call were not a JSON object, so the tool received none.",
        "make the schema of {where} flatter, with fewer and shorter free texts",
        (
            "Look at what the model wrote: cut off in the middle means that its answer was too short for the call;"
            " raise the limit on output tokens.",
            "Quotes and line breaks inside long texts are what breaks most often. Let the tool take a list or several"
            " parameters in place of one text with a format of its own.",
            "If only one model does it, that model may need another way of calling tools, or is too small for this.",
        ),
    ),
    "gave up": Advice(
        "The run ended before everything was there: it answered in words without calling anything, refused, was cut"
        " off, said nothing, or went on calling until the rounds were used up.",
        "say in the system prompt that requests like these should be handled with tools such as {where}",
        (
            "An answer that asks back lacks something: put it into the request, or name a tool that finds it out.",
            "A refusal: say in the system prompt why the request is legitimate, and describe the tool by what it does"
            " for the user.",
            "Rounds used up: read what the mocks answer. A model repeats a call whose answer does not say that it"
            " worked. Only then raise max_rounds.",
            "Cut off: raise the limit on output tokens of that model.",
        ),
    ),
    "forbidden call": Advice(
        "A call was made that the case disallows.",
        "say in the description of {where} when it must not be called, and what to do instead",
        (
            "A rule of behaviour (ask before deleting, read before writing) belongs in the system prompt, in one"
            " sentence with the tool's name.",
            "If a tool should never be within reach of such requests, do not offer it: offer in the case, or another"
            " set of tools.",
        ),
    ),
    "wrong tool": Advice(
        "Another tool was called than the one that was expected.",
        "tell {where} apart: say in both descriptions when to use which",
        (
            "Begin each description with what only this tool does, and add when to use the other one.",
            "Names that differ in their middle are mixed up most easily; put the difference first.",
            "Two tools that cannot be told apart in a sentence may be one tool with a parameter.",
            "If the call that was made would do as well, the expectation is too narrow.",
        ),
    ),
    "missing call": Advice(
        "A call that was expected was never made.",
        "say in the description of {where} for which requests it is meant, in the words that users use",
        (
            "In a request with several parts the later ones are forgotten: let the system prompt say that every part"
            " is to be done before answering.",
            "A call that follows from the result of another needs that result: look at what the mock answers.",
            "If the model does the same in another way, loosen the expectation.",
        ),
    ),
    "extra call": Advice(
        "More was called than was expected.",
        "say in the description of {where} when it is not needed",
        (
            "A call that is repeated with the same arguments got an answer that does not say it worked: improve the"
            " mock, or the tool.",
            "Calls that look something up first are often sensible. If they do no harm, allow them"
            ' (extra_calls = "allow", and fail_on_tool_call_quantity = false for critics).',
        ),
    ),
    "wrong order": Advice(
        "The calls were made, but not in the sequence in which they were expected.",
        "say in the description of {where} what has to be called before it",
        (
            "Calls of one answer are made at once: a model that does so saw no need for a sequence. Let the second"
            " tool need something that only the first one answers.",
            "If the sequence does not matter, expect the calls as unordered or in an any_order group.",
        ),
    ),
    "schema violation": Advice(
        "The arguments of a call do not fit the tool's own schema, so a server refuses the call.",
        "say in the description of {where} which values it takes, with an example of each",
        (
            "Read the rule at the argument: a rule that the tool does not need (a range, an additional property) is"
            " better left out of the schema.",
            "A model that corrects a call after the tool refused it loses only time: let the refusal name what is"
            " wrong, and check that max_rounds leaves a round for it.",
            "Where the provider has strict schemas or constrained decoding, switch them on.",
        ),
    ),
    "missing argument": Advice(
        "An argument that was expected was left out.",
        "make {where} required in the schema, or describe when it is to be given",
        (
            "A parameter without a description is left out first. One sentence and one example are enough.",
            "If the default means the same, expect it as optional, or write the default into the schema.",
        ),
    ),
    "wrong argument": Advice(
        "An argument has another value than expected.",
        "describe the values of {where} with an example, or list them as enum in the schema",
        (
            "Formats (dates, units, codes, ids) are guessed unless the description names them:"
            ' "ISO 8601, like 2026-03-01T09:00".',
            "A value that no part of the conversation gives cannot be right: put it into the request, the history or"
            " a mock's answer.",
            "Where several values are fine, expect them with a looser check: one_of, contains, similar, near, pattern.",
        ),
    ),
    "invalid argument": Advice(
        "An optional argument was given with a value that it must not have.",
        "say in the schema of {where} which values are allowed, and that it may be left out",
        ("A default written into the schema keeps models from filling in something of their own.",),
    ),
    "forbidden argument": Advice(
        "An argument was given that must not be.",
        "say in the description of {where} when it must not be given",
        ("A parameter that this caller never needs is better not offered: take it out of the schema.",),
    ),
    "unexpected argument": Advice(
        "A call has arguments, and none were expected.",
        "say in the description of {where} that it is to be left out unless the user asks for it",
        (
            'Without "additionalProperties": false some models invent parameters.',
            "If arguments do no harm, leave args out of the expectation instead of writing args = {}.",
        ),
    ),
    "content": Advice(
        "The final answer does not say what it should.",
        "say in the system prompt what an answer must contain",
        (
            "Facts that come from tools are repeated only when the tool's answer has them clearly: look at the mock.",
            "Check for single words (response_contains) or likeness (similar, judged) where wording is free.",
        ),
    ),
    "low score": Advice(
        "Nothing is plainly wrong, but too little was earned: values that are only near what was expected, or a rule"
        " of the grader.",
        "look at the grades: what {where} earned, and how the score came about",
        ("Widen the tolerance of the check, or lower the threshold, if such runs are good enough for you.",),
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


def first_advice(cause: Cause, subject: Subject | None) -> str:
    """Returns what to do first, in one line, about what is concerned most."""
    if subject is None:
        where = _NOWHERE.get(cause, "the tool")
    else:
        where = str(subject) if subject.instead is None else f"{subject.tool} and {subject.instead}"
    # Not by `format`: a model may have invented a name with braces.
    return ADVICE[cause].first.replace("{where}", where)


_NOWHERE: Mapping[Cause, str] = {
    "gave up": "those of the case",
    "wrong tool": "the tools",
    "low score": "each argument",
}
