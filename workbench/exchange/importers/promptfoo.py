"""Configurations and results of promptfoo, and of others that write them, with assertions about tool calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from workbench.dataclasses import json_text, parsed_json
from workbench.exchange.importers.conversations import (
    Conversation,
    Format,
    Imported,
    ImportedCase,
    ImportedRun,
    Mapped,
    Note,
    case_of,
    graded_as,
    last_request,
    not_imported,
    tool_of,
)
from workbench.exchange.importers.messages import conversation_of, number_of
from workbench.exchange.importers.promptfoo_asserts import Expectations
from workbench.exchange.importers.source_files import Node, RefusedError, Source, read_source
from workbench.limits import MAX_INCLUDED_FILES, MAX_TEST_CASES
from workbench.numerals import counted
from workbench.suite.render import Table
from workbench.trajectory.events import JsonValue, Message, SourceScore

# The files that a configuration of promptfoo names: prompts, tests, tools, variables. Only data is read, and only
# below the configuration's folder: code is never run, and what is read gets into a suite.

_SCHEME = "file://"
_DATA = {".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv", ".tsv"}
_TEXTS = {".txt", ".md", ".j2", ".njk", ".html", ".xml", ""}
_CODE = re.compile(r".*\.(?:[cm]?[jt]s|py|rb|go|sh|exe)(?::\w+)?")
_ASSERTION = re.compile(r"(not-)?([a-z][a-z0-9:-]*?)(?:\(([0-9.]+)\))?(?::\s*(.*))?", 16)  # 16: a dot is any character
_LISTED = {"contains-any", "contains-all", "icontains-any", "icontains-all", "tool-call-f1"}
_KINDS = _LISTED | {
    "contains",
    "cost",
    "equals",
    "icontains",
    "is-json",
    "is-valid-openai-function-call",
    "is-valid-openai-tools-call",
    "javascript",
    "latency",
    "llm-rubric",
    "python",
    "regex",
    "similar",
    "starts-with",
    "trajectory:tool-used",
}


class Files:
    """Reads the files of a configuration.

    What could not be read is among the notes, and stays as it is written."""

    def __init__(self, folder: Path) -> None:
        self.notes: list[Note] = []
        self._folder = folder

    def filled(self, node: Node, level: int = 0) -> Node:
        """Return a value in which the content of files stands for their names."""
        match node.value:
            case dict() as table:
                inner: JsonValue = {
                    key: self.filled(Node(each, f"{node.place}.{key}".lstrip(".")), level).value
                    for key, each in table.items()
                }
            case list():
                inner = [self.filled(each, level).value for each in node.items()]
            case str() as text if text.startswith(_SCHEME) and level < MAX_INCLUDED_FILES:
                found = [self.filled(Node(each, node.place), level + 1).value for each in self._contents(text, node)]
                inner = found[0] if len(found) == 1 else found or text
            case _:
                inner = node.value
        return Node(inner, node.place)

    def tests(self, node: Node) -> list[Node]:
        """Return the tests of a configuration: those in it and those of its files."""
        found: list[Node] = []
        for each in node.listed():
            named = each.get("path") if each.has("path") and not each.has("vars") else each
            if named is None or not isinstance(named.value, str):
                found.append(self.filled(each))
                continue
            for content in self._contents(named.value, named, tests=True):
                rows = content if isinstance(content, list) else [content]
                found += [self.filled(Node(row, f"{each.place}[{at}]")) for at, row in enumerate(rows)]
        return found

    def prompts(self, node: Node) -> Iterator[Node]:
        """Return the texts of prompts, those in files too: a text file may hold several, with `---` between them."""
        for each in node.listed():
            prompt = each.first("raw", "content") or each.get("id") or each
            if not isinstance(prompt.value, str) or not self._is_file(prompt.value):
                yield prompt
                continue
            for content in self._contents(prompt.value, prompt):
                if isinstance(content, str):
                    parts = content.split("\n---\n")
                    yield from (Node(part.strip(), prompt.place) for part in parts if part.strip())
                    continue
                rows = content if isinstance(content, list) else []
                if prompt.value.endswith((".csv", ".tsv", ".jsonl", ".ndjson")):
                    texts = [row.get("prompt", row) if isinstance(row, dict) else row for row in rows]
                else:
                    texts = [content]
                for text in texts:
                    yield Node(text if isinstance(text, str) else json_text(text), prompt.place)

    def _is_file(self, text: str) -> bool:
        if text.startswith(_SCHEME):
            return True
        if "\n" in text or len(text) > 200 or Path(text).suffix not in _DATA | {".txt", ".md"}:
            return False
        return (self._folder / text).is_file()

    def _contents(self, text: str, node: Node, *, tests: bool = False) -> list[JsonValue]:
        """Return what files hold, empty where that cannot be read."""
        found: list[JsonValue] = []
        try:
            for path in self._paths(text.removeprefix(_SCHEME)):
                content = _content(path)
                if tests and path.suffix.lower() in (".csv", ".tsv") and isinstance(content, list):
                    content = _tests_of_rows(content)
                found.append(content)
        except (RefusedError, OSError, ValueError, NotImplementedError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self.notes.append(Note(node.place, f"{text}: {why}"))
            return []
        return found

    def _paths(self, name: str) -> list[Path]:
        if _CODE.fullmatch(name):
            raise RefusedError("is code, and importing runs nothing")
        paths = sorted(self._folder.glob(name)) if set("*?[") & set(name) else [self._folder / name]
        if not paths:
            raise RefusedError("there is no such file")
        top = self._folder.resolve()
        if any(not path.resolve().is_relative_to(top) for path in paths):
            raise RefusedError("is outside of the configuration's folder: copy it there")
        return paths


def _content(path: Path) -> JsonValue:
    kind = path.suffix.lower()
    if kind in _DATA:
        return read_source(path).root.value
    if kind in _TEXTS:
        return path.read_bytes().decode("utf-8-sig").rstrip("\n")
    raise RefusedError(f"is a file of the kind {kind}")


def _tests_of_rows(rows: list[JsonValue]) -> list[JsonValue]:
    """Return the rows of a CSV file as tests: columns that begin with `__` say what is expected, others are variables.

    A cell that is empty in one row is an empty variable."""
    tables = [row for row in rows if isinstance(row, dict)]
    names = list(dict.fromkeys(name for row in tables for name in row if not name.startswith("__")))
    found: list[JsonValue] = []
    for row in tables:
        asserts = [
            _assertion(value)
            for name, value in row.items()
            if name.startswith("__expected") and isinstance(value, str) and value.strip()
        ]
        test: dict[str, JsonValue] = {"vars": {name: row.get(name, "") for name in names}, "assert": asserts}
        if "__description" in row:
            test["description"] = row["__description"]
        left = {name: row[name] for name in row if name.startswith("__") and not name.startswith("__expected")}
        found.append({**{name: value for name, value in left.items() if name != "__description"}, **test})
    return found


def _assertion(text: str) -> JsonValue:
    """Return an assertion that is written in one cell: `type: value`, `type(threshold): value`, or the answer."""
    text = text.strip()
    for beginning in ("javascript:", "fn:", "eval:"):
        if text.startswith(beginning):
            return {"type": "javascript", "value": text.removeprefix(beginning).strip()}
    if text.startswith("grade:"):
        return {"type": "llm-rubric", "value": text.removeprefix("grade:").strip()}
    match = _ASSERTION.fullmatch(text)
    if match is None or match[2] not in _KINDS:
        return {"type": "equals", "value": text}
    made: dict[str, JsonValue] = {"type": (match[1] or "") + match[2]}
    if match[4]:
        made["value"] = [part.strip() for part in match[4].split(",")] if match[2] in _LISTED else match[4]
    if match[3]:
        try:
            made["threshold"] = float(match[3])
        except ValueError:
            return {"type": "equals", "value": text}
    return made


# The tests of promptfoo as cases: a prompt with variables, and what its assertions expect.

_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}")
_OF_TEST = {"description", "vars", "assert"}


def cases_of(
    test: Node, defaults: Node | None, prompts: list[Node], tools: tuple[Table, ...]
) -> Iterator[ImportedCase]:
    test.table()
    given: dict[str, JsonValue] = {}
    for each in (defaults, test):
        variables = each.get("vars") if each is not None else None
        given |= variables.table() if variables is not None else {}
    choices: list[list[JsonValue]] = [value if isinstance(value, list) else [value] for value in given.values()]
    count = len(prompts)
    for values in choices:
        count *= len(values)
    if count > MAX_TEST_CASES:
        raise test.refused(MAX_TEST_CASES.reached(count=count))
    variants = [dict(zip(given, chosen, strict=True)) for chosen in product(*choices)]
    for number, (prompt, variant) in enumerate(product(prompts, variants), start=1):
        asserts = [one for each in (defaults, test) for one in _asserts(each)]
        conversation = _conversation(prompt, variant, test)
        name = test.text_of("description")
        numbered = f"{name} {number}".strip() if name and count > 1 else name
        yield case_of_test(test, asserts, conversation, variant, tools, numbered)


def _asserts(test: Node | None) -> list[Node]:
    listed = test.get("assert") if test is not None else None
    return listed.items() if listed is not None else []


def case_of_test(
    test: Node,
    asserts: list[Node],
    conversation: Conversation,
    values: dict[str, JsonValue],
    tools: tuple[Table, ...],
    name: str,
) -> ImportedCase:
    """Return a case that expects what assertions say about the answer to a conversation.

    Raises RefusedError."""
    opening = Conversation(test.place, conversation.messages, conversation.system, tools, name=name)
    asked = case_of(opening, last_request(opening.messages))
    expectations = Expectations(values, [str(tool["name"]) for tool in tools])
    for one in asserts:
        expectations.take(one)
    table = {key: value for key, value in asked.table.items() if key != "expect_nothing_yet"}
    table |= expectations.keys()
    notes = list(conversation.notes) + expectations.notes
    others = [key for key in test.table() if key not in _OF_TEST and test.table()[key] not in (None, {}, [])]
    if others:
        notes.append(not_imported(test.place, ", ".join(others)))
    return ImportedCase(test.place, table, (Mapped("prompt and vars", "user"), *expectations.mapped), tuple(notes))


def _conversation(prompt: Node, values: dict[str, JsonValue], test: Node) -> Conversation:
    """Return a prompt with its variables filled in.

    Raises RefusedError for a template that does more."""

    def filled(text: str) -> str:
        return _VARIABLE.sub(lambda match: _value(match[1], values, test), text)

    text = prompt.text()
    if "{%" in text or "{#" in text or "{{" in _VARIABLE.sub("", text):
        raise prompt.refused("a template with more than {{variables}}: write the request of each case")
    return conversation_of_prompt(Node(text, prompt.place), filled)


def conversation_of_prompt(prompt: Node, filled: Callable[[str], str] = lambda text: text) -> Conversation:
    """Return a prompt as a conversation: the JSON text of messages, or the request itself.

    Raises RefusedError."""
    text = prompt.text()
    if text.lstrip().startswith("["):
        return conversation_of(Node(_filled(prompt.parsed().value, filled), prompt.place))
    return Conversation(prompt.place, (Message("user", filled(text)),))


def _filled(value: JsonValue, filled: Callable[[str], str]) -> JsonValue:
    if isinstance(value, dict):
        return {key: _filled(inner, filled) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, filled) for inner in value]
    return filled(value) if isinstance(value, str) else value


def _value(name: str, values: dict[str, JsonValue], test: Node) -> str:
    found: JsonValue = values
    for key in name.split("."):
        if not isinstance(found, dict) or key not in found:
            raise test.refused(f"has no variable {name!r}, which the prompt asks for")
        found = found[key]
    if isinstance(found, str):
        if found.startswith("file://"):
            raise test.refused(f"the variable {name!r} is in another file")
        return found
    return json_text(found)


# The results of promptfoo (version 3 of its output): each test with a prompt is a case, each answer to it a run.

_CALLS = ("tool_use", "function_call")


def results_in(root: Node) -> list[Node]:
    """Return the results in a file of results, empty for any other file."""
    inner = root.get("results")
    listed = inner.get("results") if inner is not None else None
    rows = listed.items() if listed is not None and isinstance(listed.value, list) else []
    return rows if all(row.has("testCase", "prompt") for row in rows) else []


def cases_of_results(
    results: list[Node], tools: tuple[Table, ...], model_of: Callable[[str], str | None], notes: list[Note]
) -> list[ImportedCase]:
    """Return a case of each test with a prompt, with the runs of it.

    What cannot be taken is added to the notes."""
    groups: dict[str, list[Node]] = {}
    for result in results:
        prompt, values = result.get("prompt"), result.get("vars")
        raw = prompt.text_of("raw") if prompt is not None else ""
        key = json_text([raw, values.value if values is not None else None, result.text_of("description")])
        number = result.get("testIdx")
        groups.setdefault(f"{number.value if number is not None else ''} {key}", []).append(result)
    cases: list[ImportedCase] = []
    for group in groups.values():
        try:
            cases.append(_case(group, tools, model_of))
        except RefusedError as error:
            notes.append(not_imported(error.place, error.why))
    return cases


def _case(group: list[Node], tools: tuple[Table, ...], model_of: Callable[[str], str | None]) -> ImportedCase:
    first = group[0]
    test, given = first.need("testCase"), first.get("vars")
    values = given.table() if given is not None else {}
    raw = first.need("prompt").need("raw")
    asserts = test.get("assert")
    listed = asserts.items() if asserts is not None else []
    conversation = conversation_of_prompt(raw)
    case = case_of_test(test, listed, conversation, values, tools, test.text_of("description"))
    runs: list[ImportedRun] = []
    notes: list[Note] = []
    passed = 0
    for result in group:
        answer = result.get("response")
        if answer is None or not answer.has("output"):
            why = (answer or result).text_of("error") or "it holds no output"
            notes.append(Note(result.place, f"a run is not imported: {why}"))
            continue
        run = _run(result, answer, raw, tools, model_of)
        runs.append(replace(run, scores=_scores(result)))
        success = result.get("success")
        passed += success is not None and success.value is True
    verdicts = f"recordings; promptfoo's verdicts: {passed} passed, {len(runs) - passed} failed"
    mapped = (*case.mapped, Mapped(counted(len(runs), "result"), verdicts)) if runs else case.mapped
    return replace(case, place=first.place, mapped=mapped, runs=tuple(runs)).noted(*notes)


def _scores(result: Node) -> tuple[SourceScore, ...]:
    """Return promptfoo's own score and verdict."""
    success, score = result.get("success"), number_of(result.get("score"))
    if success is None or not isinstance(success.value, bool):
        return ()
    value = float(success.value) if score is None else min(score, 1.0)
    return (SourceScore("score of promptfoo", value, success.value, result.place),)


