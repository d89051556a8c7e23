"""The version of the program. It has its own module so that every other module can import it."""

from __future__ import annotations

__version__ = "0.1.0"
