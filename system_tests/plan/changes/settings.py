"""Settings and APIs: what is removed, which defaults change, what behaves otherwise."""

from typing import Final

from system_tests.plan.changes.model import ReleaseChange, Subject, When
from system_tests.plan.uses import Use

REMOVED: Final = (
    ReleaseChange(
        since="2.0.0",
        subject=Subject.REMOVED,
        what="KStreamBuilder, TopologyBuilder, Stores.create(), overloads that take serdes or a"
        " StateStoreSupplier, and the settings key.serde, value.serde, timestamp.extractor and"
        " zookeeper.connect",
        action="move to StreamsBuilder or Topology, Consumed, Produced and Materialized, and to"
        " default.key.serde, default.value.serde and default.timestamp.extractor",
        source="Streams guide 2.0.0, StreamsConfig of 1.1.1 and 2.0.1",
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.REMOVED,
        what="the value 0.10.0-2.4 of built.in.metrics.version: a member with it does not start",
        action="remove the setting, and move dashboards to the metrics of 2.5",
        source="KIP-743, KAFKA-12519, StreamsConfig of 2.8.2 and 3.0.0",
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.REMOVED,
        what="all Streams APIs that were deprecated in 2.5 or earlier, and the settings"
        " partition.grouper and default.windowed.{key,value}.serde.inner: an application gives the"
        " inner serdes in its code; plain consumers set windowed.inner.class.serde",
        action="compile the application against the new release without deprecation warnings",
        source="upgrade notes 3.0.0, KIP-528, KIP-725",
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.REMOVED,
        what="joins of two KStreams with Joined, which 2.4 deprecated: StreamJoined replaces it,"
        " and its stores keep their generated names unless withStoreName() names them, which"
        " renames their changelog topics",
        action="move to StreamJoined without withStoreName(), and compare Topology.describe() of"
        " both programs",
        source="KIP-479, KAFKA-12568, Streams guide 2.4.0 and 3.0.0",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.REMOVED,
        when=When.STEP,
        what="the eager rebalance protocol: a group of 2.3 or below reaches this release only over"
        " a bridge, and a member with upgrade.from up to 2.3 does not start",
        action="let every member run without such a setting before (a step of a plan from 2.3)",
        source="KAFKA-18839",
    ),
    ReleaseChange(
        since="4.1.0",
        subject=Subject.REMOVED,
        when=When.AFTER,
        what="windowed.inner.class.serde and window.size.ms are deprecated as"
        " settings of Streams, which never used them; 4.3.1 still accepts both, and the jar of 4.1"
        " was not checked",
        source="KIP-1020, KAFKA-16260",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.REMOVED,
        what="the Streams APIs that were deprecated in 3.6 or earlier, except JoinWindows.of() and"
        " grace(): the old processor API, KStream#through, #transform*, #branch,"
        " KafkaStreams#setUncaughtExceptionHandler of Java's type",
        action="compile the application against 3.9 without deprecation warnings first",
        source="KAFKA-12822, KAFKA-17531, Streams guide 4.0.0",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.REMOVED,
        what="the setting retries, which Streams ignores since 2.7 (see task.timeout.ms)",
        action="remove it; set producer.retries or admin.retries if a client needs it",
        source="KIP-572, KAFKA-16328",
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
        what="RocksDB 9.7.3 (in 4.3 10.1.3): AccessHint, compressed block caches of"
        " BlockBasedTableConfig and setLogger(Logger)",
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
        since="2.3.0",
        subject=Subject.DEFAULT,
        what="max.poll.interval.ms is the consumer's default of 5 min; Streams no longer sets it to"
        " Integer.MAX_VALUE: a member that processes longer between two polls is removed",
        action="set consumer.max.poll.interval.ms if processing takes longer",
        source="KIP-442, Streams guide 2.3.0, StreamsConfig of 2.2.2 and 2.3.1",
        back="max.poll.interval.ms is Integer.MAX_VALUE (from 0.10.2.1 on) unless it is set",
    ),
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
        since="3.0.0",
        subject=Subject.DEFAULT,
        what="windows made by of() and with() keep their grace period of 24 h less the window, and"
        " are deprecated (4.0 removes them, except JoinWindows.of() and grace()); what replaces"
        " them has no default: ofSizeWithNoGrace() and its like drop every late record, and the new"
        " JoinWindows emit left and outer results only after the grace period",
        action="when you replace them, name the former grace period: ofSizeAndGrace(size, 24 h -"
        " size) and its like",
        source="KIP-633, KAFKA-10847, Streams guide 3.0.0",
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
        since="2.8.0",
        subject=Subject.DEFAULT,
        what="a task whose client times out is tried again for task.timeout.ms = 5 min before the"
        " application sees a TimeoutException; the setting retries is ignored since 2.7",
        action="set task.timeout.ms if the application has to fail sooner, 0 for at once",
        source="KIP-572, Streams guide 2.7.0 and 2.8.0",
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
        when=When.AFTER,
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
        when=When.AFTER,
        what="metadata.recovery.strategy is rebootstrap instead of none: clients that lose all"
        " brokers ask the bootstrap servers again",
        source="KIP-1102, KIP-899",
    ),
)
"""Values of settings that change unless they are set."""

