"""`workbench models add`: check a model, and write it into a `workbench.toml`."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.parser import add_exit_codes
from workbench.config.clouds import APIS, BEDROCK_ENDPOINTS
from workbench.config.models import PRESETS, PROVIDERS
from workbench.evaluation.exit_codes import INFRASTRUCTURE, OK, USAGE

if TYPE_CHECKING:
    from workbench.config.models import ModelSpec
    from workbench.evaluation.typed_model import TypedModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the model's name in workbench.toml")
    parser.add_argument(
        "path", nargs="?", default=".", metavar="PATH", help="a suite or folder (default: the current one)"
    )
    parser.add_argument(
        "--preset", choices=[preset.name for preset in PRESETS], help="a known endpoint, with its address and key"
    )
    parser.add_argument("--provider", metavar="API", help=f"{', '.join(PROVIDERS)} (default openai)")
    parser.add_argument("--base-url", metavar="URL", help="its address (default: the vendor's, or the preset's)")
    parser.add_argument("--model", metavar="M", help="its name at the endpoint (default: NAME)")
    parser.add_argument("--api-key-env", metavar="VARIABLE", help="the environment variable that holds its key")
    parser.add_argument("--key-command", metavar="COMMAND", help="a command that prints its key, quoted as in a shell")
    parser.add_argument(
        "--header", action="append", metavar="NAME=VALUE", help="a further header of requests; $NAME is a variable"
    )
    parser.add_argument("--query", action="append", metavar="NAME=VALUE", help="a parameter of its addresses")
    parser.add_argument("--price", metavar="IN,OUT[,CACHED]", help="US dollars per million tokens")
    parser.add_argument(
        "--thoughts",
        metavar="WHAT",
        help="treat thoughts in an answer's text as: reasoning (default) or answer",
    )
    clouds = parser.add_argument_group("models at azure, bedrock and vertex")
    clouds.add_argument("--api", choices=APIS, help="the API (default: chat at azure, else messages)")
    clouds.add_argument("--resource", metavar="NAME", help="azure: the resource with the deployment")
    clouds.add_argument("--api-version", metavar="V", help="azure: v1 (default) or a date")
    clouds.add_argument("--region", metavar="R", help="bedrock, vertex: the region")
    clouds.add_argument("--profile", metavar="NAME", help="bedrock: the AWS profile")
    clouds.add_argument("--endpoint", choices=BEDROCK_ENDPOINTS, help="bedrock: which of its endpoints")
    clouds.add_argument("--project", metavar="ID", help="vertex: the Google Cloud project")
    clouds.add_argument(
        "--credentials", choices=("default",), help="'default': use the cloud's own credentials, at any address"
    )
    parser.add_argument(
        "--to",
        choices=("project", "user"),
        help="write to the nearest workbench.toml ('project', the default if there is one) or to your own ('user')",
    )
    parser.add_argument(
        "--replace", action="store_true", help="change the model of this name, keeping settings that are not given"
    )
    parser.add_argument("--no-check", action="store_true", help="do not ask the endpoint")
    add_exit_codes(
        parser,
        {
            OK: "written",
            USAGE: "wrong usage, a name already taken, or a file that cannot be written",
            INFRASTRUCTURE: "the endpoint did not confirm the model",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    from workbench.cli.redaction import create_program, warn, write
    from workbench.config.folders import folder_of
    from workbench.config.models import ConfigError
    from workbench.evaluation.model_list import check_refusal
    from workbench.evaluation.typed_model import (
        InvalidModelError,
        add_model,
        change_model,
        check_name_is_free,
        check_typed_blocking,
        named_model,
        owner_of,
        settings_file,
        usual_owner,
    )
    from workbench.suite.project import find_suites
    from workbench.suite.suite_file import load_suite

    program = create_program()
    path = Path(arguments.path)
    if not path.exists():
        warn(f"there is no {path}: give a suite or a folder that exists")
        return USAGE
    folder = folder_of(path)
    if arguments.replace and arguments.to is not None:
        warn("--to cannot be used with --replace, which changes the file that has the model: omit --to")
        return USAGE
    known = None
    if arguments.replace:
        try:
            known = named_model(arguments.name, folder, program)
        except ConfigError as error:
            for problem in error.problems:
                warn(problem)
            return USAGE
        if known is None:
            warn(f"no workbench.toml names a model {arguments.name!r}: omit --replace to add it")
            return USAGE
    typed = _typed_model(arguments, known)
    try:
        if known is not None:
            owner, file = owner_of(known), known.file
        else:
            owner, file = arguments.to or usual_owner(program, folder), None
        spec = typed.spec(owner)
        if known is None:
            check_name_is_free(spec.name, folder, program)
        if not arguments.no_check:
            files = map(load_suite, find_suites([path])) if known is not None else ()
            if (why := check_refusal(known, spec, files, program)) is not None:
                warn(f"{why}, or give --no-check")
                return USAGE
            checked = check_typed_blocking(spec, folder, program)
            write(f"{checked.mark} {checked.sentence}\n")
            if not checked.ok:
                file = file or settings_file(program, folder, owner)
                warn(f"{spec.name} was not written into {file}: correct it, or give --no-check to write it anyway")
                return INFRASTRUCTURE
        if known is not None:
            done = f"is changed in {change_model(known, spec)}"
        else:
            done = f"is written into {add_model(spec, folder, program, owner)}"
    except InvalidModelError as error:
        for field, problem in error.problems.items():
            option = {"name": "NAME", "headers": "--header"}.get(field, f"--{field.replace('_', '-')}")
            warn(f"{option} {problem}")
        return USAGE
    except ConfigError as error:
        for problem in error.problems:
            warn(problem)
        return USAGE
    write(f"{spec.name} {done}: {spec.description}\nrun on it with --model {spec.name}\n")
    return OK


def _typed_model(arguments: argparse.Namespace, known: ModelSpec | None) -> TypedModel:
    """Return the model that the options describe. They override the preset, which overrides the known model."""
    from workbench.evaluation.typed_model import CLOUD_FIELDS, TypedModel

    typed = TypedModel()
    if known is not None:
        typed = TypedModel.of_spec(known)
    for preset in PRESETS:
        if preset.name == arguments.preset:
            typed = replace(TypedModel.of_preset(preset), model=typed.model, price=typed.price)
    options = ("provider", "base_url", "api_key_env", "key_command", "price", "thoughts", *CLOUD_FIELDS)
    given = {name: value for name in options if (value := getattr(arguments, name)) is not None}
    for name, words in (("headers", arguments.header), ("query", arguments.query)):
        if words is not None:
            given[name] = shlex.join(words)
    replaced = {}
    if "base_url" in given:
        # The key and the headers for one address must never be sent to another address.
        names = ("api_key_env", "key_command", "headers", "query", "resource", "profile", "credentials")
        replaced = dict.fromkeys(names, "")
    elif "api_key_env" in given or "key_command" in given:
        replaced = dict.fromkeys(("api_key_env", "key_command", "profile", "credentials"), "")
    model = arguments.model or typed.model or arguments.name
    return replace(typed, **(replaced | given), name=arguments.name, model=model)
