"""One member over a scripted cluster, restarted by its operator, and what must hold of it.

- Nothing is committed that is not finished, nor of a partition that this member does not have.
- The state counts each record once.
- Each call ends in bounded time: also a loop after its `stop`.
- A batch takes no longer than the interval between polls if the loop can know that it would.
- Errors of the function that processes records, records that cannot be read, and what lasts, are
  raised or logged as a warning.
- Once all faults are over, every record of the member's partitions is processed and committed, and
  the lag is 0.
"""

import logging

from assignor import MemberStopped, UnreadableRecord
from assignor.embedding import ListenerFailed
from encoding import TopicPartition
from tests.assignor.adapters.contract.cluster import (
    TOPIC,
    Boom,
    Clock,
    Cluster,
    Endless,
    Interrupted,
)
from tests.assignor.adapters.contract.others import OtherMember

INTERVAL_S, REQUEST_S, POLL_S = 60.0, 10.0, 1.0
METADATA_S = 10.0
STOP_S = 2 * REQUEST_S + 30.0
SETTLED_S, RESTART_S = 240.0, 15.0
_POLLS = 3000
_RESTARTS = 12


class _Log(logging.Handler):
    def __init__(self, clock):
        super().__init__(logging.WARNING)
        self.lines, self._clock = [], clock

    def emit(self, record):
        self.lines.append((self._clock.monotonic(), record.getMessage()))


