"""Feature levels of real Kafka clusters: `assignor features`, Kafka's tool, and permissions."""

import json
import time
from contextlib import ExitStack
from uuid import uuid4

import pytest
from click.testing import CliRunner
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from assignor.cli import main
from system_tests.real import RealBroker, broker_release, running_real_broker
from system_tests.support.jvm import FeatureTool

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

METADATA = "metadata.version"
REFUSED = "INVALID_UPDATE_VERSION"
LIMIT_S = 240

# Command and options that both tools take; then what is only of `assignor`: options, exit status,
# output.
STEPS_3_9 = (
    ("upgrade", ("--metadata", "3.8-IV0", "--dry-run"), (), 0, "can be upgraded from 19 (3.7-IV4)"),
    ("upgrade", ("--metadata", "3.8-IV0"), (), 0, "was upgraded from 19 (3.7-IV4) to 20 (3.8-IV0)"),
    ("upgrade", ("--feature", f"{METADATA}=21"), (), 0, "to 21 (3.9-IV0)"),
    ("upgrade", ("--feature", f"{METADATA}=40"), (), 1, REFUSED),
    ("downgrade", ("--metadata", "3.8-IV0", "--dry-run"), (), 0, "can be downgraded"),
    ("downgrade", ("--metadata", "3.8-IV0"), ("--yes",), 0, "to 20 (3.8-IV0)"),
    ("downgrade", ("--metadata", "3.7-IV1"), ("--yes",), 1, "below 17 (3.7-IV2) loses"),
    ("downgrade", ("--metadata", "3.7-IV1", "--unsafe"), ("--yes",), 1, "not supported"),
    ("downgrade", ("--metadata", "3.7-IV2", "--unsafe"), ("--yes",), 0, "to 17 (3.7-IV2)"),
    ("disable", ("--feature", METADATA), ("--yes",), 1, REFUSED),
)
STEPS_4 = (
    ("upgrade", ("--feature", f"{METADATA}=28", "--dry-run"), (), 0, "can be upgraded"),
    ("upgrade", ("--feature", f"{METADATA}=28"), (), 0, "to 28 (4.2-IV0)"),
    ("upgrade", ("--feature", f"{METADATA}=29"), (), 0, "to 29 (4.2-IV1)"),
    ("upgrade", ("--feature", "share.version=1", "--feature", "streams.version=9"), (), 1, REFUSED),
    ("upgrade", ("--feature", "share.version=1", "--feature", "streams.version=1"), (), 0, "to 1"),
    ("downgrade", ("--feature", f"{METADATA}=25", "--dry-run"), (), 0, "can be downgraded"),
    ("downgrade", ("--feature", f"{METADATA}=27"), ("--yes",), 0, "to 27 (4.1-IV1)"),
    ("downgrade", ("--feature", f"{METADATA}=22"), ("--yes",), 1, "below 23 (4.0-IV1) loses"),
    ("downgrade", ("--feature", f"{METADATA}=22", "--unsafe"), ("--yes",), 1, "not supported"),
    ("disable", ("--feature", "share.version"), ("--yes",), 0, "was disabled; it was at 1"),
    ("disable", ("--feature", "nonsense.version"), ("--yes",), 1, REFUSED),
    ("downgrade", ("--feature", "transaction.version=1"), ("--yes",), 0, "from 2 to 1"),
)


def features(command, *options, servers):
    """Run `assignor features`; return status, stdout and stderr."""
    found = CliRunner().invoke(
        main, ["features", command, "--bootstrap-server", servers, "--timeout", "60", *options]
    )
    if found.exception and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.exit_code, found.stdout, found.stderr


def levels(servers, *options):
    """Finalized levels and supported ranges, in the output of `describe`."""
    status, out, err = features("describe", "--format", "json", *options, servers=servers)
    assert (status, err) == (0, "")
    return json.loads(out)


def finalized(servers):
    shown = levels(servers)["features"]
    return {name: row["finalized"] for name, row in shown.items() if row["finalized"]}


def of_kafka(output):
    """Finalized levels in the output of Kafka's tool; 0 means none."""
    rows = [dict(part.split(": ") for part in _parts(line)) for line in output.splitlines()]
    return {row["Feature"]: row["FinalizedVersionLevel"] for row in rows}


