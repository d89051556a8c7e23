"""The options of `workbench run` and `workbench compare`: which cases to run, and how."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.model_options import (
    add_judge_option,
    add_model_options,
    add_user_options,
    complete_names,
    names_a_model,
    params_of,
)
from workbench.cli.parser import (
    BASELINE,
    CASES,
    CLUSTER,
    DETACHED,
    GRADING,
    HISTORY,
    PASS_RATE_ADVICE,
    REPORTS,
    SHARDS,
    SPEED,
    STOPPING,
    TOOLS,
    VARIANTS,
    add_history_options,
    add_samples_option,
    did_you_mean,
    group,
    history_of,
    paths_of,
)
from workbench.config.models import DEFAULT_CONCURRENCY

if TYPE_CHECKING:
    from workbench.evaluation.options import AddedVariants, RunOptions, Shard, Stop

_FIXED_BY_BATCH = (
    ("case", "--case"),
    ("tag", "--tag"),
    ("repeats", "--repeats"),
    ("by", "--by"),
    ("repeat_rule", "--repeat-rule"),
    ("variant", "--variant"),
    ("variants", "--variants"),
    ("system", "--system"),
    ("until", "--until"),
    ("looks", "--looks"),
    ("gate", "--gate"),
    ("worse", "--worse"),
    ("seed", "--seed"),
    ("shard", "--shard"),
    ("shard_by", "--shard-by"),
    ("plan", "--plan"),
    ("execute", "--execute"),
    ("breakpoints", "--break"),
    ("no_history", "--no-history"),
)
"""The options that a resumed batch already determines: attribute of the parsed arguments and name of the option."""


def add_paths(parser: argparse.ArgumentParser, *, resumes: bool = True) -> None:
    """Add the paths of suites. With `resumes`, the command can resume a batch instead."""
    no_path = "; none with --resume" if resumes else ""
    parser.add_argument("paths", nargs="*", metavar="PATH", help=f"suite files, or folders of them{no_path}")
    add_samples_option(parser)


_REPEATS = "run each case this often"


def add_case_options(parser: argparse.ArgumentParser, repeats: str = _REPEATS) -> None:
    """Add the options for cases, repeats and concurrency. `repeats` is the help of `--repeats`."""
    cases = group(parser, CASES)
    cases.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="NAME",
        help="only this case: id, name, pattern (refund*); repeatable",
    )
    cases.add_argument("--tag", action="append", default=[], metavar="T", help="only cases with this tag; repeatable")
    cases.add_argument(
        "--repeats",
        type=repeats_of,
        metavar="N",
        help=repeats,
    )
    pace = group(parser, SPEED)
    pace.add_argument(
        "--concurrency",
        type=_positive,
        default=DEFAULT_CONCURRENCY,
        metavar="N",
        help="concurrent runs (default %(default)s)",
    )


def add_cluster_option(parser: argparse.ArgumentParser) -> None:
    cluster = group(parser, CLUSTER)
    cluster.add_argument(
        "--cluster",
        metavar="WHERE",
        help="run on a dask cluster: local:N, or a scheduler such as tcp://scheduler:8786 (needs the extra 'cluster')",
    )


def add_variant_options(parser: argparse.ArgumentParser, *, compares: bool) -> None:
    variants = group(parser, VARIANTS)
    also = "also " if compares else ""
    variants.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="NAME|FILE",
        help=f"{also}run this variant, or all of a TOML file; repeatable",
    )
    variants.add_argument("--variants", action="store_true", help="run all variants and the suites as written")
    if compares:
        variants.add_argument(
            "--hosts",
            action="store_true",
            help="also run with the prompts and tools of typical hosts: no prompt, concise assistant, coding agent, "
            "forty other tools",
        )
    variants.add_argument(
        "--system",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help=f"{also}run with this system prompt, as a variant named after the file; repeatable",
    )


def add_until_option(parser: argparse.ArgumentParser, *, compares: bool) -> None:
    """Add the option `--until` for stopping early.

    The former options for its values, such as `--gate`, are still parsed, but have no help text."""
    values: dict[str, Callable[[str], float]]
    if compares:
        what, values = "the better model is decided", {"looks": _looks, "seed": _seed}
        explained = "looks=N tests only N times, not after each case"
    else:
        what, values = "the pass rate is decided", {"gate": _rate, "worse": _rate, "seed": _seed}
        explained = "gate=X is the rate to reach, not the suites' gates; worse=X is clearly too low (gate - 0.1)"
    stopping = group(parser, STOPPING)
    stopping.add_argument(
        "--until",
        type=partial(_until, values),
        metavar=f"decided[,{'=…][,'.join(values)}=…]",
        help=f"stop as soon as {what}: cases run in a random order; {explained}; seed=N sets the order",
    )
    for name, value in values.items():
        stopping.add_argument(f"--{name}", type=value, help=argparse.SUPPRESS)


def _until(values: Mapping[str, Callable[[str], float]], text: str) -> dict[str, float]:
    """Parse the value of `--until`: the word `decided`, then values after commas, such as `decided,gate=0.95`."""
    decided, *pairs = text.split(",")
    known = ", ".join(f"{name}=…" for name in values)
    if decided.strip() != "decided":
        raise argparse.ArgumentTypeError(f"{text!r} does not begin with decided: write decided,NAME=… with {known}")
    rule: dict[str, float] = {}
    for pair in pairs:
        name, equals, value = pair.strip().partition("=")
        if name not in values or not equals:
            near = did_you_mean("value", name, values) if name not in values else None
            raise argparse.ArgumentTypeError(near or f"{pair!r} is not one of its values, which are {known}")
        if name in rule:
            raise argparse.ArgumentTypeError(f"{name} is given twice: omit one of them")
        try:
            rule[name] = values[name](value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{name} must be a whole number, not {value!r}") from None
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{name} {error}") from None
    return rule


def add_shard_options(parser: argparse.ArgumentParser) -> None:
    shards = group(parser, SHARDS)
    shards.add_argument(
        "--shard",
        type=_shard,
        metavar="I/N",
        help="make the I-th of N parts of the runs, or 'auto' for the scheduler's part",
    )
    shards.add_argument(
        "--shard-by",
        type=_shard_by,
        metavar="WAY",
        help="how to divide runs: 'turn' (default) deals them out one by one; 'cost' balances the shards by the mean "
        "latencies in the history, 'cost:FILE' by those in another history",
    )
    shards.add_argument(
        "--plan",
        metavar="ID",
        help="with --shard, the id of the batch (default: that of the pipeline or array job)",
    )


def add_max_cost_option(parser: argparse.ArgumentParser) -> None:
    speed = group(parser, SPEED)
    speed.add_argument(
        "--max-cost",
        type=_dollars,
        metavar="USD",
        help="begin no run that could raise the cost of the batch, with its judges, above this limit",
    )


def add_execution_options(parser: argparse.ArgumentParser) -> None:
    tools = group(parser, TOOLS)
    tools.add_argument(
        "--execute",
        action="store_true",
        help="execute tools marked read-only",
    )
    tools.add_argument("--execute-all", action="store_true", help="execute all tools, including those with effects")
    add_judge_option(parser, "the judge of checks that name no judge, instead of the one in workbench.toml")
    add_user_options(parser)
    group(parser, GRADING).add_argument(
        "--no-judge-cache", action="store_true", help="ask judges again about values that they have judged"
    )
    tools.add_argument("--trust", action="store_true", help="let the suites start and import what they name")
    group(parser, SPEED).add_argument(
        "--pace",
        choices=("recorded", "none"),
        default="none",
        help="delays of 'replay:' models: 'recorded' keeps those of the recording, 'none' (default) answers at once",
    )


def add_experiment_options(parser: argparse.ArgumentParser, *, variants: bool = False, repeats: str = _REPEATS) -> None:
    """Add the options of commands that run cases and cannot resume a batch."""
    add_paths(parser, resumes=False)
    add_model_options(parser)
    if variants:
        add_variant_options(parser, compares=True)
    add_case_options(parser, repeats)
    parser.set_defaults(resume=None, anyway=False, by=None)


def add_choice_options(
    parser: argparse.ArgumentParser, option: str, names: Sequence[str], chosen: str, things: str
) -> None:
    """Add `option`, which selects faults or changes by name, and `--tool`.

    The help text of `option` is "only `chosen`, of `names`". The help text of `--tool` is "only `things` of this
    tool"."""
    listed = ", ".join(names)
    parser.add_argument(
        option,
        action="append",
        default=[],
        choices=names,
        metavar="NAME",
        help=f"only {chosen}, of {listed}; repeatable",
    )
    parser.add_argument(
        "--tool", action="append", default=[], metavar="NAME", help=f"only {things} of this tool; repeatable"
    )


