"""Options of `workbench run` and `workbench compare`: which cases are run and in which way, and what they ask for."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.model_options import add_judge_option, add_model_options, params_of, says_for_which_model
from workbench.cli.parser import DEMANDED_OF_ALL, add_history_options, add_samples_option, history_of, paths_of
from workbench.config.models import DEFAULT_CONCURRENCY

if TYPE_CHECKING:
    from workbench.evaluation.options import AddedVariants, RunOptions, Shard, Stop

_SETTLED = (
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
"""What a batch that is resumed says itself: attributes of the parsed arguments, and the names of the options."""


def add_paths(parser: argparse.ArgumentParser, *, resumes: bool = True) -> None:
    """Which suites are meant; with `resumes`, the command can go on with a batch instead."""
    no_path = "; none is needed with --resume" if resumes else ""
    parser.add_argument("paths", nargs="*", metavar="PATH", help=f"suite files, or folders that hold them{no_path}")
    add_samples_option(parser)


_REPEATS = "run every case this many times, overriding the suites"


def add_case_options(parser: argparse.ArgumentParser, repeats: str = _REPEATS) -> None:
    """Which cases, how often, how many at the same time.

    `repeats` says how often."""
    parser.add_argument(
        "--case", action="append", default=[], metavar="ID", help="only the case with this id; may be repeated"
    )
    parser.add_argument(
        "--tag", action="append", default=[], metavar="T", help="only cases with this tag; may be repeated"
    )
    parser.add_argument(
        "--repeats",
        type=repeats_of,
        metavar="N",
        help=repeats,
    )
    parser.add_argument(
        "--concurrency",
        type=_positive,
        default=DEFAULT_CONCURRENCY,
        metavar="N",
        help="runs at the same time (default %(default)s)",
    )
    parser.add_argument(
        "--processes",
        type=_processes,
        metavar="N",
        help="spread the runs over this many processes, or 'auto' for one on each core (default 1)",
    )


def add_cluster_option(parser: argparse.ArgumentParser) -> None:
    """Who makes the runs, if not this program."""
    parser.add_argument(
        "--cluster",
        metavar="WHERE",
        help="have the workers of a dask cluster make the runs: local:N, or the address of a scheduler such as "
        "tcp://scheduler:8786 (needs the extra 'cluster')",
    )


def add_variant_options(parser: argparse.ArgumentParser, *, compares: bool) -> None:
    """Which variants of the suites are run."""
    beside = "beside the suite as it is written" if compares else "instead of the suite as it is written"
    parser.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="NAME|FILE",
        help=f"run this variant {beside}: one of the suite, or all of a TOML file; may be repeated",
    )
    parser.add_argument(
        "--variants", action="store_true", help="run all variants of the suites beside the suites as they are written"
    )
    parser.add_argument(
        "--system",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help=f"run with the system prompt in this file {beside}, as a variant named after it; may be repeated",
    )


def add_until_options(parser: argparse.ArgumentParser, *, compares: bool) -> None:
    """Whether and when the batch stops early."""
    what = "it is decided which model is better" if compares else "the pass rate is decided"
    parser.add_argument(
        "--until",
        choices=("decided",),
        help=f"stop as soon as {what}; runs are then made in a random order",
    )
    if compares:
        parser.add_argument(
            "--looks",
            type=_looks,
            metavar="N",
            help="with --until, look only N times, each after as many further cases (default: after each case)",
        )
    else:
        parser.add_argument(
            "--gate",
            type=_rate,
            metavar="X",
            help="with --until, the pass rate that each model must reach, instead of the gates of the suites",
        )
        parser.add_argument(
            "--worse",
            type=_rate,
            metavar="X",
            help="with --until, a pass rate that is clearly too low (default: 0.1 below the gate)",
        )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="with --until, make the random order from this number (default: from what is to be run)",
    )


def add_shard_options(parser: argparse.ArgumentParser) -> None:
    """Which part of the plan is made."""
    parser.add_argument(
        "--shard",
        type=_shard,
        metavar="I/N",
        help="make only the I-th of N parts of the runs, or 'auto' for that of the job's scheduler; "
        "'workbench history merge' puts them together",
    )
    parser.add_argument(
        "--shard-by",
        type=_shard_by,
        metavar="WAY",
        help="share runs out in 'turn' (default), or by 'cost', their mean latencies in the history or in that of "
        "cost:FILE",
    )
    parser.add_argument(
        "--plan",
        metavar="ID",
        help="with --shard, the id of the batch, shared by all its shards (default: that of the pipeline or array job)",
    )


def add_max_cost_option(parser: argparse.ArgumentParser) -> None:
    """What the batch may cost."""
    parser.add_argument(
        "--max-cost",
        type=_dollars,
        metavar="USD",
        help="begin no run that would take the cost of the batch beyond this, judges included; needs the prices of all "
        "models",
    )


def add_way_options(parser: argparse.ArgumentParser) -> None:
    """What is really executed, who judges, what is trusted, how fast recordings are played."""
    parser.add_argument(
        "--execute",
        action="store_true",
        help="execute tools marked read-only on their servers, overriding the suites",
    )
    parser.add_argument(
        "--execute-all", action="store_true", help="execute all tools, including those that change something"
    )
    add_judge_option(parser, "model that judges where a check names none, instead of the one in workbench.toml")
    parser.add_argument(
        "--no-judge-cache", action="store_true", help="ask judges again about values that they have already judged"
    )
    parser.add_argument(
        "--trust", action="store_true", help="let the suites start and import what they name, for this run"
    )
    parser.add_argument(
        "--pace",
        choices=("recorded", "none"),
        default="none",
        help="play 'replay:' models as fast as they were recorded, or at once (default %(default)s)",
    )


def add_experiment_options(parser: argparse.ArgumentParser, *, variants: bool = False, repeats: str = _REPEATS) -> None:
    """What is run, where no batch is resumed."""
    add_paths(parser, resumes=False)
    add_model_options(parser)
    if variants:
        add_variant_options(parser, compares=True)
    add_case_options(parser, repeats)
    parser.set_defaults(resume=None, anyway=False, by=None)


def add_choice_options(
    parser: argparse.ArgumentParser, option: str, names: Sequence[str], chosen: str, things: str
) -> None:
    """Which of the `things` that such a command does to tools are done: those of the `names` that `option` gives, which
    its help calls `chosen`, and of which tools."""
    listed = ", ".join(names)
    parser.add_argument(
        option, action="append", default=[], choices=names, help=f"only {chosen}, of {listed}; may be repeated"
    )
    parser.add_argument(
        "--tool", action="append", default=[], metavar="NAME", help=f"only {things} of this tool; may be repeated"
    )


def add_history_and_quiet(parser: argparse.ArgumentParser) -> None:
    """Where such runs are kept, and whether their steps are shown."""
    add_history_options(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="no steps and no warnings")


def folder(text: str) -> Path:
    """Return a folder, as the type of an option."""
    if not text:
        raise argparse.ArgumentTypeError("an empty path is not allowed: write '.' for the current one")
    return Path(text)


def run_options(arguments: argparse.Namespace, *, compares: bool, command: str | None = None) -> RunOptions | None:
    """Return the options that parsed arguments of `run`, `compare` or another `command` mean; `None` when they do not
    go together, which has then been reported."""
    from workbench.cli.redaction import warn
    from workbench.config.models import ConfigError
    from workbench.evaluation.options import OptionsError, Resume, RunOptions
    from workbench.suite.variants import Variants

    resumes, what = command is None, "compare" if compares else "run"
    resume: str | None = arguments.resume
    if not says_for_which_model(arguments):
        return None
    problems: tuple[str, ...] = ()
    until, without = _stop_of(arguments)
    of_shards = next(
        (f"--{name.replace('_', '-')}" for name in ("shard_by", "plan") if getattr(arguments, name, None)), ""
    )
    paths = paths_of(arguments)
    if not paths and resume is None:
        ways = "--samples, or --resume to complete a batch" if resumes else "or --samples"
        problems = (f"say what to {what}: workbench {command or what} PATH …, {ways}",)
    elif arguments.anyway and resume is None:
        problems = ("--anyway is about a resumed batch: give --resume too",)
    elif without is not None and resume is None:
        hint = f". {DEMANDED_OF_ALL}" if without == "--gate" else ""
        problems = (f"{without} is about a batch that stops early: give --until decided too{hint}",)
    elif of_shards and resume is None and arguments.shard is None:
        problems = (f"{of_shards} is about shards: give --shard too",)
    elif resume is not None:
        problems = tuple(
            f"{name} is settled by the batch that is resumed: leave it out"
            for attribute, name in _SETTLED
            if getattr(arguments, attribute, None) not in (None, False, [])
        )
    try:
        if not problems:
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
                processes=arguments.processes or 1,
                cluster=getattr(arguments, "cluster", None),
                execute=True if arguments.execute else None,
                execute_all=arguments.execute_all,
                judge=arguments.judge,
                judge_anew=arguments.no_judge_cache,
                own_pace=arguments.pace == "recorded",
                min_score=getattr(arguments, "min_score", None),
                max_cost_usd=getattr(arguments, "max_cost", None),
                compares=compares,
                until=until,
                shard=_shard_of(arguments, paths),
                resume=Resume(resume or None, arguments.anyway) if resume is not None else None,
                history=history_of(arguments, paths),
                history_named=arguments.history is not None,
            )
    except (OptionsError, ConfigError) as error:
        problems = error.problems
    for problem in problems:
        warn(problem)
    return None


def _shard_of(arguments: argparse.Namespace, paths: Sequence[str | Path]) -> Shard | None:
    """Return the shard that is meant, if one is; raises OptionsError."""
    if getattr(arguments, "shard", None) is None:
        return None

    return shard_of(arguments, paths)


def _stop_of(arguments: argparse.Namespace) -> tuple[Stop | None, str | None]:
    """Return when the batch may stop early, and an option that means nothing where it may not."""
    from workbench.evaluation.options import Stop

    names = ("looks", "gate", "worse", "seed")
    given = {name: value for name in names if (value := getattr(arguments, name, None)) is not None}
    if getattr(arguments, "until", None) is None:
        return None, f"--{next(iter(given))}" if given else None
    return Stop(**given), None


def _added_variants(arguments: argparse.Namespace) -> tuple[AddedVariants, ...]:
    """Return the variants in files that are named; raises OptionsError."""
    from workbench.evaluation.options import AddedVariants, OptionsError
    from workbench.suite.suite_file import AddedVariantError, prompt_variant, variants_in

    files = [Path(name) for name in getattr(arguments, "variant", ()) if name.endswith(".toml")]
    try:
        return (
            *(AddedVariants(variants_in(file), str(file)) for file in files),
            *(AddedVariants((prompt_variant(file),), str(file)) for file in getattr(arguments, "system", ())),
        )
    except AddedVariantError as error:
        raise OptionsError(str(error)) from error


def repeats_of(text: str) -> int:
    """Return a number of repeats, as the type of an option."""
    from workbench.limits import MAX_REPEATS

    if not text.isdecimal() or not 1 <= int(text) <= MAX_REPEATS:
        raise argparse.ArgumentTypeError(MAX_REPEATS.reached(given=repr(text)))
    return int(text)


def _processes(text: str) -> int:
    if text != "auto":
        return _positive(text)
    # The cores that this process may use, where the system tells.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def _rate(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, not {text!r}")
    return number


def _shard(text: str) -> tuple[int, int] | str:
    index, _, of = text.partition("/")
    if text == "auto":
        return text
    if index.isdecimal() and of.isdecimal() and int(of) and not 1 <= int(index) <= int(of):
        raise argparse.ArgumentTypeError(f"there is no shard {index} of {of}: write one of 1/{of} to {of}/{of}")
    if not (index.isdecimal() and of.isdecimal()) or not int(of):
        raise argparse.ArgumentTypeError(f"must be such as 3/20, the third of 20, or auto, not {text!r}")
    return int(index), int(of)


def _shard_by(text: str) -> str:
    if (text not in ("turn", "cost") and not text.startswith("cost:")) or text == "cost:":
        raise argparse.ArgumentTypeError(f"must be turn, cost or cost:FILE, not {text!r}")
    return text


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


# Which shard `workbench run` makes, by its options, or by what a scheduler says in the environment.

COUNT = "WORKBENCH_SHARDS"
"""The variable that says how many shards there are where a scheduler does not."""

_SCHEDULERS = (
    ("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
    ("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    ("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
    ("JOB_COMPLETION_INDEX", COUNT, 0),
    ("PARALLEL_SEQ", COUNT, 1),
)
"""Variables with the number of a job and with how many there are, and from where its number counts: GitLab, CircleCI,
Buildkite, indexed jobs of Kubernetes, GNU parallel. Slurm counts from where its user says."""

_PLAN_IDS = (
    "WORKBENCH_PLAN",
    "GITHUB_RUN_ID",
    "CI_PIPELINE_ID",
    "SLURM_ARRAY_JOB_ID",
    "CIRCLE_WORKFLOW_ID",
    "BUILDKITE_BUILD_ID",
)
"""Variables that are the same in all jobs of one run, and in one that is made again: no attempt is counted."""


def shard_of(arguments: argparse.Namespace, paths: Sequence[str | Path]) -> Shard:
    """Return the shard that parsed arguments mean.

    Raises OptionsError."""
    from workbench.cli.parser import history_to_read
    from workbench.evaluation.options import Shard

    index, of = arguments.shard if arguments.shard != "auto" else shard_in(os.environ)
    costs: Path | None = None
    if arguments.shard_by is not None and arguments.shard_by != "turn":
        named = arguments.shard_by.partition(":")[2]
        costs = Path(named) if named else history_to_read(argparse.Namespace(history=None), paths)
    plan_id = arguments.plan or next(filter(None, map(os.environ.get, _PLAN_IDS)), None)
    return Shard(index=index, of=of, plan_id=plan_id, costs=costs)


def shard_in(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return which shard this is, from 1, and of how many, as a scheduler says.

    Raises OptionsError."""
    from workbench.evaluation.options import OptionsError

    if "SLURM_ARRAY_TASK_ID" in environment:
        task, count = _number(environment, "SLURM_ARRAY_TASK_ID"), _number(environment, "SLURM_ARRAY_TASK_COUNT")
        first, step = _number(environment, "SLURM_ARRAY_TASK_MIN"), _number(environment, "SLURM_ARRAY_TASK_STEP", 1)
        number, odd = divmod(task - first, max(step, 1))
        if odd or not 0 <= number < count:
            raise OptionsError(
                f"the tasks of this array are not numbered evenly, as SLURM_ARRAY_TASK_ID={task}, _MIN={first}, "
                f"_STEP={step} and _COUNT={count} say: give --shard I/N and --plan ID"
            )
        return number + 1, count
    for name, total, first in _SCHEDULERS:
        if name in environment:
            number, count = _number(environment, name), _number(environment, total)
            if not first <= number < first + count:
                raise OptionsError(
                    f"--shard auto: there is no job {number} of {count}, counted from {first}, as {name}={number} and "
                    f"{total}={count} say: correct them, or give --shard I/N"
                )
            return number - first + 1, count
    raise OptionsError(
        "--shard auto finds no number of a job: it knows arrays of Slurm, parallel jobs of GitLab, CircleCI and "
        "Buildkite, indexed jobs of Kubernetes and GNU parallel; give --shard I/N"
    )


