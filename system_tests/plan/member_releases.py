"""The releases that fit what the members of a saved group wrote."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from assignor.problems import ProblemError, checked_object, list_at, quoted, texts_at
from encoding import shown
from probing import RELEASES

_SHOWN: Final = 5
_KNOWN_RELEASES: Final = frozenset(release.name for release in RELEASES)


def client_releases(client: str, data: Mapping[str, Any]) -> frozenset[str]:
    """Return the releases that match what all threads of a client wrote; empty if unknown.

    Raises:
        ProblemError: `versions` has a wrong type; all releases of a thread are unknown here; or
            threads wrote what no single release writes.
    """
    where = f"client {shown(client)}"
    found = [_written(where, row) for row in list_at(data, "versions", where)]
    for names in found:
        if names and not names & _KNOWN_RELEASES:
            raise ProblemError(
                f"{where} has releases {quoted(sorted(names)[:_SHOWN])}, of which"
                " none is known here: correct the file, or use the version that saved it"
            )
    known = [names & _KNOWN_RELEASES for names in found]
    common = frozenset.intersection(*known) if known else frozenset()
    if known and all(known) and not common:
        kinds = sorted(set(map(spelled_releases, known)))
        raise ProblemError(
            f"{where} contradicts itself: its threads have versions of {' and of '.join(kinds)},"
            " and a process runs one release; save the group again when all its members are there"
        )
    return common


def _written(where: str, row: object) -> frozenset[str]:
    """Return the releases of an entry of `versions`."""
    version = checked_object(row, f"{where}: an entry of versions")
    native = version.get("native")
    if native is not None and type(native) is not int:
        raise ProblemError(
            f"{where}: versions has native {quoted(native)}; give the native version, or null"
        )
    releases = texts_at(version, "releases", f"{where}: versions")
    return frozenset({"native"} if native else releases)


def spelled_releases(names: Iterable[str]) -> str:
    """Return the first and the last release of the names, or the only one."""
    ordered = [release.name for release in RELEASES if release.name in set(names)]
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
