"""confluent-kafka as a member of a group that assigns the tasks of a topology.

librdkafka accepts no custom assignor. `Consumer` is a `confluent_kafka.Consumer` in which
librdkafka reads records, in no group, and a kafka-python member takes part in the group and
commits.

```
consumer = Consumer(
    {"bootstrap.servers": "127.0.0.1:9092", "group.id": "word-count"},
    topology=topology,
    num_standby_replicas=1,
)
consumer.subscribe(["words"], on_assign=restore, on_revoke=flush)
```

Threads, and what each of them does:

- **The application's thread** calls `poll`, `consume` and `close`. All callbacks run in these
  calls: of rebalances, of commits, of the `TasksListener`, and librdkafka's own. It
  waits in librdkafka for at most 0.1 s at once and takes events of the member between two waits,
  so a rebalance waits for one batch of the application.
- **Other threads of the application** use librdkafka between two such waits. confluent-kafka 2.16
  would let them wait for as long as another thread polls.
- **The member's thread** keeps kafka-python's coordinator going: it subscribes, joins, commits
  at intervals, and leaves. It measures the poll interval of the application.
- **kafka-python's I/O thread** sends heartbeats, runs the assignor, and awaits the application's
  answer to a rebalance without blocking. It sends the commits, one request after the other.
- **librdkafka's threads** fetch records.

Events go one way, through `Mailbox`, and answers come back by a call into kafka-python's event
loop. No lock is held while the application or a client is called.
"""

# ruff: noqa: E402 the release is checked before anything is imported from the library
import assignor.clients

assignor.clients.require_client("confluent-kafka")
assignor.clients.require_client("kafka-python", extra="confluent")

from assignor.adapters.confluent.application import StreamsApplication
from assignor.adapters.confluent.consumer import Consumer
from assignor.adapters.confluent.processing import run_tasks

__all__ = ["Consumer", "StreamsApplication", "run_tasks"]
