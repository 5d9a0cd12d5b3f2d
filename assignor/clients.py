"""The client libraries that the adapters work with, and the error for one that does not fit."""

import re
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Final

_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLibrary:
    """A client library.

    Attributes:
        module: its import name.
        extra: of this package, which installs it.
        at_least: the first release that works.
        below: the first release that does not work any more; "": not known.
    """

    module: str
    extra: str
    at_least: str
    below: str = ""


CLIENT_LIBRARIES: Final = MappingProxyType(
    {
        "aiokafka": ClientLibrary(module="aiokafka", extra="aiokafka", at_least="0.13"),
        "confluent-kafka": ClientLibrary(
            module="confluent_kafka", extra="confluent", at_least="2.8"
        ),
        "kafka-python": ClientLibrary(module="kafka", extra="kafka", at_least="3.0.12", below="4"),
    }
)
"""Name of the distribution -> what is needed of it, as in pyproject.toml."""


class UnfitClient(ImportError):
    """A client library has a release that its adapter does not work with."""


def require_client(name: str, *, extra: str = "") -> None:
    """Check that a client library is installed, in a release that its adapter works with.

    Args:
        name: of the distribution, as in `CLIENT_LIBRARIES`.
        extra: of this package, for an adapter that needs several libraries; default: the library's.

    Raises:
        ModuleNotFoundError: it is missing; the message says what to install.
        UnfitClient: it has another release; the same.
    """
    library = CLIENT_LIBRARIES[name]
    found = _installed_version(name, library.module)
    wanted = f"{library.at_least} or newer" + (f", below {library.below}" if library.below else "")
    advice = f"pip install 'streams-rebalance[{extra or library.extra}]'"
    if found is None:
        raise ModuleNotFoundError(
            f"{name} is not installed, and this adapter needs {name} {wanted}: {advice}",
            name=library.module,
        )
    is_old = _order(found) < _order(library.at_least)
    if is_old or (library.below and _order(found) >= _order(library.below)):
        raise UnfitClient(
            f"{name} {found} is installed, and this adapter needs {name} {wanted}: {advice}"
        )


def _installed_version(name: str, module: str) -> str | None:
    """Return the release that is installed; None: there is none."""
    try:
        found = getattr(import_module(module), "__version__", None)
    except ImportError:  # missing, or too old for this Python
        found = None
    return found or _version_by_metadata(name)


def _version_by_metadata(name: str) -> str | None:
    # Imported where it is needed: modules of its own cost as much as a small library.
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 see above

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _order(text: str) -> tuple[int, ...]:
    numbers = _NUMBERS.match(text)
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else ()
