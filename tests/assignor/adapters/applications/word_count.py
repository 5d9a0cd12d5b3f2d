"""One word count with `StreamsApplication` of each client: as a process, and in a thread.

python -m tests.assignor.adapters.applications.word_count CLIENT SERVERS STATE_DIR SESSION_MS
"""

import asyncio
import sys
import threading
import time
from contextlib import contextmanager

from assignor import JSON, TEXT, SqliteStore, Topology
from assignor.adapters import aiokafka, confluent, kafka_python

LIMIT_S = 120
CLIENTS = {
    "kafka-python": kafka_python.StreamsApplication,
    "aiokafka": aiokafka.StreamsApplication,
    "confluent-kafka": confluent.StreamsApplication,
}
TOPOLOGY = (
    Topology()
    .add_source("words", topics=["words"])
    .add_processor("count", parents=["words"])
    .add_state_store("counts", processors=["count"])
)
COUNTS = SqliteStore("counts", key=TEXT, value=JSON)


def count(record, state):
    word = record.key.decode()
    state[COUNTS].put(word, state[COUNTS].get(word, 0) + 1)


def made(client, handle=count, topology=TOPOLOGY, **options):
    given = {"group_id": "app", "stores": [COUNTS], "bootstrap_servers": "127.0.0.1:1"}
    return CLIENTS[client](topology, handle, **given | options)


def counted(app, partitions):
    """Return the counts of all words, once all tasks are here."""
    found = [app.stores.local_state(COUNTS, each)[COUNTS].items() for each in range(partitions)]
    return {word: times for items in found for word, times in items}


def until(holds):
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


class Member:
    """An application in a thread.

    Attributes:
        app: once it has connected.
        error: what `run` has raised.
        loop: its event loop, or None.
    """

    def __init__(self, client, **options):
        self._client, self._options = client, options
        self.app = self.error = self.loop = None
        self.has_ended, self._stop = threading.Event(), None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        until(lambda: self.app is not None or self.has_ended.is_set())

    def _run(self):
        try:
            if self._client == "aiokafka":
                asyncio.run(self._await())
            else:
                self._stop = threading.Event()
                with made(self._client, **self._options) as app:
                    self.app = app
                    app.run(self._stop)
        except BaseException as error:  # noqa: BLE001 the test looks at it
            self.error = error
        finally:
            self.has_ended.set()

    async def _await(self):
        self.loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with made(self._client, **self._options) as app:
            self.app = app
            await app.run(self._stop)

    def close(self):
        """Call `close` on this thread, while the other one is in `run`."""
        if self.loop is None:
            self.app.close()
        else:
            asyncio.run_coroutine_threadsafe(self.app.close(), self.loop).result(LIMIT_S)

    def run_again(self):
        if self.loop is None:
            self.app.run()
        else:
            asyncio.run(self.app.run())

    def end(self):
        if self.loop is not None and not self.has_ended.is_set():
            self.loop.call_soon_threadsafe(self._stop.set)
        elif self._stop is not None:
            self._stop.set()
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()


@contextmanager
def running(client, **options):
    """Run an application in a thread; raise what it has ended with."""
    member = Member(client, **options)
    try:
        yield member
    finally:
        member.end()
    if member.error is not None:
        raise member.error


def _write(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _say(record, state):
    count(record, state)
    _write(f"{record.partition} {record.offset}")


async def _run_async(app):
    async with app:
        await app.run()


def main(client, servers, state_dir, session_ms):
    app = made(
        client,
        _say,
        bootstrap_servers=servers,
        state_dir=state_dir,
        max_poll_records=10,
        session_timeout_ms=int(session_ms),
        tell=_write,
    )
    if client == "aiokafka":
        asyncio.run(_run_async(app))
    else:
        with app:
            app.run()
    _write("left")


if __name__ == "__main__":
    main(*sys.argv[1:])
