"""Changes of formats on disk and in topics, defects of single releases, and all rows together."""

from typing import Final

from system_tests.plan.change_rows import (
    BEHAVIOUR,
    DEFAULTS,
    EXACTLY_ONCE,
    JAVA_AND_BROKERS,
    REMOVED,
)
from system_tests.plan.changes import ReleaseChange, Subject
from system_tests.plan.uses import Use

STORES: Final = (
    ReleaseChange(
        since="2.3.0",
        subject=Subject.STORES,
        what="tables of the DSL are kept with timestamps; rows of RocksDB are converted while they"
        " are used, and a class that casts an untyped store needs ValueAndTimestamp",
        source="KIP-258, Streams guide 2.3.0",
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.STORES,
        what="state stores are opened by a newer RocksDB; older releases cannot read them",
        source="Streams guide, downgrading from 3.0",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.STORES,
        what="RocksDB 9.7.3 writes format version 6; older releases cannot read it",
        source="Streams guide, downgrading from 4.0",
    ),
    ReleaseChange(
        since="4.3.0",
        subject=Subject.STORES,
        what="stores hold their changelog offsets, and .checkpoint files are converted at the first"
        " start; older releases crash when they open such a store. Offsets reach the disk when"
        " RocksDB flushes or closes, not with each commit: after a kill, a store with little"
        " traffic may restore from the beginning",
        source="KIP-1035, Streams guide 4.3.0",
    ),
    ReleaseChange(
        since="3.3.0",
        subject=Subject.STORES,
        what="subscriptions of foreign-key joins have another format; upgrade.from up to 3.3 keeps"
        " the former one in 3.4 and later, and in 3.3 nothing does",
        source="KAFKA-13769, KAFKA-14646",
        uses=(Use.FK_JOIN,),
    ),
    ReleaseChange(
        since="3.5.0",
        subject=Subject.STORES,
        what="repartition topics of KTable aggregations have another format; upgrade.from up to 3.4"
        " keeps the former one",
        source="KIP-904, Streams guide, downgrading from 3.5",
        uses=(Use.KTABLE,),
    ),
)
"""Formats of state on disk and of internal topics."""

DEFECTS: Final = (
    ReleaseChange(
        since="4.0.0",
        subject=Subject.DEFECT,
        what="processValues() in place of the removed transformValues() may change the topology",
        action="take 4.0.1 or later, follow the migration guide, and compare Topology.describe() of"
        " both programs",
        source="KAFKA-19668, Streams guide 4.0.0",
    ),
    ReleaseChange(
        since="4.1.0",
        until="4.1.1",
        subject=Subject.DEFECT,
        what="memory leak of range scans, session and sliding windows, stream-stream joins and"
        " foreign-key joins",
        action="take 4.1.1 or later",
        source="KAFKA-19748, Streams guide 4.1.0",
    ),
    ReleaseChange(
        since="4.3.0",
        until="4.3.1",
        subject=Subject.DEFECT,
        what="memory leak of RocksDB stores with each task that closes",
        action="take 4.3.1 or later",
        source="KAFKA-20616, Streams guide 4.3.0",
    ),
)
"""Serious defects that Kafka's own notes warn of; `probing` has those of the protocol."""

CHANGES: Final = (
    *JAVA_AND_BROKERS,
    *EXACTLY_ONCE,
    *REMOVED,
    *DEFAULTS,
    *BEHAVIOUR,
    *STORES,
    *DEFECTS,
)
"""Every row for the way from one release to another."""

NOT_CHECKED: Final = (
    "the application's code: whether it uses an API or a setting that is gone",
    "classes of your own: serdes, exception handlers, rocksdb.config.setter, task assignors",
    "the topology: the plan assumes that it stays the same (rolling-bounce plan --topology)",
    "the brokers: their versions, ACLs, quotas and inter.broker.protocol.version",
    "the hosts: their Java version, memory, and space on disk for further copies of state",
    "dependencies: frameworks around Kafka Streams, Scala, logging, security providers",
    "dashboards and alarms on metrics and log lines",
    "changes that concern no group: Connect, MirrorMaker, tools, tests",
)
"""What no plan says anything about."""
