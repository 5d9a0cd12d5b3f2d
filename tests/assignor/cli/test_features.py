"""`assignor features` on an embedded cluster, on a group of it, and on a folder."""

import json

import msgpack
import pytest
from click.testing import CliRunner
from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.admin.client import Target, open_admin
from assignor.adapters.admin.compacted_topic import CompactedTopic
from assignor.adapters.admin.level_sources import GroupLevels
from assignor.adapters.admin.level_topic import FeatureTopic
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.cli import main
from assignor.inspection import DescribedGroup
from assignor.levels.log import Note
from assignor.stores import StoreError
from probing.features import KAFKA_FEATURES, KAFKA_RELEASES, LevelRange, NodeSupport, Role
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.embedding.clusters import until

pytestmark = pytest.mark.timeout(600)

METADATA = "metadata.version"
NEWEST = KAFKA_RELEASES[-1].metadata[1]
NAME = KAFKA_FEATURES.named(METADATA).find(NEWEST).name
PROTOCOL = "assignment.protocol"


@pytest.fixture
def broker(clock):
    with running_broker(BrokerConfig(nodes=2, metadata_version=22)) as running:
        yield running


@pytest.fixture
def features(broker):
    """Run a subcommand against the broker; return status, stdout, stderr."""

    cluster = ("--bootstrap-server", broker.bootstrap_servers[0], "--timeout", "120")

    def run(command, *options, where=cluster):
        found = CliRunner().invoke(main, ["features", command, *where, *options])
        if found.exception and not isinstance(found.exception, SystemExit):
            raise found.exception
        return found.exit_code, found.stdout, found.stderr

    return run


def finalized(broker):
    return broker.call(lambda running: running.cluster.features.finalized)


def test_describe_shows_ranges_levels_and_epoch_as_text_and_json(features):
    status, out, _ = features("describe")
    assert status == 0
    assert (
        f"metadata.version                  7 (3.3-IV3) to {NEWEST} ({NAME})  22 (4.0-IV0)" in out
    )
    assert "epoch 0, according to broker" in out
    status, out, _ = features("describe", "--format", "json", "--from-controller")
    body = json.loads(out)
    assert body["source"].startswith("broker 1 at")
    assert body["epoch"] == 0
    assert body["features"][METADATA] == {
        "supported": {"min": 7, "max": NEWEST},
        "finalized": 22,
        "finalized_min": None,
        "finalized_name": "4.0-IV0",
    }
    assert body["features"]["transaction.version"]["finalized"] is None


@pytest.mark.kip("584-9", "loop")
def test_every_command_makes_its_change_and_a_dry_run_does_nothing(broker, features):
    steps = (
        ("upgrade", ("--metadata", "4.1", "--feature", "transaction.version=2"), {METADATA: 27}),
        ("downgrade", ("--metadata", "4.1-IV0", "--yes"), {METADATA: 26}),
        ("disable", ("--feature", "transaction.version", "--yes"), {"transaction.version": 0}),
        ("upgrade-all", ("--release-version", "4.2"), {METADATA: 29, "streams.version": 1}),
        ("downgrade-all", ("--release-version", "4.1", "--yes"), {METADATA: 27}),
        ("upgrade-all", (), {METADATA: NEWEST, "share.version": 2, "transaction.version": 2}),
    )
    for epoch, (command, options, expected) in enumerate(steps):
        before = finalized(broker)
        assert before.epoch == epoch
        status, out, _ = features(command, *options, "--dry-run")
        assert (status, finalized(broker)) == (0, before)
        assert "can be" in out
        assert "was" not in out.split("; it was")[0]
        status, out, err = features(command, *options)
        assert (status, err) == (0, "")
        assert "was" in out
        now = finalized(broker)
        assert {name: now.level_of(name) for name in expected} == expected
    assert features("upgrade-all")[1].startswith("nothing to change")
    assert "kraft.version" not in finalized(broker).levels