def add_history_and_quiet(parser: argparse.ArgumentParser) -> None:
    add_history_options(parser)
    group(parser, REPORTS).add_argument("-q", "--quiet", action="store_true", help="show no steps and no warnings")


def folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("an empty path is not allowed: write '.' for the current folder")
    return Path(text)


def run_options(arguments: argparse.Namespace, *, compares: bool, command: str | None = None) -> RunOptions | None:
    """Return the options of `run`, `compare` or another `command`.

    If the arguments contradict each other, report the reason and return `None`."""
    from workbench.cli.redaction import warn
    from workbench.config.models import ConfigError
    from workbench.evaluation.options import OptionsError, Resume, RunOptions
    from workbench.suite.variants import Variants

    resume: str | None = arguments.resume
    if not names_a_model(arguments):
        return None
    complete_names(arguments)
    paths = paths_of(arguments)
    until, without_until = _stop_of(arguments)
    problems: Sequence[str]
    resumption = None
    if resume is not None:
        problems = _options_fixed_by_batch(arguments)
        # The value of `--resume` without a batch is an empty text, which means the latest batch.
        resumption = Resume(resume or None, arguments.anyway)
    else:
        problems = _problems_of_new_batch(arguments, paths, without_until, command, compares=compares)
    try:
        if not problems:
            # A name that ends in `.toml` is a file of variants, which `_added_variants` reads.
            names = [name for name in getattr(arguments, "variant", ()) if not name.endswith(".toml")]
            added, has_all = _added_variants(arguments), getattr(arguments, "variants", False)
            return RunOptions(
                suites=paths,
                models=tuple(arguments.model),
                base_url=arguments.base_url,
                api_key_env=arguments.api_key_env,
                params=params_of(arguments),
                cases=tuple(arguments.case),
                tags=tuple(arguments.tag),
                repeats=arguments.repeats,
                by=arguments.by,
                repeat_rule=getattr(arguments, "repeat_rule", None),
                variants=Variants(frozenset(names), has_all, compares or has_all or not (names or added)),
                added_variants=added,
                concurrency=arguments.concurrency,
                cluster=getattr(arguments, "cluster", None),
                # With `None`, each suite decides. The option can only switch execution on.
                execute=True if arguments.execute else None,
                execute_all=arguments.execute_all,
                judge=arguments.judge,
                user_model=arguments.user_model,
                users=arguments.user,
                renew_judgements=arguments.no_judge_cache,
                original_pace=arguments.pace == "recorded",
                min_score=getattr(arguments, "min_score", None),
                max_cost_usd=getattr(arguments, "max_cost", None),
                compares=compares,
                until=until,
                shard=_shard_of(arguments, paths),
                resume=resumption,
                history=history_of(arguments, paths),
                history_named=arguments.history is not None,
            )
    except (OptionsError, ConfigError) as error:
        problems = error.problems
    for problem in problems:
        warn(problem)
    return None


