"""What a suite was allowed to use, as it was when a person saw it. Nothing of this is read again afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.config.models import ConfigError
from workbench.suite.model import Server
from workbench.suite.trust import SuiteNeeds, server_need
from workbench.tools.answer import ServerError
from workbench.tools.code_files import FoundCode
from workbench.tools.python_reference import PythonFunctions


@dataclass(frozen=True)
class Grant:
    """The needs of one suite that were approved, the environment variables then in force (or why they could not be
    read), and the code behind its modules and functions as it was then."""

    needs: SuiteNeeds
    environment: Mapping[str, str] | ConfigError = field(repr=False)
    code: FoundCode = field(repr=False)

    def covers(self, server: Server) -> bool:
        """Whether the server may be started or reached as it is defined."""
        need = server_need(server)
        return need is None or need in (*self.needs.commands, *self.needs.modules, *self.needs.urls)

    def variables(self, server: Server) -> Mapping[str, str]:
        """The environment variables for a server; raises ServerError when they could not be read."""
        if isinstance(self.environment, ConfigError):
            raise ServerError(f"server {server.name!r} is not started: {self.environment}") from self.environment
        return self.environment

    def functions(self) -> PythonFunctions:
        """The Python functions that were approved, not loaded yet."""
        return PythonFunctions(self.code)
