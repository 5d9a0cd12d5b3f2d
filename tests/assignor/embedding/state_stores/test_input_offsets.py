"""How far tasks have their input: topics made anew, offsets set back, positions to commit."""

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple
from uuid import UUID

import pytest

from assignor.embedding import ClusterUnavailable, DictStore
from assignor.embedding.loops import PolledBatch
from assignor.embedding.state_stores.copies import TaskCopy
from tests.assignor.embedding.state_stores.logs import INPUTS, TASK, Member

ORDERS, VISITS = INPUTS
OLD, NEW = UUID(int=1), UUID(int=2)


def rows(first, last):
    return [SimpleNamespace(offset=n, timestamp=n, word="one") for n in range(first, last)]


def lines(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "assignor.embedding.input_rules"
    ]


@pytest.fixture
def owner(member, cluster):
    """A member that has processed records 0 to 9 of orders, whose topic has an id."""
    cluster.topic_ids = {"orders": OLD}
    made = member()
    made.assign()
    assert process(made, 0, 10) == {ORDERS: 10}
    return made


def process(member, first, last, at=None):
    """Process records of orders; return what can be committed."""
    records, done = {ORDERS: rows(first, last)}, {}
    for batch in ({}, records, {}) if at is None else ({}, PolledBatch(records, at)):
        done |= member.stores.process(batch, member.count)
    return done


def handled(member):
    return member.state()["by-word"].get("one", 0)


def other(member, owner):
    """The next owner of the task."""
    owner.revoke()
    made = member("two")
    made.assign()
    return made


@pytest.mark.parametrize("end", [4, 20])
def test_a_topic_made_anew_is_processed_whole_by_the_next_owner(
    member, cluster, owner, caplog, end
):
    cluster.topic_ids, cluster.ends = {"orders": NEW}, {ORDERS: end}
    after = other(member, owner)
    assert process(after, 0, 4) == {ORDERS: 4}
    assert handled(after) == 14
    [line] = lines(caplog)
    assert (
        "state has its former one up to offset 10; all records of the new one, from offset 0 on, "
        in line
    )
    # And the owner after it knows the new id.
    last = other(lambda _: member("three"), after)
    assert process(last, 0, 6) == {ORDERS: 6}
    assert handled(last) == 16
    assert lines(caplog) == [line]


def test_a_topic_made_anew_while_its_task_runs_is_processed_whole(cluster, owner, caplog):
    cluster.topic_ids, cluster.ends = {"orders": NEW}, {ORDERS: 4}
    assert process(owner, 0, 4) == {ORDERS: 4}
    assert handled(owner) == 14
    assert "the topic was made anew" in lines(caplog)[0]
    # Records that come again are passed over, after one look.
    cluster.ends = {ORDERS: 9}
    looks = owner.steps.names.count("input")
    assert process(owner, 0, 9) == {ORDERS: 9}
    assert handled(owner) == 19
    assert owner.steps.names.count("input") == looks + 1
    assert len(lines(caplog)) == 1


def test_the_first_records_of_a_state_may_be_those_of_a_former_topic(member, cluster):
    cluster.topic_ids, cluster.ends, made = {"orders": NEW}, {ORDERS: 4}, member()
    made.assign()
    process(made, 0, 0)
    for first, end, settled, known in ((0, 10, {}, OLD), (0, 4, {ORDERS: True}, NEW)):
        batch = PolledBatch({ORDERS: rows(first, end)}, {}, settled, topic_ids={"orders": known})
        made.stores.process(batch, made.count)
    assert handled(made) == 14


@pytest.mark.parametrize("is_logged", [False, True])
def test_a_topic_made_anew_is_one_warning_for_its_position_and_its_state(
    cluster, owner, caplog, is_logged
):
    caplog.set_level("INFO")
    cluster.topic_ids, cluster.ends = {"orders": NEW}, {ORDERS: 4}
    owner.stores.process(PolledBatch({}, {ORDERS: 0}, {ORDERS: is_logged}), owner.count)
    assert handled(owner) == 10
    [line] = [each for each in caplog.records if "the topic was made anew" in each.getMessage()]
    assert line.levelname == ("INFO" if is_logged else "WARNING")