def ranges_of_kafka(output):
    """Supported ranges in the output of Kafka's tool, of features whose levels are numbers."""
    rows = [dict(part.split(": ") for part in _parts(line)) for line in output.splitlines()]
    return {
        row["Feature"]: (int(row["SupportedMinVersion"]), int(row["SupportedMaxVersion"]))
        for row in rows
        if row["SupportedMinVersion"].isdigit()
    }


def epoch_of_kafka(output):
    """The one epoch of the finalized levels in the output of Kafka's tool."""
    rows = [dict(part.split(": ") for part in _parts(line)) for line in output.splitlines()]
    [epoch] = {int(row["Epoch"]) for row in rows}
    return epoch


def _parts(line):
    words = line.split()
    return [f"{name} {value}" for name, value in zip(words[::2], words[1::2], strict=True)]


@pytest.mark.kip("778-12", "real")
@pytest.mark.kip("778-2", "real")
@pytest.mark.kip("778-3", "real")
@pytest.mark.kip("584-9", "real")
@pytest.mark.nightly("two brokers, 12 s of processor time", but=("kafka:4-4.1-steps1",))
@pytest.mark.parametrize(
    ("name", "level_release", "steps"),
    [("kafka:3.9", "3.7", STEPS_3_9), ("kafka:4", "4.1", STEPS_4)],
)
def test_the_same_steps_end_as_with_kafkas_own_tool(name, level_release, steps):
    release = broker_release(name)
    with ExitStack() as stack:
        tool = stack.enter_context(FeatureTool(release))
        own, peer = (
            stack.enter_context(running_real_broker(release, level_release=level_release))
            for _ in range(2)
        )
        assert finalized(own.bootstrap_servers) == finalized(peer.bootstrap_servers)
        for command, options, added, status, sentence in steps:
            before = finalized(own.bootstrap_servers)
            kafka = tool.run("--bootstrap-server", peer.bootstrap_servers, command, *options)
            found, out, err = features(command, *options, *added, servers=own.bootstrap_servers)
            assert (found, kafka.status) == (status, status), (command, options, out, err, kafka)
            assert sentence in (err if status else out), (command, options)
            # A broker learns a level a moment after its controller.
            until(lambda: finalized(own.bootstrap_servers) == finalized(peer.bootstrap_servers))
            now = finalized(own.bootstrap_servers)
            if status or "--dry-run" in options:
                assert now == before
            else:
                assert now != before
        output = tool.run("--bootstrap-server", own.bootstrap_servers, "describe")
        shown = levels(own.bootstrap_servers)["features"]
        assert {name: row["finalized_name"] or "0" for name, row in shown.items()} == of_kafka(
            output.out
        )


@pytest.mark.kip("584-9", "real")
def test_all_features_go_down_and_up_with_a_release_as_with_kafkas_own_tool():
    release = broker_release("kafka:4")
    with ExitStack() as stack:
        tool = stack.enter_context(FeatureTool(release))
        own, peer = (
            stack.enter_context(running_real_broker(release, level_release="4.2")) for _ in range(2)
        )
        # Without kraft.version at 1 Kafka's tool lowers nothing at all.
        raised = ("--bootstrap-server", peer.bootstrap_servers, "upgrade", "--release-version")
        assert tool.run(*raised, "4.2").status == 0
        for kafkas, to, yes in (("downgrade", "4.1", ("--yes",)), ("upgrade", "4.2", ())):
            before = finalized(own.bootstrap_servers)
            kafka = tool.run(
                *("--bootstrap-server", peer.bootstrap_servers),
                *(kafkas, "--release-version", to),
            )
            options = ("--release-version", to)
            if yes:  # no terminal to confirm on
                refused = features(f"{kafkas}-all", *options, servers=own.bootstrap_servers)
                assert refused[0] == 2
                assert finalized(own.bootstrap_servers) == before
            dry = features(f"{kafkas}-all", *options, "--dry-run", servers=own.bootstrap_servers)
            assert dry[0] == 0
            assert finalized(own.bootstrap_servers) == before
            status, _, err = features(
                f"{kafkas}-all", *options, *yes, servers=own.bootstrap_servers
            )
            assert (status, err, kafka.status) == (0, "", 0), kafka
            until(lambda: reversible_levels(own) == reversible_levels(peer))
            assert finalized(own.bootstrap_servers) != before


