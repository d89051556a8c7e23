"""The HTML report of faults: a matrix, and the runs of each of its cells.

The matrix has a row for each pair of a tool and a fault, and a column for each model. The page needs no script. A cell
links to its runs, and CSS shows the runs that the address names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from itertools import groupby

from workbench.analysis.fault_matrix import (
    VERDICT_WORDS,
    FaultMatrix,
    FaultTrial,
    Verdict,
    fault_label,
    shown_verdict,
    verdict_sign,
)
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.show.html.page import begin_page, line, part
from workbench.show.views.faults import cell_words, ok_words
from workbench.show.visible import visible
from workbench.suite.files import relative_to_cwd
from workbench.trajectory.trajectory import CallRecord
from workbench.version import __version__


def page_of_faults(matrix: FaultMatrix, exit_code: int) -> Iterator[str]:
    """Yield the HTML page of a fault matrix. The matrix must already be redacted."""
    yield from begin_page("Fault injection – Workbench", part("page.css") + part("faults.css"), "")
    yield '<main class="page">\n'
    suites = dict.fromkeys(relative_to_cwd(each.suite) for each in matrix.trials)
    status, text = Status.PASSED, "Ok after every fault that was tried"
    if matrix.failed_trials:
        status, text = Status.FAILED, f"Not ok after {counted(len(matrix.failed_trials), 'fault')}"
    yield f'<header class="verdict {status.role}">\n'
    yield f'<p class="kicker">{line(" · ".join(suites))}</p>\n'
    yield f'<h1><span class="sign" aria-hidden="true">{status.sign}</span><span>{text}</span></h1>\n'
    for model in matrix.models:
        yield f'<p class="detail">{line(ok_words(matrix, model))}</p>\n'
    yield f'<p class="quiet">exit code {exit_code} · Workbench {__version__}</p>\n</header>\n'
    yield from _table(matrix)
    yield from _html_untried(matrix)
    # The runs are below the matrix. The style hides them until a cell's link targets them.
    for at, row in enumerate(matrix.rows):
        for column, model in enumerate(matrix.models):
            tried = matrix.cell(row, model)
            if tried:
                yield from _runs(f"{at}-{column}", tried)
    yield "</main>\n</body>\n</html>\n"


def _table(matrix: FaultMatrix) -> Iterator[str]:
    yield '<section id="matrix"><h2>Tools and faults</h2>\n<div class="scrolled matrix"><table>\n<thead><tr>'
    yield '<th scope="col">tool, and what its result became</th>'
    for model in matrix.models:
        yield f'<th scope="col" class="model">{line(model)}</th>'
    yield "</tr></thead>\n<tbody>\n"
    # Rows of the matrix are ordered by tool, so each tool is one group.
    for tool, rows in groupby(enumerate(matrix.rows), key=lambda each: each[1][0]):
        yield f'<tr class="suite"><th colspan="{len(matrix.models) + 1}" scope="rowgroup">{line(tool)}</th></tr>\n'
        for at, (_, fault, lasts) in rows:
            yield f'<tr><th scope="row">{line(fault_label(fault, lasts))}</th>'
            for column, model in enumerate(matrix.models):
                yield f"<td>{_html_cell(f'{at}-{column}', matrix.cell((tool, fault, lasts), model))}</td>"
            yield "</tr>\n"
    yield '</tbody></table></div>\n<dl class="legend">\n'
    for verdict in matrix.verdicts:
        yield f"<dt>{_badge(verdict)}</dt><dd>{line(VERDICT_WORDS[verdict].about)}</dd>\n"
    yield "</dl></section>\n"


def _html_cell(name: str, trials: tuple[FaultTrial, ...]) -> str:
    verdict = shown_verdict(trials)
    if verdict is None:
        return '<span class="quiet" role="img" aria-label="not tried">–</span>'
    sign, role = verdict_sign(verdict)
    return (
        f'<a class="cell {role}" href="#runs-{name}">'
        f'<span class="sign" aria-hidden="true">{sign}</span><span>{line(cell_words(trials))}</span></a>'
    )


def _html_untried(matrix: FaultMatrix) -> Iterator[str]:
    """Yield a list of the runs into which no fault could be injected, with the reasons."""
    untried = [each for each in matrix.trials if not each.tool]
    if untried:
        yield '<section id="untried"><h2>Nothing was tried</h2><ul class="card">\n'
        for each in untried:
            yield f"<li>{line(each.case_name)} <span class='quiet'>{line(each.model)}:</span> {line(each.why)}</li>\n"
        yield "</ul></section>\n"


def _runs(name: str, trials: tuple[FaultTrial, ...]) -> Iterator[str]:
    first = trials[0]
    yield f'<section class="of-cell" id="runs-{name}"><h2>{line(f"{first.tool}: {first.fault_name}")} '
    yield f'<small>{line(first.model)} · <a href="#matrix">back to the matrix</a></small></h2>\n'
    for each in trials:
        role = verdict_sign(each.verdict)[1]
        yield f'<article class="card {role}"><h3>{_badge(each.verdict)} {line(each.case_name)}</h3>\n'
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
    result = ""
    if call.result is not None:
        result = _said("its result", call.result.content, "returned")
    return (
        f'<div class="call"><div class="call-head"><span class="tool">{line(call.tool)}</span></div>'
        f'<pre class="text">{arguments}</pre>{result}</div>\n'
    )


def _said(who: str, text: str, kind: str) -> str:
    shown = escape(visible(text)) if text else '<span class="quiet">(nothing)</span>'
    return f'<div class="{kind}"><span class="who">{line(who)}</span><pre class="text">{shown}</pre></div>\n'


def _badge(verdict: Verdict) -> str:
    sign, role = verdict_sign(verdict)
    shown = f'<span class="sign" aria-hidden="true">{sign}</span> {line(verdict)}'
    return f'<span class="badge {role}">{shown}</span>'
