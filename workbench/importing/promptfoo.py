"""Configurations and results of promptfoo, and of others that write them, with assertions about tool calls."""

from __future__ import annotations

from workbench.importing.bounds import RefusedError
from workbench.importing.conversations import tool_of
from workbench.importing.imported import Format, Imported, ImportedCase, Note, graded_as, not_imported
from workbench.importing.promptfoo_cases import cases_of
from workbench.importing.promptfoo_files import Files
from workbench.importing.promptfoo_results import cases_of_results, results_in
from workbench.importing.reading import Node, Source
from workbench.suite.render import Table

_MODELS = {
    "openai:chat:": "openai:",
    "openai:responses:": "openai-responses:",
    "openai:": "openai:",
    "anthropic:messages:": "anthropic:",
    "anthropic:": "anthropic:",
}
_READ = {"prompts", "providers", "targets", "tests", "defaultTest", "description"}


def _config(source: Source) -> Node:
    """Returns the configuration: the file, or the one in a file of results."""
    root = source.root
    inner = root.get("config")
    return inner if inner is not None and root.has("results") else root


def _recognizes(source: Source) -> bool:
    config = _config(source)
    written = config.has("tests") and (config.has("prompts") or config.has("providers") or config.has("targets"))
    return written or bool(results_in(source.root))


def _read(source: Source) -> Imported:
    config = _config(source)
    notes: list[Note] = []
    files = Files(source.path.parent)
    tools, models = _providers(config, files, notes)
    results = results_in(source.root)
    cases: list[ImportedCase] = []
    if results:
        cases += cases_of_results(results, tools, model_of, notes)
    else:
        written = config.get("prompts")
        prompts = list(files.prompts(written)) if written is not None else []
        if not prompts:
            first = files.notes[0] if files.notes else Note("prompts", "has no prompt that is written in it")
            raise RefusedError(first.why, first.place)
        defaults = config.get("defaultTest")
        defaults = files.filled(defaults) if defaults is not None else None
        defaults = defaults if defaults is not None and isinstance(defaults.value, dict) else None
        for test in files.tests(config.need("tests")):
            try:
                cases += cases_of(test, defaults, prompts, tools)
            except RefusedError as error:
                notes.append(not_imported(error.place, error.why))
    notes = [*(not_imported(note.place, note.why) for note in files.notes), *notes]
    others = [key for key in config.table() if key not in _READ and config.table()[key] not in (None, {}, [])]
    if others:
        notes.append(not_imported("", ", ".join(others)))
    if not cases:
        raise RefusedError(notes[0].why if notes else "holds no test", notes[0].place if notes else "tests")
    suite: Table = {"grading": {"by": "trajectory"}}
    if models:
        suite["models"] = models
    return Imported(tuple(cases), suite, tuple(notes))


def model_of(provider: str) -> str | None:
    """Returns the model of a provider's id, `None` for one that is no model here."""
    beginning = next((known for known in _MODELS if provider.startswith(known)), None)
    if beginning is None or provider == beginning:
        return None
    return _MODELS[beginning] + provider.removeprefix(beginning)


def _providers(config: Node, files: Files, notes: list[Note]) -> tuple[tuple[Table, ...], list[str]]:
    tools: dict[str, Table] = {}
    models: list[str] = []
    providers = config.first("providers", "targets")
    for each in providers.listed() if providers is not None else []:
        each = files.filled(each)
        provider = each
        name = each.value if isinstance(each.value, str) else each.text_of("id")
        if not name and isinstance(each.value, dict) and len(each.value) == 1:
            ((name, _),) = each.value.items()
            provider = each.need(name) if each.has(name) else each
        if isinstance(name, str) and (model := model_of(name)) is not None:
            models.append(model)
        else:
            notes.append(not_imported(each.place, f"the provider {name!r}; write a model into the suite"))
        options = provider.get("config")
        for key in ("tools", "functions"):
            listed = options.get(key) if options is not None else None
            inner = listed.listed() if listed is not None else []
            for tool in (one for some in inner for one in some.listed()):
                if isinstance(tool.value, str):  # a file that could not be read, which the notes of files say
                    continue
                table = tool_of(tool)
                if tools.setdefault(str(table["name"]), table) != table:
                    notes.append(not_imported(tool.place, f"a second definition of {table['name']}"))
        others = [key for key in (options.table() if options is not None else {}) if key not in ("tools", "functions")]
        if others:
            notes.append(not_imported(provider.place, f"the provider's {', '.join(others)}"))
    return tuple(tools.values()), list(dict.fromkeys(models))


PROMPTFOO = Format(_recognizes, _read, graded_as("every"))
