"""A fork that the user is preparing: its starting point, its model, and edited texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from workbench.authoring.case_list import CurrentCase
from workbench.dataclasses import dataclass
from workbench.engine.checkpoint import EditResult
from workbench.engine.fork import Fork, ForkPoint, fork_refusal, system_prompt
from workbench.engine.plan import PlannedRun, plan_fork
from workbench.engine.turns import turns_of
from workbench.grading.status import Status
from workbench.show.views.run_view import RunPlace
from workbench.suite.settings import settings_of
from workbench.suite.variants import (
    has_variant_of,
    model_of,
    variant_name_of,
    variant_of,
    varied_case,
    varied_suite,
)
from workbench.trajectory.events import Paused, ResultReceived
from workbench.trajectory.trajectory import Trajectory
from workbench.tui.models.choices import ModelChoice
from workbench.tui.run_book.record import RunRecord

TextName = Literal["system", "user", "result"]

ForkKey = tuple[Path, str, bool, ForkPoint]
"""The identity of a fork: the run and the point."""


@dataclass(frozen=True)
class StepBack:
    """A fork that replaces a held run and goes back to the run's previous hold.

    `hold` is the run's current hold, and `target_hold` the event of the previous hold."""

    run: RunRecord
    hold: int | None
    target_hold: Paused
    fork: Fork

    @staticmethod
    def of(run: RunRecord) -> StepBack:
        """Create the fork that takes a held run to its previous hold."""
        to = run.holds_before[-1]
        return StepBack(run, run.hold, to.paused, to.fork(_inherited_system(run)))

    def why_not(self, current: CurrentCase) -> str | None:
        if not self.run.is_held or self.run.hold != self.hold:
            return "the run has continued"
        return _refusal(self.fork, self.run.model, current)

    def planned(self, current: CurrentCase, chosen: Sequence[str]) -> PlannedRun:
        return _planned(self.run, self.run.model, self.fork, current, chosen)


@dataclass
class ForkDraft:
    """The user's choices for a fork of `run` that starts at the point `at`.

    `model` is an index into `models`, and 0 is the model of `run`. A field ending in `_was` has the text before the
    user's edits. `result` is the tool result directly before the point, and `user` the user's message directly after
    it. Each is `None` if there is no such text. `is_error` marks the result as a tool error."""

    run: RunRecord
    origin: Trajectory
    at: ForkPoint
    models: tuple[ModelChoice, ...]
    model: int
    system_was: str
    result_was: str | None
    error_was: bool
    system: str
    result: str | None
    is_error: bool
    user_was: str | None = None
    user: str | None = None

    def text(self, name: TextName) -> str:
        """Return a text with the user's edits, "" if there is no text."""
        if name == "system":
            return self.system
        if name == "user":
            return self.user or ""
        return self.result or ""

    def is_edited(self, name: TextName) -> bool:
        """Return whether a text was edited. For the result, the error flag counts too."""
        if name == "system":
            return self.system != self.system_was
        if name == "user":
            return self.user != self.user_was
        return (self.result, self.is_error) != (self.result_was, self.error_was)

    def type(self, name: TextName, text: str) -> None:
        """Replace a text by an edited text."""
        if name == "system":
            self.system = text
        elif name == "user":
            self.user = text
        else:
            self.result = text

    def reset(self, name: TextName) -> None:
        """Undo the edits of a text."""
        if name == "system":
            self.system = self.system_was
        elif name == "user":
            self.user = self.user_was
        else:
            self.result, self.is_error = self.result_was, self.error_was

    @property
    def key(self) -> ForkKey:
        return self.run.path, self.run.run_id, self.run.recorded, self.at

    def resume(self, before: ForkDraft) -> None:
        """Copy the choices and texts of an earlier draft of the same fork."""
        # The model is found by name, because the list of models may have changed.
        name = before.models[before.model].name
        for index, choice in enumerate(self.models):
            if choice.name == name:
                self.model = index
                break
        if before.is_edited("system"):
            self.system = before.system
        if before.is_edited("user"):
            self.user = before.user
        if before.is_edited("result"):
            self.result, self.is_error = before.result, before.is_error

    @property
    def fork(self) -> Fork:
        """The fork with the current choices and texts."""
        result = None
        if self.result is not None and self.is_edited("result"):
            result = EditResult(self.result, self.is_error)
        # An unedited prompt comes from the case, unless the run is a fork with its own prompt.
        system: str | None = self.system
        if not self.is_edited("system"):
            system = _inherited_system(self.run)
        user = self.user if self.is_edited("user") and self.text("user").strip() else None
        return Fork(self.origin, self.at, system, result, user)

    def choose(self, step: int) -> None:
        """Select the next (1) or previous (-1) model."""
        self.model = (self.model + step) % len(self.models)

    def why_not(self, current: CurrentCase) -> str | None:
        """Return why the run cannot be forked at this point with its current case, `None` if a fork is possible."""
        refusal = _refusal(self.fork, self.models[self.model].name, current)
        if refusal is not None or not current.case.stop_on_failure or self.run.result is None:
            return refusal
        for step in self.run.result.steps:
            if step.step == self.at.rounds and step.status == Status.FAILED:
                return f"step {step.step} failed, and the chain stops there (stop_on_failure)"
        return None

    def planned(self, current: CurrentCase, chosen: Sequence[str]) -> PlannedRun:
        """Return the planned run of this fork, graded by the current case.

        `chosen` are the models that the user selected. Any other model comes from the suite or a recording and needs
        approval."""
        return _planned(self.run, self.models[self.model].name, self.fork, current, chosen)


