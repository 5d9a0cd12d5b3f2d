"""A topic, a group's offsets and the changelogs in memory, in virtual time: all that a client asks.

The records are those of the embedded broker's `PartitionLog`, so that both scripted and real
clients decode, and refuse, the same bytes.
"""

import dataclasses
import selectors
import threading
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, contextmanager
from functools import cache
from unittest import mock
from uuid import UUID

from kafka.errors import KafkaTimeoutError
from kafka.record import MemoryRecordsBuilder

from assignor.embedding.loops import PollLoop
from encoding import TopicPartition
from system_tests.broker.partition_log import PartitionLog
from system_tests.broker.transactions import control_batch, transactional_batch
from system_tests.engine import Scheduler
from tests.assignor.adapters.reports.logs import compress, spoil
from tests.assignor.embedding.state_stores.logs import Log

TOPIC = "in"
FIRST, SECOND = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)
POISON = b"poison"
DAMAGES = {"checksum": spoil, "codec": compress}
UNKNOWN_TOPIC, OUT_OF_RANGE, NO_LEADER = 3, 1, 6
_LIMIT_S = 7200.0
_TURNS, _TURNS_EACH_MS = 5000, 20


class Boom(Exception):
    """The function that processes records has raised."""


class ClientBoom(Boom, KafkaTimeoutError, TimeoutError):
    """The same, of a client that the function uses: a loop must not take it for one of its own."""


class Interrupted(KeyboardInterrupt):
    """A signal while the client polls, after which the application polls again."""


class Stop(threading.Event):
    """An event that is waited for in virtual time."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    def wait(self, timeout=None):
        end_s = self._clock.monotonic() + timeout
        while not self.is_set() and (left_s := end_s - self._clock.monotonic()) > 0:
            self._clock.wait(left_s)
        return self.is_set()


class Endless(BaseException):
    """A call did not return within the limits: of virtual time, or of steps without any."""


class Clock:
    """Virtual time: it passes when code waits, up to the next event of the scheduler."""

    def __init__(self):
        self.scheduler, self._turns = Scheduler(None), 0

    def monotonic(self):
        return self.scheduler.now_ms / 1000

    def later(self, seconds, work):
        """Call `work` in so many seconds."""
        self.scheduler.schedule(max(1, round(seconds * 1000)), "call", -1, (work,))

    def turn(self):
        """Count a step that does not wait; some of them take a millisecond."""
        self._turns += 1
        if self._turns > _TURNS:
            raise Endless(f"{_TURNS} steps at {self.monotonic():.1f} s")
        if self._turns % _TURNS_EACH_MS == 0:
            self._pass(0.001)

    def wait(self, seconds):
        """Wait for the next event, so many seconds at most; return whether it has come."""
        self._turns = 0
        return self._pass(seconds)

    def _pass(self, seconds):
        target_ms = self.scheduler.now_ms + max(1, -int(-seconds * 1000 // 1))
        due_ms = self.scheduler.next_due_ms()
        if due_ms is None or due_ms > target_ms:
            self.scheduler.now_ms = target_ms
            if target_ms > _LIMIT_S * 1000:
                raise Endless(f"virtual time {_LIMIT_S} s is over")
            return False
        while self.scheduler.next_due_ms() == due_ms:
            self.scheduler.pop().data[0]()
        return True

    def sleep(self, seconds):
        end_s = self.monotonic() + seconds
        while (left_s := end_s - self.monotonic()) > 0.0005:
            self.wait(left_s)

    @contextmanager
    def installed(self):
        """Let all code have this time."""
        with ExitStack() as stack:
            for name, function in (("monotonic", self.monotonic), ("sleep", self.sleep)):
                stack.enter_context(mock.patch.object(time, name, function))
            defaults = PollLoop.__init__.__kwdefaults__
            stack.enter_context(mock.patch.dict(defaults, now=self.monotonic))
            yield self


class Selector(selectors.DefaultSelector):
    """The selector of an event loop: it lets virtual time pass instead of waiting."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    def select(self, timeout=None):
        ready = super().select(0)
        if ready or timeout == 0:
            self._clock.turn()
        elif timeout is None:
            raise Endless("everything waits for what nothing will do")
        else:
            self._clock.wait(timeout)
        return ready


