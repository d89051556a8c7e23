"""What faults of tools did to models: a matrix as text, and everything as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from html import escape
from itertools import groupby

from workbench.lab.faults import OK_VERDICTS, VERDICT_WORDS, FaultMatrix, Tried, Verdict, worst
from workbench.numerals import counted
from workbench.show.html.page import begin_page, line, part
from workbench.show.spans import Role
from workbench.show.text import Paint
from workbench.show.visible import one_line, shortened, visible
from workbench.suite.files import from_here
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord
from workbench.version import __version__

_MAX_ANSWER_CHARS = 160


def text_of_faults(matrix: FaultMatrix, paint: Paint) -> Iterator[str]:
    """Yield the matrix, a row for each tool with a fault and a column for each model, then what is not ok."""
    heads = [one_line(_row_text(row)) for row in matrix.rows]
    width = max((len(head) for head in heads), default=0)
    columns = [(model, max(len(one_line(model)), 24)) for model in matrix.models]
    yield f"{'':{width}}  " + "  ".join(f"{one_line(model):{wide}}" for model, wide in columns).rstrip() + "\n"
    for head, row in zip(heads, matrix.rows, strict=True):
        cells = [_cell_text(matrix.cell(row, model), wide, paint) for model, wide in columns]
        yield f"{head:{width}}  " + "  ".join(cells).rstrip() + "\n"
    weak = matrix.weak
    if weak:
        yield "\n"
    for each in weak:
        after = f" after {each.fault} of {each.tool}" + (" for good" if each.lasts == "for good" else "")
        said = f": {shortened(one_line(each.answer), _MAX_ANSWER_CHARS)}" if each.answer else ""
        yield f"{paint('✗', 'failed')} {one_line(each.model)} · {one_line(each.case_name)}: {each.shown}"
        yield f"{one_line(after)}: {one_line(each.why)}{said}\n"
    untried = [each for each in matrix.tried if each.verdict == "not tried"]
    if untried:
        yield "\n"
    for each in untried:
        what = f"{each.fault} of {each.tool} was not tried" if each.tool else "nothing was tried"
        yield paint(f"- {one_line(each.model)} · {one_line(each.case_name)}: {one_line(what)}: ", "muted")
        yield paint(f"{one_line(each.why)}\n", "muted")
    yield "\n"
    for model in matrix.models:
        yield f"{one_line(ok_words(matrix, model))}\n"
    shown = [verdict for verdict in VERDICT_WORDS if any(each.verdict == verdict for each in matrix.tried)]
    for verdict in shown:
        yield paint(f"  {VERDICT_WORDS[verdict].shown}: {VERDICT_WORDS[verdict].about}\n", "muted")


def _row_text(row: tuple[str, str, str]) -> str:
    tool, fault, lasts = row
    return f"{tool}  {fault}" + (" for good" if lasts == "for good" else "")


def ok_words(matrix: FaultMatrix, model: str) -> str:
    """Return in how many trials what a model did was ok."""
    counts = matrix.counts(model)
    good = sum(count for verdict, count in counts.items() if verdict in OK_VERDICTS)
    tried = sum(counts.values()) - counts.get("not tried", 0)
    return f"{model}: ok in {good} of {counted(tried, 'trial')}"


def cell_words(tried: tuple[Tried, ...]) -> str:
    """Return the verdicts of a cell, with their number if there are several."""
    counts = Counter(each.shown for each in tried)
    return " · ".join(
        verdict if count == len(tried) == 1 else f"{verdict} {count}" for verdict, count in counts.items()
    )


def _cell_text(tried: tuple[Tried, ...], width: int, paint: Paint) -> str:
    return paint(f"{cell_words(tried) or '-':{width}}", _tone(worst(tried)))


def _tone(verdict: Verdict | None) -> Role:
    if verdict is None or verdict == "not tried":
        return "muted"
    return "passed" if verdict in OK_VERDICTS else "failed"


def json_of_faults(matrix: FaultMatrix, exit_code: int) -> dict[str, JsonValue]:
    """Return everything of a matrix. `trials` have a verdict each; `why` says what it rests on."""
    return {
        "report": "workbench faults",
        "version": 1,
        "exit_code": exit_code,
        "models": {
            model: {verdict.replace(" ", "_"): count for verdict, count in matrix.counts(model).items()}
            for model in matrix.models
        },
        "trials": [
            {
                "suite": each.suite,
                "case_id": each.case_id,
                "case_name": each.case_name,
                "model": each.model,
                "tool": each.tool,
                "fault": each.fault,
                "lasts": each.lasts,
                "verdict": each.verdict,
                "sound": each.verdict in OK_VERDICTS,
                "why": each.why,
                "answer": each.answer,
            }
            for each in matrix.tried
        ],
    }


# The HTML report of what faults of tools did to models: a matrix, each cell of which unfolds its runs. It needs no
# script: a cell is a link to its runs, which are shown while the address names them.


def page_of_faults(matrix: FaultMatrix, exit_code: int) -> Iterator[str]:
    """Yields the page. Nothing in it is redacted: the matrix has been."""
    yield from begin_page("Broken tools – Workbench", part("page.css") + part("faults.css"), "")
    yield '<main class="page">\n'
    weak, suites = matrix.weak, dict.fromkeys(from_here(each.suite) for each in matrix.tried)
    text = f"Not ok after {counted(len(weak), 'fault')}" if weak else "Ok after every fault that was tried"
    yield f'<header class="verdict {"failed" if weak else "passed"}">\n'
    yield f'<p class="kicker">{line(" · ".join(suites))}</p>\n'
    yield f'<h1><span class="sign" aria-hidden="true">{"✗" if weak else "✓"}</span><span>{text}</span></h1>\n'
    yield from (f'<p class="detail">{line(ok_words(matrix, model))}</p>\n' for model in matrix.models)
    yield f'<p class="quiet">exit code {exit_code} · Workbench {__version__}</p>\n</header>\n'
    yield from _table(matrix)
    yield from _untried(matrix)
    for at, row in enumerate(matrix.rows):
        for column, model in enumerate(matrix.models):
            tried = matrix.cell(row, model)
            if tried:
                yield from _runs(f"{at}-{column}", tried)
    yield "</main>\n</body>\n</html>\n"


def _table(matrix: FaultMatrix) -> Iterator[str]:
    yield '<section id="matrix"><h2>Tools and faults</h2>\n<div class="scrolled matrix"><table>\n<thead><tr>'
    yield '<th scope="col">tool, and what its result became</th>'
    yield from (f'<th scope="col" class="model">{line(model)}</th>' for model in matrix.models)
    yield "</tr></thead>\n<tbody>\n"
    for tool, rows in groupby(enumerate(matrix.rows), key=lambda each: each[1][0]):
        yield f'<tr class="suite"><th colspan="{len(matrix.models) + 1}" scope="rowgroup">{line(tool)}</th></tr>\n'
        for at, (_, fault, lasts) in rows:
            yield f'<tr><th scope="row">{line(fault)}{" for good" if lasts == "for good" else ""}</th>'
            for column, model in enumerate(matrix.models):
                yield f"<td>{_cell(f'{at}-{column}', matrix.cell((tool, fault, lasts), model))}</td>"
            yield "</tr>\n"
    yield '</tbody></table></div>\n<dl class="legend">\n'
    shown = {each.verdict for each in matrix.tried}
    for verdict, words in VERDICT_WORDS.items():
        if verdict in shown:
            yield f"<dt>{_badge(verdict)}</dt><dd>{line(words.about)}</dd>\n"
    yield "</dl></section>\n"


def _cell(name: str, tried: tuple[Tried, ...]) -> str:
    verdict = worst(tried)
    if verdict is None:
        return '<span class="quiet" role="img" aria-label="not tried">–</span>'
    return (
        f'<a class="cell {_tint(verdict)}" href="#runs-{name}">'
        f'<span class="sign" aria-hidden="true">{_sign(verdict)}</span><span>{line(cell_words(tried))}</span></a>'
    )


def _untried(matrix: FaultMatrix) -> Iterator[str]:
    """Yields what could not be tried with any tool of a case; the rest is in its cell."""
    untried = [each for each in matrix.tried if not each.tool]
    if untried:
        yield '<section id="untried"><h2>Nothing was tried</h2><ul class="card">\n'
        for each in untried:
            yield f"<li>{line(each.case_name)} <span class='quiet'>{line(each.model)}:</span> {line(each.why)}</li>\n"
        yield "</ul></section>\n"


def _runs(name: str, tried: tuple[Tried, ...]) -> Iterator[str]:
    first = tried[0]
    lasting = " for good" if first.lasts == "for good" else ""
    yield f'<section class="of-cell" id="runs-{name}"><h2>{line(f"{first.tool}: {first.fault}{lasting}")} '
    yield f'<small>{line(first.model)} · <a href="#matrix">back to the matrix</a></small></h2>\n'
    for each in tried:
        yield f'<article class="card {_tint(each.verdict)}"><h3>{_badge(each.verdict)} {line(each.case_name)}</h3>\n'
        yield f'<p class="result">{line(each.why)}</p>\n'
        if each.run_id is not None:
            yield _said("request", each.request, "said user")
            yield _said(f"the result of {each.tool}", each.made, "returned problem")
            yield from map(_call, each.after)
            yield _said("answer", each.answer, "said")
        yield "</article>\n"
    yield "</section>\n"


def _call(call: CallRecord) -> str:
    arguments = escape(visible(json.dumps(dict(call.sent.arguments), ensure_ascii=False)))
    result = _said("its result", call.result.content, "returned") if call.result is not None else ""
    return (
        f'<div class="call"><div class="call-head"><span class="tool">{line(call.tool)}</span></div>'
        f'<pre class="text">{arguments}</pre>{result}</div>\n'
    )


def _said(who: str, text: str, kind: str) -> str:
    said = escape(visible(text)) if text else '<span class="quiet">(nothing)</span>'
    return f'<div class="{kind}"><span class="who">{line(who)}</span><pre class="text">{said}</pre></div>\n'


def _badge(verdict: Verdict) -> str:
    sign = f'<span class="sign" aria-hidden="true">{_sign(verdict)}</span>'
    return f'<span class="badge {_tint(verdict)}">{sign} {line(VERDICT_WORDS[verdict].shown)}</span>'


def _tint(verdict: Verdict) -> str:
    return "passed" if verdict in OK_VERDICTS else "muted" if verdict == "not tried" else "failed"


def _sign(verdict: Verdict) -> str:
    return "✓" if verdict in OK_VERDICTS else "-" if verdict == "not tried" else "✗"
