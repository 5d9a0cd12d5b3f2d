"""Which persistent version is written, and when a rollback is impossible (KIP-384)."""

import itertools

import pytest

from probing.persisted_formats import (
    PERSISTED_FORMATS,
    PERSISTED_RULES,
    PERSISTENT_VERSIONS,
    PersistedNumbers,
    PersistedSettings,
    Store,
    Written,
    decide_persistent_version,
    format_to_write,
    formats_to_read,
)

AT_MS = 1_700_000_000_000


def decide(
    message=1, setting=None, *, written=None, under=None, leader=None, wire=False, known=(1, 2)
):
    return decide_persistent_version(
        PersistedNumbers(
            settings=PersistedSettings(
                message_format_version=message, persistent_metadata_version=setting
            ),
            written=None
            if written is None
            else Written(version=written, at_ms=AT_MS, setting=under or written),
            leader_version=leader,
            is_wire_raised=wire,
            known_versions=known,
        )
    )


@pytest.mark.kip("384-3", "core")
@pytest.mark.parametrize(
    ("message", "setting", "version", "rule"),
    [
        (1, None, 1, "as set"),
        (2, None, 2, "raised"),
        (1, 2, 2, "raised"),
        (2, 1, None, "message format above"),
        (3, None, None, "message format unknown"),
        (1, 3, None, "persistent version unknown"),
    ],
)
def test_the_default_is_the_message_format_which_may_not_be_above(message, setting, version, rule):
    decision = decide(message, setting)
    assert (decision.version, decision.rule) == (version, rule)
    assert decision.is_refused == (version is None)


@pytest.mark.kip("384-3", "core")
def test_a_message_format_above_is_refused_with_both_settings_and_what_to_do():
    assert decide(2, 1).why == (
        "message.format.version=2 is above persistent.metadata.version=1; raise the second or"
        " lower the first"
    )


@pytest.mark.kip("384-5", "core")
def test_lowering_what_was_written_is_refused_with_what_and_when():
    decision = decide(1, 1, written=2)
    assert (decision.version, decision.rule) == (None, "no rollback")
    assert "persistent.metadata.version=1 cannot be lowered" in decision.why
    assert "version 2 was first written here at 2023-11-14T22:13:20+00:00" in decision.why
    assert decide(1, 2, written=2).version == 2
    assert decide(1, 1, written=1).version == 1


@pytest.mark.kip("384-6", "core")
@pytest.mark.parametrize("setting", PERSISTENT_VERSIONS)
@pytest.mark.parametrize("leader", PERSISTENT_VERSIONS)
@pytest.mark.parametrize("written", [None, 1, 2])
def test_followers_write_what_the_leader_writes_but_never_go_back(setting, leader, written):
    decision = decide(1, setting, leader=leader, written=written)
    assert decision.rule == "as the leader writes"
    assert decision.version == max(leader, written or 0)


@pytest.mark.kip("384-6", "core")
def test_who_took_a_leaders_version_may_start_again_with_its_old_setting():
    decision = decide(1, 1, written=2, under=1)
    assert (decision.version, decision.rule) == (2, "as a leader wrote")
    assert decide(1, 2, written=2, under=1).version == 2
    assert decide(1, 1, written=2, under=2).is_refused


def test_a_leader_whose_version_is_unknown_here_stops_the_member():
    decision = decide(1, 1, leader=3)
    assert decision.is_refused
    assert "upgrade this member first" in decision.why


def test_what_a_later_release_wrote_is_not_touched():
    decision = decide(1, 1, written=2, known=(1,))
    assert (decision.is_refused, decision.rule) == (True, "written by a later release")


@pytest.mark.kip("384-7", "core")
def test_raising_both_versions_together_is_allowed_with_a_warning_about_the_rollback():
    decision = decide(1, 2, written=1, wire=True)
    assert (decision.version, decision.rule) == (2, "raised with the wire")
    assert decision.prevents_rollback
    assert "the first write makes a rollback impossible" in decision.why
    alone = decide(1, 2, written=1)
    assert (alone.version, alone.rule, alone.prevents_rollback) == (2, "raised", True)
    assert not decide(1, 2, written=2, wire=True).prevents_rollback
    assert not decide(1, 1, wire=True).prevents_rollback


@pytest.mark.kip("384-4", "core")
@pytest.mark.parametrize("store", Store)
def test_only_an_incompatible_change_waits_for_the_setting(store):
    formats = [row for row in PERSISTED_FORMATS if row.store is store]
    for version in PERSISTENT_VERSIONS:
        written = format_to_write(store, version)
        between = [row for row in formats if row.since > version and row.number <= written]
        assert all(row.is_compatible for row in between)
        above = [row for row in formats if row.number == written + 1]
        assert all(row.since > version and not row.is_compatible for row in above)
    assert format_to_write(Store.FEATURE_LOG, 1) == 2
    assert format_to_write(Store.PROCESS_ID, 1) == 2
    assert format_to_write(Store.CHECKPOINT, 1) == 1


@pytest.mark.parametrize("store", Store)
def test_every_format_of_a_store_is_read_and_numbers_have_no_holes(store):
    known = formats_to_read(store)
    assert known == tuple(range(1, len(known) + 1))
    assert format_to_write(store, max(PERSISTENT_VERSIONS)) == known[-1]
    since = [row.since for row in PERSISTED_FORMATS if row.store is store]
    assert since == sorted(since)
    assert since[0] == 1


def test_every_case_has_a_decision_and_every_rule_decides_one():
    seen = set()
    values = (1, 2, 3)
    for message, setting, written, under, leader, wire in itertools.product(
        values, (None, *values), (None, *values), values, (None, *values), (False, True)
    ):
        decision = decide(message, setting, written=written, under=under, leader=leader, wire=wire)
        seen.add(decision.rule)
        assert decision.why
        assert "{" not in decision.why
        if decision.version is not None:
            assert decision.version in PERSISTENT_VERSIONS
            assert decision.version >= (written or 1)
    assert seen == {rule.name for rule in PERSISTED_RULES}
