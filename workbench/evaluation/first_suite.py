"""A first suite for the tools of some servers.

For each tool, a case expects a call of the tool. For each group of tools, a case expects no call. All cases are skipped
until the user writes their requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.analysis.prefilled import (
    first_value,
    is_missing_value,
    refused_parts,
    required_args,
    values_of,
)
from workbench.config.program import Environment, Program
from workbench.dataclasses import dataclass
from workbench.evaluation.client_servers import ClientConfigError, FoundServers
from workbench.show.visible import one_line, shortened
from workbench.suite.expected_calls import ANY_TOOL
from workbench.suite.grading_model import NEW_SUITE_EXTRA_CALLS, GraderName
from workbench.suite.model import TEMPLATE_REQUEST, TEMPLATE_SKIP, derived_id
from workbench.suite.render import Table, block_text, header, key_text, suite_text
from workbench.suite.render import one_line as one_line_value
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.tools.login_file import has_login
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.json_schema import (
    Schema,
    allowed_values,
    properties_of,
    required_names,
    resolved,
    type_words,
    types_of,
    with_definitions,
)

if TYPE_CHECKING:
    from workbench.evaluation.case_drafts import Draft

SCHEMA_NAME = "suite.schema.json"
"""The JSON Schema file beside a suite. The suite's first line names this file."""

SETTINGS = """\
# Settings for the suites of this folder and those below it. Remove the marks of what you use.
# Keys do not belong here: put them into the environment or a .env, and name the variable.

# judge = "local" # the model for judged checks that name none

# [models.local]
# provider = "openai" # whose API it speaks: "openai", "openai-responses" or "anthropic"
# base_url = "http://localhost:11434/v1"
# model = "llama3.1" # its name there
# api_key_env = "LOCAL_API_KEY"
"""
"""The initial text of a `workbench.toml`."""

_WIDTH = 116
_VERBS = (
    "add ask call cancel check clear close convert copy count create delete do download edit execute export fetch "
    "fill find generate get give import insert is list load make move open patch post put query read remove rename "
    "replace reset run save search select send set show start stop submit tell test update upload use validate verify "
    "wait write"
)
"""Verbs at the beginning of tool names. As first words, they do not name a group."""

_WORDS = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def starter_suite(
    name: str,
    servers: Sequence[Table],
    tools: Sequence[ToolDefinition],
    by: GraderName | None = None,
    drafts: Sequence[Draft] = (),
    *,
    schema: bool = True,
    min_pass_rate: float | None = None,
) -> str:
    """Return the text of a first suite for some tools of its servers.

    The same tools always give the same text. `by` is the deciding grader. `min_pass_rate` is the pass rate that the
    suite's gate requires, from 0 to 1. Without tools, the suite has only the servers. A tool with `drafts` gets a case
    for each draft instead of an empty case. With `schema`, the first line names the JSON Schema that editors use to
    complete keys."""
    by_name: dict[str, ToolDefinition] = {}
    for tool in tools:
        if tool.name not in ("", ANY_TOOL):
            by_name.setdefault(tool.name, tool)
    tools = list(by_name.values())
    groups = _groups(tools)
    names = _Names()
    grading: Table = {"extra_calls": NEW_SUITE_EXTRA_CALLS}
    if by is not None:
        grading = {"by": by, **grading}
    drafted = frozenset(draft.about for draft in drafts)
    introduction = _comment(f"The tools of {_names_of(servers)}.")
    if by_name:
        introduction = _introduction(servers, drafted=bool(drafted), is_whole=drafted.issuperset(by_name))
    parts: list[str] = []
    if schema:
        parts += [f"#:schema ./{SCHEMA_NAME}", ""]
    parts += [*introduction, "", suite_text({"format": 1, "name": name, "grading": grading}).rstrip("\n")]
    if min_pass_rate is not None:
        parts += ["", *_gate(min_pass_rate, written=bool(drafts))]
    for server in servers:
        parts += ["", block_text(("servers",), server, of_array=True)]
    for group, members in groups.items():
        tags = []
        if len(groups) > 1:
            tags.append(group)
            parts += ["", *_comment(group)]
        for tool in members:
            calls = []
            for draft in drafts:
                if draft.about == tool.name and draft.tool is not None:
                    calls.append(draft)
            blocks = _case_of(tool, names, tags)
            if calls:
                blocks = _drafted(calls, tool, names, tags)
            parts += ["", *blocks]
        tool_names = {tool.name for tool in members}
        no_calls = [draft for draft in drafts if draft.tool is None and draft.about in tool_names]
        blocks = _case_without(group, members, names, tags)
        if no_calls:
            blocks = _blocks(no_calls, names, tags)
        parts += ["", *blocks]
    return "\n".join(parts) + "\n"


