from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probing.features import (
    KAFKA_FEATURES,
    METADATA_VERSION,
    FeatureUpdate,
    FinalizedLevels,
    LevelRecord,
    NodeSupport,
    Role,
    UpdateError,
    UpdateKind,
    UpdateRequest,
    find_kafka_release,
)
from system_tests.cluster.machines.controller import (
    AcceptNode,
    AnswerUpdate,
    AppendRecords,
    ControllerState,
    FenceNode,
    NodeHeard,
    NodeRegistered,
    NodeSilent,
    NodeUnregistered,
    RejectNode,
    UnfenceNode,
    UpdateAsked,
    controller_step,
)
from system_tests.cluster.machines.replica import MinimumRecord


def node(node_id, series="4.0", role=Role.BROKER):
    ranges = find_kafka_release(series).ranges
    return NodeSupport(node_id=node_id, role=role, ranges=ranges)


def start(level=21, **fields):
    finalized = FinalizedLevels(levels={METADATA_VERSION: level}, epoch=1)
    return ControllerState(node_id="c0", table=KAFKA_FEATURES, finalized=finalized, **fields)


def run(state, *events):
    done = []
    for event in events:
        state, commands = controller_step(state, event)
        done.append(commands)
    return state, done


def register(node_id, series="4.0", *, incarnation=1, role=Role.BROKER):
    return NodeRegistered(node=node(node_id, series, role), incarnation=incarnation)


def heartbeat_of(node_id, *, incarnation=1, is_caught_up=True):
    return NodeHeard(node_id=node_id, incarnation=incarnation, is_caught_up=is_caught_up)


def raise_to(level, kind=UpdateKind.UPGRADE, **fields):
    row = FeatureUpdate(feature=METADATA_VERSION, level=level, kind=kind)
    return UpdateAsked(request=UpdateRequest(updates=(row,), **fields))


def kinds(commands):
    return [type(command) for command in commands]


def test_a_registered_node_stays_fenced_until_it_has_caught_up():
    state, done = run(
        start(),
        register("b1", "3.9"),
        heartbeat_of("b1", is_caught_up=False),
        heartbeat_of("b1"),
        heartbeat_of("b1"),
    )
    assert kinds(done[0]) == [AcceptNode]
    assert [done[1], done[2], done[3]] == [(), (UnfenceNode(node_id="b1"),), ()]
    assert not state.registrations["b1"].is_fenced


@pytest.mark.kip("584-6", "core")
def test_a_node_that_cannot_is_rejected_and_stays_fenced_whatever_it_does():
    state, done = run(start(22), register("b1", "3.9"), heartbeat_of("b1"))
    (reject,) = done[0]
    assert isinstance(reject, RejectNode)
    assert reject.error_code == 35
    assert "22 (4.0-IV0) (it supports 1..21)" in reject.why
    assert (state, done[1]) == (start(22), ())


@pytest.mark.kip("584-6", "core")
def test_a_node_back_with_an_older_release_is_fenced_although_it_was_registered():
    state, done = run(
        start(22), register("b1"), heartbeat_of("b1"), register("b1", "3.9", incarnation=2)
    )
    assert kinds(done[2]) == [RejectNode]
    assert state.registrations["b1"].is_fenced
    assert not state.registrations["b1"].is_live


@pytest.mark.kip("584-6", "core")
def test_a_node_that_slept_through_an_update_is_not_unfenced_when_it_wakes():
    state, done = run(
        start(),
        register("b1", "3.9"),
        heartbeat_of("b1"),
        register("b2"),
        NodeSilent(node_id="b1"),
        raise_to(22),
        heartbeat_of("b1"),
    )
    assert done[3] == (FenceNode(node_id="b1", why="its session expired"),)
    assert state.finalized.level_of(METADATA_VERSION) == 22
    assert kinds(done[5]) == [RejectNode]
    assert state.registrations["b1"].is_fenced


def test_messages_of_an_earlier_start_of_a_node_are_ignored():
    state, done = run(start(), register("b1", incarnation=2), heartbeat_of("b1", incarnation=1))
    assert done[1] == ()
    assert state.registrations["b1"].is_fenced
    assert run(state, NodeUnregistered(node_id="b1"), heartbeat_of("b1", incarnation=2))[1] == [
        (),
        (),
    ]
    assert run(state, NodeSilent(node_id="b9"))[1] == [()]