class Run(OtherMember):
    """A member that goes through events; subclasses have its client and its loop.

    Attributes:
        broken: sentences about what did not hold.
        handlers: what the next calls of the function that processes records do.
        raised: what came out of the loop, with the time.
    """

    has_stores = True
    # Whether the client knows topics that were made anew before it reads beyond their end.
    has_ids = False
    # Whether it warns of a call longer than the interval, on this thread.
    names_slow = True
    # Whether the client has deserializers.
    deserializes = True
    # Whether what a poll has returned is the loop's, and not the application's yet.
    reads_again = True
    # Whether the loop polls within a batch; whether it measures batches, and makes them smaller.
    has_slices, has_sizes = False, False
    # Whether a record that was delivered may be committed.
    commits_delivered = False
    # Whether the loop commits positions, behind control records too, until it has succeeded.
    commits_again = True

    def __init__(self, events, reset="earliest"):
        self.clock = Clock()
        self.cluster = Cluster(self.clock)
        for number in (0, 1):
            self.cluster.write(number, b"a", b"b")
        self.events, self.reset = list(events), reset
        self.broken, self.handlers, self.raised = [], [], []
        self.finished, self.passed, self.assigned = set(), set(), frozenset()
        self.healing, self.polls, self.is_over, self.stopped_s = 0, 0, False, None
        self.faults = {}  # what lasts -> since when
        self.skipped, self.passed_here, self.settling_s = set(), set(), None
        self.slept_s = 0.0
        # Number -> topic that an answer had shown before the last poll, and before the one before
        # it; records of a later one that were processed as if they were of that one, and are again
        # once it is found; records that were processed after it was.
        self.shown, self.known, self.early, self.found = {}, {}, set(), set()
        self.blind = {}  # number -> offset that was committed to a topic that is not shown
        # Whether a broker has left a request of the group unanswered.
        self.is_unanswered = False
        self.longest_s, self.polled_s = 0.0, 0.0
        # Records since the last poll; seconds of each record of the last batch that had some.
        self.handled, self.each_s = [], 0.0
        # Records of slices that an interrupt has ended: the state has some, or none.
        self.unsure = set()
        self.taken_over_s = -1.0
        self.stores, self.is_interrupted, self.closes_in_poll = None, False, False
        self.leaves = self.fails_with_records = False
        # What the function that processes records, and the listener, have raised.
        self.booms = []
        # Number -> pause of the application that holds; numbers of those when the poll began.
        self.paused, self.paused_before, self.pause_ended_s = {}, set(), -1.0
        self._log = _Log(self.clock)

    # What events do

    @property
    def everything(self):
        return frozenset(TopicPartition(TOPIC, number) for number in self.cluster.parts)

    def rebalance(self, partitions, *, is_lost=False):
        """Have these partitions only; another member processes the records of the others."""
        partitions = frozenset(partitions) & self.everything
        if partitions == self.assigned:
            return
        gone = self.assigned - partitions
        self.passed_here -= {at for at in self.passed_here if (TOPIC, at[1]) in gone}
        if is_lost:
            self.assigned = partitions
        self.assign(partitions, gone, is_lost=is_lost)
        self.give_up(gone)
        self.assigned = partitions
        if is_lost:
            self.take_over(gone)

    def stop(self):
        self.note_stop()
        self.set_stop()

    def shut_down(self):
        """Have the whole group asked to stop."""
        self.note_stop()
        self.assignor().driver.shutdown_requested = True

    def assignor(self):
        return self.consumer.assignor

    def note_stop(self):
        """Begin to measure how long the loop takes to end."""
        if self.stopped_s is None:
            self.stopped_s = self.clock.monotonic() - self.slept_s

    def close_in_poll(self):
        """Have `close` called while the client polls, if another thread may do that."""
        self.close_elsewhere()

    def when_polled(self, seconds, work):
        """Call `work` in so many seconds, not counting those in which the application is busy."""
        slept_s = self.slept_s

        def over():
            nonlocal slept_s
            if self.slept_s > slept_s:
                self.clock.later(self.slept_s - slept_s, over)
                slept_s = self.slept_s
            else:
                work()

        self.clock.later(seconds, over)

    def sleep(self, seconds):
        """Let the function that processes records take so long."""
        self.slept_s += seconds
        self.longest_s = max(self.longest_s, seconds)
        self.clock.sleep(seconds)

    def attention_since(self, since_s):
        return any(at >= since_s for at, _ in [*self.raised, *self._log.lines])

    # What the client calls

    def before_poll(self):
        """Let the next event happen, or end once everything is processed."""
        self.polls += 1
        self.known, self.shown = self.shown, dict(self.cluster.shown)
        now_s = self.clock.monotonic()
        between_s = now_s - self.polled_s
        if self.has_slices and self.polled_s and self.longest_s < INTERVAL_S < between_s:
            self.broken.append(f"late: {between_s:.0f} s between two polls, for several records")
        self._check_size(between_s)
        # Of a poll that raises only the begin is known.
        self.longest_s, self.polled_s = 0.0, now_s
        if self.polls > _POLLS:
            raise Endless(f"{_POLLS} polls")
        if self.events:
            self.events.pop(0)(self)
            self.skip_unfound()
        elif not self.is_over and self.assigned != self.everything:
            self.rebalance(self.everything)
        elif self.healing:
            self.settling_s = None
        elif self.stopped_s is not None:
            if now_s - self.slept_s - self.stopped_s > STOP_S:
                raise Endless("the loop does not end")
        elif not self.is_over and (not (self.left() or self.lag()) or self._is_late()):
            self.is_over = True
            self.stop()
        self.paused_before = {*self.paused}

    def _check_size(self, between_s):
        """Check that a batch was not larger than one before it has let the loop expect."""
        handled, self.handled = len(self.handled), []
        if self.has_sizes and handled > 1 and handled * self.each_s > INTERVAL_S:
            self.broken.append(f"size: {handled} records, though each before took {self.each_s} s")
        if handled:
            self.each_s = between_s / handled

    def after_poll(self, polled):
        """Return what the client has polled, unless a signal comes meanwhile."""
        self.polled_s = self.clock.monotonic()
        self.check_paused(polled)
        if polled and self.reads_again:
            if self.is_interrupted:
                self.is_interrupted = False
                raise Interrupted
            if self.fails_with_records:
                self.fails_with_records = False
                raise ConnectionResetError
        return polled

    def check_left(self):
        """Leave the loop if the application does, which then runs another one."""
        if self.leaves:
            self.leaves = False
            raise Interrupted

    def _is_late(self):
        if self.settling_s is None:
            self.settling_s = self.clock.monotonic()
        return self.clock.monotonic() - self.settling_s > SETTLED_S

    def handle(self, number, offset, value):
        """Process a record."""
        self.handled.append(value)
        is_found = self.shown.get(number) == self.cluster.incarnation
        if not is_found:
            self.early.add(value)
        if self.commits_delivered:
            self.finished.add(value)
        action = self.handlers.pop(0) if self.handlers else None
        if action is not None:
            self._act(action, value)
        self.finished.add(value)
        if is_found and not self.is_over:  # else it need not be committed any more
            self.found.add(value)

    def _act(self, action, value):
        try:
            action(self, value)
        except Boom as error:
            self.booms.append(error)
            raise
        except KeyboardInterrupt:
            self.unsure.update(self.handled)
            raise

    def check_answered(self, since_s):
        """Check that a commit has not waited, though each of its requests was answered."""
        took_s = self.clock.monotonic() - since_s
        if took_s >= REQUEST_S and not self.is_unanswered:
            self.broken.append(f"blocked: a commit took {took_s:.0f} s")

    # The operator

    def play(self):
        """Go through all events; return what did not hold."""
        root = logging.getLogger()
        root.addHandler(self._log)
        try:
            with self.clock.installed():
                self._play()
        except Endless as error:
            self.broken.append(f"endless: {error}")
        finally:
            root.removeHandler(self._log)
        return self.broken

    def _play(self):
        restarts = 0
        while not self.is_over and not self.broken:
            restarts += 1
            if restarts > _RESTARTS:
                self.broken.append(f"restarts: {[str(error) for _, error in self.raised]}")
                return
            if restarts > 1:
                self.clock.sleep(RESTART_S)
            self.stopped_s, self.settling_s, self.polled_s = None, None, 0.0
            self.assigned, self.passed_here = self.everything, set()
            self.start()
            self._run_member()
            raised = [each for _, error in self.raised for each in (error, error.__cause__)]
            if lost := [each for each in self.booms if each not in raised]:
                self.broken.append(f"swallowed: {lost}")
            self.end()
            self.skip_blind()
            if not self.is_over:
                self.give_up(self.assigned)
            self.assigned = frozenset()
            if self.reset == "none":
                self.set_offsets()
        left = self.left()
        if left and not self.broken:
            self.broken.append(f"stuck: {len(left)} records are not processed: {left}")
        if not self.broken and (lag := self.lag()):
            self.broken.append(f"lag: not committed: {lag}")
        if self.has_stores and not self.broken:
            self._check_state()

    def _run_member(self):
        while True:
            self.handled, self.each_s = [], 0.0  # another loop has measured nothing yet
            try:
                self.loop()
            except UnreadableRecord as error:
                self._raised(error)
                if not self._pass_over(error):
                    return
            except (Boom, Interrupted, ListenerFailed) as error:
                self._raised(error)
                if isinstance(error, Boom) and not self.has_stores:
                    return
            except (MemberStopped, RuntimeError, KeyboardInterrupt) as error:
                self._raised(error)
                return
            else:
                ended_s = self.clock.monotonic() - self.slept_s
                if self.stopped_s is not None and ended_s - self.stopped_s > STOP_S:
                    took_s = ended_s - self.stopped_s
                    self.broken.append(f"stop: the loop ended {took_s:.0f} s later")
                return

    def _pass_over(self, error):
        """Seek past a record that cannot be read; return False if that was done already."""
        where = self.cluster.incarnation, error.partition, error.offset
        if where in self.passed_here:
            self.broken.append(f"unreadable: {where} was passed over already")
            return False
        self.passed.add(where)
        own = TopicPartition(TOPIC, error.partition)
        # A client that learns only later of a topic made anew reads it again. So does a member with
        # state, if the group has committed nothing: reading begins where its state ends.
        is_known = self.known.get(error.partition) == self.cluster.incarnation
        if is_known and (not self.has_stores or own in self.cluster.committed):
            self.passed_here.add(where)
        if own in self.assigned:
            self.seek(error.partition, error.offset + 1)
        return True

    def _raised(self, error):
        self.raised.append((self.clock.monotonic(), error))
