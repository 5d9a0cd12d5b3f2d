"""librdkafka's consumer whose methods raise once it is closed.

In confluent-kafka below 2.16 four methods use the freed handle of a closed consumer, which ends the
process by a segmentation fault: `list_topics` (below 2.13), `pause`, `resume` and
`set_sasl_credentials`.
"""

from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition as Position

from assignor.adapters.confluent.serving import CLOSED


class CheckedReader(confluent_kafka.Consumer):
    """A `confluent_kafka.Consumer` that is closed until a subclass sets `_is_open`."""

    _is_open = False

    def _check_open(self) -> None:
        """Check that the consumer is open.

        Raises:
            RuntimeError: it is closed.
        """
        if not self._is_open:
            raise RuntimeError(CLOSED)

    def list_topics(self, *arguments: Any, **options: Any) -> Any:
        """Return brokers and topics, as librdkafka does."""
        self._check_open()
        return super().list_topics(*arguments, **options)

    def pause(self, partitions: list[Position]) -> None:
        """Fetch nothing of these partitions until `resume`."""
        self._check_open()
        super().pause(partitions)

    def resume(self, partitions: list[Position]) -> None:
        """Fetch these partitions again."""
        self._check_open()
        super().resume(partitions)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Authenticate new connections with these."""
        self._check_open()
        super().set_sasl_credentials(username, password)
