"""Turns a call that a model made into an expected call: which keys of the suite stay, and which checks are possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.authoring.accepting.checks import KEPT, CheckChoice, choices_for, kept_choices
from workbench.authoring.form.cells import OF_EVERY_CHECK
from workbench.grading.grade import ArgumentVerdict
from workbench.suite.model import ANY_TOOL
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.trajectory import CallRecord


class AcceptError(ValueError):
    """Raised when a run cannot become the expectation. The message says why and what to do, in one sentence."""


@dataclass(frozen=True)
class TakenArgument:
    """An argument and the checks that could be written for it. `chosen` is the selected check; `given` is false for an
    argument that the call does not have."""

    name: str
    value: JsonValue
    given: bool
    choices: tuple[CheckChoice, ...]
    chosen: int = 0
    was_expected: bool = False
    """Whether the suite already has a check for it."""

    @property
    def choice(self) -> CheckChoice:
        """The selected check."""
        return self.choices[self.chosen]


@dataclass(frozen=True)
class TakenCall:
    """A call that becomes expected. `place` is where the expectation it was paired with stands, whose other keys are
    `kept`. `answer` is the number of the model's answer that contains the call."""

    tool: str
    answer: int
    arguments: tuple[TakenArgument, ...]
    place: Place | None = None
    kept: Table | None = None
    lost: tuple[tuple[str, str], ...] = ()
    """Expectations on arguments that are dropped: their names, each with a few words."""

    @property
    def step(self) -> int | None:
        """The step of a chain, from 1, that expects the call."""
        place = self.place
        return int(place[1]) + 1 if place is not None and place[0] == "steps" else None

    @property
    def expectation(self) -> Table:
        """The expected call as the suite writes it. If given arguments have no check at all, arguments do not matter. A
        call without arguments expects none."""
        args = {each.name: each.choice.written for each in self.arguments if each.choice.written is not None}
        call: Table = {"tool": self.tool}
        if args or not self.arguments:
            call["args"] = args
        kept = dict(self.kept or {})
        if any(each.given and each.choice.written is None for each in self.arguments):
            kept.pop("only_args", None)
        return {**kept, **call} if self.step is not None else {**call, **kept}


def check_calls(calls: Iterable[CallRecord]) -> None:
    """Raise AcceptError if a suite cannot expect one of these calls."""
    for record in calls:
        if record.call.problem is not None or not record.complete or not record.tool:
            what = record.tool or "a tool without a name"
            raise AcceptError(
                f"the arguments of a call of {what} are broken: run the case again, or accept other calls"
            )


def as_expected(record: CallRecord, place: Place | None = None, kept: Table | None = None) -> TakenCall:
    """Expect a call that was not expected before, or whose tool differs from the expected one. `place` is where it
    goes; the keys in `kept` stay there."""
    arguments = tuple(_argument(name, value) for name, value in record.arguments.items())
    return TakenCall(record.tool, record.round, arguments, place, kept)


def as_expected_again(
    record: CallRecord, place: Place, written: Table, verdicts: Sequence[ArgumentVerdict]
) -> TakenCall:
    """Expect a call of the expected tool. `written` is the present expectation, `verdicts` the grader's verdicts on its
    arguments."""
    raw = written.get("args")
    checks: Mapping[str, object] = raw if isinstance(raw, dict) else {}
    said = {verdict.argument: verdict for verdict in verdicts}
    weight = next((check["weight"] for check in checks.values() if isinstance(check, dict) and "weight" in check), None)
    arguments = [
        _argument(name, value, checks.get(name), said.get(name), weight) for name, value in record.arguments.items()
    ]
    lost: list[tuple[str, str]] = []
    for name, check in checks.items():
        if name in record.arguments:
            continue
        verdict = said.get(name)
        if verdict is None or verdict.holds is not False:
            arguments.append(TakenArgument(name, None, False, kept_choices(check), was_expected=True))
        else:
            lost.append((name, CheckChoice(KEPT, check).text))
    if written["tool"] == ANY_TOOL and raw is None:
        # An expectation of any call says nothing about the arguments of this one.
        arguments = [replace(each, chosen=len(each.choices) - 1) for each in arguments]
    if written.get("only_args"):
        lost += [(name, "must not be given") for name in record.arguments if name not in checks]
    kept = {key: value for key, value in written.items() if key not in ("tool", "args", "forbidden_args")}
    forbidden = written.get("forbidden_args")
    if isinstance(forbidden, list):
        lost += [(name, "must not be given") for name in forbidden if name in record.arguments]
        if left := [name for name in forbidden if name not in record.arguments]:
            kept["forbidden_args"] = left
    return TakenCall(str(written["tool"]), record.round, tuple(arguments), place, kept, tuple(lost))


def _argument(
    name: str,
    value: JsonValue,
    check: object = None,
    verdict: ArgumentVerdict | None = None,
    weight: object = None,
) -> TakenArgument:
    """Build the choices for an argument. Its check is kept where it holds; a new check takes over its weight. An
    argument without a check gets the given `weight`, since either all arguments of a call have one or none has."""
    options: dict[str, object] = {}
    if isinstance(check, dict):
        options = {key: check[key] for key in OF_EVERY_CHECK if key in check}
    if weight is not None:
        options.setdefault("weight", weight)
    kept = check if verdict is not None and verdict.holds is not False else None
    choices = choices_for(name, value, kept, options)
    # A check that holds only in part stays available, but a check that the value meets in full is preselected.
    in_part = verdict is not None and verdict.holds and verdict.score < verdict.weight * _IN_FULL
    return TakenArgument(name, value, True, choices, 1 if in_part and len(choices) > 2 else 0, check is not None)


_IN_FULL = 1 - 1e-9
