"""The planner makes the plan of an evaluation from its options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.analysis.audit.contradictions import with_contradictions
from workbench.config.agents import AGENT, agent_named
from workbench.config.folders import project_paths
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.engine.model_specs import NO_USER_MODEL, ModelSpecs
from workbench.engine.plan import PlannedRun, PlannedShard, costs_of, places_by_cost, places_in_turn, plan_runs
from workbench.engine.suite_secrets import register_run_secrets
from workbench.evaluation.exit_codes import USAGE
from workbench.evaluation.judges import unjudged_checks, unknown_judge
from workbench.evaluation.options import RunOptions, Shard
from workbench.evaluation.plan import (
    NOT_IN_A_CLUSTER,
    Notice,
    Plan,
    PlanError,
    Severity,
    broken_suites_of,
    cases_of,
    execution_of,
    notices,
)
from workbench.evaluation.suites import NoSuitesError, load_suites
from workbench.history.history import History
from workbench.history.records import HistoryError, ShardRef
from workbench.numerals import counted, of_text
from workbench.providers.built_in import REPLAY, BuiltInModels, is_built_in
from workbench.providers.model import ModelError
from workbench.suite.added_variants import AddedVariantError, with_variants
from workbench.suite.problems import quoted
from workbench.suite.project import Search
from workbench.suite.suite_file import SuiteFile, suites_of
from workbench.suite.variants import Variants
from workbench.tools.listings import StoredListings

if TYPE_CHECKING:
    from workbench.evaluation.cost_limit import CostLimit

MAX_KNOWN_SHOWN = 20


def plan(options: RunOptions, program: Program, search: Search | None = None) -> Plan:
    """Load suites, choose cases, resolve models, and return the plan of an evaluation.

    Nothing is started or imported. `search` has the progress of the search for suites, and can stop it. Raises
    PlanError."""
    if options.resume is not None:
        # This import is lazy, because a run that resumes nothing needs no history.
        from workbench.evaluation.resume import plan_resumption

        return plan_resumption(options, program, search)
    files, broken, problems = _loaded_files(options, program, search)
    for added in options.added_variants:
        try:
            files = tuple(with_variants(file, added.tables, added.origin) for file in files)
        except AddedVariantError as error:
            raise PlanError(*problems, Notice(f"nothing was run: {error}")) from error
    case_ids, unknown_cases = _chosen_cases(options, files)
    files = tuple(file.standalone for file in files)
    runs = plan_runs(
        files,
        models=options.model_names,
        case_ids=case_ids,
        tags=options.tags,
        cells=options.cells,
        repeats=options.repeats,
        by=options.by,
        repeat_rule=options.repeat_rule,
        variants=options.all_variants,
        own_models=options.own_openers,
    )
    wrong = unknown_cases or [*_unknown_words(options, files)]
    if not wrong and not runs:
        why = "there are no cases"
        if any(suite.cases for suite in suites_of(files).values()):
            why = "no case matches all of the options"
        wrong.append(f"no case selected: {why}")
    # A case may name a wrong model on purpose, so only the models of selected cases are checked.
    wrong = wrong or [*unresolved_models(options, files, program), *unknown_judge(options.judge, files, program)]
    if wrong:
        raise PlanError(*problems, *map(Notice, wrong))
    problems += notices(unjudged_checks(cases_of(runs), program.models), "detail")
    problems += notices(agents_without_hosts(runs, options.all_variants), "detail")
    specs = ModelSpecs(program.models, program.environment)
    specs.load(runs)
    if without := tuple(dict.fromkeys(_without_player(runs, specs))):
        first = f"nothing was run: {NO_USER_MODEL}"
        raise PlanError(*problems, Notice(f"{first} (cases: {', '.join(map(quoted, without))})"))
    shard = None
    if options.shard is not None:
        try:
            shard = shard_of_plan(options.shard, runs, program, specs)
        except HistoryError as error:
            raise PlanError(*problems, Notice(f"nothing was run: {error}")) from error
        runs = shard.runs
        problems += notices_of(options.shard, shard)
    until = None
    if options.until is not None:
        # This import is lazy, because the app makes a plan before its first screen, and such a plan never stops early.
        from workbench.evaluation.early_stop import StopError, in_random_order, stopping_rule, undecidable_gates

        try:
            until = stopping_rule(options.until, runs, files, compares=options.compares)
        except StopError as error:
            raise PlanError(*problems, Notice(str(error))) from error
        runs = in_random_order(runs, until.seed)
        problems += notices(undecidable_gates(until, runs, files), "warning")
        problems.append(Notice(f"runs are made in the random order of seed={until.seed}", "detail"))
    limit, of_limit = _limited(options, runs, specs, program)
    if limit is None and of_limit:
        raise PlanError(*problems, *of_limit)
    problems += of_limit
    return Plan(
        runs=runs,
        program=program,
        files=files,
        broken=broken,
        execution=execution_of(options, program.folders),
        concurrency=options.concurrency,
        cluster=options.cluster,
        compares=options.compares,
        specs=specs,
        shard=shard,
        until=until,
        min_score=options.min_score,
        cost_limit=limit,
        original_pace=options.original_pace,
        renew_judgements=options.renew_judgements,
        history=options.history,
        history_named=options.history_named,
        notices=tuple(problems),
    )


def _loaded_files(
    options: RunOptions, program: Program, search: Search | None
) -> tuple[tuple[SuiteFile, ...], tuple[SuiteFile, ...], list[Notice]]:
    """Return the valid suites, the suites with errors, and the notices about their problems.

    Raises PlanError if there is no valid suite."""
    try:
        loaded = load_suites(options.suites, search)
    except NoSuitesError as error:
        raise PlanError(Notice(str(error))) from error
    listings = StoredListings(program.folders.listings)
    files = tuple(with_contradictions(file, listings) for file in loaded)
    problems = []
    for file in files:
        for problem in file.problems:
            severity: Severity = "detail"
            if problem.severity == "error":
                severity = "error"
            problems.append(Notice(str(problem), severity))
    broken = tuple(file for file in files if file.suite is None)
    files = tuple(file for file in files if file.suite is not None)
    if not files:
        raise PlanError(*problems, Notice("nothing was run: correct these suites first"))
    if broken:
        # This import is lazy, because few plans have a broken suite.
        from workbench.show.views.verdict import broken_text

        others = f"{counted(len(files), 'other suite')} can be run, but the exit code will be {USAGE}"
        problems.append(Notice(f"{broken_text(broken_suites_of(broken))}; {others}"))
    return files, broken, problems


def agents_without_hosts(runs: Iterable[PlannedRun], variants: Variants) -> Iterator[str]:
    """Yield a notice if agents would skip host variants.

    A host variant imitates the prompt and tools of a host application. An agent is a host itself, so it runs without
    these variants."""
    agents: dict[str, None] = {}
    for run in runs:
        if run.asked_model.startswith(AGENT) and any(
            each.host and variants.takes(each) for each in run.written_suite.variants
        ):
            agents[run.asked_model] = None
    if agents:
        verb = "runs" if len(agents) == 1 else "run"
        yield f"{', '.join(agents)} {verb} without the variants that are hosts: an agent is a host itself"


def _without_player(runs: Iterable[PlannedRun], specs: ModelSpecs) -> Iterator[str]:
    for run in runs:
        if run.case.skip is None and not run.asked_model.startswith(REPLAY) and specs.lacks_player(run.case):
            yield run.case.name


def cost_limit_usd_of(runs: Iterable[PlannedRun], wanted_usd: float | None) -> float | None:
    """Return the cost limit of runs in US dollars; `None` without a limit.

    The limit is `wanted_usd`, or else the lowest limit of the runs' suites."""
    limits = {run.file.path: run.written_suite.limits.batch_cost_usd for run in runs}.values()
    return wanted_usd or min((usd for usd in limits if usd is not None), default=None)


