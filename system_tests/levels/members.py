"""Members of a simulated group with levels: their programs, their start and their polls."""

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from assignor import MemberIdentity, StreamsMember, Topology
from probing import RejoinNow, Release, find_release, rejoin_for_levels
from probing.features import UNKNOWN_LEVELS, FinalizedLevels, newest_levels

LATER_FIRST: Final = 11
LATER: Final = replace(
    find_release("next"), name="later", known_versions=(LATER_FIRST,), latest_version=LATER_FIRST
)
"""A release after `next` that does not support the first levels of the protocol."""

SUBTOPOLOGIES: Final = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_processor("count", parents=["lines"])
    .add_state_store("counts", processors=["count"])
    .subtopologies("app")
)
"""What every member runs: tasks with a store, one for each partition of the topic `lines`."""


@dataclass(slots=True, kw_only=True)
class RunningMember:
    """A running member, its release, the broker that it polls, and the newest levels found."""

    member: StreamsMember
    release: str
    broker: int
    found: FinalizedLevels = UNKNOWN_LEVELS

    def poll(self, levels: FinalizedLevels, *, leads: bool) -> RejoinNow | None:
        """Take levels of a broker, as `LevelWatch`; return the rejoin that they require."""
        newest = newest_levels((self.found, levels))
        if newest == self.found:
            return None
        self.found = newest
        return rejoin_for_levels(self.member.state, newest, leads=leads, is_led_by_jvm=False)


def running_member(
    release: str, *, number: int, broker: int, levels: FinalizedLevels
) -> RunningMember:
    """Return a member that was just started: it remembers nothing but what it is configured with.

    Args:
        release: name of its program.
        number: makes its process id.
        broker: the broker that it polls.
        levels: that it is configured with.
    """
    member = StreamsMember(
        program(release),
        MemberIdentity(process_id=UUID(int=number)),
        subtopologies=SUBTOPOLOGIES,
        levels=levels,
    )
    return RunningMember(member=member, release=release, broker=broker)


def program(name: str) -> Release:
    """Return a release by its name; `LATER` exists in this simulation only."""
    return LATER if name == LATER.name else find_release(name)
