import json
from dataclasses import asdict

import pytest

from system_tests.json_lines import LineError, read_line, write_line
from system_tests.live.events import (
    EVENTS,
    AssignmentTaken,
    OffsetsCommitted,
    ReportError,
    read_report,
    write_report,
)
from system_tests.live.members.config import GroupConfig, MemberConfig
from system_tests.live.plan import Stage

TAKEN = AssignmentTaken(
    generation=3,
    version=10,
    commonly_supported_version=11,
    active_tasks=("0_0", "0_3"),
    next_version=11,
    standby_tasks=(),
    error_code=0,
)


@pytest.mark.parametrize("event", [TAKEN, OffsetsCommitted(offsets=((0, 7), (1, 9)))])
def test_an_event_comes_back_as_it_was_written(event):
    report = read_report(write_report(event, at_ms=12.5), member="a", incarnation=2)
    assert (report.event, report.at_ms, report.member, report.incarnation) == (event, 12.5, "a", 2)


def test_every_event_is_known_by_its_own_name():
    assert all(name == kind.__name__ for name, kind in EVENTS.items())


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("Traceback (most recent call last):", "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ('{"event": "Exploded", "at_ms": 1}', "no known event"),
        ('{"event": "MemberStopped", "at_ms": 1}', "records"),
        ('{"event": "MemberStopped", "at_ms": "soon", "records": 1}', "at_ms"),
        ('{"event": "MemberStopped", "at_ms": 1, "records": 1, "extra": 0}', "extra"),
    ],
)
def test_a_line_that_is_no_event_is_refused_with_what_was_expected(line, why):
    with pytest.raises(ReportError, match=why):
        read_report(line, member="b", incarnation=0)


CONFIG = MemberConfig(
    name="a",
    process_id="00000000-0000-4000-8000-000000000000",
    stage=Stage(
        release="3.1.2", upgrade_from=None, latest_version=10, rebalance_protocol="cooperative"
    ),
    group=GroupConfig(
        bootstrap_servers="127.0.0.1:9092",
        group_id="g",
        topic="words",
        session_timeout_ms=6000,
        heartbeat_ms=300,
        static=True,
    ),
)


def test_a_member_configuration_survives_its_line_of_json():
    assert read_line(MemberConfig, write_line(CONFIG)) == CONFIG


def changed(**fields):
    return json.dumps(asdict(CONFIG) | fields)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", r"missing fields \['group', 'name', 'process_id', 'stage'\]"),
        (changed(topic="words"), r"unknown fields \['topic'\]"),
        (changed(name=7), "MemberConfig.name must be str, not 7"),
        (changed(group=[]), "MemberConfig.group must be GroupConfig"),
        (changed(group=asdict(CONFIG.group) | {"static": 1}), "GroupConfig.static must be bool"),
        (
            changed(stage=asdict(CONFIG.stage) | {"upgrade_from": 2.3}),
            "Stage.upgrade_from must be str or NoneType, not 2.3",
        ),
    ],
)
def test_an_invalid_member_configuration_is_refused_with_the_field(line, why):
    with pytest.raises(LineError, match=why):
        read_line(MemberConfig, line)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"generation": "3"}, "AssignmentTaken.generation must be int, not '3'"),
        ({"generation": True}, "AssignmentTaken.generation must be int, not True"),
        ({"active_tasks": ["0_0", 1]}, "AssignmentTaken.active_tasks must be str, not 1"),
        ({"active_tasks": "0_0"}, "AssignmentTaken.active_tasks must be tuple"),
    ],
)
def test_an_event_with_an_ill_typed_field_is_refused_with_the_field(fields, why):
    line = json.dumps(json.loads(write_report(TAKEN, at_ms=1)) | fields)
    with pytest.raises(ReportError, match=why):
        read_report(line, member="b", incarnation=0)


def test_offsets_are_pairs():
    line = write_report(OffsetsCommitted(offsets=((0, 7),)), at_ms=1).replace("[0,7]", "[0,7,8]")
    with pytest.raises(ReportError, match="must have 2 values"):
        read_report(line, member="b", incarnation=0)
