"""The environment as suites see it: the process's own, completed by a `.env` beside them that overrides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from workbench.config.secrets import Secrets


class Environment:
    """What `$NAME` in a suite and `api_key_env` of a model refer to. What is secret in it is told to `secrets`."""

    def __init__(self, own: Mapping[str, str], secrets: Secrets) -> None:
        self._own = own
        self._secrets = secrets

    def of(self, folder: Path) -> Mapping[str, str]:
        """The variables for the suites in a folder. Raises ConfigError when its `.env` cannot be read."""
        return self._own
