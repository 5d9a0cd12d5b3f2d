"""The changes of Kafka Streams' releases that an upgrade has to know, with their sources.

Defaults and removed settings were compared with the `ConfigDef` of the published jars of 2.3.1,
2.8.2, 3.1.2, 3.9.1 and 4.3.1. "upgrade notes" is the page "Upgrading" of Kafka's documentation,
"Streams guide" the page "Upgrade Guide and API Changes" of Kafka Streams.
"""

from typing import Final

from system_tests.plan.changes import ReleaseChange, Subject
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
        action="upgrade brokers to 4.0 or later only after every member runs this release",
        source="KIP-896, upgrade notes 4.0.0",
        back="brokers of 4.0 and later accept members of 2.1 and later only",
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.BROKERS,
        what="producers are idempotent by default: brokers below 2.8 that check ACLs demand the"
        " permission IDEMPOTENT_WRITE",
        action="grant it on the cluster, or set producer.enable.idempotence=false",
        source="KIP-679, KAFKA-13598, upgrade notes 3.0.0",
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
        what="exactly_once and exactly_once_beta are removed; only exactly_once_v2 is accepted, and"
        " it needs brokers of 2.5 or later",
        action="switch every member to exactly_once_v2 before (a step of this plan)",
        source="KIP-732, KAFKA-12822, Streams guide 4.0.0",
        uses=(Use.EOS,),
    ),
    ReleaseChange(
        since="3.0.0",
        until="4.0.0",
        subject=Subject.EXACTLY_ONCE,
        what="exactly_once and exactly_once_beta are deprecated; exactly_once_v2 replaces both",
        source="KIP-732, Streams guide 3.0.0",
        uses=(Use.EOS,),
    ),
    ReleaseChange(
        since="2.6.0",
        subject=Subject.EXACTLY_ONCE,
        what="one producer for each thread is possible (KIP-447): exactly_once_beta up to 2.8,"
        " exactly_once_v2 from 3.0 on",
        source="KIP-447, Streams guide 2.6.0",
        uses=(Use.EOS,),
        back="only exactly_once exists: switch every member back to it before",
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
    ),
    ReleaseChange(
        since="4.3.0",
        subject=Subject.EXACTLY_ONCE,
        what="as before, a member that crashes deletes its state and restores all of it",
        source="KIP-1035, Streams guide 4.3.0",
        uses=(Use.EOS,),
    ),
)
"""What concerns applications with processing.guarantee other than at_least_once."""

REMOVED: Final = (
    ReleaseChange(
        since="3.0.0",
        subject=Subject.REMOVED,
        what="all Streams APIs that were deprecated in 2.5 or earlier, and the settings"
        " partition.grouper and default.windowed.{key,value}.serde.inner"
        " (now windowed.inner.class.serde)",
        action="compile the application against the new release without deprecation warnings",
        source="upgrade notes 3.0.0, KIP-528",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.REMOVED,
        what="the Streams APIs that were deprecated in 3.6 or earlier, except JoinWindows.of() and"
        " grace(): the old processor API, KStream#through, #transform*, #branch,"
        " KafkaStreams#setUncaughtExceptionHandler of Java's type; and the setting retries",
        action="compile the application against 3.9 without deprecation warnings first",
        source="KAFKA-12822, KAFKA-17531, Streams guide 4.0.0",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.REMOVED,
        what="auto.include.jmx.reporter; metric.reporters has the JmxReporter by default, so a list"
        " of your own replaces it",
        action="add org.apache.kafka.common.metrics.JmxReporter to metric.reporters if it is set",
        source="upgrade notes 4.0.0",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.REMOVED,
        what="RocksDB 9.7.3: AccessHint, compressed block caches of BlockBasedTableConfig and"
        " setLogger(Logger)",
        action="compile classes of rocksdb.config.setter against the new release",
        source="Streams guide 4.0.0",
    ),
    ReleaseChange(
        since="4.2.0",
        subject=Subject.REMOVED,
        what="the consumer's internal.leave.group.on.close, an internal setting",
        action="if members set it to leave when they stop, close with CloseOptions and"
        " GroupMembershipOperation.LEAVE_GROUP",
        source="KAFKA-18185, KIP-1153",
    ),
)
"""Settings and APIs that no longer exist."""

