"""The releases that fit what the members of a group wrote, and bounces that stopped halfway."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from assignor.inspection import few
from assignor.problems import ProblemError, checked_object, list_at, quoted, texts_at
from encoding import shown
from probing import RELEASES, Release, find_release
from system_tests.plan.steps import make_plan
from system_tests.plan.uses import Use

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


class BegunBounce(NamedTuple):
    """A bounce that stopped halfway, which a plan continues.

    Attributes:
        old: release of the members that it has not restarted.
        done: what the plan leaves out, as a sentence without a full stop.
    """

    old: Release
    done: str


def begun_bounce(
    known: Mapping[str, frozenset[str]],
    given: Release | None,
    goal: Release,
    uses: frozenset[Use] = frozenset(),
) -> BegunBounce | None:
    """Return the bounce that a plan to `goal` continues, if members run what it starts and ends.

    Args:
        known: client -> the releases that fit what it wrote; empty if unknown.
        given: release of the members that were not restarted; None: the only one that fits.
        goal: release that all members are brought to.
        uses: features that the application uses.

    Raises:
        OptionError: a release does not have a feature.
    """
    kinds = sorted({names for names in known.values() if names}, key=sorted)
    if len(kinds) != 2 or kinds[0] & kinds[1]:  # noqa: PLR2004 before and after
        return None
    for before, after in (kinds, reversed(kinds)):
        olds = before if given is None else before & {given.name}
        for old in map(find_release, olds if len(olds) == 1 else ()):
            steps = list(enumerate(make_plan(old, goal, uses).steps, 1))
            number, step = next((row for row in steps if row[1].release != old.name), (0, None))
            if step is not None and step.release in after:
                done = sorted(client for client, names in known.items() if names == after)
                fits = spelled_releases(after)
                checked = f"run it (they write what {fits} do) with" if len(after) > 1 else "have"
                then = (
                    f"check that they {checked} the settings of this step, and leave them out up to"
                    " its end; the costs are those of all members"
                    if step.rolling
                    else "this step stops all members, these too, as the two releases must not run"
                    " in one group; stop them at once"
                )
                return BegunBounce(
                    old,
                    "this continues a bounce that stopped halfway: members that run"
                    f" {step.release} already, as after step {number}, are {few(done)}; {then}",
                )
    return None


def both_ways(known: Iterable[frozenset[str]]) -> str:
    """Return which plans continue a bounce between members of two releases, or take it back."""
    kinds = sorted({*known}, key=lambda names: max(find_release(n).order for n in names))
    if len(kinds) != 2:  # noqa: PLR2004 before and after
        return "bring all members to one release first"
    named = list(zip(("A", "B"), kinds, strict=True))
    ends = ["".join(names) if len(names) == 1 else letter for letter, names in named]
    ways = " or ".join(f"--from {old} --to {new}" for old, new in (ends, reversed(ends)))
    of = [
        f"{letter} is one of {spelled_releases(names)}" for letter, names in named if len(names) > 1
    ]
    return (
        "if a bounce stopped halfway, finish it or take it back first, with the releases that the"
        f" members run: rolling-bounce plan {ways}{', where ' * bool(of)}{' and '.join(of)}"
    )
