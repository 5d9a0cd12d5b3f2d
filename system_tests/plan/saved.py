"""A live group as a plan's start: what `assignor inspect --save` wrote, read for `plan --group`.

The file says what every member wrote. That names a range of releases rather than one, so `--from`
is still the operator's to say where the range has more than one; it is held against the file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from assignor import read_problem
from assignor.problems import ProblemError, parse_problem
from encoding import RebalanceError
from probing import RELEASES, Release, ReleaseError

_FILE_LIMIT: Final = 512 * 1024 * 1024
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedGroup:
    """A saved group, as far as a plan cares.

    Attributes:
        name: of the group.
        processes, partitions: how many clients; of the widest source topic.
        releases_by_client: client -> names of the releases that write what each of its threads
            wrote; empty where that is not known.
    """

    name: str
    processes: int
    partitions: int
    releases_by_client: Mapping[str, frozenset[str]]

    def release(self, given: Release | None) -> str:
        """The release that the group runs, by name: `given`, else the only one that fits.

        Raises:
            ReleaseError: none was given and several fit, or members differ; or the one that was
                given does not write what members wrote.
        """
        known = {one: names for one, names in self.releases_by_client.items() if names}
        if given is not None:
            wrong = sorted(one for one, names in known.items() if given.name not in names)
            if wrong:
                raise ReleaseError(
                    f"{', '.join(wrong[:_SHOWN])} of the saved group wrote what {given.name} does "
                    f"not write, but {_spelled(known[wrong[0]])}; give that as --from, or bring "
                    "all members to one release first"
                )
            return given.name
        common = frozenset.intersection(*known.values()) if known else frozenset()
        if len(common) == 1:
            return next(iter(common))
        if common:
            said = f"members of the saved group are of {_spelled(common)}"
        elif known:
            kinds = sorted({_spelled(names) for names in known.values()})
            said = f"members of the saved group differ: {', '.join(kinds[:_SHOWN])}"
        else:
            said = "the file does not say what its members wrote; was it saved by assignor inspect?"
        raise ReleaseError(f"{said}; say with --from which release they run")


def read_saved(path: Path) -> SavedGroup:
    """Read a problem file that `assignor inspect --save` wrote.

    Raises:
        ProblemError: it cannot be read, or is no problem file.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_FILE_LIMIT + 1)
    except OSError as error:
        raise ProblemError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(raw) > _FILE_LIMIT:
        raise ProblemError(f"{path} has more than {_FILE_LIMIT} bytes; it is no saved group")
    try:
        data = parse_problem(raw.decode("utf-8", errors="replace"))
        problem = read_problem(data)
    except RebalanceError as error:
        raise ProblemError(f"{path}: {error}") from None
    sizes = (task.partition + 1 for task in problem.state.tasks)
    return SavedGroup(
        name=problem.name,
        processes=len(problem.state.clients),
        partitions=max(sizes, default=1),
        releases_by_client={
            str(client.get("client", process)): _releases(client.get("versions"))
            for process, client in sorted(data["clients"].items())
        },
    )


def _releases(rows: Any) -> frozenset[str]:
    """Releases that write what all threads of a client wrote."""
    found = [
        frozenset({"native"} if row.get("native") else map(str, row.get("releases") or ()))
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
    ]
    return frozenset.intersection(*found) if found else frozenset()


def _spelled(names: Iterable[str]) -> str:
    ordered = [release.name for release in RELEASES if release.name in set(names)]
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
