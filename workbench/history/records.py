"""The records of a history: suites, batches, runs and plans."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from workbench.dataclasses import compact_json, dataclass, parsed_json
from workbench.grading.status import FINAL, GOOD, GRADED, Status
from workbench.limits import MAX_LOOKS, MAX_PLANNED_RUNS

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.grading.run_summary import RunSummary
    from workbench.suite.suite_file import SuiteFile
    from workbench.trajectory.events import Event, JsonValue


class HistoryError(Exception):
    """A history cannot be used as requested.

    The message names the file and tells the user what to do."""


class NoSuchBatchError(HistoryError):
    """No batch has this name or number."""


class OtherFileError(HistoryError):
    """The file is not a history. `what` is the message without its advice to the user."""

    def __init__(self, problem: str, advice: str = "name another with --history") -> None:
        super().__init__(f"{problem}: {advice}")
        self.what = problem


class DamagedError(HistoryError):
    """The history has content that this program never writes."""


Kind = Literal["runs", "fork", "reruns"]
"""The kind of a batch: runs of cases, a fork of a run, or reruns of another batch's broken cases.

The results of cases count only batches of the kind `runs`."""

CONFIRMS = "confirms"
"""The key in the settings of reruns for the number of the batch whose broken cases are rerun."""


@dataclass(frozen=True, slots=True)
class NewRun:
    """A planned run.

    `run_id` is the run's id in its events. `by` is the deciding grader, `None` for the grader that the case names.
    `model_of_suite` means that the suite, and not the user, named the model."""

    run_id: str
    file: SuiteFile
    case_id: str
    case_name: str
    model: str
    repeat: int
    model_of_suite: bool
    by: str | None = None
    is_fork: bool = False


ResumedBy = Literal["run", "compare"]


def resumed_by(settings: Mapping[str, JsonValue]) -> ResumedBy:
    """Return the name of the command that resumes a batch with these settings."""
    if settings.get("compares") is True:
        return "compare"
    return "run"


ANSWER_SETTINGS = ("provider", "model", "base_url", "params", "headers", "query")
"""The settings of a model that influence its answers. Settings such as the price are not among them."""


def settings_of_answers(settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return those settings of a batch that influence its runs and do not depend on the machine."""
    asked: dict[str, JsonValue] = {}
    for kind in ("models", "judges"):
        asked[kind] = _reached(settings.get(kind))
    for key in ("execute", "execute_all"):
        asked[key] = settings.get(key)
    # Batches of earlier versions lack these keys. Without these tests, the `uid` of their shards would change.
    if "repeat_rule" in settings:
        asked["repeat_rule"] = settings["repeat_rule"]
    if "images" in settings:
        asked["images"] = settings["images"]
    return asked


def _reached(models: JsonValue) -> dict[str, JsonValue]:
    reached: dict[str, JsonValue] = {}
    if isinstance(models, dict):
        for name, model in models.items():
            if isinstance(model, dict):
                reached[name] = {key: value for key, value in model.items() if key in ANSWER_SETTINGS}
    return reached


StopRule = Literal["e-value", "looks", "gate"]

_WORSE_BY: Final = 0.1


