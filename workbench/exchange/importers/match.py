"""The ways to compare a run's calls with a reference's calls: the modes of agentevals and of ADK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal, NamedTuple

from workbench.checks.check import check_names_in
from workbench.dataclasses import dataclass
from workbench.exchange.importers.source_files import RefusedError, Source
from workbench.suite.render import Table

ArgsMode = Literal["exact", "ignore", "subset", "superset"]


class _Mode(NamedTuple):
    key: Literal["ordered", "unordered"]
    extra_calls: Literal["allow", "forbid"]
    by_answer: bool = False
    """Whether calls that share an answer in the reference must also share an answer in the run, in any order."""
    optional: bool = False


_MODES = {
    "strict": _Mode("ordered", "forbid", by_answer=True),
    "unordered": _Mode("unordered", "forbid"),
    "subset": _Mode("unordered", "forbid", optional=True),
    "superset": _Mode("unordered", "allow"),
    "exact": _Mode("ordered", "forbid"),
    "in_order": _Mode("ordered", "allow"),
    "any_order": _Mode("unordered", "allow"),
}
_ARGS: tuple[ArgsMode, ...] = ("exact", "ignore", "subset", "superset")


@dataclass(frozen=True)
class Match:
    """A way to compare calls.

    `mode` says how calls are compared. `args` says how their arguments are compared. `tools` maps the name of a tool to
    another mode for its arguments, or to the paths of the arguments to compare."""

    mode: str
    args: ArgsMode = "exact"
    tools: Mapping[str, ArgsMode | tuple[str, ...]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return _MODES[self.mode].key

    @property
    def extra_calls(self) -> str:
        return _MODES[self.mode].extra_calls

    @property
    def by_answer(self) -> bool:
        return _MODES[self.mode].by_answer

    def expected(self, call: Table, place: str = "") -> Table:
        """Return an expected call whose arguments are compared in this mode.

        `call` has all arguments of the reference. A RefusedError quotes `place`, which says where the reference is in
        the file."""
        args = call.get("args")
        assert isinstance(args, dict)
        mode = self.tools.get(str(call["tool"]), self.args)
        made: Table = {"tool": call["tool"]}
        if isinstance(mode, tuple):
            made["args"] = _at_paths(str(call["tool"]), args, mode, place)
        elif mode == "exact":
            made |= {"args": args, "only_args": True}
        elif mode == "subset":
            made |= {"args": {name: _optional(value) for name, value in args.items()}, "only_args": True}
        elif mode == "superset" and args:
            # An empty table of arguments would forbid all arguments.
            made["args"] = args
        if _MODES[self.mode].optional:
            made["optional"] = True
        return made


def _optional(value: object) -> Table:
    if isinstance(value, dict) and check_names_in(value):
        return {**value, "optional": True}
    return {"equals": value, "optional": True}


def _at_paths(tool: str, args: Table, paths: Sequence[str], place: str) -> Table:
    """Return the expected arguments of a call, reduced to those at the dotted paths.

    Raises RefusedError for a path that the reference lacks, because there is no value to compare with."""
    kept: Table = {}
    for path in paths:
        names = path.split(".")
        value: object = args
        for name in names:
            if not isinstance(value, dict) or name not in value:
                raise RefusedError(f"the reference's call of {tool} has no {path}, which --match compares", place)
            value = value[name]
        if any(path.startswith(f"{other}.") for other in paths):
            continue  # the check of `other` compares this field too
        fields = kept
        for name in names[:-1]:
            inner = fields.setdefault(name, {"has_fields": {}})
            assert isinstance(inner, dict)
            fields = inner.setdefault("has_fields", {})
        fields[names[-1]] = value if fields is kept else {"equals": value}
    return kept


def match_in(source: Source) -> Match | None:
    """Return how the user wants calls to be compared; `None` if the user chose nothing. Raises RefusedError."""
    return None if source.match is None else match_of(source.match)


def match_of(text: str) -> Match:
    """Parse the value of `--match`, such as `superset,args=ignore,book=to+date.day`. Raises RefusedError."""
    mode, *options = (word.strip() for word in text.split(","))
    mode = mode.lower().replace("-", "_")
    if mode not in _MODES:
        raise RefusedError(f"--match begins with one of {', '.join(_MODES)}, not {mode!r}")
    args: ArgsMode = "exact"
    tools: dict[str, ArgsMode | tuple[str, ...]] = {}
    for option in options:
        name, equals, value = option.partition("=")
        found = next((each for each in _ARGS if each == value), None)
        if not equals or not name or not value or (name == "args" and found is None):
            raise RefusedError(
                f"--match cannot use {option!r}: write args=MODE, TOOL=MODE or TOOL=PATH+PATH, "
                f"with one of the modes {', '.join(_ARGS)}"
            )
        if name == "args" and found is not None:
            args = found
        else:
            tools[name] = found or tuple(value.split("+"))
    return Match(mode, args, tools)
