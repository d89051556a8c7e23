"""Loads the Python functions for mocks and checks, which a suite names as `module:function`.

A module is loaded from the suite's folder if it is there. Otherwise, it is imported as usual. The modules of each
folder get their own package name. Two suites may therefore each have a `mocks.py`, and the modules of a folder can
import each other with `from . import`."""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import count
from pathlib import Path
from types import CodeType, ModuleType
from typing import TypeVar

from workbench import threads
from workbench.checks.patterns import CheckError
from workbench.dataclasses import dataclass
from workbench.suite.trust import CodeFile
from workbench.tools.answer import PythonReferenceError, ToolsError, UntrustedError
from workbench.trajectory.events import JsonValue

# The user approves the code of a suite before it is imported. Files are therefore found and hashed without importing
# them. Later, a file is imported only if its content still has the approved hash.

_UNREADABLE = "unreadable"
"""The hash of a file that cannot be read. No content has this hash, so the file is never imported."""

_package_numbers = count(1)


@dataclass(frozen=True, slots=True)
class HashedModule:
    """A module that a suite uses: its file, the SHA-256 of its content, and whether it is in the suite's folder.

    If a module is built into Python or does not exist, `file` is `None`."""

    file: Path | None
    sha256: str = ""
    in_folder: bool = True


@dataclass(frozen=True)
class HashedCode:
    """The modules that a suite names, and the modules in its folder that they import. The keys are dotted names."""

    folder: Path
    modules: Mapping[str, HashedModule]

    def __hash__(self) -> int:
        return hash((self.folder, frozenset(self.modules.items())))

    @property
    def files(self) -> tuple[CodeFile, ...]:
        """The files below the suite's folder, sorted by path. Installed modules are left out."""
        files = []
        for found in self.modules.values():
            if found.in_folder and found.file is not None:
                files.append(CodeFile(found.file.relative_to(self.folder).as_posix(), found.sha256))
        return tuple(sorted(files))


def hash_code(folder: Path, names: Iterable[str]) -> HashedCode:
    """Find the files of modules and hash them. Nothing is imported.

    A module outside the folder counts as installed. If a file imports modules relatively (`from . import helper`),
    these modules are included."""
    folder = folder.absolute()
    # Python caches the entries of folders, and would miss a file that was written a moment ago.
    importlib.invalidate_caches()
    modules: dict[str, HashedModule] = {}
    waiting = list(dict.fromkeys(names))
    named = frozenset(waiting)
    while waiting:
        name = waiting.pop()
        if name in modules:
            continue
        spec = _spec_below(folder, name)
        file = _file_of(spec)
        if spec is None or file is None:
            modules[name] = HashedModule(None)
            if name in named:
                modules[name] = _installed(name)
            continue
        # Importing `a.b` also runs the code of `a`.
        parent = name.rpartition(".")[0]
        if parent:
            waiting.append(parent)
        content = _content(file)
        modules[name] = HashedModule(file, _hash(content))
        if content is not None and file.suffix == ".py":
            package = parent
            if spec.submodule_search_locations is not None:
                package = name
            waiting += _neighbours(content, package)
    return HashedCode(folder, modules)


def import_module(code: HashedCode, name: str) -> ModuleType:
    """Import a module of the approved code. A module of the suite's folder is imported anew each time.

    Raises PythonReferenceError if a file has changed since it was hashed, and any error of the module's own code."""
    found = code.modules.get(name)
    if found is None:
        raise PythonReferenceError(f"the module {name} was not approved, so it is not imported")
    if not found.in_folder:
        if name not in sys.modules and found.file is not None and _hash(_content(found.file)) != found.sha256:
            raise _changed(name, found.file)
        return importlib.import_module(name)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    # Each import uses a package with a new name, so that no module in `sys.modules` is reused.
    package = ModuleType(f"_workbench_suite_{next(_package_numbers)}")
    package.__path__ = [str(code.folder)]
    _FINDER.packages[package.__name__] = code
    sys.modules[package.__name__] = package
    importlib.invalidate_caches()
    try:
        return importlib.import_module(f"{package.__name__}.{name}")
    except BaseException:
        forget_module(package)
        raise