@dataclass(frozen=True)
class Until:
    """The condition under which a batch stops early.

    The `rule` compares models by an e-value after each case, compares models at a fixed number of times (`looks`), or
    tests pass rates against a gate. `seed` is the seed with which the runs were shuffled. `gate` is the required pass
    rate, `None` for the gates of the suites. `worse` is the pass rate treated as clearly too low. Both are from 0 to
    1."""

    rule: StopRule
    seed: int
    looks: int | None = None
    gate: float | None = None
    worse: float | None = None

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The condition in the form stored in the settings of a batch."""
        kept: dict[str, JsonValue] = {"rule": self.rule, "seed": self.seed}
        optional = {"looks": self.looks, "gate": self.gate, "worse": self.worse}
        for name, value in optional.items():
            if value is not None:
                kept[name] = value
        return kept

    @classmethod
    def of(cls, settings: Mapping[str, JsonValue]) -> Until | None:
        """Read the early-stopping settings of a batch; `None` if the batch never stops early."""
        kept = settings.get("until")
        if not isinstance(kept, dict):
            return None
        rule, seed, looks = kept.get("rule"), kept.get("seed"), kept.get("looks")
        if rule not in _RULES or not isinstance(seed, int):
            return None
        if not isinstance(looks, int):
            looks = None
        if rule == "looks" and (looks is None or not 1 <= looks <= MAX_LOOKS):
            return None
        return cls(rule, seed, looks, _float_of(kept.get("gate")), _float_of(kept.get("worse")))

    def worse_than(self, gate: float) -> float:
        """Return the pass rate that counts as clearly below a gate: `worse`, or by default the gate minus 0.1."""
        if self.worse is not None:
            return self.worse
        # For a low gate, use half of the gate, because a fixed distance would give a rate of zero or less.
        return max(gate - _WORSE_BY, gate / 2)


_RULES: Final[tuple[StopRule, ...]] = ("e-value", "looks", "gate")


def _float_of(value: JsonValue) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    return None


@dataclass(frozen=True, slots=True)
class ShardRef:
    """Shard number `index`, from 1, of a plan with `of` shards.

    `planned` is the number of runs in the whole plan. `plan_id` is the value of `--plan`, which distinguishes batches
    of the same plan."""

    index: int
    of: int
    planned: int
    plan_id: str | None = None

    @classmethod
    def of_batch(cls, settings: Mapping[str, JsonValue]) -> ShardRef | None:
        """Read the shard from the settings of a batch; `None` if the batch is not a shard."""
        match settings.get("shard"):
            case {"index": int(index), "of": int(of), "planned": int(planned), "plan": str() | None as plan_id}:
                if 1 <= index <= of and planned >= 0:
                    return cls(index, of, planned, plan_id)
                return None
            case _:
                return None

    @property
    def settings(self) -> dict[str, JsonValue]:
        return {"index": self.index, "of": self.of, "planned": self.planned, "plan": self.plan_id}

    def __str__(self) -> str:
        return f"shard {self.index}/{self.of}"


@dataclass(frozen=True, slots=True)
class MergedShards:
    """The shards of a plan that were merged into a batch, as pairs of index and number of shards.

    `plan_id` distinguishes batches of the same plan."""

    plan_id: str | None
    shards: tuple[tuple[int, int], ...]

    @classmethod
    def of_batch(cls, settings: Mapping[str, JsonValue]) -> MergedShards | None:
        """Read the merged shards from the settings of a batch; `None` if the batch was not merged."""
        match settings.get("merged"):
            case {"plan": str() | None as plan_id, "shards": list(shards)}:
                known = []
                for shard in shards:
                    match shard:
                        case [int(index), int(of)] if type(index) is type(of) is int:
                            known.append((index, of))
                return cls(plan_id, tuple(sorted(known)))
            case _:
                return None

    @property
    def settings(self) -> dict[str, JsonValue]:
        return {"plan": self.plan_id, "shards": list(map(list, self.shards))}

    @property
    def of(self) -> int | None:
        """The number of shards in the plan; `None` if the merged shards give different numbers."""
        numbers = {of for _, of in self.shards}
        if len(numbers) == 1:
            return numbers.pop()
        return None

    @property
    def missing(self) -> tuple[int, ...]:
        """The indices of the shards that were not merged; empty if the number of shards is unknown."""
        if self.of is None:
            return ()
        merged = {index for index, _ in self.shards}
        return tuple(index for index in range(1, self.of + 1) if index not in merged)


@dataclass(frozen=True)
class NewShard:
    """The plan of a shard.

    `outline` describes all runs of the plan, and `files` are its suites. `places` are the positions of the shard's runs
    in the plan."""

    places: tuple[int, ...]
    outline: Outline
    files: tuple[SuiteFile, ...]


@dataclass(frozen=True)
class NewBatch:
    """A new batch.

    `started_at` is an ISO 8601 time. `program` is the version of Workbench. `settings` are the settings at the start,
    without secrets. `projects` maps each suite's file to its project's folder. `uid` identifies the plan. With `shard`,
    the batch has only one shard of the plan's runs."""

    kind: Kind
    started_at: str
    program: str
    settings: Mapping[str, JsonValue]
    runs: tuple[NewRun, ...]
    projects: Mapping[Path, Path]
    uid: str | None = None
    shard: NewShard | None = None

    @property
    def places(self) -> Sequence[int]:
        """The positions of the batch's runs in the plan, from 0, in the order of `runs`."""
        if self.shard is not None:
            return self.shard.places
        return range(len(self.runs))


@dataclass(frozen=True)
class RunWithEvents:
    """A finished run.

    Times are milliseconds since 1970."""

    run_id: str
    result: RunResult
    events: tuple[Event, ...]
    began_ms: float
    ended_ms: float


@dataclass(frozen=True, slots=True)
class SuiteRef:
    """One version of a suite, as it was when it ran.

    `path` is the file's path below the folder `project`, with slashes. `cases` is the number of cases."""

    id: int
    project: str
    path: str
    hash: str
    name: str
    cases: int

    @property
    def key(self) -> str:
        """The absolute path of the suite's file, which identifies the suite in a history.

        Use the key only for look-ups in one history, because the file has another path on another machine."""
        return posixpath.join(self.project, self.path)

    @property
    def file(self) -> Path:
        return _file_of(self.project, self.path)


