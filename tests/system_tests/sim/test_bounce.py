"""Whole simulated bounces: the promises of KIP-268."""

import itertools

import pytest

from probing import find_release
from system_tests.sim import (
    FAULTS,
    BounceOptions,
    World,
    WorldSetup,
    run_bounce,
    should_work,
)
from system_tests.sim.events import Answered, Ended, Rejoined, Settled, Started, Took, Wrote


def bounce(old, new, seed=0, **options):
    return run_bounce(BounceOptions(seed=seed, old=old, new=new, **options))


def of(outcome, kind):
    return [event for event in outcome.trace if isinstance(event, kind)]


def settled_world(releases, *, seed=1, static=False):
    """A settled group, one process for each release."""
    world = World(WorldSetup(seed=seed, processes=len(releases), static=static))
    for process, release in enumerate(releases):
        world.start(process, release)
    assert world.run(until=world.is_settled, within_ms=100_000)
    return world


@pytest.mark.kip("268-4", "sim")
@pytest.mark.parametrize(
    ("release", "upgrade_from", "version"),
    [
        ("3.9.1", None, 11),
        ("2.6.0", None, 7),
        ("2.3.1", "0.10.0", 1),
        ("2.3.1", "1.1", 2),
        ("3.9.1", "2.4", 11),
        ("native", None, 11),
        ("native", "0.10.2", 2),
    ],
)
def test_a_member_starts_with_its_latest_version_unless_it_is_pinned(
    release, upgrade_from, version
):
    world = World(WorldSetup(seed=1, processes=1))
    world.start(0, release, upgrade_from)
    world.run(until=lambda: any(isinstance(event, Wrote) for event in world.trace), within_ms=9_000)
    assert next(event for event in world.trace if isinstance(event, Wrote)).used_version == version


@pytest.mark.kip("268-5", "sim")
@pytest.mark.parametrize(
    ("old", "content", "numbers"),
    [("2.1.1", "empty", (4, 4)), ("2.3.1", "empty", (4, 4)), ("2.8.2", "normal", (9, 9))],
)
def test_a_leader_answers_a_version_that_it_does_not_know(old, content, numbers):
    outcome = bounce(old, "3.9.1" if old == "2.8.2" else "2.4.1", force=True)
    probed = [event for event in of(outcome, Answered) if event.future]
    assert probed
    placed = 0
    for event in probed:
        future = [answer for answer in event.answers if answer.thread in event.future]
        assert [answer.content for answer in future] == [content] * len(future)
        for answer in future:
            assert (answer.version, answer.commonly_supported_version) == numbers
            placed += len(answer.partitions)
    assert bool(placed) == (content == "normal")


@pytest.mark.kip("268-6", "sim")
@pytest.mark.parametrize("old", ["2.1.1", "2.3.1", "2.5.1", "2.8.2"])
def test_the_others_have_tasks_in_the_same_rebalance(old):
    outcome = bounce(old, "2.4.1" if old < "2.4" else "3.9.1", force=True)
    probed = [event for event in of(outcome, Answered) if event.future]
    assert probed
    for event in probed:
        others = [answer for answer in event.answers if answer.thread not in event.future]
        assert all(answer.partitions for answer in others)
        assert all(answer.content in ("normal", "previous") for answer in others)


@pytest.mark.kip("268-7", "sim")
@pytest.mark.parametrize("old", ["2.1.1", "2.3.1", "2.5.1", "2.8.2"])
def test_a_probing_member_comes_down_to_what_is_offered_and_rejoins_with_other_bytes(old):
    outcome = bounce(old, "2.4.1" if old < "2.4" else "3.9.1", force=True)
    latest = find_release(old).latest_version
    lowered = [event for event in of(outcome, Rejoined) if event.used_after < event.used_before]
    assert len(lowered) >= 1
    for event in lowered:
        assert (event.cause, event.used_after) == ("version", latest)
        wrote = [
            w for w in of(outcome, Wrote) if w.thread == event.thread and w.at_ms >= event.at_ms
        ]
        assert wrote[0].used_version == latest
        assert wrote[0].at_ms - event.at_ms <= 200


@pytest.mark.kip("268-8", "sim")
def test_while_one_member_writes_a_version_all_members_are_answered_in_it():
    for seed in range(6):
        for event in of(bounce("2.8.2", "3.9.1", seed=seed), Answered):
            lowest = min(event.used_versions)
            assert {answer.version for answer in event.answers} == {lowest}
            assert event.commonly_supported_version >= lowest