def test_records_that_a_topic_has_lost_are_not_processed_twice_and_new_ones_are(
    member, cluster, owner, caplog
):
    cluster.ends = {ORDERS: 7}
    after = other(member, owner)
    assert process(after, 0, 9) == {ORDERS: 9}
    assert handled(after) == 12
    [line] = lines(caplog)
    assert "has input up to offset 10, and the topic ends at 7: it has lost records" in line


def test_without_ids_a_topic_that_ends_before_the_state_is_processed_whole(
    member, cluster, owner, caplog
):
    cluster.topic_ids, cluster.ends = {}, {ORDERS: 7}
    after = other(member, owner)
    assert process(after, 0, 7) == {ORDERS: 7}
    assert handled(after) == 17
    assert "it was made anew, or has lost records" in lines(caplog)[0]


@pytest.mark.parametrize("is_members", [False, True])
def test_offsets_that_were_set_back_are_a_warning_if_no_member_has_committed_them(
    member, cluster, owner, caplog, is_members
):
    cluster.committed[ORDERS], cluster.is_members = 4, is_members
    after = other(member, owner)
    assert process(after, 4, 12) == {ORDERS: 12}
    assert handled(after) == 12
    assert [
        "was set back to 4, and the state has input up to offset 10" in x for x in lines(caplog)
    ] == ([] if is_members else [True])


class ClientPartition(NamedTuple):
    """As a client has it."""

    topic: str
    partition: int


def poll(member, first, last, at):
    """Process one poll of a loop, with records of orders; return what can be committed."""
    batch = PolledBatch({ORDERS: rows(first, last)}, at)
    return member.stores.process(batch, member.count)


class TestNothingCommitted:
    """The group's offsets have expired or were deleted, or it was killed before its first commit.

    The positions are those of auto_offset_reset="latest": the end of the topic.
    """

    @pytest.fixture
    def after(self, member, cluster, owner):
        """The next owner."""
        cluster.ends = {ORDERS: 30}
        return other(member, owner)

    def test_reading_continues_where_the_state_has_its_input(self, after, caplog):
        caplog.set_level(logging.INFO)
        assert poll(after, 30, 31, {ORDERS: 31, VISITS: 0}) == {VISITS: 0}
        assert handled(after) == 10
        [line] = lines(caplog)
        assert "no committed offset between 0 and 30" in line
        assert "the state has input up to offset 10, where reading continues" in line
        assert after.stores.unread() == {ORDERS: 10}
        assert poll(after, 10, 31, {ORDERS: 31, VISITS: 0}) == {ORDERS: 31}
        assert handled(after) == 31

    def test_records_that_were_held_meanwhile_are_read_again_in_order(self, after):
        read, after.access.read = after.access.read, lambda *_, **__: 0
        assert poll(after, 30, 32, {ORDERS: 32}) == {}
        after.access.read = read
        assert poll(after, 32, 33, {ORDERS: 33}) == {}
        assert (handled(after), after.stores.unread()) == (10, {ORDERS: 10})
        assert poll(after, 10, 33, {ORDERS: 33}) == {ORDERS: 33}
        assert handled(after) == 33

    def test_only_a_task_that_is_taken_over_is_compared(self, after):
        assert poll(after, 30, 31, {ORDERS: 31}) == {}
        assert after.stores.unread() == {ORDERS: 10}
        assert poll(after, 10, 20, {ORDERS: 20}) == {ORDERS: 20}
        assert poll(after, 15, 22, {ORDERS: 22}) == {ORDERS: 22}
        assert (handled(after), after.stores.unread()) == (22, {})

    @pytest.mark.parametrize("first", [0, 10])
    def test_what_is_held_from_the_state_on_is_not_read_again(self, after, first):
        """As with "earliest", and if the task is claimed again before the first commit."""
        assert poll(after, first, 20, {ORDERS: 20}) == {ORDERS: 20}
        assert (handled(after), after.stores.unread()) == (20, {})

    def test_records_that_were_deleted_before_the_state_had_them_are_a_warning(
        self, cluster, after, caplog
    ):
        cluster.starts = {ORDERS: 14}
        assert poll(after, 30, 31, {ORDERS: 31}) == {}
        [line] = lines(caplog)
        assert "the state has input up to offset 10, and the records from there to 14" in line
        assert after.stores.unread() == {ORDERS: 14}

    def test_a_topic_made_anew_is_read_from_its_first_record(self, member, cluster, owner, caplog):
        """Brokers delete the committed offsets with the topic."""
        cluster.topic_ids, cluster.ends = {"orders": NEW}, {ORDERS: 20}
        after = other(member, owner)
        assert poll(after, 20, 21, {ORDERS: 21}) == {}
        assert after.stores.unread() == {ORDERS: 0}
        assert poll(after, 0, 21, {ORDERS: 21}) == {ORDERS: 21}
        assert handled(after) == 31
        assert "all records of the new one, from offset 0 on" in lines(caplog)[0]

    def test_partitions_are_those_of_the_client(self, after):
        """A client takes its own class alone; here the batch shows which one that is."""
        after.stores.process(PolledBatch({}, {ClientPartition(*VISITS): 0}), after.count)
        [found] = after.stores.unread()
        assert isinstance(found, ClientPartition)