def with_prefixes(
    servers: Sequence[Table], listings: Sequence[Sequence[ToolDefinition]]
) -> tuple[list[Table], list[ToolDefinition]]:
    """Return servers and all their tools, with prefixes where tool names collide.

    If two servers have a tool of the same name, each tool of both servers gets the name of its server as a prefix."""
    owners: dict[str, list[int]] = {}
    for at, tools in enumerate(listings):
        for name in {tool.name for tool in tools}:
            owners.setdefault(name, []).append(at)
    colliding: set[int] = set()
    for servers_of_name in owners.values():
        if len(servers_of_name) > 1:
            colliding.update(servers_of_name)
    tables: list[Table] = []
    named: list[ToolDefinition] = []
    for at, (server, tools) in enumerate(zip(servers, listings, strict=True)):
        prefix = ""
        if at in colliding:
            prefix = re.sub(r"\W+", "_", str(server["name"])) + "_"
            server = {**server, "prefix": prefix}
        tables.append(server)
        named += [replace(tool, name=prefix + tool.name) for tool in tools]
    return tables, named


def _introduction(servers: Sequence[Table], *, drafted: bool, is_whole: bool) -> list[str]:
    lines = _comment(
        f"The tools of {_names_of(servers)}: for each a request that must call it, and one that needs none of them."
    )
    lines.append("#")
    if drafted:
        lines.append("# A case with the tag draft is a model's: read it, correct it, and remove the tag.")
    if not is_whole:
        lines.append(
            "# A case is skipped until its request is written: write `user`, correct the arguments, and remove `skip`."
        )
    lines.append(
        "# An argument with { present = true } may be anything so far: write the value that the request demands."
    )
    return lines


def _gate(min_pass_rate: float, *, written: bool) -> Iterator[str]:
    block = block_text(("gate",), {"min_pass_rate": min_pass_rate}, of_array=False)
    if written:
        yield block
        return
    # As long as all cases are skipped, a gate would fail. So the gate is written as a comment.
    yield "# With this gate, the job in CI passes although some cases fail. Remove the marks once requests are written."
    for line in block.splitlines():
        yield f"# {line}"


def _names_of(servers: Sequence[Table]) -> str:
    return ", ".join(one_line(str(server["name"])) for server in servers)


def _about(tool: ToolDefinition) -> list[str]:
    return _comment(": ".join(filter(None, (tool.name, _sentence(tool.description)))))


def _drafted(drafts: Sequence[Draft], tool: ToolDefinition, names: _Names, tags: list[str]) -> Iterator[str]:
    yield from _about(tool)
    yield from _blocks(drafts, names, tags)


def _blocks(drafts: Sequence[Draft], names: _Names, tags: list[str]) -> Iterator[str]:
    for number, draft in enumerate(drafts):
        if number:
            yield ""
        yield block_text(("cases",), draft.table(names.new(draft.name, written=True), tags), of_array=True)


