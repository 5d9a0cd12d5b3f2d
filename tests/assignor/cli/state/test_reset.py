"""`assignor reset` on an embedded broker: an application starts anew, and only that one."""

import json
import shutil
import threading
from contextlib import ExitStack, contextmanager

import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata
from kafka import TopicPartition as ClientPartition

from assignor import JSON, TEXT, SqliteStore, Topology
from assignor.adapters.kafka_python import StreamsApplication
from assignor.cli.reset.command import reset
from assignor.embedding import MemberStopped
from assignor.embedding.kept import KeptNote, write_note
from system_tests.support.stock_consumer import StockConsumer
from tests.assignor.adapters.reports.logs import COUNTING, GROUP, SESSION, filled

pytestmark = pytest.mark.usefixtures("clock")
COUNTS = SqliteStore("counts", key=TEXT, value=JSON)
CHANGELOG = f"{GROUP}-counts-changelog"
RECORDS = 10
topology = COUNTING


def asked(broker, *options, ok=True, names=("--topology", f"{__name__}:topology")):
    """Run the command; return its document, or what it says when it refuses."""
    servers = ",".join(broker.bootstrap_servers)
    found = CliRunner().invoke(
        reset, [f"--bootstrap-server={servers}", f"--group={GROUP}", *names, *options]
    )
    if not ok:
        return found.exit_code, " ".join(found.stderr.split())
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout) if "--format=json" in options else found.stdout


def topics_of_broker(broker):
    return set(broker.call(lambda embedded: embedded.cluster.catalog.names()))


def commit(broker, group_id, offset):
    """Commit an offset for the input as an operator's tool does."""
    servers = broker.bootstrap_servers
    with KafkaConsumer(bootstrap_servers=servers, group_id=group_id) as consumer:
        consumer.commit({ClientPartition("in", 0): OffsetAndMetadata(offset, "", -1)})


@contextmanager
def application(broker, state_dir, handle, **settings):
    with StreamsApplication(
        COUNTING,
        handle,
        stores=[COUNTS],
        group_id=GROUP,
        bootstrap_servers=broker.bootstrap_servers,
        state_dir=state_dir,
        **{**SESSION, **settings},
    ) as app:
        yield app


def counted(broker, state_dir):
    """Run the application until it has read all input; return how often it has counted each key."""
    counts, stop = {}, threading.Event()

    def handle(record, state):
        key = str(record.offset)
        counts[key] = (state[COUNTS].get(key) or 0) + 1
        state[COUNTS].put(key, counts[key])
        if record.offset == RECORDS - 1:
            stop.set()

    with application(broker, state_dir, handle) as app:
        app.run(stop)
    return counts


ONCE = {str(number): 1 for number in range(RECORDS)}


def test_an_application_counts_all_input_once_more_from_nothing(tmp_path):
    with filled(RECORDS) as broker:
        assert counted(broker, tmp_path / "one") == ONCE
        state = f"--state-dir={tmp_path}/one"
        shown = asked(broker, state, "--format=json")
        assert (shown["executed"], shown["deleted"]) == (False, {CHANGELOG: 1})
        assert [(row["committed"], row["to"]) for row in shown["offsets"]] == [(RECORDS, 0)]
        assert [row["task"] for row in shown["state"]] == ["0_0"]
        assert (tmp_path / "one/0_0/counts.db").exists()
        assert asked(broker, state, "--execute", "--format=json") == {**shown, "executed": True}
        assert not (tmp_path / "one/0_0").exists()
        assert CHANGELOG not in topics_of_broker(broker)
        assert counted(broker, tmp_path / "one") == ONCE
        assert counted_anew(broker) == RECORDS


def counted_anew(broker):
    """The end of the changelog's keys: each was written once more, none is left of before."""
    servers = broker.bootstrap_servers
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([ClientPartition(CHANGELOG, 0)])
        keys = set()
        end = consumer.end_offsets(consumer.assignment())[ClientPartition(CHANGELOG, 0)]
        while consumer.position(ClientPartition(CHANGELOG, 0)) < end:
            for records in consumer.poll(timeout_ms=1000).values():
                keys |= {record.key for record in records}
    return len({key for key in keys if key and key.isdigit()})


