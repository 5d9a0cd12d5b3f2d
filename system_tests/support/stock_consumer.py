"""A kafka-python consumer with assignors of its own, as the members of other groups have them."""

from typing import Any

from kafka import KafkaConsumer


class StockConsumer(KafkaConsumer):  # type: ignore[misc] # the client is untyped
    """A `KafkaConsumer` in a group, without two ways in which kafka-python 3.0 stalls it.

    A leader that has no metadata yet assigns nothing, and if they come while it does, it takes them
    for those that it had: it never joins again. A join for changed metadata that does not end in
    its poll is forgotten once the leader has decided, and no heartbeat is sent.

    Args:
        topics: to subscribe to; none: `subscribe` is called later, behind `partitions_for_topic`.
        config: as of `KafkaConsumer`.
    """

    def __init__(self, *topics: str, **config: Any) -> None:
        super().__init__(**config)
        for topic in topics:
            self.partitions_for_topic(topic)
        if topics:
            self.subscribe(topics)

    def poll(self, *arguments: Any, **options: Any) -> Any:
        """Poll, and take up a join that another poll has begun."""
        if self._coordinator.rejoining:
            self._coordinator.request_rejoin()
        return super().poll(*arguments, **options)
