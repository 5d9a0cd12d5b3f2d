"""`assignor inspect` on real brokers and real Kafka Streams members: it names the pin."""

import json
from contextlib import suppress
from time import monotonic, sleep

import pytest
from click.testing import CliRunner
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from assignor import read_problem
from assignor.cli import main
from probing import NEWEST_KAFKA
from system_tests.real import broker_release, running_real_broker

# No member dies here: a slow machine must not end a session, and with it the leader's.
SESSION_MS = 60_000
pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


def inspect(group, *words):
    servers = ("--bootstrap-server", group.bootstrap_servers, "--timeout", "60")
    return CliRunner().invoke(
        main, ["inspect", *servers, "--group", group.application_id, *map(str, words)]
    )


def document(group):
    done = inspect(group, "--format", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_forgotten_pin_is_named_in_a_mixed_group(word_count_on, kafka_3_9, tmp_path):
    """Two JVM members of 3.9.1, one of 2.3.1 with `upgrade.from`, one native member."""
    group = word_count_on(kafka_3_9, session_timeout_ms=SESSION_MS)
    for name, release, pin in (
        ("jvm0", "3.9.1", None),
        ("jvm1", "3.9.1", None),
        ("native", "native", None),
        ("old", "2.3.1", "1.1"),
    ):
        group.start(name, release, upgrade_from=pin, num_standby_replicas=1)
        group.settle()
    done = inspect(group)
    assert done.exit_code == 0, done.output
    output = " ".join(done.output.split())
    assert "2 instead of 11, limited by old" in output
    assert "upgrade.from is set on it, to 0.10.1, 0.10.2, 0.11.0, 1.0 or 1.1 (2.0.0 to" in output
    found = document(group)
    wrote = {
        client["client"]: (client["members"][0]["used"], client["members"][0]["supported"])
        for client in found["clients"]
    }
    assert wrote == {"jvm0": (11, 11), "jvm1": (11, 11), "old": (2, -1), "native": (11, 11)}
    assert found["leader"]["candidates"] == ["jvm0", "jvm1"]
    assert found["record"]["limit_known"]
    assert found["host_map_holes"] == []
    # What it says of tasks is what the members themselves say.
    for client in found["clients"]:
        member = group.members[client["client"]]
        assert tuple(client["active"]) == member.active
        assert tuple(client["standby"]) == member.standby
    _check_the_saved_file(group, found, tmp_path / "group.json")
    assert group.failures() == {}


def _check_the_saved_file(group, found, file):
    done = inspect(group, "--save", file, "--dies", "jvm1")
    assert done.exit_code == 0, done.output
    state = read_problem(json.loads(file.read_text(encoding="utf-8"))).state
    assert sorted(state.clients) == sorted(client["process_id"] for client in found["clients"])
    taken = CliRunner().invoke(main, ["assign", "--problem", str(file), "--simulate"])
    assert taken.exit_code == 0, taken.output


@pytest.mark.nightly("25 s; every run names the pin that limits a mixed group")
def test_an_old_program_is_named_and_the_leader_found(word_count_on, kafka_3_9):
    group = word_count_on(kafka_3_9, session_timeout_ms=SESSION_MS)
    group.start("native", "native")
    group.settle()
    group.start("old", "2.3.1")
    group.start("jvm", "3.9.1", upgrade_from="2.3")
    group.settle()
    found = document(group)
    assert found["version"]["in_force"] == 4
    (held,) = found["version"]["held_by"]
    assert (held["client"], held["kind"]) == ("old", "old program")
    assert "2.1.0 to 2.3.1" in held["why"]
    assert found["leader"] == {
        "known": True,
        "candidates": ["native"],
        "why": "assignments have native content, which only native leaders write",
    }
    group.stop("old")
    group.settle()
    assert [client["client"] for client in document(group)["clients"]] == ["jvm", "native"]
    assert group.failures() == {}


def test_a_group_of_the_newest_release_on_the_newest_broker(word_count_on, kafka_4):
    group = word_count_on(kafka_4, session_timeout_ms=SESSION_MS)
    for name in ("a", "b"):
        group.start(name, NEWEST_KAFKA, num_standby_replicas=1)
    group.settle()
    found = document(group)
    assert [client["members"][0]["releases"][-1] for client in found["clients"]] == [
        NEWEST_KAFKA,
        NEWEST_KAFKA,
    ]
    assert found["version"]["held_by"] == []
    # Its first offsets may not be committed yet.
    assert {finding["kind"] for finding in found["findings"]} <= {"uncommitted"}
    assert sorted(task for client in found["clients"] for task in client["active"]) == [
        f"{s}_{p}" for s in range(2) for p in range(4)
    ]
    broker_side = word_count_on(kafka_4, session_timeout_ms=SESSION_MS)
    member = broker_side.start("c", NEWEST_KAFKA, settings={"group.protocol": "streams"})
    member.wait_for("all tasks", lambda: len(member.active) == 8)
    assert document(broker_side)["type"] == "streams"
    assert document(broker_side)["members"] == 1
    unknown = CliRunner().invoke(
        main, ["inspect", "--bootstrap-server", group.bootstrap_servers, "--group", "nobody"]
    )
    assert unknown.exit_code == 1
    assert "is not known to the cluster" in unknown.stderr
    everything = CliRunner().invoke(
        main, ["inspect", "--bootstrap-server", group.bootstrap_servers, "--all"]
    )
    assert group.application_id in everything.output


@pytest.mark.nightly(
    "a broker of its own, 20 s; streams_groups/test_inspect.py has users in every run"
)
def test_users_see_permitted_groups_and_the_missing_rights(tmp_path):
    """SASL/PLAIN with the standard authorizer; the group is made on the open listener."""
    words = {"admin": "admin-word", "bob": "bob-word"}
    seen = {}
    with running_real_broker(broker_release("kafka:3.9"), users=words) as broker:
        commit_an_offset(broker.bootstrap_servers, "g")
        for user, word in (*words.items(), ("eve", "guess")):
            file = tmp_path / f"{user}.properties"
            file.write_text(
                "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
                "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule "
                f'required \\\n  username="{user}" password="{word}";\n',
                encoding="utf-8",
            )
            servers = ("--bootstrap-server", broker.sasl_servers, "--timeout", "60")
            options = (*servers, "--command-config", str(file))
            seen[user] = CliRunner().invoke(main, ["inspect", *options, "--group", "g"])
    assert seen["admin"].exit_code == 0, seen["admin"].output
    assert seen["admin"].output == "group g has no members now; its state is Empty\n"
    assert seen["bob"].exit_code == seen["eve"].exit_code == 1
    assert seen["bob"].stderr == (
        "assignor: not authorized to describe group g (GROUP_AUTHORIZATION_FAILED); "
        "ask for the permission.\n"
    )
    eve = seen["eve"].stderr
    assert eve.startswith(f"assignor: every broker rejects the login: {broker.sasl_servers}: ")
    assert eve.endswith("; check sasl.jaas.config.\n")
    assert "guess" not in eve


def commit_an_offset(servers, group):
    """A group that exists, but never had a member."""
    admin = KafkaAdminClient(bootstrap_servers=servers)

    def is_committed():
        # The topic, and the one that offsets are kept in, come up in a while.
        with suppress(KafkaError):
            admin.alter_group_offsets(group, {TopicPartition("t", 0): OffsetAndMetadata(0, "", -1)})
            return True
        return False

    try:
        admin.create_topics([NewTopic("t", 1, 1)])
        deadline = monotonic() + 240
        while not is_committed():
            assert monotonic() < deadline
            sleep(0.2)
    finally:
        admin.close()