def _run(
    result: Node, answer: Node, raw: Node, tools: tuple[Table, ...], model_of: Callable[[str], str | None]
) -> ImportedRun:
    said = _message(answer.need("output"))
    tokens, latency = answer.get("tokenUsage"), result.get("latencyMs")
    if tokens is not None:
        details = tokens.get("completionDetails")
        reasoning = details.get("reasoning") if details is not None else None
        said["usage"] = {
            "prompt_tokens": tokens.table().get("prompt"),
            "completion_tokens": tokens.table().get("completion"),
            "completion_tokens_details": {"reasoning_tokens": reasoning.value if reasoning is not None else None},
        }
    if latency is not None and answer.table().get("cached") is not True:
        said["latency_ms"] = latency.value
    before: list[JsonValue] = [{"role": "user", "content": raw.value}]
    provider = result.get("provider")
    name = provider.text_of("id") or provider.text_of("label") if provider is not None else ""
    conversation = conversation_of(
        Node(
            {
                "messages": [*before, said],
                "model": model_of(name) or name,
                "tools": [{"name": str(tool["name"])} for tool in tools],
            },
            answer.place,
        )
    )
    (run,) = case_of(conversation).runs
    return run


def _message(output: Node) -> dict[str, JsonValue]:
    """Return an output as an answer: calls as OpenAI has them, or a text in which Anthropic's and those of Responses
    have a line each."""
    if isinstance(output.value, str):
        whole = _parsed(output.value)
        lines = [_parsed(line) for line in output.value.splitlines()]
        if whole is not None and _calls(Node(whole, output.place)) is not None:
            return _message(Node(whole, output.place))
        called = [each for each in lines if isinstance(each, dict) and each.get("type") in _CALLS]
        if not called:
            return {"role": "assistant", "content": output.value}
        pairs = zip(output.value.splitlines(), lines, strict=True)
        texts = [line for line, each in pairs if not (isinstance(each, dict) and each.get("type") in _CALLS)]
        made = _calls(Node([*called], output.place))
        return {"role": "assistant", "content": "\n".join(texts).strip(), "tool_calls": made or []}
    calls = _calls(output)
    if calls is None:
        return {"role": "assistant", "content": json_text(output.value)}
    return {"role": "assistant", "content": output.text_of("content"), "tool_calls": calls}


def _parsed(text: str) -> JsonValue:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        found: JsonValue = parsed_json(text)
    except ValueError:
        return None
    return found


def _calls(output: Node) -> list[JsonValue] | None:
    """Return the calls of an output, `None` where it is none."""
    listed = output.get("tool_calls") or output
    made: list[JsonValue] = []
    for each in listed.listed():
        inner = each.get("function") or each
        arguments = inner.first("arguments", "input")
        if not isinstance(inner.value, dict) or not inner.text_of("name") or arguments is None:
            return None
        call: JsonValue = {"name": inner.text_of("name"), "arguments": arguments.value}
        made.append({"id": each.text_of("call_id", "id"), "function": call})
    return made or None


_MODELS = {
    "openai:chat:": "openai:",
    "openai:responses:": "openai-responses:",
    "openai:": "openai:",
    "anthropic:messages:": "anthropic:",
    "anthropic:": "anthropic:",
}
_READ = {"prompts", "providers", "targets", "tests", "defaultTest", "description"}


def _config(source: Source) -> Node:
    """Return the configuration: the file, or the one in a file of results."""
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
    """Return the model of a provider's id, `None` for one that is no model here."""
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
