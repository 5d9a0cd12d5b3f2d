"""What JVM members write as their former tasks, and how old leaders use it."""

import time
from collections import Counter
from itertools import chain

import pytest

from assignor.adapters.admin import Target, open_admin
from assignor.adapters.admin import describe_group as ask_for_group
from system_tests.live import events
from system_tests.sim.world.behaviour import behaviour_of

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

SESSION_MS = 60_000
OLD = "2.3.1"


@pytest.mark.parametrize(
    ("release", "pin"),
    [
        pytest.param(
            OLD, None, marks=pytest.mark.nightly("20 s; every run has the newest release")
        ),
        pytest.param(
            "2.8.2",
            "2.3",
            marks=pytest.mark.nightly("20 s; every run has the newest release"),
        ),
        ("3.9.1", "2.3"),
    ],
)
def test_the_model_names_given_up_tasks_as_a_real_member_does(
    word_count_on, kafka_3_9, release, pin
):
    group = word_count_on(kafka_3_9)
    group.start("first", release, upgrade_from=pin)
    group.settle()
    group.start("second", release, upgrade_from=pin)
    described = {member.client: member for member in group.settle().members}
    named = described["first"].subscription.prev_tasks
    assert behaviour_of(release, pin).names_given_up_tasks is bool(named)
    assert len(named) in {0, 8}, "all that it ran, or none"


def members_of(group):
    """The number of members that the coordinator knows."""
    with open_admin(Target(servers=(group.bootstrap_servers,), timeout_ms=120_000)) as admin:
        return len(ask_for_group(admin, group.application_id).members)


def rebalances(member):
    return sum(change.state == "REBALANCING" for change in member.all(events.StateChanged))


@pytest.mark.nightly("five JVM members of released programs, which do not change; 30 s")
def test_a_leader_before_2_4_gives_a_task_to_two_members_while_a_newer_one_joins(
    word_count_on, kafka_3_9
):
    """A member that missed an assignment names tasks that have moved, and gets them back."""
    group = word_count_on(kafka_3_9, session_timeout_ms=SESSION_MS)
    first = group.start("first", OLD)
    group.settle()
    late = group.start("late", OLD)
    group.settle()
    ran = set(late.active)

    # The answer that takes tasks from `late` finds it standing still, after its JoinGroup. With two
    # tasks for each of four members, what it loses goes to members that are new.
    first.pause()
    before = rebalances(late)
    gainers = [group.start(name, OLD) for name in ("left", "right")]
    late.wait_for("a rebalance", lambda: rebalances(late) > before)
    group.wait("four members", lambda: members_of(group) == 4)
    time.sleep(1)  # it writes its JoinGroup right after that, and the group waits for `first`
    late.pause()
    first.resume()
    for gainer in gainers:
        gainer.wait_for("two tasks", lambda member=gainer: len(member.active) == 2)

    # The leader leaves and a newer member joins; `late` stays, and an old member leads.
    group.stop("first")
    newer = group.start("newer", "3.9.1", upgrade_from="2.3")
    group.wait("the newer member", lambda: members_of(group) == 4)
    newer.pause()
    late.resume()
    group.wait("an answer of an old leader", lambda: group.describe().state == "Stable")
    answered = [member for member in group.describe().members if member.client != newer.name]
    for member in answered:
        assert set(member.assignment.active_tasks) == set(member.subscription.prev_tasks)
    # As the leader's answers have it; what members say that they run may be older or newer.
    given = {
        member.client: {f"{t.subtopology}_{t.partition}" for t in member.assignment.active_tasks}
        for member in answered
    }
    twice = {task for task, count in Counter(chain(*given.values())).items() if count > 1}
    gained = given[gainers[0].name] | given[gainers[1].name]
    assert twice == ran & given[late.name] & gained
    assert twice

    # It ends with the rebalance that the newer member asks for.
    newer.resume()
    group.settle()
