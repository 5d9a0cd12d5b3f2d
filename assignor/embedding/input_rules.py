"""How far the input is: one table for the positions of consumers, of state and of its copies.

A consumer reads on at its position, a task's state has the input up to an offset, and a local copy
of a store has its changelog up to an offset. Topics can be made anew, lose records or delete them,
and operators set the offsets of groups. `settle` compares an offset with the log as it is now, logs
what is wrong, and returns where to read on: no record is passed over without a line in the log. The
model is Kafka Streams, which commits positions, not the offsets of records, too (KAFKA-6607).
"""

import base64
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final
from uuid import UUID

from assignor.embedding.errors import MemberStopped
from assignor.embedding.input_facts import Goes, Held, InputFacts
from assignor.logs import line_logger

_log = line_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRule:
    """One row.

    Attributes:
        name: of the event.
        held: what has the offset.
        holds: whether it is this event.
        goes: where reading continues.
        says: the line of the log, with names in braces, or the message of the error that ends the
            member; "": nothing is logged.
        level: of the line.
    """

    name: str
    held: Held
    holds: Callable[[InputFacts], bool]
    goes: Goes
    says: str = ""
    level: int = logging.WARNING


_LOST_STATE: Final = "state that it does not have is lost: set the group's offsets back to redo it"
_WHENCE: Final = ("by auto_offset_reset: none is committed", "which the group has committed")
_PLACES: Final = ("{} [{}]", "{}-{}")
_RESET_STATE: Final = "stop all members, and delete changelogs and state directories"
_LOST_COMMIT: Final = (
    "{where}: it is not known up to where the state has its input: the last commit record of its "
    "changelog does not count, as its owner had lost the task (it says offset {hidden}), and "
    "compaction has removed those before it; "
)
INPUT_RULES: Final = (
    InputRule(
        name="the topic was made anew while it was not assigned (its id is another one)",
        held=Held.POSITION,
        holds=lambda f: f.is_anew and f.was_released,
        goes=Goes.ON,
        says="{where}: the topic was made anew since this member last read it; reading begins at "
        "offset {to} of {end}, {whence}; if state of the former one is not wanted, " + _RESET_STATE,
    ),
    InputRule(
        name="the topic was made anew (its id is another one)",
        held=Held.POSITION,
        holds=lambda f: f.is_anew,
        goes=Goes.START,
        says="{where}: the topic was made anew, and its former one was read up to offset {at}; the "
        "new one is read from its first record, offset {to} of {end}; if state of the former one is"
        " not wanted, " + _RESET_STATE,
    ),
    InputRule(
        name="the broker has lost records that were read, from a known offset on (KIP-320)",
        held=Held.POSITION,
        holds=lambda f: f.is_truncated and f.divergent is not None,
        goes=Goes.DIVERGENT,
        says="{where}: the broker has lost records from offset {to} on, and the topic was read up "
        "to offset {at}; reading continues at offset {to}; check the brokers for an unclean leader "
        "election",
    ),
    InputRule(
        name="the broker has lost all records that were read (KIP-320)",
        held=Held.POSITION,
        holds=lambda f: f.is_truncated,
        goes=Goes.RESET,
        says="{where}: the topic was read up to offset {at}, and the broker has none of these "
        "records any more: it has lost them, or the topic was made anew; reading continues at "
        "offset {to} of {end} (auto_offset_reset={reset}); check the brokers for an unclean leader "
        "election",
    ),
    InputRule(
        name="the group has committed no offset",
        held=Held.POSITION,
        holds=lambda f: f.at is None,
        goes=Goes.RESET,
    ),
    InputRule(
        name="it is beyond the end",
        held=Held.POSITION,
        holds=lambda f: f.next > f.log.end,
        goes=Goes.RESET,
        says="{where}: offset {at} is beyond the end, {end}: the topic was made anew, or has lost "
        "records, or the offset was set; reading continues at offset {to} "
        "(auto_offset_reset={reset}); to read other records, stop the group and set its offsets, "
        "such as with kafka-consumer-groups.sh --reset-offsets",
    ),
    InputRule(
        name="it is before the first record",
        held=Held.POSITION,
        holds=lambda f: f.next < f.log.start,
        goes=Goes.RESET,
        says="{where}: the records from offset {at} to {last} were deleted before they were read; "
        "reading continues at offset {to} (auto_offset_reset={reset}); raise retention.ms or "
        "retention.bytes of the topic",
    ),
    InputRule(
        name="the partition has its offset",
        held=Held.POSITION,
        holds=lambda f: f.held is Held.POSITION,
        goes=Goes.ON,
    ),
    InputRule(
        name="the changelogs are new, and the group has committed an offset",
        held=Held.STATE,
        holds=lambda f: f.is_new,
        goes=Goes.COMMITTED,
        says="{where}: the changelogs of this task are new, and the group has committed offset "
        "{committed}, where reading begins: this state has nothing of the records from {start} to "
        "there; that is right if its stores are new; if the changelogs were deleted, compute the "
        "state again: " + _RESET_STATE + ", and set the group's offsets back",
    ),
    InputRule(
        name="the commit record of the state is lost, and the group has committed no offset",
        held=Held.STATE,
        holds=lambda f: f.at is None and f.has_no_begin,
        goes=Goes.STOPS,
        says=_LOST_COMMIT + "the group has committed no offset between {start} and {end} either, so"
        " that records would be counted twice or be missing: this member ends; set the offset of "
        "the group to the first record that the state does not have, with kafka-consumer-groups.sh "
        "--reset-offsets --to-offset; or, to compute the state again, " + _RESET_STATE,
        level=logging.ERROR,
    ),
    InputRule(
        name="the commit record of the state is lost",
        held=Held.STATE,
        holds=lambda f: f.at is None,
        goes=Goes.COMMITTED,
        says=_LOST_COMMIT + "reading begins at the committed offset, {committed} of {end}: what the"
        " state has of the records from there on is counted twice; to compute the state again, "
        + _RESET_STATE,
    ),
    InputRule(
        name="the input topic was made anew (its id is another one)",
        held=Held.STATE,
        holds=lambda f: f.is_anew,
        goes=Goes.START,
        says="{where}: the topic was made anew, and the state has its former one up to offset {at};"
        " all records of the new one, from offset {start} on, are processed into this state; to "
        "begin without it, " + _RESET_STATE,
    ),
    InputRule(
        name="the state is ahead of the same topic (its id is the same)",
        held=Held.STATE,
        holds=lambda f: f.next > f.log.end and f.has_same_id,
        goes=Goes.END,
        says="{where}: the state has input up to offset {at}, and the topic ends at {end}: it has "
        "lost records; those from offset {to} on are processed into this state; check the brokers "
        "for an unclean leader election",
    ),
    InputRule(
        name="the state is ahead of the topic (its ids are not known)",
        held=Held.STATE,
        holds=lambda f: f.next > f.log.end,
        goes=Goes.START,
        says="{where}: the state has input up to offset {at}, and the topic ends at {end}: it was "
        "made anew, or has lost records; all of its records, from offset {to} on, are processed "
        "into this state; to begin without it, " + _RESET_STATE,
    ),
    InputRule(
        name="an operator has set the committed offset back",
        held=Held.STATE,
        holds=lambda f: f.is_set_back,
        goes=Goes.PASSES,
        says="{where}: the committed offset was set back to {committed}, and the state has input up"
        " to offset {at}: records between are passed over; to process them again, " + _RESET_STATE,
    ),
    InputRule(
        name="the group has committed no offset, and the topic begins after the state",
        held=Held.STATE,
        holds=lambda f: f.has_no_begin and f.committed is None and f.next < f.log.start,
        goes=Goes.START,
        says="{where}: the state has input up to offset {at}, and the records from there to {start}"
        " were deleted before they were processed; the group has committed no offset: reading "
        "continues at offset {to} of {end}; raise retention.ms or retention.bytes of the topic",
    ),
    InputRule(
        name="the group has committed no offset that the topic has",
        held=Held.STATE,
        holds=lambda f: f.has_no_begin and f.next >= f.log.start,
        goes=Goes.ON,
        says="{where}: the group has no committed offset between {start} and {end}: none was "
        "committed, or it has expired; the state has input up to offset {at}, where reading "
        "continues, also after a seek and whatever auto_offset_reset is",
        level=logging.INFO,
    ),
    InputRule(
        name="an operator has set the committed offset forward",
        held=Held.STATE,
        holds=lambda f: f.is_taken_over and f.is_set_forward,
        goes=Goes.COMMITTED,
        says="{where}: the committed offset was set to {committed}, and the state has input up to "
        "offset {at}: records between them are not processed into this state; to process them, set "
        "it back to {at}",
        level=logging.INFO,
    ),
    InputRule(
        name="the state is not ahead of the topic",
        held=Held.STATE,
        holds=lambda f: f.held is Held.STATE,
        goes=Goes.PASSES,
    ),
    InputRule(
        name="the changelog of its own task was made anew (its id is another one)",
        held=Held.CHANGELOG,
        holds=lambda f: f.is_anew and f.copy != "",
        goes=Goes.STOPS,
        says="{where}: the changelog was deleted and made anew (its id was {known_id} and is {id}),"
        " and has offsets {start} to {end}; {copy} has all of the task's state, up to offset {at} "
        "of the former one: it is kept, and this member ends; {remedy}",
        level=logging.ERROR,
    ),
    InputRule(
        name="the changelog of its own task ends before it",
        held=Held.CHANGELOG,
        holds=lambda f: f.next > f.log.end and f.copy != "",
        goes=Goes.STOPS,
        says="{where}: the changelog (its id was {known_id} and is {id}) ends at {end}: it was made"
        " anew, or has lost records; {copy} has all of the task's state, up to offset {at}: it is "
        "kept, and this member ends; {remedy}",
        level=logging.ERROR,
    ),
    InputRule(
        name="the changelog was made anew (its id is another one)",
        held=Held.CHANGELOG,
        holds=lambda f: f.is_anew,
        goes=Goes.REBUILD,
        says="state of {where} up to offset {at} is rebuilt: the changelog was deleted and made "
        "anew, and has offsets {start} to {end}; " + _LOST_STATE,
    ),
    InputRule(
        name="the changelog ends before it",
        held=Held.CHANGELOG,
        holds=lambda f: f.next > f.log.end,
        goes=Goes.REBUILD,
        says="state of {where} up to offset {at} is rebuilt: the changelog ends at {end}: it was "
        "made anew, or has lost records; " + _LOST_STATE,
    ),
    InputRule(
        name="the changelog begins after it, and is only compacted",
        held=Held.CHANGELOG,
        holds=lambda f: f.is_only_compacted and f.next < f.log.start,
        goes=Goes.REBUILD,
        says="state of {where} up to offset {at} is restored from offset {start} to {end}: earlier "
        "records were deleted, by DeleteRecords or because cleanup.policy was delete, and keys that"
        " only they have are missing, unless a write-back has written them since; a member that was"
        " active before may have all in its state directory: stop all, delete this changelog, "
        "create it with cleanup.policy=compact, start that member, and do what it says; else "
        "compute the state again: " + _RESET_STATE + ", and set the group's offsets back",
    ),
    InputRule(
        name="the changelog begins after it",
        held=Held.CHANGELOG,
        holds=lambda f: 0 < f.next < f.log.start,
        goes=Goes.REBUILD,
        says="state of {where} up to offset {at} is rebuilt: the changelog begins at {start}",
        level=logging.INFO,
    ),
    InputRule(
        name="the changelog continues where it ends",
        held=Held.CHANGELOG,
        holds=lambda f: f.held is Held.CHANGELOG,
        goes=Goes.ON,
    ),
)
"""The first row of what has the offset that holds decides."""