def _options_fixed_by_batch(arguments: argparse.Namespace) -> list[str]:
    problems = []
    for attribute, name in _FIXED_BY_BATCH:
        if getattr(arguments, attribute, None) not in (None, False, []):
            problems.append(f"the resumed batch determines {name}: omit it")
    return problems


def _problems_of_new_batch(
    arguments: argparse.Namespace,
    paths: Sequence[str],
    without_until: str | None,
    command: str | None,
    *,
    compares: bool,
) -> list[str]:
    """Return a list with the first contradiction between options or the first missing option.

    Return [] if there is none."""
    if not paths and command is None:
        verb = "compare" if compares else "run"
        return [f"say what to {verb}: workbench {verb} PATH …, --samples, or --resume to complete a batch"]
    if not paths:
        return [f"say what to run: workbench {command} PATH …, or --samples"]
    if arguments.anyway:
        return ["--anyway applies to a resumed batch: give --resume too"]
    if without_until is not None:
        instead = f"--{without_until} applies to a batch that stops early: write --until decided,{without_until}=…"
        # In other programs, `--gate` sets the required pass rate, so the message names the option for that.
        return [f"{instead}. {PASS_RATE_ADVICE}" if without_until == "gate" else instead]
    for attribute, name in (("shard_by", "--shard-by"), ("plan", "--plan")):
        if getattr(arguments, attribute, None) and arguments.shard is None:
            return [f"{name} applies to shards: give --shard too"]
    return []