def test_a_feature_that_live_groups_need_is_disabled_only_by_force(features, monkeypatch):
    groups = [DescribedGroup(group_id="swc", state="Stable", group_type="streams")]
    monkeypatch.setattr("assignor.adapters.admin.list_groups", lambda _: groups)
    assert features("upgrade-all", "--release-version", "4.2")[0] == 0
    options = ("--feature", "streams.version", "--yes")
    assert [features("disable", *options, *more)[0] for more in ((), ["--dry-run"])] == [1, 1]
    assert "streams.version was disabled" in features("disable", *options, "--force")[1]


@pytest.mark.kip("778-14", "loop")
@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("newest", [0, 1, 2])
def test_a_dry_run_changes_nothing_whatever_version_the_brokers_know(newest):
    config = BrokerConfig(metadata_version=22, newest_versions={"UpdateFeatures": newest})
    with running_broker(config) as broker:
        where = ("--bootstrap-server", broker.bootstrap_servers[0], "--timeout", "120")
        before = finalized(broker)
        for command, level in (("upgrade", "26"), ("downgrade", "21")):
            change = ["features", command, *where, "--metadata", level]
            found = CliRunner().invoke(main, [*change, "--dry-run"])
            assert (found.exit_code, finalized(broker)) == (int(newest == 0), before)
            if newest == 0:
                assert "do not support a dry run" in found.stderr
                assert "UNSUPPORTED_VERSION" in found.stderr
        assert len(broker.requests("UpdateFeatures")) == (0 if newest == 0 else 2)
        change = ["features", "upgrade", *where, "--metadata", "26"]
        assert CliRunner().invoke(main, change).exit_code == 0
        assert finalized(broker).level_of(METADATA) == 26


@pytest.mark.kip("584-9", "loop")
def test_a_downgrade_is_confirmed_and_refused_without_a_terminal(broker, features):
    features("upgrade", "--metadata", "26")
    before = finalized(broker)
    status, _, err = features("downgrade", "--metadata", "25")
    assert (status, finalized(broker)) == (2, before)
    assert "Lower metadata.version from 26 (4.1-IV0) to 25 (4.0-IV3)?" in err
    assert "add --yes" in err


@pytest.mark.kip("584-9", "loop")
def test_a_downgrade_can_be_declined(broker, features, monkeypatch):
    features("upgrade", "--metadata", "26")
    monkeypatch.setattr("assignor.cli.features.confirmation._is_terminal", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    status, _, err = features("downgrade", "--metadata", "25")
    assert (status, finalized(broker).level_of(METADATA)) == (1, 26)
    assert err.endswith("nothing was changed\n")
    monkeypatch.setattr("click.confirm", lambda *_, **__: True)
    assert features("downgrade", "--metadata", "25")[0] == 0
    assert finalized(broker).level_of(METADATA) == 25


def test_a_level_below_is_not_upgraded_to_and_one_reason_of_all_features_is_one_sentence(features):
    features("upgrade", "--metadata", "26")
    assert features("upgrade", "--feature", "group.version=1")[0] == 0
    status, _, err = features("upgrade", "--metadata", "25", "--dry-run")
    assert status == 1
    assert "metadata.version cannot be upgraded to 25 (4.0-IV3): " in err
    both = ("--feature", "group.version=0", "--metadata", "22", "--dry-run")
    status, _, err = features("downgrade", *both)
    assert status == 1
    assert len(err.splitlines()) == 1
    assert err.startswith("assignor: none of 2 features can be changed (")


def test_a_lossy_downgrade_is_refused_and_the_level_named(broker, features):
    features("upgrade", "--metadata", "26")
    before = finalized(broker)
    status, out, err = features("downgrade", "--metadata", "22", "--yes")
    assert (status, out, finalized(broker)) == (1, "", before)
    assert "level 23 (4.0-IV1" in err
    assert "INVALID_UPDATE_VERSION" in err
    body = json.loads(features("downgrade", "--metadata", "22", "--yes", "--format", "json")[1])
    assert body["results"][0]["error"] == "INVALID_UPDATE_VERSION"
    assert body["results"][0]["ok"] is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no level is given"),
        (("--feature", "x"), "not of the form NAME=LEVEL"),
        (("--feature", "x=y"), "give its level as a number"),
        (("--metadata", "9.9"), "has no level '9.9'"),
        (("--metadata", "22", "--feature", "metadata.version=23"), "more than one level"),
    ],
)
def test_wrong_usage_is_status_2_and_a_sentence(features, options, message):
    status, out, err = features("upgrade", *options)
    assert (status, out) == (2, "")
    assert message in err


