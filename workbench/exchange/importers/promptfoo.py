"""Import promptfoo's configurations and results, with their assertions about tool calls.

Other programs also write files in this form."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

from workbench.dataclasses import json_text, parsed_json
from workbench.exchange.importers.conversations import (
    Conversation,
    Format,
    ImportedCase,
    ImportedFile,
    ImportedRun,
    MappedPart,
    Note,
    case_of,
    first_refusal,
    graded_as,
    last_request,
    not_imported,
    tool_names,
    tool_of,
)
from workbench.exchange.importers.messages import conversation_of, nonnegative_number, openai_result
from workbench.exchange.importers.promptfoo_asserts import Expectations
from workbench.exchange.importers.source_files import Node, RefusedError, Source, as_text, placed_at, read_source
from workbench.limits import MAX_INCLUDED_FILES, MAX_TEST_CASES
from workbench.numerals import counted
from workbench.suite.render import Table
from workbench.trajectory.events import JsonValue, Message, SourceScore

# The files that a configuration of promptfoo names: prompts, tests, tools, variables. A configuration may come from a
# stranger, and an import copies the content of its files into the suite. So only data files below the configuration's
# folder are read, and code is never run.

_SCHEME = "file://"
_DATA = {".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv", ".tsv"}
_TEXTS = {".txt", ".md", ".j2", ".njk", ".html", ".xml", ""}
_CODE = re.compile(r".*\.(?:[cm]?[jt]s|py|rb|go|sh|exe)(?::\w+)?")
# 16 is the flag DOTALL, with which a dot matches line breaks too.
_ASSERTION = re.compile(r"(not-)?([a-z][a-z0-9:-]*?)(?:\(([0-9.]+)\))?(?::\s*(.*))?", 16)
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
    """Reads the files that a configuration names.

    For a file that cannot be read, `notes` gets a note, and the name stays in place of the content."""

    def __init__(self, folder: Path) -> None:
        self.notes: list[Note] = []
        self._folder = folder

    def filled(self, node: Node, level: int = 0) -> Node:
        """Return a value in which the names of files are replaced by their content."""
        match node.value:
            case dict() as table:
                filled: dict[str, JsonValue] = {}
                for key, each in table.items():
                    filled[key] = self.filled(Node(each, f"{node.place}.{key}".lstrip(".")), level).value
                inner: JsonValue = filled
            case list():
                inner = self._all_filled(node.items(), level)
            case str() as text if text.startswith(_SCHEME) and level < MAX_INCLUDED_FILES:
                found = self._all_filled(placed_at(node.place, self._contents(text, node)), level + 1)
                inner = found[0] if len(found) == 1 else found or text
            case _:
                inner = node.value
        return Node(inner, node.place)

    def _all_filled(self, nodes: list[Node], level: int) -> list[JsonValue]:
        return [self.filled(each, level).value for each in nodes]

    def tests(self, node: Node) -> list[Node]:
        """Return the tests of a configuration, including those in the files that it names."""
        found: list[Node] = []
        for each in node.listed():
            named = each
            if each.has("path") and not each.has("vars"):
                named = each.at("path")
            if not isinstance(named.value, str):
                found.append(self.filled(each))
                continue
            for content in self._contents(named.value, named, tests=True):
                rows: JsonValue = content if isinstance(content, list) else [content]
                found += map(self.filled, Node(rows, each.place).items())
        return found

    def prompts(self, node: Node) -> Iterator[Node]:
        """Yield the texts of prompts, including those in files.

        In a text file, a line `---` separates two prompts."""
        for each in node.listed():
            prompt = each.first("raw", "content") or each.get("id") or each
            if not isinstance(prompt.value, str) or not self._is_file(prompt.value):
                yield prompt
                continue
            for content in self._contents(prompt.value, prompt):
                if isinstance(content, str):
                    parts = content.split("\n---\n")
                    for part in parts:
                        if part.strip():
                            yield Node(part.strip(), prompt.place)
                    continue
                texts: list[JsonValue] = [content]
                if isinstance(content, list) and prompt.value.endswith((".csv", ".tsv", ".jsonl", ".ndjson")):
                    texts = []
                    for row in content:
                        texts.append(Node(row).value_of("prompt") or row)
                for text in texts:
                    yield Node(as_text(text), prompt.place)

    def _is_file(self, text: str) -> bool:
        if text.startswith(_SCHEME):
            return True
        if "\n" in text or len(text) > 200 or Path(text).suffix not in _DATA | {".txt", ".md"}:
            return False
        return (self._folder / text).is_file()

    def _contents(self, text: str, node: Node, *, tests: bool = False) -> list[JsonValue]:
        found: list[JsonValue] = []
        try:
            for path in self._paths(text.removeprefix(_SCHEME)):
                content = _content(path)
                if tests and path.suffix.lower() in (".csv", ".tsv") and isinstance(content, list):
                    content = _tests_of_rows(content)
                found.append(content)
        except (RefusedError, OSError, ValueError, NotImplementedError) as error:
            why = getattr(error, "strerror", None) or str(error)
            self.notes.append(Note(node.place, f"{text}: {why}"))
            return []
        return found

    def _paths(self, name: str) -> list[Path]:
        if _CODE.fullmatch(name):
            raise RefusedError("is code, and an import runs no code")
        paths = [self._folder / name]
        if set("*?[") & set(name):
            paths = sorted(self._folder.glob(name))
        if not paths:
            raise RefusedError("there is no such file")
        top = self._folder.resolve()
        if any(not path.resolve().is_relative_to(top) for path in paths):
            raise RefusedError("is outside the configuration's folder: copy it there")
        return paths


def _content(path: Path) -> JsonValue:
    kind = path.suffix.lower()
    if kind in _DATA:
        return read_source(path).root.value
    if kind in _TEXTS:
        return path.read_bytes().decode("utf-8-sig").rstrip("\n")
    raise RefusedError(f"is a file of type {kind}, and only {', '.join(sorted(_DATA | _TEXTS - {''}))} can be read")


def _tests_of_rows(rows: list[JsonValue]) -> list[JsonValue]:
    """Return the rows of a CSV file as tests.

    A column is a variable, unless its name begins with `__`, as in `__expected`. An empty cell is a variable with an
    empty text."""
    tables = [row for row in rows if isinstance(row, dict)]
    names: dict[str, None] = {}
    for row in tables:
        for name in row:
            if not name.startswith("__"):
                names[name] = None
    found: list[JsonValue] = []
    for row in tables:
        asserts: list[JsonValue] = []
        test: dict[str, JsonValue] = {"vars": {name: row.get(name, "") for name in names}, "assert": asserts}
        for name, value in row.items():
            if name == "__description":
                test["description"] = value
            elif name.startswith("__expected"):
                if isinstance(value, str) and value.strip():
                    asserts.append(_assertion(value))
            elif name.startswith("__"):
                test[name] = value
        found.append(test)
    return found


def _assertion(text: str) -> JsonValue:
    """Return the assertion in a cell of a CSV file: `type: value`, `type(threshold): value`, or the expected answer."""
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
    if match[4] and match[2] in _LISTED:
        made["value"] = list(map(str.strip, match[4].split(",")))
    elif match[4]:
        made["value"] = match[4]
    if match[3]:
        try:
            made["threshold"] = float(match[3])
        except ValueError:
            return {"type": "equals", "value": text}
    return made


# Tests of promptfoo become cases: a prompt with variables, and expectations made from the test's assertions.

_VARIABLE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}")
_OF_TEST = {"description", "vars", "assert"}


def cases_of(test: Node, defaults: Node, prompts: list[Node], tools: tuple[Table, ...]) -> Iterator[ImportedCase]:
    """Yield a case for each prompt and each combination of values, if variables of the test list several values.

    `defaults` is the configuration's `defaultTest`, or an empty table. Raises RefusedError."""
    test.table()
    given: dict[str, JsonValue] = {}
    for each in (defaults, test):
        if (variables := each.get("vars")) is not None:
            given |= variables.table()
    choices: list[list[JsonValue]] = []
    for value in given.values():
        choices.append(value if isinstance(value, list) else [value])
    # A few variables with a hundred values each give millions of combinations, so they are counted before they are
    # made.
    count = len(prompts) * math.prod(map(len, choices))
    if count > MAX_TEST_CASES:
        raise test.refused(MAX_TEST_CASES.reached(count=count))
    variants = []
    for chosen in product(*choices):
        variants.append(dict(zip(given, chosen, strict=True)))
    asserts = [*defaults.items_of("assert"), *test.items_of("assert")]
    for number, (prompt, variant) in enumerate(product(prompts, variants), start=1):
        conversation = _conversation(prompt, variant, test)
        name = test.text_of("description")
        if name and count > 1:
            name = f"{name} {number}"
        yield case_of_test(test, asserts, conversation, variant, tools, name)