@pytest.mark.parametrize("committed", [0, 4, 12])
def test_a_group_whose_changelogs_are_new_misses_what_it_has_committed(
    member, cluster, caplog, committed
):
    """A task whose stores are in memory, after its changelogs were deleted and made anew."""
    cluster.committed[ORDERS], cluster.ends = committed, {ORDERS: 10}
    made = member(kind=DictStore)
    made.assign()
    assert process(made, committed, 13) == {ORDERS: 13}
    assert handled(made) == 13 - committed
    # Beyond the end, the position is lost, which is another warning.
    expected = "orders [0]: the changelogs of this task are new, and the group has committed offset"
    assert [line[: len(expected)] for line in lines(caplog)] == [expected] * (committed == 4)
    # The next owner finds that there was one.
    cluster.committed[ORDERS], cluster.ends = 13, {ORDERS: 20}
    after = other(member, made)
    process(after, 13, 14)
    assert len(lines(caplog)) == (committed == 4)


def test_an_offset_that_an_operator_has_set_forward_is_followed(member, cluster, owner, caplog):
    caplog.set_level(logging.INFO)
    cluster.committed[ORDERS], cluster.is_members = 15, False
    after = other(member, owner)
    assert process(after, 15, 17, {ORDERS: 17}) == {ORDERS: 17}
    assert (handled(after), after.stores.unread()) == (12, {})
    assert "was set to 15, and the state has input up to offset 10" in lines(caplog)[0]


def test_a_cluster_that_does_not_answer_is_asked_again(member, owner):
    after = other(member, owner)
    answer, after.access.input_state = after.access.input_state, refuse
    with pytest.raises(ClusterUnavailable):
        process(after, 10, 12)
    after.access.input_state = answer
    assert process(after, 10, 12) == {ORDERS: 12}
    assert handled(after) == 12


def refuse(*_):
    raise ClusterUnavailable("gone")


