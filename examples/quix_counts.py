"""A Quix Streams application: it counts words by key, and knows nothing of the assignor.

python -m system_tests.broker --port 9092 --topic words:12 --topic counts:12
export Quix__Broker__Address=127.0.0.1:9092
Quix__State__Dir=state/one python examples/quix_counts.py                 # Quix's own consumer
Quix__State__Dir=state/one python -m assignor.integrations.quix examples/quix_counts.py
"""

from typing import Any

from quixstreams import Application, State

app = Application(
    consumer_group="word-counts",
    auto_offset_reset="earliest",
    commit_interval=1.0,
    consumer_extra_config={"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000},
)
words = app.topic("words", key_deserializer="str", value_deserializer="bytes")
counts = app.topic("counts", key_serializer="str", value_serializer="json")


def count(_: Any, state: State) -> dict[str, int]:
    """Return how often the word has come."""
    number = state.get("count", 0) + 1
    state.set("count", number)
    return {"count": number}


app.dataframe(words).apply(count, stateful=True).to_topic(counts)

if __name__ == "__main__":
    app.run()
