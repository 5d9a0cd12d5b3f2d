"""Reading of the TOML files that hold what differs by release."""

import tomllib
from pathlib import Path
from typing import Any


def read_table(module: str, name: str) -> dict[str, Any]:
    """Return the tables of a TOML file beside a module.

    The file is a part of the program: it is read once, when the module that declares it is loaded.

    Args:
        module: `__file__` of the caller.
        name: the file's name.
    """
    return tomllib.loads(Path(module).with_name(name).read_text(encoding="utf-8"))
