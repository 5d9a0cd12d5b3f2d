import re

import pytest

from probing import NEWEST_KAFKA, RELEASES, ReleaseError, find_release
from probing.releases import READ, TRUNK
from system_tests.plan import (
    ANNOUNCED,
    CHANGES,
    ReleaseChange,
    Subject,
    Use,
    When,
    changes_between,
    find_target,
    make_plan,
)
from system_tests.plan.changes import STREAMS_CHANGES
from tests.versions import NEWEST_SERIES


def plan(old, new, *uses):
    return make_plan(find_release(old), find_release(new), frozenset(uses))


def lines(old, new, *uses):
    return [str(change) for change in plan(old, new, *uses).changes]


def has(old, new, words, *uses):
    return any(words in line for line in lines(old, new, *uses))


def test_every_row_is_of_real_releases_and_names_a_source():
    for row in CHANGES:
        ends = [name for span in row.ranges for name in span if name]
        assert [find_release(name).name for name in ends] == ends
        assert re.search(r"KIP-\d+|KAFKA-\d+|upgrade notes|Streams guide", row.source)
        assert not (row.what + row.action).endswith(".")


NAME = r"(?<![\d.])(\d+\.\d+(?:\.\d+)*)"
# Jars of two releases, the one before a change and one with it; not a list of three or of pages.
COMPARED = re.compile(rf"(?<!, )(?<!notes )(?<!guide )(?<!in ){NAME} and {NAME}")


def is_named(release, text):
    """Whether a text names a release, of a .0 the series, or compares two around a .0.

    The first of two that are compared is the one before the change.
    """
    pairs = [[tuple(map(int, end.split("."))) for end in ends] for ends in COMPARED.findall(text)]
    between = any(first < find_release(release).order <= second for first, second in pairs)
    names = re.findall(NAME, COMPARED.sub(r"\2", text))
    is_first = release.endswith(".0")
    return (between and is_first) or not {release, release.removesuffix(".0")}.isdisjoint(names)


def is_branch(since, until):
    """Whether a range is the rest of one series: what a later one lacks, its branch was given."""
    series = find_release(since).series
    return until.endswith(".0") and not any(
        find_release(series).order < release.order < find_release(until).order
        for release in RELEASES
    )


def test_a_row_begins_and_ends_where_its_source_or_its_sentence_says():
    kip_1071 = "4.2.0"  # the release of the protocol, of which all rows of streams.toml are
    for row in (*CHANGES, *STREAMS_CHANGES):
        known = row.source.split("; run with")[0]
        begins = [since for since, _ in row.ranges if row in CHANGES or since != kip_1071]
        assert [since for since in begins if not is_named(since, known)] == [], row
        ends = [until for since, until in row.ranges if until and not is_branch(since, until)]
        following = [other.since for other in CHANGES if other.subject is row.subject]
        sentence = f"{known} {row.what} {row.action}"
        assert [
            end for end in ends if not is_named(end, sentence) and end not in following
        ] == [], row


def test_a_setting_that_the_first_start_needs_stands_before_it():
    """Afterwards stands what is only to be known, or to be left as it is until then."""
    for row in (*CHANGES, *STREAMS_CHANGES):
        later = row.action if row.when is When.AFTER else ""
        assert not later or later.startswith(("leave ", "check dashboards")), row
        if "unless it is set" in row.back or row.back_action:
            assert (row.back_when, bool(row.back_action)) == (When.BEFORE, True), row


def test_a_label_names_the_release_of_the_path_and_the_one_that_made_the_change():
    assert has("2.8", "3.9", "default, 3.9.2 (since 3.0.0): session.timeout.ms is 45 s")
    assert has("2.8", "3.0.0", "default, 3.0.0: session.timeout.ms is 45 s")
    assert has("3.9", "2.8", "default, 2.8.2 (before 3.0.0): session.timeout.ms is 10 s again")
    assert has("2.7.0", "2.7.2", "behaviour, 2.7.2 (since 2.7.1): two processes on one host")


def test_the_upgrade_notes_of_4_4_are_rows_and_the_offsets_of_streams_members_too():
    for words in ("more than 1,000,000 elements", "Java's default type", "KIP-1321"):
        assert has("4.3", "4.4.0", words)
        assert not has("4.2", "4.3", words)
    rows = [row for row in STREAMS_CHANGES if "KAFKA-20719" in row.source]
    assert [(row.since, row.of) for row in rows] == [("4.4.0", "both")]


def test_names_of_metrics_change_in_2_5_and_both_factories_of_join_stores_are_named():
    """KafkaStreams of 2.4.1 takes METRICS_0100_TO_23; 2.5.0 reads built.in.metrics.version."""
    assert has("2.4.1", "2.5.1", "metrics of threads")
    assert has("2.4.1", "2.8", "metrics of threads")
    assert not has("2.3.1", "2.4.1", "metrics of threads")
    assert has("2.8", "3.0", "unless as() or withStoreName()")


