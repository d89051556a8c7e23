"""Actions for stepping through a run: continuing, editing while it is held, and making mocks and expectations."""

from __future__ import annotations

from workbench.tui.kit.actions import ANSWERS, HELD_AT, Action, Feature, MainSituation, key_for, while_held, why_no_run
from workbench.tui.lines.words import unless_read_only
from workbench.tui.runs.actions import why_not_run

_OVER = "this run is over; ← and → show those that are still under way"


def _step(now: MainSituation) -> str | None:
    if now.shown == "a run":
        return None
    if now.case_running:
        return now.held_beside or _OVER
    return why_not_run(now)


def _continue(now: MainSituation) -> str | None:
    if now.held:
        return None
    if now.shown == "a run":
        return now.held_beside or f"the run is not held: {key_for('step')} holds it at its next stop"
    if now.held_beside or now.case_running:
        return now.held_beside or _OVER
    return f"this case is not running; {key_for('run.case')} runs it to the first breakpoint"


def _go(now: MainSituation) -> str | None:
    steps = unless_read_only(f"; {key_for('step')} steps through a case")
    return None if now.held_runs else f"no run is held{steps}"


def _mock(now: MainSituation) -> str | None:
    return why_no_run(now) if now.shown == "nothing" else now.not_mockable


def _expect(now: MainSituation) -> str | None:
    return why_no_run(now) if now.shown == "nothing" else now.not_expectable


_anywhere = while_held(HELD_AT, "")
_answer = while_held(("call",), "a call can be answered before it is made", to_call=True)
_skip = while_held(("call",), "a call can be skipped before it is made", to_call=True)
_again = while_held(("call", "result"), "a round can be asked again before one of its calls, or after a result")


def _back(now: MainSituation) -> str | None:
    return "this is the first place where the run was held" if now.first_hold else _anywhere(now)


def _error(now: MainSituation) -> str | None:
    return None if now.typing in ANSWERS else "this is for results that are typed while a run is held"


GOING: tuple[Action, ...] = (
    Action(
        "step", "Run step by step; while it runs or is held, go to the next stop", ("s",), "everywhere", "step", _step
    ),
    Action(
        "step.continue", "Continue to the next breakpoint, or to the end", ("c",), "everywhere", "continue", _continue
    ),
    Action("step.held", "Go to the run that is held, or to the next one", ("H",), "everywhere", "held run", _go),
)

WHILE_HELD: tuple[Action, ...] = (
    Action("step.answer", "Answer the call by hand, in place of the tool", ("i",), "run", "answer", _answer),
    Action("step.round", "Next round: continue up to it", ("right_square_bracket",), "run", "round", _anywhere),
    Action(
        "step.back",
        "Previous hold: take one step back, and do the rest again",
        ("left_square_bracket",),
        "run",
        "back",
        _back,
    ),
    Action("step.skip", "Skip the call: it is not made", ("D",), "run", "skip", _skip),
    Action("step.say", "Insert a message to the model before its next request", ("I",), "run", "say", _anywhere),
    Action("step.again", "Ask the same round again", ("L",), "run", "again", _again),
    Action("step.mock", "Make the call a mock of the case", ("M",), "run", "mock", _mock),
    Action("step.expect", "Make the call an expected call of the case", ("C",), "run", "expect", _expect),
    Action("step.error", "While a result is typed: tool error, or none", ("f3",), "run", "", _error, listed=False),
)

ACTIONS = (*GOING, *WHILE_HELD)

OF_TYPED_TEXT = frozenset({"save", "edit.undo", "edit.redo", "toml.outside"})
"""Actions that apply to the text being typed for a held run, if there is one, instead of the suite."""

TYPING: tuple[Action, ...] = (
    Action("save", "Keep what is typed", ("ctrl+s",), "run", "keep"),
    Action("step.select_all", "Select all", ("f7",), "run", "select all"),
    Action("step.end", "Close, and keep what is typed for later", ("escape",), "run", "close"),
    Action("step.error", "Tool error, or none", ("f3",), "run", "tool error"),
    Action("toml.outside", "Your editor", ("f4",), "run", "your editor"),
)
"""The keys shown in the key bar while something is typed for a held run."""

FEATURE = Feature("stepping", ACTIONS, group="Step by step")
