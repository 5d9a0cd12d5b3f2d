"""A release of this project that knows no topologies of others, and this one, in one group.

The former release is taken from the history: the last commit before native keys for topologies.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from kafka import KafkaProducer

from system_tests.broker import running_broker

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "system_tests/support/release_member.py"
# The first file of the native keys for topologies.
FIRST_FILE = "encoding/native/topology_rows.py"
PARTITIONS, LIMIT_S = 4, 240
WORDS, BOTH = ["words"], ["extra", "words"]
RECIPE = "first bounce all members to this release with the topology as it is"


def git(*arguments):
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else b""


@pytest.fixture(scope="session")
def former(tmp_path_factory):
    """The folder of the former release."""
    added = git("log", "--diff-filter=A", "--format=%H", "--", FIRST_FILE).split()
    archive = (
        git("archive", f"{added[-1].decode()}^", "assignor", "probing", "encoding")
        if added
        else b""
    )
    if not archive:
        pytest.skip("this checkout has no history; tests/encoding/native has the bytes")
    folder = tmp_path_factory.mktemp("former")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    assert not (folder / FIRST_FILE).exists()
    return folder


class Member:
    """A member process of a release; `release` is the folder that it is imported from."""

    def __init__(self, release, **config):
        self.errors, self.lines = Counter(), []
        environment = os.environ | {"PYTHONPATH": str(release)}
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(SCRIPT), json.dumps(config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            cwd=release,
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "error":
                self.errors[event["why"]] += 1
            else:
                self.lines.append(event["line"])

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(120)
        self.reader.join(120)
        self.process.stdout.close()


class Group:
    """Members of a group on a broker, and the records that they read."""

    def __init__(self, broker):
        self.broker, self.members, self.stopping = broker, {}, threading.Event()
        [self.servers] = broker.bootstrap_servers[:1]
        self.writer = threading.Thread(target=self.write, daemon=True)
        self.writer.start()

    def write(self):
        with KafkaProducer(bootstrap_servers=self.servers, linger_ms=0) as producer:
            while not self.stopping.wait(0.05):
                for topic in BOTH:
                    for partition in range(PARTITIONS):
                        producer.send(topic, value=b"x", partition=partition)

    def start(self, name, release, topics, *, version=None):
        config = {"servers": self.servers, "group": "g", "name": name}
        self.members[name] = Member(release, topics=topics, version=version, **config)
        self.settle()
        return self.members[name]

    def stop(self, name):
        self.members.pop(name).stop()
        self.settle()

    def settle(self):
        def is_settled():
            group = self.broker.groups().get("g")
            count = 0 if group is None else len(group.members)
            return count == len(self.members) and (not count or str(group.state) == "Stable")

        self.until(is_settled, "the group settles")

    def leader(self):
        group = self.broker.groups()["g"]
        return {m.member_id: m.client_id for m in group.members}[group.leader_id]

    def committed(self, topic):
        found = {
            partition: at.offset
            for (name, partition), at in self.broker.committed("g").items()
            if name == topic
        }
        return [found.get(partition, 0) for partition in range(PARTITIONS)]

    def processed(self, topic, *, partitions, records=60):
        """Wait until so many partitions go on by this number of records; return all that do."""
        before = self.committed(topic)

        def progress():
            return [now - then for now, then in zip(self.committed(topic), before, strict=True)]

        self.until(
            lambda: sum(count > records for count in progress()) >= partitions,
            f"{topic} is processed",
        )
        return sum(count > 0 for count in progress())

    def goes_on(self, *topics):
        """Wait until records of every partition of these topics are processed."""
        before = {topic: self.committed(topic) for topic in topics}
        self.until(
            lambda: all(
                now > then
                for topic in topics
                for now, then in zip(self.committed(topic), before[topic], strict=True)
            ),
            f"all partitions of {topics} are processed",
        )

    def until(self, condition, what):
        end = time.monotonic() + LIMIT_S
        while not condition():
            reported = {name: dict(m.errors) for name, m in self.members.items()}
            assert time.monotonic() < end, f"not in time: {what}; reported: {reported}"
            for name, member in self.members.items():
                assert member.process.poll() is None, f"{name} ended by itself"
            time.sleep(0.1)

    def close(self):
        self.stopping.set()
        for member in self.members.values():
            member.stop()
        self.writer.join(30)


@pytest.fixture
def group():
    with running_broker() as broker:
        for topic in BOTH:
            broker.create_topic(topic, PARTITIONS)
        running = Group(broker)
        try:
            yield running
        finally:
            running.close()


@pytest.mark.nightly(
    "8 processes of two releases, a minute; every run has both releases under either leader"
)
def test_the_failure_of_the_former_release_and_its_end(group, former):
    """Two topologies in one group: half of the partitions stop; here, after two bounces, none."""
    group.start("a", former, WORDS)
    group.goes_on("words")
    refusing = group.start("b", former, BOTH)
    group.until(lambda: sum(refusing.errors.values()) >= 2, "the new member refuses its tasks")
    assert all("same topology?" in why for why in refusing.errors)
    assert group.processed("words", partitions=2) == 2
    assert group.committed("extra") == [0] * PARTITIONS
    # The recipe: first this release with the topology as it is, then the topology.
    group.stop("b")
    group.goes_on("words")
    group.start("c", ROOT, WORDS)
    group.stop("a")
    group.start("d", ROOT, WORDS)
    group.goes_on("words")
    for old, new in (("c", "e"), ("d", "f")):
        group.stop(old)
        group.goes_on("words")
        group.start(new, ROOT, BOTH, version=2)
        group.goes_on("words", "extra")
    assert [dict(member.errors) for member in group.members.values()] == [{}, {}]


@pytest.mark.parametrize("leads", ["former", "this"])
def test_both_releases_share_a_group_under_either_leader(group, former, leads):
    releases = {"former": former, "this": ROOT}
    other = "this" if leads == "former" else "former"
    group.start(leads, releases[leads], BOTH)
    group.start(other, releases[other], BOTH)
    assert group.leader() == leads
    group.goes_on("words", "extra")
    members = group.members.values()
    group.until(
        lambda: all(m.lines and "active tasks: none" not in m.lines[-1] for m in members),
        "both have tasks",
    )
    assert [dict(member.errors) for member in group.members.values()] == [{}, {}]
    # A member with a changed topology runs nothing wrong, and says what to do.
    group.stop(other)
    if leads == "former":
        changed = group.start("changed", ROOT, BOTH[::-1], version=2)
        group.until(lambda: changed.errors, "the member reports the recipe")
        assert any(RECIPE in why for why in changed.errors)
    else:
        # One that cannot describe its topology gets no task, and all partitions go on.
        group.start("changed", former, WORDS)
        lines = group.members["changed"].lines
        group.until(lambda: lines and "active tasks: none" in lines[-1], "it has no task")
        group.goes_on("words", "extra")
