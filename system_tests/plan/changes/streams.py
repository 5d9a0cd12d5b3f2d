"""What changes with the streams protocol (KIP-1071), whatever the release of the members."""

from typing import Final

from system_tests.plan.changes.model import ReleaseChange, Subject
from system_tests.plan.uses import Use

_SOURCE: Final = "StreamsConfig and KafkaStreams of 4.3.1"
STREAMS_CHANGES: Final = (
    ReleaseChange(
        since="4.2.0",
        subject=Subject.DEFAULT,
        what=(
            "num.standby.replicas of members is ignored; the broker's default is 0 standbys, and"
            " its maximum is 2"
        ),
        action=(
            "set it before the start: kafka-configs.sh --bootstrap-server HOST:PORT --alter"
            " --entity-type groups --entity-name GROUP --add-config streams.num.standby.replicas=N"
        ),
        source=_SOURCE,
    ),
    ReleaseChange(
        since="4.2.0",
        subject=Subject.DEFAULT,
        what=(
            "session.timeout.ms and heartbeat.interval.ms of members are ignored; the broker has"
            " 45 s (45 to 60 s) and 5 s (5 to 15 s)"
        ),
        action="set streams.session.timeout.ms and streams.heartbeat.interval.ms of the group",
        source="GroupCoordinatorConfig of 4.3.1",
    ),
    ReleaseChange(
        since="4.2.0",
        subject=Subject.REMOVED,
        what=(
            "max.warmup.replicas, acceptable.recovery.lag and the interval of probing rebalances"
            " have no effect: there are no warm-ups, a task moves at once and restores on its new"
            " member"
        ),
        source=_SOURCE,
    ),
    ReleaseChange(
        since="4.2.0",
        subject=Subject.REMOVED,
        what="rack.aware.assignment.* and task.assignor.class have no effect",
        source="KIP-1071",
    ),
    ReleaseChange(
        since="4.2.0",
        subject=Subject.BEHAVIOUR,
        what=(
            "the topology of a group with members cannot change (KAFKA-20170): each change of it"
            " stops all members"
        ),
        source="GroupMetadataManager of 4.3.1",
    ),
    ReleaseChange(
        since="4.2.0",
        subject=Subject.BEHAVIOUR,
        what="members leave the group when they are closed, so each restart moves their tasks",
        source="StreamThread of 4.3.1",
    ),
    ReleaseChange(
        since="4.2.0",
        subject=Subject.DEFECT,
        what=(
            "if a source topic is missing, the broker answers members with application.server with"
            " UNKNOWN_SERVER_ERROR, and they end"
        ),
        action="create all source topics first",
        source="a broker of 4.3.1, KIP-1071",
        uses=(Use.IQ,),
    ),
    ReleaseChange(
        since="4.2.0",
        subject=Subject.EXACTLY_ONCE,
        what=(
            "processing.guarantee keeps its value; a member that is killed deletes its state at the"
            " next start, and restores all of it; live rehearses the move without transactions"
        ),
        action="close all members, do not kill them, and test the move with your application",
        source="Streams guide 4.3.0",
        uses=(Use.EOS,),
    ),
)
"""Every row for the move to the streams protocol."""

STREAMS_NOT_CHECKED: Final = (
    "custom client suppliers and named topologies, which members of 4.3.1 refuse at the start",
    "permissions: the broker creates internal topics with the rights of the members' user",
    "whether stores are on disk or in memory: in memory, all state is restored",
)
"""What the plan of the move says nothing about."""
