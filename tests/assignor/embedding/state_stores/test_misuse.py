"""What cannot work is one sentence: stores, directories, and uses at the wrong time."""

import math
from types import SimpleNamespace

import pytest
from filelock import FileLock, Timeout

from assignor import ConfigError, Topology, TopologyError
from assignor.embedding import (
    BYTES,
    JSON,
    TEXT,
    DictStore,
    MemberStopped,
    SqliteStore,
    Store,
    StoreReadOnly,
    TaskStores,
)
from assignor.embedding.process_id import ProcessDirectory
from assignor.embedding.state_stores.stores import Batch
from assignor.embedding.state_stores.tables import NO_PROGRESS, DictTable
from assignor.stores import StoreError
from encoding import TopicPartition
from tests.assignor.embedding.state_stores.logs import (
    INPUTS,
    TASK,
    TOPOLOGY,
    Access,
    Cluster,
    Steps,
)

OTHER = DictStore("other", key=TEXT, value=JSON)


def test_stores_that_do_not_fit_the_topology_are_refused(tmp_path):
    def make(topology, *stores, **settings):
        access = Access(Cluster(), Steps())
        return TaskStores(topology, stores, application_id="app", access=access, **settings)

    counts = SqliteStore("counts", key=TEXT, value=JSON)
    base = Topology().add_source("r", topics=["t"]).add_processor("p", parents=["r"])
    with pytest.raises(TopologyError, match=r"there is no state store 'counts'; choose from none"):
        make(base, counts)
    base.add_state_store("cache", processors=["p"], logged=False)
    base.add_state_store("table", processors=["p"], source_topic="t")
    base.add_state_store("counts", processors=["p"])
    for name in ("cache", "table"):
        with pytest.raises(TopologyError, match=f"'{name}' has no changelog of its own"):
            make(base, DictStore(name, key=TEXT, value=JSON))
    with pytest.raises(TopologyError, match="'counts' is given twice"):
        make(base, counts, counts)
    with pytest.raises(ConfigError, match=r"store 'counts' is kept in files; set state_dir="):
        make(base, counts)
    make(base, counts, state_dir=tmp_path).close()


def test_a_store_that_was_not_given_is_refused(cluster, member):
    owner = member()
    owner.assign()
    owner.poll()
    with pytest.raises(TopologyError, match=r"'other' is not among the given stores \(by-letter, "):
        owner.stores[TASK][OTHER]
    with pytest.raises(TopologyError, match="'other' is not among the given stores"):
        owner.stores.local_state(OTHER, 0)
    with pytest.raises(TypeError, match="'by-word' is of type str, no state store; make one, such"):
        owner.stores[TASK]["by-word"]
    with pytest.raises(TopologyError, match="no source of the topology reads topic 'else'"):
        owner.stores.process({TopicPartition("else", 0): [SimpleNamespace(offset=0)]}, owner.count)


@pytest.mark.parametrize(
    ("key", "value", "error", "why"),
    [
        (
            b"n",
            1,
            TypeError,
            r"the key of store 'n' is b'n', of type bytes, which TEXT \(for str\)",
        ),
        (
            7,
            1,
            TypeError,
            r"the key of store 'n' is 7, of type int, which TEXT \(for str\) refuses",
        ),
        ("\ud800", 1, ValueError, "the key of store 'n' is .*, of type str, which TEXT"),
        ("n", {1, 2}, TypeError, r"the value of store 'n' is \{1, 2\}, of type set, which JSON"),
        ("n", float("nan"), ValueError, "the value of store 'n' is nan, of type float, which JSON"),
    ],
)
def test_a_key_or_value_of_another_kind_is_refused_with_the_store(key, value, error, why):
    table = DictTable("n")
    store = Store(DictStore("n", key=TEXT, value=JSON), table, TASK, Batch(TASK))
    with pytest.raises(error, match=why):
        store.put(key, value)
    if "key" in why:
        for use in (store.get, store.delete, lambda key: list(store.items(prefix=key))):
            with pytest.raises(error, match=why):
                use(key)
    raw = Store(DictStore("n", key=BYTES, value=BYTES), table, TASK, Batch(TASK))
    with pytest.raises(
        TypeError, match=r"of type str, of which BYTES \(for bytes\) makes no bytes"
    ):
        raw.put("n", b"")


def test_what_another_serialiser_wrote_is_reported_with_its_key():
    table = DictTable("n")
    table.apply({b"n": b"{"}, NO_PROGRESS)
    store = Store(DictStore("n", key=TEXT, value=JSON), table, TASK)
    with pytest.raises(
        StoreError, match=r"the value of key b'n' in store 'n' is b'\{', which JSON"
    ):
        store.get("n")
    table.apply({b"n": None, b"\xff": b"1"}, NO_PROGRESS)
    with pytest.raises(StoreError, match=r"a key of store 'n' is b'\\xff', which TEXT"):
        list(store.items())


