"""What the form for a model may do: look for keys, ask the endpoint, write the model down."""

from __future__ import annotations

from pathlib import Path

from workbench.config.models import ConfigError, ModelSpec
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.evaluation.model_edit import (
    Owner,
    add_model,
    change_model,
    check_name_is_free,
    check_typed_now,
    owner_of,
    settings_file,
    usual_owner,
)
from workbench.providers.http.endpoints import CheckResult
from workbench.tui.kit.stage import in_background


@dataclass(frozen=True)
class Added:
    """A model that was added or changed, and how quickly its endpoint answered, if it did."""

    name: str
    answered: str = ""


class ModelAdder:
    """Adds models for the suites in a folder; into the user's own `workbench.toml` only, if these are `bundled`. Or
    changes the one that is `known`."""

    def __init__(self, program: Program, folder: Path, *, bundled: bool, known: ModelSpec | None = None) -> None:
        self.known = known
        self._program = program
        self._folder = folder
        self.owners: tuple[Owner, ...] = ("user",) if bundled else ("user", "project")
        self.owner: Owner = "user" if bundled else usual_owner(program, folder)
        if known is not None:
            self.owners, self.owner = (owner_of(known),), owner_of(known)

    def file(self, owner: Owner) -> Path:
        """Return the `workbench.toml` of an owner, or that of the known model."""
        if self.known is not None and self.known.file is not None:
            return self.known.file
        return settings_file(self._program, self._folder, owner)

    def key_is_found(self, variable: str) -> bool:
        """Return whether a variable has a value, in the environment or in a `.env`. Raises ConfigError."""
        return bool(self._program.environment.of(self._folder).get(variable, "").strip())

    def check_name(self, name: str) -> None:
        """Raise ConfigError when the name is taken by another model."""
        if self.known is None:
            check_name_is_free(name, self._folder, self._program)

    async def check(self, spec: ModelSpec) -> CheckResult:
        """Ask the endpoint of a model whether it answers, accepts the key and has the model."""
        try:
            return await in_background(lambda: check_typed_now(spec, self._folder, self._program))
        except ConfigError as error:
            return CheckResult(False, str(error))

    def add(self, spec: ModelSpec, owner: Owner) -> Path:
        """Write a model down. Raises ConfigError."""
        if self.known is not None:
            return change_model(self.known, spec)
        return add_model(spec, self._folder, self._program, owner)

    def shown(self, text: str) -> str:
        """Return a text without secrets."""
        return self._program.secrets.redact(text)