def _shard_of(arguments: argparse.Namespace, paths: Sequence[str | Path]) -> Shard | None:
    if getattr(arguments, "shard", None) is None:
        return None
    return shard_of(arguments, paths)


def _stop_of(arguments: argparse.Namespace) -> tuple[Stop | None, str | None]:
    from workbench.cli.redaction import warn
    from workbench.evaluation.options import Stop

    former: dict[str, Any] = {}
    for name in ("looks", "gate", "worse", "seed"):
        if (value := getattr(arguments, name, None)) is not None:
            former[name] = value
    until: dict[str, Any] | None = getattr(arguments, "until", None)
    if until is None:
        return None, next(iter(former), None)
    if former:
        values = ",".join(f"{name}={value}" for name, value in (until | former).items())
        warn(f"{', '.join(f'--{name}' for name in former)}: now written --until decided,{values}")
    return Stop(**until | former), None


def _added_variants(arguments: argparse.Namespace) -> tuple[AddedVariants, ...]:
    from workbench.evaluation.options import AddedVariants, OptionsError
    from workbench.suite.added_variants import (
        HOST_LIBRARY,
        AddedVariantError,
        host_variants,
        prompt_variant,
        variants_in,
    )

    added = []
    try:
        for name in getattr(arguments, "variant", ()):
            if name.endswith(".toml"):
                added.append(AddedVariants(variants_in(Path(name)), str(Path(name))))
        for file in getattr(arguments, "system", ()):
            added.append(AddedVariants((prompt_variant(file),), str(file)))
        if getattr(arguments, "hosts", False):
            added.append(AddedVariants(host_variants(), HOST_LIBRARY))
    except AddedVariantError as error:
        raise OptionsError(str(error)) from error
    return tuple(added)


def repeats_of(text: str) -> int:
    """Parse a number of repeats, from 1 to `MAX_REPEATS`."""
    from workbench.limits import MAX_REPEATS

    if not text.isdecimal() or not 1 <= int(text) <= MAX_REPEATS:
        raise argparse.ArgumentTypeError(MAX_REPEATS.reached(given=repr(text)))
    return int(text)


def _looks(text: str) -> int:
    from workbench.limits import MAX_LOOKS

    if not text.isdecimal() or not 1 <= int(text) <= MAX_LOOKS:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {MAX_LOOKS}, not {text!r}")
    return int(text)


