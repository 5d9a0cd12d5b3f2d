"""`assignor inspect` of real streams groups, beside Kafka's own `kafka-streams-groups.sh`."""

import json
import re

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


def rows(tool, servers, group_id, *words):
    """The table that Kafka's tool prints, as one dict per row."""
    done = tool.run("--bootstrap-server", servers, "--describe", "--group", group_id, *words)
    assert done.status == 0, done.out
    # Of an empty group the tool says first that it has no active members.
    printed = [line for line in done.out.splitlines() if line.strip()]
    header, *lines = [line for line in printed if not line.startswith("Error: Streams group")]
    starts = [found.start() for found in re.finditer(r"(?:\S+ \(ID\)|\S+)", header)]
    names = [found[0] for found in re.finditer(r"(?:\S+ \(ID\)|\S+)", header)]
    ends = [*starts[1:], None]
    return [
        {
            name: line[start:end].strip()
            for name, start, end in zip(names, starts, ends, strict=True)
        }
        for line in lines
    ]


def assignments(current, target):
    """Tasks as Kafka's tool spells them: `ACTIVE: 0:[0,2]; 1:[0,2]; TARGET-ACTIVE: ...`."""
    text = ""
    for prefix, roles in (("", current), ("TARGET-", target)):
        for role in ("active", "standby", "warmup"):
            by_part = {}
            for task in roles[role]:
                part, _, number = task.rpartition("_")
                by_part.setdefault(part, []).append(number)
            if by_part:
                listed = " ".join(f"{part}:[{','.join(n)}];" for part, n in by_part.items())
                text += f"{prefix}{role.upper()}: {listed} "
    return text.strip()


def as_tool_state(found):
    group = found["streams_group"]
    return {
        "GROUP": found["group"],
        "COORDINATOR (ID)": group["coordinator"],
        "ASSIGNOR": group["assignor"],
        "STATE": found["state"],
        "GROUP-EPOCH": str(group["group_epoch"]),
        "TARGET-ASSIGNMENT-EPOCH": str(group["target_assignment_epoch"]),
        "#MEMBERS": str(found["members"]),
    }


def as_tool_members(found):
    group = found["streams_group"]
    return [
        {
            "GROUP": found["group"],
            "TARGET-ASSIGNMENT-EPOCH": str(group["target_assignment_epoch"]),
            "TOPOLOGY-EPOCH": str(group["topology_epoch"]),
            "MEMBER": member["member_id"],
            "MEMBER-PROTOCOL": member["protocol"],
            "MEMBER-EPOCH": str(member["member_epoch"]),
            "PROCESS": member["process_id"],
            "CLIENT-ID": member["client_id"],
            "ASSIGNMENTS": assignments(member["current"], member["target"]),
        }
        for member in group["members"]
    ]


def as_tool_offsets(found):
    def spelled(value):
        return "-" if value is None else str(value)

    return [
        {
            "GROUP": found["group"],
            "TOPIC": row["topic"],
            "PARTITION": str(row["partition"]),
            "CURRENT-OFFSET": spelled(row["current_offset"]),
            "LEADER-EPOCH": spelled(row["leader_epoch"]),
            "LOG-END-OFFSET": str(row["log_end_offset"]),
            "OFFSET-LAG": str(row["lag"]),
        }
        for row in found["streams_group"]["offsets"]
    ]


def by_key(table, *names):
    return sorted(table, key=lambda row: [row[name] for name in names])


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
        set_standbys(servers, group.application_id)
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


def set_standbys(servers, group_id):
    """In a streams group, the number of standbys is a setting of the group on the broker."""
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        settings = {"streams.num.standby.replicas": "1"}
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