# The path is cached, because a report asks for the file of each run, but runs have few suites.
@lru_cache(maxsize=64)
def _file_of(project: str, path: str) -> Path:
    return Path(project) / path


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The runs of one suite with one model in a batch.

    `planned` is the number of planned runs, `cases` is the number of planned cases, and `counts` has the number of runs
    of each status. Planned runs without a status never finished."""

    suite: SuiteRef
    model: str
    planned: int
    cases: int
    counts: Mapping[Status, int]
    valid_calls: int = 0
    """The number of calls with valid arguments among `checked_calls`."""
    checked_calls: int = 0
    """The number of calls in graded runs whose arguments were checked against the tool's schema."""
    user_errors: int = 0
    """The number of runs that the user of a conversation invalidated. They count as errors too."""
    gave_up: int = 0
    """The number of runs whose user gave up."""

    @property
    def whole(self) -> bool:
        """Whether all cases of the suite were planned."""
        return self.cases == self.suite.cases


NAMED_AFTER = "named_after"
"""A key in a batch's settings: the number of the batch that lost its name to this batch."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch in the list of batches.

    `number` identifies the batch. A `name`, which the user may give, identifies it too. `program` is the version of
    Workbench that started the batch, and `planned` is the number of planned runs. `ended_at` is `None` while the batch
    is running, and if it was interrupted. `damage` names the unreadable part of a damaged batch. A damaged batch has no
    parts, and can only be listed and removed."""

    number: int
    name: str | None
    kind: Kind
    started_at: str
    ended_at: str | None
    program: str
    settings: Mapping[str, JsonValue]
    planned: int
    parts: tuple[BatchPart, ...] = field(repr=False)
    damage: str | None = None

    @property
    def resumed_by(self) -> ResumedBy:
        """The command that started the batch and can resume it."""
        return resumed_by(self.settings)

    @property
    def shard(self) -> ShardRef | None:
        """The plan's shard that this batch runs; `None` if the batch is not a shard."""
        return ShardRef.of_batch(self.settings)

    @property
    def merged(self) -> MergedShards | None:
        """The shards that were merged into this batch; `None` if the batch is not merged."""
        return MergedShards.of_batch(self.settings)

    @property
    def named_after(self) -> int | None:
        """The number of the batch from which this batch took its name; `None` if no batch had the name before."""
        return self._number(NAMED_AFTER)

    @property
    def confirms(self) -> int | None:
        """The number of the batch whose broken cases were rerun in this batch; `None` for other batches."""
        return self._number(CONFIRMS)

    def _number(self, setting: str) -> int | None:
        # isinstance would accept `True`, which is not the number of a batch.
        number = self.settings.get(setting)
        if type(number) is int:
            return number
        return None

    @property
    def min_score(self) -> float | None:
        """The mean score (0..1) that all shards of the plan together must reach; `None` if there is no such gate."""
        demanded = self.settings.get("min_score")
        if isinstance(demanded, float) and 0 <= demanded <= 1:
            return demanded
        return None

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.model for part in self.parts))

    @property
    def suites(self) -> tuple[SuiteRef, ...]:
        return tuple(dict.fromkeys(part.suite for part in self.parts))

    @property
    def suites_by_path(self) -> dict[str, SuiteRef]:
        return {str(suite.file): suite for suite in self.suites}

    @property
    def suite_names(self) -> dict[str, str]:
        """The names of the batch's suites, keyed by the paths of their files."""
        return {str(suite.file): suite.name for suite in self.suites}

    def count(self, *statuses: Status) -> int:
        total = 0
        for part in self.parts:
            total += sum(part.counts[status] for status in statuses)
        return total

    @property
    def graded(self) -> int:
        return self.count(*GRADED)

    @property
    def pass_rate(self) -> float | None:
        """The share (0..1) of graded runs that passed or passed with a warning; `None` without graded runs."""
        if self.graded:
            return self.count(*GOOD) / self.graded
        return None

    @property
    def valid_arguments(self) -> float | None:
        """The share (0..1) of checked calls with valid arguments; `None` without checked calls."""
        checked = sum(part.checked_calls for part in self.parts)
        if checked:
            return sum(part.valid_calls for part in self.parts) / checked
        return None

    @property
    def missing(self) -> int:
        """The number of runs that never finished. Resuming the batch runs them again."""
        return self.planned - self.count(*FINAL)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of a batch.

    `place` is the run's position in the plan, from 0. `figures` are its score, costs and times by the requested
    grading, `None` if the run never finished. `by` is the deciding grader, `None` for the grader that the case
    names."""

    id: int
    batch: int
    place: int
    suite: SuiteRef
    case_id: str
    case_name: str
    model: str
    model_of_suite: bool
    repeat: int
    by: str | None
    is_fork: bool
    figures: RunSummary | None

    @property
    def missing(self) -> bool:
        """Whether the run never finished. Resuming its batch runs it again."""
        return self.figures is None or self.figures.status == Status.STOPPED


class ModelUse(NamedTuple):
    """A model in the runs of one suite in a batch.

    `is_named_by_suite` means that the suite, and not the user, named the model."""

    suite: SuiteRef
    model: str
    is_named_by_suite: bool


class Tally(NamedTuple):
    """The number of runs with one model and status. `cost_usd` is their total cost in US dollars, `None` if unknown."""

    model: str
    status: Status
    cost_usd: float | None
    runs: int


class DatedPart(NamedTuple):
    """The results of one suite with one model, with the number of their batch.

    `stops_early` means that the batch has a rule for early stopping."""

    batch: int
    part: BatchPart
    stops_early: bool


class CaseName(NamedTuple):
    """The id of a case, and a name that the case had."""

    id: str
    name: str


class CaseOutline(NamedTuple):
    """A case of a batch. `first` and `last` are the positions of its first and last run in the plan.

    `ended` has the model and the status of each run, in the order of the plan. An unfinished run has the status
    `None`."""

    suite: SuiteRef
    case_id: str
    case_name: str
    first: int
    last: int
    ended: Sequence[tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class Regrade:
    """A regrade of a whole batch.

    `number` is its number among the batch's regrades, from 1. `graded_at` is an ISO 8601 time. `program` is the version
    of Workbench that made it."""

    id: int
    batch: int
    number: int
    graded_at: str
    program: str


CaseTexts = Mapping[str, Mapping[str, str]]
"""The redacted texts of cases, by `SuiteRef.key` and case id."""

SameSuites = Mapping[str, str]
"""Maps a suite's key in an earlier batch to the same suite's key in a later batch."""


def same_suites(earlier: Iterable[SuiteRef], later: Iterable[SuiteRef]) -> SameSuites:
    """Map the suites of an earlier batch to the same suites in a later batch. Keys and values are `SuiteRef.key`.

    Suites are the same if their paths in the project are equal, because the project folder differs between checkouts
    and machines. If several suites of one batch have the same path in different projects, the result omits them."""
    before, after = _alone(earlier), _alone(later)
    same = {}
    for path, key in before.items():
        if path in after:
            same[key] = after[path]
    return same


def _alone(suites: Iterable[SuiteRef]) -> dict[str, str]:
    keys: dict[str, set[str]] = {}
    for suite in suites:
        keys.setdefault(suite.path, set()).add(suite.key)
    alone = {}
    for path, of_path in keys.items():
        if len(of_path) == 1:
            alone[path] = of_path.pop()
    return alone


VERSION = 1
"""The version of outlines. Raise it when the same options plan different runs or another order.

