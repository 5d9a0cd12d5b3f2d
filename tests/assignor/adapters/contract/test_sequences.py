"""Loops go through events in every order: nothing is lost, stuck or silent.

The planted faults that they find (tests/planted/input.toml) need one event. Every run has each
event alone and a part of the sequences of three, `make nightly` a sixteenth of these, each part
with random delays of its own; `python -m tests.assignor.adapters.contract.explore` plays all of
them.
"""

import os
import subprocess
import sys

import pytest

from assignor import MemberStopped
from tests.assignor.adapters.contract.events import EVENTS
from tests.assignor.adapters.contract.explore import LOOPS, play, sequences
from tests.nightly import sample

DEPTH = 3
PARTS = 409
AT_NIGHT = 16
BROKEN = [
    ("codec", "interrupt_in_poll", "checksum"),
    # The state took records of a topic that was made anew for those of the former one.
    ("topic_deleted", "commit_blocks"),
    # Offsets of the former topic were committed: of records that were kept, late, or not read on.
    ("handler_raises", "topic_made_anew"),
    ("commit_refused", "topic_made_anew"),
    ("retention", "topic_deleted"),
    # Records of the former topic were delivered that were fetched or kept when it was made anew.
    ("commit_blocks", "handler_is_too_slow", "topic_made_anew"),
    # The same, of a partition that was paused, and of one whose new position they were at.
    ("handler_pauses", "assigned", "topic_made_anew"),
    ("handler_is_slow", "assigned", "topic_made_anew_ahead"),
    # A batch took longer than the interval, so that two members processed it in turn.
    ("handler_is_slow", "handler_is_slow", "handler_is_slow"),
    # A lost position was settled in silence.
    ("records", "retention"),
    # Offsets that a loop had not committed were not committed by the next one.
    ("commit_refused", "checksum"),
    # A new topic was found only by a poll that returned nothing.
    ("topic_made_anew", "topic_made_anew", "handler_is_slow"),
    # Records of a new topic are read and committed where the former one was, until its id is known.
    ("topic_made_anew", "topic_made_anew", "records"),
    # The member begins at the end of a topic that was made anew meanwhile.
    ("stop", "topic_made_anew"),
    # A loop did not know of which topic the positions are that the loop before it has left.
    ("transaction", "codec", "topic_made_anew_ahead"),
    ("codec", "retention", "topic_made_anew_ahead"),
    # The state took records of the former topic, its first ones, for those of the new one.
    ("checksum", "fetch_fails", "topic_made_anew_ahead"),
    # The last commit came after the topic was made anew: the next owner began there.
    ("commit_late", "close_elsewhere", "topic_made_anew"),
    # librdkafka's position behind a control record was taken for one behind an error.
    ("unknown_error", "transaction", "lost"),
    # A position that was lost while librdkafka looked it up was never sought.
    ("topic_deleted", "no_right", "topic_made_anew_ahead"),
    # A partition that was sought in a poll that an interrupt ended was read on, not again.
    ("topic_made_anew_ahead", "topic_deleted", "interrupt_in_poll"),
    ("handler_is_too_slow", "topic_deleted", "interrupt_in_poll"),
    # A member that was removed could commit until it knew.
    ("commit_late", "handler_is_slow", "lost"),
    # The positions of a former topic were committed by a consumer that commits by itself.
    ("commit_late", "topic_deleted", "revoked_in_part"),
    # librdkafka looked up the begin of one partition, and the others of a seek were not committed.
    ("topic_deleted", "topic_made_anew", "fetch_fails"),
    ("fetch_fails", "handler_stops", "topic_deleted"),
    # A topic that was made anew was found as records that retention has deleted, and again later.
    ("poll_fails_with_records", "topic_made_anew_ahead", "handler_pauses_in_a_slice"),
    # What a listener had raised came only with the first poll that succeeded.
    ("listener_raises", "interrupt"),
    # A broker that told where a partition begins was not asked of which topic.
    ("topic_deleted", "topic_made_anew", "left_and_run_again"),
    # The oracle waited for a record that was written once the loop was to end.
    ("handler_pauses_in_a_slice", "topic_deleted", "fetch_fails"),
    # Another member did not read from where the state has to be read.
    ("handler_pauses_in_a_slice", "topic_made_anew_ahead", "revoked_in_part"),
    # The oracle asked for state of an interrupted slice whose topic was deleted then.
    ("handler_pauses_in_a_slice", "handler_never_returns", "topic_made_anew_ahead"),
]
DRAWN = [
    # A member that begins at an offset of the former topic commits it again.
    *(
        ("kafka-python polled", seed, "no_right commit_late topic_made_anew")
        for seed in (4, 5, 6, 7)
    ),
    # aiokafka raised an error of a record of a partition that the member had lost.
    ("aiokafka polled", 1, "deserializer removed_and_interrupted lost"),
    # It raised that of a partition that the member had got back, at its committed offset.
    ("aiokafka polled", 48, "deserializer interrupt_in_poll removed_and_interrupted"),
    # An error of the listener in a poll in which the consumer was closed was only logged.
    ("aiokafka polled", 48, "handler_closes close_in_poll listener_raises"),
    # The oracle asked for records that a member passed which ended before it could know the topic.
    ("kafka-python polled", 1151, "checksum unknown_error topic_made_anew_ahead"),
    # The oracle asked for a warning of a lost position while the broker refused to fetch.
    ("confluent run_tasks", 48, "no_right handler_pauses_in_a_slice retention"),
    # A poll returned records of a new topic that it had just found and sought: state passed over
    # those before them.
    ("confluent run_tasks", 368, "handler_is_too_slow topic_made_anew deserializer"),
    # The id of a topic was not looked up in the first second of the clock.
    (
        "confluent poll, automatic",
        240,
        "topic_made_anew left_and_run_again topic_made_anew",
    ),
    # A batch that was too slow was not logged, as the loop was to end after it.
    (
        "kafka-python polled",
        224,
        "handler_is_too_slow shutdown_requested handler_pauses_in_a_slice",
    ),
    # The scripted cluster answered for the input of state as if the deleted topic existed.
    ("confluent run_tasks", 192, "handler_stops topic_deleted shutdown_requested"),
    # The oracle ended a run at a record of a new topic that was read again and not committed yet.
    ("confluent poll, automatic", 208, "topic_made_anew_ahead no_right lost"),
    # The oracle took a record for passed over after a rebalance that began at committed offsets.
    ("aiokafka polled", 240, "codec removed_and_interrupted revoked_in_part"),
    # The oracle asked for a commit behind a record that a client without ids need not find.
    ("aiokafka polled", 1003, "handler_is_slow topic_made_anew transaction"),
]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("event", EVENTS)
def test_each_event_alone(loop, event):
    assert play(loop, [event]).broken == []


