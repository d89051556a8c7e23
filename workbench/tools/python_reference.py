"""The Python functions that a suite names as `module:function`, for mocks and checks.

A module is loaded from its file under the suite's folder when it is there, else it is imported as usual. Modules of the
folder get a package name of their own, so that two suites may each have a `mocks.py`, and may import their neighbours
with `from . import`.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import inspect
import threading
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

from workbench.checks.patterns import CheckError
from workbench.tools.answer import PythonReferenceError, ToolsError, UntrustedError
from workbench.tools.code_files import FoundCode, import_module
from workbench.trajectory.messages import JsonValue

_Result = TypeVar("_Result")


class PythonFunctions:
    """The functions of one suite, in the code that was approved; without `code` none may be called. Each named module
    is loaded once. Usable from any thread."""

    def __init__(self, code: FoundCode | None) -> None:
        self._code = code
        self._loaded: dict[str, ModuleType] = {}
        self._loading = threading.Lock()

    def function(self, reference: str) -> Callable[..., object]:
        """Load `module:function`. Imports code, which may be slow.

        Raises UntrustedError when the suite is not trusted, PythonReferenceError when there is no such function or its
        module cannot be loaded.
        """
        module_name, _, name = reference.partition(":")
        function = self.value(module_name, name)
        if not callable(function):
            raise PythonReferenceError(f"{reference} cannot be loaded: {module_name} has no function {name!r}")
        if inspect.iscoroutinefunction(function):
            raise PythonReferenceError(f"{reference} cannot be used: it must be a plain function, not an async one")
        return function

    def value(self, module_name: str, name: str) -> object:
        """Load a module and return the object with a name in it, `None` when there is none.

        Raises UntrustedError when the suite is not trusted, PythonReferenceError when the module cannot be loaded, for
        example because its file has changed since it was approved.
        """
        reference = f"{module_name}:{name}"
        code = self._code
        if code is None:
            raise UntrustedError(f"{reference} is not run: it is Python code of an untrusted suite")
        try:
            with self._loading:
                if module_name not in self._loaded:
                    self._loaded[module_name] = import_module(code, module_name)
                module = self._loaded[module_name]
        except PythonReferenceError as error:
            raise PythonReferenceError(f"{reference} cannot be loaded: {error}") from error
        except (Exception, SystemExit) as error:
            raise PythonReferenceError(
                f"{reference} cannot be loaded from {code.folder}: {type(error).__name__}: {error}"
            ) from error
        value: object = getattr(module, name, None)
        return value

    def answer(self, reference: str, value: JsonValue) -> object:
        """Returns the result of a `python` check's function. Raises what the function raises, and CheckError when it
        cannot be loaded."""
        try:
            function = self.function(reference)
        except ToolsError as error:
            raise CheckError(str(error)) from error
        try:
            return function(copy.deepcopy(value))
        except SystemExit as error:
            raise PythonReferenceError(f"{reference} tried to end the program") from error


async def in_thread(function: Callable[[], _Result], *, name: str = "python of a suite") -> _Result:
    """Call a function that may block, in a thread that cannot keep the program from ending."""
    outcome: concurrent.futures.Future[_Result] = concurrent.futures.Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(function())
        except Exception as error:  # noqa: BLE001 (raised again where it is awaited)
            outcome.set_exception(error)
        except BaseException as error:  # noqa: BLE001 (KeyboardInterrupt and the like would end the engine's loop)
            message = f"Python code of the suite raised {type(error).__name__}: {error}"
            outcome.set_exception(PythonReferenceError(message))

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        return await asyncio.wrap_future(outcome)
    finally:
        if outcome.done():
            thread.join()  # it has nothing left to do
