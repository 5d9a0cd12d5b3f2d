"""What happens to a member: each public function is an event of its run."""

from functools import wraps
from inspect import isfunction

from tests.assignor.adapters.contract.cluster import FIRST, SECOND, Boom, ClientBoom
from tests.assignor.adapters.contract.member import INTERVAL_S, METADATA_S

_NO_RIGHT, _UNKNOWN, _NOT_LEADER = 29, -1, 6
_REBALANCES, _ILLEGAL_GENERATION, _UNKNOWN_MEMBER = 27, 22, 25
LASTS_S = 2 * INTERVAL_S
PAUSE_S = 1.5 * METADATA_S
_SLOW_RECORDS = 4
_SOON = 2  # what two polls of a slow member have taken, before it knows the new topic


def records(run):
    run.cluster.write(0, b"c", b"d")
    run.cluster.write(1, b"c")


def fetch_fails(run):
    run.cluster.fail_fetch(3)


def fetch_is_refused(run):
    if 0 not in run.cluster.fetch_errors:  # else it would end what lasts
        run.cluster.refuse_fetch(0, _NOT_LEADER, 2)


def _lasting(run, seconds, heal, what, is_excused=lambda: False):
    """End a fault after so long; until then it has to be raised or logged, once if it was on."""
    since_s = run.faults.setdefault(what, run.clock.monotonic())
    incarnation, existed = run.cluster.incarnation, run.cluster.exists
    run.healing += 1

    def over():
        run.healing -= 1
        if not run.healing:
            run.faults.clear()
        is_other = (incarnation, existed) != (run.cluster.incarnation, run.cluster.exists)
        heal()
        is_paused = run.paused or run.pause_ended_s >= since_s  # nobody has asked for records
        if not (is_other or is_paused or is_excused() or run.attention_since(since_s)):
            run.broken.append(f"attention: nobody was told of {what} for {seconds:.0f} s")

    run.when_polled(seconds, over)


def _lasting_refusal(run, code, what):
    run.cluster.refuse_fetch(0, code, None)
    run.cluster.write(0, b"e")
    _lasting(run, LASTS_S, lambda: run.cluster.fetch_errors.pop(0, None), what)


def no_right(run):
    _lasting_refusal(run, _NO_RIGHT, "a missing right")


def unknown_error(run):
    _lasting_refusal(run, _UNKNOWN, "an unknown error")


def checksum(run):
    run.cluster.damage(0, "checksum")
    run.cluster.write(0, b"f")


def codec(run):
    run.cluster.damage(1, "codec")
    run.cluster.write(1, b"f")


def deserializer(run):
    run.cluster.write(0, b"poison" if run.deserializes else b"no poison", b"g")
    run.cluster.write(1, b"g")


def _handler(action):
    """Return the event that the function which processes the next record does this."""

    @wraps(action)
    def event(run):
        run.handlers.append(action)

    return event


@_handler
def handler_raises(run, value):
    raise Boom(value)


@_handler
def handler_raises_as_a_client(run, value):
    raise ClientBoom(value)


def handler_is_slow(run):
    """The next records take long: three of one batch would take longer than the interval."""
    run.handlers += [_slowly] * _SLOW_RECORDS
    run.cluster.write(0, b"k", b"k")


def _slowly(run, value):
    run.sleep(0.4 * INTERVAL_S)


@_handler
def handler_is_too_slow(run, value):
    since_s = run.clock.monotonic()
    run.sleep(1.2 * INTERVAL_S)

    def check():
        if run.names_slow and not run.attention_since(since_s):
            run.broken.append("attention: nobody was told of a call longer than the interval")

    run.when_polled(2 * INTERVAL_S, check)


@_handler
def handler_never_returns(run, value):
    run.sleep(3 * INTERVAL_S)
    raise KeyboardInterrupt


@_handler
def handler_pauses(run, value):
    """Pause a partition, of which records may have been fetched, for a while."""
    run.pause_for(SECOND.partition, PAUSE_S)


def handler_pauses_in_a_slice(run):
    """Pause, for long, a partition whose records the loop has kept, and has paused itself."""
    run.handlers += [_slowly, _slowly, _pauses_its_own, _slowly]
    run.cluster.write(0, b"n", b"n", b"n")
    run.cluster.write(1, b"n", b"n")


def _pauses_its_own(run, value):
    _, number, _ = run.cluster.values[value]
    run.pause_for(number, LASTS_S)
    if not run.is_over:  # else the loop ends before it is read
        run.cluster.write(number, b"o")


