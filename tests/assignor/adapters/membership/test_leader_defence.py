"""Errors that a leader raises to its client, and the state that a leader keeps."""

import pytest

from assignor.errors import TaskAssignmentError
from assignor.observe import AssignmentFailed
from assignor.rebalance import NO_CLAIMS
from assignor.rebalance.leader import placing
from tests.assignor.adapters.membership.cooperative import CLUSTER, Member, rebalance


def errors(member):
    return [call[1] for call in member.listener.calls if call[0] == "error"]


class Unreachable:
    def __init__(self, error):
        self.error = error

    def partitions_for_topic(self, _):
        raise self.error


@pytest.mark.parametrize("error", [ValueError("a\nb"), OverflowError(), RuntimeError("gone")])
def test_whatever_fails_around_the_leader_is_a_documented_error(error):
    seen = []
    leader = Member(1, observer=seen.append)
    member = leader.joined("m1")
    with pytest.raises(TaskAssignmentError, match=type(error).__name__):
        leader.assignor.assign(Unreachable(error), [member])
    (why,) = [event.why for event in seen if isinstance(event, AssignmentFailed)]
    assert why.isprintable()
    assert any(type(error).__name__ in sentence for sentence in errors(leader))


def test_exhausted_memory_is_raised():
    leader = Member(1)
    with pytest.raises(MemoryError):
        leader.assignor.assign(Unreachable(MemoryError()), [leader.joined("m1")])


def test_a_defect_of_the_leader_reaches_the_application_and_not_the_client(monkeypatch):
    real = placing.clients_of

    def fails(read, *arguments):
        if any(
            read_member.member.member_id == "m2" and not read_member.why_quarantined
            for read_member in read
        ):
            raise OverflowError("too large")
        return real(read, *arguments)

    monkeypatch.setattr(placing, "clients_of", fails)
    members = {"m1": Member(1), "m2": Member(2), "m3": Member(3)}
    rebalance(members["m1"], members, 1)
    (why,) = errors(members["m1"])
    assert "m2" in why
    assert "OverflowError" in why
    assert len(members["m1"].assignor.tasks.active) + len(members["m3"].assignor.tasks.active) == 4


def test_a_leader_remembers_what_reached_the_group_and_only_while_it_leads():
    members = {"m1": Member(1), "m2": Member(2)}
    leader, other = members.values()
    rebalance(leader, members, 1)
    assert sorted(leader.assignor._driver.member.memory.claims.given.values()) == [
        "m1",
        "m1",
        "m2",
        "m2",
    ]
    assert other.assignor._driver.member.memory.claims == NO_CLAIMS
    # An answer that never arrives is not remembered.
    before = leader.assignor._driver.member.memory.claims
    leader.assignor.assign(CLUSTER, [member.joined(name) for name, member in members.items()])
    assert leader.assignor._driver.member.memory.claims is before
    # Another member leads: the state of the first is outdated.
    rebalance(other, members, 3)
    assert leader.assignor._driver.member.memory.claims == NO_CLAIMS
    assert other.assignor._driver.member.memory.claims.given
