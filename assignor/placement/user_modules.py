"""Modules with a custom strategy: imported from the import path, or from the current directory.

`sys.path` is not changed. A console script does not have the current directory on it, so a module
that is not on the path is searched for there: as NAME.py, or as a package in the folder NAME. Such
a module may import modules on the import path and modules of its own package. It cannot import a
file next to it by its plain name; put both into a package, or set PYTHONPATH.
"""

import importlib
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path, PurePosixPath
from types import ModuleType

from assignor.errors import ConfigError
from assignor.placement.validation import error_line
from encoding import shown


def refuse_path(name: str) -> None:
    """Check that the name of a module is not the path of a file.

    Raises:
        ConfigError: it contains a slash or a backslash; the message has the dotted name.
    """
    path = name.replace("\\", "/")
    if "/" not in path:
        return
    parts = PurePosixPath(path.removesuffix(".py")).parts
    dotted = ".".join(part for part in parts if part not in {"/", ".."})
    hint = f", such as {shown(dotted)}" if dotted else ""
    raise ConfigError(
        f"{shown(name)} is a path, not a module; give its dotted name{hint}, seen from the current "
        "directory or from PYTHONPATH"
    )


def user_module(name: str) -> ModuleType:
    """Import a module by its dotted name, from the import path or else the current directory.

    Raises:
        ConfigError: there is no such module, or importing it fails; the message says where it was
            searched for and what it raised.
        MemoryError, KeyboardInterrupt, GeneratorExit: raised while the module was imported.
    """
    try:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            top = name.partition(".")[0]
            if error.name != top or not _load_from_current_directory(top):
                raise
        return importlib.import_module(name)
    except MemoryError:
        raise
    except ModuleNotFoundError as error:
        raise ConfigError(_not_found(name, error)) from None
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ConfigError(
            f"module {shown(name)} cannot be imported, {error_line(error)}; correct it"
        ) from error


def _load_from_current_directory(name: str) -> bool:
    """Load NAME.py, or the package in the folder NAME, as module NAME; False if there is none."""
    spec = _spec_in(Path.cwd(), name)
    if spec is None:
        return False
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        if spec.loader is not None:
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return True


def _spec_in(folder: Path, name: str) -> ModuleSpec | None:
    """The import spec of a module in this folder; None if the folder does not have it."""
    package, file = folder / name, folder / f"{name}.py"
    inside = [str(package)]
    if (package / "__init__.py").is_file():
        return spec_from_file_location(
            name, package / "__init__.py", submodule_search_locations=inside
        )
    if file.is_file():
        return spec_from_file_location(name, file)
    if not package.is_dir():
        return None
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = inside
    return spec


def _not_found(name: str, error: ModuleNotFoundError) -> str:
    """The error message: which module is missing, where it was searched for, and what to do."""
    missing = error.name or name
    if name == missing or name.startswith(f"{missing}."):
        return (
            f"{shown(error)}: it is not on the import path and not in the current directory "
            f"{shown(str(Path.cwd()))}; change to its directory, or set PYTHONPATH"
        )
    return (
        f"module {shown(name)} needs another one: {shown(error)}; install it, set PYTHONPATH, or "
        "put both modules into one package"
    )
