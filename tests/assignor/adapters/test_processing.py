"""What an error means for a loop of `run_tasks`: retried, or raised to its caller."""

import threading

import pytest
from kafka.errors import KafkaConnectionError, TopicAuthorizationFailedError

from assignor.adapters.processing import BatchProcessing
from assignor.embedding import ClusterUnavailable, MemberStopped


class Stores:
    """Processes each record of a batch, after an error if there is one."""

    def __init__(self, error=None):
        self._error = error

    def process(self, batch, handle):
        if self._error is not None:
            raise self._error
        for record in batch["p"]:
            handle(record, None)
        return {"p": len(batch["p"])}


def processing(handle=print, *, stores=None, commit=lambda _: None):
    ended = threading.Event()
    ended.set()
    return BatchProcessing(
        stores or Stores(), handle, commit, ended=ended, transient=(KafkaConnectionError,)
    )


def raising(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.parametrize(
    "error", [KafkaConnectionError("its own"), TopicAuthorizationFailedError(), ValueError("bug")]
)
def test_an_error_of_the_function_that_processes_records_is_raised_and_nothing_committed(error):
    committed = []
    with pytest.raises(type(error)) as raised:
        processing(raising(error), commit=committed.append).process({"p": ["a"]})
    assert raised.value is error
    assert not committed


def test_an_unreachable_cluster_is_retried_wherever_it_shows(caplog):
    gone, unavailable = KafkaConnectionError("gone"), ClusterUnavailable("output unavailable")
    processing(commit=raising(gone)).process({"p": ["a"]})
    processing(stores=Stores(gone)).process({"p": ["a"]})
    processing(raising(unavailable)).process({"p": ["a"]})  # as `state.send` raises
    assert len([line for line in caplog.messages if "records are kept, and proc" in line]) == 3


def test_a_fatal_error_of_an_output_ends_the_member():
    refused = ClusterUnavailable("output cannot be written")
    refused.__cause__ = TopicAuthorizationFailedError()
    with pytest.raises(MemberStopped, match="grant READ on it"):
        processing(raising(refused)).process({"p": ["a"]})
