"""The plan of a whole batch in short. A shard has only some of the runs of its plan; its outline says what the others
are, so that shards can be put together, and what no shard has made can still be made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from workbench.dataclasses import compact_json, dataclass, parsed_json
from workbench.limits import MAX_PLANNED_RUNS
from workbench.trajectory.events import JsonValue

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
    """The runs of a plan in their order. `suites` are paths in their projects, with slashes, and hashes; `shapes` are
    the ways in which cases are run; `blocks` are cases that follow one another: suite, shape, ids and names."""

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
        """Return the outline in a text. Raises ValueError."""
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
                raise ValueError("its plan has a suite that is not there")
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
        """All runs, in the order of their places."""
        for suite, shape, cases in self.blocks:
            for case_id, name in cases:
                for model, of_suite, by, first, count in self.shapes[shape]:
                    for repeat in range(first, first + count):
                        yield OutlinedRun(suite, case_id, name, model, of_suite, by, repeat)

    def uid(self, settings: Mapping[str, JsonValue], plan_id: str | None) -> str:
        """Return what identifies a batch of this plan wherever parts of it are run. `settings` are what decides what
        is asked; `plan_id` tells one batch of the same plan from the next."""
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
