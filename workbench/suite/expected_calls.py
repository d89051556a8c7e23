"""Expected calls in their suite form: single calls, calls with alternatives, forbidden calls, groups in any order."""

import math
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Discriminator, Field, Strict, Tag

from workbench.checks.check import Check, Checks
from workbench.limits import MAX_DEMANDED_CALLS
from workbench.suite.frozen import Frozen, Items, NonEmpty

ANY_TOOL: Final = "*"
"""The tool of an expected call that may be a call of any tool."""


def tool_text(tool: str) -> str:
    """Return the tool of an expected call in words: its name, or "any tool"."""
    if tool == ANY_TOOL:
        return "any tool"
    return tool


@lru_cache(maxsize=1024)
def comparable_name(name: str) -> str:
    """Return a tool's name in the form that `critics` and disallowed calls compare: lower case, `-`, `_` and `.` alike.

    >>> comparable_name("Get_Weather")
    'get.weather'
    """
    return name.replace("-", ".").replace("_", ".").lower()


def same_tool(left: str, right: str) -> bool:
    """Return whether two names mean the same tool by the rule of Arcade evals: their `comparable_name`s are equal."""
    return left == right or comparable_name(left) == comparable_name(right)


def _times(value: Any) -> Any:
    """Parse `times`: a number of calls, or the fewest and the most calls. The most may be infinite."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value, value)
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError("must be a number of calls, or the fewest and the most: write 2, [1, 3] or [1, inf]")
    low, high = value
    for end in (low, high):
        if isinstance(end, bool) or not (isinstance(end, int) or end == math.inf):
            raise ValueError("must be whole numbers: write 2, [1, 3] or [1, inf]")
    if not 0 <= low <= high or low == math.inf or high == 0:
        raise ValueError("must be the fewest times, from 0, and the most, from 1: write [1, 3] or [1, inf]")
    if low > MAX_DEMANDED_CALLS:
        raise ValueError(MAX_DEMANDED_CALLS.reached())
    return (low, high)


Times = Annotated[
    tuple[int, float],
    Strict(False),
    BeforeValidator(_times, json_schema_input_type=int | tuple[int, float]),
]
"""The fewest and the most times that a call is made. The most may be infinite."""

CALL_RULES: Final = ("any_of", "optional", "times", "result", "is_error")
"""The keys of an expected call that no published grader knows: they are resolved before grading."""


class ExpectedCall(Frozen):
    """A call that must happen or, in `disallowed`, must not happen.

    Without `args`, any arguments are right. Empty `args` mean a call without arguments. With `only_args`, an argument
    that `args` does not name is wrong. `unlisted` says that the tool intentionally does not exist.

    `any_of` lists alternatives in place of `tool`. An `optional` call may be missing. `times` are the fewest and the
    most calls that match. `result` is a check of the result of the call, and `is_error` says whether the result must be
    an error. `because` is the reason for the expectation, shown with its issues. `after_message` is the id of a
    scripted user's message. The call is wrong before this message."""

    tool: NonEmpty = ""
    args: Checks | None = None
    forbidden_args: Items[str] = ()
    only_args: bool = False
    unlisted: bool = False
    any_of: "Items[ExpectedCall]" = ()
    optional: bool = False
    times: Times | None = None
    result: Check | None = None
    is_error: bool | None = None
    because: NonEmpty | None = None
    after_message: NonEmpty | None = None

    @property
    def alternatives(self) -> "tuple[ExpectedCall, ...]":
        """The accepted calls: the calls in `any_of`, or the call itself."""
        return self.any_of or (self,)

    @property
    def fewest(self) -> int:
        """The least number of calls that must be made."""
        if self.times is not None:
            return self.times[0]
        return 0 if self.optional else 1

    @property
    def most(self) -> float:
        """The greatest number of calls that match, possibly infinite. Further calls are extra calls."""
        if self.times is not None:
            return self.times[1]
        return 1

    @property
    def checks_result(self) -> bool:
        return self.result is not None or self.is_error is not None

    @property
    def needs_resolving(self) -> bool:
        """Whether the number or the kind of expected calls depends on the calls that a run made.

        This holds for a call with `any_of`, `optional`, `times` or a check of its result."""
        if self.any_of or self.optional or self.times is not None:
            return True
        return self.checks_result

    @property
    def is_any(self) -> bool:
        return self.tool == ANY_TOOL

    def may_be_call_of(self, tool: str) -> bool:
        """Return whether a call of `tool` may be the expected call."""
        return any(each.is_any or same_tool(each.tool, tool) for each in self.alternatives)

    @property
    def tool_text(self) -> str:
        """The tool in words: its name, "any tool", or "search or lookup"."""
        return " or ".join(dict.fromkeys(tool_text(each.tool) for each in self.alternatives))

    @property
    def limits_args(self) -> bool:
        """Whether an argument can be wrong because of its name alone, by `only_args` or `forbidden_args`."""
        return self.only_args or bool(self.forbidden_args)

    def disallowed_arguments(self, arguments: Collection[str]) -> list[str]:
        """Return the names among `arguments` that must not be arguments of the call.

        Explicitly forbidden names come first."""
        if not self.limits_args:
            return []
        unwanted = [name for name in self.forbidden_args if name in arguments]
        if self.only_args:
            for name in arguments:
                if name not in (self.args or {}) and name not in unwanted:
                    unwanted.append(name)
        return unwanted

    def reason_for(self, argument: str) -> str | None:
        check = (self.args or {}).get(argument)
        return check.because if check is not None else None


