"""The HTML report of what faults of tools did to models: a matrix, each cell of which unfolds its runs. It needs no
script: a cell is a link to its runs, which are shown while the address names them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from itertools import groupby

from workbench.analysis.faults import OK_VERDICTS, VERDICT_WORDS, FaultMatrix, Tried, Verdict, worst
from workbench.reports.faults import cell_words, ok_words
from workbench.reports.html.page import begin_page, line, part
from workbench.reports.visible import visible
from workbench.suite.disk import from_here
from workbench.suite.numerals import counted
from workbench.trajectory.trajectory import CallRecord
from workbench.version import __version__


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
        f'<a class="cell {_tone(verdict)}" href="#runs-{name}">'
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
        yield f'<article class="card {_tone(each.verdict)}"><h3>{_badge(each.verdict)} {line(each.case_name)}</h3>\n'
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
    return f'<span class="badge {_tone(verdict)}">{sign} {line(VERDICT_WORDS[verdict].shown)}</span>'


def _tone(verdict: Verdict) -> str:
    return "passed" if verdict in OK_VERDICTS else "skipped" if verdict == "not tried" else "failed"


def _sign(verdict: Verdict) -> str:
    return "✓" if verdict in OK_VERDICTS else "-" if verdict == "not tried" else "✗"
