"""How far the input is: each row of the table, its offset and its line in the log."""

import logging
from itertools import product
from uuid import UUID

import pytest

from assignor.embedding.errors import MemberStopped
from assignor.embedding.input_facts import Goes, Held, InputFacts, LogRange
from assignor.embedding.input_rules import INPUT_RULES, decide_input, settle
from encoding import TopicPartition

IN = TopicPartition("in", 0)
OLD, NEW = UUID(int=1), UUID(int=2)
# What holds, the offset, the facts that are unlike `log` below -> row, next offset, begin of the
# line ("": none).
POSITION, STATE, COPY = Held.POSITION, Held.STATE, Held.CHANGELOG
ONLY_COMPACTED = {"is_only_compacted": True}
FROM_4 = "state of in-0 up to offset 3 is restored from offset 4 to 9: earlier records were"
TAKEN = {"is_taken_over": True}
LACKS = "in [0]: the group has no committed offset between 4 and 9: "
EVENTS = [
    (POSITION, 7, {}, "the partition has its offset", 7, ""),
    (POSITION, 4, {}, "the partition has its offset", 4, ""),
    (POSITION, 9, {}, "the partition has its offset", 9, ""),
    (POSITION, None, {}, "the group has committed no offset", 4, ""),
    (POSITION, None, {"reads_latest": True}, "the group has committed no offset", 9, ""),
    (
        POSITION,
        7,
        {"known_id": NEW},
        "the topic was made anew (its id is another one)",
        4,
        "in [0]: the topic was made anew, and its former one was read up to offset 7;",
    ),
    (
        POSITION,
        7,
        {"known_id": NEW, "was_released": True},
        "the topic was made anew while it was not assigned (its id is another one)",
        7,
        "in [0]: the topic was made anew since this member last read it; reading begins at",
    ),
    (
        POSITION,
        None,
        {"known_id": NEW, "was_released": True},
        "the topic was made anew while it was not assigned (its id is another one)",
        4,
        "in [0]: the topic was made anew since this member last read it; reading begins at",
    ),
    (
        POSITION,
        7,
        {"is_truncated": True, "divergent": 6},
        "the broker has lost records that were read, from a known offset on (KIP-320)",
        6,
        "in [0]: the broker has lost records from offset 6 on, and the topic was read up",
    ),
    (
        POSITION,
        7,
        {"is_truncated": True},
        "the broker has lost all records that were read (KIP-320)",
        4,
        "in [0]: the topic was read up to offset 7, and the broker has none of these",
    ),
    (
        POSITION,
        10,
        {},
        "it is beyond the end",
        4,
        "in [0]: offset 10 is beyond the end, 9: the topic was made anew, or has lost",
    ),
    (
        POSITION,
        10,
        {"reads_latest": True},
        "it is beyond the end",
        9,
        "in [0]: offset 10 is beyond the end, 9: the topic was made anew, or has lost",
    ),
    (
        POSITION,
        3,
        {},
        "it is before the first record",
        4,
        "in [0]: the records from offset 3 to 4 were deleted before they were read;",
    ),
    (STATE, 7, {}, "the state is not ahead of the topic", 7, ""),
    (STATE, 9, {"committed": 9}, "the state is not ahead of the topic", 9, ""),
    (STATE, 2, {"known_id": None}, "the state is not ahead of the topic", 2, ""),
    (STATE, 7, {"committed": 5}, "the state is not ahead of the topic", 7, ""),
    (STATE, 7, {"committed": 8, "is_members": False}, "the state is not ahead of the topic", 7, ""),
    (STATE, 7, {**TAKEN, "committed": 5}, "the state is not ahead of the topic", 7, ""),
    # By members: the records between them have written nothing.
    (STATE, 7, {**TAKEN, "committed": 9}, "the state is not ahead of the topic", 7, ""),
    (STATE, 2, {**TAKEN, "committed": 3}, "the state is not ahead of the topic", 2, ""),
    (
        STATE,
        7,
        {**TAKEN, "committed": 9, "is_members": False},
        "an operator has set the committed offset forward",
        9,
        "in [0]: the committed offset was set to 9, and the state has input up to offset 7: ",
    ),
    (
        STATE,
        None,
        {**TAKEN, "committed": 6, "hidden": 5},
        "the commit record of the state is lost",
        6,
        "in [0]: it is not known up to where the state has its input: the last commit record of",
    ),
    (
        STATE,
        None,
        {**TAKEN, "committed": 6, "is_new": True},
        "the changelogs are new, and the group has committed an offset",
        6,
        "in [0]: the changelogs of this task are new, and the group has committed offset 6, where",
    ),
    (STATE, 7, TAKEN, "the group has committed no offset that the topic has", 7, LACKS),
    (
        STATE,
        7,
        {**TAKEN, "committed": 3},
        "the group has committed no offset that the topic has",
        7,
        LACKS,
    ),
    (
        STATE,
        9,
        {**TAKEN, "committed": 10},
        "the group has committed no offset that the topic has",
        9,
        LACKS,
    ),
    (
        STATE,
        2,
        TAKEN,
        "the group has committed no offset, and the topic begins after the state",
        4,
        "in [0]: the state has input up to offset 2, and the records from there to 4 were",
    ),
    (
        STATE,
        7,
        {"committed": 5, "is_members": False},
        "an operator has set the committed offset back",
        7,
        "in [0]: the committed offset was set back to 5, and the state has input up to",
    ),
    (
        STATE,
        7,
        {"known_id": NEW},
        "the input topic was made anew (its id is another one)",
        4,
        "in [0]: the topic was made anew, and the state has its former one up to offset",
    ),
    (
        STATE,
        10,
        {},
        "the state is ahead of the same topic (its id is the same)",
        9,
        "in [0]: the state has input up to offset 10, and the topic ends at 9: it has",
    ),
    (
        STATE,
        10,
        {"known_id": None},
        "the state is ahead of the topic (its ids are not known)",
        4,
        "in [0]: the state has input up to offset 10, and the topic ends at 9: it was",
    ),
    (COPY, 7, {}, "the changelog continues where it ends", 7, ""),
    (
        COPY,
        7,
        {"known_id": NEW},
        "the changelog was made anew (its id is another one)",
        None,
        "state of in-0 up to offset 7 is rebuilt: the changelog was deleted and made",
    ),
    (
        COPY,
        10,
        {},
        "the changelog ends before it",
        None,
        "state of in-0 up to offset 10 is rebuilt: the changelog ends at 9: ",
    ),
    (
        COPY,
        3,
        {},
        "the changelog begins after it",
        None,
        "state of in-0 up to offset 3 is rebuilt: the changelog begins at 4",
    ),
    (COPY, 0, {}, "the changelog continues where it ends", 0, ""),
    (COPY, 4, ONLY_COMPACTED, "the changelog continues where it ends", 4, ""),
    (COPY, 3, ONLY_COMPACTED, "the changelog begins after it, and is only compacted", None, FROM_4),
    (
        COPY,
        0,
        ONLY_COMPACTED | {"known_id": None, "copy": "FILE"},
        "the changelog begins after it, and is only compacted",
        None,
        "state of in-0 up to offset 0 is restored from offset 4 to 9: earlier records were",
    ),
    (
        COPY,
        3,
        {"copy": "FILE"},
        "the changelog begins after it",
        None,
        "state of in-0 up to offset 3 is rebuilt: the changelog begins at 4",
    ),
]
# The same for events that end the member, with the whole message.
LOST = (
    "in [0]: it is not known up to where the state has its input: the last commit record of its "
    "changelog does not count, as its owner had lost the task (it says offset {}), and compaction "
    "has removed those before it; the group has committed no offset between 4 and 9 either, so that"
    " records would be counted twice or be missing: this member ends; set the offset of the group "
    "to the first record that the state does not have, with kafka-consumer-groups.sh "
    "--reset-offsets --to-offset; or, to compute the state again, stop all members, and delete "
    "changelogs and state directories"
)
ENDS = [
    *(
        (
            STATE,
            None,
            {**TAKEN, "hidden": hidden},
            "the commit record of the state is lost, and the group has committed no offset",
            LOST.format(hidden or "unknown"),
        )
        for hidden in (None, 8)
    ),
    (
        COPY,
        7,
        {"known_id": NEW},
        "the changelog of its own task was made anew (its id is another one)",
        (
            f"in-0: the changelog was deleted and made anew (its id was {'A' * 21}g and is "
            f"{'A' * 21}Q), and has offsets 4 to 9; FILE has all of the task's state, up to offset "
            "7 of the former one: it is kept, and this member ends; DO THIS"
        ),
    ),
    (
        COPY,
        10,
        {"known_id": None},
        "the changelog of its own task ends before it",
        (
            f"in-0: the changelog (its id was not known and is {'A' * 21}Q) ends at 9: it was made "
            "anew, or has lost records; FILE has all of the task's state, up to offset 10: it is "
            "kept, and this member ends; DO THIS"
        ),
    ),
]


