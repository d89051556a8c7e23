"""Scatters of models by what they take and their score, as SVG in the page: they need no script."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from workbench.analysis.comparison import ModelTotals
from workbench.analysis.measures import AGAINST_SCORE, Measure, Unit
from workbench.analysis.side_by_side import Point, front, points
from workbench.numerals import cost_text, counted, duration_text, figure, score_text
from workbench.show.visible import one_line, shortened

_WIDTH, _HEIGHT = 360, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 30, 16, 46
_LINE = 14
_LABEL_MAX = 28
_LABEL_CELL = 7
"""About as wide is a character of a label."""


def scatters(totals: Sequence[ModelTotals]) -> Iterator[str]:
    """Yield figures of cost and of latency against the mean score, each if two models have both. The totals are those
    over the cases that all of them have."""
    cases = counted(max((each.graded for each in totals), default=0), "case")
    for measure in AGAINST_SCORE:
        yield from _figure(measure, points(measure, totals), cases)


_TEXTS: Mapping[Unit, Callable[[float], str]] = {"usd": cost_text, "ms": duration_text}


def _figure(measure: Measure, found: tuple[tuple[Point, ...], tuple[str, ...]], cases: str) -> Iterator[str]:
    shown, left_out = found
    most = max((point.takes for point in shown), default=0.0)
    if len(shown) < 2 or most <= 0:
        return
    best = front(shown)
    title, text = f"{measure.title.capitalize()} and score", _TEXTS[measure.unit]
    axis = f"{measure.title} of a run, {measure.pooled}"
    yield f'<figure class="card chart scatter"><figcaption><strong>{title}</strong> '
    yield "<small>better is up and to the left; the line joins those that none beats in both; "
    yield f"over the {cases} graded with all</small></figcaption>\n"
    said = ", ".join(f"{one_line(each.name)} {score_text(each.score)} for {text(each.takes)}" for each in shown)
    names = ", ".join(one_line(each.name) for each in best)
    label = escape(f"{title}: {said}. On the front: {names}")
    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">\n'
    ticks = _ticks(most)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def place(point: Point) -> tuple[float, float]:
        x = _LEFT + point.takes / ticks[-1] * (right - _LEFT)
        return round(x, 1), round(bottom - min(max(point.score, 0.0), 1.0) * (bottom - _TOP), 1)

    for score in (0.0, 0.5, 1.0):
        y = place(Point("", 0, score))[1]
        yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" text-anchor="end" x="{_LEFT - 6}" y="{y + 4}">{figure(score)}</text>\n'
    for tick in ticks:
        x = place(Point("", tick, 0))[0]
        said = text(tick) if tick else "0"
        yield f'<text class="tick" text-anchor="middle" x="{x}" y="{bottom + 17}">{said}</text>\n'
    yield f'<text class="tick" text-anchor="middle" x="{(_LEFT + right) / 2}" y="{_HEIGHT - 8}">{axis}</text>\n'
    steps = [place(each) for each in best]
    path = f"M{steps[0][0]} {steps[0][1]}" + "".join(f"H{x}V{y}" for x, y in steps[1:]) + f"H{right}"
    yield f'<path class="front" d="{path}"/>\n'
    yield from _marks(shown, set(best), place, text)
    yield "</svg>\n"
    if left_out:
        yield f'<p class="quiet">Not shown, for their {measure.title} or score is unknown: '
        yield f"{escape(', '.join(map(one_line, left_out)))}</p>\n"
    yield "</figure>\n"


def _marks(
    points: Sequence[Point],
    best: set[Point],
    place: Callable[[Point], tuple[float, float]],
    text: Callable[[float], str],
) -> Iterator[str]:
    taken: list[tuple[float, float, float]] = []
    for point in sorted(points, key=lambda each: (-each.score, each.takes)):
        x, y = place(point)
        name = shortened(one_line(point.name), _LABEL_MAX)
        wide = len(name) * _LABEL_CELL
        after = x + 11 + wide < _WIDTH
        begin = x + 11 if after else x - 11 - wide
        line = y + 4
        while any(abs(line - at) < _LINE and begin < end and start < begin + wide for start, end, at in taken):
            line += _LINE
        taken.append((begin, begin + wide, line))
        of_front = point in best
        title = escape(f"{one_line(point.name)}: score {score_text(point.score)}, {text(point.takes)}")
        yield f"<g><title>{title}{', on the front' if of_front else ''}</title>"
        yield f'<circle class="dot{"" if of_front else " beaten"}" cx="{x}" cy="{y}" r="6"/>'
        anchor = "start" if after else "end"
        yield f'<text class="name" x="{x + 11 if after else x - 11}" y="{line}" text-anchor="{anchor}">'
        yield f"{escape(name)}</text></g>\n"


def _ticks(most: float) -> list[float]:
    """Return round numbers from 0 to at least `most`, about four of them."""
    raw = most / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= raw * 0.999)
    return [at * step for at in range(math.ceil(most / step - 1e-9) + 1)]