@pytest.mark.kip("268-9", "sim")
@pytest.mark.parametrize(("old", "new"), [("2.8.2", "3.9.1"), ("2.4.1", "2.5.1"), ("3.1.2", "4.1")])
def test_lowered_members_go_up_again_when_all_can(old, new):
    latest = find_release(new).latest_version
    for seed in range(6):
        outcome = bounce(old, new, seed=seed)
        assert outcome.ok
        assert {used for _, used in of(outcome, Settled)[-1].used_versions} == {latest}
        lifted = [event for event in of(outcome, Rejoined) if event.used_after > event.used_before]
        lowered = [event for event in of(outcome, Rejoined) if event.used_after < event.used_before]
        assert lowered
        assert {event.thread for event in lifted} == {event.thread for event in lowered}


@pytest.mark.kip("268-9", "sim")
def test_a_lowered_native_member_goes_up_again_while_a_jvm_member_leads():
    world = World(WorldSetup(seed=1, processes=3))
    world.member_ids.next_leaders = ("a",)
    for process, release in enumerate(("2.8.2", "3.9.1", "native")):
        world.start(process, release)
        assert world.run(until=world.is_settled, within_ms=100_000)
    native = world.threads[2]
    assert native.streams.state.used_version == 9
    world.member_ids.next_leaders = ("b",)
    world.stop(0)
    world.start(0, "3.9.1")
    assert world.run(until=world.is_settled, within_ms=100_000)
    assert world.leader().name == "b"
    assert [thread.streams.state.used_version for thread in world.threads] == [11, 11, 11]
    lifted = [
        event
        for event in world.trace
        if isinstance(event, Rejoined) and event.thread == native.name
    ]
    assert (lifted[-1].used_before, lifted[-1].used_after) == (9, 11)


@pytest.mark.parametrize(
    ("old", "new"), [("2.8.2", "3.9.1"), ("3.1.2", "native"), ("2.5.1", "2.6")]
)
def test_every_order_and_every_next_leader_comes_to_the_same_end(old, new):
    promised = {find_release(new).latest_version, *find_release(new).native_versions}
    for order in itertools.permutations(range(3)):
        for leader in "abc":
            world = settled_world([old] * 3)
            world.member_ids.next_leaders = (leader,)
            for process in order:
                world.stop(process)
                world.run_for(1_000)
                world.start(process, new)
                assert world.run(until=world.is_settled, within_ms=400_000), (order, leader)
            used = {thread.streams.state.used_version for thread in world.threads}
            assert used <= promised, (order, leader)


@pytest.mark.kip("268-13", "sim")
@pytest.mark.parametrize(
    ("old", "new", "pinned"),
    [("0.10.0.1", "2.3.1", 1), ("0.10.2.1", "2.0.1", 2), ("1.1.1", "3.9.1", 2)],
)
def test_two_bounces_lead_from_below_the_probing_versions(old, new, pinned):
    latest = find_release(new).latest_version
    for seed in range(6):
        outcome = bounce(old, new, seed=seed)
        assert outcome.ok, outcome.broken
        assert len(outcome.plan.stages) == 2
        for event in of(outcome, Answered):
            if pinned in event.used_versions:
                assert {answer.version for answer in event.answers} == {pinned}
        last = of(outcome, Answered)[-1]
        assert {answer.version for answer in last.answers} == {latest}
        assert pinned not in last.used_versions


@pytest.mark.kip("268-14", "sim")
@pytest.mark.parametrize(
    ("old", "new"),
    [("0.10.0.1", "3.9.1"), ("2.0.1", "2.3.0"), ("2.3.1", "4.1.0"), ("1.1.0", "native")],
)
def test_offline_nothing_needs_a_pin(old, new):
    outcome = bounce(old, new, offline=True)
    assert outcome.ok, outcome.broken
    assert [stage.upgrade_from for stage in outcome.plan.stages] == [None]
    assert all(event.upgrade_from is None for event in of(outcome, Started))
    if new != "native":
        assert outcome.rebalances.version == ()


@pytest.mark.kip("268-16", "sim")
@pytest.mark.parametrize("fault", [*FAULTS, "all"])
def test_an_upgrade_survives(fault):
    faults = frozenset(FAULTS if fault == "all" else [fault])
    for seed, (old, new) in enumerate(
        [("2.3.1", "3.9.1"), ("3.1.2", "native"), ("3.4.1", "3.9.1"), ("native", "next")] * 3
    ):
        outcome = bounce(old, new, seed=seed, faults=faults)
        assert outcome.ok, (seed, outcome.broken[0])


