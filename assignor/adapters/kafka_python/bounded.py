"""A `KafkaConsumer` that waits for no broker, and for no record, without end."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import KafkaTimeoutError, RequestTimedOutError, UnknownTopicOrPartitionError

from assignor.adapters.kafka_python.records import mend_fetched_records
from assignor.embedding.state_stores import WAIT_S


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

    @property
    def limit_ms(self) -> float:
        """Longest wait for a broker now: `request_timeout_ms`, or less by `WAIT_S`."""
        limit_s, own_ms = WAIT_S.get(), self.config["request_timeout_ms"]
        return float(own_ms if limit_s is None else min(own_ms, limit_s * 1000))

    def beginning_offsets(self, partitions: Any, timeout_ms: float | None = None) -> Any:
        """Return first offsets, within `limit_ms`."""
        return super().beginning_offsets(partitions, timeout_ms or self.limit_ms)

    def end_offsets(self, partitions: Any, timeout_ms: float | None = None) -> Any:
        """Return the offsets behind the last records, within `limit_ms`."""
        return super().end_offsets(partitions, timeout_ms or self.limit_ms)

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
        limit_ms = self.limit_ms
        end_s = time.monotonic() + limit_ms / 1000
        before = cluster.need_all_topic_metadata

        def wait(update: Any) -> None:
            left_ms = max(0.0, end_s - time.monotonic()) * 1000
            self._net.run(self._manager.wait_for, update, left_ms)

        try:
            if cluster.metadata_refresh_in_progress:
                wait(cluster.request_update())
            cluster.need_all_topic_metadata = wants_all or before
            wait(cluster.request_update())
        except (KafkaTimeoutError, RequestTimedOutError):
            raise KafkaTimeoutError(
                f"no broker of {self.config['bootstrap_servers']} has answered a metadata request "
                f"within {limit_ms:.0f} ms; check that brokers run and can be reached"
            ) from None
        finally:
            cluster.need_all_topic_metadata = before
