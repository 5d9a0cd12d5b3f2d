"""Writes records at a steady rate, and keeps when each was acknowledged."""

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count, cycle
from time import monotonic
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

from assignor.adapters.rebootstrap.kafka_python import supervise

_WORDS = (b"bounce", b"group", b"leader", b"member", b"probe", b"task", b"version")
_FLUSH_S = 120.0
# At 200 records a second, a request then holds one record of each of four partitions.
_LINGER_MS = 20


class WordProducer:
    """Writes words to all partitions in turn, `rate` per second, until it is stopped.

    Args:
        bootstrap_servers: of the broker.
        topic: that is written to.
        partitions: of the topic.
        rate: records per second.
        supervised: the client goes back to its bootstrap servers when all brokers are gone.
        on_written: gets partition, offset and time of each acknowledged record, on the client's
            thread. Then `written_ms`, `counts` and `words` return nothing: no record is kept.

    Attributes:
        failed: why a record could not be written, or None.
    """

    def __init__(
        self,
        *,
        bootstrap_servers: str,
        topic: str,
        partitions: int,
        rate: float,
        supervised: bool = False,
        on_written: Callable[[int, int, float], None] | None = None,
    ) -> None:
        self._on_written = on_written
        self.failed: str | None = None
        self._topic = topic
        self._partitions = partitions
        self._rate = rate
        self._lock = threading.Lock()
        self._written_ms: dict[int, dict[int, float]] = {p: {} for p in range(partitions)}
        self._stopping = threading.Event()
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap_servers,
            client_id="words",
            acks="all",
            linger_ms=_LINGER_MS,
            metrics_enabled=False,
            reconnect_backoff_max_ms=1_000,
        )
        if supervised:
            supervise(self._producer)
        self._thread = threading.Thread(target=self._run, name="words", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Stop writing, and wait until all records are acknowledged."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            self._producer.flush(timeout=_FLUSH_S)
        except KafkaError as error:
            self.failed = self.failed or f"{type(error).__name__}: {error}"

    def close(self, timeout_s: float = 1.0) -> None:
        """Close the connection, even if records are not acknowledged."""
        self._stopping.set()
        with suppress(KafkaTimeoutError):
            self._producer.close(timeout=timeout_s)

    def written_ms(self) -> dict[int, tuple[float, ...]]:
        """Return, per partition, when each record was acknowledged; the index is the offset."""
        with self._lock:
            return {
                partition: tuple(at_ms for _, at_ms in sorted(times.items()))
                for partition, times in self._written_ms.items()
            }

    def counts(self) -> dict[int, int]:
        """Return, per partition, how many records are acknowledged."""
        with self._lock:
            return {partition: len(times) for partition, times in self._written_ms.items()}

    def words(self) -> Counter[str]:
        """Return how often each word was written, once writing has stopped without a failure."""
        with self._lock:
            written = sum(len(times) for times in self._written_ms.values())
        return Counter(_WORDS[number % len(_WORDS)].decode() for number in range(written))

    def _run(self) -> None:
        began = monotonic()
        partitions = cycle(range(self._partitions))
        words = cycle(_WORDS)
        for number in count():
            wait_s = began + number / self._rate - monotonic()
            if self._stopping.wait(max(0.0, wait_s)) or self.failed is not None:
                return
            try:
                future = self._producer.send(
                    self._topic,
                    key=b"%d" % number,
                    value=next(words),
                    partition=next(partitions),
                )
            except KafkaError as error:
                self._fail(error)
                return
            future.add_callback(self._acknowledge)
            future.add_errback(self._fail)

    def _acknowledge(self, metadata: Any) -> None:
        at_ms = monotonic() * 1000
        if self._on_written is not None:
            self._on_written(metadata.partition, metadata.offset, at_ms)
            return
        with self._lock:
            self._written_ms[metadata.partition][metadata.offset] = at_ms

    def _fail(self, error: BaseException) -> None:
        self.failed = self.failed or f"{type(error).__name__}: {error}"
