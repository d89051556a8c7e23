"""The file formats that can be imported.

To add a format, write a module with a `Format`, a row here and in docs/importing.md, and a sample for its tests in
`tests/exchange/importers/samples.py`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from workbench.exchange.importers.conversations import Format
    from workbench.exchange.importers.source_files import Source


class Form(NamedTuple):
    """A file format that can be imported: its module, the name of the `Format` in the module, and a description."""

    module: str
    attribute: str
    what: str


FORMS: dict[str, Form] = {
    "openai": Form("messages", "OPENAI", "messages or Responses items in OpenAI's form"),
    "anthropic": Form("messages", "ANTHROPIC", "messages in Anthropic's form"),
    "table": Form("tables", "TABLE", "a table with a request in each row"),
    "promptfoo": Form("promptfoo", "PROMPTFOO", "a configuration of promptfoo"),
    "otel": Form("spans", "SPANS", "traces of OpenTelemetry or OpenInference as OTLP JSON"),
    "bfcl": Form("bfcl", "BFCL", "rows of the Berkeley Function Calling Leaderboard"),
    "claude-code": Form("claude_code", "CLAUDE_CODE", "a session of Claude Code"),
    "atif": Form("atif", "ATIF", "trajectories of ATIF, the Agent Trajectory Interchange Format"),
    "adk": Form("adk", "ADK", "an evaluation set of Google's ADK"),
    "deepeval": Form("deepeval", "DEEPEVAL", "goldens of DeepEval"),
    "inspect": Form("inspect_logs", "INSPECT", "a log of Inspect"),
    "tau": Form("tau", "TAU", "results of tau-bench or tau2-bench"),
    "langsmith": Form("langsmith", "LANGSMITH", "examples of a dataset of LangSmith"),
    "agentevals": Form("langsmith", "AGENTEVALS", "trajectories of agentevals"),
    "dimensions": Form("dimensions", "DIMENSIONS", "a script of the five-dimension evaluator, run once trusted"),
    "evalite": Form("evalite", "EVALITE", "results of Evalite, results.json"),
    "arcade": Form("arcade", "ARCADE", "a Python file of Arcade evals, run once trusted"),
    "toolvaluator": Form("toolvaluator", "TOOLVALUATOR", "a script of Toolvaluator, run once trusted, or its dataset"),
}
"""Every form by the name that `--from` takes."""

FORMS_WITH_MATCH = ("agentevals", "adk", "langsmith", "deepeval")
"""The forms whose expected calls `--match` compares."""


def format_of(name: str) -> Format:
    # This import is lazy, because the command line needs only the names and descriptions of formats.
    form = FORMS[name]
    found: Format = getattr(import_module(f"workbench.exchange.importers.{form.module}"), form.attribute)
    return found


def forms_that_fit(source: Source) -> list[str]:
    """Return the names of all formats that clearly fit a file.

    If the user mapped fields, the only format is a table. Otherwise, a file counts as a table only if no other format
    fits."""
    if source.fields is not None:
        return ["table"]
    fit = [name for name in FORMS if format_of(name).recognizes(source)]
    return [name for name in fit if name != "table"] or fit
