"""Reading of the TOML files that hold what differs by release."""

import tomllib
from pkgutil import get_data
from typing import Any


def read_table(package: str, name: str) -> dict[str, Any]:
    """Return the tables of a TOML file in a package, which may be in a zip archive.

    The file is a part of the program: it is read once, when the module that declares it is loaded.

    Args:
        package: the package's name.
        name: the file's name.

    Raises:
        OSError: the package has no such file.
    """
    data = get_data(package, name)  # importlib.resources takes 4 ms to import
    if data is None:
        raise FileNotFoundError(f"{package} has no {name}: its loader reads no files")
    return tomllib.loads(data.decode())