def case_of_test(
    test: Node,
    asserts: list[Node],
    conversation: Conversation,
    values: dict[str, JsonValue],
    tools: tuple[Table, ...],
    name: str,
) -> ImportedCase:
    """Return a case for a test, with expectations made from its assertions. Raises RefusedError.

    `values` maps the names of the test's variables to their values."""
    opening = Conversation(test.place, conversation.messages, conversation.system, tools, name=name)
    asked = case_of(opening, last_request(opening.messages))
    expectations = Expectations(values, tool_names(tools))
    for one in asserts:
        expectations.add(one)
    table = asked.table_without("expect_nothing_yet") | expectations.keys()
    notes = list(conversation.notes) + expectations.notes
    others = test.other_keys(_OF_TEST)
    if others:
        notes.append(not_imported(test.place, ", ".join(others)))
    return ImportedCase(test.place, table, (MappedPart("prompt and vars", "user"), *expectations.mapped), tuple(notes))


def _conversation(prompt: Node, values: dict[str, JsonValue], test: Node) -> Conversation:
    def filled(text: str) -> str:
        return _VARIABLE.sub(lambda match: _value(match[1], values, test), text)

    text = prompt.text()
    if "{%" in text or "{#" in text or "{{" in _VARIABLE.sub("", text):
        raise prompt.refused("is a template with more than {{variables}}: write the request of each case")
    return conversation_of_prompt(Node(text, prompt.place), filled)


