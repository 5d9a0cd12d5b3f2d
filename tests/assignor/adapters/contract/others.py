"""Another member of the same group, what has to be processed and committed, and the state."""

from collections import Counter
from types import SimpleNamespace

from assignor import TaskStores
from encoding import TaskId, TopicPartition
from tests.assignor.adapters.contract.cluster import TOPIC, Boom
from tests.assignor.adapters.reports.logs import COUNTING, COUNTS, GROUP
from tests.assignor.embedding.state_stores.logs import Access


def tasks(partitions):
    """Return task -> its partitions."""
    return {TaskId(0, each.partition): (each,) for each in sorted(partitions)}


class OtherMember:
    """What the rest of the group does, and what not every loop can do; part of a run."""

    def set_offsets(self):
        """Set the offsets of the group that it does not have, as kafka-consumer-groups does."""
        for number, log in self.cluster.parts.items():
            at = self.cluster.committed.get((TOPIC, number), -1)
            if not log.start_offset <= at <= log.end_offset:
                self.cluster.committed[TopicPartition(TOPIC, number)] = log.start_offset

    def fail_listener(self):
        """Have the listener of the tasks raise in the rebalance that this poll ends."""
        self.assignor().driver.reporter.call_listener(self.fails)

    def fails(self, *_):
        """Raise, as a method of a listener or a callback."""
        error = Boom("listener")
        self.booms.append(error)
        raise error

    def pause(self, number):
        """Fetch nothing of a partition."""

    resume = pause

    def pause_for(self, number, seconds):
        """Let the application pause a partition for a while: nothing of it may be polled then."""
        if TopicPartition(TOPIC, number) not in self.assigned:
            return
        self.pause(number)
        self.paused[number] = own = object()
        self.healing += 1

        def over():
            self.healing, self.pause_ended_s = self.healing - 1, self.clock.monotonic()
            if self.paused.get(number, own) is own:
                self.paused.pop(number, None)
                self.resume(number)

        self.when_polled(seconds, over)

    def check_paused(self, polled):
        """Check that a poll has returned nothing of partitions that were paused all the time."""
        found = set() if polled is None else self.numbers_of(polled)
        for number in found & self.paused_before & self.paused.keys():
            self.broken.append(f"paused: records of {number} were polled, which is paused")

    def numbers_of(self, polled):
        """Return the numbers of the partitions that have records in what a poll has returned."""
        return {partition.partition for partition in polled if polled[partition]}

    def give_up(self, partitions):
        """Have what is not committed of these partitions processed again, without state stores."""
        self.paused = {n: p for n, p in self.paused.items() if (TOPIC, n) not in partitions}
        if self.has_stores:
            return  # the state has it
        for value, (incarnation, number, offset) in self.cluster.values.items():
            at = self.cluster.committed.get((TOPIC, number), 0)
            is_known = incarnation == self.cluster.incarnation and value not in self.early
            if is_known and (TOPIC, number) in partitions and offset >= at:
                self.finished.discard(value)

    # What must hold

    def left(self):
        """Return the records that are to be processed and are not."""
        return [
            value
            for value in self.cluster.values
            if value not in self.finished | self.skipped and not self.cluster.may_be_gone(value)
        ]

    def lag(self):
        """Return partition -> the offset that is committed, though all behind it is finished."""
        found, unread = {}, self.early - self.found | (self.skipped - self.finished)
        for each in self.everything if self.commits_again and self.cluster.exists else ():
            log, at = self.cluster.parts[each.partition], self.cluster.committed.get(each, 0)
            behind = [(each.partition, n) for n in range(max(at, log.start_offset), log.end_offset)]
            if self.is_over and all(self._at(*b) is None for b in behind):
                continue  # markers behind a record that came with the last poll
            if behind and all(self._is_done(*b) and self._at(*b) not in unread for b in behind):
                found[each] = at
        return found

    def note_commit(self, offsets):
        """Check what the member commits."""
        for (_, number), at in offsets.items():
            if TopicPartition(TOPIC, number) not in self.assigned:
                self.broken.append(f"commit: {number} at {at} belongs to another member")
            log = self.cluster.parts[number]
            if self.shown.get(number) != self.cluster.incarnation:
                self.blind[number] = at  # no client can know yet
                continue
            self.blind.pop(number, None)
            if at == self.cluster.committed.get((TOPIC, number)):
                continue  # as a member does that has begun there: it changes nothing
            if at > log.end_offset:
                self.broken.append(f"commit: {number} at {at} is of the former topic")
            for offset in range(log.start_offset, min(at, log.end_offset)):
                if not self._is_done(number, offset):
                    self.broken.append(f"commit: {number} at {at}, and {offset} is not finished")
                    return

    def _at(self, number, offset):
        """Return the value of a record that can be read, or None."""
        where = self.cluster.incarnation, number, offset
        return next((v for v, found in self.cluster.values.items() if found == where), None)

    def _is_done(self, number, offset):
        if (value := self._at(number, offset)) is None:
            return (self.cluster.incarnation, number, offset) in self.passed | self.cluster.markers
        return value in self.finished | self.skipped

    def skip_unfound(self):
        """Skip records of a new topic behind which a client that knows no ids may read on."""
        ends = Counter() if self.has_ids else self.cluster.former_ends
        found = self.cluster.values.items()
        self.skipped |= {v for v, (i, number, at) in found if i > 1 and at < ends[number]}

    def skip_blind(self):
        """Skip what a member that has ended has passed by a commit to a topic it did not know."""
        for value, (incarnation, number, at) in self.cluster.values.items():
            is_passed = incarnation == self.cluster.incarnation and at < self.blind.get(number, 0)
            if is_passed and not self.has_stores:
                self.skipped.add(value)
        self.blind = {}

    # Other members

    def positions(self):
        """Return number -> offset at which the client reads on, where that is known."""
        return {0: len(self.finished)}

    def take_over(self, partitions):
        """Process the partitions as another member of the same group, up to a record it cannot."""
        self.taken_over_s = self.clock.monotonic()
        with self._others_stores(partitions) as stores:
            # Where the state has to be read from.
            sought = {} if stores is None else stores.unread()
            for each in sorted(partitions):
                log = self.cluster.parts[each.partition]
                at = max(self.cluster.committed.get(each, 0), log.start_offset)
                at = sought.pop(each, at)
                while self.cluster.exists and at is not None and at <= log.end_offset:
                    records = self._readable(each.partition, at)
                    if stores is not None:
                        self._process_all(stores, {each: records})
                        sought |= stores.unread()
                    self.finished |= {record.value for record in records}
                    if records:
                        self.cluster.committed[each] = records[-1].offset + 1
                    at = sought.pop(each, None)

    def _others_stores(self, partitions):
        if not self.has_stores:
            return _Nothing()
        stores = self.new_stores()
        stores.on_tasks_assigned(tasks(partitions), {})
        self._process_all(stores, {})
        return stores

    def _process_all(self, stores, batch):
        while True:
            stores.process(batch, count)
            batch = {}
            if not stores.waiting and not stores.has_rest:
                return

    def _readable(self, number, at):
        found = []
        by_place = {place: value for value, place in self.cluster.values.items()}
        known = self.cluster.markers | by_place.keys()
        while (place := (self.cluster.incarnation, number, at)) in known:
            if (value := by_place.get(place)) is not None:
                record = {"topic": TOPIC, "partition": number, "offset": at, "timestamp": 1}
                found.append(SimpleNamespace(**record, value=value))
            at += 1
        return found

    def new_stores(self):
        """Return the state of a member, with changelogs in memory."""
        return TaskStores(
            COUNTING, [COUNTS], application_id=GROUP, access=Access(self.cluster, lambda _: None)
        )

    def _check_state(self):
        """Check the state that a new member restores, once it has processed the rest."""
        self.take_over(self.everything)
        counted = {}
        with self._others_stores(self.everything) as stores:
            for task in tasks(self.everything):
                counted |= dict(stores[task][COUNTS].items())
        # Nobody can process them again.
        lost = {value for value in self.unsure if self.cluster.may_be_gone(value)}
        for value in self.cluster.values:
            times = counted.get(value.decode(), 0)
            wanted = value in self.finished - self.skipped - lost
            if not wanted <= times <= 1 + (value in self.early):
                self.broken.append(f"state: {value} counts {times} times")


class _Nothing:
    def __enter__(self):
        return None

    def __exit__(self, *_):
        """Nothing is open."""


def count(record, state):
    """Count a record of any client."""
    value = record.value() if callable(record.value) else record.value
    counts = state[COUNTS]
    counts.put(value.decode(), counts.get(value.decode(), 0) + 1)