@pytest.mark.kip("584-4", "core")
def test_only_live_nodes_are_asked_and_each_of_them():
    state, _ = run(start(), register("b1", "3.9"), register("b2"))
    _, done = run(state, raise_to(22))
    (answer,) = done[0]
    assert answer.outcome.error is UpdateError.FEATURE_UPDATE_FAILED
    assert "broker b1 (1..21)" in answer.outcome.results[0].why
    after, done = run(state, NodeSilent(node_id="b1"), raise_to(22))
    assert kinds(done[1]) == [AppendRecords, AnswerUpdate]
    assert done[1][0].records == (LevelRecord(feature=METADATA_VERSION, level=22),)
    assert after.finalized.epoch == 2


@pytest.mark.kip("584-5", "core")
def test_a_failed_request_and_a_dry_run_leave_the_controller_as_it_was():
    state, _ = run(start(), register("b1"))
    for asked in (raise_to(21), raise_to(30), raise_to(22, validate_only=True)):
        after, done = run(state, asked)
        assert after == state
        assert kinds(done[0]) == [AnswerUpdate]


@pytest.mark.kip("584-2", "core")
@given(st.lists(st.tuples(st.integers(18, 26), st.sampled_from(UpdateKind)), max_size=12))
def test_the_epoch_grows_by_one_with_every_applied_update_and_with_nothing_else(asked):
    state, _ = run(start(), register("b1"))
    for level, kind in asked:
        after, done = run(state, raise_to(level, kind))
        applied = any(isinstance(command, AppendRecords) for command in done[0])
        assert after.finalized.epoch == state.finalized.epoch + applied
        assert applied == (after.finalized.levels != state.finalized.levels)
        state = after


@pytest.mark.kip("584-7", "core")
def test_the_minimum_rises_once_every_node_and_voter_has_it_and_never_falls():
    quorum = ("c0",)
    state, done = run(
        start(quorum=quorum),
        register("b1", "3.9"),
        register("b2"),
        register("c0", role=Role.CONTROLLER),
        NodeSilent(node_id="b1"),
    )
    assert all(AppendRecords not in kinds(commands) for commands in done), "b1 may come back"
    state, done = run(state, register("b1", incarnation=2))
    assert kinds(done[0]) == [AcceptNode, AppendRecords]
    assert done[0][1].records == (MinimumRecord(feature=METADATA_VERSION, level=7),)
    state, _ = run(state, register("b1", "3.9", incarnation=3))
    assert state.minimums == {METADATA_VERSION: 7}
    refused = run(state, raise_to(6, UpdateKind.UNSAFE_DOWNGRADE))[1][0][0]
    assert not refused.outcome.ok


@pytest.mark.kip("584-7", "core")
def test_the_minimum_waits_for_voters_that_have_not_registered():
    state, _ = run(start(quorum=("c0", "c1")), register("b1"), register("c0", role=Role.CONTROLLER))
    assert state.minimums == {}
    state, _ = run(state, register("c1", role=Role.CONTROLLER))
    assert state.minimums == {METADATA_VERSION: 7}


@pytest.mark.parametrize(("level", "minimums"), [(6, {}), (7, {METADATA_VERSION: 7})])
def test_a_minimum_rises_up_to_the_level_in_force_and_not_above(level, minimums):
    state, _ = run(start(level), register("b1"))
    assert state.minimums == minimums


def test_the_last_old_node_may_also_be_unregistered():
    state, _ = run(start(), register("b1", "3.9"), register("b2"))
    _, done = run(state, NodeUnregistered(node_id="b1"))
    assert kinds(done[0]) == [AppendRecords]


@pytest.mark.kip("584-12", "core")
def test_before_the_migration_version_nothing_is_checked_or_finalized():
    state = replace(start(22), is_enabled=False)
    state, done = run(state, register("b1", "3.9"), raise_to(23))
    assert kinds(done[0]) == [AcceptNode]
    assert done[1][0].outcome.error is UpdateError.INVALID_REQUEST
    assert state.minimums == {}