def facts(held, at, unlike):
    log = LogRange(4, 9, OLD)
    return InputFacts(
        **{"held": held, "partition": IN, "log": log, "at": at, "known_id": OLD} | unlike
    )


@pytest.mark.parametrize("event", EVENTS)
def test_each_event_has_its_row_its_offset_and_its_line(event, caplog):
    held, at, unlike, row, to, line = event
    caplog.set_level(logging.INFO)
    given = facts(held, at, unlike)
    rule = decide_input(given)
    assert (rule.held, rule.name) == (held, row)
    assert settle(given) == to
    lines = [record.getMessage() for record in caplog.records]
    assert [text[: len(line)] for text in lines] == ([line] if line else [])
    assert [record.levelno for record in caplog.records] == ([rule.level] if line else [])
    # A remedy follows, unless the line is for information.
    assert rule.level == logging.INFO or lines == [] or line != lines[0]


@pytest.mark.parametrize("event", ENDS)
def test_what_ends_the_member_has_its_row_and_its_message(event):
    held, at, unlike, row, message = event
    given = facts(held, at, unlike | {"copy": "FILE", "remedy": "DO THIS"})
    assert decide_input(given).name == row
    with pytest.raises(MemberStopped) as raised:
        settle(given)
    assert str(raised.value) == message