def _number(environment: Mapping[str, str], name: str, otherwise: int | None = None) -> int:
    from workbench.evaluation.options import OptionsError

    text = environment.get(name, "")
    if not text and otherwise is not None:
        return otherwise
    if not text.isdecimal() or (name == COUNT and int(text) < 1):
        hint = f"set {name} to the number of shards" if name == COUNT else "give --shard I/N"
        raise OptionsError(f"--shard auto needs a number in {name}, and it is {text!r}: {hint}")
    return int(text)


GRADERS = ("critics", "decision", "accuracy", "trajectory", "dimensions")
"""Every grader by name. They are not asked themselves: `--help` answers at once."""
REPEAT_RULES = ("every", "last", "mean", "majority")
"""Every rule for repeats."""


def add_resume_options(parser: argparse.ArgumentParser) -> None:
    """Going on with a batch of the history."""
    parser.add_argument(
        "--resume",
        nargs="?",
        const="",
        metavar="BATCH",
        help="resume a batch of the history, a number or a name: only its missing runs are run (default: the "
        "latest one of the paths, or of this project, with missing runs)",
    )
    parser.add_argument("--anyway", action="store_true", help="resume even if models have other settings than before")


def add_detach_option(parser: argparse.ArgumentParser) -> None:
    """Going on without a terminal."""
    parser.add_argument(
        "--detach",
        action="store_true",
        help="return once the batch has begun, which runs without this terminal: 'workbench attach' shows it; with "
        "--quiet, print its number alone",
    )