def _limited(
    options: RunOptions, runs: Sequence[PlannedRun], specs: ModelSpecs, program: Program
) -> tuple[CostLimit | None, list[Notice]]:
    usd = cost_limit_usd_of(runs, options.max_cost_usd)
    if usd is None:
        return None, []
    if options.cluster is not None:
        return None, [Notice(NOT_IN_A_CLUSTER)]
    # This import is lazy, because few batches have a limit.
    from workbench.evaluation.cost_limit import CostLimitError, cost_limit

    if options.shard is not None:
        # A shard does not know what the other shards spend, so each gets an equal part of the limit.
        usd /= options.shard.of
    try:
        limit = cost_limit(usd, runs, specs, program, options.history)
    except CostLimitError as error:
        return None, notices(error.problems, "error")
    except HistoryError as error:
        return None, [Notice(f"nothing was run: {error}")]
    return limit, [Notice(limit.notice(runs), "detail")]


def _unknown_words(options: RunOptions, files: Sequence[SuiteFile]) -> Iterator[str]:
    """Yield a problem for each tag or variant in the options that no suite has.

    Without this check, a renamed tag would silently leave cases out of a batch."""
    tags: set[str] = set()
    variants: set[str] = set()
    for suite in suites_of(files).values():
        variants.update(variant.name for variant in suite.variants)
        for case in suite.cases:
            tags.update(suite.tags, case.tags)
    yield from _unknown("tag", options.tags, tags)
    yield from _unknown("variant", sorted(options.variants.names), variants)
    if options.variants.all_of_them and not variants:
        yield "no suite has variants: write [[variants]] into one, or give --variant FILE or --system FILE"