def decide_input(facts: InputFacts) -> InputRule:
    """Return the row that says where to go on."""
    return next(rule for rule in INPUT_RULES if rule.held is facts.held and rule.holds(facts))


def settle(facts: InputFacts) -> int | None:
    """Return the offset to read on at, once the row is logged; None: begin anew, at no offset.

    Raises:
        MemberStopped: the local copy has what its changelog has lost.
    """
    rule = decide_input(facts)
    log, reset = facts.log, facts.log.end if facts.reads_latest else facts.log.start
    to = {
        Goes.START: log.start,
        Goes.END: log.end,
        Goes.RESET: reset,
        Goes.DIVERGENT: facts.divergent,
        Goes.COMMITTED: facts.committed,
        Goes.REBUILD: None,
    }.get(rule.goes, reset if facts.at is None else facts.at)
    if rule.says:
        names = {
            "where": _PLACES[facts.held is Held.CHANGELOG].format(*facts.partition),
            "at": facts.next,
            "start": log.start,
            "end": log.end,
            "to": to,
            "committed": facts.committed,
            "hidden": "unknown" if facts.hidden is None else facts.hidden,
            "last": log.start - 1,
            "whence": _WHENCE[facts.committed is not None],
            "reset": "latest" if facts.reads_latest else "earliest",
            "known_id": _shown_id(facts.known_id),
            "id": _shown_id(log.topic_id),
        }
        says = rule.says.format_map(asdict(facts) | names)
        if rule.goes is Goes.STOPS:
            raise MemberStopped(says)
        is_again = facts.is_logged and rule.goes is not Goes.PASSES
        _log.log(logging.INFO if is_again else rule.level, "%s", says)
    return to


def _shown_id(topic_id: UUID | None) -> str:
    """Return the id of a topic as Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode()[:22] if topic_id else "not known"
