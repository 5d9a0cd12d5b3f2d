"""Members that limit a group's version, the reason, and possible leaders."""

import pytest

from assignor.inspection.group import inspect_group
from encoding import NativeAssignment, NativeSubscription, TaskId
from tests.assignor.inspection.described_groups import FACTS, group_of, member

T00, T01 = TaskId(0, 0), TaskId(0, 1)


@pytest.mark.parametrize(
    ("changes", "kind", "why"),
    [
        ({"used": 2, "supported": -1, "consumer": 3}, "forgotten pin", "3.4.0 to 3.9.2"),
        ({"used": 2, "supported": -1, "consumer": 0}, "pin or old program", "0.10.1.0 to 1.1.1"),
        ({"used": 1, "supported": -1, "consumer": 1}, "forgotten pin", "to 0.10.0"),
        ({"used": 4, "supported": 4, "consumer": 0}, "old program", "2.1.0 to 2.3.1"),
        ({"used": 10, "supported": 10, "consumer": 1}, "old program", "3.0.0 to 3.1.2"),
    ],
)
def test_who_holds_the_version_down_and_why(changes, kind, why):
    low = member("low", active=[T00], **changes)
    look = inspect_group(group_of(low, member("new", active=[T01])), FACTS)
    (holder,) = look.versions.holders
    assert (holder.client, holder.kind) == ("low", kind)
    assert why in holder.why
    assert look.versions.possible == 11


def test_a_pin_that_all_members_still_have_is_named():
    pinned = [
        member(name, used=2, supported=-1, active=[task]) for name, task in (("a", T00), ("b", T01))
    ]
    look = inspect_group(group_of(*pinned), FACTS)
    assert [holder.client for holder in look.versions.holders] == ["a", "b"]
    assert (look.versions.in_force, look.versions.possible) == (2, 11)


def test_a_native_member_reports_its_pin():
    pinned = member(
        "native", used=2, supported=-1, consumer=1, active=[T00],
        native=NativeSubscription(pinned_version=2),
    )  # fmt: skip
    look = inspect_group(group_of(pinned, member("new", active=[T01])), FACTS)
    (holder,) = look.versions.holders
    assert holder.kind == "forgotten pin"
    assert holder.why == "it reports that upgrade.from pins it to version 2"


def test_the_leader_is_who_can_have_written_the_answers():
    old = member("old", used=4, supported=4, consumer=0, active=[T00])
    new = member("new", active=[T01], answer={"version": 4, "commonly_supported_version": 4})
    look = inspect_group(group_of(old, new), FACTS)
    # Answers are in version 3 of the consumer protocol.
    assert look.leader.candidates == ("new",)
    assert look.leader.known
    assert inspect_group(group_of(new), FACTS).leader.why == "the only member"


def native_member(name, task, **fields):
    """A native member at version 11 with a native leader; it reads 101."""
    return member(
        name,
        active=[task],
        consumer=1,
        native=NativeSubscription(adopted_levels={"assignment.protocol": 11}, adopted_epoch=3),
        answer={"native": NativeAssignment(next_version=11, **fields)},
    )


def test_a_finalized_level_that_holds_native_members_is_reported():
    look = inspect_group(group_of(native_member("a", T00), native_member("b", T01)), FACTS)
    assert look.versions.level == 11
    assert look.versions.holders == ()
    assert look.versions.sentence == (
        "version 11; the finalized level of assignment.protocol is 11, but all members support "
        "101: raise it with `assignor features`"
    )
    # The newest levels count: an answer that raises it.
    raised = {"feature_levels": {"assignment.protocol": 101}, "feature_epoch": 4}
    look = inspect_group(
        group_of(native_member("a", T00, **raised), native_member("b", T01)), FACTS
    )
    assert look.versions.level == 101
    assert "when its leader allows it" in look.versions.sentence
    # A JVM member does not know levels, so it is the reason.
    look = inspect_group(group_of(native_member("a", T00), member("jvm", active=[T01])), FACTS)
    assert "the highest of the JVM members" in look.versions.sentence
