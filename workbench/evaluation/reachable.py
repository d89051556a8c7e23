"""Which of the known endpoints can be reached: those whose key is found, local servers that answer, and the models that
each of them lists."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from workbench.config.models import ConfigError
from workbench.config.presets import Preset
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.numerals import counted
from workbench.providers.http.endpoints import Endpoints
from workbench.providers.model import ModelError

CONNECT_TIMEOUT_S = 1.0
"""For a server on this machine to accept a connection."""

LISTING_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class KnownEndpoint:
    """A known endpoint, the variables among which its key was looked for, and what it said.

    `models` are those that it lists, `None` if it was not asked or did not list any; `problem` says why it did not,
    where something answers.
    """

    preset: Preset
    environment: Mapping[str, str]
    models: tuple[str, ...] | None = None
    problem: str = ""

    @property
    def key_is_found(self) -> bool:
        """Whether the variable of its key has a value. A local server needs none."""
        variable = self.preset.api_key_env
        return variable is None or bool(self.environment.get(variable, "").strip())

    @property
    def is_reachable(self) -> bool:
        """Whether it can be used: its key is found or, for a server on this machine, it answered."""
        return self.models is not None or (not self.preset.is_local and self.key_is_found)

    @property
    def state(self) -> str:
        """What is known of it, in a few words."""
        preset = self.preset
        key = f"key found in {preset.api_key_env}" if self.key_is_found else f"no key: {preset.api_key_env} is not set"
        lists = "" if self.models is None else f"lists {counted(len(self.models), 'model')}"
        if preset.is_local:
            return f"answers at {preset.place}, {lists}" if lists else f"nothing answers at {preset.place}"
        return ", ".join(filter(None, (key, lists)))


def known_endpoints(
    program: Program, folders: Sequence[Path], presets: Sequence[Preset]
) -> tuple[list[KnownEndpoint], list[str]]:
    """Return the known endpoints, with the variables for the suites in one of the folders, the first that has the key;
    and what is wrong with files of variables. Reads files only."""
    environments: list[Mapping[str, str]] = []
    problems: list[str] = []
    for folder in folders:
        try:
            environments.append(program.environment.of(folder))
        except ConfigError as error:
            problems += error.problems
    own = program.environment.own
    endpoints = []
    for preset in presets:
        among = (KnownEndpoint(preset, environment) for environment in (*environments, own))
        endpoints.append(next((each for each in among if each.key_is_found), KnownEndpoint(preset, own)))
    return endpoints, list(dict.fromkeys(problems))


async def with_models(endpoint: KnownEndpoint, program: Program) -> KnownEndpoint:
    """Ask an endpoint which models it lists. One on this machine is first tried with a bare connection, which costs
    nothing where there is none. Never sends a key to another address than the preset's."""
    preset = endpoint.preset
    if preset.is_local and not await _accepts(preset.base_url):
        return replace(endpoint, models=None, problem="")
    endpoints = Endpoints(program.secrets)
    try:
        async with asyncio.timeout(LISTING_TIMEOUT_S):
            models = await endpoints.list_models(preset.spec(), endpoint.environment)
    except TimeoutError:
        problem = f"{preset.base_url} did not list its models within {LISTING_TIMEOUT_S:g} s"
        return replace(endpoint, models=None, problem=problem)
    except ModelError as error:
        return replace(endpoint, models=None, problem=str(error))
    finally:
        await endpoints.close()
    return replace(endpoint, models=models, problem="")


async def with_all_models(endpoints: Sequence[KnownEndpoint], program: Program) -> list[KnownEndpoint]:
    """Ask all endpoints that need no key, or whose key is found, at the same time."""

    async def asked(endpoint: KnownEndpoint) -> KnownEndpoint:
        return await with_models(endpoint, program) if endpoint.key_is_found else endpoint

    return list(await asyncio.gather(*map(asked, endpoints)))


async def _accepts(url: str) -> bool:
    """Return whether something on this machine accepts connections at an address."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except OSError:
        return False
    writer.close()
    return True


def names_to_run(endpoint: KnownEndpoint) -> Iterator[tuple[str, str | None]]:
    """Yield the models that an endpoint lists, each with the name by which it can be run, `None` if it must be named in
    a `workbench.toml` first."""
    for model in endpoint.models or ():
        yield model, endpoint.preset.model_name(model)