def _refusal(fork: Fork, model: str, current: CurrentCase) -> str | None:
    if current.case.skip is not None:
        return f"the case of this run is skipped: {current.case.skip}"
    if not has_variant_of(current.suite, model):
        return f"the suite has no variant {variant_name_of(model)!r} any more"
    return fork_refusal(fork, turns_of(current.case, settings_of(current.suite, current.case).limits.max_rounds))


def _planned(run: RunRecord, model: str, fork: Fork, current: CurrentCase, chosen: Sequence[str]) -> PlannedRun:
    # The model needs approval if a suite or recording named it and the user did not select it.
    of_suite = model == run.model and (run.recorded or run.planned.model_of_suite) and model_of(model) not in chosen
    return plan_fork(
        current.file, current.case, model, fork, repeat=run.repeat, model_of_suite=of_suite, grader=run.planned.by
    )


def fork_draft(
    run: RunRecord,
    place: RunPlace | None,
    current: CurrentCase,
    models: Sequence[ModelChoice],
    likely: Sequence[str] = (),
) -> ForkDraft:
    """Return an unedited fork of a run at a place (`None`: the end of the run).

    The model is the first available model of `likely`, or else the run's own model."""
    origin = run.trajectory
    at = _point(origin, place)
    own, others = ModelChoice(run.model, "", ""), []
    for choice in models:
        if choice.name == run.model:
            own = choice
        else:
            others.append(choice)
    choices = (own, *others)
    names = [choice.name for choice in choices]
    model = 0
    for name in likely:
        if name in names:
            model = names.index(name)
            break
    system, result = _system(run, origin, at, current), _result(origin, at)
    content, is_error = None, False
    if result is not None:
        content, is_error = result.content, result.is_error
    user = _user(origin, at, current)
    texts = (system, content, is_error)
    return ForkDraft(run, origin, at, choices, model, *texts, *texts, user, user)


def _point(origin: Trajectory, place: RunPlace | None) -> ForkPoint:
    if place is not None:
        return ForkPoint(place.round, place.answered)
    # Without a place, fork before the answer to the first unanswered call, or else before the next request.
    whole = [each for each in origin.rounds if each.stop_reason is not None]
    if whole:
        answered = whole[-1].answered_count
        if answered < len(whole[-1].calls):
            return ForkPoint(len(whole), answered)
    return ForkPoint(len(whole) + 1)


def _system(run: RunRecord, origin: Trajectory, at: ForkPoint, current: CurrentCase) -> str:
    suite, case = current.suite, current.case
    if has_variant_of(suite, run.model):
        variant = variant_of(suite, run.model)
        suite, case = varied_suite(suite, variant), varied_case(case, variant)
    step = None
    if at.rounds < len(current.case.steps):
        step = at.rounds + 1
    fork = Fork(origin, at, _inherited_system(run))
    return system_prompt(case, settings_of(suite, case), step, fork) or ""


def _user(origin: Trajectory, at: ForkPoint, current: CurrentCase) -> str | None:
    """Return the message of a conversation's user right after a point, `None` if the user does not speak there."""
    if current.case.conversation is None or at.answered is not None:
        return None
    if (message := Fork(origin, at).user_message) is not None:
        return message.text
    before = origin.rounds[: at.rounds]
    return None if before and before[-1].calls_to_answer else ""


def _inherited_system(run: RunRecord) -> str | None:
    """Return the system prompt edited in a fork, so forks of the fork keep it. `None` if the prompt was not edited."""
    fork = run.planned.fork
    if fork is None:
        return None
    return fork.system


def _result(origin: Trajectory, at: ForkPoint) -> ResultReceived | None:
    if not at.answered or at.round > len(origin.rounds):
        return None
    calls = origin.rounds[at.round - 1].calls[: at.answered]
    if not calls:
        return None
    return calls[-1].result
