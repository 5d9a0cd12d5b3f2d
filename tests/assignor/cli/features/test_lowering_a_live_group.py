"""`assignor features downgrade-topology --group`: a live group goes back without a restart."""

import json
import threading

import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer

from assignor.adapters.admin import GroupLevels
from assignor.adapters.kafka_python import StreamsAssignor, polled
from assignor.cli import main
from assignor.examples.topologies import FIRST, SECOND
from assignor.topology import content_fingerprint
from probing.topologies import Reached
from system_tests.broker import running_broker
from tests.assignor.embedding.clusters import until

FORMS = [content_fingerprint(t.subtopologies("g")[0]) for t in (FIRST, SECOND)]
EVERYTHING = ["0_0", "0_1", "0_2", "0_3"]


class Member:
    """A consumer that polls in a thread until it is closed."""

    def __init__(self, broker, *topologies, follows=True):
        source = GroupLevels(broker.bootstrap_servers[0], "g") if follows else None
        self.assignor = StreamsAssignor(
            topologies=topologies,
            application_id="g",
            internal_topics=None,
            strategy="sticky",
            level_source=source,
            level_poll_s=0.1,
        )
        self.consumer = KafkaConsumer(
            "words",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="g",
            partition_assignment_strategy=[self.assignor],
            session_timeout_ms=60_000,
            heartbeat_interval_ms=100,
        )
        self.assignor.attach(self.consumer)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        for _ in polled(self.consumer, self.assignor, stop=self.stop):
            pass

    @property
    def tasks(self):
        return sorted(map(str, self.assignor.tasks.active))

    @property
    def memory(self):
        return dict(self.assignor._driver.member.topology.reached)

    @property
    def versions(self):
        """Of the forms that its tasks have."""
        tasks = self.assignor.tasks.active
        return {v for task in tasks for v in self.assignor.topology_versions(task.subtopology)}

    def close(self):
        self.stop.set()
        self.thread.join(120)
        self.consumer.close(autocommit=False)
        self.assignor.close()


@pytest.fixture
def broker(clock):
    with running_broker() as running:
        running.create_topic("words", 4)
        yield running


@pytest.fixture
def member(broker):
    made = []

    def start(*topologies, **options):
        made.append(Member(broker, *topologies, **options))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.fixture
def downgrade(broker):
    def run(*options, group="g", form="json", servers=broker.bootstrap_servers[0]):
        command = ["features", "downgrade-topology", "--bootstrap-server", servers]
        command += ["--timeout", "120"]
        command += ["--group", group, "--topology", "assignor.examples.topologies:FIRST"]
        return CliRunner().invoke(main, [*command, "--yes", "--format", form, *options])

    return run


def test_orphans_that_wait_for_the_new_form_return_once_the_memory_is_lowered(
    broker, member, downgrade
):
    kept = GroupLevels(broker.bootstrap_servers[0], "g")
    # Before anything is known, the command has no epoch to exceed, and says so.
    found = downgrade()
    assert (found.exit_code, "has no members, and no topic keeps" in found.stderr) == (1, True)
    new = member(SECOND)
    until(lambda: new.tasks == EVERYTHING)
    old = member(FIRST)
    until(lambda: FORMS[0] in old.memory and old.memory == new.memory)
    reached = old.memory[FORMS[1]]
    assert reached.version == 2
    # The leader has written it down.
    until(lambda: dict(kept.reached()) == old.memory)
    new.close()
    until(lambda: broker.groups()["g"].members and len(broker.groups()["g"].members) == 1)
    until(lambda: str(broker.groups()["g"].state) == "Stable")
    assert old.tasks == [], "its partitions wait for the new form"

    found = downgrade("--dry-run")
    lowered = {"version": 1, "epoch": reached.epoch + 1, "forms": 2}
    assert json.loads(found.stdout) == lowered | {"changed": False, "dry_run": True}
    assert dict(kept.reached()) == old.memory
    found = downgrade("--wait", "60")
    assert (found.exit_code, found.stderr) == (0, "")
    assert json.loads(found.stdout) == lowered | {"changed": True, "dry_run": False}
    assert old.memory == dict.fromkeys(FORMS, Reached(reached.epoch + 1, 1))
    until(lambda: old.tasks == EVERYTHING)
    found = downgrade(form="text")
    assert (found.exit_code, "nothing to lower" in found.stdout) == (0, True)
    # The topic outlives every member.
    old.close()
    until(lambda: not broker.groups()["g"].members)
    assert dict(kept.reached()) == dict.fromkeys(FORMS, Reached(reached.epoch + 1, 1))
    found = downgrade()
    assert (found.exit_code, "may remember a later epoch" in found.stderr) == (0, True)


