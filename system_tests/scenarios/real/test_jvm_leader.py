"""A JVM member leads and a native member joins: its assignment, and that no member dies."""

import pytest

from probing import NEWEST_KAFKA
from system_tests.live.events import AssignmentTaken, RejoinRequested, SubscriptionWritten

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

EMPTY_ANSWER_SIZE = 24
STEPS = (SubscriptionWritten, AssignmentTaken, RejoinRequested)


def rejoins_for_the_version(member):
    return [event for event in member.all(RejoinRequested) if event.for_version]


def answers(member):
    return [(event.version, len(event.active_tasks)) for event in member.all(AssignmentTaken)]


def share_the_tasks(group):
    return all(len(member.active) == 4 for member in group.members.values())


@pytest.mark.parametrize(
    "release",
    [
        pytest.param("3.9.1", marks=pytest.mark.nightly("10 s; every run has the newest release")),
        NEWEST_KAFKA,
    ],
)
def test_a_jvm_leader_of_version_11_costs_no_rebalance_for_the_version(
    word_count_on, kafka_4, release
):
    group = word_count_on(kafka_4)
    group.start("jvm", release)
    group.settle()
    native = group.start("native", "native")
    described = group.settle()
    assert dict(described.used_versions) == {"jvm": 11, "native": 11}
    assert rejoins_for_the_version(native) == []
    assert share_the_tasks(group)
    written, counted = group.finish()
    assert counted == written
    assert group.failures() == {}


@pytest.mark.kip("268-7", "real")
@pytest.mark.nightly(
    "10 s each; every run has the newest release from 101, and the oldest from 11",
    but=(f"{NEWEST_KAFKA} from 101", "2.3.1 from 11"),
)
@pytest.mark.parametrize(
    ("release", "start_version", "versions"),
    [
        (NEWEST_KAFKA, "latest", (101, 11)),
        ("3.9.1", "latest", (101, 11)),
        ("2.8.2", None, (11, 9)),
        ("2.3.1", "latest", (101, 4)),
        ("2.3.1", None, (11, 4)),
    ],
    ids=[
        f"{NEWEST_KAFKA} from 101",
        "3.9.1 from 101",
        "2.8.2 from 11",
        "2.3.1 from 101",
        "2.3.1 from 11",
    ],
)
def test_a_native_member_above_a_jvm_leaders_version_rejoins_once_with_a_lower_one(
    word_count_on, kafka_3_9, release, start_version, versions
):
    began, agreed = versions
    group = word_count_on(kafka_3_9)
    group.start("jvm", release)
    group.settle()
    native = group.start("native", "native", start_version=start_version)
    described = group.settle()
    assert [event.used_version_after for event in rejoins_for_the_version(native)] == [agreed]
    wrote = [event.version for event in native.all(SubscriptionWritten)]
    assert sorted(set(wrote)) == [agreed, began]
    assert wrote == sorted(wrote, reverse=True)
    steps = [type(report.event) for report in native.reports if isinstance(report.event, STEPS)]
    first = steps.index(AssignmentTaken)
    assert steps[first : first + 3] == [AssignmentTaken, RejoinRequested, SubscriptionWritten]
    # Moved tasks are withheld by some releases, and 2.3.1 has nothing at all for a future member.
    # A JVM that has given them up joins again at once: if the group rebalances before the native
    # member has its first answer, it writes a third time (the first join takes two, for a member
    # id) and may be answered with tasks that are free by then.
    version, tasks = answers(native)[0]
    assert version == agreed
    assert tasks == 0 or wrote.count(began) > 2
    if release == "2.3.1" and tasks == 0:
        # Every member here has an endpoint, and yet: six numbers, two of them versions.
        assert native.all(AssignmentTaken)[0].size == EMPTY_ANSWER_SIZE
    assert dict(described.used_versions) == {"jvm": agreed, "native": agreed}
    assert share_the_tasks(group)
    written, counted = group.finish()
    assert counted == written
    assert group.failures() == {}


def test_a_pinned_jvm_leader_accepts_the_default_start(word_count_on, kafka_3_9):
    group = word_count_on(kafka_3_9)
    group.start("jvm", "3.9.1", upgrade_from="1.1")
    group.settle()
    native = group.start("native", "native")
    described = group.settle()
    assert dict(described.used_versions) == {"jvm": 2, "native": 11}
    assert dict(described.answered_versions) == {"jvm": 2, "native": 2}
    assert rejoins_for_the_version(native) == []
    assert share_the_tasks(group)
    written, counted = group.finish()
    assert counted == written
    assert group.failures() == {}


def test_a_pinned_jvm_leader_fails_at_the_optimistic_start(word_count_on, kafka_3_9):
    """The window of KIP-268 with `upgrade.from`, and why `latest` is an opt-in."""
    group = word_count_on(kafka_3_9)
    jvm = group.start("jvm", "3.9.1", upgrade_from="1.1")
    group.settle()
    group.start("native", "native", start_version="latest")
    jvm.wait_for("its end", lambda: jvm.failures)
    assert "TaskAssignmentException" in jvm.failures[0]


@pytest.mark.nightly("20 s; every run holds the level", but=("True",))
@pytest.mark.parametrize("hold_back", [False, True])
def test_who_may_roll_back_to_a_pinned_jvm_leader_holds_the_level_at_11(
    word_count_on, kafka_3_9, hold_back
):
    """A native member that writes 101 returns to a group that a pinned JVM member now leads."""
    group = word_count_on(kafka_3_9, session_timeout_ms=10_000)
    native = group.start("native", "native", hold_back=hold_back)
    group.settle()
    group.start("other", "native", hold_back=hold_back)
    group.settle()
    group.stop("other")
    group.settle()
    wrote = [event.version for event in native.all(SubscriptionWritten)]
    assert wrote[-1] == (11 if hold_back else 101)
    native.pause()
    try:
        jvm = group.start("jvm", "3.9.1", upgrade_from="1.1")
        group.wait("the JVM's takeover", lambda: len(jvm.active) == 8)
    finally:
        native.resume()
    if not hold_back:
        jvm.wait_for("its end", lambda: jvm.failures)
        assert "TaskAssignmentException" in jvm.failures[0]
        return
    described = group.settle()
    assert dict(described.used_versions) == {"jvm": 2, "native": 11}
    assert share_the_tasks(group)
    assert group.failures() == {}


@pytest.mark.nightly("7 s; every run has a native member that joins", but=("native",))
@pytest.mark.parametrize("joins", ["2.3.1", "native"])
def test_a_leader_of_2_0_ends_at_any_future_member_when_there_are_two_subtopologies(
    word_count_on, kafka_3_9, joins
):
    """Its assignment to a future member pairs tasks and partitions wrongly, JVM or native."""
    group = word_count_on(kafka_3_9)
    jvm = group.start("jvm", "2.0.1")
    group.settle()
    group.start("new", joins)
    jvm.wait_for("its end", lambda: jvm.failures)
    assert "NullPointerException" in jvm.failures[0]
