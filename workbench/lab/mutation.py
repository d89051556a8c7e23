"""Mutants of tools: changes of definitions that a good suite notices, and what came of running it with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, Literal, get_args

from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun, next_run_id
from workbench.evaluation.plan import Plan
from workbench.grading.grade import RunResult
from workbench.grading.repeats import joined
from workbench.numerals import counted, rate_text
from workbench.show.text import Paint
from workbench.show.visible import one_line
from workbench.suite.model import Case
from workbench.suite.suite_file import SuiteFile, with_variants
from workbench.suite.variants import contender
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import properties_of, required_names

MutantKind = Literal[
    "no description",
    "no parameter descriptions",
    "parameter renamed",
    "no enum",
    "nothing required",
    "descriptions swapped",
    "decoys",
]
MUTANT_KINDS: Final[tuple[MutantKind, ...]] = get_args(MutantKind)

DECOYS: Final = (1, 2, 4, 8)
"""How many near-named tools are added: the points of the curve."""

_DECOY_NAMES: Final = ("legacy_{}", "{}_v2", "{}_all", "{}_info", "quick_{}", "{}_batch", "{}_old", "{}_helper")

Table = dict[str, object]


@dataclass(frozen=True)
class Mutant:
    """A change of tools as a variant of the suite. `tools` are those it is about; cases that expect one of them should
    notice it. Decoys are about all tools."""

    name: str
    kind: MutantKind
    tools: tuple[str, ...]
    table: Mapping[str, object]
    decoys: int = 0


def mutants_of(
    tools: Sequence[ToolDefinition], kinds: Iterable[MutantKind] = MUTANT_KINDS, only: Iterable[str] = ()
) -> tuple[Mutant, ...]:
    """Return all mutants of some kinds; of these tools `only`, where some are named. What a definition does not have
    cannot be dropped from it."""
    wanted = set(kinds)
    meant = set(only) or {tool.name for tool in tools}
    found = [mutant for tool in tools if tool.name in meant for mutant in _of_tool(tool)]
    found += _swapped([tool for tool in tools if tool.name in meant])
    found += _decoys(tools)
    return tuple(mutant for mutant in found if mutant.kind in wanted)


def _of_tool(tool: ToolDefinition) -> Iterator[Mutant]:
    def mutant(kind: MutantKind, change: Table, what: str = "") -> Mutant:
        name = f"{kind}: {tool.name}{what}"
        return Mutant(name, kind, (tool.name,), {"name": name, "changes": [{"tool": tool.name, **change}]})

    properties = properties_of(tool.parameters)
    if tool.description:
        yield mutant("no description", {"description": ""})
    plain = _without(tool.parameters, "description", inside=properties)
    if plain != tool.parameters:
        yield mutant("no parameter descriptions", _schema(plain))
    for number, parameter in enumerate(properties, 1):
        new = f"p{number}"
        if new not in properties:
            yield mutant("parameter renamed", {"arguments": {parameter: new}}, f".{parameter}")
    loose = _without(tool.parameters, "enum", inside=properties)
    if loose != tool.parameters:
        yield mutant("no enum", _schema(loose))
    if required_names(tool.parameters):
        yield mutant("nothing required", _schema({k: v for k, v in tool.parameters.items() if k != "required"}))


def _schema(parameters: Mapping[str, JsonValue]) -> Table:
    return {"parameters": json.dumps(parameters, ensure_ascii=False)}


def _without(parameters: Mapping[str, JsonValue], key: str, inside: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return a schema whose parameters, and what is in them, lack a keyword."""

    def dropped(value: JsonValue, *, is_schema: bool) -> JsonValue:
        if isinstance(value, dict):
            return {
                name: dropped(inner, is_schema=not (is_schema and name == "properties"))
                for name, inner in value.items()
                if not (is_schema and name == key)
            }
        return [dropped(inner, is_schema=is_schema) for inner in value] if isinstance(value, list) else value

    if not inside:
        return parameters
    return {**parameters, "properties": {name: dropped(value, is_schema=True) for name, value in inside.items()}}