def _dollars(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of US dollars above 0, not {text!r}")
    return number


def _seed(text: str) -> int:
    return int(text)


def _rate(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, not {text!r}")
    return number


def _shard(text: str) -> tuple[int, int] | str:
    if text == "auto":
        return text
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal()) or not int(count):
        raise argparse.ArgumentTypeError(f"must be a shard such as 3/20, the third of 20, or auto, not {text!r}")
    if not 1 <= int(index) <= int(count):
        raise argparse.ArgumentTypeError(
            f"there is no shard {index} of {count}: write one of 1/{count} to {count}/{count}"
        )
    return int(index), int(count)


def _shard_by(text: str) -> str:
    if (text not in ("turn", "cost") and not text.startswith("cost:")) or text == "cost:":
        raise argparse.ArgumentTypeError(f"must be turn, cost or cost:FILE, not {text!r}")
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


SHARD_COUNT_VARIABLE = "WORKBENCH_SHARDS"
"""The variable with the number of shards, for schedulers without their own."""

_SCHEDULERS = (
    ("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
    ("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    ("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
    ("JOB_COMPLETION_INDEX", SHARD_COUNT_VARIABLE, 0),
    ("PARALLEL_SEQ", SHARD_COUNT_VARIABLE, 1),
)
"""The variables with the number of a job and the count of jobs, and the number of the first job.

The variables belong to GitLab, CircleCI, Buildkite, Kubernetes (indexed jobs) and GNU parallel. Slurm is handled
separately, because its arrays may begin with any number."""

_PLAN_IDS = (
    "WORKBENCH_PLAN",
    "GITHUB_RUN_ID",
    "CI_PIPELINE_ID",
    "SLURM_ARRAY_JOB_ID",
    "CIRCLE_WORKFLOW_ID",
    "BUILDKITE_BUILD_ID",
)
"""The variables that identify a pipeline. Their values are equal in all jobs of the pipeline, including repeated
jobs."""


def shard_of(arguments: argparse.Namespace, paths: Sequence[str | Path]) -> Shard:
    """Return the shard that parsed arguments select.

    Raises OptionsError."""
    from workbench.cli.parser import history_to_read
    from workbench.evaluation.options import Shard

    index, count = arguments.shard if arguments.shard != "auto" else shard_in(os.environ)
    costs: Path | None = None
    if arguments.shard_by == "cost":
        costs = history_to_read(argparse.Namespace(history=None), paths)
    elif arguments.shard_by not in (None, "turn"):
        costs = Path(arguments.shard_by.removeprefix("cost:"))
    # All shards of a pipeline have its id, by which `history merge` finds them.
    plan_id = arguments.plan or next(filter(None, map(os.environ.get, _PLAN_IDS)), None)
    return Shard(index=index, of=count, plan_id=plan_id, costs=costs)


def shard_in(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return the number of this shard (from 1) and the count of shards, from a scheduler's variables.

    Raises OptionsError."""
    from workbench.evaluation.options import OptionsError

    if "SLURM_ARRAY_TASK_ID" in environment:
        task, count = _number(environment, "SLURM_ARRAY_TASK_ID"), _number(environment, "SLURM_ARRAY_TASK_COUNT")
        first, step = _number(environment, "SLURM_ARRAY_TASK_MIN"), _number(environment, "SLURM_ARRAY_TASK_STEP", 1)
        # A Slurm array such as --array=10-50:10 has the tasks 10, 20, … 50.
        number, odd = divmod(task - first, max(step, 1))
        if odd or not 0 <= number < count:
            raise OptionsError(
                f"the tasks of this array are not numbered evenly, according to SLURM_ARRAY_TASK_ID={task}, "
                f"_MIN={first}, _STEP={step} and _COUNT={count}: give --shard I/N and --plan ID"
            )
        return number + 1, count
    for name, total, first in _SCHEDULERS:
        if name in environment:
            number, count = _number(environment, name), _number(environment, total)
            if not first <= number < first + count:
                raise OptionsError(
                    f"--shard auto: there is no job {number} of {count}, counted from {first}, although "
                    f"{name}={number} and {total}={count}: correct them, or give --shard I/N"
                )
            return number - first + 1, count
    raise OptionsError(
        "--shard auto finds no job number: it supports arrays of Slurm, parallel jobs of GitLab, CircleCI and "
        "Buildkite, indexed jobs of Kubernetes and GNU parallel; give --shard I/N"
    )


def _number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    from workbench.evaluation.options import OptionsError

    text = environment.get(name, "")
    if not text and default is not None:
        return default
    hint, least = "give --shard I/N", 0
    if name == SHARD_COUNT_VARIABLE:
        hint, least = f"set {name} to the number of shards", 1
    if not text.isdecimal() or int(text) < least:
        raise OptionsError(f"--shard auto needs a number in {name}, but the value is {text!r}: {hint}")
    return int(text)


GRADERS = ("critics", "decision", "accuracy", "trajectory", "dimensions")
"""The names of the graders, written out here so that `--help` does not import the graders."""
REPEAT_RULES = ("every", "last", "mean", "majority")
"""The rules for repeats."""


def add_resume_options(parser: argparse.ArgumentParser) -> None:
    history = group(parser, HISTORY)
    history.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="BATCH",
        help="make the missing runs of a batch (default: the latest of the paths or the project)",
    )
    history.add_argument("--anyway", action="store_true", help="resume even if the models' settings have changed")


def add_detach_option(parser: argparse.ArgumentParser) -> None:
    detached = group(parser, DETACHED)
    detached.add_argument(
        "--detach",
        action="store_true",
        help="run without this terminal: 'workbench attach' shows the batch; --quiet prints only its number",
    )


def add_baseline_options(parser: argparse.ArgumentParser) -> None:
    baseline = group(parser, BASELINE)
    baseline.add_argument("--baseline", metavar="BATCH", help="report what changed since this batch")
    baseline.add_argument(
        "--fail-on",
        choices=("regression",),
        help="decide by the baseline: a regression is a case that broke or is missing",
    )


def add_confirm_option(parser: argparse.ArgumentParser, *, reruns: bool) -> None:
    """Add the options that say how to confirm that a case broke since the baseline."""
    ways: tuple[str, ...] = ("repeats", "none")
    by = "'repeats'"
    if reruns:
        ways = ("reruns", *ways)
        by = "'reruns' until chance is excluded"
    baseline = group(parser, BASELINE)
    baseline.add_argument("--confirm", choices=ways, help=f"how to confirm that a case broke (default: {by})")
    if reruns:
        baseline.add_argument(
            "--confirm-writes", action="store_true", help="also rerun cases that executed tools with effects"
        )


def add_by_option(parser: argparse.ArgumentParser) -> None:
    grading = group(parser, GRADING)
    grading.add_argument(
        "--by", choices=GRADERS, metavar="GRADER", help=f"the grader that decides: {', '.join(GRADERS)}"
    )


def add_repeat_rule_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for the rule that combines a case's repeats into one status."""
    grading = group(parser, GRADING)
    grading.add_argument(
        "--repeat-rule",
        choices=REPEAT_RULES,
        metavar="RULE",
        help=f"the rule for repeats: {', '.join(REPEAT_RULES)}",
    )


def add_min_score_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for a mean score that decides the exit code instead of statuses and gates."""
    grading = group(parser, GRADING)
    grading.add_argument(
        "--min-score",
        type=_unit,
        action=_ScoreToReach,
        metavar="X",
        help="the mean score to reach, 0..1, instead of statuses and gates",
    )


class _ScoreToReach(argparse.Action):
    """The argparse action of `--min-score`. Stores the score, and warns if every batch reaches it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        # A threshold of 0 is usually a mistake, such as an environment variable that is unset or misspelt.
        if values == 0:
            # Lazy import: `--help` stays fast.
            from workbench.cli.redaction import warn

            warn("--min-score 0: every batch reaches 0, so failed cases would not count; give the score to reach")
        setattr(namespace, self.dest, values)


def _unit(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return number