BEHAVIOUR: Final = (
    ReleaseChange(
        since="2.8.0",
        subject=Subject.BEHAVIOUR,
        what="without an uncaught-exception handler, an exception in one thread closes the whole"
        " client, and its state ERROR is final; a client whose threads all died stays out of ERROR",
        action="set a StreamsUncaughtExceptionHandler that returns REPLACE_THREAD for errors that"
        " may be retried, and check alarms on the state",
        source="KIP-671, KIP-696, Streams guide 2.8.0, KafkaStreams of 2.7.2 and 2.8.2",
    ),
    ReleaseChange(
        since="2.4.0",
        subject=Subject.BEHAVIOUR,
        when=When.AFTER,
        what="with the cooperative protocol members keep what does not move during a rebalance, and"
        " a state listener does not always see REBALANCING",
        source="KIP-429, Streams guide 2.4.0",
    ),
    ReleaseChange(
        since="2.8.0",
        subject=Subject.BEHAVIOUR,
        also=(("2.6.2", "2.7.0"), ("2.7.1", "2.8.0")),
        what="two processes on one host cannot share a state.dir: the second one does not start",
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
        when=When.AFTER,
        what="metrics of clients, threads, tasks and stores are reworked",
        action="check dashboards and alarms",
        source="KIP-444, Streams guide 2.4.0",
    ),
    ReleaseChange(
        since="4.4.0",
        subject=Subject.BEHAVIOUR,
        what="application.server must be empty, HOST:PORT or PROTOCOL://HOST:PORT; a member with"
        " another value does not start",
        action="correct it before",
        source="KIP-1245, StreamsConfig of 4.3.1 and 4.4.0",
        uses=(Use.IQ,),
    ),
    ReleaseChange(
        since="4.4.0",
        subject=Subject.BEHAVIOUR,
        when=When.AFTER,
        what="with metadata.recovery.strategy=rebootstrap, the default, members tell brokers of 4.4"
        " and later which cluster and node they mean to reach, and misrouted connections are"
        " refused",
        action="set metadata.cluster.check.enable=false if a proxy between members and brokers"
        " changes these ids on purpose",
        source="KIP-1242, ConfigDef of kafka-clients 4.3.1 and 4.4.0",
    ),
    ReleaseChange(
        since="4.3.0",
        subject=Subject.BEHAVIOUR,
        when=When.AFTER,
        what="the ratios of threads (commit, process, poll, punctuate) are of a rolling window",
        source="Streams guide 4.3.0",
    ),
)
"""What the same program does differently."""
