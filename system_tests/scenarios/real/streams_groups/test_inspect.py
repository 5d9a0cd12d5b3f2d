"""`assignor inspect` of real streams groups, beside Kafka's own `kafka-streams-groups.sh`."""

import json

import pytest
from click.testing import CliRunner
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewTopic,
    ResourcePattern,
    ResourceType,
)

from assignor.cli import main
from probing import NEWEST_KAFKA
from system_tests.real import running_real_broker
from system_tests.scenarios.real.streams_groups.tables import (
    as_tool_members,
    as_tool_offsets,
    as_tool_state,
    by_key,
    rows,
)
from system_tests.support import RealGroup
from system_tests.support.jvm import StreamsGroupsTool
from system_tests.support.word_count import words_topic

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
WORDS = {"admin": "admin-word", "bob": "bob-word", "eve": "eve-word"}


@pytest.fixture(scope="module")
def broker():
    with running_real_broker(NEWEST_KAFKA, users=WORDS) as running:
        yield running


@pytest.fixture(scope="module")
def tool(broker):
    with StreamsGroupsTool(broker.release) as found:
        yield found


def inspect(servers, group_id, *words):
    options = ("--bootstrap-server", servers, "--timeout", "60")
    return CliRunner().invoke(main, ["inspect", *options, "--group", group_id, *map(str, words)])


