"""Whole applications in threads of this process, on the embedded broker."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
import quixstreams
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer
from confluent_kafka import TopicPartition as Position
from quixstreams.state.recovery import RecoveryPartition

from assignor import ConfigError, TaskId
from assignor.embedding import StateDirectoryLocked
from assignor.integrations.quix import streams_assignor
from assignor.integrations.quix.__main__ import main
from encoding import HostInfo
from system_tests.coordinator import GroupState

ROOT = Path(__file__).resolve().parents[4]
LIMIT_S = 120
ALL_WAIT_MS = 120_000


class Running:
    """An application that runs in a thread."""

    def __init__(self, app, **options):
        app._setup_signal_handlers = lambda: None  # for the main thread only
        self.app, self.session, self.error = app, None, None
        self._options = options
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            with streams_assignor(self.app, **self._options) as self.session:
                self.app.run()
        except BaseException as error:  # noqa: BLE001 the test raises it
            self.error = error

    @property
    def tasks(self):
        client = self.session and self.session.client
        return frozenset(client.assignor.tasks.active) if client else frozenset()

    @property
    def followed(self):
        member = self.session and self.session.member
        return member.state.offset_sums() if member else {}

    def stop(self):
        self.app.stop()
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()
        return self.error


class Words:
    """Words of the topic `words`, and what the applications have counted."""

    def __init__(self, servers):
        self.written, self.counted = Counter(), {}
        settings = {"bootstrap.servers": servers}
        self._producer = Producer(settings)
        self._consumer = Consumer(settings | {"group.id": "test"})
        self._consumer.assign([Position("counts", number, OFFSET_BEGINNING) for number in range(4)])

    def write(self, times):
        for number in range(times):
            self.written[f"word-{number % 20}".encode()] += 1
            self._producer.produce("words", b"", f"word-{number % 20}")
        assert self._producer.flush(LIMIT_S) == 0

    def all_counted(self):
        for record in self._consumer.consume(1000, 0.2):
            assert record.error() is None
            count = json.loads(record.value())["count"]
            self.counted[record.key()] = max(count, self.counted.get(record.key(), 0))
        return sum(self.counted.values()) >= self.written.total()

    def changelogs(self):
        """The end offset of each task's changelog."""
        logs = [Position("changelog__app--words--default", number) for number in range(4)]
        ends = [self._consumer.get_watermark_offsets(log, timeout=LIMIT_S)[1] for log in logs]
        return {TaskId(0, log.partition): end for log, end in zip(logs, ends, strict=True)}

    def close(self):
        self._consumer.close()


def until(holds, runs=()):
    end = time.monotonic() + LIMIT_S
    while not holds():
        errors = [run.error for run in runs if run.error]
        assert not errors, errors
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def words(broker):
    words = Words(broker.bootstrap_servers[0])
    yield words
    words.close()


@pytest.fixture
def start():
    runs = []

    def begin(app, **options):
        runs.append(Running(app, **options))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()


@pytest.fixture
def replayed(monkeypatch):
    """The number of records that Quix has replayed; standbys apply theirs on another thread."""
    found = Counter()
    replay = RecoveryPartition.recover_from_changelog_message

    def counted(self, changelog_message):
        found[threading.current_thread().name == "quix-standbys"] += 1
        return replay(self, changelog_message=changelog_message)

    monkeypatch.setattr(RecoveryPartition, "recover_from_changelog_message", counted)
    return lambda: found[False]


def test_counts_stay_exact_when_partitions_move_between_two_commits(counting, words, start):
    """Of partitions that stay, Quix alone would lose what it had counted since the last commit."""
    first = start(counting("one", commit_interval=3600))
    words.write(400)
    until(words.all_counted, [first])
    second = start(counting("two", commit_interval=3600))
    until(lambda: len(first.tasks) == len(second.tasks) == 2, [first, second])
    words.write(400)
    until(words.all_counted, [first, second])
    assert second.stop() is None
    until(lambda: len(first.tasks) == 4, [first])
    words.write(400)
    until(words.all_counted, [first])
    assert words.counted == words.written


def test_the_state_of_standbys_is_not_replayed(counting, words, start, replayed):
    options = {"num_standby_replicas": 1, "acceptable_recovery_lag": 0}
    apps = [start(counting(name, commit_interval=0.5), **options) for name in ("one", "two")]
    until(lambda: sorted(len(app.tasks) for app in apps) == [2, 2], apps)
    words.write(400)
    until(words.all_counted, apps)
    first, second = apps
    until(lambda: words.changelogs() == {**apps[0].followed, **apps[1].followed}, apps)
    assert first.stop() is None
    before = replayed()
    until(lambda: len(second.tasks) == 4, [second])
    words.write(400)
    until(words.all_counted, [second])
    assert words.counted == words.written
    # Quix always reads the last record again that it has.
    assert replayed() - before <= 2


