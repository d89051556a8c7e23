"""Run a file of Arcade evals or Toolvaluator, and print its tests as JSON.

`PYTHON script_runner.py FILE [VARIABLE …] < FILE` runs in the user's Python, which may have other packages and an older
version. Therefore, this module imports only the standard library. The file's own output goes to standard error. No
model is called. MCP servers of Arcade evals are recorded, and started only if the file asks for their tools. The value
of a VARIABLE is printed as `${VARIABLE}`."""

from __future__ import annotations

import ast
import asyncio
import datetime
import enum
import functools
import importlib
import inspect
import json
import os
import sys
import threading
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CRITICS = ("BinaryCritic", "NumericCritic", "SimilarityCritic", "DatetimeCritic", "NoneCritic")
OPTIONS = ("value_range", "match_threshold", "similarity_threshold", "metric", "tolerance", "max_difference")
RUBRIC = (
    "fail_threshold",
    "warn_threshold",
    "fail_on_tool_selection",
    "fail_on_tool_call_quantity",
    "tool_selection_weight",
)


def plain(value: Any) -> Any:
    """Convert a value that JSON cannot express, such as an enumeration to its value or a time to ISO 8601."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return str(value)


def reason_of(error: BaseException) -> str:
    """Return the type and message of an error. For an exception group, return the parts' types and messages."""
    parts = getattr(error, "exceptions", ())
    if not parts:
        return f"{type(error).__name__}: {error}"
    return "; ".join(dict.fromkeys(map(reason_of, parts)))


def loaded(name: str) -> Any:
    """Import and return a package; `None` if it is not installed in this Python."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def attributes_of(value: object, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the attributes of a value as a table. Versions of a package differ, so missing attributes are left out."""
    found = {}
    for name in names:
        if hasattr(value, name):
            found[name] = getattr(value, name)
    return found


# Arcade evals: suites are built, and the servers that they add are recorded instead of started.

ADDS_SERVER = ("add_mcp_server", "add_mcp_http_server", "add_mcp_stdio_server", "add_arcade_gateway")


class AddedServer:
    """An MCP server that a suite adds. It is recorded instead of started."""

    def __init__(self, kind: str, load: Any, arguments: dict[str, Any]) -> None:
        self.kind, self.load, self.arguments = kind, load, arguments
        self.track: str | None = arguments.get("track")
        self.tools: set[str] | None = None

    def table(self, show: Any) -> dict[str, Any]:
        """Return the server as a client's configuration writes it, with the track (set of tools) to which it belongs.

        `show` replaces the values of variables by their names."""
        given = self.arguments
        if given.get("command"):
            command = list(given["command"])
            entry = {"command": command[0], "args": command[1:], "env": given.get("env")}
        elif self.kind == "add_arcade_gateway":
            base = given.get("base_url") or os.environ.get("ARCADE_API_BASE_URL") or "https://api.arcade.dev"
            headers = {"Authorization": "Bearer ${ARCADE_API_KEY}"}
            if given.get("arcade_user_id") or os.environ.get("ARCADE_USER_ID"):
                headers["Arcade-User-Id"] = "${ARCADE_USER_ID}"
            path = "/".join(filter(None, ("mcp", given.get("gateway_slug"))))
            entry = {"url": f"{base.rstrip('/')}/{path}", "headers": headers, "name": given.get("gateway_slug")}
        else:
            entry = {"url": given.get("url"), "headers": given.get("headers")}
            if given.get("use_sse"):
                entry["type"] = "sse"
        return {"track": self.track, "entry": show(entry)}


