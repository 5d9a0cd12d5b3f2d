import pytest
from hypothesis import given
from hypothesis import strategies as st

from probing.features import KAFKA_FEATURES, METADATA_VERSION, FeatureError
from system_tests.cluster.machines.content import KAFKA_CONTENT, Dropped, Entry, rewrite_content

FIELDS = {kind.name: ("name", *sorted(kind.later_fields)) for kind in KAFKA_CONTENT.kinds}


@st.composite
def entries(draw):
    kind = draw(st.sampled_from(sorted(FIELDS)))
    fields = draw(st.dictionaries(st.sampled_from(FIELDS[kind]), st.integers(0, 3)))
    return Entry(kind=kind, key=draw(st.sampled_from("abcd")), fields=fields)


@pytest.mark.kip("778-4", "core")
@given(st.lists(entries(), unique_by=lambda e: (e.kind, e.key)), st.integers(1, 30))
def test_what_is_left_is_known_to_the_level_and_what_is_not_is_named(given_entries, level):
    done = rewrite_content(KAFKA_CONTENT, given_entries, level)
    for entry in done.entries:
        assert KAFKA_CONTENT.kind_of(entry).since <= level
        assert not KAFKA_CONTENT.unknown_fields(entry, level)
    left = {(e.kind, e.key): e.fields for e in done.entries}
    for entry in given_entries:
        whole = Dropped(kind=entry.kind, key=entry.key)
        if whole in done.dropped:
            assert (entry.kind, entry.key) not in left
            continue
        gone = {d.field for d in done.dropped if (d.kind, d.key) == (entry.kind, entry.key)}
        assert gone | set(left[entry.kind, entry.key]) == set(entry.fields)
        assert not gone & set(left[entry.kind, entry.key])
    again = rewrite_content(KAFKA_CONTENT, done.entries, level)
    assert (again.entries, again.dropped) == (done.entries, ())


@pytest.mark.kip("778-4", "core")
def test_a_lower_level_loses_whole_entries_and_single_fields():
    scram = Entry(kind="scram_credential", key="alice", fields={"hash": 1})
    broker = Entry(kind="broker", key="1", fields={"rack": "a", "log_directories": ("x",)})
    done = rewrite_content(KAFKA_CONTENT, [scram, broker], 10)
    assert [str(record) for record in done.dropped] == [
        "log_directories of broker 1",
        "scram_credential alice",
    ]
    assert done.entries == (Entry(kind="broker", key="1", fields={"rack": "a"}),)


def test_whatever_came_later_came_with_a_level_that_is_not_compatible_back():
    feature = KAFKA_FEATURES.named(METADATA_VERSION)
    lossy = {level.number for level in feature.levels if not level.compatible_back}
    for kind in KAFKA_CONTENT.kinds:
        assert {kind.since, *kind.later_fields.values()} <= lossy


@pytest.mark.kip("778-3", "core")
@given(
    st.lists(entries(), unique_by=lambda e: (e.kind, e.key)),
    st.integers(1, 30),
    st.integers(1, 30),
)
def test_between_levels_without_a_lossy_one_nothing_is_lost(given_entries, first, second):
    low, high = sorted((first, second))
    feature = KAFKA_FEATURES.named(METADATA_VERSION)
    above = rewrite_content(KAFKA_CONTENT, given_entries, high)
    below = rewrite_content(KAFKA_CONTENT, above.entries, low)
    if not feature.lossy_between(low=low, high=high):
        assert below.entries == above.entries
        assert below.dropped == ()


def test_an_entry_of_no_kind_is_refused_with_those_there_are():
    with pytest.raises(FeatureError, match=r"kind 'tpoic'; there are topic, partition"):
        rewrite_content(KAFKA_CONTENT, [Entry(kind="tpoic", key="a")], 1)