# Both processes are in the first generation: a process alone would replay the other one's tasks.
@pytest.mark.parametrize("broker", [ALL_WAIT_MS], indirect=True)
def test_a_process_that_comes_back_has_its_tasks_and_its_state(
    broker, counting, words, start, replayed
):
    def started():
        apps = [start(counting(name, commit_interval=0.5)) for name in ("one", "two")]
        until(lambda: "app" in broker.groups() and len(broker.groups()["app"].members) == 2, apps)
        broker.call(end_of_the_wait)
        return apps

    def end_of_the_wait(embedded):
        cluster = embedded.cluster
        later_ms = cluster.now_ms()
        while cluster.groups()["app"].state is GroupState.PREPARING_REBALANCE:
            later_ms += ALL_WAIT_MS
            cluster._apply(cluster.coordinator.tick(later_ms))

    apps = started()
    until(lambda: sorted(len(app.tasks) for app in apps) == [2, 2], apps)
    words.write(400)
    until(words.all_counted, apps)
    had = apps[0].tasks
    assert [app.stop() for app in apps] == [None, None]
    before = replayed()
    again = started()
    until(lambda: sorted(len(app.tasks) for app in again) == [2, 2], again)
    words.write(400)
    until(words.all_counted, again)
    assert words.counted == words.written
    assert again[0].tasks == had
    assert replayed() == before


def test_a_block_can_run_an_application_twice_and_leaves_nothing_in_it(counting, words, start):
    app = counting()
    first = start(app)
    words.write(100)
    until(words.all_counted, [first])
    assert first.stop() is None
    second = start(app)
    words.write(100)
    until(words.all_counted, [second])
    assert second.stop() is None
    assert "subscribe" not in vars(app._consumer)
    assert words.counted == words.written


def test_queries_find_the_process_that_has_a_key(counting, words, start):
    first = start(counting(), endpoint="127.0.0.1:8080")
    until(lambda: len(first.tasks) == 4, [first])
    hosts = first.session.client.assignor.hosts_for_key("words/default", b"word-1")
    assert hosts.active == HostInfo("127.0.0.1", 8080)


def test_two_processes_with_one_state_directory_are_refused(counting, start):
    first = start(counting("one"))
    until(lambda: len(first.tasks) == 4, [first])
    source = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from quixstreams import Application
from assignor.integrations.quix import streams_assignor
from encoding import HostInfo
from system_tests.coordinator import GroupState
app = Application({first.app.config.broker_address.bootstrap_servers!r}, consumer_group="app",
                  state_dir={str(first.app.config.state_dir)!r})
app.dataframe(app.topic("words")).apply(lambda value, state: value, stateful=True)
with streams_assignor(app):
    app.run()
"""
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode
    assert StateDirectoryLocked.__name__ in done.stderr


def test_exactly_once_is_refused_with_a_sentence(counting):
    app = counting(processing_guarantee="exactly-once")
    with pytest.raises(ConfigError, match="no transaction can be fenced"), streams_assignor(app):
        pass


def test_a_release_of_quix_that_this_was_not_written_for_is_refused(counting, monkeypatch):
    monkeypatch.setattr(quixstreams, "__version__", "4.0.0")
    with pytest.raises(
        ConfigError, match=r"quixstreams 4\.0\.0 is not supported; install 3\.28\.x"
    ):
        streams_assignor(counting()).__enter__()


def test_a_file_is_run_unchanged_until_it_is_stopped(broker, words, tmp_path):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "assignor.integrations.quix"),
            *("--config", "num.standby.replicas=1", "examples/quix_counts.py"),
        ],
        cwd=ROOT,
        env=os.environ
        | {
            "Quix__Broker__Address": broker.bootstrap_servers[0],
            "Quix__State__Dir": str(tmp_path),
        },
    )
    words.write(100)
    until(words.all_counted)
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT_S) == 0
    assert words.counted == words.written
    assert (tmp_path / ".assignor" / "word-counts" / "process.lock").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--config", "num.standby.replica=1", "app.py"], "did you mean num.standby.replicas?"),
        (["--config", "num.standby.replicas=x", "app.py"], "num.standby.replicas"),
        (["nowhere.py"], "nowhere.py is no file; name the application's Python file"),
    ],
)
def test_wrong_usage_is_told_in_a_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").touch()
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
