"""The options for models and their addresses, shared by `workbench run`, `models` and the app."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from workbench.cli.parser import GRADING, MODELS, TOOLS, add_exit_codes, group
from workbench.evaluation.exit_codes import INFRASTRUCTURE, OK, USAGE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pydantic import JsonValue

    from workbench.config.model_book import ModelOptions


_RUN_ON = (
    "run on this model, not those of the suites: offline, a name of workbench.toml, or PROVIDER:MODEL; A,B for several"
)


def add_model_options(parser: argparse.ArgumentParser, purpose: str = _RUN_ON) -> None:
    """Add options for models. `purpose` is the help of `--model`."""
    add_models_option(parser, purpose)
    models = group(parser, MODELS)
    models.add_argument("--base-url", metavar="URL", help="the address of these models")
    models.add_argument("--api-key-env", metavar="NAME", help="the environment variable with their key")
    models.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="add this to their requests; VALUE is JSON, else text; repeatable",
    )


def add_models_option(parser: argparse.ArgumentParser, purpose: str) -> None:
    group(parser, MODELS).add_argument("--model", action=_ModelList, default=[], metavar="M", help=purpose)
    parser.set_defaults(model_lists=[])


def add_judge_option(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the option `--judge`. `purpose` is its help."""
    group(parser, GRADING).add_argument("--judge", metavar="M", help=purpose)


def add_user_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the models that play users in conversations."""
    models = group(parser, MODELS)
    models.add_argument(
        "--user-model", metavar="M", help="the model that plays the user in conversations that name no model"
    )
    models.add_argument(
        "--user", metavar="replay:DIR", help="let the users of these recordings speak, while the model is live"
    )


def add_judging_options(parser: argparse.ArgumentParser) -> None:
    add_judge_option(parser, "let this model judge values that it has not judged yet")
    group(parser, TOOLS).add_argument(
        "--trust", action="store_true", help="let the suites start and import what they name"
    )


class _ModelList(argparse.Action):
    """Splits a list of models after `--model`. Also stores each list as given, for `complete_names`."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        from workbench.config.model_list import names_in

        try:
            names = names_in(str(values))
        except ValueError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        namespace.model_lists = [*namespace.model_lists, names]
        namespace.model = [*namespace.model, *names]


def complete_names(arguments: argparse.Namespace) -> None:
    """Complete model names without a provider in the lists of `--model`, and print the full names.

    Such a name gets the provider of the name before it. Call this before the names are used. A second call changes
    nothing."""
    lists = arguments.model_lists
    if not any(len(names) > 1 for names in lists):
        return
    from workbench.cli.redaction import warn
    from workbench.config.models import ConfigError
    from workbench.evaluation.model_names import full_model_names

    paths: Sequence[str | Path] = arguments.paths
    if getattr(arguments, "samples", False):
        from workbench.cli.parser import paths_of

        paths = paths_of(arguments)
    try:
        full = full_model_names(lists, paths)
    except ConfigError:
        # The names are resolved again later, and the error is reported then.
        return
    if list(full) != arguments.model:
        warn(f"models: {', '.join(full)}")
    arguments.model = list(full)
    arguments.model_lists = [[name] for name in full]


def names_a_model(arguments: argparse.Namespace) -> bool:
    """Return whether `--model` is given or not needed. Print an error if another option needs it."""
    from workbench.cli.redaction import warn

    about_models = (
        ("--base-url", arguments.base_url),
        ("--api-key-env", arguments.api_key_env),
        ("--param", arguments.param),
    )
    given = [name for name, value in about_models if value]
    if given and not arguments.model:
        warn(f"no model is given for {', '.join(given)}: give --model too")
        return False
    return True


def model_options(arguments: argparse.Namespace) -> ModelOptions | None:
    """Return the options for models.

    If they contradict each other, report the reason and return `None`."""
    from workbench.cli.redaction import warn
    from workbench.config.model_book import ModelOptions
    from workbench.config.models import ConfigError

    if not names_a_model(arguments):
        return None
    complete_names(arguments)
    models, url, key = frozenset(arguments.model), arguments.base_url, arguments.api_key_env
    try:
        return ModelOptions(
            models,
            url,
            key,
            params_of(arguments),
            getattr(arguments, "judge", None),
            getattr(arguments, "user_model", None),
            getattr(arguments, "user", None),
        )
    except ConfigError as error:
        for problem in error.problems:
            warn(problem)
        return None


def params_of(arguments: argparse.Namespace) -> dict[str, JsonValue]:
    """Return the model parameters given by `--param`. Raises ConfigError."""
    return dict(map(_param, arguments.param))


def _param(text: str) -> tuple[str, JsonValue]:
    from workbench.config.models import ConfigError

    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(f"--param {text!r}: write NAME=VALUE, as in --param temperature=0")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tools",
        action="store_true",
        help="also check how each endpoint handles tools, which costs tokens",
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="suite files, or folders of them (default: the current folder)"
    )
    add_model_options(parser, "only this model; A,B for several")
    parser.add_argument(
        "--trust", action="store_true", help="let a check ask the endpoints that suites and their workbench.toml name"
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="format of the list (default %(default)s)"
    )
    add_exit_codes(
        parser,
        {
            OK: "every checked model answers",
            USAGE: "broken settings, or an unknown model",
            INFRASTRUCTURE: "a model does not answer or does not exist, or a probe of --tools failed",
        },
    )
