"""The budget: answers that fit are unchanged, others are stepped down, tasks are never dropped."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor.rebalance.leader.record_budget import (
    GROUP_RECORD_LIMIT,
    RECORD_BYTES,
    MemberBytes,
    fit_group,
    protocol_bytes,
)
from encoding import TopicPartition, ViewForm

LADDER = tuple(ViewForm)


@st.composite
def groups(draw, most=8):
    members = {}
    for number in range(draw(st.integers(1, most))):
        own = draw(st.integers(0, 50))
        forms = draw(st.sets(st.sampled_from(LADDER), min_size=1))
        members[f"m{number}"] = MemberBytes(
            subscription=draw(st.integers(0, 50)),
            answer_by_form={
                form: own + (0 if form is ViewForm.NONE else draw(st.integers(0, 100)))
                for form in LADDER
                if form in forms
            },
            protocol=draw(st.integers(0, 20)),
        )
    return members


def fit(members, limit):
    """Forms and warning for members that have this many bytes of the record."""
    return fit_group(members, limit=RECORD_BYTES + limit)


def total_of(members, forms):
    return sum(
        member.subscription + member.protocol + member.answer_by_form[forms[name]]
        for name, member in members.items()
    )


def plain(full, **others):
    by_form = {ViewForm.FULL: full} | {ViewForm(name): size for name, size in others.items()}
    return MemberBytes(subscription=10, answer_by_form=by_form)


def named(*members):
    return {f"m{number}": member for number, member in enumerate(members)}


def test_a_group_that_fits_gets_its_first_forms_without_a_warning():
    members = named(*[plain(100, none=20)] * 3)
    assert total_of(members, dict.fromkeys(("m0", "m1", "m2"), ViewForm.FULL)) == 330
    forms, warning = fit(members, 330)
    assert forms == dict.fromkeys(("m0", "m1", "m2"), ViewForm.FULL)
    assert warning == ""


def test_one_byte_too_many_steps_one_member_down_with_a_warning():
    members = named(*[plain(100, delta=60, none=20)] * 3)
    forms, warning = fit(members, 329)
    assert forms == {"m0": ViewForm.FULL, "m1": ViewForm.FULL, "m2": ViewForm.DELTA}
    assert total_of(members, forms) == 290
    assert warning == (
        "the group's record needs 842 bytes and the broker accepts 841: 1 of 3 members get a delta"
        " instead of the full view, which makes it 802; raise max.message.bytes of"
        " __consumer_offsets to route without gaps"
    )


def test_every_full_view_goes_before_a_delta_does():
    with_view = plain(100, delta=60, reference=30, none=20)
    by_form = {ViewForm.DELTA: 99, ViewForm.REFERENCE: 30}
    members = named(with_view, with_view, MemberBytes(subscription=10, answer_by_form=by_form))
    forms = fit(members, 249)[0]
    assert forms == dict.fromkeys(("m0", "m1", "m2"), ViewForm.DELTA)
    forms = fit(members, 248)[0]
    assert forms == {"m0": ViewForm.DELTA, "m1": ViewForm.DELTA, "m2": ViewForm.REFERENCE}


def test_the_largest_saving_goes_first_and_ties_spare_the_smallest_id():
    members = named(plain(100, none=20), plain(150, none=20), plain(100, none=20))
    forms = fit(members, 379)[0]
    assert forms == {"m0": ViewForm.FULL, "m1": ViewForm.NONE, "m2": ViewForm.FULL}
    forms = fit(members, 249)[0]
    assert forms == {"m0": ViewForm.FULL, "m1": ViewForm.NONE, "m2": ViewForm.NONE}


def test_a_lower_form_that_is_not_smaller_is_skipped():
    members = named(plain(100, delta=120, reference=100, none=20))
    forms, _ = fit(members, 50)
    assert forms == {"m0": ViewForm.NONE}


def test_own_tasks_alone_can_exceed_the_limit_and_the_message_names_what_to_do():
    members = named(*[plain(1_000_000, none=600_000)] * 2)
    forms, warning = fit_group(members)
    assert set(forms.values()) == {ViewForm.NONE}
    assert "2 of 2 members get no view instead of the full view" in warning
    assert "leaves 1,200,532 bytes, still too many: the broker will reject" in warning
    assert f"accepts {GROUP_RECORD_LIMIT:,}" in warning
    assert "run fewer members" in warning


def test_an_answer_that_cannot_become_smaller_stays_as_it_is():
    members = named(plain(500), plain(100, none=20))
    forms, warning = fit(members, 10)
    assert forms == {"m0": ViewForm.FULL, "m1": ViewForm.NONE}
    assert "1 of 2 members get no view" in warning
    _, alone = fit(named(members["m0"]), 10)
    assert alone.startswith(
        "the group's record needs 1,022 bytes and the broker accepts 522, which leaves 1,022 bytes"
    )


def test_no_members_take_only_the_record():
    assert (fit({}, 0)[1] == "", fit({"m0": plain(0)}, 9)[1] == "") == (True, False)


@given(groups(), st.integers(0, 1_500))
def test_the_total_is_true_and_forms_only_step_down(members, limit):
    forms, warning = fit(members, limit)
    assert set(forms) == set(members)
    wanted = {name: min(m.answer_by_form, key=LADDER.index) for name, m in members.items()}
    needed, total = (RECORD_BYTES + total_of(members, each) for each in (wanted, forms))
    assert total <= needed
    assert bool(warning) == (needed > RECORD_BYTES + limit)
    if warning:
        assert f"needs {needed:,} bytes" in warning
        assert f"{total:,}" in warning
    for name, member in members.items():
        first, given_form = wanted[name], forms[name]
        assert given_form in member.answer_by_form
        assert LADDER.index(given_form) >= LADDER.index(first)
        assert member.answer_by_form[given_form] <= member.answer_by_form[first]


@given(groups(most=4), st.integers(0, 700))
def test_it_fits_whenever_stepping_down_can_make_it_fit(members, limit):
    forms, _ = fit(members, limit)
    smallest = sum(
        member.subscription + member.protocol + smallest_answer(member)
        for member in members.values()
    )
    assert (total_of(members, forms) <= limit) == (smallest <= limit)


def smallest_answer(member):
    """The smallest form to which a member can be stepped down."""
    return min(member.answer_by_form.values())


@given(groups(most=4), st.integers(0, 700), st.integers(1, 300))
def test_not_one_member_is_stepped_down_in_vain(members, limit, more):
    """Larger forms with a higher limit would not have fitted into this one."""
    tight, _ = fit(members, limit)
    loose, _ = fit(members, limit + more)
    if loose != tight:
        assert total_of(members, loose) > limit


@given(groups(), st.integers(0, 1_500), st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(members, limit, random):
    names = list(members)
    random.shuffle(names)
    assert fit(members, limit) == fit({name: members[name] for name in names}, limit)


@given(groups(), st.integers(0, 1_500), st.integers(0, 300))
def test_more_room_never_means_a_lower_form(members, limit, more):
    tight = fit(members, limit)[0]
    loose = fit(members, limit + more)[0]
    assert all(LADDER.index(loose[name]) <= LADDER.index(tight[name]) for name in tight)


def test_the_protocol_is_estimated_from_above():
    """Compared with the bytes of the protocol, encoded here by hand."""
    topic, member = "orders", "app-1-" + "0" * 36
    partitions = [TopicPartition(topic, n) for n in range(3)]
    topic_partitions = 4 + (2 + len(topic)) + 4 + 3 * 4
    subscription = 2 + (4 + 2 + len(topic)) + 4 + topic_partitions + 4 + (2 + len("rack-1"))
    assignment = 2 + topic_partitions + 4
    names = [member, "app-1", "/0123:4567:89ab:cdef:0123:4567:89ab:cdef", "static-1"]
    entry = sum(2 + len(name) for name in names) + 4 + 4 + 4 + 4
    exact = subscription + assignment + entry
    estimated = protocol_bytes(
        topics=[topic],
        partitions=partitions,
        member_id=member,
        group_instance_id="static-1",
        rack="rack-1",
    )
    assert exact <= estimated <= exact + 40


@pytest.mark.parametrize(("topics", "counts"), list(product((1, 3), (0, 7))))
def test_the_protocol_grows_with_topics_and_partitions(topics, counts):
    names = [f"topic-{n}" for n in range(topics)]
    partitions = [TopicPartition(name, n) for name in names for n in range(counts)]
    base = protocol_bytes(topics=(), partitions=(), member_id="m")
    listed = topics * (2 + 7)
    held = topics * ((2 + 7) + 4 + 4 * counts) if counts else 0
    assert protocol_bytes(topics=names, partitions=partitions, member_id="m") == (
        base + listed + 2 * held
    )
