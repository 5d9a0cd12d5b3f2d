"""Changelogs in memory, members on them, and an oracle: what a kill at any step may not change."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace

from assignor import Topology
from assignor.embedding import JSON, TEXT, DictStore, InputState, SqliteStore, TaskStores
from assignor.embedding.errors import ChangelogLost
from assignor.embedding.input_facts import LogRange
from assignor.embedding.write_back import TaskWriter, open_kept, plan_task, refuse_topics
from encoding import TaskId, TopicPartition

TASK = TaskId(0, 0)
INPUTS = (TopicPartition("orders", 0), TopicPartition("visits", 0))
TOPOLOGY = (
    Topology()
    .add_source("read", topics=["orders", "visits"])
    .add_processor("count", parents=["read"])
    .add_state_store("by-letter", processors=["count"])
    .add_state_store("by-word", processors=["count"])
)
CHANGELOGS = tuple(TopicPartition(f"app-{name}-changelog", 0) for name in ("by-letter", "by-word"))
TOPICS = {*(each.topic for each in (*INPUTS, *CHANGELOGS))}
FAR = 1 << 40
WORDS = ("one", "two", "three", "four", "five", "six", "odd", "till")


class Killed(BaseException):
    """The process ended here, as by SIGKILL."""


@dataclass
class Steps:
    """Counts steps, and does something at one of them: by default, the process ends."""

    at: int = 0
    then: object = None
    taken: int = 0
    names: list = field(default_factory=list)

    def __call__(self, name):
        self.taken += 1
        self.names.append(name)
        if self.taken == self.at:
            if self.then is None:
                raise Killed(f"step {self.at}: {name}")
            self.then()


class Log:
    """One partition of a changelog."""

    def __init__(self):
        self.records, self.start, self.end = [], 0, 0

    def append(self, record):
        offset, self.end = self.end, self.end + 1
        self.records.append(
            SimpleNamespace(
                offset=offset,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp=-1,
            )
        )
        return offset

    def compact(self):
        """Keep the last record of each key."""
        last = {record.key: record.offset for record in self.records}
        self.records = [record for record in self.records if last[record.key] == record.offset]


class Cluster:
    """Input, changelogs and committed offsets."""

    exists = True  # the input

    def __init__(self):
        self.logs = defaultdict(Log)
        self.outputs = Counter()
        self.input = {partition: [] for partition in INPUTS}
        self.committed = Counter()
        # Input partition -> its end and begin, topic -> id; whether members have committed.
        self.ends, self.starts, self.topic_ids = {}, {}, {}
        self.is_members = True
        self.times = count()

    def write(self, *words):
        """Write words, to the input topics in turn."""
        for word in words:
            now = next(self.times)
            topic, partition = INPUTS[now % 2]
            records = self.input[INPUTS[now % 2]]
            place = {"topic": topic, "partition": partition, "offset": len(records)}
            records.append(SimpleNamespace(**place, timestamp=now, word=word))

    def expected(self):
        words = Counter(row.word for rows in self.input.values() for row in rows)
        letters = Counter()
        for word, number in words.items():
            letters[word[0]] += number
        return {"by-word": dict(words), "by-letter": dict(letters)}


class Access:
    """`ChangelogAccess` of one process; each record that is written is a step."""

    def __init__(self, cluster, steps):
        self.cluster, self.step = cluster, steps
        self.followed, self.sent, self.broken = {}, [], None

    def end_offsets(self, partitions):
        self.step("end offsets")
        return {each: self.cluster.logs[each].end for each in partitions}

    def input_state(self, group_id, partitions):
        assert group_id == "app"
        self.step("input")
        found = {}
        for each in partitions if self.cluster.exists else ():
            start, end = self.cluster.starts.get(each, 0), self.cluster.ends.get(each, FAR)
            found[each] = InputState(
                log=LogRange(start, end, self.cluster.topic_ids.get(each.topic)),
                committed=self.cluster.committed.get(each),
                is_members=self.cluster.is_members,
            )
        return found

    def read(self, stores, *, wait_s=0.0):
        stores, taken, lost = list(stores), 0, []
        for store in stores:
            log = self.cluster.logs[store.changelog]
            if store.changelog not in self.followed or store.needs_check:
                topic_id = self.cluster.topic_ids.get(store.changelog.topic)
                try:
                    store.check_range(log.start, log.end, topic_id)
                except ChangelogLost as error:
                    lost.append(error)
        if lost:
            self.followed = {}
        ChangelogLost.raise_if(lost)
        for store in stores:
            log = self.cluster.logs[store.changelog]
            records = [record for record in log.records if record.offset >= store.position]
            if records:
                self.step("read")
                store.restore(records)
            taken += len(records)
        self.followed = {
            store.changelog: self.cluster.logs[store.changelog].end for store in stores
        }
        return taken

    def position(self, partition):
        return self.followed.get(partition, 0)

    def seen_end(self, partition):
        return self.cluster.logs[partition].end if partition in self.followed else None

    def append(self, records):
        found = []
        for record in records:
            self.step("append")
            if self.broken is not None:
                raise self.broken
            found.append(self.cluster.logs[record.partition].append(record))
        self.step("appended")
        return found

    def send(self, topic, key, value, partition, *, headers=(), timestamp_ms=None):
        self.sent.append((topic, key, value, partition, *headers))

    def flush(self):
        self.step("flush")
        sent, self.sent = self.sent, []
        self.cluster.outputs.update(sent)

    def close(self):
        self.step("close")


class SteppedTable:
    """A table whose writes are steps."""

    def __init__(self, table, step):
        self._table, self._step = table, step

    def __getattr__(self, name):
        return getattr(self._table, name)

    def apply(self, writes, progress, *unowned):
        self._step("before local write")
        self._table.apply(writes, progress, *unowned)
        self._step("after local write")


def stores_of(kind, step):
    """The two stores of the application; their local writes are steps."""

    class Stepped(kind):
        def open_table(self, directory, changelog):
            return SteppedTable(kind.open_table(self, directory, changelog), step)

    return tuple(Stepped(name, key=TEXT, value=JSON) for name in ("by-letter", "by-word"))


class Member:
    """One process with the task: it counts words, and words by their first letter."""

    def __init__(self, cluster, *, kind=SqliteStore, state_dir=None, steps=None, **settings):
        self.cluster = cluster
        self.steps = Steps() if steps is None else steps
        self.kind = kind
        self.letters, self.words = stores_of(kind, self.steps)
        self.sentences = []
        self.access = Access(cluster, self.steps)
        self.stores = TaskStores(
            TOPOLOGY,
            [self.words, self.letters],
            application_id="app",
            access=self.access,
            state_dir=None if kind is DictStore else state_dir,
            tell=self.sentences.append,
            **settings,
        )

    def assign(self, *, active=True):
        partitions = {TASK: INPUTS}
        if active:
            self.position = Counter(self.cluster.committed)
            self.stores.on_tasks_assigned(partitions, {})
        else:
            self.stores.on_tasks_assigned({}, partitions)

    def revoke(self):
        self.stores.on_tasks_revoked({TASK: INPUTS}, {})

    def count(self, record, state):
        self.steps("before handler")
        words, letters = state[self.words], state[self.letters]
        words.put(record.word, words.get(record.word, 0) + 1)
        letters.put(record.word[0], letters.get(record.word[0], 0) + 1)
        state.send("out", key=record.word.encode(), value=b"")
        self.steps("after handler")

    def poll(self, records=3):
        """Process what a poll returns, and commit."""
        batch = {}
        if TASK in self.stores.active and not self.stores.waiting:
            for partition in INPUTS:
                at = self.position[partition]
                batch[partition] = self.cluster.input[partition][at : at + records]
                self.position[partition] += len(batch[partition])
        done = self.stores.process(batch, self.count)
        self.steps("before commit")
        for partition, offset in done.items():
            self.cluster.committed[partition] = offset
        return batch

    def finish(self, records=3):
        """Process all input."""
        while self.stores.waiting or any(
            self.position[partition] < len(self.cluster.input[partition]) for partition in INPUTS
        ):
            self.poll(records)

    def state(self):
        """The counts of the task here."""
        state = self.stores[TASK]
        return {
            "by-word": dict(state[self.words].items()),
            "by-letter": dict(state[self.letters].items()),
        }


def restored(cluster):
    """The counts that a member without any state restores from the changelogs."""
    member = Member(cluster, kind=DictStore)
    member.assign()
    while member.stores.waiting:
        member.stores.process({}, member.count)
    found = member.state()
    member.stores.close()
    return found


def write_back(cluster, state_dir, *, steps=None, access=None):
    """What `assignor write-back --execute` does with a state directory; return the refusals."""
    access = access or Access(cluster, steps or Steps())

    def set_offsets(offsets):
        access.step("offsets")
        for partition, offset in offsets.items():
            cluster.committed[partition] = offset
        access.step("after offsets")

    refusals = []
    with open_kept(state_dir) as kept:
        for each in kept:
            if each.problem:
                refusals.append(each.problem)
                continue
            assert refuse_topics(each, {**dict.fromkeys(TOPICS, 1)}) == ()
            writer = TaskWriter(each, access, set_offsets)
            with writer.restored() as found:
                inputs = [TopicPartition(topic, 0) for topic in sorted(each.topics)]
                plan = plan_task(each, found, access.input_state("app", inputs))
                refusals += plan.refusals
                if not plan.refusals:
                    writer.execute(found, plan)
    return refusals
