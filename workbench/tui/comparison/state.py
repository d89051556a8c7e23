"""The state of the comparison: cases as rows, models as columns, filter, order and cursor."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from workbench.analysis.comparison import Cell, CellKey, scores_differ
from workbench.analysis.side_by_side import cells_differ
from workbench.authoring.case_list import CaseKey
from workbench.dataclasses import dataclass
from workbench.tui.comparison.sources import NOT_RUN, UNFINISHED, CellState, ComparedCase, Source, same_objects
from workbench.tui.kit.actions import unless_read_only
from workbench.tui.run_book.stored_batches import case_text


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the comparison: a case, or the heading of a suite."""

    suite_name: str
    case: ComparedCase | None = None


@dataclass(frozen=True, slots=True)
class Sorting:
    """The order of sorted rows: the model whose column is compared, and whether the worst cells come first."""

    model: str
    worst_first: bool = True


class CompareState:
    """The state of the comparison.

    While runs are active, rows keep their places although their results change. They are sorted again when no run is
    active, or when the user asks for it. A filter applies at once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.cases: tuple[ComparedCase, ...] = ()
        self.models: tuple[str, ...] = ()
        """The columns."""
        self.rows: list[Row] = []
        """The displayed rows. The cursor is always on a case."""
        self.cases_shown: list[ComparedCase] = []
        """The displayed cases."""
        self.cursor = 0
        self.column = 0
        self.filter = ""
        self.only_differences = False
        self.sorting: Sorting | None = None
        self.marked: CellKey | None = None
        self._base: str | None = None
        self._cell_states: dict[CellKey, CellState] = {}
        self._cells: dict[str, dict[tuple[str, str], Cell]] = {}
        """Cells with finished runs, by model."""
        self._under_way: set[CellKey] = set()
        self._seen: Sequence[object] = ()
        self._case_rows: dict[tuple[str, str], Row] = {}
        self._texts: dict[tuple[str, str], str] = {}
        self._matching_cases: set[tuple[str, str]] = set()
        """The cases that match the filter. If only differences are shown, only cases with differences."""
        self._versions: dict[tuple[str, str], int] = {}
        self._places: dict[tuple[str, str], int] = {}
        self.most_repeats: dict[str, int] = {}
        """The maximum number of runs of a cell, by model."""
        self.models_with_spread: set[str] = set()
        """The models with a case whose repeats differ in score."""
        self.longest_ms: dict[str, float] = {}
        """The longest latency of runs, by model."""
        self.changed: set[str] = set()
        """Models whose totals are out of date."""
        self.read()

    # Content

    def read(self) -> None:
        """Read all rows, columns and cells from the source."""
        source = self.source
        self._seen = tuple(source.suites())
        self.cases = tuple(source.cases())
        self._places, self._case_rows = {}, {}
        for at, case in enumerate(self.cases):
            self._places[case.key] = at
            self._case_rows[case.key] = Row(case.suite_name, case)
        self._texts.clear()
        removed = [key for key in self._cell_states if key[:2] not in self._places]
        for key in removed:
            del self._cell_states[key]
            self._under_way.discard(key)
            self._cells.get(key[2], {}).pop(key[:2], None)
            self.changed.add(key[2])
        self._take_models()
        # `begun` returns each changed case once. The result is dropped, because all cases are read below.
        source.begun()
        for case in self.cases:
            self._update_case(case)
        self._fit()
        self._rebuild()

    def adopt(self, read: CompareState) -> None:
        """Take over the content of a state that was just read. The cursor, filter, order and marks stay."""
        model, updated = self.model, {}
        for key in read._places:
            updated[key] = self._versions.get(key, 0) + 1
        self.source, self._seen = read.source, read._seen
        self.cases, self._places, self._case_rows = read.cases, read._places, read._case_rows
        self._cell_states, self._cells, self._under_way = read._cell_states, read._cells, read._under_way
        self.most_repeats, self.models_with_spread, self.longest_ms = (
            read.most_repeats,
            read.models_with_spread,
            read.longest_ms,
        )
        self.changed |= {*self.models, *read.models}
        self._versions = updated
        self.models = read.models
        self.column = 0
        if model in self.models:
            self.column = self.models.index(model)
        self._texts.clear()
        self._fit()
        self._rebuild()

    def follow(self) -> None:
        """Show all changes of the source. Sort again unless runs are active."""
        self.update_runs(())
        if self.sorting is not None and not self._under_way:
            self._rebuild()

    def _follow(self) -> None:
        if not same_objects(self.source.suites(), self._seen):
            self.read()
        elif tuple(self.source.models()) != self.models:
            self._take_models()
            self._texts.clear()
            self._fit()
            self._rebuild(resort=False)

    def update_runs(self, cases: Iterable[CaseKey]) -> bool:
        """Update these cases, and all other cases with new runs or grades. Return whether the displayed rows changed.

        The time depends on the number of updated cases, unless rows were added or removed."""
        before = self.rows
        self._follow()
        # `dict.fromkeys` keeps each case once, in the order of the changes.
        self.update_cases(dict.fromkeys(row_keys((*cases, *self.source.begun()))))
        return self.rows is not before and self.rows != before

    def update_cases(self, cases: Iterable[tuple[str, str]]) -> bool:
        """Update the cells of cases (suite and id). Return whether the displayed rows changed."""
        before, was_active = self.rows, bool(self._under_way)
        moved: set[tuple[str, str]] = set()
        for key in cases:
            case = self._case(*key)
            if case is not None and self._update_case(case) and self._is_shown(case) != (key in self._matching_cases):
                moved.add(key)
        self._matching_cases ^= moved
        over = was_active and not self._under_way
        if moved or (self.sorting is not None and over):
            self._rebuild(resort=over)
        return self.rows is not before and self.rows != before

    def at(self, key: CellKey) -> CellState:
        """Return the state of a cell."""
        return self._cell_states.get(key, NOT_RUN)

    def version(self, case: ComparedCase) -> int:
        """Return a number that changes whenever a cell of the case changes."""
        return self._versions.get(case.key, 0)

    @property
    def keys(self) -> Iterator[CellKey]:
        """The keys of all cells, row by row, regardless of the filter."""
        for case in self.cases:
            for model in self.models:
                yield case.on(model)

    def all_cells(self) -> dict[CellKey, Cell]:
        """Return all cells with finished runs, row by row, regardless of the filter."""
        return {key: cell for key in self.keys if (cell := self.at(key).cell) is not None}

    @property
    def suite_names(self) -> dict[str, str]:
        """The names of the compared suites, by their keys."""
        return {case.suite: case.suite_name for case in self.cases}

    def cells(self, model: str) -> Collection[Cell]:
        """Return the cells of a column with finished runs, regardless of the filter."""
        return self._cells.get(model, {}).values()

    @property
    def why_no_cells(self) -> str | None:
        """Why the comparison has no cells, regardless of the filter. `None` if it has cells."""
        if self.cases and self.models:
            return None
        why = self.source.why_nothing_runs()
        if why is not None:
            return why
        if not self.cases:
            return "there is no case here yet"
        return f"no model is chosen{unless_read_only(': m chooses')}"

    @property
    def several_suites(self) -> bool:
        return bool(self.cases) and self.cases[0].suite != self.cases[-1].suite

    @property
    def names_suites(self) -> bool:
        """Whether each case shows its suite's name. That is needed when sorting hides the headings of suites."""
        return self.several_suites and self.sorting is not None

    @property
    def active(self) -> Collection[CellKey]:
        """The cells with active runs."""
        return self._under_way

    # The cursor

    @property
    def case(self) -> ComparedCase | None:
        if self.rows:
            return self.rows[self.cursor].case
        return None

    @property
    def model(self) -> str | None:
        """The selected column."""
        if self.models:
            return self.models[self.column]
        return None

    @property
    def key(self) -> CellKey | None:
        """The key of the selected cell, `None` if there is no cell."""
        if self.case is None or self.model is None:
            return None
        return self.case.on(self.model)

    def move_to(self, row: int, column: int) -> None:
        """Move the cursor to a cell or the nearest cell.

        Headings of suites are skipped in the direction of movement."""
        last = len(self.rows) - 1
        up = row < self.cursor
        row = min(max(row, 0), max(last, 0))
        if self.rows and self.rows[row].case is None:
            # From the heading above the first row, the cursor can only go down.
            if up and row > 0:
                row -= 1
            else:
                row += 1
        self.cursor = row
        self.column = min(max(column, 0), max(len(self.models) - 1, 0))

    def mark(self) -> tuple[CellKey, CellKey] | None:
        """Mark the selected cell, or unmark it if it is marked. If another cell is marked, return both cells."""
        here, before = self.key, self.marked
        if before is None:
            self.marked = here
            return None
        self.marked = None
        if here is not None and before != here:
            return (before, here)
        return None

    # Display

    @property
    def base(self) -> str | None:
        """The base column: the one that the user selected, or else the first column."""
        if self._base in self.models:
            return self._base
        return next(iter(self.models), None)

    @property
    def has_base(self) -> bool:
        return self._base in self.models

    def make_base(self) -> None:
        """Make the selected column the base. If it already is the base, clear the user's selection."""
        if self._base == self.model:
            self._base = None
        else:
            self._base = self.model

    def set_filter(self, text: str) -> None:
        """Show only cases that contain every word of `text` in name, tags, suite or statuses.

        A word such as `failed` matches a status on any model. `gpt-6-luna:failed` matches a status on one model."""
        self.filter = text
        self._fit()
        self._rebuild()

    def show_differences(self, only: bool) -> None:
        """Show only cases whose results differ between models, or all cases."""
        self.only_differences = only
        self._fit()
        self._rebuild()

    def sort(self) -> None:
        """Sort by the selected column, worst first. A second call reverses the order, and a third ends sorting."""
        model = self.model
        if model is None:
            return
        if self.sorting is None or self.sorting.model != model:
            self.sorting = Sorting(model)
        elif self.sorting.worst_first:
            self.sorting = Sorting(model, worst_first=False)
        else:
            self.sorting = None
        self._rebuild(resort=True)
        # The cursor goes to the top, because users sort to see the worst or best cases.
        if self.sorting is not None:
            self.move_to(0, self.column)

    def differs(self, case: ComparedCase) -> bool:
        """Return whether models differ in the status of a case, or in its score as displayed."""
        return cells_differ(self.at(case.on(model)).cell for model in self.models)

    def against_base(self, key: CellKey) -> int:
        """Return whether a cell is better (1) or worse (-1) than the cell of the base column, or neither (0)."""
        if self._base is None or key[2] == self._base:
            return 0
        here, there = self.at(key).cell, self.at((key[0], key[1], self._base)).cell
        if here is None or there is None or not here.is_graded or not there.is_graded:
            return 0
        # The cell with the better verdict is better. If the verdicts are equal, the scores are compared.
        better, worse = here.is_good and not there.is_good, there.is_good and not here.is_good
        one, other = here.score or 0.0, there.score or 0.0
        if not better and not worse and scores_differ(one, other):
            better, worse = one > other, one < other
        return better - worse

    def planned(self) -> list[CellKey]:
        """Return the displayed cells to run.

        A case runs on the selected models, or else on the models that its suite names."""
        planned: list[CellKey] = []
        for case in self.cases_shown:
            for model in self.source.planned(case):
                planned.append(case.on(model))
        return planned

    def repeats(self, key: CellKey) -> int | None:
        """Return the number of runs of a cell. If the cell has no runs, return the highest number among other models.

        Return `None` if the case has no runs."""
        suite, case_id, _ = key
        most = max((self.at((suite, case_id, model)).planned for model in self.models), default=0)
        return self.at(key).planned or most or None

    # Updating

    def _case(self, suite: str, case_id: str) -> ComparedCase | None:
        at = self._places.get((suite, case_id))
        if at is None:
            return None
        return self.cases[at]

    def _take_models(self) -> None:
        model = self.model
        before, self.models = self.models, tuple(self.source.models())
        self.changed |= set(self.models).difference(before)
        self.column = 0
        if model in self.models:
            self.column = self.models.index(model)

    def _update_case(self, case: ComparedCase) -> bool:
        changed = False
        for model, cell_state in self.source.cell_states(case).items():
            key = case.on(model)
            if self._cell_states.get(key) == cell_state:
                continue
            changed = True
            self._cell_states[key] = cell_state
            self.changed.add(model)
            if cell_state.stage in UNFINISHED:
                self._under_way.add(key)
            else:
                self._under_way.discard(key)
            self.most_repeats[model] = max(self.most_repeats.get(model, 1), cell_state.planned)
            if cell_state.cell is None:
                self._cells.get(model, {}).pop(key[:2], None)
                continue
            self._cells.setdefault(model, {})[key[:2]] = cell_state.cell
            if cell_state.cell.spread:
                self.models_with_spread.add(model)
            longest_ms = max(run.latency_ms for run in cell_state.cell.runs)
            self.longest_ms[model] = max(self.longest_ms.get(model, 0.0), longest_ms)
        if changed:
            self._texts.pop(case.key, None)
            self._versions[case.key] = self.version(case) + 1
        return changed

    def _fit(self) -> None:
        self._matching_cases = {key for key, at in self._places.items() if self._is_shown(self.cases[at])}

    def _rebuild(self, *, resort: bool = True) -> None:
        stay_on = self.case
        cases = [case for case in self.cases if case.key in self._matching_cases]
        if self.sorting is not None and resort:
            cases = self._sorted(cases, self.sorting)
        elif self.sorting is not None:
            cases = self._in_shown_order(cases)
        with_headings = self.several_suites and not self.names_suites
        self.rows, self.cases_shown = [], cases
        suite: str | None = None
        for case in cases:
            if with_headings and case.suite != suite:
                self.rows.append(Row(case.suite_name))
            suite = case.suite
            self.rows.append(self._case_rows[case.key])
        at = self.cursor
        if stay_on is not None:
            # The row of the case may be a new object, so the row is found by the key of the case.
            wanted = self._case_rows.get(stay_on.key)
            at = next((at for at, row in enumerate(self.rows) if row is wanted), at)
        self.move_to(at, self.column)

    def _is_shown(self, case: ComparedCase) -> bool:
        if self.only_differences and not self.differs(case):
            return False
        if not self.filter:
            return True
        text = self._text(case)
        return all(word in text for word in self.filter.casefold().split())

    def _text(self, case: ComparedCase) -> str:
        if case.key not in self._texts:
            ended: list[tuple[str, str]] = []
            for model in self.models:
                cell_state = self.at(case.on(model))
                if cell_state.cell is not None:
                    ended.append((model, cell_state.cell.status))
                else:
                    ended.append((model, cell_state.stage))
            self._texts[case.key] = case_text(case.suite_name, case.name, case.case_id, case.tags, ended)
        return self._texts[case.key]

    def _sorted(self, cases: Sequence[ComparedCase], sorting: Sorting) -> list[ComparedCase]:
        """Sort cases by their cells in a column. Cases without a result come last in either direction."""
        over: list[tuple[ComparedCase, Cell]] = []
        others: list[ComparedCase] = []
        for case in cases:
            cell = self.at(case.on(sorting.model)).cell
            if cell is not None:
                over.append((case, cell))
            else:
                others.append(case)
        # Python's sort is stable in both directions, so equal cases keep the order of their suites.
        over.sort(key=lambda each: badness(each[1]), reverse=sorting.worst_first)
        return [*(case for case, _ in over), *others]

    def _in_shown_order(self, cases: Sequence[ComparedCase]) -> list[ComparedCase]:
        """Return cases in their displayed order. New cases are at the end."""
        order = {id(row.case): at for at, row in enumerate(self.rows)}
        return sorted(cases, key=lambda case: order.get(id(case), len(order)))


def row_keys(cases: Iterable[CaseKey]) -> Iterator[tuple[str, str]]:
    """Yield the row key of each case. A row key has the suite's path as text, because stored runs have no `Path`."""
    for path, case_id in cases:
        yield str(path), case_id


def badness(cell: Cell) -> tuple[int, float, float]:
    """Return the sort key of a cell: status, then score, then latency."""
    return -cell.status.urgency, -(cell.score or 0.0), cell.latency_ms or 0.0
