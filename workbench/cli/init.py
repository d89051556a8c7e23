"""`workbench init`: write a first suite for the tools of servers, or copy a sample."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.downloads import announce_download
from workbench.cli.parser import SERVER_METAVAR, add_exit_codes, options_as, show_first
from workbench.cli.run_options import add_by_option, repeats_of
from workbench.dataclasses import dataclass, json_text
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.startup import executes

if TYPE_CHECKING:
    from workbench.evaluation.case_drafts import Draft, DraftOptions

if executes(__name__):
    import asyncio

    from workbench.cli.redaction import (
        create_program,
        printing_to,
        register_suite_secrets,
        warn,
        warn_of_problems,
        write,
    )
    from workbench.config.folders import SETTINGS_NAME, bundled, project_file
    from workbench.config.models import ConfigError, ModelSpec
    from workbench.config.program import Program
    from workbench.evaluation.approval import Approval
    from workbench.evaluation.ci_jobs import (
        CI_FILES,
        CI_MIN_PASS_RATE,
        VARIABLE,
        CiSystem,
        job_of,
        local_dependencies,
        pip_requirement,
    )
    from workbench.evaluation.client_servers import ClientConfigError, FoundServers, servers_of_client, typed_server
    from workbench.evaluation.first_suite import SCHEMA_NAME, SETTINGS, servers_to_list, with_prefixes
    from workbench.evaluation.tool_list import tools_of
    from workbench.numerals import counted
    from workbench.providers.built_in import is_built_in
    from workbench.show.text import Paint
    from workbench.show.views.server_output import output_lines
    from workbench.show.visible import one_line, visible
    from workbench.suite.files import SavingError, repository_of, resolved, save, state_of
    from workbench.suite.grading_model import GraderName
    from workbench.suite.problems import did_you_mean
    from workbench.suite.render import Table
    from workbench.suite.suite_file import SuiteFile, load_suite
    from workbench.suite.variants import model_of
    from workbench.tools.server_pool import ServerPool
    from workbench.trajectory.events import ToolDefinition


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar=SERVER_METAVAR,
        help="the server: its command (npx -y server --option), its address, or its Python file; write options of init "
        "before it",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--command", metavar="COMMAND", help="the server that this command starts, quoted as one argument"
    )
    source.add_argument("--url", metavar="URL", help="the server at this address")
    source.add_argument("--module", metavar="FILE:OBJECT", help="the server in this Python file (default object: mcp)")
    source.add_argument(
        "--from-config",
        type=Path,
        metavar="FILE",
        help="the servers in the configuration of Claude Desktop, Claude Code, Cursor, VS Code or Codex",
    )
    source.add_argument(
        "--example", nargs="?", const="", metavar="NAME", help="copy this sample suite (default generic_tool)"
    )
    parser.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="NAME",
        help="only this server of --from-config; repeatable",
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="pass a variable of your shell, or a value that is not secret, to the command; repeatable",
    )
    parser.add_argument("--cwd", metavar="FOLDER", help="run the command in this folder (default: the suite's)")
    parser.add_argument(
        "--tool", dest="tools", action="append", default=[], metavar="A,B", help="only these tools; repeatable"
    )
    add_by_option(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the suite to write (default: the server's name and .toml)"
    )
    parser.add_argument("--ci", choices=("github", "gitlab"), help="also write a CI job that runs the suite")
    parser.add_argument(
        "--ci-model", metavar="MODEL", help="the model that the CI job asks (default: that of --draft, else offline)"
    )
    draft = parser.add_argument_group("drafts by a model")
    draft.add_argument("--draft", metavar="MODEL", help="let this model draft cases")
    draft.add_argument("--add-to", type=Path, metavar="SUITE", help="add the drafts to this suite")
    draft.add_argument(
        "--draft-check", metavar="MODEL", help="run the drafts on this model (default: the model of --draft)"
    )
    draft.add_argument(
        "--repeats",
        type=repeats_of,
        metavar="K",
        help="runs of each draft, all of which must make the drafted calls (default 3)",
    )
    draft.add_argument("-y", "--yes", action="store_true", help="ask no questions")
    parser.add_argument("-f", "--force", action="store_true", help="replace an existing suite")
    parser.add_argument("--trust", action="store_true", help="start or reach the servers without asking")
    add_exit_codes(
        parser,
        {
            OK: "the suite is written",
            QUALITY_MISSED: "no draft can be used",
            USAGE: "wrong usage or missing trust",
            INFRASTRUCTURE: "no tools were listed, or drafting failed",
            INTERRUPTED: "interrupted",
        },
    )
    show_first(
        *(parser, "--command", "--url", "--module", "--from-config", "--example"),
        *("--env", "--output", "--ci", "--ci-model", "--draft", "--trust"),
    )


def execute(arguments: argparse.Namespace) -> int:
    return write_first_suite(options_as(StartOptions, arguments))


_USUAL_SAMPLE = "generic_tool"


class RefusedError(Exception):
    """Raised if nothing can be written. The message has the reason and the remedy."""


@dataclass(frozen=True)
class StartOptions:
    """The options of `workbench init`: the servers or the sample to begin with, and the files to write."""

    command: str | None
    url: str | None
    module: str | None
    from_config: Path | None
    example: str | None
    server: Sequence[str]
    tools: Sequence[str]
    by: GraderName | None
    output: Path | None
    ci: CiSystem | None
    force: bool
    trust: bool
    draft: str | None = None
    add_to: Path | None = None
    draft_check: str | None = None
    repeats: int | None = None
    yes: bool = False
    words: Sequence[str] = ()
    env: Sequence[str] = ()
    cwd: str | None = None
    ci_model: str | None = None

    @property
    def asked_in_ci(self) -> str:
        """The model on which the CI job runs the cases."""
        return self.ci_model or self.draft_check or self.draft or "offline"

    @property
    def of_servers(self) -> bool:
        """Whether to start servers and list their tools."""
        named = (self.command, self.url, self.module, self.from_config)
        return bool(self.words) or any(each is not None for each in named)


def write_first_suite(options: StartOptions) -> int:
    program = create_program()
    try:
        options = _with_server(options)
        _check(options)
        if options.add_to is not None:
            return _add_to(options.add_to, options, program)
        if options.of_servers:
            return _of_servers(options, program)
        if options.example is not None:
            return _of_sample(options, options.example, program)
    except (RefusedError, ClientConfigError, ConfigError, SavingError) as error:
        warn(str(error), program.secrets)
        return USAGE
    write(_what_for(), sys.stderr)
    return USAGE


def _what_for() -> str:
    return f"""\
