"""Drivers on fake client ports: the order of calls, newer levels, static members."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from assignor import ConfigError, MemberRefused, high_availability, sticky
from assignor.adapters.membership import member_options, new_driver
from assignor.embedding import lags_or_prior
from assignor.levels import LevelWatch
from assignor.rebalance import GroupMember
from encoding import (
    Assignment,
    EncodeError,
    TaskId,
    TopicPartition,
    decode_subscription,
    encode_assignment,
)
from probing.features import ASSIGNMENT_PROTOCOL, FinalizedLevels
from tests.assignor.adapters.members import Listener, cluster
from tests.assignor.adapters.membership.clients import FakeClient, connected
from tests.assignor.rebalance.groups import TOPOLOGY

TASKS = [TaskId(0, number) for number in range(4)]
CLUSTER = cluster(lines=4)


def member_of(number=1, **options):
    """A membership; calls of its listener and its observations are in one list."""
    calls = []
    listener = Listener()
    listener.calls = calls
    options = {"listener": listener, "strategy": sticky, "hooks": ()} | options
    membership, client, _ = connected(number=number, **options)
    membership.reporter.observer = lambda event: calls.append((type(event).__name__, None))
    return SimpleNamespace(driver=membership, client=client, calls=calls)


def rebalance(leader, members, generation=1):
    group = [
        GroupMember(member_id=name, user_data=member.driver.join())
        for name, member in members.items()
    ]
    answers = leader.driver.decide(CLUSTER, group)
    for name, member in members.items():
        pairs = [tuple(partition) for partition in answers[name].partitions]
        member.driver.take(pairs, answers[name].user_data, generation)


def test_the_calls_of_two_rebalances_of_an_eager_leader_in_order():
    leader = member_of()
    rebalance(leader, {"m1": leader})
    first = ["SubscriptionWritten", "AnswersDecided", "assigned", "AssignmentTaken"]
    assert [name for name, _ in leader.calls] == [*first, "AnswerHandled"]
    del leader.calls[:]
    rebalance(leader, {"m1": leader}, generation=2)
    assert leader.calls[0] == ("revoked", TASKS)
    assert [name for name, _ in leader.calls[1:]] == [*first, "AnswerHandled"]
    assert sorted(leader.driver.member.held.active) == TASKS


def test_members_on_ports_share_the_tasks():
    members = {"m1": member_of(1), "m2": member_of(2)}
    rebalance(members["m1"], members)
    held = [each.driver.member.held.active for each in members.values()]
    assert sorted(task for tasks in held for task in tasks) == TASKS
    assert [len(tasks) for tasks in held] == [2, 2]


def test_a_cooperative_member_names_what_its_client_owns_and_an_eager_one_nothing():
    for protocol, owned in (("cooperative", (TopicPartition("lines", 3),)), ("eager", ())):
        member = member_of(rebalance_protocol=protocol)
        member.client.owned = [TopicPartition("lines", 3)]
        member.driver.join()
        assert member.driver.member.owned == owned


def test_a_member_that_the_group_removed_reports_its_tasks_as_lost_before_it_joins():
    member = member_of()
    rebalance(member, {"m1": member})
    del member.calls[:]
    member.client.lost = True
    subscription = decode_subscription(member.driver.join())
    assert member.calls[:2] == [("MembershipLost", None), ("lost", TASKS)]
    assert subscription.prev_tasks == ()


def test_tasks_that_were_given_up_are_lost_with_the_membership_until_an_answer_comes():
    """What is kept of them until then is of no use any more."""
    member = member_of()
    rebalance(member, {"m1": member})
    member.driver.join()
    for is_lost, reported in ((False, []), (True, [("lost", [])]), (True, [])):
        del member.calls[:]
        member.client.lost = is_lost
        member.driver.join()
        assert [call for call in member.calls if call[1] is not None] == reported
    member.client.lost = False
    rebalance(member, {"m1": member}, generation=2)
    member.driver.join()
    del member.calls[:]
    member.driver.assignor_chosen("range")
    assert member.calls == [("MembershipLost", None), ("lost", [])]


def test_the_client_s_instance_id_makes_a_static_member():
    member = member_of(process_id=None, client=FakeClient(instance_id="i"))
    assert decode_subscription(member.driver.join()).native.instance_id == "i"


def test_a_member_refused_by_the_levels_raises_where_it_would_join():
    member = member_of()
    levels = FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: 10_000}, epoch=1)
    member.driver.member.levels_polled(levels)
    with pytest.raises(MemberRefused, match=r"assignment\.protocol=10000"):
        member.driver.join()
    assert "assignment.protocol=10000" in member.driver.reporter.failed


def does_not_fit(*_, **__):
    raise EncodeError("endpoint", value="h", version=11, reason="does not fit")


def gone():
    raise RuntimeError("the consumer is closed")


@pytest.mark.parametrize(
    ("broken", "sentence"), [("value", "does not fit"), ("client", "consumer is closed")]
)
def test_a_subscription_that_cannot_be_written_is_replaced_by_no_older_one(broken, sentence):
    member = member_of(rebalance_protocol="cooperative")
    rebalance(member, {"m1": member})
    member.client.owned = [TopicPartition("lines", 3)]
    if broken == "value":
        member.driver.member.subscription = does_not_fit
    else:
        member.client.owned_partitions = gone
    with pytest.raises(MemberRefused, match=sentence):
        member.driver.join()
    core = member.driver.member
    assert core.owned == (), "the partitions of the subscription in last_bytes"
    assert decode_subscription(core.last_bytes).native.owned_partitions == ()


def test_a_request_to_shut_down_reaches_every_member_once():
    members = {"m1": member_of(1), "m2": member_of(2)}
    rebalance(members["m1"], members)
    members["m2"].driver.request_shutdown()
    assert members["m2"].client.rejoins == 1
    rebalance(members["m1"], members, generation=2)
    assert all(each.driver.shutdown_requested for each in members.values())


def test_levels_are_polled_from_the_first_connection_and_once(monkeypatch):
    monkeypatch.setattr(LevelWatch, "start", LevelWatch._look)
    polls = []

    def source():
        polls.append(1)
        return FinalizedLevels()

    membership, client, _ = connected(level_source=source, level_poll_s=1_000)
    membership.connect(client)
    membership.close()
    assert polls == [1]


def at(level, epoch):
    return FinalizedLevels(levels={ASSIGNMENT_PROTOCOL: level}, epoch=epoch)


def rejoins_for(driver, client, levels):
    """Return how many rejoins newer levels cause."""
    before = client.rejoins
    driver.levels_found(levels)
    client.fire()
    return client.rejoins - before


def test_the_leader_asks_for_a_rebalance_for_newer_levels_and_a_follower_does_not():
    first, first_client, _ = connected(number=1)
    second, second_client, _ = connected(number=2)
    group = [GroupMember(member_id=n, user_data=d.join()) for n, d in (("a", first), ("b", second))]
    answers = first.decide(cluster(lines=4), group)
    for name, driver, client in (("a", first, first_client), ("b", second, second_client)):
        driver.take([tuple(p) for p in answers[name].partitions], answers[name].user_data, 1)
        client.fire()
    assert rejoins_for(first, first_client, at(11, 1)) == 1
    assert rejoins_for(second, second_client, at(11, 1)) == 0
    first.member.levels_polled(at(11, 1))
    assert rejoins_for(first, first_client, at(11, 1)) == 0, "it goes by them already"
    first.join()
    assert rejoins_for(first, first_client, at(101, 2)) == 0, "no member leads yet"


def test_under_a_jvm_leader_a_member_asks_for_a_rebalance_only_to_come_down():
    driver, client, _ = connected()
    driver.take([], encode_assignment(Assignment(version=11, commonly_supported_version=11)), 1)
    client.fire()
    assert rejoins_for(driver, client, at(101, 1)) == 0
    assert rejoins_for(driver, client, at(9, 1)) == 1


def test_a_static_member_has_a_process_id_by_its_names_unless_one_is_given():
    ids = []
    for options in ({"process_id": None}, {"process_id": None}, {}):
        driver, _, _ = connected(client=FakeClient(instance_id="i"), **options)
        assert driver.member.identity.instance_id == "i"
        ids.append(driver.member.identity.process_id)
    assert ids[0] == ids[1]
    assert ids[2] == UUID(int=1)
    with pytest.raises(ConfigError, match="group_instance_id"):
        connected(client=FakeClient(instance_id="not a name"))


@pytest.mark.parametrize(
    ("chosen", "before", "after"),
    [(None, high_availability, lags_or_prior), ("sticky", sticky, sticky)],
)
def test_lags_are_followed_unless_the_user_chose_a_strategy(chosen, before, after):
    driver, _, _ = connected(strategy=chosen)
    assert driver.member.leader.strategy is before
    driver.cluster = SimpleNamespace(begin=lambda *_, **__: None, is_on=True)
    driver.watch_cluster(None)
    assert driver.member.leader.strategy is after


def test_levels_are_not_polled_after_the_close():
    polls = []
    driver = new_driver(
        member_options(TOPOLOGY, "app", {"level_source": lambda: polls.append("poll")})
    )
    driver.close()
    driver.connect(FakeClient())
    driver.close()
    assert polls == []
