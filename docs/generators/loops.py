"""docs/loops.md: what poll loops do after each event, from the table of their engine."""

import logging

from assignor.embedding.input_facts import Held
from assignor.embedding.input_rules import INPUT_RULES
from assignor.embedding.loops import LOOP_RULES, Step
from docs.generators.negotiation import table

_LEVELS = {logging.ERROR: "`MemberStopped`", logging.WARNING: "WARNING", logging.INFO: "INFO"}
_TOP = """# What a poll loop does after each event

Use this page if you write your own loop, or want to know what the loops of this project do when
something fails. These loops are `polled` with `commit_next` (kafka-python and aiokafka),
`run_tasks` and `StreamsApplication` (all clients), the `Consumer` of `assignor.adapters.confluent`,
and a Quix application, which uses that `Consumer`. To leave out records that cannot be read, and
process all others:

```python
from kafka import TopicPartition

from assignor import Topology, UnreadableRecord
from assignor.adapters.kafka_python import commit_next, polled, streams_consumer

topology = Topology().add_source("words", topics=["words"])

def run(bootstrap_servers, process, report, stop):
    \"\"\"Process records until the event `stop` is set.\"\"\"
    consumer = streams_consumer(topology, group_id="words", bootstrap_servers=bootstrap_servers)
    with consumer:
        while not stop.is_set():
            try:
                for batch in polled(consumer, stop=stop):
                    process(batch)
                    commit_next(consumer)
            except UnreadableRecord as error:
                report(error)
                partition = TopicPartition(error.topic, error.partition)
                consumer.seek(partition, error.offset + 1)
```

What a deserializer cannot read is better decided about for each record. Give a
`StreamsApplication` its `key_deserializer` and `value_deserializer` with
[`on_bad_record=`](embedding.md#bad-records), which fails, skips, or writes dead letters. In all
other loops, give the client no deserializer, and decode in your own code: `on_bad_record=` of
`TaskStores` then gets what the function of `run_tasks` raises. What is left is for a seek, as
above: a wrong checksum, a codec that is not installed. With a `StreamsApplication`, `except
UnreadableRecord` is around `app.run()`, and the consumer is `app.consumer`.

One engine (`assignor/embedding/loops`) decides for all loops by the tables of this page;
[what each loop does](#what-each-loop-does) has what librdkafka decides instead. In every table the
first row that applies decides. `python -m docs.generate` writes the tables from `LOOP_RULES` in
`assignor/embedding/loops/rules.py` and `INPUT_RULES` in `assignor/embedding/input_rules.py`."""

_OWN = """## Your own loop

Commit what is processed before the next poll: a poll can revoke the partitions. In
`on_tasks_revoked` itself, only confluent-kafka can commit, by `consumer.commit(offsets=...,
asynchronous=False)`: with the other clients, a commit there would wait for itself.

A loop that keeps records over several polls drops those of tasks that are revoked. If such a
partition comes back, every client reads it again from its committed offset. Offsets of a partition
that another member owns are not committed: `commit_next` returns False, and `commit` of
confluent-kafka fails with `_ASSIGNMENT_LOST`. A topic that does not exist is left out, and named in
a warning.

While a service that you need does not answer, keep the records, pause their partitions, and
continue to poll, so that the member stays in the group:

```python
import time

from assignor import TasksListener

class Kept(TasksListener):
    \"\"\"Partition -> records that are not processed; those of revoked tasks are dropped.\"\"\"

    def __init__(self):
        self.records = {}

    def on_tasks_revoked(self, active, standby):
        for partitions in active.values():
            for partition in partitions:
                self.records.pop(partition, None)

def run_with_back_off(bootstrap_servers, process, stop):
    \"\"\"Process records; call `process` again after 0.1 s to 10 s if it raises an OSError.\"\"\"
    kept, wait_s, next_s = Kept(), 0.1, 0.0
    with streams_consumer(
        topology, group_id="words", bootstrap_servers=bootstrap_servers, listener=kept
    ) as consumer:
        for batch in polled(consumer, timeout_ms=100, stop=stop):
            kept.records |= {each: records for each, records in batch.items() if records}
            if kept.records and time.monotonic() >= next_s:
                try:
                    process(kept.records)
                except OSError:
                    next_s, wait_s = time.monotonic() + wait_s, min(2 * wait_s, 10)
                else:
                    kept.records, wait_s = {}, 0.1
                    commit_next(consumer)
            consumer.pause(*kept.records)
            consumer.resume(*(consumer.paused() - kept.records.keys()))
```

With aiokafka this is the same, with `async for`, `await commit_next(consumer)` and
`await asyncio.to_thread(process, kept.records)`: a call that blocks the event loop for longer than
the session timeout costs the membership. With confluent-kafka, `consumer.pause` and `resume` take a
list, and a partition that was revoked while it was paused comes back paused.

`run_tasks` and `StreamsApplication` do not wait after an error of your function. Wait in the
function, for less than half of `max_poll_interval_ms`. Or let it raise, and call `run_tasks` or
`run` again a moment later: it begins with the record.

With state stores, [a loop of your own](embedding.md#a-loop-of-your-own-with-state-stores) calls
`TaskStores.process`."""

