"""The records of a history: suites, batches, runs, as they are written and read."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from workbench.dataclasses import compact_json, dataclass, parsed_json
from workbench.grading.status import Status
from workbench.limits import MAX_LOOKS, MAX_PLANNED_RUNS

if TYPE_CHECKING:
    from workbench.grading.grade import RunResult
    from workbench.grading.run_summary import RunSummary
    from workbench.suite.suite_file import SuiteFile
    from workbench.trajectory.events import Event, JsonValue


class HistoryError(Exception):
    """A history cannot be used as asked.

    The message names the file and the way out."""


class OtherFileError(HistoryError):
    """A file is no history; `what` says so without the way out."""

    def __init__(self, what: str, way_out: str = "name another with --history") -> None:
        super().__init__(f"{what}: {way_out}")
        self.what = what


class DamagedError(HistoryError):
    """A history's file has content that this program never writes."""


Kind = Literal["runs", "fork", "reruns"]
"""The kind of a batch: runs of cases, a fork of one run, or reruns of cases that broke in another batch. Only the first
counts for cases."""

CONFIRMS = "confirms"
"""In the settings of reruns: the number of the batch whose broken cases they make again."""


@dataclass(frozen=True, slots=True)
class NewRun:
    """A planned run.

    `run_id` is its id in the events; `by` the deciding grader where it differs from that of the case."""

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
    """Return the command that resumes a batch with these settings."""
    if settings.get("compares") is True:
        return "compare"
    return "run"


REACHED_BY = ("provider", "model", "base_url", "params")
"""The settings of a model that influence its answers; its price, for one, does not."""


