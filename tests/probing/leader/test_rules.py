import pytest

from probing import LEADER_RULES, RELEASES, Content, LeaderModel, MemberVersions
from probing.leader.answers import LeaderOutcome
from probing.rules import always


def test_the_last_row_is_for_every_model_and_always_holds():
    last = LEADER_RULES[-1]
    assert last.models == frozenset(LeaderModel)
    assert last.holds is always
    assert last.says.outcome is LeaderOutcome.ANSWERS


@pytest.mark.parametrize("model", LeaderModel)
def test_no_two_rows_of_one_model_have_the_same_name(model):
    names = [rule.name for rule in LEADER_RULES if model in rule.models]
    assert len(names) == len(set(names))


def test_only_leaders_before_2_4_leave_future_members_empty():
    empty = {
        m for rule in LEADER_RULES if rule.says.future_get is Content.EMPTY for m in rule.models
    }
    released = {r.leader_model for r in RELEASES if (2, 0) <= r.order < (2, 4)}
    assert empty == released | {LeaderModel.KIP_TEXT}


def test_only_the_native_model_has_no_row_that_ends_the_leader():
    dying = {
        model
        for rule in LEADER_RULES
        if rule.says.outcome is LeaderOutcome.DIES
        for model in rule.models
    }
    assert set(LeaderModel) - dying == {LeaderModel.NATIVE}


@pytest.mark.parametrize(
    ("used", "supported", "seen", "contradicts"),
    [
        (11, 12, 12, False),
        (3, 3, 3, False),
        (3, 2, 2, True),
        (2, 11, -1, False),
        (1, -1, -1, False),
    ],
)
def test_a_leader_sees_no_supported_number_below_version_3(used, supported, seen, contradicts):
    member = MemberVersions(member_id="a", used_version=used, latest_supported_version=supported)
    assert member.supported_as_seen == seen
    assert member.contradicts_itself is contradicts


@pytest.mark.parametrize("model", LeaderModel)
def test_every_model_ends_in_a_row_that_always_holds(model):
    rows = [rule for rule in LEADER_RULES if model in rule.models]
    assert any(rule.holds is always for rule in rows)
    assert rows[0].holds is not always
