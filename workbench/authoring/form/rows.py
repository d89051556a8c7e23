"""The rows of a form: those of a case, or of a suite's settings, each with the problems that stand at its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.cells import cell_len

from workbench.authoring.form.row import FormRow, FormSource
from workbench.authoring.form.rows_case import rows_of_case
from workbench.authoring.form.rows_suite import rows_of_suite
from workbench.reports.visible import one_line
from workbench.suite.problems import Place, Problem, written

WIDEST_LABEL = 18
"""Cells to which labels, and the names and checks of arguments, are aligned."""

TOP_LABELS = 11
"""The same for the keys of a case itself: longer ones stand out, so that the texts have room, and never move."""

_MORE_OF_CASE = "id, offer, models, execute, limits, grading"
_MORE_OF_SUITE = "options of graders, of servers, of checks"


def case_rows(source: FormSource) -> list[FormRow]:
    """The rows of a case's form."""
    return _finished(source, list(rows_of_case(source)), _MORE_OF_CASE)


def suite_rows(source: FormSource) -> list[FormRow]:
    """The rows of the form of a suite's settings."""
    return _finished(source, list(rows_of_suite(source)), _MORE_OF_SUITE)


def form_rows(source: FormSource) -> list[FormRow]:
    """The rows of whichever form it is."""
    return case_rows(source) if source.is_case else suite_rows(source)


def _finished(source: FormSource, rows: list[FormRow], more: str) -> list[FormRow]:
    rows = _with_problems(source, rows)
    if source.every_key:
        return [*aligned(rows), FormRow("more", (), 0, "less", note="shows what is written, and the usual keys")]
    shown = aligned([row for row in rows if not row.rare or not row.absent or row.problems])
    return [*shown, FormRow("more", (), 0, "more", note=more)] if len(shown) < len(rows) else shown


def aligned(rows: Sequence[FormRow]) -> list[FormRow]:
    """The same rows with labels, names and checks in columns: of neighbours that are part of the same thing."""
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
        label_cells = _widest(rows[at].label for at in band) if rows[band[0]].place[:-1] else TOP_LABELS
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
    """Each problem at the row that is nearest to its place, from the place upwards; else at the first row."""
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
    """The longest of some places that a problem's place is, or stands in."""
    around = (place for place in places if where == place or where.startswith((f"{place}.", f"{place}[")))
    return max(around, key=len, default="")


def row_at(rows: Sequence[FormRow], place: Place) -> int | None:
    """The index of the row at a place, or of the nearest one around it."""
    places = {row.place: at for at, row in reversed(list(enumerate(rows))) if row.kind != "more"}
    for length in range(len(place), 0, -1):
        if place[:length] in places:
            return places[place[:length]]
    return None
