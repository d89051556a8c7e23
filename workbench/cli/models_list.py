"""`workbench models list`: list the models of the known endpoints that can be reached."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.evaluation.exit_codes import OK, USAGE

if TYPE_CHECKING:
    from workbench.evaluation.model_list import KnownEndpoint
    from workbench.show.text import Paint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="suites whose .env may hold keys (default: the current folder)"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the list (default %(default)s)"
    )


def execute(arguments: argparse.Namespace) -> int:
    from workbench.cli.redaction import create_program, warn, write, write_json
    from workbench.config.folders import folder_of
    from workbench.config.models import PRESETS
    from workbench.evaluation.model_list import known_endpoints, with_all_models
    from workbench.show.text import paint_for

    program = create_program()
    paths = [Path(path) for path in arguments.paths or ["."]]
    if missing := [str(path) for path in paths if not path.exists()]:
        warn(f"there is no {', '.join(missing)}: give suites or folders that exist")
        return USAGE
    known, problems = known_endpoints(program, list(map(folder_of, paths)), PRESETS)
    for problem in problems:
        warn(problem)
    # Lazy import: `--help` answers at once.
    import asyncio

    endpoints = asyncio.run(with_all_models(known, program))
    if arguments.format == "json":
        documents = [_document(endpoint) for endpoint in endpoints]
        write_json({"report": "workbench models list", "version": 1, "endpoints": documents})
    else:
        write("\n".join([*_lines(endpoints, paint_for(sys.stdout, os.environ)), ""]))
    return USAGE if problems else OK


def _lines(endpoints: Sequence[KnownEndpoint], paint: Paint) -> Iterator[str]:
    from workbench.evaluation.model_list import runnable_model_names
    from workbench.providers.built_in import REPLAY, built_in_models
    from workbench.show.visible import one_line

    for info in built_in_models():
        # A replayed model needs the path of a recording and cannot be chosen from a list.
        if not info.name.startswith(REPLAY):
            yield f"{paint(info.name, 'strong')}  {info.description}"
    others: list[KnownEndpoint] = []
    for endpoint in endpoints:
        if not endpoint.is_reachable:
            others.append(endpoint)
            continue
        preset = endpoint.preset
        yield ""
        yield f"{paint(preset.title, 'strong')}  {endpoint.state}"
        if endpoint.problem:
            yield paint(f"  ✗ {one_line(endpoint.problem)}", "failed")
        names = list(runnable_model_names(endpoint))
        for model, name in names:
            yield f"  {one_line(name or model)}"
        # A name that cannot be given to --model needs an entry in a workbench.toml.
        if any(name is None for _, name in names):
            yield paint(f"  to run one: workbench models add NAME --preset {preset.name} --model MODEL", "muted")
    if others:
        yield ""
    for endpoint in others:
        yield paint(f"{endpoint.preset.title}  {one_line(endpoint.problem or endpoint.state)}", "muted")


def _document(endpoint: KnownEndpoint) -> dict[str, object]:
    from workbench.evaluation.model_list import runnable_model_names

    preset, models = endpoint.preset, None
    if endpoint.models is not None:
        models = []
        for model, name in runnable_model_names(endpoint):
            models.append({"model": model, "name": name})
    return {
        "name": preset.name,
        "title": preset.title,
        "provider": preset.provider,
        "base_url": preset.base_url,
        "api_key_env": preset.api_key_env,
        "key_is_found": endpoint.key_is_found if preset.api_key_env else None,
        "reachable": endpoint.is_reachable,
        "models": models,
        "problem": endpoint.problem,
    }