def add_baseline_options(parser: argparse.ArgumentParser) -> None:
    """Holding a batch against another one of the history."""
    parser.add_argument(
        "--baseline", metavar="BATCH", help="show what broke, was fixed or changed since this batch, a number or a name"
    )
    parser.add_argument(
        "--fail-on",
        choices=("regression",),
        help="decide by the baseline, not by statuses: a regression is a case that broke or is missing",
    )


def add_confirm_option(parser: argparse.ArgumentParser, *, reruns: bool) -> None:
    """How it is made sure that a case broke."""
    ways = ("reruns", "repeats", "none") if reruns else ("repeats", "none")
    by = (
        "by reruns until chance is excluded, at most as many as the batch has runs (default), by its repeats alone"
        if reruns
        else "by its repeats (default)"
    )
    parser.add_argument(
        "--confirm", choices=ways, help=f"how --fail-on makes sure that a case broke: {by}, or not at all"
    )


def add_by_option(parser: argparse.ArgumentParser) -> None:
    """Which grader decides."""
    parser.add_argument("--by", choices=GRADERS, help="let this grader decide, overriding the cases")


def add_repeat_rule_option(parser: argparse.ArgumentParser) -> None:
    """How the runs of a case come to one status."""
    parser.add_argument(
        "--repeat-rule",
        choices=REPEAT_RULES,
        help="how several runs of a case come to one status, overriding the cases",
    )


def add_min_score_option(parser: argparse.ArgumentParser) -> None:
    """What decides the exit code instead of statuses and gates."""
    parser.add_argument(
        "--min-score",
        type=_unit,
        action=_ScoreToReach,
        metavar="X",
        help="the mean score to reach, 0..1; decides instead of statuses and gates",
    )


class _ScoreToReach(argparse.Action):
    """Takes the score, and warns of one that every batch reaches."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        if values == 0:
            from workbench.cli.redaction import warn  # on use: `--help` answers at once

            warn("--min-score 0: every batch reaches 0, so that no failed case counts; name the score to reach")
        setattr(namespace, self.dest, values)


def _unit(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")
    return number