def document(servers, group_id):
    done = inspect(servers, group_id, "--format", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def compare(tool, servers, group_id):
    """Compare every field of state, members and offsets with Kafka's tool; return the document."""
    found = document(servers, group_id)
    assert rows(tool, servers, group_id, "--state", "--verbose") == [as_tool_state(found)]
    members = rows(tool, servers, group_id, "--members", "--verbose")
    assert by_key(members, "MEMBER") == by_key(as_tool_members(found), "MEMBER")
    offsets = rows(tool, servers, group_id, "--offsets", "--verbose")
    keys = ("TOPIC", "PARTITION")
    assert by_key(offsets, *keys) == by_key(as_tool_offsets(found), *keys)
    return found


def test_every_field_equals_kafkas_tool_while_the_group_grows(broker, tool, tmp_path):
    servers = broker.bootstrap_servers
    with RealGroup(servers, tmp_path) as group:
        set_group(servers, group.application_id, {"streams.num.standby.replicas": "1"})
        streams = {"group.protocol": "streams"}
        first = group.start("a", NEWEST_KAFKA, settings=streams)
        first.wait_for("all tasks", lambda: len(first.active) == 8)
        second = group.start("b", NEWEST_KAFKA, settings=streams)
        second.wait_for("half of the tasks", lambda: len(first.active) == len(second.active) == 4)
        written, counted = group.finish()
        assert counted == written
        group_id = group.application_id

        def is_at_rest():
            """All records are committed, and no task moves: both tools read the same."""
            found = document(servers, group_id)
            return as_tool_state(found)["STATE"] == "Stable" and all(
                row["lag"] == 0 and row["current_offset"]
                for row in found["streams_group"]["offsets"]
            )

        group.wait("no lag in a stable group", is_at_rest)
        found = compare(tool, servers, group_id)
        assert found["findings"] == []
        assert len(found["streams_group"]["offsets"]) == 8
        for member in found["streams_group"]["members"]:
            assert tuple(member["current"]["active"]) == group.members[member["client"]].active
            assert tuple(member["current"]["standby"]) == group.members[member["client"]].standby
        # The broker's assignor may give one member all four stateful tasks, the other their copies.
        copies = [t for m in found["streams_group"]["members"] for t in m["current"]["standby"]]
        assert sorted(copies) == ["1_0", "1_1", "1_2", "1_3"]
        parts = found["streams_group"]["subtopologies"]
        assert [row["topic"] for row in parts["1"]["changelogs"]] == [
            f"{group_id}-counts-changelog"
        ]
        text = inspect(servers, group_id, "--tasks").output
        assert "no task moves: every member has its target assignment" in text
        let_eve_describe(broker, group_id)
        for user, what, name, error in (
            ("bob", f"group {group_id}", "GROUP", "GroupAuthorizationException"),
            ("eve", f"streams group {group_id} and its topics", "TOPIC", "TopicAuthorizationExc"),
        ):
            file = tmp_path / f"{user}.properties"
            ours, kafkas = refusals(tool, broker.sasl_servers, user, file, group_id)
            assert f"not authorized to describe {what} ({name}_AUTHORIZATION_FAILED)" in ours
            assert error in kafkas
        group.stop("a")
        group.stop("b")
    empty = document(servers, group_id)
    assert (empty["state"], empty["members"]) == ("Empty", 0)
    assert rows(tool, servers, group_id, "--state", "--verbose") == [as_tool_state(empty)]


def start_on_disk(group, name, **settings):
    """Start a member of a streams group that has its state, and so its process id, on disk."""
    streams = {"group.protocol": "streams", **settings}
    return group.start(name, NEWEST_KAFKA, on_disk=True, settings=streams)


def start_both(group, **settings):
    """Start two members; return them when each has half of the tasks."""
    members = [start_on_disk(group, "a", **settings.get("a", {}))]
    group.wait("all tasks", lambda: len(members[0].active) == 8)
    members.append(start_on_disk(group, "b", **settings.get("b", {})))
    group.wait("half of the tasks", lambda: [len(member.active) for member in members] == [4, 4])
    return members


def by_client(found):
    return {member["client"]: member for member in found["streams_group"]["members"]}


def test_a_static_member_keeps_its_tasks_while_it_is_stopped(broker, tool, tmp_path):
    """`group.instance.id` in a streams group, which brokers accept from 4.4.0 on."""
    servers = broker.bootstrap_servers
    with RealGroup(servers, tmp_path) as group:
        static = {name: {"group.instance.id": f"static-{name}"} for name in ("a", "b")}
        start_both(group, **static)
        written, counted = group.finish()
        assert counted == written
        group_id = group.application_id
        group.wait("a stable group", lambda: document(servers, group_id)["state"] == "Stable")
        before = compare(tool, servers, group_id)
        names = {member["instance_id"] for member in before["streams_group"]["members"]}
        assert names == {"static-a-1", "static-b-1"}  # one for each thread
        group.stop("a")
        stopped = compare(tool, servers, group_id)
        assert stopped["members"] == 2
        targets = [{n: m["target"] for n, m in by_client(f).items()} for f in (before, stopped)]
        assert targets[0] == targets[1]
        again = start_on_disk(group, "a", **static["a"])
        held = by_client(before)["a"]["current"]["active"]
        again.wait_for("its former tasks", lambda: list(again.active) == held)
        group.wait("a stable group", lambda: document(servers, group_id)["state"] == "Stable")
        back = compare(tool, servers, group_id)
        assert by_client(back)["a"]["member_id"] != by_client(before)["a"]["member_id"]
        for name in ("group_epoch", "target_assignment_epoch"):
            assert back["streams_group"][name] == before["streams_group"][name]


def test_a_cold_start_places_tasks_where_their_state_is_on_disk(broker, tool, tmp_path):
    """Members report the offsets of their state (KAFKA-20719), which `inspect` shows."""
    servers = broker.bootstrap_servers
    with RealGroup(servers, tmp_path) as group:
        group_id = group.application_id
        ran = {member.name: member.active for member in start_both(group)}
        written, counted = group.finish()
        assert counted == written
        for name in ("a", "b"):
            group.stop(name)
        assert document(servers, group_id)["state"] == "Empty"
        # Long enough for both members to join before the first assignment.
        set_group(servers, group_id, {"streams.initial.rebalance.delay.ms": "15000"})
        members = [start_on_disk(group, name) for name in ("b", "a")]
        reported = {}

        def have_reported():
            for name, member in by_client(document(servers, group_id)).items():
                reported.update({name: member["task_offsets"]} if member["task_offsets"] else {})
            return len(reported) == 2

        group.wait("offsets of both members", have_reported)
        members_now = rows(tool, servers, group_id, "--members", "--verbose")
        assert len(members_now) == 2
        group.wait("half of the tasks", lambda: {len(m.active) for m in members} == {4})
        counts = [task for tasks in ran.values() for task in tasks if task.startswith("1_")]
        for member in members:
            stateful = {task for task in ran[member.name] if task.startswith("1_")}
            assert stateful <= set(reported[member.name])
            assert {task for task in member.active if task in counts} == stateful
        group.wait("a stable group", lambda: document(servers, group_id)["state"] == "Stable")
        compare(tool, servers, group_id)


def set_group(servers, group_id, settings):
    """Set settings of a group on the broker, as its number of standbys."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, group_id, settings)])
    finally:
        admin.close()


def let_eve_describe(broker, group_id):
    """Eve may describe the group and not its topics; Bob has no permission."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    try:
        admin.create_acls(
            [
                ACL(
                    principal="User:eve",
                    host="*",
                    operation=ACLOperation.DESCRIBE,
                    permission_type=ACLPermissionType.ALLOW,
                    resource_pattern=ResourcePattern(
                        ResourceType.GROUP, group_id, ACLResourcePatternType.LITERAL
                    ),
                )
            ]
        )
    finally:
        admin.close()


def refusals(tool, servers, user, file, group_id):
    """Stderr of `inspect` and output of Kafka's tool, which both refuse."""
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule "
        f'required \\\n  username="{user}" password="{WORDS[user]}";\n',
        encoding="utf-8",
    )
    done = inspect(servers, group_id, "--command-config", file)
    assert (done.exit_code, done.stdout) == (1, "")
    refused = tool.run(
        *("--bootstrap-server", servers, "--command-config", str(file)),
        *("--describe", "--group", group_id, "--state"),
    )
    assert refused.status == 1
    return done.stderr, refused.out


@pytest.mark.nightly("30 s; every run compares a group that runs, grows and is empty")
def test_a_group_without_its_source_topic_says_what_it_waits_for(broker, tool, tmp_path):
    servers = broker.bootstrap_servers
    with RealGroup(servers, tmp_path) as group:
        admin = KafkaAdminClient(bootstrap_servers=servers)
        try:
            admin.delete_topics([words_topic(group.application_id)])
            # Without endpoint: a broker up to 4.4 fails if a member has one and no topic is there.
            member = group.start(
                "a", NEWEST_KAFKA, has_endpoint=False, settings={"group.protocol": "streams"}
            )
            group.wait("the group", lambda: inspect(servers, group.application_id).exit_code == 0)
            found = document(servers, group.application_id)
            assert found["state"] == "NotReady"
            [finding] = found["findings"]
            assert finding["kind"] == "not-ready"
            assert f"source topic {words_topic(group.application_id)} of" in finding["sentence"]
            state = rows(tool, servers, group.application_id, "--state")
            assert [row["STATE"] for row in state] == ["NotReady"]
            admin.create_topics([NewTopic(words_topic(group.application_id), 4, 1)])
        finally:
            admin.close()
        member.wait_for("all tasks", lambda: len(member.active) == 8)
        assert document(servers, group.application_id)["state"] == "Stable"
