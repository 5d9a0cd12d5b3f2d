"""Claims of reached versions by one member stop no others, and an operator can always return."""

import pytest

from probing.topologies import (
    HIGHEST_EPOCH,
    MOST_AHEAD,
    MOST_ENTRIES,
    Carrier,
    Reached,
    answered_memory,
    believed_memory,
    credible,
    decide_forms,
    lowered,
    newest_memory,
)
from probing.topologies.memory import MOST_UNSHARED

OLD, NEW, JUNK = b"old", b"new", b"junk"
TOPICS = {OLD: frozenset({"lines"}), NEW: frozenset({"lines"}), JUNK: frozenset({"junk"})}
TOP = 2**31 - 1


def member(name, forms, reached=None, *, leads=False, process=None):
    return Carrier(
        member_id=name, process=process or name, forms=forms, reached=reached or {}, leads=leads
    )


def honest(reached=None):
    return [member(f"m{n}", {OLD: (1,)}, reached, leads=n == 0, process=f"p{n}") for n in range(3)]


CLAIMS = {
    "of a form of another family": ({JUNK: (TOP,)}, Reached(0, TOP)),
    "of a later version than it carries": ({NEW: (2,)}, Reached(0, 3)),
    "of an epoch far ahead": ({NEW: (2,)}, Reached(MOST_AHEAD, 2)),
    "of the last epoch": ({NEW: (2,)}, Reached(HIGHEST_EPOCH - 1, 2)),
}


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_a_single_claim_is_not_believed(name):
    forms, claim = CLAIMS[name]
    hostile = member("x", forms, {OLD: claim})
    assert believed_memory([*honest(), hostile], TOPICS) == {}


def test_a_claimant_that_gives_the_process_of_another_member_raises_no_epoch():
    hostile = member("x", {NEW: (2,)}, {OLD: Reached(2**40, 2)}, process="p0")
    assert believed_memory([honest()[0], hostile], TOPICS) == {}


def test_a_claimant_that_carries_the_family_is_believed():
    claim = Reached(MOST_AHEAD - 1, 2)
    assert believed_memory([*honest(), member("x", {NEW: (2,)}, {OLD: claim})], TOPICS) == {
        OLD: claim
    }


@pytest.mark.parametrize("epoch", [0, 2**20, 2**40, 2**62 - 1])
def test_an_operator_returns_whatever_epoch_most_members_remember(epoch):
    memory = {OLD: Reached(epoch, TOP), NEW: Reached(epoch, TOP)}
    group = honest(memory)
    assert decide_forms(group, TOPICS).families[0].wanted == frozenset()
    returning = member("m2", {OLD: (1,)}, lowered(memory, [OLD, NEW], 1))
    decision = decide_forms([*group[:2], returning], TOPICS)
    assert decision.families[0].wanted == {OLD}
    assert decision.reached[OLD] == Reached(epoch + 1, 1)


@pytest.mark.parametrize("epoch", [HIGHEST_EPOCH - 1, HIGHEST_EPOCH, 2**63 - 1])
def test_a_lowered_epoch_is_always_believed(epoch):
    found = lowered({OLD: Reached(epoch, TOP), JUNK: Reached(3, 2)}, [OLD], 1)
    assert found[OLD].version == 1
    assert found[OLD].epoch < HIGHEST_EPOCH
    alone = member("m0", {OLD: (1,)}, found, leads=True)
    assert decide_forms([alone], TOPICS).families[0].wanted == {OLD}


def test_entries_of_forms_that_one_process_carries_do_not_displace_others():
    junk = {n.to_bytes(8, "big"): (TOP,) for n in range(2 * MOST_ENTRIES)}
    topics = TOPICS | {form: frozenset({form.hex()}) for form in junk}
    entry = {OLD: Reached(0, 1)}
    hostile = member("x", junk, dict.fromkeys(junk, Reached(MOST_AHEAD - 1, TOP)))
    reached = decide_forms([*honest(entry), hostile], topics).reached
    assert reached[OLD] == Reached(0, 1)
    assert len(reached) == 1 + MOST_UNSHARED
    kept = newest_memory(entry, hostile.reached, first=[OLD])
    assert len(kept) == MOST_ENTRIES
    assert kept[OLD] == Reached(0, 1)


