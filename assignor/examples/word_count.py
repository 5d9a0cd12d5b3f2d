"""A word count with state that survives its process: start several members and kill one.

    rolling-bounce broker --port 9092 --topic words:4
    python -m assignor.examples.word_count --state-dir state/one    # and again with state/two
    python -m assignor.examples.word_count --say "to be or not to be"

Each task counts the words of one partition. Counts are exact whatever is killed, and standbys keep
a copy of them. Version 2 of the application counts the lengths of words, too, in a second store:
restart one member after the other with `--version 2`.
"""

from pathlib import Path
from typing import Any

import click
from kafka import KafkaProducer
from kafka.errors import KafkaError

from assignor import JSON, TEXT, RebalanceError, SqliteStore, TaskState
from assignor.adapters.admin import GroupLevels
from assignor.adapters.kafka_python import StreamsApplication
from assignor.examples.topologies import FIRST, SECOND

GROUP = "word-count"
COUNTS = SqliteStore("counts", key=TEXT, value=JSON)
LENGTHS = SqliteStore("lengths", key=TEXT, value=JSON)


def count(record: Any, state: TaskState) -> None:
    """Count a word; the new count and the offset of the record are stored together, or neither."""
    counts, word = state[COUNTS], record.key.decode()
    counts.put(word, counts.get(word, 0) + 1)
    click.echo(f"{state.task} {word} {counts.get(word)}")


def count_lengths(record: Any, state: TaskState) -> None:
    """Count a word, and its length."""
    count(record, state)
    lengths, length = state[LENGTHS], f"{len(record.key.decode())} letters"
    lengths.put(length, lengths.get(length, 0) + 1)
    click.echo(f"{state.task} {length} {lengths.get(length)}")


VERSIONS = {1: (FIRST, count, [COUNTS]), 2: (SECOND, count_lengths, [COUNTS, LENGTHS])}


@click.command()
@click.option("--bootstrap-server", default="127.0.0.1:9092", show_default=True)
@click.option("--state-dir", type=Path, default=Path("state"), show_default=True)
@click.option("--session-ms", default=6000, show_default=True, help="Session timeout in ms.")
@click.option("--version", type=click.IntRange(1, 2), default=1, help="Of the application.")
@click.option("--say", metavar="WORDS", help="Write these words and exit.")
def main(
    bootstrap_server: str, state_dir: Path, session_ms: int, version: int, say: str | None
) -> None:
    """Count the words of topic `words`."""
    topology, handle, stores = VERSIONS[version]
    try:
        if say is None:
            with StreamsApplication(
                topology,
                handle,
                stores=stores,
                group_id=GROUP,
                bootstrap_servers=bootstrap_server,
                state_dir=state_dir,
                num_standby_replicas=1,
                session_timeout_ms=session_ms,
                heartbeat_interval_ms=session_ms // 15,
                level_source=GroupLevels(bootstrap_server, GROUP),
                level_poll_s=1,
                tell=click.echo,
            ) as app:
                return app.run()
        with KafkaProducer(bootstrap_servers=bootstrap_server) as producer:
            for word in say.split():
                producer.send("words", key=word.encode())
    except (KafkaError, RebalanceError) as error:
        raise click.ClickException(str(error) or type(error).__name__) from error


if __name__ == "__main__":
    main()