def _swapped(tools: Sequence[ToolDefinition]) -> Iterator[Mutant]:
    """Yield each tool with the one whose name is nearest, their descriptions swapped; each pair once."""
    seen: set[frozenset[str]] = set()
    for tool in tools:
        others = [other for other in tools if other is not tool and other.description != tool.description]
        if not others:
            continue
        nearest = max(others, key=lambda other: SequenceMatcher(None, tool.name, other.name).ratio())
        pair = frozenset((tool.name, nearest.name))
        if pair in seen:
            continue
        seen.add(pair)
        name = f"descriptions swapped: {tool.name}, {nearest.name}"
        changes = [
            {"tool": tool.name, "description": nearest.description},
            {"tool": nearest.name, "description": tool.description},
        ]
        yield Mutant(name, "descriptions swapped", (tool.name, nearest.name), {"name": name, "changes": changes})


def _decoys(tools: Sequence[ToolDefinition]) -> Iterator[Mutant]:
    """Yield mutants with more and more tools that are named and described like real ones."""
    taken = {tool.name for tool in tools}
    made = [
        (pattern.format(tool.name), tool)
        for pattern in _DECOY_NAMES
        for tool in tools
        if pattern.format(tool.name) not in taken
    ]
    for count in DECOYS:
        if len(made) < count:
            return
        name = f"decoys: {count}"
        added = [
            {
                "name": decoy,
                "description": f"{like.description} (not for current use)".strip(),
                "parameters": json.dumps(like.parameters, ensure_ascii=False),
            }
            for decoy, like in made[:count]
        ]
        yield Mutant(name, "decoys", (), {"name": name, "tools": added}, count)


@dataclass(frozen=True)
class MutantResult:
    """What came of a mutant with one model. `good` are the cases that pass without it, `noticed` those of them that do
    not pass with it. Cases that were not run, because others had noticed it already, are in neither."""

    mutant: Mutant
    suite: str
    """The name of the suite."""
    model: str
    run: tuple[str, ...]
    noticed: tuple[str, ...]
    should: tuple[str, ...]
    """The cases that expect one of its tools."""
    unclear: tuple[str, ...] = ()
    """The cases whose run ended in an error."""

    @property
    def survives(self) -> bool:
        """Whether it was run, and no case noticed it. Decoys only have a pass rate."""
        return bool(self.run) and not self.noticed and self.mutant.kind != "decoys"

    @property
    def pass_rate(self) -> float | None:
        """The share of the cases that still pass, 0..1."""
        return 1 - len(self.noticed) / len(self.run) if self.run else None


@dataclass(frozen=True)
class MutationReport:
    """All mutants with all models, and the cases that noticed none."""

    results: tuple[MutantResult, ...]
    left_out: Mapping[str, str]
    """Cases that say nothing, with the reason, by model and title."""
    spared: int = 0
    """Runs that were not needed."""

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(result.model for result in self.results))

    @property
    def survivors(self) -> tuple[MutantResult, ...]:
        return tuple(result for result in self.results if result.survives)

    def curve(self, model: str) -> tuple[tuple[int, float], ...]:
        """Return the pass rate over the number of decoys, of the cases that pass without any."""
        return tuple(
            (result.mutant.decoys, result.pass_rate)
            for result in self.results
            if result.model == model and result.mutant.kind == "decoys" and result.pass_rate is not None
        )

    def blind(self, model: str) -> tuple[str, ...]:
        """Return the cases that were run with mutants of tools they expect, and noticed none of these."""
        mine = [result for result in self.results if result.model == model and result.mutant.kind != "decoys"]
        should = dict.fromkeys(case for result in mine for case in result.should if case in result.run)
        noticed = {case for result in mine for case in result.noticed}
        return tuple(case for case in should if case not in noticed)


def expects(case: Case, tools: Iterable[str]) -> bool:
    """Return whether a case expects a call of one of some tools."""
    names = set(tools)
    return any(call.tool in names for call in case.expected_calls())


# Plans the runs of mutants, wave by wave: a mutant that a case has noticed needs no further runs.

CaseOf = tuple[Path, str, str]
"""A suite, the id of a case, and the model."""


@dataclass(frozen=True)
class MutationOptions:
    """Which kinds of mutants are made, and of which tools (all without any). With `all_cases`, a mutant that was
    noticed is run on the other cases, too."""

    kinds: tuple[MutantKind, ...] = MUTANT_KINDS
    tools: tuple[str, ...] = ()
    all_cases: bool = False


