"""Variants of a suite: the suite as it is when one of them is run, and the names of such runs."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final, TypeVar

from workbench.dataclasses import ByIdentity, dataclass
from workbench.suite.model import (
    ANY_TOOL,
    AnyOrder,
    Case,
    ExpectedCall,
    ExtraCalls,
    GradingTable,
    Mock,
    PriorMessage,
    Server,
    Step,
    Suite,
    Tool,
    ToolChange,
    Variant,
)

SEPARATOR: Final = " × "
"""Stands between the names of a model and a variant in the name of a run's target: `offline × terse`."""


class UnknownVariantError(ValueError):
    """A suite does not have the variant that a run names."""


@dataclass(frozen=True)
class Variants:
    """The variants of suites to run: those with one of the `names`, or `all_of_them`.

    `plain` runs the suite as it is written, too."""

    names: frozenset[str] = frozenset()
    all_of_them: bool = False
    plain: bool = True

    def takes(self, variant: Variant) -> bool:
        return self.all_of_them or variant.name in self.names


NO_VARIANTS: Final = Variants()


def contender(model: str, variant: Variant | None) -> str:
    """Return the name of a run's target, which results, reports and the history show as its model."""
    if variant is None:
        return model
    return f"{variant.model or model}{SEPARATOR}{variant.name}"


def model_of(contender: str) -> str:
    """Return the model's own name."""
    return contender.partition(SEPARATOR)[0]


def variant_name_of(contender: str) -> str | None:
    """Return the name of the variant, if there is one."""
    return contender.partition(SEPARATOR)[2] or None


def variant_of(suite: Suite, contender: str) -> Variant | None:
    """Return the variant that a contender names, if it names one.

    Raises UnknownVariantError."""
    if SEPARATOR not in contender:
        return None
    name = variant_name_of(contender)
    for variant in suite.variants:
        if variant.name == name:
            return variant
    raise UnknownVariantError(f"the suite {suite.name!r} has no variant {name!r}")


def has_variant_of(suite: Suite, contender: str) -> bool:
    """Return whether the suite has the variant that a contender names, if it names one."""
    name = variant_name_of(contender)
    return name is None or any(variant.name == name for variant in suite.variants)


def changed_tools(variant: Variant | None) -> tuple[ToolChange, ...]:
    """Return the changes of tools' definitions.

    Where another tool stands for an expected one, its `arguments` only name that tool's arguments."""
    if variant is None:
        return ()
    changes = []
    for change in variant.changes:
        if change.tool not in variant.names or change.model_fields_set - {"tool", "arguments"}:
            changes.append(change)
    return tuple(changes)


def varied_suite(suite: Suite, variant: Variant | None) -> Suite:
    """Return the suite as a variant has it, without variants of its own.

    The cases in it are as they were written. The same objects return the same one."""
    return suite if variant is None else _suites_of(variant)(suite)


def varied_case(case: Case, variant: Variant | None) -> Case:
    """Return a case as a variant has it; the same objects return the same one."""
    return case if variant is None else _cases_of(variant)(case)


def _held(held: weakref.ref[Variant]) -> Variant:
    variant = held()
    assert variant is not None
    return variant


_suites_of: ByIdentity[Variant, ByIdentity[Suite, Suite]] = ByIdentity(
    lambda variant: ByIdentity(partial(_varied_suite, weakref.ref(variant)))
)
_cases_of: ByIdentity[Variant, ByIdentity[Case, Case]] = ByIdentity(
    lambda variant: ByIdentity(partial(_varied_case, weakref.ref(variant)))
)


def _varied_suite(held: weakref.ref[Variant], suite: Suite) -> Suite:
    variant = _held(held)
    names = _Names.of(variant)
    update: dict[str, object] = {
        "servers": _replaced(suite.servers, variant.servers),
        "tools": _replaced(suite.tools, variant.tools),
        "mocks": tuple(map(names.mock, suite.mocks)),
        "grading": names.grading(suite.grading),
        "variants": (),
    }
    if variant.system is not None:
        update["system"] = variant.system
    return suite.model_copy(update=update)


def _varied_case(held: weakref.ref[Variant], case: Case) -> Case:
    variant = _held(held)
    names = _Names.of(variant)
    offer = case.offer if variant.offer is None else variant.offer
    # A variant's definition replaces the case's own tool of that name; its other tools belong to the suite.
    own_tools = {tool.name: tool for tool in case.tools}
    own_tools |= {tool.name: tool for tool in variant.tools if tool.name in own_tools}
    update: dict[str, object] = {
        "messages": tuple(map(names.message, case.messages)),
        "ordered": tuple(map(names.item, case.ordered)),
        "unordered": tuple(map(names.call, case.unordered)),
        "disallowed": tuple(map(names.call, case.disallowed)),
        "steps": tuple(map(names.step, case.steps)),
        "tools": tuple(own_tools.values()),
        "mocks": (*variant.mocks, *map(names.mock, case.mocks)),
        "offer": None if offer is None else tuple(map(names.tool, offer)),
        "extra_calls": names.extra_calls(case.extra_calls),
        "grading": names.grading(case.grading),
    }
    if variant.system is not None:
        update["system"] = variant.system
    return case.model_copy(update=update)


_Named = TypeVar("_Named", Server, Tool)


def _replaced(defined: Iterable[_Named], instead: Iterable[_Named]) -> tuple[_Named, ...]:
    by_name: dict[str, _Named] = {}
    by_name |= {each.name: each for each in defined}
    by_name |= {each.name: each for each in instead}
    return tuple(by_name.values())


@dataclass(frozen=True)
class _Names:
    """The names of tools and their arguments in a variant, by their names in the suite."""

    tools: Mapping[str, str]
    arguments: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, variant: Variant) -> _Names:
        renamed = {}
        for change in variant.changes:
            if change.name is not None:
                renamed[change.tool] = change.name
        return cls({**renamed, **variant.names}, {change.tool: change.arguments for change in variant.changes})

    def tool(self, name: str) -> str:
        return name if name == ANY_TOOL else self.tools.get(name, name)

    def extra_calls(self, rule: ExtraCalls | None) -> ExtraCalls | None:
        return tuple(map(self.tool, rule)) if isinstance(rule, tuple) else rule

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
        return call.model_copy(update=self._expected(call.tool, call.args, call.forbidden_args))

    def step(self, step: Step) -> Step:
        if step.tool is None:
            return step
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

    def message(self, message: PriorMessage) -> PriorMessage:
        calls = tuple(
            call.model_copy(update={"tool": self.tool(call.tool), "args": self.args(call.tool, call.args)})
            for call in message.tool_calls
        )
        return message.model_copy(update={"tool_calls": calls})
