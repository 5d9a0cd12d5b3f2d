"""Changelogs whose first records were deleted: by a retention that is right, or by an operator.

Of a topic that is only compacted brokers delete no record: the log begins at 0 as long as nobody
uses DeleteRecords and no retention was set.
"""

import pytest

from assignor import Topology
from assignor.embedding import TEXT, DictStore
from assignor.embedding.state_stores.layout import store_layout
from tests.assignor.embedding.state_stores.logs import CHANGELOGS


def delete_records(cluster, first):
    for changelog in CHANGELOGS:
        log = cluster.logs[changelog]
        log.start = first
        log.records = [record for record in log.records if record.offset >= first]


def warnings(caplog):
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "assignor.embedding.input_rules" and record.levelname == "WARNING"
    ]


@pytest.mark.parametrize("expires", [False, True])
def test_each_new_copy_of_a_changelog_that_is_only_compacted_warns(
    cluster, owner, member, caplog, expires
):
    ends = [cluster.logs[changelog].end for changelog in CHANGELOGS]
    delete_records(cluster, 7)
    owner.revoke()
    after = member("two", kind=DictStore, expires=expires)
    after.assign()
    after.finish()
    assert after.state() != owner.state()
    expected = [
        f"state of {changelog.topic}-0 up to offset 0 is restored from offset 7 to {end}: earlier"
        for changelog, end in zip(CHANGELOGS, ends, strict=True)
    ]
    found = [line[: len(begin)] for line, begin in zip(warnings(caplog), expected, strict=False)]
    assert found == ([] if expires else expected)


def test_the_copy_of_the_owner_has_all_and_says_nothing(cluster, owner, caplog):
    before = owner.state()
    delete_records(cluster, 7)
    owner.revoke()
    owner.assign()
    owner.finish()
    assert (owner.state(), warnings(caplog)) == (before, [])


def test_changelogs_of_windowed_stores_delete_old_records():
    topology = Topology().add_source("read", topics=["in"]).add_processor("p", parents=["read"])
    topology.add_state_store("all", processors=["p"])
    topology.add_state_store("windows", processors=["p"], retention_ms=1000)
    stores = [DictStore(name, key=TEXT, value=TEXT) for name in ("all", "windows")]
    assert store_layout(topology, "app", stores, expires=False).expiring == {"windows"}
    assert store_layout(topology, "app", stores, expires=True).expiring == {"all", "windows"}
