import pytest

from probing import RELEASES, find_release
from probing.upgrades.notes import notes_for


def notes(old, new):
    return " | ".join(notes_for(find_release(old), find_release(new)))


@pytest.mark.parametrize(
    ("old", "new", "has"),
    [
        ("3.3", "3.9", "KIP-904"),
        ("3.4", "4.3", "KIP-904"),
        ("1.1", "3.9", "KIP-904"),
    ],
)
def test_features_with_formats_of_their_own_ask_for_two_bounces(old, new, has):
    found = notes(old, new)
    assert has in found
    assert f"upgrade.from={old}" in found


def test_a_real_1_1_is_a_danger_to_native_members_without_a_pin_both_ways():
    for old, new in (("1.1", "native"), ("native", "1.1"), ("0.10.0", "next")):
        assert "starts without upgrade.from=" in notes(old, new)


def test_a_pinned_jvm_is_a_danger_to_native_members_that_write_above_it():
    assert "without a pin beside one of 2.8.2" in notes("2.8", "native")
    assert "without a pin" not in notes("3.9", "native")
    assert "hold the finalized level at 11" in notes("native", "3.9")
    assert "hold the finalized level" not in notes("3.9", "native")
    assert "upgrade.from" not in notes("native", "4.3")  # it knows no value that pins
    assert notes("native", "next") == ""


def test_the_last_release_whose_pin_is_dangerous_is_named():
    assert "with an upgrade.from up to 1.1 ends the group if one of" in notes("2.8", "native")
    assert "with an upgrade.from up to 1.1 that leads its first" in notes("native", "3.9")


def test_a_rollback_has_no_upgrade_from_of_the_later_release():
    for old, new in (("3.9", "3.0"), ("4.3", "3.5.0"), ("2.4", "0.10.0")):
        assert "not needed; do not set it" not in notes(old, new)


def test_formats_that_came_with_the_very_release_do_not_go_back():
    for first, before in (("3.0.0", "2.8"), ("4.0.0", "3.9"), ("4.3.0", "4.2")):
        assert f"since {first} " in notes(first, before)


def test_between_native_and_kafka_releases_no_format_is_named():
    for old in ("1.1", "2.8", "3.3"):
        assert "two bounces" not in notes(old, "native") + notes("native", old)


def test_notes_are_read_by_operators_word_for_word():
    assert notes_for(find_release("2.8"), find_release("3.3"))[0] == (
        "foreign-key join subscriptions (KAFKA-13769): an application that uses them cannot be"
        " bounced between 2.8.2 and 3.3.2; stop all members"
    )
    assert notes("3.9", "native") == (
        "members of 3.9.2 move partitions cooperatively, native members eagerly by default; the"
        " leader withholds a task until its cooperative owner has revoked it"
    )
    assert notes_for(find_release("3.4"), find_release("3.5.0"))[:2] == (
        (
            "KTable repartition topics (KIP-904): an application that uses them needs two bounces,"
            " the first with upgrade.from=3.3"
        ),
        (
            "do not set upgrade.from=3.4 on 3.5.0: it is accepted by the configuration, unknown to"
            " the assignor"
        ),
    )


def test_from_3_5_on_no_format_changes():
    assert notes("3.5", "4.3") == ""
    assert "KIP-904" not in notes("3.3", "3.4")


@pytest.mark.parametrize("new", ["3.3.0", "3.4", "3.9", "4.3"])
def test_foreign_key_joins_cannot_be_bounced_over_3_3_in_either_direction(new):
    for found in (notes("2.8", new), notes(new, "2.8")):
        assert "KAFKA-13769" in found
        assert "cannot be bounced between" in found
    assert "KAFKA-13769" not in notes("3.3", new)
    assert "KAFKA-13769" not in notes("2.3", new)  # foreign-key joins exist since 2.4


@pytest.mark.parametrize("patch", ["3.5.0", "3.5.1"])
def test_the_value_that_crashes_is_warned_of(patch):
    found = notes("3.4", patch)
    assert f"do not set upgrade.from=3.4 on {patch}" in found
    assert "the first with upgrade.from=3.3" in found
    assert "do not set" not in notes("3.4", "3.5.2")


@pytest.mark.parametrize("patch", ["3.6.0", "3.6.1"])
def test_the_value_that_was_forgotten_is_not_needed(patch):
    assert f"upgrade.from=3.5 is unknown to {patch} and not needed" in notes("3.5", patch)
    assert notes("3.5", "3.6.2") == ""


def test_native_members_move_partitions_eagerly_beside_cooperative_ones():
    assert "cooperatively" in notes("3.9", "native")
    assert "cooperatively" in notes("native", "3.9")
    assert "cooperatively" not in notes("2.3", "native")
    assert "cooperatively" not in notes("3.9", "4.3")


def test_a_rollback_names_what_does_not_go_back():
    assert "KIP-1035" in notes("4.3", "4.2")
    assert "RocksDB" in notes("3.0", "2.8")
    assert "KIP-1035" not in notes("4.2", "4.3")
    assert "KIP-1035" not in notes("native", "4.2")


def test_the_open_issues_of_the_release_to_come_are_named_with_their_fix():
    assert "KAFKA-14382 is open in 3.3.1" in notes("3.2", "3.3.1")
    assert "3.3.2, 3.4.0" in notes("3.2", "3.3.1")


def test_no_note_is_repeated_and_the_same_release_needs_none():
    for old in RELEASES:
        assert notes_for(old, old) == ()
        for new in RELEASES:
            found = notes_for(old, new)
            assert len(found) == len(set(found))
