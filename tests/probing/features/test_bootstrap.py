import pytest

from probing.features import (
    BOOTSTRAP_RULES,
    METADATA_VERSION,
    FoundLog,
    LevelRecord,
    initial_level,
)


@pytest.mark.kip("778-7", "core")
@pytest.mark.parametrize("formatted", [None, 7, 21])
def test_a_level_in_the_log_is_the_one_that_counts(formatted):
    found = initial_level(FoundLog(logged_level=14, formatted_level=formatted))
    assert (found.level, found.records) == (14, ())


@pytest.mark.kip("778-7", "core")
def test_a_new_log_begins_at_the_level_of_the_format():
    found = initial_level(FoundLog(logged_level=None, formatted_level=22))
    assert found.level == 22
    assert found.records == (
        LevelRecord(feature="group.version", level=1),
        LevelRecord(feature=METADATA_VERSION, level=22),
    )
    assert "formatted with" in found.why


@pytest.mark.kip("778-7", "core")
def test_a_log_of_a_preview_cluster_is_at_level_1_and_nothing_is_written():
    found = initial_level(FoundLog(logged_level=None, formatted_level=None))
    assert (found.level, found.records, found.rule) == (1, (), "a preview cluster")
    assert found.why.endswith("at level 1")


def test_every_row_decides_somewhere():
    fired = {
        initial_level(FoundLog(logged_level=logged, formatted_level=formatted)).rule
        for logged in (None, 9)
        for formatted in (None, 9)
    }
    assert fired == {rule.name for rule in BOOTSTRAP_RULES}
