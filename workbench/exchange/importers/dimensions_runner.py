"""Run a script of the five-dimension evaluator, and print its tests as JSON.

`PYTHON dimensions_runner.py FILE [VARIABLE …] < FILE` runs in the user's Python, which may have other packages and an
older version. Therefore, this module imports only the standard library. The script runs until it connects to a model.
The connection is refused, and by then all `TestCase` objects exist. The script's own output goes to standard error.

A validator is a function that judges one argument. If it only compares the argument with constants, it is printed as a
check of a suite."""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import os
import re
import socket
import sys
import types
import unittest
from pathlib import Path
from typing import Any

RECORDED = ("TestCase", "ToolEvaluator", "ToolTestSuite")
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
MIRRORED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE, ast.Eq: ast.Eq, ast.NotEq: ast.NotEq}
INFINITY = float("inf")
"""An open end of a range."""

Check = dict[str, Any]


class AskedError(BaseException):
    """The script connects to a model. Raising this error ends the script, which has created its tests by then."""


class UnknownError(Exception):
    """A validator does more than compare the argument with constants."""


def raise_asked(*_: Any, **__: Any) -> Any:
    raise AskedError("an import sends no request to a model")


SOURCES: dict[str, str] = {}
"""The executed code by file name. The file on disk may have changed since."""


def record_instances() -> list[Any]:
    """Patch the evaluator's classes so that they record their instances, and return the list that will hold them."""
    made: list[Any] = []
    build = builtins.__build_class__

    def build_class(function: Any, name: str, *bases: Any, **options: Any) -> Any:
        kind = build(function, name, *bases, **options)
        if name in RECORDED and isinstance(kind, type) and not issubclass(kind, unittest.TestCase):

            def new(cls: Any, *_: Any, **__: Any) -> Any:
                instance = object.__new__(cls)
                made.append(instance)
                return instance

            kind.__new__ = new  # type: ignore[method-assign]
        return kind

    builtins.__build_class__ = build_class  # type: ignore[assignment]
    return made


# Validators.


def check_of(function: Any) -> Check:
    """Return a validator as a check. Raises UnknownError."""
    node = node_of(function)
    if isinstance(node, ast.Lambda):
        body: ast.expr | None = node.body
    else:
        statements = [each for each in node.body if not is_docstring(each)]
        body = statements[0].value if len(statements) == 1 and isinstance(statements[0], ast.Return) else None
    if body is None or len(node.args.args) != 1:
        raise UnknownError
    closure = inspect.getclosurevars(function)
    names = {**vars(builtins), **function.__globals__, **closure.nonlocals}
    return Reader(node.args.args[0].arg, names).check(body)


def node_of(function: Any) -> Any:
    """Return the syntax node of a lambda or function, which is found by its position in the source.

    Raises UnknownError."""
    try:
        code = function.__code__
        text = SOURCES.get(code.co_filename) or Path(code.co_filename).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, AttributeError, ValueError):
        raise UnknownError from None
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Lambda, ast.FunctionDef)) and node.lineno == code.co_firstlineno:
            name = getattr(node, "name", "<lambda>")
            if (
                name == code.co_name
                and tuple(arg.arg for arg in node.args.args) == code.co_varnames[: code.co_argcount]
            ):
                found.append(node)
    # If a line has several lambdas, the columns identify the right one. Python has recorded columns since 3.11.
    if len(found) > 1 and hasattr(code, "co_positions"):
        columns = set(code.co_positions())
        found = [node for node in found if isinstance(node, ast.Lambda) and extent(node.body) in columns]
    if not found or any(ast.unparse(node) != ast.unparse(found[0]) for node in found):
        raise UnknownError
    return found[0]


