import json

import pytest

from system_tests.live.events import (
    EVENTS,
    AssignmentTaken,
    OffsetsCommitted,
    ReportError,
    read_report,
    write_report,
)
from system_tests.live.members.config import MemberConfig

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
        ("[1, 2]", "no known event"),
        ('{"event": "Exploded", "at_ms": 1}', "no known event"),
        ('{"event": "MemberStopped", "at_ms": 1}', "records"),
        ('{"event": "MemberStopped", "at_ms": "soon", "records": 1}', "at_ms"),
        ('{"event": "MemberStopped", "at_ms": 1, "records": 1, "extra": 0}', "extra"),
    ],
)
def test_a_line_that_is_no_event_is_refused_with_what_was_expected(line, why):
    with pytest.raises(ReportError, match=why):
        read_report(line, member="b", incarnation=0)


def test_a_member_configuration_survives_its_line_of_json():
    config = MemberConfig(
        name="a",
        bootstrap_servers="127.0.0.1:9092",
        group_id="g",
        topic="words",
        release="3.1.2",
        upgrade_from=None,
        rebalance_protocol="cooperative",
        process_id="00000000-0000-4000-8000-000000000000",
        supervised=False,
        hold_back=False,
        group_instance_id="i-1",
        session_timeout_ms=6000,
        heartbeat_interval_ms=300,
    )
    assert MemberConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize("line", ["", "{}", "[]", json.dumps({"name": "a"})])
def test_a_bad_member_configuration_is_refused(line):
    with pytest.raises(ValueError, match="one JSON object"):
        MemberConfig.from_json(line)
