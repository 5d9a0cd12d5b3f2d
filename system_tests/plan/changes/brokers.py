"""Which brokers the members of a path need, and whether those of a group suffice."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from probing import Release, ReleaseError, find_release
from system_tests.plan.changes.rows import CHANGES
from system_tests.plan.uses import Use


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


def brokers_of(release: Release, stops: Sequence[Release], uses: Collection[Use]) -> Brokers:
    """Return what brokers of a release are for the members of a path.

    Args:
        release: of the brokers.
        stops: releases of the members in order, the first included.
        uses: features of the application.

    Raises:
        ReleaseError: `release` is not one of Kafka.
    """
    if release.is_native:
        raise ReleaseError(f"{release.name} is not a release of brokers; give one, as 4.4")
    members = [stop for stop in stops if not stop.is_native]
    rows = [row for row in CHANGES if row.concerns(uses)]
    needs = (row for row in rows if row.needs and any(map(row.is_in, members)))
    needed = max(needs, key=lambda row: find_release(row.needs).order, default=None)
    problem, way_out = "", ""
    if needed is not None and release.order < find_release(needed.needs).order:
        problem = f"do not suffice: {needed.what}"
        way_out = f"upgrade the brokers to {needed.needs} or later first"
    for row in rows:
        refused = [stop.name for stop in members if not row.is_in(stop)]
        if row.refused_by and refused and release.order >= find_release(row.refused_by).order:
            problem = f"refuse members of {' and '.join(refused)}: {row.what}"
            way_out = f"take {row.since} or later instead, or correct --brokers"
    return Brokers(
        release=release,
        problem=problem,
        way_out=way_out,
        needed="" if needed is None else needed.needs,
        members=tuple(stop.name for stop in stops[1:] if not stop.is_native),
    )
