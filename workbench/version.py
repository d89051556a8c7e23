"""The version of the program, apart from the package itself, whose public names stand on everything else."""

from __future__ import annotations

__version__ = "0.1.0"