def application_pauses(run):
    """Pause between two batches, or on another thread or in another coroutine."""
    run.pause_for(FIRST.partition, PAUSE_S)
    run.cluster.write(0, b"p")


@_handler
def handler_stops(run, value):
    run.stop()


@_handler
def handler_closes(run, value):
    run.close()


def revoked_in_part(run):
    run.rebalance(run.assigned - {FIRST})
    run.take_over({FIRST})


def revoked(run):
    gone = run.assigned
    run.rebalance(())
    run.take_over(gone & {SECOND})


def lost(run):
    run.rebalance((), is_lost=True)


def assigned(run):
    run.rebalance(run.everything)


def rejoined(run):
    """All partitions are given up and assigned again within a poll, as in an eager group."""
    own = run.assigned
    run.rebalance(())
    run.rebalance(own)


def removed_and_interrupted(run):
    """The group removes a member that has committed: a signal ends the poll that joins again."""
    run.events[:0] = [records, records, _removed, _rejoined_and_interrupted]


def _removed(run):
    records(run)
    commit_refused(run)


def _rejoined_and_interrupted(run):
    rejoined(run)
    run.is_interrupted = True


def listener_raises(run):
    """The application's listener raises in a rebalance, which gives all partitions back."""
    rejoined(run)
    run.fail_listener()


def commit_late(run):
    run.cluster.refusals += [_REBALANCES]


def commit_refused(run):
    run.cluster.refusals += [_ILLEGAL_GENERATION]


def commit_blocks(run):
    run.cluster.refusals += [None]
    run.is_unanswered = True


def coordinator_gone(run):
    run.cluster.silent_until_s = run.clock.monotonic() + 25
    run.is_unanswered = True


def topic_deleted(run):
    if run.cluster.exists:
        run.cluster.delete_topic()
        _lasting(run, LASTS_S, lambda: _made_anew(run), "a topic that does not exist")


def topic_made_anew(run):
    _made_anew(run)


def _made_anew(run):
    run.cluster.make_anew(b"h")
    _skip_unknown(run)


def topic_made_anew_ahead(run):
    """The new topic begins where the former one would be read on, in one partition soon after."""
    begins = {number: at + (0 if number else _SOON) for number, at in run.positions().items()}
    _made_anew(run)
    for number, begin in begins.items():
        run.cluster.write(number, *[b"m"] * (begin + 1))
        run.cluster.delete_records(number, begin)
    _skip_unknown(run)


def _skip_unknown(run):
    if not run.has_ids:
        # Found only if it ends before the position.
        run.skipped |= {v for v, (i, *_) in run.cluster.values.items() if i > 1}


def transaction(run):
    run.cluster.write_transaction(0, b"l")


def topic_grown(run):
    if run.cluster.exists:
        run.cluster.grow()


def retention(run):
    """The broker deletes records that are not read yet: a position is lost if there is one."""
    run.cluster.write(0, b"i", b"j")
    log = run.cluster.parts[0]
    run.cluster.delete_records(0, len(log._batches) - 1)
    since_s = run.clock.monotonic()

    def is_excused():
        """Return whether another member found it, or nobody could: the broker has just refused."""
        is_refused = run.clock.monotonic() - run.cluster.refused_s < PAUSE_S
        return is_refused or run.taken_over_s >= since_s

    if run.cluster.exists and FIRST in run.cluster.committed:
        what = "records that were deleted before they were read"
        _lasting(run, LASTS_S, lambda: None, what, is_excused)


def stop(run):
    run.stop()


def shutdown_requested(run):
    """The whole group is asked to stop."""
    run.shut_down()


def left_and_run_again(run):
    """The application leaves the loop with a batch, and begins another one on the consumer."""
    run.leaves = True
    records(run)


def poll_fails_with_records(run):
    """An error when the client has taken records, and before its poll returns them."""
    run.fails_with_records = True


def close_elsewhere(run):
    run.close_elsewhere()


def close_in_poll(run):
    """Another thread closes when the client has taken records, before its poll returns them."""
    run.close_in_poll()


def interrupt(run):
    raise KeyboardInterrupt


def interrupt_in_poll(run):
    """A signal when the client has taken records, and before its poll returns them."""
    run.is_interrupted = True


EVENTS = {
    name: event
    for name, event in [*globals().items()]
    if isfunction(event) and event.__module__ == __name__ and not name.startswith("_")
}