def _case_of(tool: ToolDefinition, names: _Names, tags: list[str]) -> Iterator[str]:
    args, optional = required_args(tool.parameters), _optional_args(tool)
    yield from _about(tool)
    for name, value in args.items():
        if is_missing_value(value) or _is_one_of_several(_schema_of(tool, name)):
            yield from _comment(f"  {name}: {_in_words(tool, name)}")
    for name in optional:
        yield from _comment(f"  {name} (optional): {_in_words(tool, name)}")
    refused = refused_parts(values_of(args), tool.parameters)
    if refused is None:
        yield "# Its schema cannot be used to fill in arguments: write them all."
    elif "" in refused and not any(map(is_missing_value, args.values())):
        yield "# Its schema demands more than these arguments: write the others too."
    call: Table = {"tool": tool.name}
    if args and not optional:
        call["args"] = args
    case: Table = {"name": names.new(tool.name), "skip": TEMPLATE_SKIP, "user": TEMPLATE_REQUEST, "ordered": [call]}
    if tags:
        case["tags"] = tags
    yield block_text(("cases",), case, of_array=True)
    if optional:
        yield from _args_block(args, optional)


def _args_block(args: Table, optional: Table) -> Iterator[str]:
    keys = ("cases", "ordered", "args")
    if args:
        yield block_text(keys, args, of_array=False)
    else:
        # An empty `args` table would expect a call without arguments, so its header is written as a comment.
        yield f"# {header(keys, of_array=False)}"
    for name, value in optional.items():
        yield f"# {key_text(name)} = {one_line_value(value)}"


def _optional_args(tool: ToolDefinition) -> Table:
    required = frozenset(required_names(tool.parameters))
    args: Table = {}
    for name in properties_of(tool.parameters):
        if name not in required:
            args[name] = first_value(name, _schema_of(tool, name))
    return args


def _case_without(group: str, tools: Sequence[ToolDefinition], names: _Names, tags: list[str]) -> Iterator[str]:
    if len(tools) == 1:
        yield from _comment(f"A request that sounds like {tools[0].name} and that no tool serves.")
    else:
        yield from _comment(f"A request that sounds like these {len(tools)} tools and that none of them serves.")
    name = names.new(f"Nothing for {group}", written=True)
    case: Table = {"name": name, "skip": TEMPLATE_SKIP, "user": TEMPLATE_REQUEST, "expect_no_calls": True}
    if tags:
        case["tags"] = tags
    yield block_text(("cases",), case, of_array=True)


def _groups(tools: Sequence[ToolDefinition]) -> dict[str, list[ToolDefinition]]:
    """Group tools by server, or tools of a single server by the first words of their names.

    First words form groups only if each word occurs in several names and no word is a verb."""
    by_server: dict[str, list[ToolDefinition]] = {}
    for tool in tools:
        by_server.setdefault(tool.server or "tools", []).append(tool)
    groups: dict[str, list[ToolDefinition]] = {}
    for server, of_server in by_server.items():
        by_word: dict[str, list[ToolDefinition]] = {}
        for tool in of_server:
            by_word.setdefault(next(filter(None, _WORDS.split(tool.name)), "").lower(), []).append(tool)
        # If a first word has only one tool, or is a verb, first words do not name groups. Then all tools of the server
        # form one group.
        several = len(by_word) > 1 and all(word and len(each) > 1 for word, each in by_word.items())
        if not several or not by_word.keys().isdisjoint(_VERBS.split()):
            by_word = {server: of_server}
        for name, members in by_word.items():
            groups.setdefault(name, []).extend(members)
    return groups


