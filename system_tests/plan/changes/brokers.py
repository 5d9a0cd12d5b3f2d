"""Which brokers the members of a path need, and whether those of a group suffice."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from probing import Release, ReleaseError, find_release
from system_tests.plan.changes.rows import CHANGES
from system_tests.plan.exactly_once import has_version
from system_tests.plan.model import Running
from system_tests.plan.uses import VERSIONS, Use, version_of


class Brokers(NamedTuple):
    """The brokers of a group, and what they are for the members of a path.

    Attributes:
        release: that they run.
        problem: why they do not suffice, as a sentence; empty: they do.
        way_out: what to do about it, as an imperative.
        needed: the first release that suffices; empty: none is recorded.
        members: the releases that members come to run.
    """

    release: Release
    problem: str
    way_out: str
    needed: str
    members: tuple[str, ...]

    def __str__(self) -> str:
        """Return whether they suffice, without their release."""
        if self.problem:
            return self.problem
        if not self.members:
            return "what native members need is what their client library needs"
        needed = f"; {self.needed} or later is needed" if self.needed else ""
        return f"suffice for members of {' and '.join(self.members)}{needed}"


def brokers_of(release: Release, ran: Sequence[Running], uses: Collection[Use]) -> Brokers:
    """Return what brokers of a release are for the members of a path.

    What the members run before the path counts as well as what they come to run. If the version of
    exactly-once is not known, and members may run either, it is taken to be the one that needs the
    later brokers.

    Args:
        release: of the brokers.
        ran: what the members run, in order, the first included.
        uses: features of the application.

    Raises:
        ReleaseError: `release` is not one of Kafka.
    """
    if release.is_native:
        raise ReleaseError(f"{release.name} is not a release of brokers; give one, as 4.4")
    members = [(state.release, _uses_in(state, ran[0], uses)) for state in ran]
    now = members[0][0]
    needs = (
        row
        for row in CHANGES
        if row.needs and any(row.is_in(member) and row.concerns(own) for member, own in members)
    )
    needed = max(needs, key=lambda row: find_release(row.needs).order, default=None)
    problem, way_out = "", ""
    if needed is not None and release.order < find_release(needed.needs).order:
        problem = f"do not suffice: {needed.what}"
        is_now = needed.is_in(now) and needed.concerns(members[0][1])
        way_out = f"upgrade the brokers to {needed.needs} or later first"
        is_guessed = version_of(uses) is None and not any(state.version for state in ran)
        if Use.EOS_V2 in needed.uses and is_guessed:
            way_out += f"; if members run exactly_once, plan with --uses {Use.EOS_V1}"
        elif is_now:
            way_out += f", or correct --brokers: members of {now.name} need them already"
    for row in (row for row in CHANGES if row.refused_by and row.concerns(uses)):
        refused = [stop for stop, _ in members if not (stop.is_native or row.is_in(stop))]
        if refused and release.order >= find_release(row.refused_by).order:
            named = " and ".join(dict.fromkeys(stop.name for stop in refused))
            problem = f"refuse members of {named}: {row.what}"
            way_out = (
                f"correct --brokers: members of {now.name} cannot run with these now"
                if now in refused
                else f"plan with --to {row.since} or a later release"
            )
    later = dict.fromkeys(stop.name for stop, _ in members[1:] if not stop.is_native)
    return Brokers(
        release=release,
        problem=problem,
        way_out=way_out,
        needed="" if needed is None else needed.needs,
        members=tuple(later),
    )


def _uses_in(state: Running, first: Running, uses: Collection[Use]) -> frozenset[Use]:
    """Return the features of an application, with the version of exactly-once of a state.

    A state that does not have it has that of the first one.
    """
    if Use.EOS not in uses:
        return frozenset(uses)
    version = state.version or version_of(uses) or (2 if has_version(first.release, 2) else 1)
    known = next(use for use, number in VERSIONS.items() if number == version)
    return frozenset(uses) - set(VERSIONS) | {known}
