"""Formats of state on disk and of internal topics, and defects of single releases."""

from typing import Final

from system_tests.plan.changes.model import ReleaseChange, Subject, When
from system_tests.plan.uses import Use

STORES: Final = (
    ReleaseChange(
        since="2.0.0",
        subject=Subject.STORES,
        what="topology.optimization decides which changelog a table of StreamsBuilder.table() has:"
        " all uses its source topic, as KStreamBuilder did; none, the default, a changelog of its"
        " own, as StreamsBuilder did in 1.0 and 1.1",
        action="set topology.optimization=all when you come from KStreamBuilder, and leave it at"
        " none when you come from StreamsBuilder, or the state of such tables is restored from"
        " another topic",
        source="KIP-295, Streams guide, StreamsConfig of 2.0.1",
    ),
    ReleaseChange(
        since="2.3.0",
        subject=Subject.STORES,
        when=When.AFTER,
        what="tables of the DSL are kept with timestamps; rows of RocksDB are converted while they"
        " are used, and a class that casts an untyped store needs ValueAndTimestamp",
        source="KIP-258, Streams guide 2.3.0",
    ),
    ReleaseChange(
        since="3.0.0",
        subject=Subject.STORES,
        when=When.AFTER,
        what="state stores are opened by a newer RocksDB; older releases cannot read them",
        source="Streams guide, downgrading from 3.0",
    ),
    ReleaseChange(
        since="4.0.0",
        subject=Subject.STORES,
        when=When.AFTER,
        what="RocksDB 9.7.3 (in 4.3 10.1.3) writes format version 6; older releases cannot read it",
        source="Streams guide, downgrading from 4.0",
    ),
    ReleaseChange(
        since="4.3.0",
        subject=Subject.STORES,
        when=When.AFTER,
        what="stores hold their changelog offsets, and .checkpoint files are converted at the first"
        " start; older releases crash when they open such a store. Offsets reach the disk when"
        " RocksDB flushes or closes, not with each commit: after a kill, a store with little"
        " traffic may restore from the beginning. upgrade.from up to 4.2 makes tasks that close"
        " write .checkpoint files, but leaves the offsets in the stores of RocksDB, so it does not"
        " replace deleting the state directories on the way back",
        source="KIP-1035, KAFKA-19710, Streams guide 4.3.0 and downgrading from 4.3,"
        " ProcessorStateManager and RocksDBStore of 4.3.1",
    ),
    ReleaseChange(
        since="4.4.0",
        subject=Subject.STORES,
        when=When.AFTER,
        what="stores can be transactional: enable.transactional.statestores, off by default;"
        " under exactly-once such a store is not deleted after an error, and up to"
        " statestore.uncommitted.max.bytes = 64 MB per member are kept in memory until a commit",
        action="leave it off until no member has to go back below 4.4",
        source="KIP-892, KAFKA-20489, StreamsConfig of 4.4.0",
        back="enable.transactional.statestores does not exist: members ignore it",
        back_action="set it to false in a rolling bounce before; the way back with it was not"
        " tried",
        back_when=When.BEFORE,
    ),
    ReleaseChange(
        since="4.4.0",
        subject=Subject.STORES,
        when=When.AFTER,
        what="with dsl.store.format=HEADERS, which exists since 4.3, buffers of suppress() hold"
        " record headers as well; the default format is as before",
        action="leave dsl.store.format at DEFAULT until no member has to go back below 4.4",
        source="KIP-1285, StreamsConfig of 4.4.0",
    ),
    ReleaseChange(
        since="3.3.0",
        subject=Subject.STORES,
        when=When.STEP,
        what="subscriptions of foreign-key joins have another format; upgrade.from up to 3.3 keeps"
        " the former one in 3.4 and later, and in 3.3 nothing does",
        source="KAFKA-13769, KAFKA-14646",
        uses=(Use.FK_JOIN,),
    ),
    ReleaseChange(
        since="3.5.0",
        subject=Subject.STORES,
        when=When.STEP,
        what="repartition topics of KTable aggregations have another format; upgrade.from up to 3.4"
        " keeps the former one",
        source="KIP-904, Streams guide, downgrading from 3.5",
        uses=(Use.KTABLE,),
    ),
)
"""Formats of state on disk and of internal topics."""

_LOST_BATCH: Final = (
    "records are lost: after MESSAGE_TOO_LARGE the producer splits a batch, its flush() returns"
    " before the parts are written, and Streams commits the offsets of their input"
)
DEFECTS: Final = (
    ReleaseChange(
        since="0.11.0.0",
        until="3.9.2",
        subject=Subject.DEFECT,
        what=_LOST_BATCH,
        action="take 3.9.2 or later",
        source="KAFKA-19479, ProducerBatch of 0.11.0.0, kafka-clients 3.9.1 and 3.9.2",
        unless=(Use.EOS,),  # the issue is of at_least_once
    ),
    ReleaseChange(
        since="4.0.0",
        until="4.0.2",
        subject=Subject.DEFECT,
        what=_LOST_BATCH,
        action="take 4.0.2 or later",
        source="KAFKA-19479, kafka-clients 4.0.1 and 4.0.2",
        unless=(Use.EOS,),  # the issue is of at_least_once
    ),
    ReleaseChange(
        since="4.1.0",
        until="4.1.1",
        subject=Subject.DEFECT,
        what=_LOST_BATCH,
        action="take 4.1.1 or later",
        source="KAFKA-19479, upgrade notes 4.1.1, kafka-clients 4.1.0 and 4.1.1",
        unless=(Use.EOS,),  # the issue is of at_least_once
    ),
    ReleaseChange(
        since="4.0.0",
        until="4.0.1",
        also=(("4.1.0", "4.1.1"),),
        subject=Subject.DEFECT,
        what="processValues() in place of the removed transformValues() or flatTransformValues()"
        " may change a topology that merges repartition topics, without a setting that prevents it",
        action="take a later patch, 4.0.1 or 4.1.1 at least",
        source="KAFKA-19668, upgrade notes 4.0.1",
    ),
    ReleaseChange(
        since="4.1.1",
        also=(("4.0.1", "4.1.0"),),
        subject=Subject.DEFECT,
        what="processValues() in place of the removed transformValues() or flatTransformValues()"
        " may change a topology that merges repartition topics, until the internal setting"
        " __enable.process.processValue.fix__ is true",
        action="follow the migration guide, and compare Topology.describe() of both programs",
        source="KAFKA-19668, upgrade notes 4.0.1, guide to the DSL, Streams guide 4.0.0",
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
        since="3.8.0",
        until="4.2.2",
        subject=Subject.DEFECT,
        what="state may be silently wrong after a crash: the state updater, which 3.8 enables,"
        " writes a checkpoint at the end of a restore and leaves it behind, so a member that is"
        " killed keeps writes of transactions that were aborted",
        action="take 4.2.2 or later; in older releases delete the state directory of a member that"
        " was killed before you start it",
        source="KAFKA-20685, StreamTask and DefaultStateUpdater of 3.9.2, 4.0.2, 4.1.2 and 4.2.2",
        uses=(Use.EOS,),
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