def test_what_is_no_store_is_refused(cluster):
    for stores, why in (
        (["counts"], "'counts' is of type str, no state store"),
        (OTHER, "stores is one store, 'other'; give a list of stores"),
        (5, "stores is 5; give a list of stores"),
    ):
        with pytest.raises(TypeError, match=why):
            TaskStores(TOPOLOGY, stores, application_id="app", access=Access(cluster, Steps()))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"topology": None}, "topology=None is refused; give an assignor.Topology"),
        ({"state_dir": 5}, "state_dir=5 is refused; give a path"),
        ({"state_dir": ""}, "state_dir='' is refused; give a path"),
        ({"state_dir": "a\0"}, "is refused; give a path"),
        ({"restore_s": math.nan}, "restore_s=nan is refused; give seconds"),
        ({"cleanup_delay_s": "x"}, "cleanup_delay_s='x' is refused; give seconds"),
        ({"delete_retention_ms": -1}, "delete_retention_ms=-1 is refused; give milliseconds"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused(cluster, options, why):
    given = {"topology": TOPOLOGY, "stores": [], "application_id": "app"} | options
    with pytest.raises(ConfigError, match=why):
        TaskStores(access=Access(cluster, Steps()), **given)


@pytest.mark.parametrize("name", [5, None, b"counts", ""])
@pytest.mark.parametrize("kind", [SqliteStore, DictStore])
def test_a_store_has_a_name(kind, name):
    with pytest.raises(TypeError, match="of a store is no text, or empty; give the name of"):
        kind(name, key=TEXT, value=JSON)


def test_a_state_that_is_kept_beyond_its_record_is_refused(cluster, member):
    owner = member()
    owner.assign()
    owner.poll()
    kept = []
    owner.stores.process(
        {INPUTS[0]: cluster.input[INPUTS[0]][:1]}, lambda _, state: kept.append(state)
    )
    [state] = kept
    with pytest.raises(StoreReadOnly, match="write only in the function that processes a record"):
        state[owner.words].put("one", 1)
    with pytest.raises(StoreReadOnly, match="task 0_0 sends nothing to out now"):
        state.send("out", key=b"")
    with pytest.raises(StoreReadOnly, match="sends nothing"):
        owner.stores[TASK].send("out", key=b"")
    assert state[owner.words].get("one") is None


def test_the_state_directory_is_shared_with_the_assignor_and_with_no_other_process(
    tmp_path, member
):
    owner = member()
    ProcessDirectory(tmp_path / "one").close()
    lock = FileLock(tmp_path / "one" / "process.lock")  # as of another process
    with pytest.raises(Timeout):
        lock.acquire(timeout=0)
    owner.stores.close()
    with lock.acquire(timeout=0):
        assert lock.is_locked


@pytest.mark.parametrize("kind", [DictStore, SqliteStore])
@pytest.mark.parametrize("serdes", [{"key": str, "value": JSON}, {"key": TEXT, "value": None}])
def test_a_store_without_a_serialiser_is_refused(kind, serdes):
    with pytest.raises(TypeError, match=r"of store 'c' is no serialiser; give TEXT, JSON, BYTES"):
        kind("c", **serdes)


def test_a_store_whose_name_no_topic_can_have_is_refused():
    topology = Topology().add_source("read", topics=["words"])
    topology.add_processor("count", parents=["read"])
    with pytest.raises(TopologyError, match=r"a-z A-Z 0-9 \. _ -"):
        topology.add_state_store("c/d", processors=["count"])


async def delayed(record, state):
    """Would run if it was awaited."""


def generated(record, state):
    yield


async def generated_later(record, state):
    yield


@pytest.mark.parametrize("handle", [delayed, generated, generated_later])
def test_a_function_that_only_returns_what_would_run_is_an_error_and_costs_no_record(
    cluster, member, handle
):
    owner = member()
    owner.assign()
    owner.poll()
    batch = {each: cluster.input[each] for each in INPUTS}
    with pytest.raises(ConfigError, match=r"whose body has not run, .* such as with asyncio\.run"):
        owner.stores.process(batch, handle)
    assert owner.stores.process({}, owner.count) == {
        each: len(cluster.input[each]) for each in INPUTS
    }
    assert owner.state() == cluster.expected()


def test_closed_stores_process_nothing():
    stores = TaskStores(TOPOLOGY, [], application_id="app", access=Access(Cluster(), Steps()))
    stores.close()
    with pytest.raises(MemberStopped, match="state stores are closed"):
        stores.process({}, print)