def conversation_of_prompt(prompt: Node, filled: Callable[[str], str] = lambda text: text) -> Conversation:
    """Convert a prompt, which is the JSON text of messages or a plain request, to a conversation. Raises RefusedError.

    `filled` replaces variables in a text by their values."""
    text = prompt.text()
    if text.lstrip().startswith("["):
        messages = Node(_filled(prompt.parsed().value, filled), prompt.place)
        read: list[Node] = []
        for each in messages.items():
            read += _with_calls(each)
        return conversation_of(messages, read)
    return Conversation(prompt.place, (Message("user", filled(text)),))


def _with_calls(message: Node) -> Iterator[Node]:
    """Yield an earlier message, with the tool calls that promptfoo wrote into its text, and their results.

    promptfoo executes no tool, so each result is empty. Providers refuse a call without a result."""
    content = message.value_of("content")
    if message.text_of("role") != "assistant" or not isinstance(content, str) or message.has("tool_calls"):
        yield message
        return
    made = Node(message.table() | _message_of_text(content, message.place), message.place)
    yield made
    for call in made.items_of("tool_calls"):
        yield Node(openai_result(call.text_of("id"), ""), message.place)


def _filled(value: JsonValue, filled: Callable[[str], str]) -> JsonValue:
    if isinstance(value, str):
        return filled(value)
    if isinstance(value, dict):
        return {key: _filled(inner, filled) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, filled) for inner in value]
    return value


def _value(name: str, values: dict[str, JsonValue], test: Node) -> str:
    found: JsonValue = values
    for key in name.split("."):
        if not isinstance(found, dict) or key not in found:
            raise test.refused(f"has no variable {name!r}, which the prompt uses")
        found = found[key]
    if isinstance(found, str):
        if found.startswith("file://"):
            raise test.refused(f"the variable {name!r} is in another file")
        return found
    return json_text(found)


# Results of promptfoo (version 3 of its output): each pair of a test and a prompt becomes a case, and each answer a
# run.

_CALLS = ("tool_use", "function_call")


def results_in(root: Node) -> list[Node]:
    listed = root.at("results").at("results")
    if not isinstance(listed.value, list):
        return []
    rows = listed.items()
    if not all(row.has("testCase", "prompt") for row in rows):
        return []
    return rows