def test_a_row_concerns_paths_that_come_to_its_release_and_no_others():
    assert has("3.9.1", "4.0", "need Java 11")
    assert has("2.3.1", "4.3", "Java, 4.3.1 (since 4.0.0): members need Java 11")
    assert not has("4.0", "4.3", "need Java 11")
    assert not has("2.3.1", "3.9", "need Java 11")
    assert not has("3.9", "native", "Java")
    assert has("2.8", "3.0", "session.timeout.ms is 45 s")
    assert not has("3.1", "4.3", "session.timeout.ms")


@pytest.mark.parametrize(
    ("old", "new", "words", "is_concerned"),
    [
        ("3.1.0", "3.1.2", "idempotent by default", True),
        ("3.1.0", "3.9", "idempotent by default", True),
        ("2.8", "3.1.0", "idempotent by default", False),
        ("3.0.1", "3.2.0", "idempotent by default", False),
        ("2.7.0", "2.7.2", "cannot share a state.dir", True),
        ("2.6.1", "2.6.3", "cannot share a state.dir", True),
        ("2.6.3", "2.8", "cannot share a state.dir", False),
        ("4.0.2", "4.1.0", "KAFKA-19668 (open", True),
        ("4.0.2", "4.1.2", "KAFKA-19668", False),
        ("3.9", "4.0.2", "until the internal setting", True),
        ("3.9", "4.0.2", "KAFKA-19668 (open", False),
    ],
)
def test_a_row_of_several_ranges_concerns_the_paths_into_each(old, new, words, is_concerned):
    assert has(old, new, words) is is_concerned


@pytest.mark.parametrize(
    ("before", "since", "words"),
    [
        ("1.1.1", "2.0.1", "KStreamBuilder, TopologyBuilder"),
        ("1.1.1", "2.0.1", "topology.optimization"),
        ("2.2.2", "2.3.1", "max.poll.interval.ms"),
        ("2.7.2", "2.8.2", "closes the whole client"),
        ("2.8.2", "3.0.0", "built.in.metrics.version"),
        ("4.2.0", "4.3.1", "does not replace deleting the state directories"),
    ],
)
def test_changes_that_the_upgrade_notes_name_are_on_the_path_over_their_release(
    before, since, words
):
    assert has(before, since, words)
    assert not has(since, find_release("4.3").name if since != "4.3.1" else "4.3.1", words)


def test_on_the_way_back_only_what_changes_back_is_said():
    back = lines("3.9", "2.8")
    assert any("session.timeout.ms is 10 s again" in line for line in back)
    assert not any("Java" in line for line in back)


def test_what_closes_the_way_back_is_to_be_known_before_the_start():
    made = plan("4.3", "2.0", Use.EOS)
    before = [str(change) for change in made.changes if change.when is When.BEFORE]
    assert any("KIP-896" in line and "this way back does not exist" in line for line in before)
    assert any("only exactly_once exists; step " in line for line in before)
    assert all(change.action for change in made.changes if change.when is When.BEFORE)
    ends = [change.no_return for change in plan("2.0.1", "4.3").changes if change.no_return]
    assert ends == ["once brokers run 4.0 or later, no group can go back below 2.1 (KIP-896)"]


def test_the_grace_period_of_24_hours_is_named_where_its_constructors_are_deprecated():
    assert has("2.8", "3.0", "KIP-633")
    assert not has("3.0", "4.3", "KIP-633")


def test_rows_of_a_feature_need_the_feature():
    assert has("3.9", "4.0", "exactly_once", Use.EOS)
    assert not has("3.9", "4.0", "exactly_once")


def test_rows_without_effect_under_exactly_once_are_left_out():
    for words in ("producer.enable.idempotence", "acks=all"):
        assert has("2.8", "4.3", words)
        assert not has("2.8", "4.3", words, Use.EOS)
    assert has("3.6", "4.3", "prefix application.id", Use.EOS)
    assert not has("2.3.1", "3.9", "prefix application.id", Use.EOS)  # keeps version 1


def test_other_targets_select_from_rows_of_their_own():
    row = ReleaseChange(
        since="4.2.0", subject=Subject.BROKERS, what="needs more", source="KIP-1071"
    )
    stops = [find_release("4.1"), find_release("4.3")]
    assert [c.release for c in changes_between(stops, (), (row,))] == ["4.3.1"]


def switches(old, new):
    made = plan(old, new, Use.EOS)
    assert made.rolling
    return ways(made.steps)


def ways(steps):
    return [(s.release, s.upgrade_from, *s.settings) for s in steps]


V2 = "processing.guarantee=exactly_once_v2"


def test_exactly_once_is_switched_where_both_versions_exist():
    assert switches("2.3.1", "4.3") == [
        ("3.9.2", "2.3"),
        ("3.9.2", None, V2),
        ("4.3.1", None),
    ]
    v1 = "processing.guarantee=exactly_once"
    assert switches("3.9", "2.3.1") == [("3.9.2", "2.3", v1), ("2.3.1", None)]
    assert switches("3.9.1", "4.0") == [("3.9.1", None, V2), ("4.0.2", None)]