_INPUT = """## How far the input is

Three offsets say how far something has read: the position of a consumer, the input offset of a
task's state, and the changelog offset of a local copy of a store. They may not fit the log any
more: topics are deleted and made anew, lose or delete records, and operators set offsets of groups.
So each one is compared with the log, and each line of the log has both offsets and what to do
([messages](operations.md#input)):

- a position when the client has lost it, and when the id of its topic changes. While a loop runs,
  `auto_offset_reset` of the client is none, and the loop does what the setting said;
- the state of a task when the task is taken over, before records are passed over that it seems to
  have, before its first record of a partition, and after the position has changed;
- a copy before its changelog is read.

Topics are compared by their ids. Brokers before 2.8 have none, and aiokafka 0.14 asks for none. A
client learns a new id within the age of its metadata (5 minutes by default), and when a position is
lost. Until then, a topic that was made anew while it is read is found only if it does not have the
position. Else its records behind the position are processed and committed, as with all clients, and
processed again when the topic is found and read from its first record. So stop an application
before you make its input anew. The state of a task keeps the ids of its input, with all clients,
and finds such a topic when the task is taken over.

Where the group has committed no offset that the topic has, the state of a task says where reading
begins, not `auto_offset_reset`. Offsets of a group expire, are deleted with their topic, and do not
exist yet if the first member is killed before its first commit. Kafka Streams then begins at the
end with "latest", and its state never gets the records in between. A committed offset beyond that
of the state is no loss if a member has committed it: records that write nothing to state are only
in the committed offset.

If a changelog was deleted or has lost records, the copy of the task's last owner is worth more than
the changelog: it has all of the state, and maybe no other copy has. So it is not cleared. The
member ends with `MemberStopped` until an operator has decided, also after a restart (see
[a lost changelog](operations.md#a-lost-changelog)). Kafka Streams makes the topic anew without a
warning (KAFKA-10357, KIP-698), wipes such a copy (`TaskCorruptedException`), and continues with the
state that the new topic has. Copies of standbys and of earlier owners are cleared. So is a copy
that ends before the first record of its changelog: a retention deletes records while no member has
the copy. A changelog without a retention begins at 0, since compaction keeps its first offset. If
it begins higher, it has lost state, which is a warning for each copy that begins there.

What is committed is the position of the client, if all records before it are processed, as in
Kafka Streams since 2.6 (KAFKA-6607). It is behind control records and aborted transactions, so
that the lag of input from transactional producers becomes 0. Members commit with the metadata that
Kafka Streams writes for an unknown time; offsets without it were set by an operator."""

# Rows, of cells: what is to be done, and what each loop does.
_LOOPS = ("part", "`polled`", "`run_tasks`, `StreamsApplication`", "`Consumer`, Quix application")
_EACH = """\
deliver
| batches, as the client returns them
| records, one after the other, to the function that processes them, in slices of at most half of
  the time between two polls
| as confluent-kafka: records, and errors as messages

read again what was taken and not delivered
| from its first record
| from the first record that the state stores do not keep
| from its first record if `close` was called, else from the offset last stored or committed

continue where the input is
| lost positions, and topics that were made anew, except with aiokafka; a warning names topics that
  are gone
| the same
| the same

commit
| the application, by `commit_next`, before the next poll
| after each slice; what was refused again after the next poll, and when the loop ends
| the application, or `enable.auto.commit`. Quix: its checkpoint, before partitions are given up

pause and resume
| the application
| partitions of records that are kept, and of tasks that are restored
| the application. Quix: changelogs that are not restored

wait, and try again
| after errors that may pass
| the same, and for changelogs and outputs
| librdkafka and the member

leave the group after errors that do not pass
| yes, and raise `MemberStopped`
| yes, and raise `MemberStopped`
| yes, and `poll` returns the error

end
| with `stop`
| with `stop`; `StreamsApplication` also with SIGTERM, SIGINT and `close` on another thread
| with `close` on any thread; a `poll` on another thread raises

report a record that is too slow
| a warning of the pause, and smaller batches
| a warning of the record, which is held back; an error when it is so again
| the error `_MAX_POLL_EXCEEDED`"""