def extent(node: ast.expr) -> tuple[Any, ...]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class Reader:
    """Converts the code of a condition on one value to a check.

    Methods raise UnknownError for code that no check expresses."""

    def __init__(self, name: str, names: dict[str, Any]) -> None:
        self.name, self.names = name, names

    def check(self, node: ast.expr) -> Check:
        if isinstance(node, ast.BoolOp):
            checks = [self.check(each) for each in node.values]
            return {"all_of" if isinstance(node.op, ast.And) else "any_of": checks}
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return {"none_of": [self.check(node.operand)]}
        if isinstance(node, ast.Compare):
            return self.comparison(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        raise UnknownError

    def comparison(self, node: ast.Compare) -> Check:
        operands = [node.left, *node.comparators]
        # `re.search(…) is not None` is the same condition as `re.search(…)` alone.
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.IsNot) and self.is_none(operands[1]):
            return self.check(operands[0])
        parts = [self.pair(*each) for each in zip(operands, node.ops, operands[1:])]  # noqa: B905 - newer Pythons only
        return parts[0] if len(parts) == 1 else merged(parts)

    def pair(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Check:
        kind = type(operator)
        if not self.is_value(left):
            if kind in MIRRORED:
                return self.pair(right, MIRRORED[kind](), left)
            if kind in (ast.In, ast.NotIn) and self.is_value(right):
                return negated(self.text(right, self.constant(left), "{}"), kind is ast.NotIn)
            raise UnknownError
        value = self.constant(right)
        if kind in (ast.In, ast.NotIn):
            if isinstance(value, str):
                raise UnknownError
            return negated(self.among(left, [*value]), kind is ast.NotIn)
        if kind in (ast.Eq, ast.NotEq):
            return negated(self.among(left, [value]), kind is ast.NotEq)
        return self.bounded(left, kind, value)

    def among(self, node: ast.expr, values: list[Any]) -> Check:
        if self.is_length(node):
            return any_of([{"has_length": value} for value in values])
        if self.is_lowered(node):
            texts = "|".join(re.escape(str(value)) for value in values)
            return {"pattern": rf"(?i)\A(?:{texts})\Z"}
        return {"equals": values[0]} if len(values) == 1 else {"one_of": values}

    def bounded(self, node: ast.expr, kind: Any, bound: Any) -> Check:
        if isinstance(bound, bool) or not isinstance(bound, (int, float)):
            raise UnknownError
        if self.is_length(node):
            step = 1 if kind in (ast.Gt, ast.Lt) else 0
            return {"has_length": [bound + step, INFINITY] if kind in (ast.Gt, ast.GtE) else [0, bound - step]}
        within = {"range": [bound, INFINITY] if kind in (ast.Gt, ast.GtE) else [-INFINITY, bound]}
        if kind in (ast.GtE, ast.LtE):
            return within
        return {"all_of": [within, {"none_of": [{"equals": bound}]}]}

    def call(self, node: ast.Call) -> Check:
        called, arguments = node.func, node.args
        if isinstance(called, ast.Name) and called.id == "bool" and len(arguments) == 1:
            return self.check(arguments[0])
        if isinstance(called, ast.Name) and called.id == "isinstance" and self.is_value(arguments[0]):
            return of_type(self.constant(arguments[1]))
        if not isinstance(called, ast.Attribute):
            raise UnknownError
        if isinstance(called.value, ast.Name) and self.names.get(called.value.id) is re and len(arguments) == 2:
            anchors = {"match": r"\A(?:{})", "search": "{}", "fullmatch": r"\A(?:{})\Z"}
            if called.attr not in anchors or not self.is_value(arguments[1]):
                raise UnknownError
            return {"pattern": anchors[called.attr].format(self.constant(arguments[0]))}
        kinds = {"startswith": ("prefix", r"\A{}"), "endswith": ("suffix", r"{}\Z")}
        if called.attr in kinds and len(arguments) == 1 and self.is_value(called.value):
            key, pattern = kinds[called.attr]
            given = self.constant(arguments[0])
            each = given if isinstance(given, tuple) else (given,)
            return any_of([self.text(called.value, text, pattern, key) for text in each])
        raise UnknownError

    def text(self, node: ast.expr, text: Any, pattern: str, key: str = "contains") -> Check:
        if not isinstance(text, str) or self.is_length(node):
            raise UnknownError
        return {"pattern": "(?i)" + pattern.format(re.escape(text))} if self.is_lowered(node) else {key: text}

    def constant(self, node: ast.expr) -> Any:
        """Evaluate an expression that must not use the validated value. Raises UnknownError if it uses the value."""
        if any(isinstance(each, ast.Name) and each.id == self.name for each in ast.walk(node)):
            raise UnknownError
        return eval(compile(ast.Expression(node), "", "eval"), dict(self.names))

    def is_none(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Constant) and node.value is None

    def is_value(self, node: ast.expr) -> bool:
        """Return whether an expression is the validated value, its length, or its text in lower case."""
        return self.is_own(node) or self.is_length(node) or self.is_lowered(node)

    def is_own(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.name

    def is_length(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "len":
            return False
        return len(node.args) == 1 and self.is_own(node.args[0])

    def is_lowered(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.args:
            return False
        return node.func.attr in ("lower", "casefold") and self.is_own(node.func.value)


def merged(parts: list[Check]) -> Check:
    """Return one check for the parts of a chained comparison such as `1 < x < 5`."""
    for kind in ("range", "has_length"):
        if all(part.keys() == {kind} for part in parts):
            lows, highs = zip(*(part[kind] for part in parts), strict=True)
            return {kind: [max(lows), min(highs)]}
    return {"all_of": parts}


def any_of(checks: list[Check]) -> Check:
    return checks[0] if len(checks) == 1 else {"any_of": checks}


def negated(check: Check, negates: bool) -> Check:
    return {"none_of": [check]} if negates else check


def of_type(kinds: Any) -> Check:
    each = kinds if isinstance(kinds, tuple) else (kinds,)
    names = [TYPES[kind] for kind in each if kind in TYPES]
    if len(names) != len(each):
        raise UnknownError
    if "number" in names:
        names = [name for name in names if name != "integer"]
    return any_of([{"type": name} for name in names])


def validator_of(function: Any) -> dict[str, Any]:
    """Describe a validator as a table with its code.

    The table also has an equivalent check, or else the import path of the function, if either exists."""
    name = getattr(function, "__qualname__", repr(function))
    found: dict[str, Any] = {"validator": name}
    try:
        node = node_of(function)
        found["validator"] = ast.unparse(node) if isinstance(node, ast.Lambda) else name
        found["check"] = check_of(function)
    except UnknownError:
        module = getattr(function, "__module__", "")
        if module not in ("", "__main__", "builtins") and name.isidentifier():
            found["check"] = {"python": f"{module}:{name}"}
    return found


# The tests.


def described(value: Any, level: int = 0) -> Any:
    """Convert a value to JSON's types.

    An object becomes a table of its attributes, and a function becomes the description of a validator."""
    if value is None or isinstance(value, (str, bool, int, float)) or level > 12:
        return value if isinstance(value, (str, bool, int, float)) else None
    if isinstance(value, dict):
        return {str(key): described(each, level + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [described(each, level + 1) for each in value]
    if callable(value):
        return validator_of(value)
    if hasattr(value, "__dict__"):
        return described(vars(value), level + 1)
    return str(value)


def definitions_in(values: list[Any]) -> list[Any]:
    """Return the first value that is a list of tool definitions in the form of Anthropic's API.

    Returns an empty list if there is no such value."""
    for value in values:
        if isinstance(value, list) and value and all(map(is_definition, value)):
            return value
    return []


def is_definition(value: Any) -> bool:
    return isinstance(value, dict) and "name" in value and ("input_schema" in value or "parameters" in value)


def without_infinity(value: Any) -> Any:
    """Replace infinities in a value by texts, because JSON has no infinity."""
    if isinstance(value, dict):
        return {key: without_infinity(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without_infinity(each) for each in value]
    return str(value) if value in (INFINITY, -INFINITY) else value


def document_of(evaluations: list[Any], module: types.ModuleType) -> dict[str, Any]:
    tests = [each for each in evaluations if type(each).__name__ == "TestCase"]
    others = [each for each in evaluations if type(each).__name__ != "TestCase"]
    held = [value for each in others for value in vars(each).values()]
    systems = [getattr(each, "system_prompt", "") for each in others]
    return {
        "tests": [described(each) for each in tests],
        "tools": definitions_in([*held, *vars(module).values()]),
        "system": next((text for text in systems if isinstance(text, str) and text), ""),
    }


def main(path: str) -> None:
    # Only the result may be written to standard output, so prints of the script go to standard error.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    source = sys.stdin.buffer.read()
    file = str(Path(path).resolve())
    sys.path[0] = str(Path(file).parent)
    sys.argv = [path]
    module = types.ModuleType("__main__")
    module.__file__ = file
    sys.modules["__main__"] = module
    # The script cannot create a client without a key. This key is never sent.
    os.environ.setdefault("ANTHROPIC_API_KEY", "not-needed")
    made = record_instances()
    SOURCES[file] = source.decode("utf-8", "replace")
    socket.getaddrinfo = socket.socket.connect = raise_asked  # type: ignore[method-assign]
    problems: list[dict[str, str]] = []
    try:
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
    except (AskedError, SystemExit):
        pass
    except Exception as error:  # noqa: BLE001 - whatever a file of the user raises
        reason = f"{type(error).__name__}: {error}"
        if not made:
            sys.exit(reason)
        problems.append({"name": "after the tests were made", "error": reason})
    found = {"five_dimensions": document_of(made, module), "problems": problems}
    json.dump(without_infinity(found), answer, default=str)
    answer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
