"""The version of the program. It has a module of its own, because the package imports everything else."""

from __future__ import annotations

__version__ = "0.1.0"