@pytest.mark.parametrize(("old", "new"), [("2.3.1", "3.9"), ("4.0", "4.3"), ("2.1.1", "2.4")])
def test_a_path_that_keeps_a_version_of_exactly_once_has_no_switch(old, new):
    assert switches(old, new) == [(s.release, s.upgrade_from) for s in plan(old, new).steps]


def test_a_direct_path_is_led_over_a_release_with_both_versions():
    assert plan("2.5.1", "4.3", Use.EOS).stops == ("2.5.1", "3.9.2", "4.3.1")
    assert plan("2.5.1", "4.3").stops == ("2.5.1", "4.3.1")


def test_version_2_is_renamed_on_the_way_from_2_8():
    beta = "processing.guarantee=exactly_once_beta"
    assert switches("2.8", "4.1") == [("2.8.2", None, beta), ("4.1.2", None, V2)]


def test_a_rollback_switches_before_a_release_without_version_2():
    v1 = "processing.guarantee=exactly_once"
    beta = "processing.guarantee=exactly_once_beta"
    down = [("2.8.2", None, beta), ("2.8.2", None, v1), ("2.5.1", None)]
    assert switches("4.3", "2.5.1") == down
    after = plan("2.3.1", "4.3", Use.EOS)
    down = ("3.9.2", "2.3", v1)
    assert [ways(step.back.steps) for step in after.steps[1:]] == [
        [down],
        [("3.9.2", None)],
    ]
    assert ways(plan("4.3", "2.5.1", Use.EOS).steps[-1].back.steps) == [("2.8.2", None)]


def test_the_way_back_of_a_switch_sets_the_guarantee_back():
    v1 = "processing.guarantee=exactly_once"
    first, second = (step.back.steps for step in plan("3.6", "4.3", Use.EOS).steps)
    assert ways(first) == [("3.6.2", None, v1)]
    assert ways(second) == [("3.6.2", None)]  # version 2, as before the step
    down = plan("3.9", "2.5.1", Use.EOS).steps[0]
    assert (down.settings, ways(down.back.steps)) == ((v1,), [("3.9.2", None, V2)])
    pinned = plan("2.8", "4.3", Use.EOS, Use.KTABLE).steps[2].back.steps
    assert ways(pinned) == [("4.3.1", "2.8")]


def test_a_rollback_to_2_8_renames_version_2():
    beta = "processing.guarantee=exactly_once_beta"
    assert switches("4.3", "2.8") == [("2.8.2", None, beta)]


def test_all_stopped_members_switch_while_they_are_down():
    made = plan("3.4.0", "4.0", Use.EOS, Use.KTABLE)
    offline = plan("3.2", "3.3", Use.EOS, Use.FK_JOIN)
    assert made.steps
    assert not offline.rolling
    assert offline.steps[0].settings == ()


def test_rows_about_pins_concern_groups_that_were_pinned():
    words = "the eager rebalance protocol"
    assert has("2.3.1", "4.3", words)
    assert not has("3.9", "4.3", words)
    assert any("rejects upgrade.from" in note for note in plan("2.3.1", "4.3").warnings)
    assert not any("rejects upgrade.from" in note for note in plan("3.9", "4.3").warnings)


FIRST = ANNOUNCED[0].release


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("5", {FIRST, "5.0"}),
        ("5.0.1", {FIRST, "5.0"}),
        (FIRST, {FIRST}),
        (f"{NEWEST_SERIES}.99", set()),
    ],
)
def test_a_plan_to_a_later_release_says_what_is_announced_and_as_of_when(name, releases):
    sources = [row.source for row in ANNOUNCED if row.release in releases]
    counted = f"{len(sources)} (above)" if sources else "none"
    with pytest.raises(ReleaseError, match=r"the newest .* recorded here is") as error:
        find_target(name)
    assert f", as of {READ[TRUNK]['date']}: {counted}; read Kafka's" in str(error.value)
    notes = getattr(error.value, "__notes__", [])
    assert [note.rpartition("[")[2] for note in notes] == [f"{source}]" for source in sources]
    assert not any(note.startswith("6.0:") for note in notes)
    assert find_target("3.9") is find_release("3.9")


@pytest.mark.parametrize("name", ["4.0.99", "3.10", "0" + NEWEST_KAFKA, "nonsense"])
def test_of_an_unknown_release_that_is_no_later_one_nothing_is_announced(name):
    with pytest.raises(ReleaseError) as error:
        find_target(name)
    assert "upgrade guide" not in str(error.value)


def test_clients_of_members_get_retries_after_its_constant_is_removed():
    """Run with `StreamsConfig` of 3.9.2 and 4.4.0: both pass retries to producer and admin."""
    row = next(row for row in CHANGES if "RETRIES_CONFIG" in row.what)
    assert row.since == "4.0.0"
    assert "passes it to the producers and admin clients" in row.what
