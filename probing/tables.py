"""Reading of the TOML files that hold what differs by release."""

import tomllib
from importlib.resources import files
from typing import Any


def read_table(package: str, name: str) -> dict[str, Any]:
    """Return the tables of a TOML file in a package, which may be in a zip archive.

    The file is a part of the program: it is read once, when the module that declares it is loaded.

    Args:
        package: the package's name.
        name: the file's name.
    """
    return tomllib.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