def recorded(kind: str, load: Any) -> Any:
    """Return a replacement for a suite's method that adds a server. It records the server instead of starting it."""
    signature = inspect.signature(load)

    @functools.wraps(load)
    async def add(suite: Any, *args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(suite, *args, **kwargs)
        bound.apply_defaults()
        server = AddedServer(kind, load, dict(list(bound.arguments.items())[1:]))
        servers_of(suite).append(server)
        suite._get_registry(server.track)  # creates the track in the suite
        return suite

    return add


def servers_of(suite: Any) -> list[AddedServer]:
    servers: list[AddedServer] = suite.__dict__.setdefault("_added_servers", [])
    return servers


def asking_servers(method: Any) -> Any:
    """Return a replacement for a method that reports a suite's tools.

    The replacement first starts the servers that were only recorded, and lists their tools."""

    @functools.wraps(method)
    def report(suite: Any, track: str | None = None) -> Any:
        for server in servers_of(suite):
            if server.track == track and server.tools is None:
                names = suite._get_registry(track)._tools
                before = set(names)
                # A separate thread is needed, because the file may already be running an event loop.
                errors: list[BaseException] = []
                thread = threading.Thread(target=load_tools, args=(suite, server, errors))
                thread.start()
                thread.join()
                if errors:
                    raise errors[0]
                server.tools = set(names) - before
        return method(suite, track)

    return report


def load_tools(suite: Any, server: AddedServer, errors: list[BaseException]) -> None:
    try:
        asyncio.run(server.load(suite, **server.arguments))
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
        errors.append(error)


def record_servers(package: Any) -> None:
    """Patch the package's suites so that they record their servers. Older versions of the package have no servers."""
    kind = package.EvalSuite
    for name in ADDS_SERVER:
        if inspect.iscoroutinefunction(getattr(kind, name, None)):
            setattr(kind, name, recorded(name, getattr(kind, name)))
    for name in ("get_tool_count", "list_tool_names"):
        if hasattr(kind, name):
            setattr(kind, name, asking_servers(getattr(kind, name)))


def is_suite(value: object) -> bool:
    # Classes are compared by name, because this file imports nothing but the standard library.
    return any(kind.__name__ == "EvalSuite" for kind in type(value).__mro__)


def built(function: Any) -> Any:
    """Call a function decorated with `@tool_eval`, and return the suite that it builds."""
    suite = inspect.unwrap(function)()
    if inspect.iscoroutine(suite):
        return asyncio.run(suite)
    return suite


def critic_of(critic: Any) -> dict[str, Any]:
    names = [kind.__name__ for kind in type(critic).__mro__]
    weight = getattr(critic, "_original_weight", critic.weight)
    if isinstance(weight, enum.Enum):
        weight = weight.name.lower()
    found = {
        "critic": names[0] if names[0] in CRITICS else "custom",
        "class": names[0],
        "field": critic.critic_field,
        "weight": weight,
    }
    return found | attributes_of(critic, OPTIONS)


def expected_by(case: Any) -> dict[str, Any]:
    """Return the expected calls of a case, and the critics (comparisons of arguments) that all its calls share."""
    return {
        "calls": [{"tool": call.name, "args": call.args} for call in case.expected_tool_calls],
        "critics": list(map(critic_of, case.critics or [])),
    }


def case_of(case: Any) -> dict[str, Any]:
    return {
        "name": case.name,
        "system": case.system_message,
        "user": case.user_message,
        "messages": case.additional_messages,
        "rubric": attributes_of(case.rubric, RUBRIC),
    }


def comparative_case_of(suite: Any, case: Any) -> dict[str, Any]:
    rubric = case.rubric or suite.rubric
    tracks = []
    for name, track in case.track_configs.items():
        # These steps make the case of a track as Arcade's `run_comparative` does.
        calls = [suite._convert_to_named_expected_tool_call(call) for call in track.expected_tool_calls]
        critics = suite._add_none_critics(calls, list(track.critics or []))
        made = suite._create_eval_case(
            name=case.name,
            system_message=case.system_message,
            user_message=case.user_message,
            expected_tool_calls=calls,
            rubric=rubric,
            critics=critics,
            additional_messages=case.additional_messages,
        )
        tracks.append({"track": name, **expected_by(made)})
    return {**case_of(case), "rubric": attributes_of(rubric, RUBRIC), "tracks": tracks}


def tools_of(suite: Any, registry: Any, track: str | None) -> list[Any]:
    """Return the tools that a suite itself defines, without those that its servers list."""
    listed: set[str] = set()
    for server in servers_of(suite):
        if server.track == track and server.tools:
            listed |= server.tools
    return [tool for name, tool in getattr(registry, "_tools", {}).items() if name not in listed]


def suite_of(suite: Any, show: Any) -> dict[str, Any]:
    tracks = getattr(getattr(suite, "_track_manager", None), "_tracks", {})
    builders = getattr(suite, "_comparative_case_builders", [])
    return {
        "name": suite.name,
        "tools": tools_of(suite, getattr(suite, "_internal_registry", None), None),
        "servers": [server.table(show) for server in servers_of(suite)],
        "tracks": [{"name": name, "tools": tools_of(suite, held, name)} for name, held in tracks.items()],
        "cases": [{**case_of(case), **expected_by(case)} for case in suite.cases],
        "comparative": [comparative_case_of(suite, builder.case) for builder in builders],
    }


def arcade_suites(module: types.ModuleType, show: Any) -> dict[str, Any]:
    """Return the suites of a file: those in its variables, and those that its decorated functions build."""
    suites: list[Any] = []
    problems: list[dict[str, str]] = []
    for name, value in list(vars(module).items()):
        if is_suite(value):
            suites.append(value)
        elif getattr(value, "__tool_eval__", False) and getattr(value, "__module__", "") == module.__name__:
            try:
                suites.append(built(value))
            except Exception as error:  # noqa: BLE001 - whatever a file of the user raises
                traceback.print_exc()
                problems.append({"name": name, "error": reason_of(error)})
    # A suite may be found twice: as a variable, and as the result of a decorated function.
    unique = list({id(suite): suite for suite in suites}.values())
    return {"arcade_suites": [suite_of(suite, show) for suite in unique], "problems": problems}


# Toolvaluator: the file runs as a program, and the datasets of its evaluations are recorded.


class AskedError(BaseException):
    """The file sends a request to a model. Only datasets that exist by then can be imported."""


class Evaluations:
    """Records the datasets that a file evaluates, and the server whose tools they use."""

    def __init__(self) -> None:
        self.examples: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.chains: dict[int, dict[str, Any]] = {}
        self.server: Any = None
        self.listed: dict[str, Any] = {}

    @property
    def found(self) -> bool:
        return bool(self.examples or self.chains)

    def add(self, examples: Any, system: str | None = None) -> None:
        # A file may evaluate several models on one example, which is imported once.
        for example in examples or ():
            found = {"system_prompt": system, **without_none(example, "system_prompt")}
            self.examples.setdefault(id(example), (example, found))

    def add_chain(self, chain: dict[str, Any], system: str | None = None) -> None:
        self.server = self.server or chain.get("mcp_server")
        self.chains.setdefault(id(chain["steps"]), {"system_prompt": system, **chain})

    def eval_model(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        given = named(("model_name", "api_key", "base_url", "dataset", "verbose", "system_prompt"), args, kwargs)
        self.add(given.get("dataset"), given.get("system_prompt"))
        return {"score": 1.0, "latencies": [], "predictions": [], "scores": []}

    def eval_chained_model(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        given = named(("model_name", "api_key", "dataset", "base_url", "system_prompt"), args, kwargs)
        chains = list(given.get("dataset") or ())
        for chain in chains:
            self.add_chain(chain, given.get("system_prompt"))
        steps = sum(len(chain["steps"]) for chain in chains)
        return {"score": 1.0, "chain_results": [], "num_chains": len(chains), "num_steps": steps}

    def evaluate(self, chain: Any) -> dict[str, Any]:
        self.add_chain(vars(chain), chain.system_prompt)
        return {"score": 1.0, "step_results": [], "execution_history": [], "num_steps": len(chain.steps)}

    def record(self) -> None:
        """Patch the installed packages so that evaluations record their datasets instead of calling a model."""
        if (dspy := loaded("dspy")) is not None:
            dspy.LM.__call__ = dspy.LM.acall = raise_asked
            dspy.Evaluate.__call__ = lambda evaluate, *_, **__: self.add(evaluate.devset)
        if loaded("toolvaluator") is None:
            return
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] != "toolvaluator":
                continue
            for function in (self.eval_model, self.eval_chained_model):
                if hasattr(module, function.__name__):
                    setattr(module, function.__name__, function)
            if (list_tools := getattr(module, "get_tool_schemas_sync", None)) is not None:
                module.get_tool_schemas_sync = self.listing(list_tools)  # type: ignore[attr-defined]
            if (kind := getattr(module, "ChainedEvaluator", None)) is not None:
                kind.evaluate = lambda chain, *_, **__: self.evaluate(chain)

    def listing(self, list_tools: Any) -> Any:
        @functools.wraps(list_tools)
        def listed(server: Any) -> Any:
            self.server = self.server or server
            tools = list_tools(server)
            self.listed.update(tools)
            return tools

        return listed

    def find(self, module: types.ModuleType) -> None:
        """Record the datasets in a module's variables, for a file that does not evaluate them itself."""
        for value in list(vars(module).values()):
            values = value if isinstance(value, (list, tuple)) else getattr(value, "examples", None)
            if isinstance(values, (list, tuple)) and values and all(map(is_example, values)):
                self.add(values)
            elif type(value).__name__ == "ChainedExampleBuilder":
                for chain in value.build():
                    self.add_chain(chain)
            elif type(value).__name__ == "ChainedEvaluator":
                self.evaluate(value)

    def table(self) -> dict[str, Any]:
        tools = {}
        for name, tool in self.listed.items():
            schema = getattr(tool, "inputSchema", None) or getattr(tool, "input_schema", None)
            tools[name] = {"name": name, "description": getattr(tool, "description", ""), "inputSchema": schema or {}}
            if isinstance(tool, dict):
                tools[name] = tool
        chains = []
        for chain in self.chains.values():
            mocks = {tool: mock_of(mock) for tool, mock in (chain.get("mocks") or {}).items()}
            chains.append({"system_prompt": chain["system_prompt"], "steps": chain["steps"], "mocks": mocks})
        return {
            "examples": [found for _, found in self.examples.values()],
            "chains": chains,
            "server": place_of(self.server),
            "tools": list(tools.values()),
        }


def raise_asked(*_: Any, **__: Any) -> Any:
    raise AskedError("an import sends no request to a model")


def named(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {**dict(zip(names, args)), **kwargs}  # noqa: B905 - `strict` is newer than some Pythons that run this


def is_example(value: Any) -> bool:
    return any(kind.__name__ == "Example" for kind in type(value).__mro__) and hasattr(value, "user_query")


def without_none(example: Any, key: str) -> dict[str, Any]:
    """Return the fields of an example, without the field `key` if its value is `None`."""
    fields = dict(example.items())
    if fields.get(key, "") is None:
        del fields[key]
    return fields


def mock_of(mock: Any) -> dict[str, Any]:
    """Return what a mock in a chain answers: a text, or the import path of a function."""
    if not callable(mock):
        return {"result": str(mock)}
    module, name = getattr(mock, "__module__", ""), getattr(mock, "__qualname__", "")
    if module == "__main__" or not name.isidentifier():
        return {"code": name}
    return {"python": f"{module}:{name}"}


def place_of(server: Any) -> dict[str, str] | None:
    """Return the names of the module and the variable that hold a server.

    Returns `None` if there is no server, or if the executed file itself defines it."""
    for module_name, module in list(sys.modules.items()):
        # Python may load the main module as `__mp_main__` too.
        if module_name in ("__main__", "__mp_main__") or server is None:
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is server:
                return {"module": module_name, "object": name}
    return None


def imports_of(tree: ast.Module) -> Iterator[str]:
    """Yield the top-level packages that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def main(path: str, names: list[str]) -> None:
    # Only the result may be written to standard output, so prints of the file go to standard error.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    source = sys.stdin.buffer.read()
    file = str(Path(path).resolve())
    # `sys.path` begins with the folder of this module. Modules in it could shadow packages that the file imports.
    sys.path[0] = str(Path(file).parent)
    values = {name: os.environ[name] for name in names}

    def show(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: show(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return list(map(show, value))
        if isinstance(value, str):
            for name, passed in values.items():
                # A short value, such as a number, may be part of an unrelated text. It is replaced only if it is the
                # whole text.
                if passed and (value == passed or len(passed) > 7):
                    value = value.replace(passed, f"${{{name}}}")
        return value

    evaluations = Evaluations()
    try:
        code = compile(source, file, "exec", dont_inherit=True)
        packages = set(imports_of(ast.parse(source)))
        is_program = "arcade_evals" not in packages and not packages.isdisjoint(("toolvaluator", "dspy"))
        module = types.ModuleType("__main__" if is_program else "arcade_suite")
        module.__file__ = file
        sys.modules[module.__name__] = module
        if is_program:
            sys.argv = [path]
            # Scripts do not run without a key. This key is never sent.
            os.environ.setdefault("OPENAI_API_KEY", "not-needed")
            evaluations.record()
        elif (package := loaded("arcade_evals")) is not None and "arcade_evals" in packages:
            record_servers(package)
        problems: list[dict[str, str]] = []
        try:
            exec(code, module.__dict__)
        except AskedError:
            pass
        except (Exception, SystemExit) as error:
            ended = isinstance(error, SystemExit)
            if not evaluations.found and not (ended and not error.code):  # type: ignore[union-attr]
                raise
            if not ended:
                problems.append({"name": "after the evaluation", "error": reason_of(error)})
        if is_program:
            if not evaluations.found:
                evaluations.find(module)
            found = {"toolvaluator": evaluations.table(), "problems": problems}
        else:
            found = arcade_suites(module, show)
    except Exception as error:  # noqa: BLE001 - whatever a file of the user raises
        traceback.print_exc()
        sys.exit(reason_of(error))
    json.dump(found, answer, default=plain)
    answer.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
