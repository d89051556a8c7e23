"""Applies the variants of a suite to the suite and its cases, and names the runs of variants."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from typing import Final, TypeVar

from workbench.dataclasses import cached_by_identity, dataclass
from workbench.suite.expected_calls import ANY_TOOL, AnyOrder, DisallowedCall, ExpectedCall
from workbench.suite.grading_model import ExtraCalls, GradingTable
from workbench.suite.model import (
    Case,
    FinalState,
    FinalTable,
    Mock,
    PriorMessage,
    SetupCall,
    Step,
    Suite,
    Tool,
    ToolChange,
    Variant,
    by_name,
)
from workbench.suite.server_model import Answer, Server
from workbench.suite.user_model import TurnCondition, UserTable

SEPARATOR: Final = " × "
"""The text between model and variant in the name of a run's target, as in `offline × terse`."""


class UnknownVariantError(ValueError):
    """The suite lacks the variant that a run names."""


@dataclass(frozen=True)
class Variants:
    """The variants to run: the variants in `names`, or every variant if `all_of_them` is true.

    `plain` adds runs of the suite without a variant."""

    names: frozenset[str] = frozenset()
    all_of_them: bool = False
    plain: bool = True

    def takes(self, variant: Variant) -> bool:
        return self.all_of_them or variant.name in self.names


NO_VARIANTS: Final = Variants()


def target_name(model: str, variant: Variant | None) -> str:
    """Return the name of a run's target. Results, reports and the history show it in place of the model."""
    if variant is None:
        return model
    return f"{variant.model or model}{SEPARATOR}{variant.name}"


def model_of(target: str) -> str:
    return target.partition(SEPARATOR)[0]


def variant_name_of(target: str) -> str | None:
    """Return the name of the variant in a target such as `offline × terse`, or `None` if the target has no variant."""
    return target.partition(SEPARATOR)[2] or None


def variant_of(suite: Suite, target: str) -> Variant | None:
    """Return the variant of a run's target, or `None` if the target's name has no variant.

    Raises UnknownVariantError if the suite lacks the variant."""
    if SEPARATOR not in target:
        return None
    name = variant_name_of(target)
    for variant in suite.variants:
        if variant.name == name:
            return variant
    raise UnknownVariantError(f"the suite {suite.name!r} has no variant {name!r}")


def has_variant_of(suite: Suite, target: str) -> bool:
    """Return whether the suite has the variant that a run's target names.

    Return True if the target names no variant."""
    name = variant_name_of(target)
    return name is None or any(variant.name == name for variant in suite.variants)


def changed_tools(variant: Variant | None) -> tuple[ToolChange, ...]:
    if variant is None:
        return ()
    changes = []
    # If `names` replaces the tool by another tool, a change that has only `arguments` concerns the expectations, not
    # the tool.
    for change in variant.changes:
        if change.tool not in variant.names or change.model_fields_set - {"tool", "arguments"}:
            changes.append(change)
    return tuple(changes)


def varied_suite(suite: Suite, variant: Variant | None) -> Suite:
    """Apply a variant to a suite. The result has no variants.

    The cases are unchanged: `varied_case` changes each case. The same arguments return the same object."""
    if variant is None:
        return suite
    return _suites_of(variant)(suite)


def varied_case(case: Case, variant: Variant | None) -> Case:
    """Apply a variant to a case. The result has no variants.

    The same arguments return the same object."""
    if variant is None:
        return _plain_cases(case) if case.variants else case
    return _cases_of(variant)(case)


# The caches hold variants weakly. The function in an entry must not hold the variant strongly either, or the entry
# would stay for ever.


def _held(variant_ref: weakref.ref[Variant]) -> Variant:
    variant = variant_ref()
    assert variant is not None
    return variant


_suites_of: Callable[[Variant], Callable[[Suite], Suite]] = cached_by_identity(
    lambda variant: cached_by_identity(partial(_varied_suite, weakref.ref(variant)))
)
_cases_of: Callable[[Variant], Callable[[Case], Case]] = cached_by_identity(
    lambda variant: cached_by_identity(partial(_varied_case, weakref.ref(variant)))
)


