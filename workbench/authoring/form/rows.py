"""Builds the rows of a form, for a case or for a suite's settings, each with the problems at its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.cells import cell_len

from workbench.authoring.form.row import FormRow, FormSource
from workbench.authoring.form.rows_suite import rows_of_case, rows_of_suite
from workbench.show.visible import one_line
from workbench.suite.problems import Place, Problem, written

WIDEST_LABEL = 18
"""The maximum width to which labels, argument names and checks are aligned."""

CASE_LABELS, SUITE_LABELS = len("response_contains"), len("description")
"""The fixed label widths for the keys of a case and a suite, so that values do not shift when a key is added."""

_MORE_OF_CASE = "id, offer, models, execute, limits, grading"
_MORE_OF_SUITE = "options of graders, of servers, of checks"


def case_rows(source: FormSource) -> list[FormRow]:
    """Return the rows of a case's form."""
    return _finished(source, list(rows_of_case(source)), _MORE_OF_CASE)


def suite_rows(source: FormSource) -> list[FormRow]:
    """Return the rows of the form for a suite's settings."""
    return _finished(source, list(rows_of_suite(source)), _MORE_OF_SUITE)


def form_rows(source: FormSource) -> list[FormRow]:
    """Return the rows of a case's form or of a suite's settings."""
    return case_rows(source) if source.is_case else suite_rows(source)


def _finished(source: FormSource, rows: list[FormRow], more: str) -> list[FormRow]:
    rows = _with_problems(source, rows)
    top_labels = CASE_LABELS if source.is_case else SUITE_LABELS
    if source.every_key:
        return [
            *aligned(rows, top_labels),
            FormRow("more", (), 0, "less", note="shows what is written, and the usual keys"),
        ]
    shown = aligned([row for row in rows if not row.rare or not row.absent or row.problems], top_labels)
    return [*shown, FormRow("more", (), 0, "more", note=more)] if len(shown) < len(rows) else shown


def aligned(rows: Sequence[FormRow], top_labels: int) -> list[FormRow]:
    """Align labels, names and checks of neighbouring rows that belong to the same table. `top_labels` is the width of
    the labels at the top."""
    bands: dict[tuple[int, Place], list[int]] = {}
    finished: list[list[int]] = []
    for at, row in enumerate(rows):
        if not _is_in_column(row):
            closed = [key for key in bands if key[0] >= row.indent]
            finished += [bands.pop(key) for key in closed]
        else:
            bands.setdefault((row.indent, row.place[:-1]), []).append(at)
    placed = list(rows)
    for band in (*finished, *bands.values()):
        pairs = [rows[at] for at in band if rows[at].kind == "pair"]
        label_cells = _widest(rows[at].label for at in band) if rows[band[0]].place[:-1] else top_labels
        checks = _widest(row.cells[1].text for row in pairs if len(row.cells) > 2)
        widths = (_widest(row.cells[0].text for row in pairs), checks)
        for at in band:
            row = rows[at]
            is_pair = row.kind == "pair"
            placed[at] = replace(row, widths=widths) if is_pair else replace(row, label_cells=label_cells)
    return placed


def _is_in_column(row: FormRow) -> bool:
    return row.kind in ("field", "pair") or (row.kind == "section" and (row.absent or bool(row.cells)))


def _widest(texts: Iterable[str]) -> int:
    return min(max((cell_len(one_line(text)) for text in texts), default=0), WIDEST_LABEL)


def _with_problems(source: FormSource, rows: list[FormRow]) -> list[FormRow]:
    """Attach each problem to the row nearest to its place, going outwards, otherwise to the first row."""
    found: dict[int, list[Problem]] = {}
    places = {written((*source.at, *row.place)): at for at, row in reversed(list(enumerate(rows)))}
    for problem in source.problems:
        if _is_about(source, problem):
            at = places.get(nearest(problem.where, places), 0)
            found.setdefault(at, []).append(problem)
    return [replace(row, problems=tuple(found[at])) if at in found else row for at, row in enumerate(rows)]


def _is_about(source: FormSource, problem: Problem) -> bool:
    if not source.at:
        return not problem.where.startswith("cases[")
    top = written(source.at)
    return problem.where == top or problem.where.startswith((f"{top}.", f"{top}["))


def nearest(where: str, places: Iterable[str]) -> str:
    """Return the longest place that is, or contains, the place of a problem."""
    around = (place for place in places if where == place or where.startswith((f"{place}.", f"{place}[")))
    return max(around, key=len, default="")


def row_at(rows: Sequence[FormRow], place: Place) -> int | None:
    """Return the index of the row at a place, or of the nearest enclosing one."""
    places = {row.place: at for at, row in reversed(list(enumerate(rows))) if row.kind != "more"}
    for length in range(len(place), 0, -1):
        if place[:length] in places:
            return places[place[:length]]
    return None
