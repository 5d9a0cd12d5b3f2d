"""Each checker: a short trace that it accepts, and the same trace with one fault."""

import pytest

from probing.features import METADATA_VERSION, FinalizedLevels, LevelRange, LevelRecord
from system_tests.cluster import KRAFT_RULES, check_kraft
from system_tests.cluster.events import (
    Acknowledged,
    Activated,
    Asked,
    Committed,
    Left,
    Published,
    Regarded,
    Rested,
    Restless,
    Rewritten,
    SnapshotWritten,
    Spoke,
    Standing,
    Started,
)
from system_tests.cluster.nodes.clients import group_levels_of
from system_tests.cluster.nodes.programs import kafka_realm
from system_tests.sim import Adopted, Looked

REALM = kafka_realm(20)
WIDE = {METADATA_VERSION: LevelRange(min=1, max=21)}
OLD = {METADATA_VERSION: LevelRange(min=1, max=20)}


def at(level, epoch):
    return FinalizedLevels(levels={METADATA_VERSION: level}, epoch=epoch)


def used(level, epoch):
    return group_levels_of(at(level, epoch), METADATA_VERSION)


def committed(at_ms, level, offset):
    record = LevelRecord(feature=METADATA_VERSION, level=level)
    return Committed(at_ms, "c0", offset, (record,))


def update_request(
    level, *, kind="upgrade", error="NONE", dry=False, voters=("c0",), ranges=WIDE, epoch=1
):
    return Asked(
        *(4, "c0", 1, {METADATA_VERSION: level}, kind, dry, error, "applied", "", ()),
        dict.fromkeys(voters, ranges),
        epoch,
    )


def started(node, ranges=WIDE):
    return Started(1, node, "3.9", ranges, ranges[METADATA_VERSION].max, None)


BEGUN = (started("c0"), Activated(2, "c0", 1), committed(3, 20, 0))
USED = (Published(3, "c0", at(20, 1)),)
REGISTERED = (Regarded(3, "b0", Standing.REGISTERED),)
RAISED = (*BEGUN, *USED, update_request(21), committed(5, 21, 1))
STEPS = (SnapshotWritten(6, "c0", 1, at(20, 1)), Rewritten(6, "c0", at(21, 2), (), ()))

# Events, and the rule that they break.
TRACES = [
    ((*BEGUN, committed(5, 21, 1)), "only what was asked"),
    (
        (*BEGUN, update_request(21, error="INVALID_REQUEST"), committed(5, 21, 1)),
        "only what was asked",
    ),
    ((*BEGUN, update_request(21, dry=True), committed(5, 21, 1)), "only what was asked"),
    ((*BEGUN, update_request(19), committed(5, 19, 1)), "only what was asked"),
    ((started("c0"), committed(3, 19, 0)), "only what was asked"),
    (
        (
            *BEGUN,
            started("b0", OLD),
            Regarded(3, "b0", Standing.REGISTERED),
            update_request(21),
            committed(5, 21, 1),
        ),
        "every live broker can",
    ),
    ((*BEGUN, started("c1"), started("c2"), update_request(21)), "a majority can"),
    ((*BEGUN, update_request(21, ranges=OLD)), "a majority can"),
    ((*RAISED, *STEPS[1:], Published(7, "c0", at(21, 2))), "snapshot first"),
    ((*RAISED, Published(7, "c0", at(21, 2))), "snapshot first"),
    ((*RAISED, *reversed(STEPS), Published(7, "c0", at(21, 2))), "snapshot first"),
    ((*BEGUN, Published(4, "c0", at(21, 2))), "only finalized"),
    ((*RAISED, *STEPS, Published(7, "c0", at(21, 2)), *USED), "only finalized"),
    ((*RAISED, started("b0", OLD), Published(7, "b0", at(21, 2))), "only supported"),
    ((*RAISED, started("b0", OLD), Regarded(7, "b0", Standing.REGISTERED)), "kept out"),
    ((*BEGUN, started("b0"), Left(5, "b0", "", "terminate")), "who cannot leaves"),
    ((*BEGUN, Activated(5, "c0", 2), Left(5, "c0", "", "terminate")), "who cannot leaves"),
    (
        (*BEGUN, Left(5, "c0", "", "terminate"), Published(6, "c0", at(20, 1))),
        "who cannot leaves",
    ),
    ((*BEGUN, started("b0", OLD), Spoke(5, "c0", "b0", 21)), "readable"),
    ((*BEGUN, update_request(21, dry=True), Acknowledged(6, 1, 2)), "acknowledged is committed"),
    ((*BEGUN, update_request(21), Acknowledged(6, 1, 2)), "acknowledged is committed"),
    ((*RAISED, Acknowledged(6, 1, 3)), "acknowledged is committed"),
    ((*RAISED, Adopted(6, "a", used(21, 2)), Adopted(7, "a", used(20, 1))), "the group continues"),
    ((*BEGUN, Adopted(6, "a", used(21, 2))), "the group continues"),
    ((*RAISED, Adopted(6, "a", used(20, 2))), "the group continues"),
    (
        (
            *(*RAISED, Adopted(6, "a", used(20, 1))),
            *(Looked(at_ms, "a", "b0", used(21, 2), asks=True) for at_ms in (7, 8)),
        ),
        "one rebalance",
    ),
    ((*RAISED, Rested(9, "c0", at(20, 1))), "acknowledged stays"),
    ((*BEGUN, Restless(9, 60, "b0 is down")), "comes to rest"),
]


def broken(trace, realm=REALM):
    return [broken.rule for broken in check_kraft(trace, realm)]


def test_a_whole_upgrade_breaks_nothing():
    trace = (
        *(*RAISED, *STEPS, Published(7, "c0", at(21, 2)), Acknowledged(7, 1, 2)),
        *(Adopted(8, "a", used(21, 2)), Rested(9, "c0", at(21, 2))),
    )
    assert broken(trace) == []


@pytest.mark.parametrize(("trace", "rule"), TRACES)
def test_a_fault_is_found_by_the_rule_that_forbids_it(trace, rule):
    assert rule in broken(trace)


def test_a_rule_is_reported_once_with_the_first_time_it_was_broken():
    trace = (*BEGUN, Restless(4, 60, "b0 is down"), Restless(5, 60, "b0 is down"))
    assert [(broken.rule, broken.at_ms) for broken in check_kraft(trace, REALM)] == [
        ("comes to rest", 4)
    ]


def test_rules_have_names_and_promises_of_their_own():
    assert len({rule.name for rule in KRAFT_RULES}) == len(KRAFT_RULES)
    assert all(rule.promise for rule in KRAFT_RULES)
