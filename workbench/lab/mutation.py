"""Mutation testing of tool definitions: changed definitions that a good suite should notice, and runs with them.

Mutation testing asks whether tests fail when the code is wrong. Here, the code is a tool's definition. If all cases
still pass with a worse description or schema, the suite does not test the changed part."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

from workbench.analysis.mutants import MUTANT_KINDS, Mutant, MutantKind, MutantResult, MutationReport
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun, next_run_id
from workbench.evaluation.plan import Plan
from workbench.grading.grade import RunResult, by_run_id
from workbench.grading.repeats import join_runs
from workbench.suite.added_variants import with_variants
from workbench.suite.model import Case
from workbench.suite.suite_file import SuiteFile
from workbench.suite.variants import target_name
from workbench.trajectory.events import JsonValue, ToolDefinition, names_of_tools
from workbench.trajectory.json_schema import properties_of, required_names
from workbench.trajectory.trajectory import tools_of

DECOYS: Final = (1, 2, 4, 8)
"""The numbers of decoys (added tools with similar names) to try. They are the points of the curve in reports."""

_DECOY_NAMES: Final = ("legacy_{}", "{}_v2", "{}_all", "{}_info", "quick_{}", "{}_batch", "{}_old", "{}_helper")

Table = dict[str, object]


def mutants_of(
    tools: Sequence[ToolDefinition], kinds: Iterable[MutantKind] = MUTANT_KINDS, tool_names: Iterable[str] = ()
) -> tuple[Mutant, ...]:
    """Return the mutants of tools: at least one of each kind for each tool to which the kind applies.

    `tool_names` are the tools to mutate; if it is empty, all tools are mutated. A kind that removes a part of a
    definition applies only to tools that have the part."""
    wanted = set(kinds)
    meant = set(tool_names or names_of_tools(tools))
    mutated = [tool for tool in tools if tool.name in meant]
    found: list[Mutant] = []
    for tool in mutated:
        found += _of_tool(tool)
    found += _swapped(mutated)
    found += _decoys(tools)
    return tuple([mutant for mutant in found if mutant.kind in wanted])


def _of_tool(tool: ToolDefinition) -> Iterator[Mutant]:
    def mutant(kind: MutantKind, change: Table, description: str = "") -> Mutant:
        name = f"{kind}: {tool.name}{description}"
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
        optional = dict(tool.parameters)
        optional.pop("required", None)
        yield mutant("nothing required", _schema(optional))


def _schema(parameters: Mapping[str, JsonValue]) -> Table:
    return {"parameters": json.dumps(parameters, ensure_ascii=False)}


def _without(parameters: Mapping[str, JsonValue], key: str, inside: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    # A key under `properties` is the name of a parameter and not a keyword, even if it is `enum`.
    def dropped(value: JsonValue, *, is_schema: bool) -> JsonValue:
        if isinstance(value, dict):
            rest = {}
            for name, inner in value.items():
                if not (is_schema and name == key):
                    rest[name] = dropped(inner, is_schema=not (is_schema and name == "properties"))
            return rest
        if isinstance(value, list):
            return [dropped(inner, is_schema=is_schema) for inner in value]
        return value

    if not inside:
        return parameters
    return {**parameters, "properties": {name: dropped(value, is_schema=True) for name, value in inside.items()}}


def _swapped(tools: Sequence[ToolDefinition]) -> Iterator[Mutant]:
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
    taken = set(names_of_tools(tools))
    made = []
    for pattern in _DECOY_NAMES:
        for tool in tools:
            if pattern.format(tool.name) not in taken:
                made.append((pattern.format(tool.name), tool))
    for count in DECOYS:
        if len(made) < count:
            return
        name = f"decoys: {count}"
        added = []
        for decoy, like in made[:count]:
            added.append(
                {
                    "name": decoy,
                    "description": f"{like.description} (not for current use)".strip(),
                    "parameters": json.dumps(like.parameters, ensure_ascii=False),
                }
            )
        yield Mutant(name, "decoys", (), {"name": name, "tools": added}, count)


def expects_tool_of(case: Case, tools: Iterable[str]) -> bool:
    names = set(tools)
    return not names.isdisjoint(tools_of(case.alternatives))


# Runs with mutants are planned in waves. Once a case has noticed a mutant, the mutant needs no further runs. Each wave
# runs the other mutants on twice as many cases as the wave before it. Cases that expect the mutated tools come first.

MutatedCaseKey = tuple[Path, str, str]
"""A case with a model: the path of the suite, the id of the case, the name of the model."""


@dataclass(frozen=True)
class MutationOptions:
    """The kinds of mutants to make, and the tools to mutate. If `tools` is empty, all tools are mutated.

    With `all_cases`, every mutant is run on all cases, even after a case has failed because of it."""

    kinds: tuple[MutantKind, ...] = MUTANT_KINDS
    tools: tuple[str, ...] = ()
    all_cases: bool = False


@dataclass
class Mutation:
    """A mutation test of a plan, whose cases run again with changed tool definitions.

    Call `next_plan` for the next runs and `record_results` with their results, until `next_plan` returns `None`. Then
    call `report`."""

    plan: Plan
    options: MutationOptions
    _origins: dict[MutatedCaseKey, list[PlannedRun]] = field(default_factory=dict)
    _mutants: dict[Path, tuple[Mutant, ...]] = field(default_factory=dict)
    _files: dict[Path, SuiteFile] = field(default_factory=dict)
    _waiting: dict[tuple[Path, str, str], list[MutatedCaseKey]] = field(default_factory=dict)
    """The cases not yet run with a mutant, by suite, mutant and model; cases likely to notice the mutant come first."""
    _noticed: dict[tuple[Path, str, str], dict[MutatedCaseKey, str]] = field(default_factory=dict)
    _of_run: dict[str, tuple[tuple[Path, str, str], MutatedCaseKey]] = field(default_factory=dict)
    _left_out: dict[str, str] = field(default_factory=dict)
    _size: int = 1
    _spared: int = 0

    @classmethod
    def of(cls, plan: Plan, results: Iterable[RunResult], options: MutationOptions) -> Mutation:
        """Prepare the mutants of the tools that were offered in the finished runs of a plan.

        Cases that fail without a mutant are left out, because they cannot show its effect."""
        made = cls(plan, options)
        by_id = by_run_id(results)
        offered: dict[Path, dict[str, ToolDefinition]] = {}
        finished: dict[MutatedCaseKey, list[RunResult]] = {}
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
        # The cases that pass without a mutant, by suite and model. Rows of one case expect similar calls, so only one
        # of them is run.
        sound: dict[Path, dict[str, list[MutatedCaseKey]]] = {}
        templates: set[MutatedCaseKey] = set()
        for key, runs in finished.items():
            status = join_runs(runs).status
            template = made._template(key)
            if status.good:
                if template not in templates:
                    templates.add(template)
                    sound.setdefault(key[0], {}).setdefault(key[2], []).append(key)
            else:
                made._left_out[f"{key[2]} · {runs[0].case_name}"] = f"{status} without a mutant"
        for file in plan.files:
            mutants = mutants_of(list(offered.get(file.path, {}).values()), options.kinds, options.tools)
            made._mutants[file.path] = mutants
            made._files[file.path] = with_variants(file, [mutant.table for mutant in mutants], "mutate")
            for mutant in mutants:
                for model, keys in sound.get(file.path, {}).items():
                    cases = sorted(keys, key=lambda key: not made._should(key, mutant))
                    made._waiting[file.path, mutant.name, model] = cases
        return made

    def _case(self, key: MutatedCaseKey) -> Case:
        return self._origins[key][0].case

    def _template(self, key: MutatedCaseKey) -> MutatedCaseKey:
        """Return the key of the case that the suite's text contains.

        For a case made from a row of a table (`each`), it is the key of the case with the table. Otherwise, it is
        `key`."""
        return key[0], self._case(key).template or key[1], key[2]

    def _should(self, key: MutatedCaseKey, mutant: Mutant) -> bool:
        return expects_tool_of(self._case(key), mutant.tools)

    def next_plan(self) -> Plan | None:
        """Return the plan of the next runs, or `None` if no runs are left."""
        runs: list[PlannedRun] = []
        for key, cases in self._waiting.items():
            mutant = self._mutant(*key[:2])
            # The report shows a curve of decoys over all cases, so all cases are run at once.
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
        if runs:
            return replace(self.plan, runs=tuple(runs), files=tuple(self._files.values()))
        return None

    def _mutant(self, suite: Path, name: str) -> Mutant:
        return next(each for each in self._mutants[suite] if each.name == name)

    def _run(self, origin: PlannedRun, mutant: Mutant) -> PlannedRun:
        file = self._files[origin.file.path]
        assert file.suite is not None
        variant = file.suite.variant_of_name(mutant.name)
        written = file.suite.case_of_id(origin.written.id)
        return replace(
            origin, run_id=next_run_id(), file=file, written=written, model=target_name(origin.asked_model, variant)
        )

    def record_results(self, results: Iterable[RunResult]) -> None:
        repeats: dict[tuple[tuple[Path, str, str], MutatedCaseKey], list[RunResult]] = {}
        for result in results:
            if result.run_id in self._of_run:
                repeats.setdefault(self._of_run[result.run_id], []).append(result)
        for (key, case), runs in repeats.items():
            status = join_runs(runs).status
            self._noticed.setdefault(key, {})[case] = "" if status.good else status

    def report(self) -> MutationReport:
        return MutationReport(tuple(self._results()), self._left_out, self._spared)

    def _results(self) -> Iterable[MutantResult]:
        for (path, name, model), cases in self._noticed.items():
            mutant = self._mutant(path, name)
            suite = self._files[path].suite
            assert suite is not None
            # One row was run for all rows of its case.
            should: dict[MutatedCaseKey, MutatedCaseKey] = {}
            for key in (*cases, *self._origins):
                if key[0] == path and key[2] == model and self._should(key, mutant):
                    should.setdefault(self._template(key), key)
            # Only a case that failed has noticed the mutant. An error or a stopped run proves nothing.
            run, noticed, unclear = [], [], []
            for case, status in cases.items():
                if status not in ("", "failed"):
                    unclear.append(case)
                    continue
                run.append(case)
                if status:
                    noticed.append(case)
            yield MutantResult(
                mutant=mutant,
                suite=suite.name,
                model=model,
                run=self._titles(run),
                noticed=self._titles(noticed),
                expecting_cases=self._titles(should.values()),
                unclear=self._titles(unclear),
            )

    def _titles(self, keys: Iterable[MutatedCaseKey]) -> tuple[str, ...]:
        return tuple(self._case(key).name for key in keys)
