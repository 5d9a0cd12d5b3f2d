"""Another member of the same group, with the same state, and what the state has in the end."""

from types import SimpleNamespace

from assignor import TaskStores
from encoding import TaskId
from tests.assignor.adapters.contract.cluster import TOPIC
from tests.assignor.adapters.reports.logs import COUNTING, COUNTS, GROUP
from tests.assignor.embedding.state_stores.logs import Access


def tasks(partitions):
    """Return task -> its partitions."""
    return {TaskId(0, each.partition): (each,) for each in sorted(partitions)}


class OtherMember:
    """What the rest of the group does, and what not every loop can do; part of a run."""

    def pause(self, number):
        """Fetch nothing of a partition."""

    resume = pause

    def positions(self):
        """Return number -> offset at which the client reads on, where that is known."""
        return {0: len(self.finished)}

    def take_over(self, partitions):
        """Process the partitions as another member of the same group, up to a record it cannot."""
        self.taken_over_s = self.clock.monotonic()
        with self._others_stores(partitions) as stores:
            for each in sorted(partitions):
                log = self.cluster.parts[each.partition]
                at = max(self.cluster.committed.get(each, 0), log.start_offset)
                if not self.cluster.exists or at > log.end_offset:
                    continue
                records = self._readable(each.partition, at)
                if stores is not None:
                    self._process_all(stores, {each: records})
                self.finished |= {record.value for record in records}
                if records:
                    self.cluster.committed[each] = records[-1].offset + 1

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
        for value in self.cluster.values:
            times = counted.get(value.decode(), 0)
            wanted = value in self.finished - self.skipped
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