def cases_of_results(
    results: list[Node], tools: tuple[Table, ...], model_of: Callable[[str], str | None], notes: list[Note]
) -> list[ImportedCase]:
    """Return a case for each pair of a test and a prompt, with the results as its runs.

    A note with the reason is added to `notes` for each test that is left out."""
    groups: dict[str, list[Node]] = {}
    for result in results:
        # Repeats of a test have the same index, if the file has indices at all.
        raw = result.at("prompt").text_of("raw")
        key = json_text([raw, result.value_of("vars"), result.text_of("description")])
        groups.setdefault(f"{result.value_of('testIdx')} {key}", []).append(result)
    cases: list[ImportedCase] = []
    for group in groups.values():
        try:
            cases.append(_case(group, tools, model_of))
        except RefusedError as error:
            notes.append(not_imported(error.place, error.why))
    return cases


def _case(group: list[Node], tools: tuple[Table, ...], model_of: Callable[[str], str | None]) -> ImportedCase:
    first = group[0]
    test = first.need("testCase")
    values = (first.get("vars") or Node({})).table()
    raw = first.need("prompt").need("raw")
    conversation = conversation_of_prompt(raw)
    asserts = test.items_of("assert")
    case = case_of_test(test, asserts, conversation, values, tools, test.text_of("description"))
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
        passed += result.value_of("success") is True
    mapped = case.mapped
    if runs:
        verdicts = f"recordings; promptfoo's verdicts: {passed} passed, {len(runs) - passed} failed"
        mapped = (*mapped, MappedPart(counted(len(runs), "result"), verdicts))
    return replace(case, place=first.place, mapped=mapped, runs=tuple(runs)).with_notes(*notes)


def _scores(result: Node) -> tuple[SourceScore, ...]:
    success, score = result.value_of("success"), nonnegative_number(result.get("score"))
    if not isinstance(success, bool):
        return ()
    if score is None:
        score = float(success)
    return (SourceScore("score of promptfoo", min(score, 1.0), success, result.place),)


def _run(
    result: Node, answer: Node, raw: Node, tools: tuple[Table, ...], model_of: Callable[[str], str | None]
) -> ImportedRun:
    reply = _message(answer.need("output"))
    if (tokens := answer.get("tokenUsage")) is not None:
        reply["usage"] = {
            "prompt_tokens": tokens.table().get("prompt"),
            "completion_tokens": tokens.table().get("completion"),
            "completion_tokens_details": {"reasoning_tokens": tokens.at("completionDetails").value_of("reasoning")},
        }
    # The latency of a cached answer is that of promptfoo's cache, not of the model.
    if answer.value_of("cached") is not True:
        reply["latency_ms"] = result.value_of("latencyMs")
    provider = result.at("provider")
    name = provider.text_of("id") or provider.text_of("label")
    document: JsonValue = {
        "messages": [{"role": "user", "content": raw.value}, reply],
        "model": model_of(name) or name,
        "tools": [{"name": name} for name in tool_names(tools)],
    }
    conversation = conversation_of(Node(document, answer.place))
    (run,) = case_of(conversation).runs
    return run


def _message(output: Node) -> dict[str, JsonValue]:
    if isinstance(output.value, str):
        return _message_of_text(output.value, output.place)
    calls = _calls(output)
    if calls is None:
        return {"role": "assistant", "content": json_text(output.value)}
    return {"role": "assistant", "content": output.text_of("content"), "tool_calls": calls}


def _message_of_text(text: str, place: str) -> dict[str, JsonValue]:
    whole = Node(_parsed(text), place)
    if whole.value is not None and _calls(whole) is not None:
        return _message(whole)
    # If an answer of Anthropic or the Responses API has several parts, promptfoo joins them by line breaks, with calls
    # as JSON.
    called: list[JsonValue] = []
    texts: list[str] = []
    for line in text.splitlines():
        part = _parsed(line)
        if isinstance(part, dict) and part.get("type") in _CALLS:
            called.append(part)
        else:
            texts.append(line)
    if not called:
        return {"role": "assistant", "content": text}
    calls = _calls(Node(called, place)) or []
    return {"role": "assistant", "content": "\n".join(texts).strip(), "tool_calls": calls}


def _parsed(text: str) -> JsonValue:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        found: JsonValue = parsed_json(text)
    except ValueError:
        return None
    return found