_plain_cases: Callable[[Case], Case] = cached_by_identity(lambda case: case.model_copy(update={"variants": ()}))


def _varied_suite(variant_ref: weakref.ref[Variant], suite: Suite) -> Suite:
    variant = _held(variant_ref)
    names = _Names.of(variant)
    update: dict[str, object] = {
        "servers": _replaced(suite.servers, variant.servers),
        # The tools of a host are offered in addition to the suite's tools, which are the tools under test.
        "tools": _replaced(variant.tools, suite.tools) if variant.host else _replaced(suite.tools, variant.tools),
        "mocks": tuple(map(names.mock, suite.mocks)),
        "answers": tuple(map(names.answer, suite.answers)),
        "grading": names.grading(suite.grading),
        "variants": (),
    }
    if variant.system is not None:
        update["system"] = variant.system
    return suite.model_copy(update=update)


def _varied_case(variant_ref: weakref.ref[Variant], case: Case) -> Case:
    variant = _held(variant_ref)
    names = _Names.of(variant)
    own = case.in_variant(variant.name)
    offer = variant.offer
    if offer is None:
        offer = case.offer
    if offer is not None:
        offer = tuple(map(names.tool, offer))
        if variant.host:
            offer += tuple(tool.name for tool in variant.tools)
    # A variant's tool replaces the case's own tool of the same name. The variant's other tools are added to the suite.
    own_tools = by_name(case.tools)
    for tool in variant.tools:
        if tool.name in own_tools and not variant.host:
            own_tools[tool.name] = tool
    update: dict[str, object] = {
        "user": names.user(case.user),
        "messages": tuple(map(names.message, case.messages)),
        "ordered": tuple(map(names.item, own.ordered)),
        "unordered": tuple(map(names.item, own.unordered)),
        "disallowed": tuple(map(names.disallowed, own.disallowed)),
        "expect_no_calls": own.expect_no_calls,
        "variants": (),
        "setup": tuple(map(names.given, case.setup)),
        "final": names.final(case.final),
        "steps": tuple(map(names.step, case.steps)),
        "tools": tuple(own_tools.values()),
        "mocks": (*variant.mocks, *map(names.mock, case.mocks)),
        "answers": tuple(map(names.answer, case.answers)),
        "offer": offer,
        "extra_calls": names.extra_calls(case.extra_calls),
        "grading": names.grading(case.grading),
    }
    if variant.system is not None:
        update["system"] = variant.system
    return case.model_copy(update=update)


_Named = TypeVar("_Named", Server, Tool)


def _replaced(defined: Iterable[_Named], instead: Iterable[_Named]) -> tuple[_Named, ...]:
    return tuple(by_name(chain(defined, instead)).values())


_Given = TypeVar("_Given", SetupCall, FinalState)