def test_each_row_is_the_row_of_an_event():
    decided = {(event[0], event[3]) for event in (*EVENTS, *ENDS)}
    assert decided == {(rule.held, rule.name) for rule in INPUT_RULES}
    assert len({rule.name for rule in INPUT_RULES}) == len(INPUT_RULES)


def test_nothing_goes_on_elsewhere_without_a_line_unless_nothing_was_read_or_rebuilt():
    for rule in INPUT_RULES:
        if rule.goes not in {Goes.ON, Goes.PASSES}:
            assert rule.says or rule.name == "the group has committed no offset"


def test_records_are_never_passed_over_in_silence_in_any_state_of_a_topic(caplog):
    """For every state of a small topic, with ids and without."""
    numbers, passed = range(4), 0
    for held, at, start, end in product((POSITION, STATE), numbers, numbers, numbers):
        for known, now, latest in product((None, OLD), (None, OLD, NEW), (False, True)):
            if start > end:
                continue
            caplog.clear()
            log = LogRange(start, end, now)
            given = {"partition": IN, "log": log, "at": at, "known_id": known}
            to = settle(InputFacts(held=held, reads_latest=latest, **given))
            is_other = None not in (known, now) and known != now
            # All records of another topic are new, and where the offset is of no use may be.
            first = start if is_other or at > end else at
            if to > first:
                passed += 1
                assert caplog.records, (held, at, log, known, to)
    assert passed > 50