@pytest.mark.parametrize("sequence", BROKEN, ids=" ".join)
@pytest.mark.parametrize("loop", LOOPS)
def test_sequences_that_have_broken_a_rule(loop, sequence):
    assert play(loop, sequence).broken == []


def test_partitions_that_the_loop_has_paused_are_resumed_beside_one_of_the_application():
    def pauses(run):
        run.pause(1)
        run.clock.later(200, lambda: run.resume(1))

    run = LOOPS["StreamsApplication"]([EVENTS["handler_is_slow"], pauses])
    assert run.play() == []


@pytest.mark.parametrize("has_committed", [True, False])
def test_a_seek_in_a_rebalance_counts_unless_only_the_state_says_where_reading_begins(
    has_committed,
):
    def seeks_past_a_record(run):
        if not has_committed:
            run.cluster.committed.clear()
        run.cluster.write(0, b"q")
        EVENTS["rejoined"](run)
        run.seek(0, run.cluster.parts[0].end_offset)

    run = LOOPS["StreamsApplication"]([EVENTS["records"], EVENTS["records"], seeks_past_a_record])
    assert bool(run.play()) == has_committed  # a record is passed over


@pytest.mark.parametrize(("loop", "seed", "sequence"), DRAWN)
def test_sequences_that_have_broken_a_rule_with_these_delays(loop, seed, sequence):
    assert play(loop, sequence.split(), seed=seed).broken == []


@pytest.mark.usefixtures("clock")
def test_a_seed_draws_the_same_in_each_process():
    program = (
        "from tests.assignor.adapters.contract.explore import LOOPS, play, sequences\n"
        "for run in (play(loop, each) for loop in LOOPS for each in sequences(3, every=15991)):\n"
        "    print(run.clock.monotonic(), run.polls, run.raised, run.cluster.committed)"
    )
    command = [sys.executable, "-c", program]
    drawn = [
        subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "12"
    ]
    assert drawn[0] == drawn[1] != b""


@pytest.mark.parametrize("loop", LOOPS)
def test_lost_records_without_a_reset(loop):
    run = play(loop, ["retention"], reset="none")
    assert run.broken == []
    assert any(isinstance(error, MemberStopped) for _, error in run.raised)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    "part",
    [
        pytest.param(part, marks=pytest.mark.xdist_group(f"sequences {part}"))
        for part in sample(
            range(0, PARTS, AT_NIGHT), every=PARTS, reason="each part is 194 sequences of three"
        )
    ],
)
def test_every_sequence(loop, part):
    found = {}
    for sequence in sequences(DEPTH, every=PARTS, first=part):
        if broken := play(loop, sequence, seed=part).broken:
            found[sequence] = broken
    assert found == {}
