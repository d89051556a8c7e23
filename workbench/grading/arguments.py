"""Evaluates the checks of one expected call on the arguments of one actual call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from workbench.checks.check import Check, CheckContext, Checks, EqualsRule, asks, describe, evaluate
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.checks.value_kinds import Equals
from workbench.grading.grade import ArgumentVerdict
from workbench.grading.scoring import is_required
from workbench.trajectory.messages import JsonValue


def judge_arguments(
    tool: str,
    checks: Checks,
    arguments: Mapping[str, JsonValue],
    *,
    equal: EqualsRule,
    context: CheckContext,
    shared: float = 0.0,
    same_tool: bool = True,
    all_or_nothing: bool = False,
) -> tuple[ArgumentVerdict, ...]:
    """Returns one verdict for each check, in order; an optional argument that was left out counts as not listed.

    A check holds or not: graded ones earn all or nothing of their equal part of `shared`. A judge is asked only if
    `same_tool` is true and, with `all_or_nothing`, only if everything else holds and no argument is too many, or the
    check is required.

    Raises CheckError, naming tool and argument, when a check cannot be evaluated.
    """
    listed = checks
    if not checks.keys() <= arguments.keys():
        listed = {name: check for name, check in checks.items() if name in arguments or not check.optional}
    weight = shared / len(listed) if listed else 0.0
    verdicts: dict[str, ArgumentVerdict] = {}
    judged = {name for name, check in listed.items() if type(check) is not Equals and asks(check, Judged)}
    wrong = bool(judged) and not arguments.keys() <= checks.keys()
    in_turn: Iterable[tuple[str, Check]] = listed.items()
    if judged and all_or_nothing:
        in_turn = sorted(in_turn, key=lambda each: each[0] in judged)
    for name, check in in_turn:
        value, given = arguments.get(name), name in arguments
        holds: bool | None
        if name in judged and not same_tool:
            holds, why = False, "not judged, because another tool was called"
        elif name in judged and given and all_or_nothing and wrong and not check.required:
            holds, why = None, "not judged, because the call is already wrong"
        else:
            try:
                verdict = evaluate(check, value, given, equal=equal, context=context)
            except CheckError as error:
                raise CheckError(f"{tool}.{name}: {error}") from error
            holds, why = verdict.holds, verdict.note
            wrong = wrong or not holds
        score = weight if holds else 0.0
        required = is_required(check)
        verdicts[name] = ArgumentVerdict(
            name, holds, score, weight, describe(check), value, given, why, required=required
        )
    return tuple([verdicts[name] for name in listed] if judged else verdicts.values())


def unlisted_arguments(
    listed: Set[str], arguments: Mapping[str, JsonValue], cost: float = 0.0
) -> tuple[ArgumentVerdict, ...]:
    """Returns one verdict for each argument that was given but is not listed; each costs `cost`."""
    if arguments.keys() <= listed:
        return ()
    return tuple(
        ArgumentVerdict(name, False, -cost, 0.0, "not expected", value, True, "not expected", listed=False)
        for name, value in arguments.items()
        if name not in listed
    )
