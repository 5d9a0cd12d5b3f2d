"""A `KafkaConsumer` that waits for no broker, and for no record, without end."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from math import inf
from typing import Any, Final

from kafka import KafkaConsumer
from kafka.errors import KafkaTimeoutError, RequestTimedOutError, UnknownTopicOrPartitionError

from assignor.adapters.kafka_python.records import mend_fetched_records
from assignor.adapters.threads import LOOP_END
from assignor.embedding.state_stores import WAIT_S

# How often a wait looks whether the poll loop is to end, and how long it then lasts at most.
_LOOK_S: Final = 0.5
_LAST_S: Final = 5.0


class BoundedConsumer(KafkaConsumer):  # type: ignore[misc] # the client is untyped
    """A `KafkaConsumer` whose `topics` and `partitions_for_topic` end after `request_timeout_ms`.

    kafka-python 3.0 waits for the metadata of all topics until a broker answers. A record that
    cannot be read is raised as `UnreadableRecord`.
    """

    def __init__(self, *topics: str, **settings: Any) -> None:
        super().__init__(*topics, **settings)
        # kafka-python 3.0 takes the setting and does not pass it on to what writes the requests.
        self._cluster.config["allow_auto_create_topics"] = self.config["allow_auto_create_topics"]
        mend_fetched_records(self)

    @contextmanager
    def knowing(self, topics: Collection[str], *, anew: bool = False) -> Iterator[None]:
        """Have the metadata of these topics in a block, and not those of the whole cluster.

        A topic that does not exist is not created, unless `allow_auto_create_topics` says so.

        Args:
            topics: names.
            anew: fetch them; else only if some are missing.

        Raises:
            KafkaTimeoutError: no broker has answered in time.
        """
        cluster = self._cluster
        before = cluster._topics  # noqa: SLF001 no public way; `set_topics` adds none to others
        cluster._topics = before | {*topics}  # noqa: SLF001 as above
        try:
            if anew or not all(map(cluster.partitions_for_topic, topics)):
                with suppress(UnknownTopicOrPartitionError):  # of the only one that is asked for
                    self._fetch_metadata(wants_all=False)
            yield
        finally:
            cluster._topics = before  # noqa: SLF001 as above

    def _fetch_all_topic_metadata(self) -> None:
        """Fetch the metadata of all topics; raise as `knowing`."""
        self._fetch_metadata(wants_all=True)

    def _fetch_metadata(self, *, wants_all: bool) -> None:
        cluster = self._cluster
        limit_ms = longest_wait_ms(self)
        end_s = time.monotonic() + limit_ms / 1000
        before = cluster.need_all_topic_metadata
        try:
            if cluster.metadata_refresh_in_progress:
                answer_of(self, cluster.request_update(), end_s)
            cluster.need_all_topic_metadata = wants_all or before
            answer_of(self, cluster.request_update(), end_s)
        except (KafkaTimeoutError, RequestTimedOutError):
            raise KafkaTimeoutError(
                f"no broker of {self.config['bootstrap_servers']} has answered a metadata request "
                f"within {limit_ms:.0f} ms; check that brokers run and can be reached"
            ) from None
        finally:
            cluster.need_all_topic_metadata = before


def longest_wait_ms(client: Any) -> float:
    """Return how long to wait for a broker now: `request_timeout_ms`, or less by `WAIT_S`."""
    limit_s, own_ms = WAIT_S.get(), client.config["request_timeout_ms"]
    return float(own_ms if limit_s is None else min(own_ms, limit_s * 1000))


def answer_of(client: Any, answer: Any, end_s: float = inf) -> Any:
    """Return the result of a client's future, once it is known.

    Args:
        client: of kafka-python.
        answer: the future.
        end_s: when the wait ends (`time.monotonic()`), at the latest after `longest_wait_ms`,
            and 5 s after the poll loop of this thread was asked to end.

    Raises:
        KafkaTimeoutError: it is not known in time.
        KafkaError: the request has failed.
    """
    begin_s, ended, is_last = time.monotonic(), LOOP_END.get(), False
    end_s = min(end_s, begin_s + longest_wait_ms(client) / 1000)
    while True:
        now_s = time.monotonic()
        if not is_last and ended is not None and ended.is_set():
            end_s, is_last = min(end_s, now_s + _LAST_S), True
        wait_s = max(0.0, min(end_s - now_s, _LOOK_S))
        try:
            return client._net.run(client._manager.wait_for, answer, 1000 * wait_s)  # noqa: SLF001 no public way
        except KafkaTimeoutError as error:
            if error is answer.exception:
                raise
            if time.monotonic() >= end_s:
                raise KafkaTimeoutError(
                    f"no broker has answered within {end_s - begin_s:.1f} s"
                ) from None