def test_a_user_without_the_right_gets_one_sentence(broker, features):
    broker.inject(Fault(api="UpdateFeatures", error=31))
    before = finalized(broker)
    status, out, err = features("upgrade", "--metadata", "23")
    assert (status, out, finalized(broker)) == (1, "", before)
    assert "CLUSTER_AUTHORIZATION_FAILED" in err
    assert len(err.splitlines()) == 1


def test_no_broker_is_an_environment_failure(features):
    status, _, err = features("describe", where=("--bootstrap-server", "127.0.0.1:1"))
    assert status == 3
    assert err == "assignor: no broker can be reached: 127.0.0.1:1: connection refused.\n"


def test_locations_cannot_be_combined(features, tmp_path):
    status, _, err = features("describe", "--directory", str(tmp_path))
    assert (status, "--directory excludes" in err) == (2, True)
    status, _, err = features("describe", "--group", "g", "--from-controller")
    assert (status, "--from-controller and --node-id name a node of a cluster" in err) == (2, True)


# A group


def test_levels_of_a_group_live_in_a_compacted_topic(broker, features):
    status, out, err = features("upgrade", "--group", "g", "--feature", "assignment.protocol=11")
    assert (status, out) == (0, "assignment.protocol was upgraded to 11 (v11)\n")
    assert err == "warning: group g has no members; what they support is not known\n"
    topic = broker.call(lambda running: running.cluster.catalog.topic("g-feature-levels"))
    assert topic.configs["cleanup.policy"] == "compact"
    assert len(topic.partitions) == 1
    features("upgrade", "--group", "g", "--feature", "assignment.protocol=101")
    status, out, _ = features("describe", "--group", "g", "--format", "json")
    body = json.loads(out)
    assert (body["epoch"], body["source"]) == (2, "group g, 0 members")
    assert body["features"]["assignment.protocol"]["finalized"] == 101
    status, out, _ = features(
        "downgrade", "--group", "g", "--feature", "assignment.protocol=11", "--yes"
    )
    assert out == "assignment.protocol was downgraded from 101 (v101) to 11 (v11)\n"


def test_members_that_do_not_support_a_level_are_named_and_nothing_is_changed(broker, features):
    broker.create_topic("in", 2)
    topology = Topology().add_source("in", topics=["in"]).add_processor("p", parents=["in"])
    assignor = StreamsAssignor(topology, application_id="g", release="3.1", internal_topics=None)
    consumer = KafkaConsumer(
        "in",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="g",
        client_id="old-one",
        partition_assignment_strategy=[assignor],
    )
    try:
        assignor.attach(consumer)
        until(consumer.assignment, lambda: consumer.poll(timeout_ms=100))
        level = ("--group", "g", "--feature", "assignment.protocol=101")
        status, out, err = features("upgrade", *level)
        assert (status, out) == (1, "")
        assert "member old-one (1..10)" in err
        assert "FEATURE_UPDATE_FAILED" in err
        body = json.loads(features("describe", "--group", "g", "--format", "json")[1])
        assert (body["epoch"], body["source"]) == (0, "group g, 1 members")
        assert body["features"]["assignment.protocol"]["supported"] == {"min": 1, "max": 10}
        status, out, _ = features("upgrade", "--group", "g", "--feature", "assignment.protocol=9")
        assert (status, "was upgraded to 9" in out) == (0, True)
    finally:
        consumer.close(autocommit=False)
        assignor.close()


