"""Opens a suite's subject that is a Python function, as `workbench.evaluate` opens an agent."""

from __future__ import annotations

import asyncio
from functools import cache

from workbench.engine.engine_thread import EngineThread
from workbench.engine.plan import PlannedRun
from workbench.providers.function import CallerLoop, FunctionModel
from workbench.providers.own_agent import as_agent
from workbench.suite.model import Subject
from workbench.tools.answer import PythonReferenceError
from workbench.tools.python_code import PythonFunctions, in_thread


async def open_python_subject(planned: PlannedRun, subject: Subject, functions: PythonFunctions) -> FunctionModel:
    """Return a model that calls the Python function of a subject, for one run.

    The function's module is imported on first use. Raises ToolsError if the suite is not trusted, or if the module
    lacks the function."""
    assert subject.python is not None
    module, _, name = subject.python.partition(":")
    value = await in_thread(lambda: functions.value(module, name))
    if value is None:
        raise PythonReferenceError(f"{subject.python} cannot be loaded: {module} has no {name!r}")
    try:
        function = as_agent(value).function
    except TypeError as error:
        raise PythonReferenceError(f"{subject.python} cannot be used: {error}") from None
    # The clients that an agent creates stay bound to the event loop of their first run. So all runs use one loop, which
    # is not the engine's loop.
    loop = await asyncio.wrap_future(_thread().submit(_caller_loop()))
    return FunctionModel(subject.name, function, case=planned.case.id, run=planned.run_id, loop=loop)


@cache
def _thread() -> EngineThread:
    return EngineThread("subjects")


async def _caller_loop() -> CallerLoop:
    return CallerLoop()