@cache
def batch_of(*values):
    """Return the bytes of a batch with these records."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1 << 20)
    for value in values:
        builder.append(timestamp=1, key=None, value=value, headers=[])
    builder.close()
    return bytes(builder.buffer())


def append_transaction(log, value):
    """Append a transaction of one record, and the marker that it is committed."""
    producer = log.end_offset  # another one each time
    log.append(transactional_batch([value], producer_id=producer))
    log.append(control_batch(producer_id=producer, is_commit=True))


def spoil_last(log, damage):
    """Change the bytes of the last batch of a log, so that it cannot be read."""
    data = bytearray(log._batches[-1].data)
    DAMAGES[damage](data)
    log._batches[-1] = dataclasses.replace(log._batches[-1], data=bytes(data))


def shorten(log, count):
    """Delete the first batches of a log."""
    del log._batches[:count], log._last_offsets[:count]
    log.start_offset = log._batches[0].base_offset if log._batches else log.end_offset


class Metadata:
    """What a client knows of the topic: as it was when it last asked, until it is closed."""

    def __init__(self, cluster, refresh_s):
        self._cluster, self._refresh_s = cluster, refresh_s
        self.is_closed = False
        self._refresh()

    def _refresh(self):
        if not self.is_closed:
            self.ask()
            self._cluster.clock.later(self._refresh_s, self._refresh)

    def ask(self):
        self._numbers = self._cluster.partitions()
        self._id = self._cluster.topic_id if self._numbers else None

    def partitions_for_topic(self, topic):
        return set(self._numbers) or None

    def topic_id(self, topic):
        return self._id


class Cluster:
    """One topic with two partitions, and what the group `app` has committed.

    Attributes:
        parts: number -> log.
        fetch_errors: number -> [error code, how many more fetches; None: all].
        refused_s: when a fetch was last answered with such an error.
        fetch_failures: what the next requests to fetch end with, instead of an answer.
        refusals: errors of the next commits; None: no answer until its time is over.
        silent_until_s: until when the coordinator does not answer.
        values: all that were ever written and can be read -> incarnation, partition and offset.
        former_ends: number -> highest end of the topics before this one.
        markers: places of control records of transactions, which clients pass.
        shown: number -> incarnation that a client was last shown, by the topic's id or an error.
            Records are fetched and offsets committed by name: till then no client can know.
    """

    def __init__(self, clock, partitions=2):
        self.clock, self.waiters = clock, []
        self.incarnation, self.exists, self.shown = 1, True, {}
        self.parts = {number: PartitionLog(1 << 20) for number in range(partitions)}
        self.fetch_errors, self.fetch_failures, self.refused_s = {}, [], -_LIMIT_S
        self.refusals, self.silent_until_s = [], 0.0
        self.values, self.markers, self.former_ends = {}, set(), Counter()
        # Of `Access` of the state stores.
        self.logs, self.outputs, self.committed = defaultdict(Log), Counter(), {}
        self.is_members, self.topic_ids = True, {TOPIC: self.topic_id}
        self.ends, self.starts = {}, {}
        self._note_ends()

    @property
    def topic_id(self):
        return UUID(int=self.incarnation)

    @property
    def is_silent(self):
        return self.clock.monotonic() < self.silent_until_s

    # What happens to the topic

    def write(self, number, *values):
        """Write batches of one record each."""
        for value in values:
            named = self._named(number, value)
            self.parts[number].append(batch_of(named))
            if value.startswith(POISON):
                del self.values[named]
        self._note_ends()

    def write_transaction(self, number, value):
        """Write a transaction of one record, and the marker that it is committed."""
        append_transaction(self.parts[number], self._named(number, value))
        self.markers.add((self.incarnation, number, self.parts[number].end_offset - 1))
        self._note_ends()

    def _named(self, number, value):
        place = self.incarnation, number, self.parts[number].end_offset
        named = value + b" %d %d %d" % place
        self.values[named] = place
        return named

    def _note_ends(self):
        self.ends = {TopicPartition(TOPIC, n): log.end_offset for n, log in self.parts.items()}
        self.starts = {TopicPartition(TOPIC, n): log.start_offset for n, log in self.parts.items()}
        self.wake()

    def damage(self, number, damage):
        """Write a record that cannot be read."""
        self.write(number, POISON)
        spoil_last(self.parts[number], damage)

    def delete_records(self, number, count):
        """Delete the first records, as retention does."""
        shorten(self.parts[number], count)
        self._note_ends()

    def delete_topic(self):
        """Delete the topic, and with it the offsets of the group."""
        self.exists = False
        self.committed.clear()
        self.wake()

    def make_anew(self, *values):
        """Create the topic, another one if it exists, with these records in its partition 0."""
        self.incarnation, self.exists = self.incarnation + 1, True
        for number, log in self.parts.items():
            self.former_ends[number] = max(log.end_offset, self.former_ends[number])
        self.parts = {number: PartitionLog(1 << 20) for number in self.parts}
        self.topic_ids = {TOPIC: self.topic_id}
        self.committed.clear()
        self.write(0, *values)

    def fail_fetch(self, times):
        """Have the next requests to fetch fail, as the connection breaks."""
        self.fetch_failures += ["the connection is lost"] * times

    def refuse_fetch(self, number, code, times):
        """Answer the next fetches of a partition with an error; None: all."""
        self.fetch_errors[number] = [code, times]

    def grow(self):
        self.parts[len(self.parts)] = PartitionLog(1 << 20)

    def wake(self):
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            self.clock.later(0.001, waiter)

    # What clients ask

    def partitions(self):
        self.shown = dict.fromkeys(self.parts, self.incarnation)
        return sorted(self.parts) if self.exists else []

    def fetch(self, number, offset, max_bytes=1 << 20):
        """Return (error code, end offset, batches)."""
        error = self.fetch_errors.get(number)
        if error is not None:
            self.refused_s = self.clock.monotonic()
            if error[1] is not None:
                error[1] -= 1
                if not error[1]:
                    del self.fetch_errors[number]
            return error[0], -1, b""
        error, start, end = self.range_of(number)
        if not (error or start <= offset <= end):
            error = OUT_OF_RANGE
        if error:
            return error, -1, b""
        return 0, end, self.parts[number].read(offset, max_bytes, at_least_one=True)

    def range_of(self, number):
        """Return (error code, first offset, end)."""
        log = self.parts.get(number) if self.exists else None
        return (0, log.start_offset, log.end_offset) if log else (UNKNOWN_TOPIC, -1, -1)

    def may_be_gone(self, value):
        """Return whether the record was deleted, by retention or with its topic."""
        incarnation, number, offset = self.values[value]
        is_present = self.exists and incarnation == self.incarnation
        return not is_present or offset < self.parts[number].start_offset

    def commit(self, offsets, note):
        """Return partition -> error code; None: no answer. `note` is told what is committed."""
        if self.is_silent:
            return None
        refusal = self.refusals.pop(0) if self.refusals else 0
        if refusal is None or refusal:
            return refusal and dict.fromkeys(offsets, refusal)
        codes = {
            each: 0 if self.exists and each[1] in self.parts else UNKNOWN_TOPIC for each in offsets
        }
        done = {each: at for each, at in offsets.items() if not codes[each]}
        note(done)
        self.committed |= {TopicPartition(*each): at for each, at in done.items()}
        return codes