def reversible_levels(broker):
    """Levels that `upgrade-all` and `downgrade-all` change; Kafka's tool raises more."""
    levels = finalized(broker.bootstrap_servers)
    levels.pop("kraft.version", None)
    return levels


@pytest.mark.kip("584-8", "real")
@pytest.mark.nightly("10 s; every run has the newest broker", but=("kafka_4",))
@pytest.mark.parametrize("cluster", ["kafka_3_9", "kafka_4"])
def test_describe_shows_ranges_levels_and_epoch_of_a_broker_and_of_the_controller(cluster, request):
    broker = request.getfixturevalue(cluster)
    servers = broker.bootstrap_servers
    shown = levels(servers)
    asked = levels(servers, "--from-controller")
    assert shown["source"] == f"broker 1 at {servers}"
    assert asked["source"].startswith("controller 1 at 127.0.0.1:")
    assert asked["source"] != shown["source"]
    assert asked["features"] == shown["features"]
    assert shown["epoch"] >= 0
    row = shown["features"][METADATA]
    assert row["supported"]["min"] <= row["finalized"] <= row["supported"]["max"]
    status, out, _ = features("describe", servers=servers)
    assert status == 0
    assert f"{row['finalized']} ({row['finalized_name']})" in out
    with FeatureTool(broker.release) as tool:
        output = tool.run("--bootstrap-server", servers, "describe")
    names = {name: row["finalized_name"] or "0" for name, row in shown["features"].items()}
    assert of_kafka(output.out) == names
    assert ranges_of_kafka(output.out) == {
        name: (row["supported"]["min"], row["supported"]["max"])
        for name, row in shown["features"].items()
        if name != METADATA  # of which Kafka's tool tells names
    }
    # It is an offset of the metadata log, which grows while nothing is changed, too.
    assert shown["epoch"] <= epoch_of_kafka(output.out) <= levels(servers)["epoch"]


@pytest.mark.kip("584-8", "real")
def test_each_broker_of_a_cluster_reports_its_own_range_and_the_level_that_all_have():
    release = broker_release("kafka:4")
    with (
        running_real_broker(release, level_release="4.1") as first,
        running_real_broker(release, beside=first) as second,
    ):
        for servers in (first.bootstrap_servers, second.bootstrap_servers):
            for node, where in ((1, first), (2, second)):
                shown = levels(servers, "--node-id", str(node))
                assert shown["source"] == f"broker {node} at {where.bootstrap_servers}"
        before = levels(second.bootstrap_servers, "--node-id", "2")
        status, _, err = features("upgrade", "--metadata", "28", servers=second.bootstrap_servers)
        assert (status, err) == (0, "")
        for node in ("1", "2"):
            until(
                lambda node=node: (
                    levels(first.bootstrap_servers, "--node-id", node)["features"][METADATA][
                        "finalized"
                    ]
                    == 28
                )
            )
        after = levels(first.bootstrap_servers, "--node-id", "2")
        assert after["epoch"] > before["epoch"] >= 0
        assert after["features"][METADATA]["supported"] == before["features"][METADATA]["supported"]
        status, _, err = features("describe", "--node-id", "9", servers=second.bootstrap_servers)
        assert (status, "has no broker 9 now; it has 1, 2" in err) == (3, True)


