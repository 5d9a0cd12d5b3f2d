"""The published jars of a release, by coordinates.

Ivy, a part of PySpark, downloads them into one cache for all releases; a list with checksums
contains the jars of a release. Unchanged jars in the cache are used without the network.
`checksums.txt` pins the jars of this project's own tests, another file of that name beside the jars
those that a user has checked; a jar in neither of them is rejected.
"""

import fcntl
import hashlib
import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from probing import ReleaseError, find_release
from system_tests.errors import EnvironmentFailureError
from system_tests.real.java import find_java

FOLDER_VARIABLE = "STREAMS_REBALANCE_JARS"
SETTINGS_VARIABLE = "STREAMS_REBALANCE_IVY_SETTINGS"
PINS = Path(__file__).with_name("checksums.txt")

_KAFKA = "org.apache.kafka"
_BROKER = "kafka_2.13"
_STREAMS = "kafka-streams"
_TOOLS = "kafka-tools"
_LOGGING = ("org.slf4j", "slf4j-simple", "1.7.36")
# Native libraries of state stores on disk, 50 MB or more; most stores here are in memory.
_DISK_STORES = "rocksdbjni"
# The first release whose KRaft mode was declared ready for production.
_OLDEST_BROKER = (3, 3, 0)
_FETCH_S = 900
_CHUNK = 1 << 20
_PIN = re.compile(r"([0-9a-f]{64}) [ *](\S+)")
_FAULT = re.compile("not found|[Ee]rror|xception")
_COMPLAINT = re.compile(r"(?:::|SERVER ERROR:|java\.[\w.]+Exception:?) *(\S.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """Jars that are fetched together.

    Attributes:
        name: of their list.
        coordinates: group, artifact and version; their dependencies are fetched, too.
        alone: fetched without their dependencies.
        without_zookeeper: the dependency on ZooKeeper is left out.
        on_disk: with the native libraries of state stores on disk.
    """

    name: str
    coordinates: tuple[tuple[str, str, str], ...]
    alone: tuple[tuple[str, str, str], ...] = ()
    without_zookeeper: bool = False
    on_disk: bool = False

    def ivy_file(self) -> str:
        """Return the text of the Ivy file."""
        dependencies = "".join(
            f'<dependency org="{org}" name="{name}" rev={quoteattr(rev)} conf="default->default"/>'
            for org, name, rev in self.coordinates
        )
        dependencies += "".join(
            f'<dependency org="{org}" name="{name}" rev={quoteattr(rev)} conf="default->default"'
            ' transitive="false"/>'
            for org, name, rev in self.alone
        )
        excluded = {"zookeeper": self.without_zookeeper, _DISK_STORES: not self.on_disk}
        left_out = "".join(f'<exclude module="{name}"/>' for name in excluded if excluded[name])
        return (
            '<ivy-module version="2.0">'
            f"<info organisation='streams-rebalance' module={quoteattr(self.name)}/>"
            '<configurations><conf name="default"/></configurations>'
            f"<dependencies>{dependencies}{left_out}</dependencies></ivy-module>"
        )


def broker_release(name: str) -> str:
    """Return the release that `--broker` names: `kafka:3.9`, `kafka:4` (its newest), `kafka:3.9.1`.

    Raises:
        ReleaseError: no broker has this name, or it cannot run without ZooKeeper.
    """
    kind, _, version = name.partition(":")
    if kind != "kafka" or not version or version == "RELEASE":
        raise ReleaseError(
            f"broker {name!r} is unknown; put the release of your brokers after kafka: as in"
            " kafka:3.9 or kafka:4"
        )
    release = find_release(version)
    if release.is_native or release.order < _OLDEST_BROKER:
        oldest = ".".join(str(number) for number in _OLDEST_BROKER[:2])
        raise ReleaseError(f"broker {name!r} cannot be started; use {oldest} or newer")
    return release.name


def broker_jars(release: str) -> tuple[Path, ...]:
    """Return the class path of a broker, fetched if need be; `release` is an exact name.

    Raises:
        EnvironmentFailureError: the jars are not available.
    """
    return _jars(
        _Wanted(
            name=f"broker-{release}",
            coordinates=((_KAFKA, _BROKER, release), _LOGGING),
        )
    )


def tools_jars(release: str) -> tuple[Path, ...]:
    """Return the class path of Kafka's own tools, fetched if need be; `release` is an exact name.

    Their dependencies are those of a broker; the jars of Connect are left out.

    Raises:
        EnvironmentFailureError: the jars are not available.
    """
    return _jars(
        _Wanted(
            name=f"tools-{release}",
            coordinates=((_KAFKA, _BROKER, release), _LOGGING),
            alone=((_KAFKA, _TOOLS, release),),
        )
    )


def streams_jars(release: str, *, on_disk: bool = False) -> tuple[Path, ...]:
    """Return the class path of a Kafka Streams member, fetched if need be.

    Args:
        release: exact name.
        on_disk: with what state stores on disk need.

    Raises:
        EnvironmentFailureError: the jars are not available.
    """
    return _jars(
        _Wanted(
            name=f"streams-{release}" + "-on-disk" * on_disk,
            coordinates=((_KAFKA, _STREAMS, release), _LOGGING),
            without_zookeeper=True,
            on_disk=on_disk,
        )
    )


def jar_folder() -> Path:
    """Return the folder of the jars: that of the variable, or one in the user's cache."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "streams-rebalance" / "jars"


def _jars(wanted: _Wanted) -> tuple[Path, ...]:
    folder = jar_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            found = _listed(folder, wanted.name)
            if found is None:
                _fetch(folder, wanted)
                found = _listed(folder, wanted.name)
    except OSError as error:
        raise EnvironmentFailureError(
            f"jars cannot be stored in {folder}: {error}; set {FOLDER_VARIABLE} to another folder"
        ) from error
    if found is None:
        raise EnvironmentFailureError(
            f"the jars in {folder} change while they are read; fetch them again"
        )
    return found


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock out other processes: Ivy's cache has one writer at a time."""
    with (folder / ".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _listed(folder: Path, name: str) -> tuple[Path, ...] | None:
    """Return the jars of a list; None if the list or a jar is missing or changed."""
    try:
        rows = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        jars = tuple((folder / row["jar"], row["sha256"]) for row in rows)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if not jars or any(not jar.is_file() or sha256(jar) != digest for jar, digest in jars):
        return None
    pins = _pins(folder)
    if any(pins.get(jar.name) != digest for jar, digest in jars):
        return None
    return tuple(jar for jar, _ in jars)


def _fetch(folder: Path, wanted: _Wanted) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as work:
        ivy_file, paths_file = Path(work) / "ivy.xml", Path(work) / "paths"
        ivy_file.write_text(wanted.ivy_file(), encoding="utf-8")
        settings = os.environ.get(SETTINGS_VARIABLE)
        command = [
            *(str(find_java().executable), "-Xmx256m", "-jar", str(_ivy_jar())),
            *(("-settings", settings) if settings else ()),
            *("-cache", str(folder / "ivy"), "-ivy", str(ivy_file), "-confs", "default"),
            *("-cachepath", str(paths_file)),
        ]
        _run_ivy(command, wanted)
        paths = [Path(p) for p in paths_file.read_text(encoding="utf-8").strip().split(os.pathsep)]
        rows = [
            {"jar": str(path.relative_to(folder)), "sha256": sha256(path)} for path in sorted(paths)
        ]
        _check_pins(folder, wanted.name, rows)
        listed = Path(work) / "list.json"
        listed.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        listed.replace(folder / f"{wanted.name}.json")


def _run_ivy(command: Sequence[str], wanted: _Wanted) -> None:
    what = " and ".join(":".join(row) for row in wanted.coordinates)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_FETCH_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentFailureError(
            f"fetching {what} took longer than {_FETCH_S} s; try again; downloaded jars are kept"
        ) from error
    if done.returncode:
        complaints = [
            found[1]
            for line in (done.stdout + done.stderr).splitlines()
            if (found := _COMPLAINT.search(line)) and _FAULT.search(line)
        ]
        why = complaints[0] if complaints else f"Ivy ended with status {done.returncode}"
        raise EnvironmentFailureError(
            f"{what} cannot be fetched ({why}); check the release and the network, or name a "
            f"mirror by an Ivy settings file in {SETTINGS_VARIABLE}"
        )


def _ivy_jar() -> Path:
    package = find_spec("pyspark")
    for folder in (package.submodule_search_locations or ()) if package else ():
        for jar in sorted(Path(folder).glob("jars/ivy-*.jar")):
            return jar
    raise EnvironmentFailureError(
        "Ivy, which downloads the jars, is not installed; install the extra `real`"
    )


def _check_pins(folder: Path, name: str, rows: Sequence[dict[str, str]]) -> None:
    """Reject jars with another checksum than the pinned one, and jars without one."""
    pins = _pins(folder)
    unpinned = []
    for row in rows:
        jar, checksum = Path(row["jar"]).name, row["sha256"]
        if jar not in pins:
            unpinned.append((jar, checksum))
        elif pins[jar] != checksum:
            raise EnvironmentFailureError(
                f"{jar} has SHA-256 {checksum}, which is not the one in "
                "checksums.txt; the download was changed: do not use it"
            )
    if not unpinned:
        return
    proposed = folder / f"{name}.unpinned"
    proposed.write_text("".join(f"{checksum}  {jar}\n" for jar, checksum in unpinned), "utf-8")
    more = f" and {len(unpinned) - 1} more" if len(unpinned) > 1 else ""
    own = shlex.quote(str(folder / PINS.name))
    raise EnvironmentFailureError(
        f"{unpinned[0][0]}{more} of {name} has no checksum in checksums.txt, so it is"
        f" unverified; compare the SHA-256 in {proposed} with the publisher's, then pin it with"
        f" `cat {shlex.quote(str(proposed))} >> {own}`"
    )


def _pins(folder: Path) -> dict[str, str]:
    """Return SHA-256 by name of a jar: the user's pins, overridden by this project's."""
    own = folder / PINS.name
    return (_read_pins(own) if own.is_file() else {}) | _project_pins()


@cache
def _project_pins() -> dict[str, str]:
    return _read_pins(PINS)


def _read_pins(path: Path) -> dict[str, str]:
    pins: dict[str, str] = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _PIN.fullmatch(line)
        if found is None:
            raise EnvironmentFailureError(
                f"line {number} of {path} is no checksum with a name, as sha256sum writes them;"
                " correct or remove it"
            )
        pins[found[2]] = found[1]
    return pins


def sha256(path: Path) -> str:
    """Return the checksum of a file, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
