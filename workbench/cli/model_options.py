"""The options that say which models are meant and how they are reached: of `workbench run`, `models` and the app."""

from __future__ import annotations

import argparse
import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import JsonValue

    from workbench.config.program import Program


_RUN_ON = (
    "model to run on, instead of those the suites name: offline, a name of workbench.toml, or PROVIDER:MODEL; several "
    "with commas between them, or by repeating the option"
)
_COMMA = re.compile(r"(?<!\\),")


def add_model_options(parser: argparse.ArgumentParser, purpose: str = _RUN_ON) -> None:
    """`purpose` says what the models of `--model` are for."""
    parser.add_argument("--model", action="extend", type=_models, default=[], metavar="M", help=purpose)
    parser.add_argument("--base-url", metavar="URL", help="where the models of --model are reached")
    parser.add_argument("--api-key-env", metavar="NAME", help="the variable that holds the key for them")
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="put this into each request to the models of --model; VALUE is JSON, else text; may be repeated",
    )


def _models(text: str) -> list[str]:
    """The models of one word, which stand between commas; one that is part of a name has a backslash before it."""
    names = [name.strip().replace("\\,", ",") for name in _COMMA.split(text)]
    if "" in names:
        raise argparse.ArgumentTypeError("a model has no name there: write A, or A,B for two")
    return names


def program_for(options: argparse.Namespace) -> Program | None:
    """The program under these options, its log begun; `None` when they do not fit, which has then been said."""
    import os

    from workbench.cli.door import complain, know
    from workbench.config.folders import user_folders
    from workbench.config.logs import log_to
    from workbench.config.model_book import ModelOptions
    from workbench.config.models import ConfigError
    from workbench.config.program import program_in

    given = [
        name
        for name, value in (
            ("--base-url", options.base_url),
            ("--api-key-env", options.api_key_env),
            ("--param", options.param),
        )
        if value
    ]
    if given and not options.model:
        complain(f"{', '.join(given)}: say for which model: give --model too")
        return None
    try:
        said = ModelOptions(
            frozenset(options.model),
            options.base_url,
            options.api_key_env,
            dict(map(_param, options.param)),
            getattr(options, "judge", None),
        )
    except ConfigError as error:
        for problem in error.problems:
            complain(problem)
        return None
    program = know(program_in(user_folders(), os.environ, said))
    log_to(program.folders.log, program.secrets)
    return program


def _param(text: str) -> tuple[str, JsonValue]:
    from workbench.config.models import ConfigError

    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(f"--param {text!r}: write NAME=VALUE, as in --param temperature=0")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value