class TestPositions:
    """What can be committed of a batch of a loop, which has the positions of the client."""

    def test_the_position_is_committed_behind_the_last_record(self, owner):
        assert process(owner, 10, 12, {ORDERS: 14}) == {ORDERS: 14}

    def test_a_partition_without_records_is_committed_from_its_first_offset(self, owner):
        """Else auto_offset_reset="latest" passes over what arrives while no member reads it."""
        assert process(owner, 10, 12, {ORDERS: 14, VISITS: 0}) == {ORDERS: 14, VISITS: 0}
        assert process(owner, 12, 13, {ORDERS: 15, VISITS: 0}) == {ORDERS: 15}

    def test_a_position_without_records_is_committed_once(self, owner):
        batch = PolledBatch({}, {ORDERS: 15, VISITS: 2})
        assert owner.stores.process(batch, owner.count) == {ORDERS: 15, VISITS: 2}
        assert owner.stores.process(batch, owner.count) == {}
        # And again after a rebalance, in which the commit may have been refused.
        owner.assign()
        assert owner.stores.process(batch, owner.count) == {ORDERS: 15, VISITS: 2}

    def test_a_position_that_has_gone_back_is_not_committed_until_it_is_passed(self, owner):
        assert process(owner, 10, 12, {ORDERS: 14}) == {ORDERS: 14}
        assert owner.stores.process(PolledBatch({}, {ORDERS: 3}), owner.count) == {}
        assert owner.stores.process(PolledBatch({}, {ORDERS: 5}), owner.count) == {ORDERS: 5}

    def test_a_position_that_was_lost_is_committed_where_reading_continues(self, owner):
        """Else the next member begins at the former offset, once the topic has grown beyond it."""
        assert process(owner, 10, 12, {ORDERS: 14}) == {ORDERS: 14}
        lost = PolledBatch({}, {ORDERS: 12}, {ORDERS: True})
        assert owner.stores.process(lost, owner.count) == {ORDERS: 12}
        assert owner.stores.process(PolledBatch({}, {ORDERS: 12}), owner.count) == {}

    def test_no_position_is_committed_while_records_before_it_are_held(self, owner):
        batch = PolledBatch({ORDERS: rows(10, 14)}, {ORDERS: 20})
        over = iter([False] + [True] * 9)
        assert owner.stores.process(batch, owner.count, is_over=lambda: next(over)) == {ORDERS: 11}
        rest = PolledBatch({}, {ORDERS: 20})
        assert owner.stores.process(rest, owner.count) == {ORDERS: 20}
        assert handled(owner) == 14

    def test_no_position_is_committed_of_a_task_that_is_not_restored(self, member):
        made = member()
        made.assign()
        made.access.read = lambda *_, **__: 0
        batch = PolledBatch({}, {ORDERS: 20})
        assert made.stores.process(batch, made.count) == {}
        assert made.stores.waiting == {*INPUTS}

    def test_no_position_is_committed_whose_records_were_dropped(self, owner):
        batch = PolledBatch({ORDERS: rows(10, 14)}, {ORDERS: 20})
        over = iter([False] + [True] * 9)
        owner.stores.process(batch, owner.count, is_over=lambda: next(over))
        owner.stores.on_tasks_assigned({}, {})
        owner.stores.process({}, owner.count)
        owner.stores.on_tasks_assigned({TASK: INPUTS}, {})
        late = PolledBatch({}, {ORDERS: 20})
        assert owner.stores.process(late, owner.count) == {}
        assert owner.stores.unread() == {ORDERS: 11}
        assert owner.stores.process(late, owner.count) == {ORDERS: 20}


def test_a_task_without_stores_has_no_state_to_compare(cluster):
    made = Member(cluster, kind=DictStore)
    copy, offsets = TaskCopy(TASK, {}), made.stores._input
    copy.commit = replace(copy.commit, inputs={ORDERS: 20, VISITS: 4})
    offsets.take_over([copy], {TASK: INPUTS})
    offsets.look(copy, ORDERS, 3)
    assert made.steps.names == []
    # A topic that was made anew is read from its first record, and all of them are processed.
    offsets.settled = {ORDERS: True}
    offsets.take_over([copy], {TASK: INPUTS})
    assert (copy.inputs, offsets.settled) == ({VISITS: 4}, {})
    made.stores.close()