nothing was written: name a server, or give --example
  workbench init uvx mcp-server-time  a suite with a case for each tool of this MCP server
  workbench init --example            a copy of the sample {_USUAL_SAMPLE}.toml
It also writes {SCHEMA_NAME} for editors and, if there is none, a {SETTINGS_NAME}.
'workbench init --help' lists other servers, other samples and the CI jobs
"""


def _with_server(options: StartOptions) -> StartOptions:
    """Return the options with the server from the positional arguments: a command, an address or a Python file."""
    # A command is given as separate words, as the user's shell has split it.
    if not options.words:
        return options
    first = options.words[0]
    given = (options.command, options.url, options.module, options.from_config, options.example, options.add_to)
    if given != (None,) * len(given):
        raise RefusedError(
            f"{one_line(first)} begins the command of a server, but an option already names the source: omit one of "
            "them, with the options of init before the command"
        )
    if first.endswith(".toml"):
        raise RefusedError(f"{one_line(first)} is not a server: give the suite to write with -o {one_line(first)}")
    if re.match(r"https?:", first):
        if len(options.words) > 1:
            raise RefusedError(f"{one_line(first)} is an address, which must be the last word: write options before it")
        return replace(options, url=first, words=())
    if len(options.words) == 1 and re.search(r"\.py(:\w+)?$", first):
        return replace(options, module=first, words=())
    return options


def _check(options: StartOptions) -> None:
    if options.server and options.from_config is None:
        raise RefusedError(
            "--server selects from the servers of --from-config: give --from-config too, or omit --server"
        )
    if options.ci_model is not None and options.ci is None:
        raise RefusedError("--ci-model names the model of the CI job: give --ci too")
    if options.add_to is not None:
        given = (options.example, options.by, options.output, options.ci)
        if options.draft is None or options.of_servers or options.force or given != (None,) * 4:
            raise RefusedError(
                "--add-to adds drafts to an existing suite: give --draft too, and --tool to select tools"
            )
    elif not options.of_servers and (options.tools or options.by is not None):
        raise RefusedError("--tool and --by need a server: name it last, or with --from-config")
    elif options.draft is not None and not options.of_servers:
        raise RefusedError(
            "--draft needs a server with tools: name it last, or with --from-config, or give --add-to SUITE"
        )
    started = bool(options.words) or options.command is not None
    if (options.env or options.cwd is not None) and not started:
        raise RefusedError("--env and --cwd need a server that a command starts: write its command last")
    if options.draft is None and (options.draft_check is not None or options.repeats is not None or options.yes):
        raise RefusedError("--draft-check, --repeats and --yes apply to drafts: give --draft MODEL too")
    if options.draft is not None and not options.yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise RefusedError("no model was asked: --draft costs what the model charges; give --yes, or use a terminal")
    if options.output is not None:
        if options.output.suffix != ".toml":
            raise RefusedError(f"a suite is a TOML file: end the name {options.output} with .toml")
        if options.output.name == SETTINGS_NAME:
            raise RefusedError(f"{SETTINGS_NAME} holds settings: give the suite another name")


def _of_servers(options: StartOptions, program: Program) -> int:
    # Lazy import: a sample needs no approval.
    from workbench.cli.approval import approved
    from workbench.cli.tools import run_until_signal
    from workbench.evaluation.approval import Needs, servers_as_typed

    folder = resolved((options.output or Path("suite.toml")).parent)
    found = _found(options, folder)
    names = [str(server["name"]) for server in found.tables]
    name = names[0] if len(names) == 1 else "servers"
    stem = re.sub(r"[^\w.-]+", "-", name).strip(".-")
    path = options.output or Path(f"{stem or 'suite'}.toml")
    # This check comes before servers are started and model requests cost money.
    _check_files(path, folder, options)
    if options.ci is not None:
        _spec_for_ci(options, folder, program)
    asked = servers_to_list(found, name, path, folder, program)
    program, file = asked.program, asked.file
    register_suite_secrets(program, [file])
    typed = servers_as_typed(file) if options.from_config is None else {}
    approval = approved(Needs.of_servers([file], program, typed=typed), program, all_of_them=options.trust)
    if approval is None:
        return USAGE
    pool = ServerPool(program, starting=announce_download)
    # A server in this process may print. Its output must not get into the output of the command.
    with printing_to(sys.stderr):
        listed: list[list[ToolDefinition]] = []
        code = asyncio.run(run_until_signal(pool, _list(file, approval, pool, program, listed)))
    if code != OK:
        return code
    for note in found.notes:
        warn(note, program.secrets)
    chosen = _chosen(with_prefixes(found.tables, listed)[1], options.tools)
    drafted = _drafted(chosen, resolved(path), options, program)
    if isinstance(drafted, int):
        return drafted
    drafts, code = drafted
    min_pass_rate = None
    if options.ci is not None:
        min_pass_rate = CI_MIN_PASS_RATE
    made = asked.suite(name, listed, [tool.name for tool in chosen], options.by, drafts, min_pass_rate=min_pass_rate)
    if made.suite is None:
        warn_of_problems(made.errors, program.secrets)
        raise RefusedError(f"{path} was not written: the tools of the servers do not make a valid suite")
    # The drafts have cost money, so they are saved elsewhere if the suite cannot be written here.
    if drafts and (code == INTERRUPTED or not _confirm_suite(path, made.text, options)):
        from workbench.cli.init_drafts import save_aside

        save_aside(made.text, path, program)
        return code if code == INTERRUPTED else USAGE
    job = _job(path, folder, options, program, found, all_skipped=not drafts)
    written = _write(path, folder, made.text, options, program, job)
    cases, tool_count = counted(len(made.suite.cases), "case"), counted(len(chosen), "tool")
    if drafts:
        how = f"{len(drafts)} drafted by {options.draft}, with the tag draft; read them"
    else:
        how = "each skipped until its request is written"
    _report_written(path, f"{cases} for {tool_count} of {', '.join(names)}, {how}", written, asked.missing, job)
    return code


def _drafted(
    tools: Sequence[ToolDefinition], path: Path, options: StartOptions, program: Program
) -> tuple[Sequence[Draft], int] | int:
    """Return the drafted cases and the exit code to return once they are written.

    Without `--draft`, there are no cases. Returns only an exit code if nothing can be written."""
    if options.draft is None:
        return (), OK
    from workbench.cli.init_drafts import drafted

    made = drafted(
        tools,
        path,
        _draft_options(options.draft, options),
        program,
        grader=options.by,
        trust=options.trust,
        yes=options.yes,
    )
    if isinstance(made, int):
        return made
    return made.drafts, made.code


def _draft_options(model: str, options: StartOptions) -> DraftOptions:
    from workbench.evaluation.case_drafts import DEFAULT_REPEATS, DraftOptions

    return DraftOptions(model, options.draft_check or model, options.repeats or DEFAULT_REPEATS)


def _add_to(path: Path, options: StartOptions, program: Program) -> int:
    from workbench.cli.init_drafts import add_drafts

    assert options.draft is not None
    asked = _draft_options(options.draft, options)
    choose = partial(_chosen, tool_names=options.tools)
    return add_drafts(path, choose, asked, program, trust=options.trust, yes=options.yes)


def _confirm_suite(path: Path, text: str, options: StartOptions) -> bool:
    from workbench.cli.init_drafts import confirm

    write("".join(f"{visible(line)}\n" for line in text.splitlines()))
    return confirm(f"Write {one_line(path.name)}?", yes=options.yes)


async def _list(
    file: SuiteFile, approval: Approval, pool: ServerPool, program: Program, listed: list[list[ToolDefinition]]
) -> int:
    suite = await tools_of(file, None, pool, approval)
    failed = [source for source in suite.sources if source.error is not None]
    for source in failed:
        warn(str(source.error), program.secrets)
        if source.output is not None:
            for line in output_lines(source.output, Paint(enabled=False), 2):
                warn(line, program.secrets)
    if failed:
        warn("nothing was written: a new suite needs the tools of all its servers, and not all could be listed")
        servers = file.suite.servers if file.suite is not None else ()
        if any(server.command is not None and not server.env for server in servers):
            warn("--env NAME, before the command, passes a variable of your shell to it")
        return INFRASTRUCTURE
    for source in suite.sources:
        listed.append([program.secrets.redacted(tool) for tool in source.tools])
    return OK


def _found(options: StartOptions, folder: Path) -> FoundServers:
    if options.from_config is not None:
        return servers_of_client(options.from_config, folder, options.server)
    if options.module is not None:
        return FoundServers((_module(options.module, folder),), {})
    return typed_server(options.words or options.command, options.url, options.env, _cwd(options.cwd, folder))


def _cwd(text: str | None, folder: Path) -> str | None:
    """Return a server's working folder as it is written into the suite file in `folder`.

    It is a relative path, unless the user gave an absolute path."""
    if text is None:
        return None
    path = resolved(Path(text).expanduser())
    if not path.is_dir():
        raise RefusedError(f"--cwd: there is no folder {path}")
    return str(path) if Path(text).expanduser().is_absolute() else Path(os.path.relpath(path, folder)).as_posix()


def _module(text: str, folder: Path) -> Table:
    file, _, name = text.partition(":")
    # A text that does not end in `.py` is the name of a module.
    if not file.endswith(".py"):
        file = f"{file.replace('.', '/')}.py"
    path = resolved(Path(file))
    if not path.is_file():
        raise RefusedError(f"--module: there is no file {path}; give FILE:OBJECT, such as server.py:mcp")
    if not path.is_relative_to(folder):
        raise RefusedError(f"--module: {path} is not below {folder}: write the suite beside it, with -o FILE")
    server: Table = {"name": path.stem, "module": ".".join(path.relative_to(folder).with_suffix("").parts)}
    if name:
        server["object"] = name
    return server


def _chosen(tools: Sequence[ToolDefinition], tool_names: Sequence[str]) -> list[ToolDefinition]:
    if not tools:
        raise RefusedError("nothing was written: the servers list no tools")
    if not tool_names:
        return list(tools)
    names = []
    for name in ",".join(tool_names).split(","):
        if name.strip():
            names.append(name.strip())
    known = [tool.name for tool in tools]
    if unknown := [name for name in names if name not in known]:
        hint = did_you_mean(unknown[0], known) or f"the tools are {', '.join(known)}"
        if len(known) == 1:
            hint = f"the only tool is {known[0]!r}"
        raise RefusedError(f"nothing was written: there is no tool {unknown[0]!r}: {hint}")
    return [tool for tool in tools if tool.name in names]


def _of_sample(options: StartOptions, sample_name: str, program: Program) -> int:
    samples = {}
    for file in sorted(bundled("sample_suites").glob("*.toml")):
        samples[file.stem] = file
    name = (sample_name or _USUAL_SAMPLE).removesuffix(".toml")
    if name not in samples:
        hint = did_you_mean(name, samples) or f"there are {', '.join(samples)}"
        raise RefusedError(f"there is no sample {name!r}: {hint}")
    source = samples[name]
    text = source.read_text(encoding="utf-8")
    path = options.output or Path(source.name)
    folder = resolved(path.parent)
    # A sample refers to modules and programs in its own folder, so these are copied next to the suite.
    codes: dict[Path, str] = {}
    for file in sorted(source.parent.glob("*.py")):
        if re.search(rf"\b{re.escape(file.stem)}\b(?=\.py|:)", text):
            codes[folder / file.name] = file.read_text(encoding="utf-8")
    _check_files(path, folder, options, codes)
    job = _job(path, folder, options, program)
    written = _write(path, folder, f"#:schema ./{SCHEMA_NAME}\n\n{text}", options, program, job, extra_files=codes)
    suite = load_suite(path).suite
    assert suite is not None
    _report_written(path, f"a copy of the sample {suite.name!r}, {counted(len(suite.cases), 'case')}", written, (), job)
    return OK


def _spec_for_ci(options: StartOptions, folder: Path, program: Program) -> ModelSpec | None:
    if is_built_in(model_of(options.asked_in_ci)):
        return None
    return program.models.resolve(options.asked_in_ci, folder, by_suite=False)


@dataclass(frozen=True)
class _Job:
    path: Path
    text: str
    advice_template: tuple[str, ...]


def _job(
    path: Path,
    folder: Path,
    options: StartOptions,
    program: Program,
    found: FoundServers | None = None,
    *,
    all_skipped: bool = False,
) -> _Job | None:
    if options.ci is None:
        return None
    tables: Sequence[Table] = ()
    variables: list[str] = []
    if found is not None:
        tables = found.tables
        variables = [*found.variables]
    spec = _spec_for_ci(options, folder, program)
    if spec is not None:
        variables += spec.secret_variables
    root = _root(folder)
    suite = resolved(path).relative_to(root).as_posix()
    job = job_of(suite, root, tables, options.asked_in_ci, variables, all_skipped=all_skipped)
    source = pip_requirement()
    advice_template = []
    if source is None:
        advice_template.append(
            f"set the repository's variable {VARIABLE} to what pip installs there, such as 'toolcall-workbench @ "
            "git+https://…' with the address of Workbench's repository"
        )
    if job.variables:
        advice_template.append(f"set among the secrets of the repository: {', '.join(job.variables)}")
    for what in local_dependencies(tables, spec.base_url if spec is not None else ""):
        advice_template.append(f"{what} is on this machine only: give the job one that it can reach")
    return _Job(root / CI_FILES[options.ci], job.text(options.ci, source), tuple(advice_template))


def _check_files(path: Path, folder: Path, options: StartOptions, extra_files: Iterable[Path] = ()) -> None:
    if not folder.is_dir():
        raise RefusedError(f"there is no folder {folder} for {path.name}: make it first")
    for file in (path, *extra_files):
        if file.exists() and not options.force:
            raise RefusedError(f"{file} exists: give --force to replace it, or -o FILE for another one")
    if options.ci is not None and (job := _root(folder) / CI_FILES[options.ci]).exists():
        raise RefusedError(f"{job} exists, and is never replaced: omit --ci, and add a job as in docs/ci.md")


def _write(
    path: Path,
    folder: Path,
    text: str,
    options: StartOptions,
    program: Program,
    job: _Job | None,
    extra_files: Mapping[Path, str] | None = None,
) -> list[Path]:
    # Lazy import: the schema is created from pydantic models, which are slow to import.
    from workbench.evaluation.file_schemas import file_schema

    files = {path: text, **(extra_files or {})}
    schema = folder / SCHEMA_NAME
    # An existing schema is kept, because it may serve other suites or come from another version.
    if options.force or not schema.exists():
        files[schema] = json_text(file_schema("suite"), indent=2) + "\n"
    if project_file(folder, program.environment.home) is None:
        files[folder / SETTINGS_NAME] = SETTINGS
    if job is not None:
        try:
            job.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RefusedError(f"the folder of {job.path} cannot be created: {error.strerror}") from None
        files[job.path] = job.text
    for file, content in files.items():
        # Without --force, `save` fails if the file was created since the check.
        save(file, content, state_of(file) if options.force else None)
    return list(files)


def _root(folder: Path) -> Path:
    return repository_of(folder) or folder


def _report_written(
    path: Path, content: str, written: Sequence[Path], missing: Sequence[str], job: _Job | None
) -> None:
    others = ", ".join(os.path.relpath(file, written[0].parent) for file in written[1:])
    write(f"{path}: {content}\n")
    if others:
        write(f"beside it: {others}\n")
    if missing:
        write(f"before it runs, set these variables in the environment or in a .env beside it: {', '.join(missing)}\n")
    for line in job.advice_template if job is not None else ():
        write(f"for the job: {line}\n")
    write(f"next: workbench {path} to edit it, workbench run {path} to run it\n")
