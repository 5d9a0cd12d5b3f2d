"""`assignor features` on a feature log in a folder and on a group's topic, without a broker.

The topic's records are kept in memory; all else is what an operator runs.
"""

from contextlib import contextmanager
from types import SimpleNamespace
from uuid import UUID

import pytest
from click.testing import CliRunner
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

import assignor.adapters.admin
from assignor.adapters.admin import FeatureTopic
from assignor.cli import main
from assignor.inspection import DescribedMember
from assignor.levels.log import TopicRecord, opened_log, read_topic
from encoding import Subscription, encode_subscription
from probing.features import ASSIGNMENT_PROTOCOL, TASK_PLACEMENT, LevelRange


class Place:
    """Where levels are kept: `features(command, *options)` gives status, stdout and stderr."""

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


def kept_in(records):
    """A group's topic whose records are in a list."""

    class KeptTopic(FeatureTopic):
        def _exists(self):
            return bool(records)

        def _create(self):
            pass

        def _records(self):
            return records

        def _write(self, written):
            for key, value in written:
                records.append(TopicRecord(offset=len(records), key=key, value=value))

    return KeptTopic


class Group(Place):
    def __init__(self, monkeypatch):
        super().__init__("--bootstrap-server", "b:9092", "--group", "g")
        self.records, self.members = [], []
        monkeypatch.setattr(assignor.adapters.admin, "FeatureTopic", kept_in(self.records))
        described = SimpleNamespace(members=self.members)
        monkeypatch.setattr(assignor.adapters.admin, "describe_group", lambda *_: described)

        @contextmanager
        def connected(target):
            yield SimpleNamespace(target=target)

        monkeypatch.setattr("assignor.cli.features.command.connected", connected)

    def add_member(self, name, highest):
        value = Subscription(
            version=highest, latest_supported_version=highest, process_id=UUID(int=1)
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
    assert f"{ASSIGNMENT_PROTOCOL} is finalized at 9 already" in err
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
        ("upgrade", protocol(9), "is finalized at 9 already"),
        ("upgrade", protocol(8), "is below; ask for a downgrade"),
        ("downgrade", (*protocol(11), "--yes"), "is above; ask for an upgrade"),
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
