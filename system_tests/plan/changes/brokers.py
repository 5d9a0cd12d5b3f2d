"""Requirements on hosts and brokers, and what concerns exactly-once applications."""

from typing import Final

from system_tests.plan.changes.model import ReleaseChange, Subject, When
from system_tests.plan.uses import Use

JAVA_AND_BROKERS: Final = (
    ReleaseChange(
        since="2.0.0",
        until="4.0.0",
        subject=Subject.JAVA,
        what="members need Java 8 or later; Java 7 is not supported",
        source="upgrade notes 2.0.0",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.JAVA,
        what="members need Java 11 or later; Java 8 is not supported",
        action="run the members of the release before on Java 11 first",
        source="KIP-750, upgrade notes 4.0.0",
    ),
    ReleaseChange(
        since="0.10.1.0",
        until="2.2.1",
        subject=Subject.BROKERS,
        what="members need brokers of 0.10.1 or later",
        source="Streams guide",
    ),
    ReleaseChange(
        since="2.2.1",
        until="4.0.0",
        subject=Subject.BROKERS,
        what="members need brokers of 0.11.0 or later, and message format 0.11 or later",
        source="Streams guide",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.BROKERS,
        what="members need brokers of 2.1 or later: old versions of requests are removed",
        action="upgrade the brokers first",
        source="KIP-896, upgrade notes 4.0.0",
    ),
    ReleaseChange(
        since="2.1.0",
        subject=Subject.BROKERS,
        what="brokers of 4.0 and later accept members of 2.1 and later only",
        action="upgrade brokers to 4.0 or later only after every member runs this release; from"
        " then on no group can go back below 2.1",
        source="KIP-896, upgrade notes 4.0.0",
        back="brokers of 4.0 and later accept members of 2.1 and later only: with such brokers this"
        " way back does not exist, rolling or offline",
        back_action="check the release of the brokers first; with 4.0 or later stop at 2.1",
        back_when=When.BEFORE,
    ),
    ReleaseChange(
        since="3.2.0",
        also=(("3.0.1", "3.1.0"), ("3.1.1", "3.2.0")),
        subject=Subject.BROKERS,
        what="producers are idempotent by default (3.0.0 and 3.1.0 do not apply the default):"
        " brokers below 2.8 that check ACLs demand the permission IDEMPOTENT_WRITE",
        action="grant it on the cluster, or set producer.enable.idempotence=false",
        source="KIP-679, KAFKA-13598, upgrade notes 3.0.1, 3.1.1 and 3.2.0",
        unless=(Use.EOS,),  # transactional producers are idempotent in every release
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.BROKERS,
        what="replication.factor of internal topics is -1 (the broker's default) instead of 1, and"
        " -1 needs brokers of 2.4 or later",
        action="set replication.factor if the brokers are older or their default does not fit",
        source="KIP-733, Streams guide 3.0.0",
        back="replication.factor of new internal topics is 1 again unless it is set",
    ),
)
"""Requirements on the hosts and on the brokers."""

EXACTLY_ONCE: Final = (
    ReleaseChange(
        since="4.0.0",
        subject=Subject.EXACTLY_ONCE,
        when=When.STEP,
        what="exactly_once and exactly_once_beta are removed; only exactly_once_v2 is accepted",
        action="switch every member to exactly_once_v2 before (a step of this plan)",
        source="KIP-732, KAFKA-12822, Streams guide 4.0.0",
        uses=(Use.EOS,),
    ),
    ReleaseChange(
        since="3.0.0",
        until="4.0.0",
        subject=Subject.EXACTLY_ONCE,
        when=When.AFTER,
        what="exactly_once and exactly_once_beta are deprecated; exactly_once_v2 replaces both",
        source="KIP-732, Streams guide 3.0.0",
        uses=(Use.EOS,),
    ),
    ReleaseChange(
        since="2.6.0",
        subject=Subject.EXACTLY_ONCE,
        when=When.AFTER,
        what="one producer for each thread is possible (KIP-447): exactly_once_beta up to 2.8,"
        " exactly_once_v2 from 3.0 on",
        source="KIP-447, Streams guide 2.6.0",
        uses=(Use.EOS,),
        back="only exactly_once exists",
        back_action="switch every member back to it before (a step of this plan)",
        back_when=When.BEFORE,
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.EXACTLY_ONCE,
        what="the switch to version 2 changes transactional ids: application.id-taskId becomes"
        " application.id-processId-threadIdx, in which processId is a UUID; ACLs on literal ids do"
        " not match them",
        action="before the switch, grant WRITE and DESCRIBE on transactional ids with the prefix"
        " application.id (kafka-acls.sh --resource-pattern-type prefixed)",
        source="KIP-447, KIP-732, StreamsProducer and ActiveTaskCreator of Kafka Streams",
        uses=(Use.EOS,),
        at_switch=True,
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.EXACTLY_ONCE,
        what="exactly_once_v2 needs brokers of 2.5 or later",
        action="upgrade the brokers before the switch",
        source="KIP-447, KIP-732, Streams guide 4.0.0",
        uses=(Use.EOS,),
        at_switch=True,
    ),
    ReleaseChange(
        since="2.6.0",
        subject=Subject.EXACTLY_ONCE,
        what="producers have transaction.timeout.ms = 10 s instead of 60 s, so the transactions of"
        " a member that died are aborted sooner; from 3.0 on a member does not start if"
        " commit.interval.ms is longer",
        action="set producer.transaction.timeout.ms if commits, or pauses between them, are longer",
        source="KIP-447, KAFKA-9809, KAFKA-12499",
        uses=(Use.EOS,),
        back="producers have transaction.timeout.ms = 60 s again unless it is set",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.EXACTLY_ONCE,
        when=When.AFTER,
        what="with brokers whose feature transaction.version is 2, producers use transactions of"
        " version 2: the epoch grows with each transaction; members need no restart when the"
        " feature is raised or lowered, which was not checked with each release of brokers",
        source="KIP-890, upgrade notes 4.0.0",
        uses=(Use.EOS,),
    ),
    ReleaseChange(
        since="4.3.0",
        subject=Subject.EXACTLY_ONCE,
        when=When.AFTER,
        what="offsets in the stores (KIP-1035) shorten no restore after a crash: a member that"
        " crashes still deletes its state and restores all of it",
        source="KIP-1035, Streams guide 4.3.0",
        uses=(Use.EOS,),
    ),
)
"""What concerns applications with processing.guarantee other than at_least_once."""