def _calls(output: Node) -> list[JsonValue] | None:
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


# Longer prefixes come first, because the first prefix that matches is used.
_MODELS = {
    "openai:chat:": "openai:",
    "openai:responses:": "openai-responses:",
    "openai:": "openai:",
    "anthropic:messages:": "anthropic:",
    "anthropic:": "anthropic:",
}
_READ = {"prompts", "providers", "targets", "tests", "defaultTest", "description"}


def _config(source: Source) -> Node:
    root = source.root
    if root.has("results", "config"):
        return root.at("config")
    return root


def _recognizes(source: Source) -> bool:
    config = _config(source)
    written = config.has("tests") and (config.has("prompts") or config.has("providers") or config.has("targets"))
    return written or bool(results_in(source.root))


def _read(source: Source) -> ImportedFile:
    config = _config(source)
    notes: list[Note] = []
    files = Files(source.path.parent)
    tools, models = _providers(config, files, notes)
    results = results_in(source.root)
    cases: list[ImportedCase] = []
    if results:
        cases += cases_of_results(results, tools, model_of, notes)
    else:
        cases += _cases_of_tests(config, files, tools, notes)
    notes = [*(not_imported(note.place, note.why) for note in files.notes), *notes]
    if others := config.other_keys(_READ):
        notes.append(not_imported("", ", ".join(others)))
    if not cases:
        raise first_refusal(notes, "holds no test", "tests")
    suite: Table = {"grading": {"by": "trajectory"}}
    if models:
        suite["models"] = models
    return ImportedFile(tuple(cases), suite, tuple(notes))


def _cases_of_tests(config: Node, files: Files, tools: tuple[Table, ...], notes: list[Note]) -> Iterator[ImportedCase]:
    prompts: list[Node] = []
    if (written := config.get("prompts")) is not None:
        prompts += files.prompts(written)
    if not prompts:
        raise first_refusal(files.notes, "has no prompt written in the file itself", "prompts")
    defaults = files.filled(config.at("defaultTest"))
    # If `defaultTest` is still a text, the text is the name of a file that could not be read.
    if not isinstance(defaults.value, dict):
        defaults = Node({})
    for test in files.tests(config.need("tests")):
        try:
            yield from cases_of(test, defaults, prompts, tools)
        except RefusedError as error:
            notes.append(not_imported(error.place, error.why))


def model_of(provider: str) -> str | None:
    """Convert promptfoo's id of a provider to the model's name in a suite; `None` if the provider is unknown."""
    for beginning, ours in _MODELS.items():
        if provider.startswith(beginning):
            name = provider.removeprefix(beginning)
            return ours + name if name else None
    return None


def _providers(config: Node, files: Files, notes: list[Note]) -> tuple[tuple[Table, ...], list[str]]:
    tools: dict[str, Table] = {}
    models: list[str] = []
    for each in map(files.filled, config.listed_of("providers", "targets")):
        provider = each
        name = each.value if isinstance(each.value, str) else each.text_of("id")
        if not name and isinstance(each.value, dict) and len(each.value) == 1:  # {id: options}
            (name,) = each.value
            provider = each.get(name) or each
        if (model := model_of(name)) is not None:
            models.append(model)
        else:
            notes.append(not_imported(each.place, f"the provider {name!r} is unknown: write a model into the suite"))
        options = provider.get("config")
        if options is None:
            continue
        for tool in _tools_in(options):
            table = tool_of(tool)
            if tools.setdefault(str(table["name"]), table) != table:
                notes.append(not_imported(tool.place, f"a second definition of {table['name']}"))
        if others := options.other_keys(("tools", "functions")):
            notes.append(not_imported(provider.place, f"the provider's {', '.join(others)}"))
    return tuple(tools.values()), list(dict.fromkeys(models))


def _tools_in(options: Node) -> Iterator[Node]:
    for each in [*options.listed_of("tools"), *options.listed_of("functions")]:
        # A file may contain a list of tools, so each value is flattened.
        for tool in each.listed():
            # A text is the name of an unreadable file, for which `Files` has added a note.
            if not isinstance(tool.value, str):
                yield tool


PROMPTFOO = Format(_recognizes, _read, graded_as("every"))
