"""`assignor features` on a feature log in a folder and on a group's topic, without a broker.

The topic's records are kept in memory; all else is the real command.
"""

import json
from contextlib import contextmanager
from types import SimpleNamespace
from uuid import UUID

import pytest
from click.testing import CliRunner
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

import assignor.adapters.admin
from assignor.adapters.admin import level_topic
from assignor.cli import main
from assignor.inspection import DescribedMember
from assignor.levels.log import Note, TopicRecord, opened_log, read_topic
from encoding import Subscription, encode_subscription
from probing.features import ASSIGNMENT_PROTOCOL, TASK_PLACEMENT, LevelRange


class Place:
    """A location of levels: `features(command, *options)` returns status, stdout and stderr."""

    def __init__(self, *options):
        self.options = options

    def features(self, command, *options):
        found = CliRunner().invoke(main, ["features", command, *self.options, *options])
        if found.exception and not isinstance(found.exception, SystemExit):
            raise found.exception
        return found.exit_code, found.stdout, found.stderr


class Folder(Place):
    def __init__(self, folder):
        super().__init__("--directory", str(folder))
        self.folder = folder
        made = ["storage", "format", *self.options, "--metadata-version", "2"]
        assert CliRunner().invoke(main, made).exit_code == 0

    def add_member(self, name, highest):
        with opened_log(self.folder) as log:
            log.register(name, {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=highest)})

    @property
    def levels(self):
        with opened_log(self.folder) as log:
            return log.state.levels

    def raise_minimum(self, level):
        with opened_log(self.folder) as log:
            log.change({}, Note(), minimums={ASSIGNMENT_PROTOCOL: level})

    @property
    def minimums(self):
        with opened_log(self.folder) as log:
            return log.state.minimums


def kept_in(records):
    """A compacted topic whose records are in a list."""

    class KeptTopic:
        def __init__(self, admin, name):
            pass

        def records(self):
            return records

        def write(self, rows):
            for key, value in rows:
                records.append(TopicRecord(offset=len(records), key=key, value=value))

    return KeptTopic


class Group(Place):
    def __init__(self, monkeypatch):
        super().__init__("--bootstrap-server", "b:9092", "--group", "g")
        self.records, self.members = [], []
        monkeypatch.setattr(level_topic, "CompactedTopic", kept_in(self.records))
        monkeypatch.setattr(assignor.adapters.admin, "settled_members", lambda *_: self.members)

        @contextmanager
        def connected(target):
            yield SimpleNamespace(target=target)

        monkeypatch.setattr("assignor.cli.features.command.connected", connected)

    def add_member(self, name, highest, writes=None):
        value = Subscription(
            version=writes or highest, latest_supported_version=highest, process_id=UUID(int=1)
        )
        outer = ConsumerProtocolSubscription(
            version=1, topics=["in"], user_data=encode_subscription(value), owned_partitions=[]
        )
        self.members.append(
            DescribedMember(member_id=name, client_id=name, metadata=bytes(outer.encode()))
        )

    @property
    def levels(self):
        return read_topic(self.records).state.levels

    def raise_minimum(self, level):
        topic = level_topic.FeatureTopic(None, "g")
        topic.change(topic.look(), {}, Note(), {}, minimums={ASSIGNMENT_PROTOCOL: level})

    @property
    def minimums(self):
        return read_topic(self.records).state.minimums


@pytest.fixture(params=["folder", "group"])
def place(request, tmp_path, monkeypatch):
    return Folder(tmp_path / "log") if request.param == "folder" else Group(monkeypatch)


def protocol(level):
    return "--feature", f"{ASSIGNMENT_PROTOCOL}={level}"


def placement(level):
    return "--feature", f"{TASK_PLACEMENT}={level}"


@pytest.mark.kip("584-2", "core")
def test_the_epoch_grows_by_one_with_every_change_and_with_nothing_else(place):
    assert place.features("upgrade", *protocol(9), *placement(1))[0] == 0
    assert place.levels.epoch == 1
    assert place.features("upgrade", *protocol(11), "--dry-run")[0] == 0
    assert place.features("upgrade", *protocol(9))[0] == 1
    assert place.levels.epoch == 1
    assert place.features("upgrade", *protocol(11))[0] == 0
    assert place.features("downgrade", *protocol(9), "--yes")[0] == 0
    assert place.levels.epoch == 3
    assert place.levels.level_of(ASSIGNMENT_PROTOCOL) == 9
    assert place.levels.level_of(TASK_PLACEMENT) == 1


@pytest.mark.kip("584-3", "core")
def test_of_two_features_in_one_command_none_is_changed_where_one_cannot_be(place):
    assert place.features("upgrade", *protocol(9), *placement(1))[0] == 0
    before = place.levels
    status, out, err = place.features("upgrade", *protocol(9), *placement(2))
    assert (status, out, place.levels) == (1, "", before)
    assert f"{ASSIGNMENT_PROTOCOL} is already finalized at 9" in err
    assert TASK_PLACEMENT in err


@pytest.mark.kip("584-4", "core")
def test_a_level_that_a_member_lacks_is_refused_with_its_name_and_range(place):
    place.add_member("m1", 11)
    place.add_member("m2", 10)
    assert place.features("upgrade", *protocol(9))[0] == 0
    before = place.levels
    status, out, err = place.features("upgrade", *protocol(11))
    assert (status, out, place.levels) == (1, "", before)
    assert "FEATURE_UPDATE_FAILED" in err
    assert "member m2 (1..10)" in err
    assert "member m1" not in err