def forget_module(module: ModuleType) -> None:
    """Remove a suite's module, and the modules beside it, from memory. Installed modules stay."""
    package = module.__name__.partition(".")[0]
    if _FINDER.packages.pop(package, None) is None:
        return
    below = f"{package}."
    for name in tuple(sys.modules):
        if name == package or name.startswith(below):
            del sys.modules[name]


class _ApprovedFinder:
    """Lets Python's import system find the modules in the folders of suites.

    Raises PythonReferenceError if the file of a module has changed since it was hashed. A module whose name the code
    builds at run time could not be hashed, and is imported unchecked."""

    def __init__(self) -> None:
        self.packages: dict[str, HashedCode] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        code = self.packages.get(package)
        if code is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        found = code.modules.get(name)
        if found is None or not found.in_folder:
            return spec
        file = _file_of(spec)
        if file != found.file:
            raise _changed(name, file or found.file)
        if spec is None or file is None:
            return spec
        if file.suffix == ".py":
            spec.loader = _ApprovedLoader(fullname, str(file), found.sha256)
        elif _hash(_content(file)) != found.sha256:
            raise _changed(name, file)
        return spec


_FINDER = _ApprovedFinder()


class _ApprovedLoader(SourceFileLoader):
    """A module loader that compiles exactly those bytes whose hash it has checked."""

    # Python's own loader may use a compiled file beside the source. The user has not approved the content of that file.

    def __init__(self, fullname: str, path: str, sha256: str) -> None:
        super().__init__(fullname, path)
        self._sha256 = sha256

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        if _hash(source) != self._sha256:
            raise _changed(fullname.partition(".")[2], Path(self.path))
        return _compiled(source, self.path)


@lru_cache(maxsize=64)
def _compiled(source: bytes, path: str) -> CodeType:
    # The compiled code is cached: every run loads the modules of its mocks again, and compiling takes most of that
    # time.
    code: CodeType = compile(source, path, "exec", dont_inherit=True)
    return code


def _changed(name: str, file: Path | None) -> PythonReferenceError:
    where = name
    if file is not None:
        where = f"{name} ({file})"
    return PythonReferenceError(
        f"the module {where} has changed since it was approved and is not imported: start again to approve it as it is "
        "now"
    )


def _spec_below(folder: Path, name: str) -> ModuleSpec | None:
    places: Sequence[str] | None = [str(folder)]
    spec: ModuleSpec | None = None
    for part in name.split("."):
        if not part or places is None:
            return None
        spec = PathFinder.find_spec(part, list(places))
        if spec is None:
            return None
        places = spec.submodule_search_locations
    return spec


def _installed(name: str) -> HashedModule:
    """Return the installed module that Python would import by this name. Its parent packages are not imported."""
    # `importlib.util.find_spec` would import the parent packages, and so run their code.
    places: Sequence[str] | None = None
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        if depth > 1 and places is None:
            return HashedModule(None, in_folder=False)
        spec = _found_by_python(".".join(parts[:depth]), places)
        if spec is None:
            return HashedModule(None, in_folder=False)
        places = spec.submodule_search_locations
    file = _file_of(spec)
    if file is None:
        return HashedModule(None, in_folder=False)
    return HashedModule(file, _hash(_content(file)), in_folder=False)