def what_is_asked(settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the settings of a batch that influence its runs, the same on all machines."""
    reached: dict[str, JsonValue] = {}
    for kind in ("models", "judges"):
        each = settings.get(kind)
        reached[kind] = {
            name: {key: value for key, value in one.items() if key in REACHED_BY}
            for name, one in (each.items() if isinstance(each, dict) else ())
            if isinstance(one, dict)
        }
    rule = {"repeat_rule": settings["repeat_rule"]} if "repeat_rule" in settings else {}
    return {**reached, **{key: settings.get(key) for key in ("execute", "execute_all")}, **rule}


StopRule = Literal["e-value", "looks", "gate"]

_WORSE_BY: Final = 0.1


@dataclass(frozen=True)
class Until:
    """The condition on which a batch stops early.

    Models are compared by an e-value after each case, or at a few `looks`; or pass rates are held against a gate.
    `seed` made the order of its runs. `gate` and `worse` are those of the caller; without `gate`, the suites' own
    count."""

    rule: StopRule
    seed: int
    looks: int | None = None
    gate: float | None = None
    worse: float | None = None

    @property
    def settings(self) -> dict[str, JsonValue]:
        """It as the history stores it."""
        kept: dict[str, JsonValue] = {"rule": self.rule, "seed": self.seed}
        optional = {"looks": self.looks, "gate": self.gate, "worse": self.worse}
        return kept | {name: value for name, value in optional.items() if value is not None}

    @classmethod
    def of(cls, settings: Mapping[str, JsonValue]) -> Until | None:
        """Read the early-stopping settings of a batch; `None` if it makes all runs."""
        kept = settings.get("until")
        if not isinstance(kept, dict):
            return None
        rule, seed, looks, gate, worse = (kept.get(name) for name in ("rule", "seed", "looks", "gate", "worse"))
        named: StopRule | None = next((each for each in _RULES if each == rule), None)
        if named is None or not isinstance(seed, int):
            return None
        counts = isinstance(looks, int) and 1 <= looks <= MAX_LOOKS
        if named == "looks" and not counts:
            return None
        return cls(named, seed, looks if isinstance(looks, int) else None, _float_of(gate), _float_of(worse))

    def worse_than(self, gate: float) -> float:
        """Return the pass rate that counts as clearly below a gate."""
        if self.worse is not None:
            return self.worse
        return max(gate - _WORSE_BY, gate / 2)


_RULES: Final[tuple[StopRule, ...]] = ("e-value", "looks", "gate")


def _float_of(value: JsonValue) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    return None


@dataclass(frozen=True, slots=True)
class ShardRef:
    """The place of a shard in its plan: which one, from 1, of how many.

    `planned` is the number of runs in the whole plan; `plan_id` tells one batch of that plan from the next."""

    index: int
    of: int
    planned: int
    plan_id: str | None = None

    @classmethod
    def of_batch(cls, settings: Mapping[str, JsonValue]) -> ShardRef | None:
        """Return which shard a batch with these settings is; `None` for one that is none."""
        match settings.get("shard"):
            case {"index": int(index), "of": int(of), "planned": int(planned), "plan": str() | None as plan_id}:
                if 1 <= index <= of and planned >= 0:
                    return cls(index, of, planned, plan_id)
                return None
            case _:
                return None

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The merge that the settings of its batch describe."""
        return {"index": self.index, "of": self.of, "planned": self.planned, "plan": self.plan_id}

    def __str__(self) -> str:
        return f"shard {self.index}/{self.of}"


@dataclass(frozen=True, slots=True)
class MergedShards:
    """From which shards of a plan a batch was merged: which one of how many, each; `plan_id` as in `ShardRef`."""

    plan_id: str | None
    shards: tuple[tuple[int, int], ...]

    @classmethod
    def of_batch(cls, settings: Mapping[str, JsonValue]) -> MergedShards | None:
        """Return the shards from which a batch with these settings was merged; `None` for one that was not."""
        match settings.get("merged"):
            case {"plan": str() | None as plan_id, "shards": list(shards)}:
                found = []
                for each in shards:
                    if isinstance(each, list) and len(each) == 2:
                        found.append((each[0], each[1]))
                known = tuple((index, of) for index, of in found if type(index) is type(of) is int)
                return cls(plan_id, tuple(sorted(known)))
            case _:
                return None

    @property
    def settings(self) -> dict[str, JsonValue]:
        """The confirmation that the settings of its batch describe."""
        return {"plan": self.plan_id, "shards": [list(each) for each in self.shards]}

    @property
    def of(self) -> int | None:
        """How many shards there are, if all say the same."""
        numbers = {of for _, of in self.shards}
        return numbers.pop() if len(numbers) == 1 else None

    @property
    def missing(self) -> tuple[int, ...]:
        """Which shards are not among them, as far as that is known."""
        merged = {index for index, _ in self.shards}
        return tuple(index for index in range(1, (self.of or 0) + 1) if index not in merged)


@dataclass(frozen=True)
class NewShard:
    """The plan of a batch that is one shard: the places of its runs, all runs, and the suites in their order."""

    places: tuple[int, ...]
    outline: Outline
    files: tuple[SuiteFile, ...]


@dataclass(frozen=True)
class NewBatch:
    """A new batch.

    `started_at` is ISO 8601; `settings` are those it was started with, without secrets. `projects` gives the folder of
    the project that each suite's file belongs to. `uid` identifies the plan of which it is `shard`, or the whole."""

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
        """The place of each of its runs in the plan."""
        if self.shard is not None:
            return self.shard.places
        return range(len(self.runs))


@dataclass(frozen=True)
class DoneRun:
    """A finished run.

    Times are milliseconds since 1970."""

    run_id: str
    result: RunResult
    events: tuple[Event, ...]
    began_ms: float
    ended_ms: float


@dataclass(frozen=True, slots=True)
class SuiteRef:
    """A suite as it was.

    `path` is that of its file below `project`, with slashes; `cases` is how many it had."""

    id: int
    project: str
    path: str
    hash: str
    name: str
    cases: int

    @property
    def key(self) -> str:
        """Identifies a suite of a history, as in `RunSummary`: two projects may each have one at the same path.

        It is the resolved path of the file, and not to be shown."""
        return posixpath.join(self.project, self.path)

    @property
    def file(self) -> Path:
        """The path of its file."""
        return Path(self.project) / self.path


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The runs of one suite with one model in a batch; `cases` is how many of the suite's cases were planned.

    Planned runs that are not counted never finished."""

    suite: SuiteRef
    model: str
    planned: int
    cases: int
    counts: Mapping[Status, int]
    valid_calls: int = 0
    """Those of the checked calls of its graded runs whose arguments are valid."""
    checked_calls: int = 0

    @property
    def whole(self) -> bool:
        """Whether all cases of the suite were planned."""
        return self.cases == self.suite.cases


NAMED_AFTER = "named_after"
"""In the settings of a batch: the number of the batch that lost its name to it."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch in the list of batches.

    `number` identifies it, and so does `name` if the user has given one. `ended_at` is `None` while it is going on,
    and for one that was cut off. `damage` names the unreadable part; the batch then has no parts, and can only be
    listed and removed."""

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
        """The command that resumes it where runs are missing: the one with which it was made."""
        return resumed_by(self.settings)

    @property
    def shard(self) -> ShardRef | None:
        """Which shard of a plan it is, if it is one."""
        return ShardRef.of_batch(self.settings)

    @property
    def merged(self) -> MergedShards | None:
        """From which shards of a plan it was merged, if it was."""
        return MergedShards.of_batch(self.settings)

    @property
    def named_after(self) -> int | None:
        """The number of the batch that lost its name to this one."""
        number = self.settings.get(NAMED_AFTER)
        return number if type(number) is int else None

    @property
    def confirms(self) -> int | None:
        """The number of the batch whose broken cases were made again in this one."""
        number = self.settings.get(CONFIRMS)
        return number if type(number) is int else None

    @property
    def min_score(self) -> float | None:
        """The mean score that all shards of its plan are to reach, if they were made with one."""
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

    def count(self, *statuses: Status) -> int:
        """Return how many runs ended in one of these ways."""
        return sum(part.counts[status] for part in self.parts for status in statuses)

    @property
    def graded(self) -> int:
        return self.count(*(status for status in Status if status.graded))

    @property
    def pass_rate(self) -> float | None:
        """The share of graded runs that passed or were warned, 0..1."""
        if self.graded:
            return self.count(*(status for status in Status if status.good)) / self.graded
        return None

    @property
    def valid_arguments(self) -> float | None:
        """The share of checked calls whose arguments are valid, 0..1."""
        checked = sum(part.checked_calls for part in self.parts)
        if checked:
            return sum(part.valid_calls for part in self.parts) / checked
        return None

    @property
    def missing(self) -> int:
        """How many runs never finished: resuming the batch makes them."""
        return self.planned - self.count(*(status for status in Status if status.final))


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of a batch; `place` is its place in the plan, from 0.

    `figures` are those of the requested grading, `None` for a run that never finished."""

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
        """Whether it never finished: resuming the batch makes it."""
        return self.figures is None or self.figures.status == Status.STOPPED


class ModelUse(NamedTuple):
    """A model that runs of a suite ask in a batch; `of_suite` is whether the suite names it."""

    suite: SuiteRef
    model: str
    of_suite: bool


class Tally(NamedTuple):
    """The number of runs with a model that ended in one way; `cost_usd` is their cost, `None` if unknown."""

    model: str
    status: Status
    cost_usd: float | None
    runs: int


class DatedPart(NamedTuple):
    """How the runs of a suite with a model ended in a batch; `stops_early` says that it may stop early."""

    batch: int
    part: BatchPart
    stops_early: bool


class CaseOutline(NamedTuple):
    """A case of a batch: the first and last place of its runs in the plan, and how they ended, each with its model.

    `None` never finished."""

    suite: SuiteRef
    case_id: str
    case_name: str
    first: int
    last: int
    ended: Sequence[tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class Regrade:
    """A regrade of a whole batch after it ran; `number` counts from 1 in its batch."""

    id: int
    batch: int
    number: int
    graded_at: str
    program: str


SameSuites = Mapping[str, str]
"""Maps the key of a suite in the earlier batch to that in the later one, where they may differ. Other suites have one
key."""


def same_suites(earlier: Iterable[SuiteRef], later: Iterable[SuiteRef]) -> SameSuites:
    """Return the suites that are the same in both batches.

    They are the same where project and path are. In another checkout, or on another machine, the project differs: then
    the path alone decides, if each batch has exactly one suite at that path."""
    before, after = _alone(earlier), _alone(later)
    return {key: after[path] for path, key in before.items() if path in after}


def _alone(suites: Iterable[SuiteRef]) -> dict[str, str]:
    """Return the keys of suites by their paths, except paths that several have."""
    keys: dict[str, set[str]] = {}
    for suite in suites:
        keys.setdefault(suite.path, set()).add(suite.key)
    return {path: found.pop() for path, found in keys.items() if len(found) == 1}


VERSION = 1
"""Goes up when the same options plan other runs, or in another order: their places then mean something else."""

Shape = tuple[tuple[str, bool, str | None, int, int], ...]
"""How a case is run: model, whether the suite names it, deciding grader, first repeat, how many of them."""


@dataclass(frozen=True, slots=True)
class OutlinedRun:
    """One run of a plan; `suite` counts the suites of the plan from 0."""

    suite: int
    case_id: str
    case_name: str
    model: str
    model_of_suite: bool
    by: str | None
    repeat: int


@dataclass(frozen=True)
class Outline:
    """The runs of a plan in their order.

    `suites` are paths in their projects, with slashes, and hashes; `shapes` are the ways in which cases are run;
    `blocks` are cases that follow one another: suite, shape, ids and names."""

    suites: tuple[tuple[str, str], ...]
    shapes: tuple[Shape, ...]
    blocks: tuple[tuple[int, int, tuple[tuple[str, str], ...]], ...]

    @classmethod
    def of(cls, runs: Iterable[OutlinedRun], suites: Iterable[tuple[str, str]]) -> Outline:
        """Return the outline of all runs of a plan."""
        shapes: dict[Shape, int] = {}
        cases = (
            (suite, shapes.setdefault(_shape(of_case), len(shapes)), case_id, name)
            for (suite, case_id, name), of_case in groupby(
                runs, key=lambda run: (run.suite, run.case_id, run.case_name)
            )
        )
        blocks = tuple(
            (suite, shape, tuple((case_id, name) for _, _, case_id, name in of_block))
            for (suite, shape), of_block in groupby(cases, key=lambda case: case[:2])
        )
        return cls(tuple(suites), tuple(shapes), blocks)

    @classmethod
    def read(cls, text: str) -> Outline:
        """Return the outline in a text.

        Raises ValueError."""
        try:
            content = parsed_json(text)
            if content["version"] != VERSION:
                raise ValueError(f"its plan has version {content['version']}, and this Workbench reads {VERSION}")
            outline = cls(
                tuple((_text(path), _text(hash_)) for path, hash_ in content["suites"]),
                tuple(tuple(map(_way, shape)) for shape in content["shapes"]),
                tuple(
                    (suite, shape, tuple((_text(case_id), _text(name)) for case_id, name in cases))
                    for suite, shape, cases in content["blocks"]
                ),
            )
            if not all(
                type(suite) is type(shape) is int and 0 <= suite < len(outline.suites) and shape >= 0
                for suite, shape, _ in outline.blocks
            ):
                raise ValueError("its plan names a suite that it does not contain")
            if outline.planned > MAX_PLANNED_RUNS:
                raise ValueError("its plan has too many runs")
        except (TypeError, LookupError) as error:
            raise ValueError("its plan cannot be read") from error
        return outline

    @property
    def text(self) -> str:
        """The outline as JSON, the same on all machines."""
        return compact_json({"version": VERSION, "suites": self.suites, "shapes": self.shapes, "blocks": self.blocks})

    @property
    def planned(self) -> int:
        """How many runs there are."""
        of_shape = [sum(count for *_, count in shape) for shape in self.shapes]
        return sum(of_shape[shape] * len(cases) for _, shape, cases in self.blocks)

    @property
    def parts(self) -> dict[tuple[int, str], int]:
        """How many runs each suite has with each model, in the order of the plan."""
        found: dict[tuple[int, str], int] = {}
        for suite, shape, cases in self.blocks:
            for model, _, _, _, count in self.shapes[shape]:
                found[suite, model] = found.get((suite, model), 0) + count * len(cases)
        return found

    @property
    def cases(self) -> dict[tuple[int, str], int]:
        """How many cases each suite has with each model."""
        found: dict[tuple[int, str], set[str]] = {}
        for suite, shape, cases in self.blocks:
            for model in {model for model, *_ in self.shapes[shape]}:
                found.setdefault((suite, model), set()).update(case_id for case_id, _ in cases)
        return {part: len(ids) for part, ids in found.items()}

    def runs(self) -> Iterator[OutlinedRun]:
        """Yield all runs, in the order of their places."""
        for suite, shape, cases in self.blocks:
            for case_id, name in cases:
                for model, of_suite, by, first, count in self.shapes[shape]:
                    for repeat in range(first, first + count):
                        yield OutlinedRun(suite, case_id, name, model, of_suite, by, repeat)

    def uid(self, settings: Mapping[str, JsonValue], plan_id: str | None) -> str:
        """Return the id of a batch of this plan, the same wherever parts of it are run.

        `settings` are those that influence runs; `plan_id` tells one batch of the same plan from the next."""
        what = compact_json({"plan": self.text, "settings": settings, "id": plan_id})
        return hashlib.sha256(what.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _shape(runs: Iterable[OutlinedRun]) -> Shape:
    found: list[tuple[str, bool, str | None, int, int]] = []
    for run in runs:
        if found and found[-1][:3] == (run.model, run.model_of_suite, run.by) and sum(found[-1][3:]) == run.repeat:
            found[-1] = (*found[-1][:4], found[-1][4] + 1)
        else:
            found.append((run.model, run.model_of_suite, run.by, run.repeat, 1))
    return tuple(found)


def _way(way: tuple[str, bool, str | None, int, int]) -> tuple[str, bool, str | None, int, int]:
    model, of_suite, by, first, count = way
    if not (type(first) is type(count) is int and first >= 0 and count > 0 and type(of_suite) is bool):
        raise TypeError("repeats are whole numbers")
    return _text(model), of_suite, None if by is None else _text(by), first, count


def _text(value: str) -> str:
    if type(value) is not str:
        raise TypeError("must be a text")
    return value
