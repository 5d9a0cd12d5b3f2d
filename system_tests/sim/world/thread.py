"""The state of one stream thread: of its consumer, and of its Streams member.

`consumer` and `assignment` have its steps. A thread that is started again keeps its index and name
and gets the next incarnation number; messages and timers of an earlier incarnation are void.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Self
from uuid import UUID

from assignor import MemberIdentity, StreamsMember
from assignor.rebalance import (
    NEW_PACE,
    NO_CLAIMS,
    NO_TOPOLOGIES,
    NONE_STALLED,
    ClaimMemory,
    RejoinPace,
    StalledCopies,
    TopologyMemory,
)
from assignor.topology import CarriedTopologies, Subtopology
from encoding import TaskId, TopicPartition
from probing.features import UNKNOWN_LEVELS, FinalizedLevels
from probing.topologies import Reached
from system_tests.coordinator import NO_GENERATION, UNKNOWN_MEMBER_ID, JoinGroup
from system_tests.sim.events import Cause
from system_tests.sim.world.behaviour import Behaviour

Partitions = tuple[TopicPartition, ...]


class Phase(Enum):
    """State of a consumer between two polls."""

    DOWN = "down"
    IDLE = "idle"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"


@dataclass(kw_only=True)  # no slots: a search copies it a million times, attributes in one go
class StreamThread:
    """One stream thread, over all its starts and stops.

    Attributes:
        index: its number; name: of the thread; process: index of its process.
        behaviour, streams: since it was started last; program: which one, where it is changed.
        incarnation: grows with each start and end; phase: where its consumer is.
        member_id, generation, instance_id: as the coordinator knows it.
        leads: it led its last generation.
        owned: partitions that it processes; running: the task of each, of a change.
        rejoin_needed: its next poll joins; cause: why.
        rejoin_after: why it rejoins at once after the running rebalance; empty: it does not.
        found: the newest finalized levels that it found at a broker.
        led_supported: the lowest version supported in the group that it leads, until it takes its
            own answer; None for followers.
        lags: process id -> lags, as it saw them when it led last.
        claims: its memory of its last answer, if it led its last generation; answered: of the
            answer that is on its way.
        stalled: its memory of copies that made no progress, if it led; topologies: of those of
            its members.
        taken: generation of the last answer that it took, -1: none since it joined anew;
            answered_version: the version of that answer, 0: it could not be read.
        pace: how long a native member waits before it asks for the next rebalance.
        followup: number of its present schedule; an older one that becomes due is void.
        request: number of the request whose answer it waits for; sent_copy: which sending of it.
        asked: its last JoinGroup, sent again once it has a member id (KIP-394).
        polls, beats: number of the present poll and heartbeat timer; older ones are void.
        paused_until_ms: it does not run before; slow_ms: its delay before it syncs.
    """

    index: int
    name: str
    process: int
    behaviour: Behaviour
    streams: StreamsMember
    instance_id: str | None = None
    program: int = 0
    incarnation: int = 0
    phase: Phase = Phase.DOWN
    member_id: str = UNKNOWN_MEMBER_ID
    generation: int = NO_GENERATION
    leads: bool = False
    owned: Partitions = ()
    running: Mapping[TopicPartition, TaskId] = field(default_factory=dict)
    rejoin_needed: bool = False
    cause: str = Cause.STARTED
    rejoin_after: str = ""
    found: FinalizedLevels = UNKNOWN_LEVELS
    led_supported: int | None = None
    lags: Mapping[str, Mapping[TaskId, int]] = field(default_factory=dict)
    claims: ClaimMemory = NO_CLAIMS
    answered: ClaimMemory = NO_CLAIMS
    stalled: StalledCopies = NONE_STALLED
    topologies: TopologyMemory = NO_TOPOLOGIES
    taken: int = NO_GENERATION
    answered_version: int = 0
    pace: RejoinPace = NEW_PACE
    followup: int = 0
    request: int = 0
    sent_copy: int = 0
    asked: JoinGroup | None = None
    polls: int = 0
    beats: int = 0
    paused_until_ms: int = 0
    slow_ms: int = 0

    @property
    def is_up(self) -> bool:
        """Whether it runs."""
        return self.phase is not Phase.DOWN

    @property
    def is_resting(self) -> bool:
        """Whether its consumer has nothing to do: joined, answered, no rejoin asked for."""
        return self.phase is Phase.STABLE and not (self.rejoin_needed or self.rejoin_after)

    def copy(self) -> Self:
        """Return an independent thread in the same state."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.streams = object.__new__(type(self.streams))
        vars(other.streams).update(vars(self.streams))  # its attributes are frozen values
        return other

    def start(
        self,
        behaviour: Behaviour,
        *,
        process_id: UUID,
        subtopologies: tuple[Subtopology, ...],
        carried: CarriedTopologies | None = None,
        reached: Mapping[bytes, Reached] | None = None,
        endpoint: str | None = None,
        levels: FinalizedLevels = UNKNOWN_LEVELS,
    ) -> None:
        """Begin the next incarnation, with a new consumer."""
        identity = MemberIdentity(
            process_id=process_id, instance_id=self.instance_id, user_endpoint=endpoint
        )
        self.behaviour = behaviour
        self.streams = StreamsMember(
            behaviour.release,
            identity,
            upgrade_from=behaviour.upgrade_from,
            subtopologies=subtopologies,
            carried=carried,
            reached=reached,
            levels=levels,
        )
        self.found = UNKNOWN_LEVELS
        self.incarnation += 1
        self.phase = Phase.IDLE
        self.cause = Cause.STARTED
        self.rejoin_needed = True
        self.member_id = UNKNOWN_MEMBER_ID
        self.paused_until_ms = 0
        self.slow_ms = 0
        self._forget()

    def end(self) -> None:
        """End the present incarnation; messages and timers for it are void."""
        self.phase = Phase.DOWN
        self.incarnation += 1
        self.rejoin_needed = False
        self._forget()

    def lose_membership(self) -> None:
        """Forget member id and generation, since the group has removed this member."""
        self.member_id = UNKNOWN_MEMBER_ID
        self.generation = self.taken = NO_GENERATION
        self.leads = False

    def _forget(self) -> None:
        self.generation = self.taken = NO_GENERATION
        self.leads = False
        self.owned = ()
        self.running = {}
        self.topologies = NO_TOPOLOGIES
        self.rejoin_after = ""
        self.led_supported = None
        self.lags = {}
        self.stalled = NONE_STALLED
        self.pace = NEW_PACE
        self.claims = self.answered = NO_CLAIMS
        self.followup += 1
        self.request += 1
        self.asked = None
        self.polls += 1
        self.beats += 1