Shards of different versions cannot be merged, because a place in the plan would mean different runs."""

Shape = tuple[tuple[str, bool, str | None, int, int], ...]
"""The runs of a case: model, whether the suite names the model, deciding grader, first repeat, number of repeats."""


@dataclass(frozen=True, slots=True)
class OutlinedRun:
    """One run of a plan. `suite` is the index of its suite in the plan, from 0."""

    suite: int
    case_id: str
    case_name: str
    model: str
    model_of_suite: bool
    by: str | None
    repeat: int


@dataclass(frozen=True)
class Outline:
    """The runs of a plan in order, in a form that is small enough to store with every shard.

    `suites` are pairs of a suite's path in the project, with slashes, and its hash. A shape is the list of runs of a
    case; many cases have the same shape. A block describes successive cases of one suite and one shape. It has the
    index of the suite, the index of the shape, and the id and name of each case."""

    suites: tuple[tuple[str, str], ...]
    shapes: tuple[Shape, ...]
    blocks: tuple[tuple[int, int, tuple[tuple[str, str], ...]], ...]

    @classmethod
    def of(cls, runs: Iterable[OutlinedRun], suites: Iterable[tuple[str, str]]) -> Outline:
        shapes: dict[Shape, int] = {}
        blocks: list[tuple[int, int, list[tuple[str, str]]]] = []
        of_cases = groupby(runs, key=lambda run: (run.suite, run.case_id, run.case_name))
        for (suite, case_id, name), of_case in of_cases:
            shape = shapes.setdefault(_shape(of_case), len(shapes))
            if not blocks or blocks[-1][:2] != (suite, shape):
                blocks.append((suite, shape, []))
            blocks[-1][2].append((case_id, name))
        frozen = tuple((suite, shape, tuple(cases)) for suite, shape, cases in blocks)
        return cls(tuple(suites), tuple(shapes), frozen)

    @classmethod
    def read(cls, text: str) -> Outline:
        """Read an outline from its JSON text.

        Raises ValueError for an outline of another version and for damage."""
        try:
            content = parsed_json(text)
            if content["version"] != VERSION:
                raise ValueError(f"its plan has version {content['version']}, and this Workbench reads {VERSION}")
            suites = _text_pairs(content["suites"])
            shapes = tuple(tuple(map(_way, shape)) for shape in content["shapes"])
            blocks = []
            for suite, shape, cases in content["blocks"]:
                blocks.append((suite, shape, _text_pairs(cases)))
                # `outline.planned` below raises LookupError if there is no shape with this index.
                if not (type(suite) is type(shape) is int and 0 <= suite < len(suites) and shape >= 0):
                    raise ValueError("its plan names a suite that it does not contain")
            outline = cls(suites, shapes, tuple(blocks))
            # The number of runs is limited, because a few bytes can describe any number of repeats, and a merge writes
            # one row per run.
            if outline.planned > MAX_PLANNED_RUNS:
                raise ValueError("its plan has too many runs")
        except (TypeError, LookupError) as error:
            raise ValueError("its plan cannot be read") from error
        return outline

    @property
    def text(self) -> str:
        """The outline as JSON, which is the same on all machines."""
        return compact_json({"version": VERSION, "suites": self.suites, "shapes": self.shapes, "blocks": self.blocks})

    @property
    def planned(self) -> int:
        return sum(self.parts.values())

    @property
    def parts(self) -> dict[tuple[int, str], int]:
        """The number of runs for each suite, given by its index, and each model, in the order of the plan."""
        found: dict[tuple[int, str], int] = {}
        for suite, shape, cases in self.blocks:
            for model, _, _, _, count in self.shapes[shape]:
                found[suite, model] = found.get((suite, model), 0) + count * len(cases)
        return found

    @property
    def cases(self) -> dict[tuple[int, str], int]:
        """The number of cases by the index of the suite and the name of the model."""
        found: dict[tuple[int, str], set[str]] = {}
        for suite, shape, cases in self.blocks:
            ids = {case_id for case_id, _ in cases}
            for model, *_ in self.shapes[shape]:
                found.setdefault((suite, model), set()).update(ids)
        return {part: len(ids) for part, ids in found.items()}

    def runs(self) -> Iterator[OutlinedRun]:
        """Yield all runs in the order of the plan."""
        for suite, shape, cases in self.blocks:
            for case_id, name in cases:
                for model, of_suite, by, first, count in self.shapes[shape]:
                    for repeat in range(first, first + count):
                        yield OutlinedRun(suite, case_id, name, model, of_suite, by, repeat)

    def uid(self, settings: Mapping[str, JsonValue], plan_id: str | None) -> str:
        """Return the id that all shards of a batch with this plan share, whichever machine runs them.

        `settings` are the settings that influence runs. `plan_id` is the value of `--plan`, which distinguishes batches
        of the same plan."""
        what = compact_json({"plan": self.text, "settings": settings, "id": plan_id})
        return hashlib.sha256(what.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _shape(runs: Iterable[OutlinedRun]) -> Shape:
    # Consecutive repeats with the same model and grader become one entry.
    found: list[tuple[str, bool, str | None, int, int]] = []
    for run in runs:
        if found and found[-1][:3] == (run.model, run.model_of_suite, run.by) and sum(found[-1][3:]) == run.repeat:
            found[-1] = (*found[-1][:4], found[-1][4] + 1)
        else:
            found.append((run.model, run.model_of_suite, run.by, run.repeat, 1))
    return tuple(found)


def _way(failure_mode: tuple[str, bool, str | None, int, int]) -> tuple[str, bool, str | None, int, int]:
    model, of_suite, by, first, count = failure_mode
    if not (type(first) is type(count) is int and first >= 0 and count > 0 and type(of_suite) is bool):
        raise TypeError("repeats must be whole numbers")
    grader = None
    if by is not None:
        grader = _text(by)
    return _text(model), of_suite, grader, first, count


def _text_pairs(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((_text(first), _text(second)) for first, second in pairs)


def _text(value: str) -> str:
    if type(value) is not str:
        raise TypeError("must be a text")
    return value