def test_of_two_operators_at_the_same_moment_the_second_gets_an_error(broker):
    target = Target(servers=tuple(broker.bootstrap_servers), timeout_ms=120_000)
    with open_admin(target) as admin:
        first, second = FeatureTopic(admin, "g"), FeatureTopic(admin, "g")
        seen = first.look()
        first.change(seen, {"task.placement": 1}, Note(who="ada"), {})
        with pytest.raises(StoreError, match=r"changed at the same time by ada \(epoch 1\)"):
            second.change(seen, {"task.placement": 2}, Note(who="bob"), {})
        assert second.look().state.levels.levels == {"task.placement": 1}


@pytest.mark.kip("384-8", "loop")
def test_records_of_the_topic_are_written_in_the_format_of_the_finalized_level(broker, features):
    where = ("--group", "g")
    persisted = [features("upgrade", *where, "--metadata", "1")]
    persisted += [features("upgrade", *where, "--metadata", "2")]
    persisted += [features("upgrade", *where, "--feature", "task.placement=1")]
    persisted += [features("downgrade", *where, "--metadata", "1", "--unsafe", "--yes")]
    assert [status for status, *_ in persisted] == [0] * 4
    with open_admin(Target(servers=tuple(broker.bootstrap_servers), timeout_ms=120_000)) as admin:
        rows = CompactedTopic(admin, "g-feature-levels").records()
    records = [msgpack.unpackb(row.value) for row in rows if row.value is not None]
    written = [msgpack.unpackb(body) for _layout, _parent, body in records]
    assert [row["format"] for row in written] == [2, 3, 3, 2]
    assert ["members" in row for row in written] == [False, True, True, False]


@pytest.mark.kip("584-14", "loop")
def test_a_minimum_that_a_leader_raised_is_changed_by_no_update(broker, features):
    """A leader raises it through its level source."""
    where = ("--group", "g")
    source = GroupLevels(broker.bootstrap_servers[0], "g", timeout_ms=120_000)
    member = NodeSupport(
        node_id="m", role=Role.MEMBER, ranges={PROTOCOL: LevelRange(min=11, max=101)}
    )

    def described():
        body = json.loads(features("describe", *where, "--format", "json")[1])
        found = body["features"][PROTOCOL]
        return body["epoch"], found["finalized"], found["finalized_min"]

    features("upgrade", *where, "--feature", f"{PROTOCOL}=101")
    assert described() == (1, 101, None)
    source.raise_minimums([member])
    assert described() == (2, 101, 11)
    below = ("--feature", f"{PROTOCOL}=9", "--yes", "--unsafe")
    status, _, err = features("downgrade", *where, *below)
    assert (status, "level 9 is deprecated" in err) == (1, True)
    assert described() == (2, 101, 11)
    assert features("downgrade", *where, "--feature", f"{PROTOCOL}=11", "--yes")[0] == 0
    assert features("upgrade", *where, "--feature", "task.placement=1")[0] == 0
    assert described() == (4, 11, 11)
    source.raise_minimums([member])
    assert described() == (4, 11, 11)


def test_describe_creates_no_topic(broker, features):
    assert features("describe", "--group", "g")[0] == 0
    features("upgrade", "--group", "g", "--feature", "task.placement=1", "--dry-run")
    assert broker.call(lambda running: running.cluster.catalog.names()) == ()


def test_an_update_that_prevents_a_rollback_warns_and_is_lowered_only_unsafely(features):
    args = ("--group", "g", "--metadata", "2", "--feature", "assignment.protocol=101")
    status, _, err = features("upgrade", *args)
    assert (status, "is raised together with the wire version" in err) == (0, True)
    status, out, err = features("downgrade", "--group", "g", "--metadata", "1", "--yes")
    assert (status, out) == (1, "")
    assert "UNSAFE_FEATURE_DOWNGRADE" in err
    status, *_ = features("downgrade", "--group", "g", "--metadata", "1", "--yes", "--unsafe")
    assert status == 0
