"""Changelogs that are deleted under a group, as in public reports: no state is lost."""

import threading

import pytest

from assignor import JSON, TEXT, SqliteStore
from assignor.adapters.kafka_python import StreamsApplication
from assignor.embedding import MemberStopped
from encoding import TaskId
from tests.assignor.adapters.reports.logs import COUNTING, GROUP, SESSION, filled, write

pytestmark = pytest.mark.usefixtures("clock")
COUNTS = SqliteStore("counts", key=TEXT, value=JSON)
CHANGELOG = "app-counts-changelog"


def make_anew(embedded):
    embedded.cluster.delete_topic(CHANGELOG)
    embedded.cluster.create_topic(CHANGELOG, 1, configs={"cleanup.policy": "compact"})


def test_kafka_10357_the_copy_of_a_running_owner_outlives_its_changelog(tmp_path):
    """KIP-698: Kafka Streams makes the topic anew in silence, and wipes the store."""
    stop, losses = threading.Event(), [2]

    def handle(record, state):
        state[COUNTS].put(str(record.offset), record.offset)
        if [record.offset] == losses:
            losses.clear()
            broker.call(make_anew)
        if record.offset == 3:
            stop.set()

    def application(name="one"):
        return StreamsApplication(
            COUNTING,
            handle,
            stores=[COUNTS],
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            state_dir=tmp_path / name,
            max_poll_records=1,
            **SESSION,
        )

    def entries(app):
        return dict(app.stores[TaskId(0, 0)][COUNTS].items())

    with filled(3) as broker:
        with application() as app:
            with pytest.raises(MemberStopped) as raised:
                app.run(stop)
            assert entries(app) == {"0": 0, "1": 1}
        found = str(raised.value)
        assert found.startswith(f"{CHANGELOG}-0: the changelog was deleted and made anew (its id w")
        with pytest.raises(MemberStopped) as raised:
            application()
        assert str(raised.value) == found
        kept = tmp_path / "one/0_0/counts.db.kept"
        assert kept.read_text(encoding="utf-8") == found
        kept.rename(kept.with_suffix(".write-back"))
        write(broker, range(1))
        wanted = {str(offset): offset for offset in range(4)}
        with application() as app:
            app.run(stop)
            assert entries(app) == wanted
        stop.clear()
        write(broker, range(1))

        def ended(record, state):
            stop.set()

        handle = ended
        with application("two") as app:
            app.run(stop)
            assert entries(app) == wanted
