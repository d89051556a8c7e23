"""A call that a model made, as one that is expected: what of the suite stays, and which checks could be written."""

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
    """A run that cannot be taken as the expectation; the message says why, and what to do, in one sentence."""


@dataclass(frozen=True)
class TakenArgument:
    """An argument with the checks that could be written for it, and which one is; `given`: whether the call has it."""

    name: str
    value: JsonValue
    given: bool
    choices: tuple[CheckChoice, ...]
    chosen: int = 0
    was_expected: bool = False
    """Whether the suite has a check for it."""

    @property
    def choice(self) -> CheckChoice:
        """The check that is written."""
        return self.choices[self.chosen]


@dataclass(frozen=True)
class TakenCall:
    """A call that becomes expected. `place` is that of the expectation with which it was paired, whose other keys are
    `kept`; `answer` is the number of the model's answer it came in."""

    tool: str
    answer: int
    arguments: tuple[TakenArgument, ...]
    place: Place | None = None
    kept: Table | None = None
    lost: tuple[tuple[str, str], ...] = ()
    """What was expected of arguments, by their names, and is no more, in a few words."""

    @property
    def step(self) -> int | None:
        """The step of a chain, from 1, of which the call is expected."""
        place = self.place
        return int(place[1]) + 1 if place is not None and place[0] == "steps" else None

    @property
    def expectation(self) -> Table:
        """The expected call as the suite writes it. Without any check on arguments that were given, arguments do not
        matter; a call without arguments expects none."""
        args = {each.name: each.choice.written for each in self.arguments if each.choice.written is not None}
        call: Table = {"tool": self.tool}
        if args or not self.arguments:
            call["args"] = args
        kept = dict(self.kept or {})
        if any(each.given and each.choice.written is None for each in self.arguments):
            kept.pop("only_args", None)
        return {**kept, **call} if self.step is not None else {**call, **kept}


def check_calls(calls: Iterable[CallRecord]) -> None:
    """Raise AcceptError where a call is none that a suite could expect."""
    for record in calls:
        if record.call.problem is not None or not record.complete or not record.tool:
            what = record.tool or "a tool without a name"
            raise AcceptError(
                f"the arguments of a call of {what} are broken: run the case again, or accept other calls"
            )


def as_expected(record: CallRecord, place: Place | None = None, kept: Table | None = None) -> TakenCall:
    """A call of another tool than is expected, or of which nothing is expected yet: `place` is where it goes, if
    something stands there, of which the keys in `kept` stay."""
    arguments = tuple(_argument(name, value) for name, value in record.arguments.items())
    return TakenCall(record.tool, record.round, arguments, place, kept)


def as_expected_again(
    record: CallRecord, place: Place, written: Table, verdicts: Sequence[ArgumentVerdict]
) -> TakenCall:
    """A call of the tool that is expected: `written` is the expectation as it stands at its place, and `verdicts` what
    is said of its arguments."""
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
        # Whoever asks for any call does not ask for the arguments of the one that was made.
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
    """An argument that was given: its check is kept where it holds, else the new one has its weight. One without a
    check gets the `weight` of another, as either all arguments of a call have one or none has."""
    options: dict[str, object] = {}
    if isinstance(check, dict):
        options = {key: check[key] for key in OF_EVERY_CHECK if key in check}
    if weight is not None:
        options.setdefault("weight", weight)
    kept = check if verdict is not None and verdict.holds is not False else None
    choices = choices_for(name, value, kept, options)
    # A check that holds in part is there to be taken again, but what was done is not all that it asks for.
    in_part = verdict is not None and verdict.holds and verdict.score < verdict.weight * _IN_FULL
    return TakenArgument(name, value, True, choices, 1 if in_part and len(choices) > 2 else 0, check is not None)


_IN_FULL = 1 - 1e-9