class CallWithoutArguments(ExpectedCall):
    """An expected call that forbids some arguments by checks with `present = false`.

    `reasons` maps names of arguments to the suite's reasons."""

    reasons: dict[str, str] = Field(default_factory=dict)

    def reason_for(self, argument: str) -> str | None:
        return self.reasons.get(argument) or super().reason_for(argument)


def with_forbidden(call: ExpectedCall) -> ExpectedCall:
    """Return an expected call in which arguments with the check `present = false` are moved to `forbidden_args`.

    A call without such an argument is returned unchanged."""
    absent: Checks = {}
    others: Checks = {}
    for name, check in (call.args or {}).items():
        (absent if check.forbids else others)[name] = check
    if not absent:
        return call
    # Empty `args` would mean a call without any arguments. `None` leaves all other arguments free.
    leaves_others_free = not others and not call.only_args
    args = None if leaves_others_free else others
    reasons = {name: check.because for name, check in absent.items() if check.because is not None}
    forbidden = (*call.forbidden_args, *absent)
    return CallWithoutArguments.model_construct(
        **{**dict(call), "args": args, "forbidden_args": forbidden, "reasons": reasons}
    )


class DisallowedCall(ExpectedCall):
    """A call that must not happen at all, or not `before` another call, or not `after` another call.

    If the other call has a check of its result, it counts as the first of the two only if it is in an earlier answer of
    the model. Calls in one answer cannot depend on each other's results."""

    before: ExpectedCall | None = None
    after: ExpectedCall | None = None

    @property
    def conditions(self) -> tuple[tuple[str, ExpectedCall], ...]:
        """The keys `before` and `after` that are set, each with its call."""
        found = []
        for key, call in (("before", self.before), ("after", self.after)):
            if call is not None:
                found.append((key, call))
        return tuple(found)

    @property
    def is_unconditional(self) -> bool:
        """Whether the call is forbidden throughout the run."""
        return self.before is None and self.after is None


class AnyOrder(Frozen):
    """A group of calls at one position of the ordered list. Inside the group, any order is right.

    With `parallel`, one answer of the model must contain all calls of the group. Only such a group may be in the
    unordered list."""

    any_order: Annotated[Items[ExpectedCall], Field(min_length=1)]
    parallel: bool = False


def _call_or_group(value: Any) -> str:
    if isinstance(value, AnyOrder):
        return "group"
    if isinstance(value, dict) and "any_order" in value:
        return "group"
    return "call"


OrderedItem = Annotated[
    Annotated[ExpectedCall, Tag("call")] | Annotated[AnyOrder, Tag("group")], Discriminator(_call_or_group)
]


def written_items(
    items: Iterable[ExpectedCall | AnyOrder], place: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], ExpectedCall]]:
    """Yield each expected call of a list with its place. A group yields its calls."""
    for index, item in enumerate(items):
        if isinstance(item, AnyOrder):
            for inner, call in enumerate(item.any_order):
                yield (*place, index, "any_order", inner), call
        else:
            yield (*place, index), item