def test_a_live_group_is_refused_and_nothing_is_changed(tmp_path):
    running, stop = threading.Event(), threading.Event()

    def handle(record, state):
        del record, state
        running.set()

    with filled(1) as broker, application(broker, tmp_path / "one", handle) as app:
        thread = threading.Thread(target=app.run, args=(stop,))
        thread.start()
        assert running.wait(60)
        status, sentence = asked(broker, "--execute", ok=False)
        # A group that only --application-id names: its changelog is to be deleted.
        other = ("--group=other", f"--application-id={GROUP}", f"--internal-topic={CHANGELOG}")
        assert asked(broker, "--execute", ok=False, names=other) == (status, sentence)
        stop.set()
        thread.join(60)
        assert status == 1
        assert "has 1 members" in sentence
        assert "stop all of them" in sentence
        assert CHANGELOG in topics_of_broker(broker)


def test_a_static_member_that_is_down_is_a_member_until_its_session_ends(tmp_path):
    static = {"group_instance_id": "first"}
    with filled(RECORDS) as broker:
        stop = threading.Event()
        with application(broker, tmp_path / "one", lambda *_: stop.set(), **static) as app:
            app.run(stop)
        status, sentence = asked(broker, "--execute", ok=False)
        assert (status, "static as first" in sentence) == (1, True)


def test_topics_of_an_application_with_a_longer_id_stay(tmp_path):
    other = f"{GROUP}-2-counts-changelog"
    left = f"{GROUP}-former-changelog"
    with filled(1, topics=("in", CHANGELOG, other, left)) as broker:
        commit(broker, f"{GROUP}-2", 1)
        shown = asked(broker, "--execute", "--format=json")
        assert (shown["deleted"], shown["unnamed"]) == ({CHANGELOG: 1}, [left])
        topics = topics_of_broker(broker)
        assert {"in", other, left} <= topics
        asked(broker, f"--internal-topic={left}", "--execute")
        topics = topics_of_broker(broker)
        assert topics.isdisjoint({left, CHANGELOG})
        assert {"in", other} <= topics


def test_a_directory_that_is_in_use_or_keeps_copies_is_not_touched(tmp_path):
    with filled(RECORDS) as broker:
        counted(broker, tmp_path / "one")
        file = tmp_path / "one/0_0/counts.db"
        write_note(file, KeptNote(why="the changelog was cut off"))
        state = f"--state-dir={tmp_path}/one"
        status, sentence = asked(broker, state, "--execute", ok=False)
        assert (status, "cut off" in sentence, file.exists()) == (1, True, True)
        remedy = f"to begin without them, as after assignor reset, delete {file.parent}"
        assert sentence.endswith(f"{remedy}.")
        assert CHANGELOG in topics_of_broker(broker)


def test_a_directory_that_a_reset_has_left_out_says_how_to_begin_anew(tmp_path):
    """It is on another machine; its member and another reset name the directory to delete."""
    with filled(RECORDS) as broker:
        counted(broker, tmp_path / "one")
        asked(broker, "--execute")
        left = tmp_path / "one/0_0"
        wanted = f"to begin without them, as after assignor reset, delete {left}"
        with pytest.raises(MemberStopped, match=wanted):
            counted(broker, tmp_path / "one")
        status, sentence = asked(broker, f"--state-dir={tmp_path}/one", "--execute", ok=False)
        assert (status, sentence.endswith(f"{wanted}.")) == (1, True)
        shutil.rmtree(left)
        assert counted(broker, tmp_path / "one") == ONCE


def test_a_directory_of_another_application_is_not_touched(tmp_path):
    with filled(RECORDS) as broker:
        counted(broker, tmp_path / "one")
        status, sentence = asked(
            broker,
            f"--state-dir={tmp_path}/one",
            "--execute",
            ok=False,
            names=("--input-topic=in", f"--internal-topic={GROUP}-x-changelog"),
        )
        assert (status, f"is a copy of {CHANGELOG}" in sentence) == (2, True)
        assert (tmp_path / "one/0_0/counts.db").exists()