DEFAULTS: Final = (
    ReleaseChange(
        since="3.0.0",
        subject=Subject.DEFAULT,
        what="session.timeout.ms is 45 s instead of 10 s: a member that stops without leaving, as"
        " Kafka Streams' do, is waited for that long",
        action="set consumer.session.timeout.ms to keep the former value",
        source="KIP-735, upgrade notes 3.0.0",
        back="session.timeout.ms is 10 s again unless it is set",
    ),
    ReleaseChange(
        since="2.6.0",
        subject=Subject.DEFAULT,
        what="a task moves only to a member whose copy is at most acceptable.recovery.lag = 10,000"
        " records behind; up to max.warmup.replicas = 2 further copies warm up, with a"
        " probing rebalance every 10 min until they are done",
        action="leave room on disk for the further copies",
        source="KIP-441, Streams guide 2.6.0",
        back="tasks move at once; without warm-ups they restore after they moved",
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.DEFAULT,
        what="default.key.serde and default.value.serde are null instead of the byte array's: a"
        " topology that relied on them does not start",
        action="set them",
        source="KIP-741, Streams guide 3.0.0",
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.DEFAULT,
        what="producers wait for all in-sync replicas: acks=all instead of 1",
        source="KIP-679, upgrade notes 3.0.0",
        unless=(Use.EOS,),  # transactional producers use acks=all in every release
        back="producers use acks=1 again unless it is set",
    ),
    ReleaseChange(
        since="2.6.0",
        subject=Subject.DEFAULT,
        what="client.dns.lookup is use_all_dns_ips; TLS 1.3 is enabled on Java 11 or later, and"
        " since 2.5 TLS 1.0 and 1.1 are disabled",
        action="check that every broker offers TLS 1.2 or later",
        source="KIP-573, KIP-602, upgrade notes 2.5.0 and 2.6.0",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.DEFAULT,
        what="metadata.recovery.strategy is rebootstrap instead of none: clients that lose all"
        " brokers ask the bootstrap servers again",
        source="KIP-1102, KIP-899",
    ),
)
"""Values of settings that change unless they are set."""

BEHAVIOUR: Final = (
    ReleaseChange(
        since="2.4.0",
        subject=Subject.BEHAVIOUR,
        what="with the cooperative protocol members keep what does not move during a rebalance, and"
        " a state listener does not always see REBALANCING",
        source="KIP-429, Streams guide 2.4.0",
    ),
    ReleaseChange(
        since="2.8.0",
        subject=Subject.BEHAVIOUR,
        what="two processes on one host cannot share a state.dir: the second one does not start"
        " (also in 2.6.2 and 2.7.1)",
        action="give each process a state.dir of its own",
        source="Streams guide 2.8.0",
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.BEHAVIOUR,
        what="max.task.idle.ms=0 waits for records that are on the broker already before a task"
        " with several inputs continues",
        action="set it to -1 for the former behaviour",
        source="KIP-695, Streams guide 3.0.0",
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.BEHAVIOUR,
        what="interactive queries throw UnknownStateStoreException, StreamsNotStartedException and"
        " InvalidStateStorePartitionException where they threw InvalidStateStoreException",
        source="KIP-216, Streams guide 3.0.0",
        uses=(Use.IQ,),
    ),
    ReleaseChange(
        since="3.7.0",
        subject=Subject.BEHAVIOUR,
        what="left and outer joins no longer drop records whose key, or foreign key, is null",
        action="filter such records if your application must not see them",
        source="KIP-962, Streams guide 3.7.0",
    ),
    ReleaseChange(
        since="2.4.0",
        subject=Subject.BEHAVIOUR,
        what="metrics of clients, threads, tasks and stores are reworked",
        action="check dashboards and alarms",
        source="KIP-444, Streams guide 2.4.0",
    ),
    ReleaseChange(
        since="4.3.0",
        subject=Subject.BEHAVIOUR,
        what="the ratios of threads (commit, process, poll, punctuate) are of a rolling window",
        source="Streams guide 4.3.0",
    ),
)
"""What the same program does differently."""