@dataclass(frozen=True)
class _Names:
    """The names of tools and arguments in a variant, by their names in the suite."""

    tools: Mapping[str, str]
    arguments: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, variant: Variant) -> _Names:
        tools: dict[str, str] = {}
        arguments = {}
        for change in variant.changes:
            arguments[change.tool] = change.arguments
            if change.name is not None:
                tools[change.tool] = change.name
        return cls(tools | variant.names, arguments)

    def tool(self, name: str) -> str:
        if name == ANY_TOOL:
            return name
        return self.tools.get(name, name)

    def extra_calls(self, rule: ExtraCalls | None) -> ExtraCalls | None:
        if isinstance(rule, tuple):
            return tuple(map(self.tool, rule))
        return rule

    def grading(self, written: GradingTable) -> GradingTable:
        if not isinstance(written.extra_calls, tuple):
            return written
        return written.model_copy(update={"extra_calls": self.extra_calls(written.extra_calls)})

    def args(self, tool: str, args: Mapping[str, object] | None) -> dict[str, object] | None:
        if args is None:
            return None
        names = self.arguments.get(tool, {})
        return {names.get(name, name): value for name, value in args.items()}

    def item(self, item: ExpectedCall | AnyOrder) -> ExpectedCall | AnyOrder:
        if isinstance(item, AnyOrder):
            return item.model_copy(update={"any_order": tuple(map(self.call, item.any_order))})
        return self.call(item)

    def call(self, call: ExpectedCall) -> ExpectedCall:
        renamed = self._expected(call.tool, call.args, call.forbidden_args)
        return call.model_copy(update={**renamed, "any_of": tuple(map(self.call, call.any_of))})

    def disallowed(self, call: DisallowedCall) -> DisallowedCall:
        others = {key: self.call(other) for key, other in call.conditions}
        return call.model_copy(update={**self._expected(call.tool, call.args, call.forbidden_args), **others})

    def given(self, call: _Given) -> _Given:
        return call.model_copy(update={"tool": self.tool(call.tool), "args": self.args(call.tool, call.args)})

    def final(self, final: FinalTable | None) -> FinalTable | None:
        if final is None:
            return None
        changes = final.changes
        if changes is not None:
            changes = tuple(map(self.call, changes))
        # A pattern that matches a tool by its name in the suite keeps matching the tool.
        readers = list(final.readers)
        for old, new in self.tools.items():
            if any(fnmatchcase(old, each) for each in final.readers):
                readers.append(new)
        state = tuple(map(self.given, final.state))
        says = []
        for text in final.texts:
            after = None if text.after_tool is None else self.tool(text.after_tool)
            says.append(text.model_copy(update={"after_tool": after}))
        update = {"changes": changes, "readers": tuple(readers), "state": state, "says": tuple(says)}
        return final.model_copy(update=update)

    def user(self, user: str | UserTable | None) -> str | UserTable | None:
        if not isinstance(user, UserTable):
            return user
        messages = []
        for message in user.messages:
            update = {
                "when": self.condition(message.when),
                "ordered": tuple(map(self.item, message.ordered)),
                "unordered": tuple(map(self.item, message.unordered)),
                "disallowed": tuple(map(self.disallowed, message.disallowed)),
            }
            messages.append(message.model_copy(update=update))
        facts = {}
        for name, fact in user.withheld.items():
            facts[name] = fact.model_copy(update={"when": self.condition(fact.when)})
        stop = None if user.stop is None else self.condition(user.stop)
        return user.model_copy(update={"messages": tuple(messages), "facts": facts, "stop": stop})

    def condition(self, condition: TurnCondition) -> TurnCondition:
        return condition.model_copy(update={"called": tuple(map(self.tool, condition.called))})

    def step(self, step: Step) -> Step:
        any_of = tuple(map(self.call, step.any_of))
        if step.tool is None:
            return step.model_copy(update={"any_of": any_of}) if any_of else step
        return step.model_copy(update=self._expected(step.tool, step.args, step.forbidden_args))

    def _expected(
        self, tool: str, args: Mapping[str, object] | None, forbidden_args: Iterable[str]
    ) -> dict[str, object]:
        names = self.arguments.get(tool, {})
        return {
            "tool": self.tool(tool),
            "args": self.args(tool, args),
            "forbidden_args": tuple(names.get(name, name) for name in forbidden_args),
        }

    def mock(self, mock: Mock) -> Mock:
        return mock.model_copy(update={"tool": self.tool(mock.tool), "when": self.args(mock.tool, mock.when)})

    def answer(self, answer: Answer) -> Answer:
        if answer.tool is None:
            return answer
        return answer.model_copy(update={"tool": self.tool(answer.tool)})

    def message(self, message: PriorMessage) -> PriorMessage:
        calls = []
        for call in message.tool_calls:
            renamed = {"tool": self.tool(call.tool), "args": self.args(call.tool, call.args)}
            calls.append(call.model_copy(update=renamed))
        return message.model_copy(update={"tool_calls": tuple(calls)})
