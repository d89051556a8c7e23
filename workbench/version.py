"""The version of the program. It has its own module, because the package imports everything else."""

from __future__ import annotations

__version__ = "0.1.0"