# Rows, of cells: the event, what the loops do, what your own loop has to do.
_MORE = """\
`poll` or `getmany` raises
| every partition is read from where it was before the call
| kafka-python: the same for errors, not for interrupts. aiokafka: the same if the consumer is of
  `streams_consumer`; aiokafka's own consumer drops what the call had taken of other partitions,
  and a commit of the positions passes over it

a record cannot be read
| `UnreadableRecord`
| the same, if an assignor is attached and, with aiokafka, the consumer is of `streams_consumer`.
  The second `poll` of kafka-python's own consumer never returns

the code that processes a batch raises
| `run_tasks` and `StreamsApplication`: the next run, or the next member, begins with the record.
  `polled`: another `polled` over the same consumer continues after the batch, and `commit_next`
  without offsets commits it. Seek to its first records before, or make another consumer
| seek to the first record that is not finished

a source topic gets more partitions while a group reads with "latest"
| records that come before a member has a new partition are passed over, as with every client
  (KAFKA-12478): use "earliest" where topics grow
| the same

a batch takes longer than half of `max_poll_interval_ms`, or, with kafka-python, half of the
session timeout
| `run_tasks` and `StreamsApplication` keep the rest, commit what is finished, and poll with the
  partitions of the rest paused; with aiokafka also once a rebalance begins. They never poll while
  the function that processes records runs.
  `polled` returns smaller batches after a slow one; the first batch has one record
| process a part, commit, pause the partitions of the rest, poll, resume. `TaskStores.process(...,
  is_over=...)` keeps a rest

a single record takes longer than `max_poll_interval_ms`, alone or with those before it
| the member leaves the group. If the group has other members, its commit is refused, and the record
  is processed again [without end](embedding.md#errors). `run_tasks` and `StreamsApplication` name
  the record in the log. On the same member they process it again alone, after the records of other
  partitions are committed. `polled` names each such pause
| `TaskStores.process(..., slow=...)` holds it back; else it stops other partitions as well

partitions are revoked while records of them are kept
| the records are dropped, and read again if the partition comes back
| [drop them](#your-own-loop). `TaskStores` does: seek to the offsets of `unread()`

a commit is refused in a rebalance
| `run_tasks` commits again after the next poll, if the partition was kept, and in the next
  `run_tasks` if an error has ended the loop
| commit again; `TaskStores.process(..., are_committed=False)` returns all offsets again

a changelog, an output or a dead letter cannot be written
| the member waits 10 s for a broker, then 20 s and so on, and never longer than 0.4 of
  `max_poll_interval_ms`. It polls in between, and stays in the group. A warning, `/health` and
  readiness say why. kafka-python's producer is replaced, since it may never send again. What it may
  have written does not count, but outputs may be there twice
| the same with `TaskStores` and batches of `polled`, where `process` raises `ClusterUnavailable`;
  batches that you make have no limit by the poll interval

a source topic is deleted
| the leader logs an ERROR after 3 s, once; `stopped` and `failures` of its assignor and `tell` have
  it as well. The tasks of the topic run on no member until it exists again. A member that still
  has the topic names it in a warning, once, at a commit or after half a minute. Offsets of other
  topics are committed. Until then the client may log many lines
| the same with `commit_next`. Without an assignor, kafka-python's `commit` returns after
  `request_timeout_ms`, and aiokafka's never

`close` on another thread
| `run` of a `StreamsApplication` ends with the record that it processes, then the application is
  closed. Other loops raise, unless `stop` is set
| set an event that ends the loop, then close

another loop over a consumer whose member has left
| `MemberStopped`
| `poll` returns nothing"""


def render() -> str:
    """Return the whole page."""
    parts = [_TOP, _OWN, "## What each loop does", table(_LOOPS, rows_of(_EACH))]
    for step in Step:
        rows = [
            (rule.name, rule.then.value, rule.effect) for rule in LOOP_RULES if step in rule.steps
        ]
        parts += [
            f"## {step.value[0].upper()}{step.value[1:]}",
            table(("event", "the loop", "effect"), rows),
        ]
    parts += ["## Other events", table(("event", "the loops", "your own loop"), rows_of(_MORE))]
    parts.append(_INPUT)
    for held in Held:
        found = [
            (rule.name, rule.goes.value, _LEVELS[rule.level] if rule.says else "no")
            for rule in INPUT_RULES
            if rule.held is held
        ]
        parts += [f"### {held.value}", table(("event", "it", "line in the log, or error"), found)]
    return "\n\n".join(parts) + "\n"


def rows_of(text: str) -> list[tuple[str, ...]]:
    """Return the rows of a text: a paragraph each, in which a line with `|` begins a cell."""
    return [tuple(paragraph.split("\n| ")) for paragraph in text.split("\n\n")]
