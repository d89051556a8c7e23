"""The user's approval of one suite: commands, modules, addresses, and the code and environment at the approval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from workbench.config.models import ConfigError
from workbench.dataclasses import dataclass
from workbench.suite.model import Subject
from workbench.suite.server_model import Server
from workbench.suite.trust import SuiteNeeds, agent_need, roots_need, server_need
from workbench.tools.answer import ServerError
from workbench.tools.python_code import HashedCode, PythonFunctions


@dataclass(frozen=True)
class Grant:
    """The approved needs of one suite, with the environment and the code from the time of the approval.

    `environment` is the error of reading the variables if they could not be read. `code` is the code of the suite's
    modules and functions. Neither is read again, so a later change has no effect."""

    needs: SuiteNeeds
    environment: Mapping[str, str] | ConfigError = field(repr=False)
    code: HashedCode = field(repr=False)

    def covers(self, server: Server) -> bool:
        """Return whether the user approved a server in its present definition."""
        need, roots = server_need(server, self.needs.folder), roots_need(server, self.needs.folder)
        if roots is not None and roots not in self.needs.roots:
            return False
        return need is None or need in (*self.needs.commands, *self.needs.modules, *self.needs.urls)

    def covers_agent(self, agent: Subject) -> bool:
        """Return whether the user approved an agent in its present definition."""
        return agent_need(agent, self.needs.folder) in self.needs.commands

    def variables(self, server: Server) -> Mapping[str, str]:
        """Return the environment variables for a server.

        Raises ServerError if they could not be read."""
        if isinstance(self.environment, ConfigError):
            raise ServerError(f"server {server.name!r} is not started: {self.environment}") from self.environment
        return self.environment

    def functions(self) -> PythonFunctions:
        return PythonFunctions(self.code)
