"""What the user approved for one suite: commands, modules and addresses, with the code and environment at that time."""

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
    """What the user approved for one suite. The environment and the code are those at the time of the approval.

    If the variables could not be read, `environment` is the error. `code` is the code of the suite's modules and
    functions. The variables and the code are not read again, so a later change has no effect."""

    needs: SuiteNeeds
    environment: Mapping[str, str] | ConfigError = field(repr=False)
    code: HashedCode = field(repr=False)

    def covers(self, server: Server) -> bool:
        """Return whether the user approved a server as it is defined now."""
        need, roots = server_need(server, self.needs.folder), roots_need(server, self.needs.folder)
        if roots is not None and roots not in self.needs.roots:
            return False
        return need is None or need in (*self.needs.commands, *self.needs.modules, *self.needs.urls)

    def covers_agent(self, agent: Subject) -> bool:
        """Return whether the user approved an agent as it is defined now."""
        return agent_need(agent, self.needs.folder) in self.needs.commands

    def variables(self, server: Server) -> Mapping[str, str]:
        """Return the environment variables for a server.

        Raises ServerError if they could not be read."""
        if isinstance(self.environment, ConfigError):
            raise ServerError(f"server {server.name!r} is not started: {self.environment}") from self.environment
        return self.environment

    def functions(self) -> PythonFunctions:
        return PythonFunctions(self.code)
