"""A process with one consumer that reports what it does as lines of JSON, and commits each batch.

Its only argument is a JSON object, the configuration of the consumer. The end of its standard
input ends it.
"""

import json
import sys
import threading

from assignor.adapters.confluent import Consumer
from tests.assignor.adapters.confluent.harness import TOPOLOGY, numbers


def report(**fields):
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def main():
    ended = threading.Event()

    def wait_for_end():
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    with Consumer(json.loads(sys.argv[1]), topology=TOPOLOGY) as consumer:

        def taken(member, partitions):
            member.incremental_assign(partitions)
            report(owned=numbers(member.assignment()))

        def given_up(member, partitions):
            member.incremental_unassign(partitions)
            report(owned=numbers(member.assignment()))

        consumer.subscribe(["words"], on_assign=taken, on_revoke=given_up)
        while not ended.is_set():
            batch = consumer.consume(50, 0.1)
            assert [each.error() for each in batch if each.error()] == []
            if batch:
                report(read=[(each.partition(), each.offset()) for each in batch])
                consumer.commit(asynchronous=False)


if __name__ == "__main__":
    main()
