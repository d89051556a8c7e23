"""Charts of models as SVG in the page. They need no script."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from workbench.analysis.comparison import ModelTotals
from workbench.analysis.measures import PARETO_MEASURES, SCORE, Measure
from workbench.analysis.side_by_side import Comparison, ParetoPoint, pareto_front, pareto_points
from workbench.grading.status import GOOD_WORDS
from workbench.numerals import counted, duration_text, figure, rate_text, rates_text, score_text
from workbench.show.html.elements import Element, Node, el
from workbench.show.visible import one_line, shortened

# All measures are in the units of the drawing's `viewBox`, which the page scales.
_WIDTH, _ROW = 420, 38
_LEFT, _RIGHT = 140, 62
_TICKS = 26
"""Height of the line of ticks below the rows."""
_BINS = 32
_CELL = 7
"""The approximate width of a character in a label. A page without a script cannot measure text."""


def charts(
    totals: Sequence[ModelTotals],
    on_same_cases: Sequence[ModelTotals],
    comparison: Comparison,
) -> list[Element]:
    """Return four charts: the pass rates, the latencies, the score by cost, and the score by latency.

    A chart without data is omitted. `on_same_cases` are the totals over the cases that all models have."""
    times = _times_of(comparison)
    timed = [each for each in totals if each.latency is not None and times.get(each.model)]
    drawn = [_pass_rates([each for each in totals if each.pass_rate is not None]), _latencies(timed, times)]
    cases = counted(max((each.graded for each in on_same_cases), default=0), "case")
    for measure in PARETO_MEASURES:
        drawn.append(_scatter(measure, pareto_points(measure, on_same_cases), cases))
    return list(filter(None, drawn))


def _figure(title: str, hint: str, size: tuple[float, float], label: str, *drawn: Node) -> Element:
    caption = el("figcaption", el("strong", title), " ", el("small", hint))
    svg = el("svg", drawn, viewBox=f"0 0 {size[0]} {size[1]}", role="img", aria_label=label)
    return el("figure", caption, svg, class_="card chart")


def _line(x: tuple[float, float], y: tuple[float, float], class_: str) -> Element:
    # A tenth of a unit is finer than a pixel. More digits would only make the page longer.
    x1, x2, y1, y2 = (round(value, 1) for value in (*x, *y))
    return el("line", class_=class_, x1=x1, x2=x2, y1=y1, y2=y2)


def _text(x: float, y: float, text: Node, class_: str, anchor: str = "start") -> Element:
    return el("text", text, class_=class_, x=round(x, 1), y=round(y, 1), text_anchor=anchor)


def _name(name: str, y: float) -> Element:
    return _text(0, y, [shortened(one_line(name), (_LEFT - 8) // _CELL), el("title", name)], "name")


def _axis(ticks: Mapping[float, str], height: float) -> Iterator[Node]:
    for x, text in ticks.items():
        yield _line((x, x), (4, height - 20), "grid")
        yield _text(x, height - 5, text, "tick", "middle")


def _pass_rates(totals: Sequence[ModelTotals]) -> Element | None:
    if not totals:
        return None
    height = len(totals) * _ROW + _TICKS
    ticks = {}
    for share in (0, 0.25, 0.5, 0.75, 1):
        ticks[_share(share)] = f"{share:.0%}"
    rows = []
    for at, each in enumerate(totals):
        rows.append(_rate_row(each, at * _ROW + _ROW / 2 + 4))
    label = ", ".join(f"{each.model} {rate_text(each.pass_rate)}" for each in totals)
    hint = f"cases {GOOD_WORDS}, with the 95% interval"
    return _figure("Pass rate", hint, (_WIDTH, height), f"Pass rates: {label}", _axis(ticks, height), rows)


def _share(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _rate_row(totals: ModelTotals, y: float) -> Element:
    rate = totals.pass_rate or 0.0
    x = _share(rate)
    title = f"{totals.model}: {rate_text(rate)} of {counted(totals.graded, 'case')}"
    whiskers: list[Element] = []
    # A model that was stopped early has no interval.
    if totals.interval is not None:
        low, high = _share(totals.interval.low), _share(totals.interval.high)
        title += f", {rates_text(totals.interval.low, totals.interval.high)}"
        whiskers = [_line((low, high), (y, y), "whisker")]
        for end in (low, high):
            whiskers.append(_line((end, end), (y - 6, y + 6), "whisker"))
    return el(
        "g",
        el("title", title),
        _name(totals.model, y + 4),
        _line((_share(0), x), (y, y), "bar"),
        whiskers,
        el("circle", cx=round(x, 1), cy=y, r=5, class_="dot"),
        _text(_WIDTH, y + 4, rate_text(rate), "value", "end"),
    )


def _times_of(comparison: Comparison) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for run in comparison.runs:
        if run.status.graded and run.latency_ms:
            found.setdefault(run.model, []).append(run.latency_ms)
    return found


def _latencies(timed: Sequence[ModelTotals], times: Mapping[str, Sequence[float]]) -> Element | None:
    medians = []
    longest_ms = 0.0
    for each in timed:
        assert each.latency is not None
        medians.append(f"{each.model} median {duration_text(each.latency.p50_ms)}")
        longest_ms = max(longest_ms, each.latency.max_ms)
    if not medians:
        return None
    tall = _ROW + 8
    height = len(timed) * tall + _TICKS
    # All models share one axis, so their distributions can be compared by eye.
    ticks = _ticks(longest_ms)
    scale = (_WIDTH - _LEFT - 24) / ticks[-1]
    titles = {}
    for tick in ticks:
        titles[_LEFT + tick * scale] = _tick_text(tick, duration_text)
    rows = []
    for at, each in enumerate(timed):
        rows.append(_time_row(each, times[each.model], (at + 1) * tall, ticks[-1]))
    hint = "model time of a run, as a distribution; │ median, ┆ 95th percentile"
    label = f"Latency: {', '.join(medians)}"
    return _figure("Latency", hint, (_WIDTH, height), label, _axis(titles, height), rows)


def _time_row(totals: ModelTotals, times: Sequence[float], base: float, end: float) -> Element:
    assert totals.latency is not None
    right = _WIDTH - 24
    counts = [0] * _BINS
    for ms in times:
        counts[min(_BINS - 1, int(ms / end * _BINS))] += 1
    step = (right - _LEFT) / _BINS
    bars = []
    for at, count in enumerate(counts):
        if count:
            # The bars of each model have their own scale. A bar of at least two units shows that its bin is not empty.
            high = max(2.0, count / max(counts) * _ROW * 0.8)
            size = {"width": round(step - 1, 1), "height": round(high, 1)}
            bars.append(el("rect", x=round(_LEFT + at * step, 1), y=round(base - high, 1), class_="area", **size))
    latency = totals.latency
    median = _LEFT + latency.p50_ms / end * (right - _LEFT)
    ninety = _LEFT + latency.p95_ms / end * (right - _LEFT)
    shown = map(duration_text, (latency.p50_ms, latency.p95_ms, latency.max_ms))
    return el(
        "g",
        el("title", "{}: median {}, 95th percentile {}, at most {}".format(totals.model, *shown)),
        _name(totals.model, base - 16),
        bars,
        _line((_LEFT, right), (base, base), "grid"),
        _line((median, median), (base - _ROW, base), "median"),
        _line((ninety, ninety), (base - _ROW, base), "ninety"),
    )


# Models by score and by a measure where less is better

_SIZE = (360, 240)
_SIDE, _END, _TOP, _BOTTOM = 40, 330, 16, 194
"""The edges of the plane of the points."""
_LINE = 14
_LABEL_MAX = 28


def _scatter(measure: Measure, found: tuple[tuple[ParetoPoint, ...], tuple[str, ...]], cases: str) -> Element | None:
    shown, left_out = found
    most = max((point.amount for point in shown), default=0.0)
    if len(shown) < 2 or most <= 0:
        return None
    best = pareto_front(shown)
    title, text = f"{measure.title.capitalize()} and {SCORE.title}", measure.text
    hint = (
        f"up and to the left is better; the line joins those that none beats in both; over the {cases} graded with all"
    )
    # Screen readers read the label in place of the drawing, so the label holds all numbers.
    said = []
    for each in shown:
        said.append(f"{each.name} {score_text(each.score)} for {text(each.amount)}")
    label = f"{title}: {', '.join(said)}. On the front: {', '.join(each.name for each in best)}"
    ticks = _ticks(most)

    def place(point: ParetoPoint) -> tuple[float, float]:
        x = _SIDE + point.amount / ticks[-1] * (_END - _SIDE)
        # Scores above 1 or below 0 are drawn at the edge of the plane.
        return round(x, 1), round(_BOTTOM - min(max(point.score, 0.0), 1.0) * (_BOTTOM - _TOP), 1)

    drawn: list[Node] = []
    for score in (0.0, 0.5, 1.0):
        y = place(ParetoPoint("", 0, score))[1]
        drawn += [_line((_SIDE, _END), (y, y), "grid"), _text(_SIDE - 6, y + 4, figure(score), "tick", "end")]
    for tick in ticks:
        x = place(ParetoPoint("", tick, 0))[0]
        drawn.append(_text(x, _BOTTOM + 17, _tick_text(tick, text), "tick", "middle"))
    assert measure.per_run is not None
    axis = f"{measure.title} of a run, {measure.per_run.how}"
    drawn.append(_text((_SIDE + _END) / 2, _SIZE[1] - 8, axis, "tick", "middle"))
    # The Pareto front is drawn as steps, because between the costs of two points the cheaper point is the best choice.
    steps = [place(each) for each in best]
    path = f"M{steps[0][0]} {steps[0][1]}" + "".join(f"H{x}V{y}" for x, y in steps[1:]) + f"H{_END}"
    drawn += [el("path", class_="front", d=path), *_marks(shown, set(best), place, text)]
    drawing = _figure(title, hint, _SIZE, label, drawn)
    if not left_out:
        return drawing
    note = f"Not shown, because their {measure.title} or score is unknown: {', '.join(left_out)}"
    return drawing._replace(children=(*drawing.children, el("p", note, class_="quiet")))


def _marks(
    points: Sequence[ParetoPoint],
    best: set[ParetoPoint],
    place: Callable[[ParetoPoint], tuple[float, float]],
    text: Callable[[float], str],
) -> Iterator[Element]:
    """Yield the points of a chart and their labels. A label moves down until it overlaps no other label."""
    taken: list[tuple[float, float, float]] = []
    # Labels are placed from top to bottom, so a label only has to avoid the labels of higher points.
    for point in sorted(points, key=lambda each: (-each.score, each.amount)):
        x, y = place(point)
        name = shortened(one_line(point.name), _LABEL_MAX)
        wide = len(name) * _CELL
        anchor, text_x, begin = "start", x + 11, x + 11
        if begin + wide >= _SIZE[0]:
            # A label that does not fit at the right of its point is placed at the left.
            anchor, text_x, begin = "end", x - 11, x - 11 - wide
        line = y + 4
        while _covers_another(line, begin, begin + wide, taken):
            line += _LINE
        taken.append((begin, begin + wide, line))
        title, dot = f"{point.name}: score {score_text(point.score)}, {text(point.amount)}", "dot beaten"
        if point in best:
            title, dot = f"{title}, on the front", "dot"
        circle = el("circle", class_=dot, cx=x, cy=y, r=6)
        yield el("g", el("title", title), circle, _text(text_x, line, name, "name", anchor))


def _covers_another(line: float, begin: float, end: float, taken: Sequence[tuple[float, float, float]]) -> bool:
    return any(abs(line - at) < _LINE and begin < stop and start < end for start, stop, at in taken)


def _tick_text(tick: float, text: Callable[[float], str]) -> str:
    return text(tick).replace(".0 ", " ") if tick else "0"


def _ticks(maximum: float) -> list[float]:
    """Return about five round numbers for an axis, from 0 to at least `maximum`."""
    # Steps of 1, 2, 2.5 or 5 times a power of ten are easy to read. The tolerances absorb rounding errors.
    raw = maximum / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = 10 * power
    for factor in (1, 2, 2.5, 5):
        if factor * power >= raw * 0.999:
            step = factor * power
            break
    return [at * step for at in range(math.ceil(maximum / step - 1e-9) + 1)]
