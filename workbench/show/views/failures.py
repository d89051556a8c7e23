"""Failed runs by cause as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from workbench.analysis.failures import (
    ADVICE,
    CauseGroup,
    CauseNumbers,
    FailedRun,
    FailureNumbers,
    Failures,
    Pair,
    Symptom,
)
from workbench.numerals import counted
from workbench.show.text import Paint
from workbench.show.views.batch_text import run_title
from workbench.show.visible import one_line

MIXED_UP_MAX = 5
"""Entries of the confusion table that a summary names."""

NO_CALL = "no call"
NOT_EXPECTED = "not expected"
_CAUSE_WIDTH = 20


def failure_lines(failures: FailureNumbers, paint: Paint, *, with_advice: bool = True) -> Iterator[str]:
    """Yields a summary: each cause with its frequency, what it concerns most and what to do first; nothing when nothing
    failed."""
    if not failures.failed:
        return
    yield ""
    yield paint(f"Failures by cause: {failures.failed:,} of {counted(failures.graded, 'graded run')}", "strong")
    for group in failures.groups:
        concerned = f"  {concerned_text(group, 1)}" if group.subjects else ""
        yield f"  {paint(f'{group.cause:{_CAUSE_WIDTH}}', 'failed')}  {often(group)}{one_line(concerned)}"
        if with_advice:
            yield paint(f"      → {one_line(group.advice)}", "muted")
    if mixed_up := failures.confusion.mixed_up:
        pairs = ", ".join(f"{pair_text(pair)} {count:,}×" for pair, count in mixed_up[:MIXED_UP_MAX])
        more = len(mixed_up) - MIXED_UP_MAX
        yield f"  expected and called: {pairs}" + (f", and {counted(more, 'other')}" if more > 0 else "")


def often(group: CauseNumbers) -> str:
    """Returns `3 runs, the main cause of 2`, `2 runs, beside another cause`."""
    runs, main = counted(len(group.indices), "run"), len(group.main_indices)
    if main == len(group.indices):
        return runs
    return f"{runs}, the main cause of {main:,}" if main else f"{runs}, never the main cause"


def concerned_text(group: CauseNumbers | CauseGroup, most: int) -> str:
    """Returns the tools and parameters that a cause concerns most, and how many others there are."""
    named = ", ".join(f"{subject} {count:,}×" for subject, count in group.subjects[:most])
    more = len(group.subjects) - most
    return f"{named}, and {counted(more, 'other')}" if more > 0 else named


def pair_text(pair: Pair) -> str:
    """Returns `get_weather → no call`."""
    expected, called = pair
    return one_line(f"{expected or NOT_EXPECTED} → {called or NO_CALL}")


def symptom_text(symptom: Symptom) -> str:
    """Returns `set_lights.brightness: expected 5..40, got 60 (outside)`, with the parts that exist."""
    facts = (("expected", symptom.expected), ("got", symptom.got))
    parts = ", ".join(f"{word} {what}" for word, what in facts if what is not None)
    subject = str(symptom.subject) if symptom.subject is not None else ""
    return one_line(": ".join(filter(None, (subject, parts))) + (f" ({symptom.remark})" if symptom.remark else ""))


def failures_text(failures: Failures, suite_names: Mapping[str, str]) -> str:
    """Returns everything about the failures as plain text: causes with meaning and advice, runs, the confusion
    table."""
    lines = [f"{len(failures.runs):,} of {counted(failures.graded, 'graded run')} failed"]
    for group in failures.groups:
        lines += [
            "",
            f"{group.cause}: {often(group.numbers)} of {counted(group.cases, 'case')}",
            f"  {advice_text(group)}",
        ]
        if group.subjects:
            lines.append(f"  concerned: {concerned_text(group, len(group.subjects))}")
        for run in group.runs:
            lines.append(f"  {failed_title(run, suite_names)}")
            lines += [f"      {symptom_text(symptom)}" for symptom in run.symptoms_of(group.cause)]
    lines += ["", "expected → called, over all graded runs"]
    counts = sorted(failures.confusion.counts.items(), key=lambda entry: (entry[0][0] or "~", -entry[1]))
    lines += [f"  {pair_text(pair)}  {count:,}" for pair, count in counts]
    return "\n".join(map(one_line, lines)) + "\n"


def failed_title(run: FailedRun, suite_names: Mapping[str, str]) -> str:
    """Returns a failed run on one line: suite, case, repeat, model."""
    return f"{run_title(run.result, suite_names)}  {one_line(run.result.model)}"


def advice_text(group: CauseGroup) -> str:
    """Return the meaning of a cause and what to do about it, in one paragraph."""
    return f"{ADVICE[group.cause].meaning} {group.advice[:1].upper()}{group.advice[1:]}."
