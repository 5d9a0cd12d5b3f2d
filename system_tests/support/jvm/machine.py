"""A Java virtual machine inside this process, with the classes of one release.

JPype cannot stop a JVM and start another: one process, one release.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assignor.cli.toolkit import missing_extra
from system_tests.errors import EnvironmentFailureError
from system_tests.real import find_java

_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xrs",  # signals are Python's
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


def start_jvm(jars: Sequence[Path], *, log_levels: Sequence[str] = ()) -> Any:
    """Start it and return the function that looks a Java class up by its name.

    Args:
        jars: the class path.
        log_levels: `logger=level`, for what should be logged below "warn".

    Raises:
        EnvironmentFailureError: JPype is not installed, or no Java is here.
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
        *(f"-Dorg.slf4j.simpleLogger.log.{level}" for level in log_levels),
        jvmpath=str(find_java().library()),
        classpath=[str(jar) for jar in jars],
        convertStrings=False,
    )
    return jpype.JClass


def implement(java_class: Any, **methods: Any) -> Any:
    """Make a Java object of an interface, whose methods are Python functions."""
    import jpype  # noqa: PLC0415 in the extra `real` only

    return jpype.JProxy(java_class, dict=methods)


def java_exception() -> type[Exception]:
    """What a Java exception is in Python."""
    import jpype  # noqa: PLC0415 in the extra `real` only

    found: type[Exception] = jpype.JException
    return found


def java_bytes(data: bytes) -> Any:
    """Copy bytes to a Java byte array."""
    import jpype  # noqa: PLC0415 in the extra `real` only

    return jpype.JArray(jpype.JByte)(data)