@dataclass
class Mutation:
    """The mutants of a plan whose runs without them are over. `wave` gives runs to make, `take` what they came to."""

    plan: Plan
    options: MutationOptions
    _origins: dict[CaseOf, list[PlannedRun]] = field(default_factory=dict)
    _mutants: dict[Path, tuple[Mutant, ...]] = field(default_factory=dict)
    _files: dict[Path, SuiteFile] = field(default_factory=dict)
    _waiting: dict[tuple[Path, str, str], list[CaseOf]] = field(default_factory=dict)
    """By suite, mutant and model, the cases that were not run with it yet, those that should notice it first."""
    _noticed: dict[tuple[Path, str, str], dict[CaseOf, str]] = field(default_factory=dict)
    _of_run: dict[str, tuple[tuple[Path, str, str], CaseOf]] = field(default_factory=dict)
    _left_out: dict[str, str] = field(default_factory=dict)
    _size: int = 1
    _spared: int = 0

    @classmethod
    def of(cls, plan: Plan, results: Iterable[RunResult], options: MutationOptions) -> Mutation:
        """Return the mutants of the tools that were offered in the runs of a plan. Cases that do not pass without a
        mutant can notice none, and are left out."""
        made = cls(plan, options)
        by_id = {result.run_id: result for result in results}
        offered: dict[Path, dict[str, ToolDefinition]] = {}
        finished: dict[CaseOf, list[RunResult]] = {}
        for run in plan.runs:
            key = run.file.path, run.case.id, run.model
            result = by_id.get(run.run_id)
            made._origins.setdefault(key, []).append(run)
            if result is None:
                continue
            finished.setdefault(key, []).append(result)
            if result.trajectory.start is not None:
                for tool in result.trajectory.start.tools:
                    offered.setdefault(run.file.path, {}).setdefault(tool.name, tool)
        sound: list[CaseOf] = []
        for key, runs in finished.items():
            status = joined(runs).status
            if status.good:
                sound.append(key)
            else:
                made._left_out[f"{key[2]} · {runs[0].case_name}"] = f"{status} without a mutant"
        for file in plan.files:
            mutants = mutants_of(list(offered.get(file.path, {}).values()), options.kinds, options.tools)
            made._mutants[file.path] = mutants
            made._files[file.path] = with_variants(file, [mutant.table for mutant in mutants], "mutate")
            for mutant in mutants:
                for model in dict.fromkeys(key[2] for key in sound if key[0] == file.path):
                    cases = [key for key in sound if key[0] == file.path and key[2] == model]
                    cases.sort(key=lambda key: not made._should(key, mutant))
                    made._waiting[file.path, mutant.name, model] = cases
        return made

    def _case(self, key: CaseOf) -> Case:
        return self._origins[key][0].case

    def _should(self, key: CaseOf, mutant: Mutant) -> bool:
        return expects(self._case(key), mutant.tools)

    def wave(self) -> Plan | None:
        """Return the next runs, `None` when there are none left. Each wave has twice as many cases for a mutant as the
        one before; decoys are run on all at once."""
        runs: list[PlannedRun] = []
        for key, cases in self._waiting.items():
            path, name, _ = key
            mutant = next(each for each in self._mutants[path] if each.name == name)
            everything = self.options.all_cases or mutant.kind == "decoys"
            if self._noticed.get(key) and any(self._noticed[key].values()) and not everything:
                self._spared += sum(len(self._origins[case]) for case in cases)
                cases.clear()
            count = len(cases) if everything else self._size
            for case in cases[:count]:
                for origin in self._origins[case]:
                    run = self._run(origin, mutant)
                    self._of_run[run.run_id] = key, case
                    runs.append(run)
            del cases[:count]
        self._size *= 2
        return replace(self.plan, runs=tuple(runs), files=tuple(self._files.values())) if runs else None

    def _run(self, origin: PlannedRun, mutant: Mutant) -> PlannedRun:
        file = self._files[origin.file.path]
        assert file.suite is not None
        variant = next(each for each in file.suite.variants if each.name == mutant.name)
        written = next(case for case in file.suite.cases if case.id == origin.written.id)
        return replace(
            origin, run_id=next_run_id(), file=file, written=written, model=contender(origin.asked_model, variant)
        )

    def take(self, results: Iterable[RunResult]) -> None:
        """Take what the runs of the last wave came to."""
        came_to: dict[tuple[tuple[Path, str, str], CaseOf], list[RunResult]] = {}
        for result in results:
            if result.run_id in self._of_run:
                came_to.setdefault(self._of_run[result.run_id], []).append(result)
        for (key, case), runs in came_to.items():
            status = joined(runs).status
            self._noticed.setdefault(key, {})[case] = "" if status.good else status

    def report(self) -> MutationReport:
        """Return what all waves came to."""
        return MutationReport(tuple(self._results()), self._left_out, self._spared)

    def _results(self) -> Iterable[MutantResult]:
        for (path, name, model), cases in self._noticed.items():
            mutant = next(each for each in self._mutants[path] if each.name == name)
            suite = self._files[path].suite
            assert suite is not None
            everywhere = [key for key in self._origins if key[0] == path and key[2] == model]
            clear = {case: status for case, status in cases.items() if status in ("", "failed")}
            yield MutantResult(
                mutant=mutant,
                suite=suite.name,
                model=model,
                run=self._titles(clear),
                noticed=self._titles(case for case, status in clear.items() if status),
                should=self._titles(key for key in everywhere if self._should(key, mutant)),
                unclear=self._titles(case for case in cases if case not in clear),
            )

    def _titles(self, keys: Iterable[CaseOf]) -> tuple[str, ...]:
        return tuple(self._case(key).name for key in keys)


