"""A Java virtual machine inside this process, with the classes of one release.

JPype cannot stop a JVM and start another, so a process has one release.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assignor.cli.toolkit import missing_extra
from system_tests.errors import EnvironmentFailureError
from system_tests.real.java import find_java

_MOST_CAUSES = 8
_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xrs",  # signals are Python's
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


def start_jvm(jars: Sequence[Path], *, log_levels: Sequence[str] = (), temporary: str = "") -> Any:
    """Start it; return the function that finds a Java class by its name.

    Args:
        jars: the class path.
        log_levels: `logger=level`, for loggers with a level below "warn".
        temporary: an existing directory for what the JVM leaves behind when it is killed, such as
            50 MB of RocksDB; "": that of the system.

    Raises:
        EnvironmentFailureError: JPype or Java is not installed.
    """
    try:
        import jpype  # noqa: PLC0415 in the extra `real` only
    except ImportError as error:
        why = missing_extra(error) or error
        raise EnvironmentFailureError(f"no JVM can be started: {why}") from error
    native = ("--enable-native-access=ALL-UNNAMED",) if find_java().feature_release > 21 else ()  # noqa: PLR2004 asked for since 22
    jpype.startJVM(
        *_OPTIONS,
        *native,
        *([f"-Djava.io.tmpdir={temporary}"] if temporary else []),
        *(f"-Dorg.slf4j.simpleLogger.log.{level}" for level in log_levels),
        jvmpath=str(find_java().library()),
        classpath=[str(jar) for jar in jars],
        convertStrings=False,
    )
    return jpype.JClass


def implement(java_class: Any, **methods: Any) -> Any:
    """Create a Java object that implements an interface with Python functions."""
    import jpype  # noqa: PLC0415 in the extra `real` only

    return jpype.JProxy(java_class, dict=methods)


def java_causes(error: Any) -> str:
    """Return the text of a Java exception and of its causes, 8 at most, as one sentence."""
    found: list[str] = []
    while error is not None and len(found) < _MOST_CAUSES:
        found.append(str(error.toString()))
        error = error.getCause()
    return "; because of ".join(found)


def java_exception() -> type[Exception]:
    """Return the Python type of Java exceptions."""
    import jpype  # noqa: PLC0415 in the extra `real` only

    found: type[Exception] = jpype.JException
    return found


def java_bytes(data: bytes) -> Any:
    """Copy bytes to a Java byte array."""
    import jpype  # noqa: PLC0415 in the extra `real` only

    return jpype.JArray(jpype.JByte)(data)