@pytest.mark.kip("268-16", "sim")
@pytest.mark.parametrize(("old", "new"), [("3.4.1", "3.9.1"), ("3.1.2", "native")])
def test_an_upgrade_survives_a_crash_at_every_step(old, new):
    world = settled_world([old] * 3)
    world.stop(2)
    world.run_for(500)
    world.start(2, new)
    moments = []
    while len(moments) < 4 or not world.is_settled():
        moments.append(world.copy())
        world.step()
    for moment in moments[:: max(1, len(moments) // 40)]:
        for victim in range(3):
            branch = moment.copy()
            branch.kill(victim)
            branch.do_later(700, "restart", victim)
            assert branch.run(until=branch.is_settled, within_ms=400_000)
            assert {p for thread in branch.threads for p in thread.owned} == set(branch.task_of)


@pytest.mark.kip("268-17", "sim")
@pytest.mark.parametrize(
    ("old", "new"),
    [("native", "next"), ("next", "native"), ("3.9.1", "next"), ("native", "incompatible")],
)
def test_a_next_version_with_other_layouts_is_bounced_to_and_back(old, new):
    for seed in range(5):
        outcome = bounce(old, new, seed=seed)
        assert outcome.ok, outcome.broken
        world_after = {used for _, used in of(outcome, Settled)[-1].used_versions}
        assert world_after <= {11, *find_release(new).native_versions}
    if find_release(old).is_native:
        written = {event.used_version for event in of(outcome, Wrote)}
        assert written >= {101}


def test_after_a_bounce_the_next_rebalance_writes_the_next_version():
    world = settled_world(["native", "native"])
    for process in (0, 1):
        world.stop(process)
        world.start(process, "next")
        assert world.run(until=world.is_settled, within_ms=100_000)
    world.stop(0)
    assert world.run(until=world.is_settled, within_ms=100_000)
    assert world.threads[1].streams.state.used_version == 102


@pytest.mark.kip("268-18", "sim")
@pytest.mark.parametrize(
    ("old", "value"), [("0.10.0.1", "0.10.0"), ("0.10.2.1", "0.10.2"), ("1.1.1", "1.1")]
)
def test_without_the_pin_the_error_names_the_value_to_set(old, value):
    outcome = bounce(old, "2.3.1", force=True)
    first = outcome.broken[0]
    assert first.rule == "nobody dies"
    assert f"set upgrade.from={value}" in first.sentence


@pytest.mark.parametrize(("old", "new"), [("native", "native"), ("native", "next")])
def test_native_members_cost_no_rebalance_for_a_version(old, new):
    for seed in range(8):
        outcome = bounce(old, new, seed=seed, members=4)
        assert outcome.ok, outcome.broken
        assert outcome.rebalances.version == ()


def test_members_bounced_under_kafkas_rules_cost_one_rebalance_each_and_one_at_the_end():
    most = 0
    for seed in range(30):
        outcome = bounce("2.8.2", "3.9.1", seed=seed)
        assert outcome.ok
        most = max(most, len(outcome.rebalances.version))
        assert len(outcome.rebalances.version) <= outcome.version_bound == 4
    assert most >= 3


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_thread_is_a_member(threads):
    outcome = bounce("3.1.2", "3.9.1", threads=threads, members=2)
    assert outcome.ok, outcome.broken
    assert len(outcome.lanes) == 2 * threads


def test_static_members_keep_their_place_while_they_are_bounced_in_time():
    world = settled_world(["3.8.1"] * 3, static=True)
    generation = world.threads[0].generation
    for process in range(3):
        world.stop(process)
        world.run_for(5_000)
        world.start(process, "3.9.1")
        assert world.run(until=world.is_settled, within_ms=100_000)
    assert {thread.generation for thread in world.threads} == {generation}


def test_pairs_are_drawn_among_the_paths_that_should_work():
    for seed in range(20):
        outcome = run_bounce(BounceOptions(seed=seed))
        assert outcome.ok, outcome.broken
        old, new = find_release(outcome.plan.old), find_release(outcome.plan.new)
        assert should_work(outcome.asked, old, new)


def test_equal_seeds_leave_equal_traces():
    options = BounceOptions(seed=5, faults=frozenset(FAULTS))
    assert run_bounce(options) == run_bounce(options)


def test_every_recipient_adopts_its_answer():
    outcome = bounce("3.8.1", "3.9.1")
    answered = {
        (a.member_id, event.generation) for event in of(outcome, Answered) for a in event.answers
    }
    took = {(event.member_id, event.generation) for event in of(outcome, Took)}
    assert took <= answered


@pytest.mark.parametrize("session_ms", [20_000, 400_000])
def test_offline_members_can_wait_for_the_sessions_of_all_members(session_ms):
    options = {"offline": True, "waits_for_sessions": True, "session_timeout_ms": session_ms}
    outcome = bounce("3.2.3", "3.9.2", **options)
    assert outcome.ok, outcome.broken
    stopped = max(event.at_ms for event in of(outcome, Ended))
    downs = [event.at_ms - stopped for event in of(outcome, Started) if event.at_ms > stopped]
    assert session_ms - 3_000 <= min(downs) <= session_ms + 60_000
    assert len(set(downs)) == 3