_MAX_NAMED = 5


def text_of_mutation(report: MutationReport, paint: Paint) -> Iterator[str]:
    """Yield, for each model, the survivors with the cases that should have noticed them, the curve over decoys, and the
    cases that notice nothing."""
    several = len({result.suite for result in report.results}) > 1
    for model in report.models:
        mine = [result for result in report.results if result.model == model and result.mutant.kind != "decoys"]
        survivors = [result for result in mine if result.survives]
        tried = [result for result in mine if result.run]
        yield paint(f"{one_line(model)}\n", "strong")
        if tried:
            share = f"{len(tried) - len(survivors)} of {counted(len(tried), 'mutant')} noticed"
            yield f"  {share}\n"
        for result in survivors:
            yield f"  {paint('◇', 'warned')} survives  {_name(result, several=several)}: {_should(result)}\n"
        for result in mine:
            if result.unclear:
                yield f"  - {_name(result, several=several)}: in error on {_names(result.unclear)}\n"
        curve = report.curve(model)
        if curve:
            points = " · ".join(f"{decoys}: {rate_text(rate)}" for decoys, rate in curve)
            yield f"  pass rate over the number of decoys, of cases that pass without: {points}\n"
        blind = report.blind(model)
        if blind:
            yield f"  {counted(len(blind), 'case')} noticed no mutant of the tools that they expect: {_names(blind)}\n"
    if report.left_out:
        yield "\n"
    for title, why in report.left_out.items():
        yield paint(f"- {one_line(title)}: left out, {one_line(why)}\n", "muted")
    if report.spared:
        yield paint(f"\n{counted(report.spared, 'run')} saved: a mutant was noticed before\n", "muted")


def _name(result: MutantResult, *, several: bool) -> str:
    return one_line(f"{result.suite} › {result.mutant.name}" if several else result.mutant.name)


def _should(result: MutantResult) -> str:
    if not result.should:
        return "no case expects a call of it"
    return f"should be noticed by {_names(result.should)}"


def _names(titles: tuple[str, ...]) -> str:
    more = f" and {len(titles) - _MAX_NAMED} more" if len(titles) > _MAX_NAMED else ""
    return f"{', '.join(map(one_line, titles[:_MAX_NAMED]))}{more}"


def json_of_mutation(report: MutationReport, exit_code: int) -> dict[str, JsonValue]:
    """Return everything that is known of the mutants."""
    return {
        "report": "workbench mutate",
        "version": 1,
        "exit_code": exit_code,
        "runs_saved": report.spared,
        "left_out": dict(report.left_out),
        "models": {
            model: {
                "survivors": [each.mutant.name for each in report.survivors if each.model == model],
                "decoys": [{"decoys": decoys, "pass_rate": rate} for decoys, rate in report.curve(model)],
                "notice_nothing": [*report.blind(model)],
            }
            for model in report.models
        },
        "mutants": [
            {
                "suite": each.suite,
                "name": each.mutant.name,
                "kind": each.mutant.kind,
                "tools": [*each.mutant.tools],
                "model": each.model,
                "survives": each.survives,
                "cases": [*each.run],
                "noticed_by": [*each.noticed],
                "should_be_noticed_by": [*each.should],
                "in_error_on": [*each.unclear],
                "pass_rate": each.pass_rate,
            }
            for each in report.results
        ],
    }
