"""Records that librdkafka has handed out and `poll` does not return: read again, not committed."""

import threading

import pytest

from assignor.adapters.confluent import consumer as facade
from tests.assignor.adapters.confluent.harness import committed, fill, poll_until, read
from tests.assignor.embedding.clusters import until

pytestmark = pytest.mark.usefixtures("clock")
RECORDS = 40
METHODS = {"poll": "read_one", "consume": "_consume"}


def call(member, method):
    """Return the records that one call returns."""
    found = member.consume(3, 0.05) if method == "consume" else [member.poll(0.05)]
    return [m for m in found if m is not None and m.error() is None]


def where(message):
    return message.partition(), message.offset()


def after_reads(monkeypatch, method, count, then):
    """Do something when librdkafka's method has returned records so many times."""
    original, reads = getattr(facade, METHODS[method]), []

    def reading(self, *arguments):
        result = original(self, *arguments)
        if result:
            reads.append(result)
            if len(reads) == count:
                then()
        return result

    monkeypatch.setattr(facade, METHODS[method], reading)


def interrupt():
    raise KeyboardInterrupt


def refusal(run):
    with pytest.raises(RuntimeError) as raised:
        run()
    return str(raised.value)


def check_committed(broker, returned):
    """Nothing is committed that was not returned."""
    ends = committed(broker)
    assert {(p, offset) for p, end in ends.items() for offset in range(end)} <= set(returned)
    return ends


@pytest.mark.parametrize(
    ("method", "commits"), [("consume", "automatically"), ("poll", "in on_revoke")]
)
def test_a_close_that_comes_while_records_are_handed_out_commits_what_was_returned(
    broker, consumer, monkeypatch, method, commits
):
    """As `close` on another thread, or in `stats_cb`, in that moment."""
    fill(broker, RECORDS)
    member = consumer({"enable.auto.commit": commits == "automatically"})
    on_revoke = None
    if commits == "in on_revoke":
        on_revoke = lambda closed, _: closed.commit(asynchronous=False)  # noqa: E731 short
    member.subscribe(["words"], on_revoke=on_revoke)
    after_reads(monkeypatch, method, 5, lambda: setattr(member._mailbox, "closes", True))
    returned = []

    def run():
        while True:
            returned.extend(map(where, call(member, method)))

    with pytest.raises(RuntimeError, match="Consumer closed"):
        run()
    assert sum(check_committed(broker, returned).values()) == len(returned) > 0
    monkeypatch.undo()
    # The next consumer begins with the first record that was not returned.
    following = consumer()
    following.subscribe(["words"])
    returned += map(where, read(following, RECORDS - len(returned)))
    assert len(set(returned)) == len(returned) == RECORDS


def test_close_on_another_thread_while_a_thread_polls_commits_what_was_returned(broker, consumer):
    returned, failures = [], []
    for _ in range(2):
        fill(broker, 400)
        member, begun = consumer(), threading.Event()
        member.subscribe(["words"])

        def run(member=member, begun=begun):
            while True:
                for message in call(member, "consume"):
                    returned.append(where(message))
                    begun.set()

        thread = threading.Thread(target=lambda run=run: failures.append(refusal(run)))
        thread.start()
        assert begun.wait(120)
        member.close()
        thread.join(120)
        assert failures.pop() == "Consumer closed"
        check_committed(broker, returned)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_an_interrupt_in_librdkafkas_call_commits_nothing_that_was_not_returned(
    broker, consumer, monkeypatch, method
):
    """The call drops the records that it has when a signal's handler raises, such as for Ctrl-C."""
    fill(broker, RECORDS)
    member = consumer()
    member.subscribe(["words"])
    after_reads(monkeypatch, method, 5, interrupt)
    returned = []
    with pytest.raises(KeyboardInterrupt):
        until(lambda: returned.extend(map(where, call(member, method))))
    member.close()
    check_committed(broker, returned)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_an_application_that_goes_on_after_an_interrupt_gets_every_record(
    broker, consumer, monkeypatch, method
):
    fill(broker, RECORDS)
    member = consumer()
    member.subscribe(["words"])
    after_reads(monkeypatch, method, 5, interrupt)
    returned = []
    with pytest.raises(KeyboardInterrupt):
        until(lambda: returned.extend(map(where, call(member, method))))
    until(
        lambda: returned.extend(map(where, call(member, method))) or len(set(returned)) == RECORDS
    )
    member.close()
    assert sum(check_committed(broker, returned).values()) == RECORDS


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_callback_of_librdkafka_that_raises_costs_no_record(broker, consumer, method):
    fill(broker, RECORDS)
    returned, raised = [], []

    def fails(_):
        if 0 < len(returned) < RECORDS - 10:
            raise ZeroDivisionError

    member = consumer({"stats_cb": fails, "statistics.interval.ms": 1})
    member.subscribe(["words"])

    def reading():
        try:
            returned.extend(map(where, call(member, method)))
        except ZeroDivisionError as error:
            raised.append(error)
        return len(set(returned)) == RECORDS

    until(reading)
    reading()  # the last one that was raised before
    assert raised
    member.close()
    assert sum(check_committed(broker, returned).values()) == RECORDS


def test_an_argument_that_is_refused_reads_nothing_again(broker, consumer):
    fill(broker, RECORDS)
    member = consumer({"enable.auto.commit": False})
    member.subscribe(["words"])
    returned = [*map(where, read(member, 10))]
    with pytest.raises(ValueError, match="num_messages must be between"):
        member.consume(1_000_001, 1.0)
    returned += map(where, poll_until(lambda: len(returned) >= 10, member))
    returned += map(where, read(member, RECORDS - len(returned)))
    assert len(set(returned)) == RECORDS
