"""Derives the critics of the `critics` grader: one for each argument of every expected call.

A critic is an argument's check with its weight. Without `arcade_compatible` each call has the critics that it writes.
With it, every name that any call of the case writes has a critic in all of them, as in Arcade.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workbench.by_identity import ByIdentity
from workbench.checks.check import Check
from workbench.checks.value_kinds import Equals
from workbench.grading.grade import GradingError
from workbench.grading.scoring import is_required, resolve_weights
from workbench.grading.tool_names import ToolRegistry
from workbench.suite.model import ExpectedCall
from workbench.trajectory.messages import JsonValue


class Critic(NamedTuple):
    """One argument of an expected call. `equals_null` is replaced by `Equals(equals=None)`, or the schema's default.
    `judged` is false for a weight of zero, which is only recorded. `weight` is the resolved weight. The run fails when
    a `required` critic does not hold."""

    argument: str
    check: Check
    expects_null: bool
    judged: bool
    required: bool = False
    weight: float = 0.0


class CallCritics(NamedTuple):
    """The critics of an expected call. `weight` is their sum; `speaking` are the arguments that influence the pairing;
    `always_all` means that none expects null and none may be left out."""

    critics: tuple[Critic, ...]
    weight: float
    speaking: frozenset[str]
    some_optional: bool
    always_all: bool

    def judging(self, arguments: Mapping[str, JsonValue]) -> CallCritics:
        """Returns the critics that judge a call with these arguments: without optional ones that were left out."""
        if not self.some_optional:
            return self
        return _weighted([c for c in self.critics if c.argument in arguments or not c.check.optional])


def _weighted(critics: Sequence[Critic]) -> CallCritics:
    weights = resolve_weights([critic.check.weight for critic in critics])
    optional = any(critic.check.optional for critic in critics)
    return CallCritics(
        tuple([Critic(*critic[:-1], weight) for critic, weight in zip(critics, weights, strict=True)]),
        sum(weights),
        frozenset(critic.argument for critic in critics if critic.judged and not critic.expects_null),
        optional,
        not optional and not any(critic.expects_null for critic in critics),
    )


def critics_of(calls: Sequence[ExpectedCall], registry: ToolRegistry, *, arcade_compatible: bool) -> list[CallCritics]:
    """Returns the critics of each expected call; none for a call whose arguments do not matter (`args` absent).
    Arguments that the tool's schema fills in are recorded without judging.

    Raises GradingError when, with `arcade_compatible`, one argument name has different checks or weights within the
    case.
    """
    if arcade_compatible:
        return [_weighted(critics) for critics in _by_name_over_the_case(calls, registry)]
    return [_of_call(call, registry) for call in calls]


def _of_call(call: ExpectedCall, registry: ToolRegistry) -> CallCritics:
    defaults = registry.defaults(call.tool)
    return _with_defaults(call, defaults) if defaults else _as_written(call)


def _with_defaults(call: ExpectedCall, defaults: Mapping[str, JsonValue]) -> CallCritics:
    if call.args is None:
        return _weighted(())
    critics = [_critic(name, check, defaults.get(name)) for name, check in call.args.items()]
    critics += [_recorder(name, default) for name, default in defaults.items() if name not in call.args]
    return _weighted(critics)


_as_written: ByIdentity[ExpectedCall, CallCritics] = ByIdentity(lambda call: _with_defaults(call, {}))


def _by_name_over_the_case(calls: Sequence[ExpectedCall], registry: ToolRegistry) -> list[tuple[Critic, ...]]:
    templates: dict[str, Check] = {}
    for call in calls:
        for name, check in (call.args or {}).items():
            # Where the name is not written, the argument may not be left out: null is expected.
            first = templates.setdefault(
                name, check.model_copy(update={"optional": False}) if check.optional else check
            )
            if first is not check and first.critic_key != check.critic_key:
                raise GradingError(
                    f"grading.critics.arcade_compatible: the argument {name!r} has different checks or weights within "
                    "the case; give it the same ones in every call, or switch arcade_compatible off"
                )
    for call in calls:
        if call.args is not None:
            for name, default in registry.defaults(call.tool).items():
                templates.setdefault(name, _recorder(name, default).check)
    return [_bound_templates(call, templates, registry) for call in calls]


def _bound_templates(call: ExpectedCall, templates: dict[str, Check], registry: ToolRegistry) -> tuple[Critic, ...]:
    if call.args is None:
        return ()
    defaults = registry.defaults(call.tool)
    return tuple(
        _critic(name, call.args[name], defaults.get(name), arcade_compatible=True)
        if name in call.args
        else Critic(name, bound_to(template, defaults.get(name)), defaults.get(name) is None, template.weight != 0)
        for name, template in templates.items()
    )


def _critic(name: str, check: Check, default: JsonValue, *, arcade_compatible: bool = False) -> Critic:
    """Returns the critic of a written check. Where it expects null, it expects the schema's default instead, if there
    is one."""
    required = is_required(check, without_weight=not arcade_compatible)
    if check.expects_null:
        return Critic(name, bound_to(check, default), default is None, check.weight != 0, required)
    return Critic(name, check, False, check.weight != 0, required)


def _recorder(name: str, default: JsonValue) -> Critic:
    return Critic(name, Equals(equals=default, weight=0), default is None, False)


def bound_to(check: Check, value: JsonValue) -> Check:
    """Returns the same check for another expected value, which may be one that a suite cannot write there (such as
    null). Checks that Arcade does not know become a comparison."""
    if check.is_critic:
        return check.bound_to(value)
    return Equals(equals=value, weight=check.weight, optional=check.optional)