@pytest.mark.parametrize("epoch", [0, 2**31 - 2, 2**31 - 1, HIGHEST_EPOCH - 2, HIGHEST_EPOCH - 1])
def test_a_version_that_is_reached_at_any_epoch_is_remembered_from_then_on(epoch):
    memory = {OLD: Reached(epoch, 1)}
    new = member("m9", {NEW: (2,)})
    decision = decide_forms([*honest(memory), new], TOPICS)
    entry = decision.reached[OLD]
    assert decision.families[0].wanted == {NEW}
    assert (entry.version, entry.epoch < HIGHEST_EPOCH) == (2, True)
    assert entry > Reached(epoch, 1)
    again = decide_forms([*honest(decision.reached), member("m9", {NEW: (2,)})], TOPICS)
    assert again.reached[OLD] == entry
    assert decide_forms(honest(decision.reached), TOPICS).families[0].wanted == frozenset()


def test_at_the_last_epoch_a_level_lowers_what_runs_and_not_the_memory():
    highest = Reached(HIGHEST_EPOCH - 1, 2)
    group = [member(f"m{n}", {OLD: (1,), NEW: (2,)}, {OLD: highest, NEW: highest}) for n in (0, 1)]
    decision = decide_forms(group, TOPICS, level=1)
    assert decision.families[0].wanted == {OLD}
    assert decision.reached == {OLD: highest, NEW: highest}


def test_forms_that_no_member_carries_do_not_displace_those_of_one_process():
    dead = {n.to_bytes(8, "big"): Reached(9, TOP) for n in range(2 * MOST_ENTRIES)}
    group = [*honest({**dead, NEW: Reached(0, 2)}), member("m9", {NEW: (2,)}, {NEW: Reached(0, 2)})]
    reached = answered_memory({**dead, NEW: Reached(0, 2), OLD: Reached(0, 2)}, group)
    assert reached[NEW] == reached[OLD] == Reached(0, 2)


def test_forms_of_one_process_do_not_displace_those_of_another():
    junk = {n.to_bytes(8, "big"): (TOP,) for n in range(2 * MOST_ENTRIES)}
    claims = dict.fromkeys(junk, Reached(9, TOP))
    group = [*honest(), member("m9", {NEW: (2,)}), member("a", junk, claims, process="a")]
    assert NEW in answered_memory({**claims, NEW: Reached(0, 2)}, group)


def test_of_forms_that_no_member_carries_those_stay_that_most_processes_remember():
    dead = {n.to_bytes(8, "big"): Reached(9, TOP) for n in range(2 * MOST_ENTRIES)}
    removed = {b"removed": Reached(0, 2)}
    group = [*honest(removed), member("a", {JUNK: (1,)}, dead)]
    assert answered_memory({**dead, **removed}, group)[b"removed"] == Reached(0, 2)


@pytest.mark.parametrize("ahead", [0, 1])
def test_what_others_may_write_is_credible_up_to_a_number_of_epochs_ahead(ahead):
    memory = {OLD: Reached(5 + MOST_AHEAD + ahead, 2), NEW: Reached(0, 1)}
    assert (OLD in credible(memory, 5)) is (ahead == 0)
    assert NEW in credible(memory, 5)
    assert credible({OLD: Reached(HIGHEST_EPOCH, 1)}, HIGHEST_EPOCH) == {}


def test_an_operators_return_keeps_the_chosen_forms_before_all_others():
    junk = {n.to_bytes(8, "big"): Reached(3, TOP) for n in range(3 * MOST_ENTRIES)}
    found = lowered({**junk, OLD: Reached(0, 2)}, {OLD, *junk}, 1, first={OLD})
    assert (found[OLD], len(found)) == (Reached(4, 1), MOST_ENTRIES)


@pytest.mark.parametrize(("far", "believed"), [(2, Reached(0, 1)), (3, Reached(MOST_AHEAD + 1, 2))])
def test_more_than_half_of_all_processes_make_an_epoch_known(far, believed):
    near = honest({OLD: Reached(0, 1)})[:2]
    claims = {OLD: Reached(MOST_AHEAD + 1, 2)}
    group = [*near, *(member(f"x{n}", {OLD: (1,)}, claims) for n in range(far))]
    assert believed_memory(group, TOPICS) == {OLD: believed}


def test_an_operators_return_drops_the_entries_that_leaders_ignore():
    memory = {OLD: Reached(HIGHEST_EPOCH, 2), JUNK: Reached(3, 2)}
    assert lowered(memory, [NEW], 1) == {JUNK: Reached(3, 2), NEW: Reached(4, 1)}
