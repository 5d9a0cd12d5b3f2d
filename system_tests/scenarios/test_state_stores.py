"""Exact counts, whatever is killed: processes that end at every step of a batch, on a broker."""

from collections import Counter

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from assignor import JSON, TEXT, DictStore, TaskStores
from assignor.adapters.kafka_python import KafkaChangelogs
from encoding import TaskId
from encoding import TopicPartition as Partition
from system_tests.broker import BrokerConfig, running_broker
from system_tests.support.fork_server import ForkedProcess, ForkServer
from system_tests.support.killed_member import GROUP, TOPOLOGY, WORDS

pytestmark = [pytest.mark.loop, pytest.mark.slow, pytest.mark.timeout(1800)]

PARTITIONS = 2
CHANGELOGS = {f"{GROUP}-{name}-changelog": PARTITIONS for name in ("by-letter", "by-word")}
TOPICS = {WORDS: PARTITIONS, "out": 1, **CHANGELOGS}
LIMIT_S = 120
SIGKILLED = -9
TEXTS = ("one", "two", "three", "odd", "till", "four")
STORES = [DictStore(name, key=TEXT, value=JSON) for name in ("by-letter", "by-word")]


class Group:
    """Processes one after the other, each with the input of its round."""

    def __init__(self, servers, home, server):
        self.servers, self.home, self.server = servers, home, server
        self.written, self.rounds = Counter(), 0
        self.producer = KafkaProducer(bootstrap_servers=servers)

    def write(self):
        """Write words: other ones each time, and more than fit into one batch."""
        self.rounds += 1
        for number in range(9 + self.rounds % 4):
            word = TEXTS[(number * self.rounds) % len(TEXTS)]
            self.written[word] += 1
            self.producer.send(WORDS, word.encode(), partition=TEXTS.index(word) % PARTITIONS)
        self.producer.flush()

    def run(self, state_dir, step):
        """Run a process; return its exit status and the names of its steps."""
        module = "system_tests.support.killed_member"
        argv = [module, self.servers, str(self.home / state_dir), str(step)]
        process = ForkedProcess(self.server, argv)
        status = process.wait(LIMIT_S)
        lines = [line.split(" ", 1)[1] for line in process.stdout.read().splitlines()]
        errors = process.stderr.read()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        return status, lines, errors

    def expected(self):
        letters = Counter()
        for word, number in self.written.items():
            letters[word[0]] += number
        return {"by-word": dict(self.written), "by-letter": dict(letters)}

    def restored(self):
        """What a member without files has."""
        partitions = {TaskId(0, n): (Partition(WORDS, n),) for n in range(PARTITIONS)}
        changelogs = KafkaChangelogs(bootstrap_servers=self.servers)
        with TaskStores(TOPOLOGY, STORES, application_id=GROUP, access=changelogs) as stores:
            stores.on_tasks_assigned(partitions, {})
            while stores.waiting:
                stores.process({}, print)
            found = {store.name: Counter() for store in STORES}
            for task in partitions:
                for store in STORES:
                    found[store.name].update(dict(stores[task][store].items()))
        return {name: dict(counts) for name, counts in found.items()}

    def outputs(self):
        partition = TopicPartition("out", 0)
        with KafkaConsumer(bootstrap_servers=self.servers) as consumer:
            consumer.assign([partition])
            consumer.seek_to_beginning()
            [end] = consumer.end_offsets([partition]).values()
            found = Counter()
            while consumer.position(partition) < end:
                for record in consumer.poll(timeout_ms=200).get(partition, ()):
                    found[record.key.decode()] += 1
        return found


@pytest.fixture
def group(tmp_path):
    server = ForkServer()
    with running_broker(BrokerConfig(topics=TOPICS)) as broker:
        yield Group(broker.bootstrap_servers[0], tmp_path, server)
    server.close()


def test_a_kill_at_every_step_changes_no_count(group):
    """Each process continues where a killed one ended, on its disk or on an older one."""
    step, names = 0, set()
    while True:
        step += 1
        group.write()
        status, steps, errors = group.run("one" if step % 3 else "two", step)
        assert status in (SIGKILLED, 0), errors
        names.update(steps)
        if status == 0:
            break
        assert len(steps) == step
    assert group.restored() == group.expected()
    assert group.written - group.outputs() == Counter(), "no output is lost"
    assert names == {
        "after read",
        "before a record",
        "before outputs",
        "before produce",
        "between two produced records",
        "after produce",
        "before the transaction of a file",
        "in the transaction of a file",
        "after the transaction of a file",
        "before commit",
        "after commit",
    }