class _Names:
    """Makes names for new cases, so that each case has a different id."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def new(self, text: str, *, written: bool = False) -> str:
        plain = text
        if not written:
            plain = " ".join(map(_plain_word, filter(None, _WORDS.split(text))))
        plain = one_line(plain[:1].upper() + plain[1:] or text)
        name, number = plain, 2
        # Ids are derived from names without punctuation, so names that differ only in punctuation would have the same
        # id.
        while derived_id(name) in self._ids:
            name, number = f"{plain} {number}", number + 1
        self._ids.add(derived_id(name))
        return name


def _plain_word(word: str) -> str:
    # Abbreviations stay in capitals.
    if word.isupper() and len(word) > 1:
        return word
    return word.lower()


def _is_one_of_several(schema: Schema) -> bool:
    return len(allowed_values(schema) or ()) > 1 and types_of(schema) - {"null"} != {"boolean"}


def _schema_of(tool: ToolDefinition, name: str) -> Schema:
    return with_definitions(resolved(properties_of(tool.parameters).get(name), tool.parameters), tool.parameters)


def _in_words(tool: ToolDefinition, name: str) -> str:
    schema = _schema_of(tool, name)
    words, description = type_words(schema), schema.get("description")
    if isinstance(description, str) and description.strip():
        return f"{words}. {_sentence(description)}"
    return words


def _sentence(text: str) -> str:
    text = text.strip().partition("\n\n")[0]
    # A sentence ends only before a capital letter, so "e.g. this" does not end it.
    return re.split(r"(?<=[.!?])\s+(?=[A-Z])", " ".join(text.split()), maxsplit=1)[0]


def _comment(text: str) -> list[str]:
    return [f"# {shortened(one_line(text), _WIDTH)}".rstrip()]


# Servers list their tools before the suite is written. The user is therefore asked to approve a suite that has only the
# servers.


@dataclass(frozen=True)
class ServersToList:
    """Servers that will be started to list their tools.

    `file` is a suite with only the servers, which the user is asked to approve. A suite contains the names of
    variables but not their values. `program` therefore has the values from the client's configuration. `missing` holds
    the variables that the user must set before the suite can run."""

    found: FoundServers
    file: SuiteFile
    program: Program
    missing: tuple[str, ...]

    def suite(
        self,
        name: str,
        listings: Sequence[Sequence[ToolDefinition]],
        tool_names: Sequence[str] | None = None,
        by: GraderName | None = None,
        drafts: Sequence[Draft] = (),
        *,
        schema: bool = True,
        min_pass_rate: float | None = None,
    ) -> SuiteFile:
        """Return a first suite for the tools that the servers listed.

        `listings` has the tools of each server. With `tool_names`, just the tools with these names get cases. The suite
        may have errors, because a server may list tools that no suite can define."""
        servers, tools = with_prefixes(self.found.tables, listings)
        chosen = tools
        if tool_names is not None:
            chosen = [tool for tool in tools if tool.name in tool_names]
        text = starter_suite(name, servers, chosen, by, drafts, schema=schema, min_pass_rate=min_pass_rate)
        return parse_suite(text, self.file.path)


def _with_login(server: Table, logins: Path) -> Table:
    url, headers = server.get("url"), server.get("headers")
    if not isinstance(url, str) or not has_login(logins, url):
        return server
    if isinstance(headers, Mapping) and any(name.lower() == "authorization" for name in headers):
        return server
    return {**server, "auth": "oauth"}


def servers_to_list(
    found_servers: FoundServers, name: str, path: Path, folder: Path, program: Program
) -> ServersToList:
    """Prepare servers to list their tools for a suite at `path`.

    `folder` is the suite's folder, and need not exist. Raises ClientConfigError for a server that a suite cannot
    express, and ConfigError for a `.env` that cannot be read."""
    found_servers = replace(
        found_servers, tables=tuple(_with_login(table, program.folders.logins) for table in found_servers.tables)
    )
    known = program.environment.variables
    if folder.is_dir():
        known = program.environment.of(folder)
    own: dict[str, str] = {}
    for variable, value in found_servers.variables.items():
        if value is not None:
            program.secrets.add(variable, value)
            own[variable] = value
    own |= program.environment.variables
    file = parse_suite(suite_text({"format": 1, "name": name, "servers": list(found_servers.tables)}), path)
    if file.suite is None:
        why = "; ".join(map(str, file.errors))
        raise ClientConfigError(f"nothing was started: these servers cannot be written into a suite: {why}")
    return ServersToList(
        found_servers,
        file,
        replace(program, environment=Environment(own, program.secrets, program.environment.home)),
        tuple(variable for variable in found_servers.variables if variable not in known),
    )