@pytest.mark.kip("584-5", "real")
@pytest.mark.nightly(
    "a broker of its own, 20 s; every run has the newest broker", but=("kafka:4-4.2",)
)
@pytest.mark.parametrize(("name", "level_release"), [("kafka:3.9", "3.8"), ("kafka:4", "4.2")])
def test_a_user_without_the_right_gets_an_error_and_nothing_is_changed(
    tmp_path, name, level_release
):
    users = {"admin": "secret", "bob": "word"}
    config = {user: tmp_path / user for user in users}
    for user, word in users.items():
        config[user].write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{user}" password="{word}";\n',
            encoding="utf-8",
        )
    release = broker_release(name)
    with running_real_broker(release, level_release=level_release, users=users) as broker:
        before = finalized(broker.bootstrap_servers)
        top = str(levels(broker.bootstrap_servers)["features"][METADATA]["supported"]["max"])
        for command, options in (
            ("upgrade", ("--metadata", top)),
            ("upgrade", ("--metadata", top, "--dry-run")),
            ("upgrade-all", ()),
            ("downgrade", ("--metadata", str(before[METADATA] - 1), "--yes")),
            ("disable", ("--feature", METADATA, "--yes")),
        ):
            options = (*options, "--command-config", str(config["bob"]))  # noqa: PLW2901 the same with a user
            status, out, err = features(command, *options, servers=broker.sasl_servers)
            assert (status, out) == (1, ""), (command, err)
            assert err.count("\n") == 1
            assert "CLUSTER_AUTHORIZATION_FAILED" in err
            assert finalized(broker.bootstrap_servers) == before
        invalid = features(
            *("upgrade", "--feature", f"{METADATA}=99", "--command-config", str(config["admin"])),
            servers=broker.sasl_servers,
        )
        assert (invalid[0], REFUSED in invalid[2]) == (1, True)
        assert finalized(broker.bootstrap_servers) == before
        status, out, _ = features(
            *("upgrade", "--metadata", top, "--command-config", str(config["admin"])),
            servers=broker.sasl_servers,
        )
        assert (status, "was upgraded" in out) == (0, True)


# What nodes say to each other from a level on, and never before it; the line of the log that tells.
NEW_REQUESTS = {
    15: "attempting to send ControllerRegistrationRequestData",
    17: "MV supports JBOD. Resending broker registration",
}


@pytest.mark.kip("778-11", "real")
def test_after_one_bounce_levels_go_up_online_and_nodes_use_new_requests_at_once():
    broker = RealBroker(broker_release("kafka:3.9"), level_release="3.6")
    try:
        broker.start()
        broker.stop()
        broker.become(broker_release("kafka:4"))
        broker.start()
        pid, servers = broker.pid, broker.bootstrap_servers
        assert finalized(servers) == {METADATA: 14}
        for level in (15, 16, 17, 20, 21, 25, 30):
            new = NEW_REQUESTS.get(level)
            assert new is None or not broker.has_logged(new)
            status, out, err = features("upgrade", "--metadata", str(level), servers=servers)
            assert (status, err) == (0, ""), out
            until(lambda level=level: finalized(servers)[METADATA] == level)
            if new is not None:
                until(lambda new=new: broker.has_logged(new))
        status, out, _ = features("upgrade-all", servers=servers)
        assert status == 0
        assert "streams.version was upgraded to 1" in out
        assert (broker.pid, broker.is_running) == (pid, True)
    finally:
        broker.close()


def until(holds):
    """Wait until a condition holds, long enough for a slow machine."""
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, f"not in {LIMIT_S} s"
        time.sleep(0.1)


def test_levels_of_a_group_live_on_a_real_broker(kafka_4):
    group = f"leveled-{uuid4().hex[:8]}"  # levels outlive a test that failed half-way
    servers, where = kafka_4.bootstrap_servers, ("--group", group)
    protocol = "assignment.protocol"
    status, out, err = features("upgrade", *where, "--feature", f"{protocol}=11", servers=servers)
    assert (status, out) == (0, f"{protocol} was upgraded to 11 (v11)\n")
    assert err == f"warning: group {group} has no members; what they support is not known\n"
    for level, command, more in ((101, "upgrade", ()), (11, "downgrade", ("--yes",))):
        status, out, _ = features(
            command, *where, "--feature", f"{protocol}={level}", *more, servers=servers
        )
        assert (status, f"to {level} (v{level})" in out) == (0, True)
    status, out, _ = features("describe", *where, "--format", "json", servers=servers)
    body = json.loads(out)
    assert (body["epoch"], body["features"][protocol]["finalized"]) == (3, 11)
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        resource = ConfigResource(ConfigResourceType.TOPIC, f"{group}-feature-levels")
        [found] = admin.describe_configs([resource]).values()
    finally:
        admin.close()
    assert "compact" in str(found)
