"""Workbench: author, debug and compare LLM tool calling in a terminal."""

__version__ = "0.1.0"