def test_offsets_go_to_a_time_or_by_a_number_and_stay_within_the_records(tmp_path):
    with filled(RECORDS) as broker:
        servers = broker.bootstrap_servers
        names = ("--input-topic=in",)
        commit(broker, GROUP, 5)

        def to(*options):
            [row] = asked(broker, *options, "--execute", "--format=json", names=names)["offsets"]
            return row["to"]

        assert to("--to-latest") == RECORDS
        assert to("--shift-by=-3") == RECORDS - 3
        assert to("--to-offset=4") == 4
        assert to("--shift-by=-100") == 0
        assert to("--to-offset=999") == RECORDS
        assert to("--by-duration=PT10M") == 0
        assert to("--to-datetime=2100-01-01T00:00:00") == RECORDS
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            [found] = admin.list_group_offsets(GROUP).values()
            # Not as a member commits: there is no state up to this offset.
            assert found[ClientPartition("in", 0)][:2] == (RECORDS, "")


def test_what_is_named_must_be_there():
    with filled(1, topics=("in", f"{GROUP}-x-changelog")) as broker:
        for names, status, word in (
            (("--input-topic=im",), 1, "im does not exist"),
            ((), 2, f"with names of internal topics: {GROUP}-x-changelog"),
            (("--internal-topic=other-x-changelog",), 2, "is not app-NAME-changelog or"),
            (("--internal-topic=app-in",), 2, "is not app-NAME-changelog or"),
            (("--input-topic=in", "--to-latest", "--shift-by=1"), 2, "give one of them"),
            (("--input-topic=in",), 1, "there is no group app"),
            (
                ("--input-topic=in", "--shift-by=1", f"--internal-topic={GROUP}-x-changelog"),
                1,
                "no offset is committed for in-0",
            ),
        ):
            assert asked(broker, "--execute", ok=False, names=names)[0] == status
            assert word in asked(broker, "--execute", ok=False, names=names)[1], names


def test_topics_with_the_name_of_another_group_are_never_deleted():
    longer = "app-eu-counts-changelog"
    with filled(1, topics=("in", longer)) as broker:
        commit(broker, "app-eu", 1)
        named = (f"--internal-topic={longer}",)
        status, sentence = asked(broker, "--execute", ok=False, names=named)
        assert (status, "a topic of group app-eu" in sentence) == (1, True)
        assert longer in topics_of_broker(broker)


def test_a_reset_that_fails_halfway_says_so(monkeypatch):
    from assignor.adapters import admin  # noqa: PLC0415 where the command looks it up

    def refuse(_, names):
        raise admin.NotAuthorized(f"not authorized to delete topic {min(names)}")

    monkeypatch.setattr(admin, "delete_topics", refuse)
    with filled(1, topics=("in", CHANGELOG)) as broker:
        commit(broker, GROUP, 1)
        status, sentence = asked(broker, "--execute", ok=False)
        assert status == 1
        assert "offsets are set, and not all topics and no state is deleted: not auth" in sentence


def test_a_member_that_joins_during_a_reset_is_named(monkeypatch):
    """It may have committed, or read what was to be deleted."""
    from assignor.adapters import admin  # noqa: PLC0415 where the command looks it up

    delete_topics = admin.delete_topics
    with filled(1, topics=("in", CHANGELOG)) as broker, ExitStack() as joined:
        servers = broker.bootstrap_servers

        def join(*given):
            delete_topics(*given)
            member = StockConsumer("in", bootstrap_servers=servers, group_id=GROUP)
            joined.callback(member.close)
            while not member.assignment():
                member.poll(100)

        monkeypatch.setattr(admin, "delete_topics", join)
        status, sentence = asked(broker, "--execute", ok=False)
        assert (status, CHANGELOG in topics_of_broker(broker)) == (1, False)
        assert "all is reset, but members joined meanwhile, so reset again: group" in sentence


def test_repartition_topics_are_deleted_and_a_table_s_own_source_is_not():
    from assignor.cli.reset.plan import topics_of  # noqa: PLC0415

    built = (
        Topology()
        .add_source("s", topics=["in"])
        .add_sink("k", topic="by-key", parents=["s"])
        .add_repartition_topic("by-key", partitions=2)
        .add_source("r", topics=["by-key"])
        .add_processor("p", parents=["r"])
        .add_state_store("counts", processors=["p"])
    )
    found = topics_of(built, GROUP)
    assert found.inputs == ("in",)
    assert found.internal == (f"{GROUP}-by-key-repartition", CHANGELOG)
