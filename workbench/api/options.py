"""The options of `evaluate`. Each option can also be given as a keyword argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

from workbench.api.approval import Approve, approve_nothing
from workbench.api.given_suites import Suites
from workbench.api.models import AnyModel
from workbench.api.suites import Cell, SuitePath
from workbench.dataclasses import dataclass
from workbench.evaluation.options import CommonOptions
from workbench.suite.problems import did_you_mean

if TYPE_CHECKING:
    from workbench.api.cells import CellDone
    from workbench.engine.events import BatchEvent
    from workbench.show.views.baseline import Confirm, FailOn


@dataclass(frozen=True, kw_only=True)
class RunOptions(CommonOptions):
    """The options of `evaluate`, for use in several evaluations.

    Each option is also a keyword of `evaluate` and `evaluate_async`. A keyword takes precedence over these options.

    >>> import workbench
    >>> options = workbench.RunOptions(model="offline", repeats=2)
    >>> len(workbench.evaluate("clock.toml", options).runs)
    4
    >>> len(workbench.evaluate("clock.toml", options, repeats=1).runs)
    2"""

    model: AnyModel | None = None
    """The model, or the first of several: a name such as `openai:gpt-6-luna` or a name in your `workbench.toml`, a
    `Model`, an `Agent`, or an agent's function. The default is the models that the suites name."""
    models: Sequence[AnyModel] = ()
    """Several models."""
    cells: Iterable[Cell] | None = None
    """The only pairs of a case and a model to run; `suite.cells()` has all of them."""
    system: str | None = None
    """The system prompt, in place of the system prompts of suites and cases."""
    variants: bool | Sequence[SuitePath | Mapping[str, Any]] = False
    """`True` runs the suites as written and all their variants; a list of names runs only these variants. The list may
    also add variants: a table with the keys of `[[variants]]`, or the path of a file with variants (`*.toml`)."""
    history: bool | SuitePath = False
    """`True` records the runs in the project's history, and a path records them in the history at that path. By
    default, no history is written."""
    record: SuitePath | None = None
    """A folder that gets a recording of each run."""
    record_failed: SuitePath | None = None
    """A folder that gets a recording of each run that did not pass."""
    resume: bool | int | str = False
    """The batch of the history to continue, by its number or name. `True` means the latest batch with missing runs.

    Only the missing runs are executed; the report covers all runs. An agent must be passed again."""
    anyway: bool = False
    """Whether to continue the batch even if models are reached differently than before."""
    baseline: int | str | None = None
    """The number or the name of a batch in the history to compare with."""
    fail_on: FailOn | None = None
    """With `"regression"`, the report fails only if cases broke since the baseline."""
    confirm: Confirm = "reruns"
    """With `"reruns"`, cases that broke are rerun until chance is excluded; with `"none"`, every case that broke
    counts."""
    confirm_writes: bool = False
    """Whether to rerun even cases that executed a tool not marked read-only."""
    approve: Approve = approve_nothing
    """A function that gets the needs of a suite and returns whether to approve them.

    It is called for suites that would start a process, import a file, or send something to an address that you did not
    name here. `workbench.ALL` approves everything; the default approves nothing."""
    on_event: Callable[[BatchEvent], object] | None = None
    """Called with each event as it happens."""
    on_cell: Callable[[CellDone], object] | None = None
    """Called with a report on each case and model as soon as its last run ends."""


_Keywords = ParamSpec("_Keywords")
_Result = TypeVar("_Result")
_Returned = TypeVar("_Returned", covariant=True)


class _Evaluate(Protocol[_Keywords, _Returned]):
    """A function of suites and `RunOptions` that also takes each option as a keyword."""

    def __call__(
        self, suites: Suites, options: RunOptions | None = None, *args: _Keywords.args, **keywords: _Keywords.kwargs
    ) -> _Returned: ...


def with_keywords(
    options: Callable[_Keywords, RunOptions],
) -> Callable[[Callable[[Suites, RunOptions], _Result]], _Evaluate[_Keywords, _Result]]:
    """Let a function of suites and `RunOptions` also accept each option as a keyword.

    `options` is the class `RunOptions`. Type checkers read the keywords from its constructor."""

    def decorated(function: Callable[[Suites, RunOptions], _Result]) -> Any:
        @wraps(function)
        def called(suites: Suites, options: RunOptions | None = None, **keywords: Any) -> _Result:
            for name in keywords:
                if name not in _NAMES:
                    near = did_you_mean(name, _NAMES) or "help(workbench.RunOptions) lists them"
                    raise TypeError(f"{function.__name__} has no option {name!r}: {near}")
            if not isinstance(options, RunOptions | None):
                what = f"not a {type(options).__name__}: a model is given as model=…"
                raise TypeError(f"the second argument of {function.__name__} must be a workbench.RunOptions, {what}")
            return function(suites, replace(options or RunOptions(), **keywords))

        # Notebooks and `help` show this signature. Type checkers use the annotations.
        suites, *_ = signature(function).parameters.values()
        none = Parameter("options", Parameter.POSITIONAL_OR_KEYWORD, default=None)
        keywords = signature(options).parameters.values()
        called.__signature__ = Signature([suites, none, *keywords])  # type: ignore[attr-defined]
        return called

    return decorated


_NAMES = tuple(each.name for each in fields(RunOptions))
