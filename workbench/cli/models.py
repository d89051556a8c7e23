"""`workbench models`: list the models with their addresses. With `--check`, test whether each answers."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from workbench.cli.model_options import add_list_arguments, model_options
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import INFRASTRUCTURE, OK, USAGE
from workbench.startup import executes

if executes(__name__):
    import asyncio

    from workbench.cli.redaction import ask, register_suite_secrets, shown_search, warn, write, write_json
    from workbench.config.program import Program
    from workbench.evaluation.model_list import (
        FoundModels,
        ListedModel,
        ProbeResult,
        advice_of,
        check_models,
        chosen_models,
        named_models,
        untrusted_models,
    )
    from workbench.providers.built_in import built_in_models
    from workbench.show.spans import Role
    from workbench.show.text import Paint, paint_for
    from workbench.show.visible import one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_list_arguments(parser)
    parser.add_argument(
        "--check", action="store_true", help="ask each endpoint whether it answers, accepts the key and has the model"
    )


def execute(arguments: argparse.Namespace) -> int:
    from workbench.cli.redaction import create_program

    models = model_options(arguments)
    if models is None:
        return USAGE
    check = arguments.check or arguments.tools
    wanted = ModelList(arguments.paths, arguments.model, check, arguments.tools, arguments.trust, arguments.format)
    return list_models(wanted, create_program(models))


_NOT_USED = {
    "OPENAI_BASE_URL": "write base_url in workbench.toml, or give --base-url",
    "ANTHROPIC_BASE_URL": "write base_url in workbench.toml, or give --base-url",
    "ANTHROPIC_PROFILE": "write base_url and api_key_env in workbench.toml",
    "ANTHROPIC_AUTH_TOKEN": "name it in api_key_env",
    **dict.fromkeys(
        (
            *("ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "AWS_BEDROCK_BASE_URL"),
            *("ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL"),
        ),
        "write base_url in workbench.toml",
    ),
}
"""The variables of the vendors' SDKs that Workbench ignores, each with its replacement."""

_TONES: Mapping[str, Role] = {"works": "passed", "repaired": "warned", "wrong": "failed", "unclear": "warned"}


@dataclass(frozen=True)
class ModelList:
    """The options of `workbench models`.

    The models are those in `model`, or else those in the settings and suites at the paths. With `check`, each endpoint
    is asked whether it has the model. With `tools`, each model is tested for tool calling."""

    paths: Sequence[str]
    model: Sequence[str]
    check: bool
    tools: bool
    trust: bool
    format: str


def list_models(options: ModelList, program: Program) -> int:
    paths = [Path(path) for path in options.paths or ["."]]
    if missing := [path for path in paths if not path.exists()]:
        warn(f"there is no {', '.join(map(str, missing))}: to list a model give --model NAME")
        return USAGE
    if "" in options.paths:
        warn("an empty path is not allowed: write '.'")
        return USAGE
    with shown_search() as search:
        if options.model:
            found = chosen_models(options.model, paths, program, search)
        else:
            found = named_models(paths, program, search)
    register_suite_secrets(program, found.files)
    for problem in found.problems:
        warn(problem, program.secrets)
    if options.check:
        if not (options.trust or _may_ask(found, program)):
            return USAGE
        asyncio.run(_check(found.models, program, tools=options.tools))
    notes = []
    for name, hint in _NOT_USED.items():
        if os.environ.get(name):
            notes.append(f"{name} is set but not used: {hint}")
    if options.format == "json":
        write_json(_as_json(found.models, notes))
    else:
        write("\n".join([*_lines(found.models, notes, paint_for(sys.stdout, os.environ)), ""]))
    for listed in found.models:
        fails = listed.check is not None and not listed.check.ok
        if fails or any(probe.state == "wrong" for probe in listed.probes):
            return INFRASTRUCTURE
    return USAGE if found.problems else OK


async def _check(models: Sequence[ListedModel], program: Program, *, tools: bool) -> None:
    await check_models(models, program)
    if tools:
        # Lazy import: only --check needs a runtime.
        from workbench.evaluation.tool_probes import probe_models

        def report(listed: ListedModel, result: ProbeResult) -> None:
            # A probe takes seconds, so the current model and probe are shown.
            if sys.stderr.isatty():
                warn(f"{listed.spec.name}: {result.sign} {result.probe}")

        await probe_models(models, program, report)


def _may_ask(found: FoundModels, program: Program) -> bool:
    """Return whether the command may contact every model. Ask the user about untrusted models."""
    asking = untrusted_models(found, program)
    if not asking:
        return True
    warn("trusting the suites and the workbench.toml next to them allows this command to:")
    for need in dict.fromkeys(asking):
        warn(f"  ask the model {need}", program.secrets)
    if sys.stdin.isatty() and sys.stderr.isatty():
        ask("Ask them? [yes/no]")
        if sys.stdin.readline().strip().lower() in ("yes", "y"):
            return True
    warn("not trusted, nothing was asked: answer 'yes' on a terminal, or give --trust")
    return False


def _lines(models: Sequence[ListedModel], notes: Sequence[str], paint: Paint) -> Iterator[str]:
    for built_in in built_in_models():
        yield f"{paint(built_in.name, 'strong')}  {built_in.description}"
    for listed in models:
        spec = listed.spec
        reached = f"{spec.provider}: {one_line(spec.description)}"
        # The text ends with the name of the variable that has the key.
        if spec.api_key_env:
            reached += ", which is set" if listed.key_is_set else ", which is not set"
        yield ""
        yield f"{paint(one_line(spec.name), 'strong')}  {reached}"
        for fact in listed.facts:
            yield paint(f"  {one_line(fact)}", "muted")
        if (check := listed.check) is not None:
            role: Role = "failed"
            if check.ok:
                role = "passed"
            elif check.answers:
                role = "warned"
            yield "  " + paint(f"{check.mark} {one_line(check.sentence)}", role)
        yield from _probe_lines(listed, paint)
    if notes:
        yield ""
    for note in notes:
        yield paint(f"▲ {note}", "warned")


def _probe_lines(listed: ListedModel, paint: Paint) -> Iterator[str]:
    if not listed.probes:
        return
    width = max(len(result.probe) for result in listed.probes)
    for result in listed.probes:
        head = f"{result.sign} {result.probe:<{width}}"
        yield f"  {paint(head, _TONES[result.state])}  {one_line(result.finding)}"
    for advice in advice_of(listed.probes):
        yield "  " + paint(f"→ {one_line(advice)}", "muted")


def _as_json(models: Sequence[ListedModel], notes: Sequence[str]) -> dict[str, object]:
    built_in = [{"name": model.name, "description": model.description} for model in built_in_models()]
    return {
        "report": "workbench models",
        "version": 1,
        "built_in": built_in,
        "models": [listed.document() for listed in models],
        "notes": list(notes),
    }
