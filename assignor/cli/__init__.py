"""The ``assignor`` command: one click group, subcommands loaded only when they are called."""

from assignor.cli.main import main

__all__ = ["main"]