@pytest.mark.kip("584-5", "core")
@pytest.mark.parametrize(
    ("command", "options", "why"),
    [
        ("upgrade", protocol(9), "is already finalized at 9"),
        ("upgrade", protocol(8), "is below; request a downgrade"),
        ("downgrade", (*protocol(11), "--yes"), "is above; request an upgrade"),
        ("disable", ("--feature", TASK_PLACEMENT, "--yes"), "cannot be deleted, only lowered"),
    ],
)
def test_a_wrong_command_is_an_invalid_request_and_changes_nothing(place, command, options, why):
    assert place.features("upgrade", *protocol(9))[0] == 0
    before = place.levels
    status, out, err = place.features(command, *options)
    assert (status, out, place.levels) == (1, "", before)
    assert "INVALID_REQUEST" in err
    assert why in err


def raised_to_11(place):
    """A location with level 101 and minimum 11, as the leader raised it."""
    assert place.features("upgrade", *protocol(101))[0] == 0
    place.raise_minimum(11)
    assert place.minimums == {ASSIGNMENT_PROTOCOL: 11}


@pytest.mark.kip("584-7", "core")
@pytest.mark.parametrize("unsafe", [(), ("--unsafe",)])
def test_no_level_goes_below_the_minimum_which_describe_shows(place, unsafe):
    raised_to_11(place)
    before = place.levels
    status, _, err = place.features("downgrade", *protocol(9), "--yes", *unsafe)
    assert (status, place.levels) == (1, before)
    assert "INVALID_REQUEST" in err
    assert "level 9 is deprecated" in err
    assert "choose 11 or more" in err
    assert "101 (v101), not below 11 (v11)" in place.features("describe")[1]
    body = json.loads(place.features("describe", "--format", "json")[1])
    assert body["features"][ASSIGNMENT_PROTOCOL]["finalized_min"] == 11
    assert place.features("downgrade", *protocol(11), "--yes")[0] == 0


@pytest.mark.kip("584-14", "core")
def test_no_command_changes_the_minimum_of_a_feature(place):
    raised_to_11(place)
    for command, options in (
        ("downgrade", protocol(9)),
        ("downgrade", (*protocol(9), "--unsafe")),
        ("downgrade", protocol(11)),
        ("upgrade", protocol(101)),
        ("upgrade", placement(2)),
        ("disable", ("--feature", ASSIGNMENT_PROTOCOL, "--unsafe")),
        ("downgrade-all", ("--unsafe",)),
        ("upgrade-all", ()),
    ):
        lowers = command not in ("upgrade", "upgrade-all")
        place.features(command, *options, *(["--yes"] if lowers else []))
        assert place.minimums == {ASSIGNMENT_PROTOCOL: 11}
        assert place.levels.level_of(ASSIGNMENT_PROTOCOL) >= 11
    assert place.levels.level_of(ASSIGNMENT_PROTOCOL) == 101


@pytest.mark.kip("584-15", "core")
def test_who_still_needs_old_levels_is_named_and_nothing_is_changed(place):
    place.add_member("m1", 11)
    place.add_member("m2", 10)
    assert place.features("upgrade", *protocol(9))[0] == 0
    before = place.levels
    status, out, _ = place.features("still-needed", *protocol(11))
    assert (status, place.levels) == (1, before)
    assert "member m2 supports assignment.protocol 1..10, which is below 11" in out
    assert "member m1" not in out
    assert "has assignment.protocol finalized at 9 (v9)" in out
    assert "levels of assignment.protocol below 11 (v11) are still needed" in out
    status, out, _ = place.features("still-needed", *protocol(11), "--format", "json")
    (found,) = json.loads(out)["features"].values()
    assert (status, found["minimum"], len(found["needed_by"])) == (1, 11, 2)
    status, out, _ = place.features("still-needed", *protocol(9))
    assert (status, "are not needed, according to" in out) == (0, True)
    assert place.features("still-needed", "--feature", "assignment.protocol=x")[0] == 2
    assert place.features("still-needed")[0] == 2


@pytest.mark.kip("584-15", "core")
def test_a_member_that_cannot_be_read_may_need_anything(monkeypatch):
    group = Group(monkeypatch)
    group.members.append(DescribedMember(member_id="x", client_id="x", metadata=b"\x00"))
    status, out, err = group.features("still-needed", *protocol(2))
    assert (status, "member x does not report what it supports" in out) == (1, True)
    assert "the subscription of x is malformed" in err


@pytest.mark.kip("584-15", "core")
def test_a_member_that_writes_an_old_version_needs_it_whatever_it_supports(monkeypatch):
    group = Group(monkeypatch)
    group.add_member("m1", 11, writes=9)
    status, out, _ = group.features("still-needed", *protocol(11))
    assert (status, "member m1 writes version 9" in out) == (1, True)
    assert group.features("still-needed", *protocol(9))[0] == 0


@pytest.mark.parametrize("command", [("describe",), ("still-needed", *protocol(9))])
def test_what_only_shows_levels_asks_the_group_once(monkeypatch, command):
    group, asked = Group(monkeypatch), []
    group.add_member("m1", 11)

    def settled(*_):
        asked.append(None)
        return group.members

    monkeypatch.setattr(assignor.adapters.admin, "settled_members", settled)
    assert group.features(*command)[0] == 0
    assert len(asked) == 1