def _unknown(kind: str, requested: Sequence[str], known: set[str]) -> Iterator[str]:
    for word in requested:
        if word not in known:
            yield f"no case selected: there is no {kind} {word!r}; there are {_some(known)}"


def _some(known: Iterable[str]) -> str:
    words = sorted(known)
    some = ", ".join(words[:MAX_KNOWN_SHOWN]) or "none"
    return f"{some}, …" if len(words) > MAX_KNOWN_SHOWN else some


def _chosen_cases(options: RunOptions, files: Iterable[SuiteFile]) -> tuple[list[str], list[str]]:
    if not options.cases:
        return [], []
    # This import is lazy, because most plans run all cases.
    from workbench.suite.case_selectors import matching_ids, near_ids

    cases = [case for suite in suites_of(files).values() for case in suite.cases]
    ids: list[str] = []
    problems: list[str] = []
    for word in options.cases:
        ids += (found := matching_ids(word, cases))
        if not found:
            known = f"there are {_some({case.id for case in cases})}"
            if near := near_ids(word, cases):
                known = f"did you mean {' or '.join(near)}?"
            problems.append(f"no case selected: there is no case {word!r}; {known}")
    return ids, problems


def unresolved_models(options: RunOptions, files: Sequence[SuiteFile], program: Program) -> Iterator[str]:
    """Yield the reasons why the models in the options cannot be reached."""
    problems: list[str] = []
    built_in = BuiltInModels()
    users = program.models.options.users
    for name in (*options.models, *filter(None, [users])):
        if not isinstance(name, str):
            continue
        if is_built_in(name):
            try:
                built_in.check(name, Path())
            except ModelError as error:
                problems.append(str(error))
            continue
        if agent_named(name) is not None:
            continue
        # If the suite's subject has this name, the subject is run instead, and the model need not exist.
        folders = set()
        for file in files:
            if not has_subject(file, name):
                folders.add(file.path.parent)
        for folder in folders:
            try:
                program.models.resolve(name, folder, by_suite=False)
            except ConfigError as error:
                problems += error.problems
    # Several suites may have the same problem with a model, which is reported once.
    yield from dict.fromkeys(problems)


def has_subject(file: SuiteFile, name: str) -> bool:
    return file.suite is not None and file.suite.subject is not None and file.suite.subject.name == name


def shard_of_plan(shard: Shard, runs: Sequence[PlannedRun], program: Program, specs: ModelSpecs) -> PlannedShard:
    """Return the part of a plan that a shard runs.

    Raises HistoryError if the history of costs cannot be read."""
    # Shards can be merged only if all of them redact the same secrets, so each shard registers the secrets of the
    # whole plan.
    register_run_secrets(program, runs, specs)
    if shard.costs is None:
        places = places_in_turn(len(runs), shard.index, shard.of)
    else:
        if not shard.costs.exists():
            raise HistoryError(f"there is no history {shard.costs} to divide the runs by: name an existing one")
        with History(shard.costs) as history:
            means = history.mean_latencies()
        paths = project_paths({run.file.path for run in runs}, program.environment.home)
        by_text = {str(file): path for file, path in paths.items()}
        places = places_by_cost(costs_of(runs, means, by_text), shard.index, shard.of)
    ref = ShardRef(shard.index, shard.of, len(runs), shard.plan_id)
    return PlannedShard(ref, tuple(runs), places)


def notices_of(shard: Shard, part: PlannedShard) -> Iterator[Notice]:
    """Yield the notices about a shard that the user sees before the first run."""
    yield Notice(f"{part.ref}: {of_text(len(part.places), len(part.whole))} runs", "detail")
    if shard.plan_id is None:
        yield Notice(
            "this batch has no id, so a later run of the same plan would merge into it. Pass the same --plan ID to "
            "every shard",
            "warning",
        )