def _found_by_python(name: str, places: Sequence[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        if (spec := finder.find_spec(name, places, None)) is not None:
            return spec
    return None


def _file_of(spec: ModuleSpec | None) -> Path | None:
    if spec is not None and spec.has_location and spec.origin is not None:
        return Path(spec.origin)
    return None


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _hash(content: bytes | None) -> str:
    if content is not None:
        return hashlib.sha256(content).hexdigest()
    return _UNREADABLE


def _neighbours(source: bytes, package: str) -> Iterator[str]:
    """Yield the names of modules that a file imports relatively.

    Imported names are included, because they may be modules as well. `package` is the package of the file, "" for the
    suite's folder."""
    # This import is lazy, because most suites have no code.
    import ast

    # A syntax error is reported when the file is imported.
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base: list[str] = []
        if package:
            base = package.split(".")
        # One dot means the package itself, and each further dot means a parent package.
        parents = node.level - 1
        if parents > len(base):
            continue
        del base[len(base) - parents :]
        if node.module:
            base.append(node.module)
        if base:
            yield ".".join(base)
        for alias in node.names:
            if alias.name != "*":
                yield ".".join([*base, alias.name])


_Result = TypeVar("_Result")


class PythonFunctions:
    """The Python functions that one suite may call. `code` is the approved code, `None` if no function may be called.

    Each module is loaded once. Any thread may use the object."""

    def __init__(self, code: HashedCode | None) -> None:
        self._code = code
        self._loaded: dict[str, ModuleType] = {}
        self._loading = threading.Lock()
        """A lock that is held while a module loads, which may take long. Only threads that load modules wait for it."""
        self._keeping = threading.Lock()
        self._forgotten = False
        self._shared: tuple[PythonFunctions, frozenset[str]] | None = None

    def for_run(self, modules: Iterable[str]) -> PythonFunctions:
        """Return functions for one run. The run gets its own copies of the given modules, and shares all other modules.

        Call `forget` after the run."""
        own = PythonFunctions(self._code)
        own._shared = self, frozenset(modules)
        return own

    def forget(self) -> None:
        """Remove the modules that this object loaded from memory. Call no function afterwards.

        A module that a thread is still loading is removed once it is loaded."""
        with self._keeping:
            self._forgotten = True
            for module in self._loaded.values():
                forget_module(module)
            self._loaded.clear()

    def function(self, reference: str) -> Callable[..., object]:
        """Import the module of `module:function`, which may be slow, and return the function.

        Raises UntrustedError if the suite is not trusted. Raises PythonReferenceError if the function is missing or its
        module cannot be loaded."""
        module_name, _, name = reference.partition(":")
        function = self.value(module_name, name)
        if not callable(function):
            raise PythonReferenceError(f"{reference} cannot be loaded: {module_name} has no function {name!r}")
        if inspect.iscoroutinefunction(function):
            raise PythonReferenceError(f"{reference} cannot be used: it must be a plain function, not an async one")
        return function

    def value(self, module_name: str, name: str) -> object:
        """Return the object with a name in a module, `None` if the module does not have the name.

        Raises UntrustedError if the suite is not trusted. Raises PythonReferenceError if the module cannot be loaded,
        for example because its file has changed since it was approved."""
        if self._shared is not None and module_name not in self._shared[1]:
            return self._shared[0].value(module_name, name)
        reference = f"{module_name}:{name}"
        code = self._code
        if code is None:
            raise UntrustedError(f"{reference} is not run: it is Python code of an untrusted suite")
        try:
            with self._loading:
                module = self._loaded.get(module_name) or self._load(code, module_name)
        except PythonReferenceError as error:
            raise PythonReferenceError(f"{reference} cannot be loaded: {error}") from error
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}"
            if isinstance(error, ModuleNotFoundError) and (code.folder / f"{error.name}.py").is_file():
                why += f"; write `from . import {error.name}` for the file beside it"
            raise PythonReferenceError(f"{reference} cannot be loaded from {code.folder}: {why}") from error
        value: object = getattr(module, name, None)
        return value

    def _load(self, code: HashedCode, module_name: str) -> ModuleType:
        module = import_module(code, module_name)
        with self._keeping:
            if self._forgotten:
                forget_module(module)
            else:
                self._loaded[module_name] = module
        return module

    def answer(self, reference: str, value: JsonValue) -> object:
        """Call the function of a `python` check, and return its result.

        Raises the function's own errors, CheckError if the function cannot be loaded, and PythonReferenceError if it
        tries to end the program."""
        try:
            function = self.function(reference)
        except ToolsError as error:
            raise CheckError(str(error)) from error
        try:
            return function(copy.deepcopy(value))
        except SystemExit as error:
            raise PythonReferenceError(f"{reference} tried to end the program") from error


async def in_thread(function: Callable[[], _Result], *, name: str = "python of a suite") -> _Result:
    """Call a function of a suite in a thread, and return its result.

    Raises PythonReferenceError if the function tries to end the program, for example by SystemExit."""

    def call() -> _Result:
        try:
            return function()
        except Exception:
            raise
        except BaseException as error:
            raise PythonReferenceError(f"Python code of the suite raised {type(error).__name__}: {error}") from error

    return await threads.in_thread(call, name=name)
