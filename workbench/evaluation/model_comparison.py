"""The comparison of a batch's models, side by side, in each form of its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from workbench.analysis.comparison import cells_of
from workbench.analysis.gates import nothing_graded
from workbench.analysis.side_by_side import Comparison, compared
from workbench.analysis.watched import PairWatched
from workbench.dataclasses import dataclass
from workbench.evaluation.early_stop import pairs_of_batch
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, NOTHING_GRADED, OK
from workbench.evaluation.plan import Plan
from workbench.evaluation.resume import CompleteBatch
from workbench.evaluation.run import Outcome
from workbench.grading.run_summary import RunSummary, is_cost_limited
from workbench.grading.status import Status
from workbench.show.doc import Block, Paragraph, line_of
from workbench.show.json.comparison import ComparisonReport, comparison_report
from workbench.show.markdown import document
from workbench.show.text import Paint, block_lines
from workbench.show.views.baseline import AgainstBaseline, baseline_view
from workbench.show.views.comparison import comparison_view
from workbench.show.views.totals import not_made_text
from workbench.suite.model import Gate
from workbench.version import __version__


@dataclass(frozen=True)
class ModelComparison:
    """All runs of a batch, compared by model.

    With `only_differences`, its reports omit the cases in which all models had the same outcome.
    """

    comparison: Comparison
    outcome: Outcome
    exit_code: int
    """The exit code of the command. Failed cases leave it at 0: they are the subject of the comparison."""
    only_differences: bool = False
    against: AgainstBaseline | None = None
    """The comparison with a stored batch, if there is one."""
    not_made: int = 0
    """Number of runs that were skipped because of the cost limit."""
    nothing_graded: str | None = None
    """The reason for which no run was graded, in a sentence; `None` if some run was."""

    @classmethod
    def of_plan(
        cls, plan: Plan, outcome: Outcome, *, only_differences: bool, against: AgainstBaseline | None = None
    ) -> ModelComparison:
        """Return the comparison of a plan's runs, and of its batch's runs that were finished before."""
        places, figures = plan.places, dict(plan.over)
        figures |= {places[run_id]: run for run_id, run in outcome.figures_by_run}
        # In the order of the plan, because runs arrive as they end.
        in_order = [run for _, run in sorted(figures.items(), key=itemgetter(0))]
        watch = outcome.watch(plan)
        pairs: Sequence[PairWatched] = ()
        if watch is not None:
            pairs = watch.pairs
        return cls._of(in_order, plan.models, plan.suite_names, plan.gates, outcome, only_differences, pairs, against)

    @classmethod
    def of_batch(cls, complete: CompleteBatch, *, only_differences: bool) -> ModelComparison:
        """Return the comparison of the runs of a complete batch of the history."""
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
        watched: Sequence[PairWatched],
        against: AgainstBaseline | None = None,
    ) -> ModelComparison:
        ungraded = nothing_graded(figures)
        not_made = sum(map(is_cost_limited, figures))
        code = OK
        if outcome.interrupted:
            code = INTERRUPTED
        elif not_made or any(run.status == Status.ERROR for run in figures):
            code = INFRASTRUCTURE
        elif ungraded is not None:
            code = NOTHING_GRADED
        comparison = compared(cells_of(figures), models, names, gates, watched)
        return cls(comparison, outcome, code, only_differences, against, not_made, ungraded)

    def document(self) -> ComparisonReport:
        """Return the report as its JSON schema describes it."""
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
        )

    def markdown(self) -> str:
        """Return the report as Markdown."""
        recorded_as = self.outcome.recorded_as
        end: list[Block] = []
        if recorded_as is not None:
            end.append(Paragraph(line_of(recorded_as)))
        return document([*self._warnings(), *self._blocks(as_document=True), *end])

    def lines(self, *, width: int, paint: Paint) -> Iterator[str]:
        """Return the lines of the report for a terminal."""
        # Warnings are last here and first in Markdown, because a terminal shows the end of a long output.
        return block_lines([*self._blocks(), *self._warnings()], width, paint)

    def _blocks(self, *, as_document: bool = False) -> Iterator[Block]:
        only, interrupted = self.only_differences, self.outcome.interrupted
        yield from comparison_view(self.comparison, only_differences=only, interrupted=interrupted)
        if self.against is not None:
            yield from baseline_view(self.against, as_document=as_document)

    def _warnings(self) -> Iterator[Block]:
        if self.not_made:
            yield Paragraph(line_of(not_made_text(self.not_made), "failed"))
        if self.nothing_graded is not None:
            yield Paragraph(line_of(self.nothing_graded, "warned"))
