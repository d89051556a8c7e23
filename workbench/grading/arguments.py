"""The checks of one expected call on one actual call's arguments, as verdicts to show."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.checks.describe import describe
from workbench.checks.equality import EqualsRule
from workbench.checks.errors import CheckError
from workbench.checks.evaluate import CheckVerdict, Outside, evaluate
from workbench.grading.grade import ArgumentVerdict
from workbench.suite.checks import Checks, Judged
from workbench.trajectory.messages import JsonValue


def judge_arguments(
    tool: str,
    checks: Checks,
    arguments: Mapping[str, JsonValue],
    *,
    equal: EqualsRule,
    outside: Outside,
    shared: float = 0.0,
    same_tool: bool = True,
) -> tuple[ArgumentVerdict, ...]:
    """One verdict for each check, in order; an optional argument that was left out is as if it were not listed.

    A check holds or not: graded ones earn all or nothing of their equal part of `shared`. No judge is asked unless
    `same_tool` is true. Raises CheckError, naming tool and argument, when a check cannot be evaluated.
    """
    listed = [(name, check) for name, check in checks.items() if name in arguments or not check.optional]
    weight = shared / len(listed) if listed else 0.0
    verdicts = []
    for name, check in listed:
        value, given = arguments.get(name), name in arguments
        try:
            if not same_tool and isinstance(check, Judged):
                verdict = _NOT_ASKED
            else:
                verdict = evaluate(check, value, given, equal=equal, outside=outside)
        except CheckError as error:
            raise CheckError(f"{tool}.{name}: {error}") from error
        score = weight if verdict.holds else 0.0
        verdicts.append(
            ArgumentVerdict(name, verdict.holds, score, weight, describe(check), value, given, verdict.note)
        )
    return tuple(verdicts)


_NOT_ASKED = CheckVerdict(0.0, False, "no judge is asked about a call of another tool")
