"""The comparison of a batch's models side by side, as a document, Markdown or terminal text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from workbench.analysis.comparison import cells_of
from workbench.analysis.early_stop_state import PairEarlyStop
from workbench.analysis.gates import nothing_graded_reason
from workbench.analysis.side_by_side import Comparison, compare_cells
from workbench.dataclasses import dataclass
from workbench.evaluation.early_stop import pairs_of_batch
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, NOTHING_GRADED, OK, USAGE
from workbench.evaluation.plan import Plan, broken_suites_of
from workbench.evaluation.resume import CompleteBatch
from workbench.evaluation.run import Outcome
from workbench.grading.run_summary import RunSummary, is_cost_limited
from workbench.grading.status import Status
from workbench.show.doc import Block, Paragraph, line_of
from workbench.show.json.comparison import ComparisonReport, comparison_report
from workbench.show.markdown import document
from workbench.show.spans import Line, Span
from workbench.show.text import Paint, block_lines
from workbench.show.views.baseline import AgainstBaseline, baseline_view
from workbench.show.views.comparison import comparison_view, first_sentences, result_line, weakest_text
from workbench.show.views.runs_report import BrokenSuite
from workbench.show.views.totals import not_made_text
from workbench.show.views.verdict import broken_text
from workbench.suite.grading_model import Gate
from workbench.version import __version__


@dataclass(frozen=True)
class ModelComparison:
    """All runs of a batch, compared by model.

    With `only_differences`, reports leave out cases in which all models have the same outcome."""

    comparison: Comparison
    outcome: Outcome
    exit_code: int
    """The exit code of the command. Failed cases do not change it, because the comparison shows
    them and does not judge them."""
    only_differences: bool = False
    against: AgainstBaseline | None = None
    """The comparison with a stored batch, if any."""
    not_made: int = 0
    """The number of runs that the cost limit skipped."""
    broken: tuple[BrokenSuite, ...] = ()
    """The suites that were not run because of errors."""
    nothing_graded: str | None = None
    """The reason why no run was graded, in a sentence; `None` if some run was graded."""

    @classmethod
    def of_plan(
        cls, plan: Plan, outcome: Outcome, *, only_differences: bool, against: AgainstBaseline | None = None
    ) -> ModelComparison:
        """Compare the runs of a plan. If the plan resumes a batch, the batch's earlier runs are included."""
        places, figures = plan.places, dict(plan.finished_figures)
        figures |= {places[run_id]: run for run_id, run in outcome.figures_by_run}
        # The runs are in the order in which they ended, and are sorted into the plan's order.
        in_order = [run for _, run in sorted(figures.items(), key=itemgetter(0))]
        watch = outcome.watch(plan)
        pairs: Sequence[PairEarlyStop] = ()
        if watch is not None:
            pairs = watch.pairs
        comparison = cls._of(
            in_order, plan.models, plan.suite_names, plan.gates, outcome, only_differences, pairs, against
        )
        if not plan.broken:
            return comparison
        code = INTERRUPTED if outcome.interrupted else USAGE
        return replace(comparison, broken=broken_suites_of(plan.broken), exit_code=code)

    @classmethod
    def of_batch(cls, complete: CompleteBatch, *, only_differences: bool) -> ModelComparison:
        batch = complete.batch
        outcome = Outcome(batch=batch.number, started_at=batch.started_at)
        watched = pairs_of_batch(batch.settings, dict(enumerate(complete.figures)))
        return cls._of(
            complete.figures, batch.models, batch.suite_names, complete.gates, outcome, only_differences, watched
        )

    @classmethod
    def _of(
        cls,
        figures: Sequence[RunSummary],
        models: Sequence[str],
        names: Mapping[str, str],
        gates: Mapping[str, Gate],
        outcome: Outcome,
        only_differences: bool,
        early_stops: Sequence[PairEarlyStop],
        against: AgainstBaseline | None = None,
    ) -> ModelComparison:
        ungraded = nothing_graded_reason(figures)
        not_made = sum(map(is_cost_limited, figures))
        code = OK
        if outcome.interrupted:
            code = INTERRUPTED
        elif not_made or any(run.status == Status.ERROR for run in figures):
            code = INFRASTRUCTURE
        elif ungraded is not None:
            code = NOTHING_GRADED
        comparison = compare_cells(cells_of(figures), models, names, gates, early_stops)
        return cls(comparison, outcome, code, only_differences, against, not_made=not_made, nothing_graded=ungraded)

    def document(self) -> ComparisonReport:
        """Return the report in the form of its JSON schema."""
        return comparison_report(
            self.comparison,
            only_differences=self.only_differences,
            program_version=__version__,
            started_at=self.outcome.started_at,
            interrupted=self.outcome.interrupted,
            exit_code=self.exit_code,
            nothing_graded=self.nothing_graded is not None,
            batch=self.outcome.batch,
            against=self.against,
            broken=self.broken,
        )

    def markdown(self) -> str:
        recorded_as = self.outcome.recorded_as
        end: list[Block] = []
        if recorded_as is not None:
            end.append(Paragraph(line_of(recorded_as)))
        return document([*self._warnings(), *self._blocks(as_document=True), *end])

    def lines(self, *, width: int, paint: Paint) -> Iterator[str]:
        """Yield the lines of the report for a terminal."""
        # A terminal shows the end of a long output, so warnings come last. In Markdown, they come first.
        result = Paragraph((*result_line(self.comparison), *self._reasons()))
        return block_lines([result, *self._blocks(), *self._warnings()], width, paint)

    def brief_lines(self, details: str, *, paint: Paint) -> Iterator[str]:
        """Yield a short report as lines: the pass rates, the tests, and `details`, which says where to find more."""
        yield paint.line((*result_line(self.comparison), *self._reasons()))
        if (most_failures := weakest_text(self.comparison.columns)) is not None:
            yield most_failures
        if tests := "; ".join(first_sentences(self.comparison)):
            yield tests
        yield paint(f"details: {details}", "muted")

    def _reasons(self) -> Line:
        spans = []
        for block in self._warnings():
            if isinstance(block, Paragraph):
                spans += [Span("; "), *block.line]
        return tuple(spans)

    def _blocks(self, *, as_document: bool = False) -> Iterator[Block]:
        only, interrupted = self.only_differences, self.outcome.interrupted
        yield from comparison_view(self.comparison, only_differences=only, interrupted=interrupted)
        if self.against is not None:
            yield from baseline_view(self.against, as_document=as_document)

    def _warnings(self) -> Iterator[Block]:
        if self.broken:
            yield Paragraph(line_of(broken_text(self.broken), "failed"))
        if self.not_made:
            yield Paragraph(line_of(not_made_text(self.not_made), "failed"))
        if self.nothing_graded is not None:
            yield Paragraph(line_of(self.nothing_graded, "warned"))
