"""One member writes arbitrary values; the others keep every task."""

from dataclasses import replace

import pytest

from assignor import (
    GroupMember,
    LeaderKnowledge,
    assign_group,
    high_availability,
    sticky,
)
from assignor.rebalance.leader import placing
from encoding import (
    RUNNING,
    PartitionRange,
    TaskOffsetSums,
    TopicPartition,
)
from tests.assignor.rebalance.groups import start
from tests.assignor.rebalance.leader.hostile import (
    ALL,
    ENDS,
    TASKS,
    group,
    lead,
    placed,
    settings,
    written,
)
from tests.costs import cost_of


@pytest.mark.parametrize("strategy", [sticky, high_availability])
@pytest.mark.parametrize("offset_sum", [-(2**63), -(2**63) + 1, -4, 2**63 - 1])
def test_offset_sums_that_cannot_be_are_lags_that_can(strategy, offset_sum):
    blobs = group("3.9", sums=dict.fromkeys(TASKS, offset_sum))
    lead(blobs, LeaderKnowledge(end_offset_sums=ENDS), strategy=strategy)


@pytest.mark.parametrize("release", ["native", "3.9"])
@pytest.mark.parametrize(
    "endpoint",
    [
        "host:" + "1" * 5000,
        "host:99999999999",
        f"host:{2**31}",
        "é" * 30_000 + ":80",
        "localhost",
        "a\nb:80",
        "x" * 60_000 + ":80",
    ],
)
def test_an_endpoint_that_cannot_be_is_none_and_its_member_is_named(release, endpoint):
    answer = lead(group(release, user_endpoint=endpoint))
    warnings = [w for w in answer.warnings if "x" in w and "endpoint" in w]
    assert len(warnings) == 1
    assert warnings[0].isprintable()
    assert sum(len(member_answer.user_data) for member_answer in answer.answers.values()) < 4_000


def test_an_impossible_epoch_is_ignored():
    lead(group(native={"view_epoch": 2**63 - 1}, user_endpoint="h:1"))


@pytest.mark.parametrize(
    "levels",
    [
        {"adopted_levels": {"x": 1}},
        {"adopted_levels": {"x": 1}, "feature_ranges": {"x": (1, 1)}},
        {"adopted_levels": {"x" * 5_000: 1}, "feature_ranges": {"x" * 5_000: (1, 1)}},
    ],
)
def test_a_level_that_one_member_alone_names_makes_nobody_wait(levels):
    answer = lead(group(native={"adopted_epoch": 2**40, **levels}))
    assert any("x" in w and "level" in w for w in answer.warnings)
    assert answer.answers["m0"].assignment.active_tasks


def test_two_threads_of_a_process_that_name_a_level_count_as_a_single_member():
    levels = {"adopted_levels": {"x": 1}, "adopted_epoch": 7}
    second = written(start(number=2), "y", native=levels)
    answer = lead([*group(native=levels), second])
    assert {a.assignment.native.feature_epoch for a in answer.answers.values()} == {-1}
    for name in ("x", "y"):
        assert any(f"member {name} alone reports" in warning for warning in answer.warnings)


def test_a_level_that_two_members_name_counts_as_before():
    levels = {"adopted_levels": {"x": 1}, "adopted_epoch": 7}
    blobs = group(native=levels)
    blobs[1] = written(start(number=1), "m1", native=levels)
    answer = assign_group(settings(), blobs, {"lines": 6})
    assert {
        member_answer.assignment.native.feature_epoch for member_answer in answer.answers.values()
    } == {7}


@pytest.mark.parametrize("count", [80_000, 1_000_000, 4_000_000])
def test_unknown_tasks_cost_next_to_nothing(count):
    sums = TaskOffsetSums.from_columns([0] * count, range(count), [RUNNING] * count)
    native = {"sizes": (count,)}
    blobs = group(native=native, task_offset_sums=sums)
    assign_group(settings(), group(), {"lines": 6})
    limit = 15 + count / 80_000
    assert cost_of(lambda: lead(blobs), limit=limit) <= limit


@pytest.mark.parametrize("size", [20, 180])
def test_a_group_of_jvm_members_with_long_endpoints_fits_its_record(size):
    host = "h" * 250
    blobs = [
        written(start("3.9", number=n), f"m{n}", user_endpoint=f"{host}:{n + 1}")
        for n in range(size)
    ]
    answer = lead(blobs, group_record_limit=1_048_588)
    total = sum(len(member_answer.user_data) for member_answer in answer.answers.values())
    assert total < 1_048_588
    assert any("no view" in w for w in answer.warnings) == (size > 100)


def test_a_quarantined_member_keeps_no_partition_that_no_task_reads():
    strange = tuple(TopicPartition("elsewhere", p) for p in range(1_000))
    answer = lead(
        [*group()[:2], GroupMember(member_id="x", user_data=b"\0", owned_partitions=strange)]
    )
    assert answer.answers["x"].partitions == ()


def test_two_lists_of_partitions_that_differ_are_a_contradiction():
    native = {"owned_partitions": (PartitionRange("lines", 0, 2),), "owned_generation": 1}
    member = written(start(number=9), "x", native=native)
    member = replace(member, owned_partitions=ALL)
    answer = assign_group(settings(), [*group()[:2], member], {"lines": 6})
    assert "contradicts" in answer.quarantined["x"]
    assert answer.answers["x"].partitions == ALL[:2]
    assert placed(answer) == TASKS[2:]


# The last fallback


def broken_for(*names):
    """A step of the leader that fails for these members."""

    def fails(read, *arguments, **options):
        if any(member.id in names and not member.why_quarantined for member in read):
            raise ValueError("no such thing\nas this")
        return real(read, *arguments, **options)

    real = placing.clients_of
    return fails


@pytest.mark.parametrize("names", [("x",), ("m1", "x"), ("m1",)])
def test_whatever_a_step_raises_the_faulty_member_is_found_and_the_others_continue(
    monkeypatch, names
):
    monkeypatch.setattr("assignor.rebalance.leader.placing.clients_of", broken_for(*names))
    others = [
        GroupMember(member_id=f"n{n}", user_data=start(number=n).subscription()[1])
        for n in range(3, 6)
    ]
    answer = lead([*group(), *others])
    assert sorted(answer.quarantined) == sorted(names)
    assert len(answer.faults) == 1
    assert all(name in answer.faults[0] for name in names)
    assert "ValueError" in answer.faults[0]
    assert answer.faults[0].isprintable()


def test_where_no_member_is_the_cause_tasks_stay_where_they_run(monkeypatch):
    def fails(*_, **__):
        raise OverflowError("always")

    monkeypatch.setattr("assignor.rebalance.leader.placing.clients_of", fails)
    members = {f"m{n}": start(number=n) for n in range(2)}
    blobs = [GroupMember(member_id=n, user_data=m.subscription()[1]) for n, m in members.items()]
    answer = lead(blobs)
    assert answer.quarantined == {}
    assert "OverflowError" in answer.faults[0]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, GeneratorExit])
def test_errors_that_no_member_causes_are_raised(monkeypatch, error):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr("assignor.rebalance.leader.placing.clients_of", fails)
    with pytest.raises(error):
        assign_group(settings(), group(), {"lines": 6})


def test_a_strategy_that_ends_the_process_has_failed():
    def ends(_):
        raise SystemExit(0)

    answer = lead(group(), strategy=ends)
    assert any("SystemExit" in w for w in answer.warnings)