def test_a_group_that_does_not_look_and_one_that_reached_nothing_are_named(member, downgrade):
    plain = member(FIRST)
    until(lambda: plain.tasks == EVERYTHING)
    found = downgrade()
    assert (found.exit_code, "nothing to lower" in found.stderr) == (1, True)
    member(SECOND, follows=False)
    plain.close()
    blind = member(FIRST, follows=False)
    until(lambda: FORMS[1] in blind.memory)
    found = downgrade("--wait", "1")
    assert found.exit_code == 1
    assert "2 of 2 members of group g do not know epoch" in found.stderr
    assert "level_source=GroupLevels" in found.stderr
    assert downgrade(servers="127.0.0.1:1").exit_code == 3


@pytest.mark.slow
def test_programs_with_both_versions_follow_the_level_of_topology_version(broker, member):
    def features(command, *options):
        where = ["--bootstrap-server", broker.bootstrap_servers[0], "--timeout", "120"]
        where += ["--group", "g"]
        found = CliRunner().invoke(main, ["features", command, *where, *options])
        return found.exit_code, found.stdout, found.stderr

    def described():
        body = json.loads(features("describe", "--format", "json")[1])["features"]
        return body.get("topology.version")

    level = "--feature=topology.version={}".format
    first = member(FIRST)
    until(lambda: first.versions == {1})
    assert described() is None, "no program carries another version"
    group = [member(FIRST, SECOND) for _ in range(2)]
    until(lambda: all(each.versions == {1} for each in group))
    assert described()["supported"] == {"min": 1, "max": 1}
    status, _, err = features("upgrade", level(2))
    assert (status, "is not supported by member" in err, "(1..1)" in err) == (1, True, True)
    # Held at 1 before the last program with one version goes.
    assert features("upgrade", level(1))[0] == 0
    until(lambda: all(each.assignor.levels.epoch == 1 for each in group))
    first.close()
    until(lambda: sum(len(each.tasks) for each in group) == 4)
    assert [each.versions for each in group] == [{1}, {1}]
    assert described()["supported"] == {"min": 1, "max": 2}
    assert described()["finalized"] == 1
    # All can: one rebalance each way, on an operator's word.
    for command, options, version in (
        ("upgrade", [level(2)], 2),
        ("downgrade", [level(1), "--yes"], 1),
        ("upgrade", [level(2)], 2),
    ):
        assert features(command, *options, "--dry-run")[0] == 0
        generation = broker.groups()["g"].generation
        assert features(command, *options)[0] == 0
        until(lambda wanted=version: [each.versions for each in group] == [{wanted}] * 2)
        assert broker.groups()["g"].generation == generation + 1
    assert described()["finalized_min"] is None
    status, out, _ = features("upgrade-all", "--dry-run")
    assert (status, "topology.version" in out) == (0, False)
    status, _, err = features("upgrade", level(3))
    assert (status, "topology.version level 3 is not supported by member" in err) == (1, True)
    status, _, err = features("upgrade", level("x"))
    assert (status, "give the number of version" in err) == (2, True)
    assert features("disable", "--feature=topology.version", "--yes")[0] == 0
    assert [each.versions for each in group] == [{2}, {2}]


def test_a_group_that_never_ran_two_topologies_goes_back_with_its_first_older_member(
    broker, member, downgrade
):
    new, newest = member(SECOND), member(SECOND)
    until(lambda: sorted([*new.tasks, *newest.tasks]) == EVERYTHING)
    found = downgrade("--wait", "60")
    assert (found.exit_code, "start the first of them with the older one" in found.stderr) == (1, 1)
    newest.close()
    old = member(FIRST)
    until(lambda: FORMS[1] in old.memory and new.tasks == EVERYTHING)
    assert old.tasks == []
    assert downgrade("--wait", "60").exit_code == 0
    new.close()
    until(lambda: old.tasks == EVERYTHING)
