"""What a leader's client hears when the leader fails, and what the leader remembers."""

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
    one = Member(1, observer=seen.append)
    member = one.joined("m1")
    with pytest.raises(TaskAssignmentError, match=type(error).__name__):
        one.assignor.assign(Unreachable(error), [member])
    (why,) = [event.why for event in seen if isinstance(event, AssignmentFailed)]
    assert why.isprintable()
    assert any(type(error).__name__ in said for said in errors(one))


def test_memory_that_is_used_up_passes():
    one = Member(1)
    with pytest.raises(MemoryError):
        one.assignor.assign(Unreachable(MemoryError()), [one.joined("m1")])


def test_a_defect_of_the_leader_reaches_the_application_and_not_the_client(monkeypatch):
    real = placing.clients_of

    def fails(read, *arguments):
        if any(one.member.member_id == "m2" and not one.unreadable for one in read):
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
    one, two = members.values()
    rebalance(one, members, 1)
    assert sorted(one.assignor._claims.given.values()) == ["m1", "m1", "m2", "m2"]
    assert two.assignor._claims == NO_CLAIMS
    # An answer that never arrives is not remembered.
    before = one.assignor._claims
    one.assignor.assign(CLUSTER, [member.joined(name) for name, member in members.items()])
    assert one.assignor._claims is before
    # Another one leads: what this one knew is old.
    rebalance(two, members, 3)
    assert one.assignor._claims == NO_CLAIMS
    assert two.assignor._claims.given
