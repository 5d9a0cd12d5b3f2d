import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from probing import RELEASES, find_release, upgrade_path
from system_tests.cli import matrix
from system_tests.cli.main import main
from system_tests.matrix import evidence as matrix_evidence
from system_tests.matrix.evidence import gather, gather_many
from system_tests.matrix.expectation import CellOutcome, all_pairs, expect, kinds
from system_tests.matrix.kip268 import COLUMNS, ROWS, kip268_cells
from system_tests.matrix.store import StoreError, Verdict, from_text, to_text


def expected(old, new):
    return expect(find_release(old), find_release(new))


def run(arguments):
    return CliRunner().invoke(main, ["matrix", *arguments.split(), "--workers", "1"])


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ("3.9.2", "3.9.2", CellOutcome.SAME),
        ("3.9.2", "native", CellOutcome.ONE_BOUNCE),
        ("native", "3.9.2", CellOutcome.ONE_BOUNCE),
        ("3.4.0", "3.5.1", CellOutcome.ONE_BOUNCE),
        ("2.3.1", "3.9.2", CellOutcome.TWO_BOUNCES),
        ("3.9.2", "2.3.1", CellOutcome.TWO_BOUNCES),
        ("2.3.1", "4.1", CellOutcome.BRIDGE),
        ("2.0.1", "2.3.0", CellOutcome.BROKEN),
        ("2.3.0", "2.0.1", CellOutcome.BROKEN),
        ("0.10.0.1", "0.10.1.1", CellOutcome.OFFLINE),
    ],
)
def test_each_outcome_has_its_pairs(old, new, outcome):
    assert expected(old, new).outcome is outcome


def test_a_route_stays_between_the_two_releases_where_it_can():
    assert expected("2.3.1", "4.1").route == ("3.9.2",)
    assert expected("2.0.1", "2.3.0").route == ("2.2.2",)


@pytest.mark.parametrize(
    ("old", "new"),
    [("2.0.1", "2.1.1"), ("2.0.1", "2.2.1"), ("2.1.1", "2.0.1"), ("2.2.1", "2.0.1")],
)
def test_a_route_outside_of_the_two_releases_is_the_nearest_without_a_setting(old, new):
    expectation = expected(old, new)
    assert expectation.route == ("2.2.2",)
    bounces = _bounces(old, "2.2.2", new)
    assert [bounce.upgrade_from for bounce in bounces] == [None, None]


def test_no_route_of_the_matrix_takes_more_bounces_than_another_bridge():
    routed = [each for each in (expected(*pair) for pair in all_pairs()) if each.route]
    assert len(routed) >= 40
    for each in routed:
        ways = [_bounces(each.old, bridge, each.new) for bridge in each.path.bridges]
        fewest = min(len(way) for way in ways if way)
        assert len(_bounces(each.old, *each.route, each.new)) == fewest


def _bounces(*stops):
    """The bounces over the stops; empty if a leg cannot be rolled."""
    legs = [upgrade_path(find_release(old), find_release(new)) for old, new in pairwise(stops)]
    return (
        [bounce for leg in legs for bounce in leg.bounces]
        if all(leg.bounces for leg in legs)
        else []
    )


def test_a_fatal_setting_is_reported_also_if_it_is_not_needed():
    expectation = expected("3.4.0", "3.5.1")
    assert "upgrade.from=3.4 crashes on 3.5.1" in expectation.fatal_setting
    assert expected("3.4.0", "3.5.2").fatal_setting == ""


def test_every_release_except_planned_ones_is_of_one_kind():
    named = [name for kind in kinds() for name in kind.releases]
    assert sorted(named) == sorted(
        r.name for r in RELEASES if r.name not in ("next", "incompatible")
    )
    assert len(set(all_pairs())) == len(all_pairs()) >= len(kinds()) * (len(kinds()) - 1)


def test_the_kips_table_is_seven_by_seven_and_nothing_leads_backwards():
    cells = kip268_cells()
    assert (len(ROWS), len(COLUMNS), len(cells)) == (7, 7, 49)
    assert sum(1 for cell in cells if cell.variants) == 28
    assert sum(cell.starred for cell in cells) == 15


def test_starred_cells_can_be_asked_for_with_or_without_the_backport():
    for backport, name in ((True, "with KAFKA-6054"), (False, "without KAFKA-6054")):
        starred = [cell for cell in kip268_cells(backport=backport) if cell.starred]
        assert {v.name for cell in starred for v in cell.variants} == {name}


def test_an_expected_path_that_breaks_a_rule_is_a_disagreement(monkeypatch):
    real = expected("1.1.1", "2.3.1")
    wrong = replace(
        real,
        outcome=CellOutcome.ONE_BOUNCE,
        path=replace(real.path, bounces=real.path.bounces[1:]),
    )
    monkeypatch.setattr(matrix_evidence, "expect", lambda *_: wrong)
    real_run = matrix_evidence.run_bounce
    monkeypatch.setattr(
        matrix_evidence, "run_bounce", lambda options: real_run(replace(options, force=True))
    )
    assert any(
        "broke 'nobody dies'" in sentence for sentence in gather("1.1.1", "2.3.1").disagreements
    )


def test_a_needless_setting_is_a_disagreement(monkeypatch):
    wrong = replace(expected("3.8", "3.9"), outcome=CellOutcome.TWO_BOUNCES)
    monkeypatch.setattr(matrix_evidence, "expect", lambda *_: wrong)
    disagreements = gather("3.8", "3.9", seeds=1, tries=2).disagreements
    assert len(disagreements) == 1
    assert "2 bounces without any setting broke no rule" in disagreements[0]


def test_a_setting_that_is_wrongly_expected_to_be_fatal_is_a_disagreement(monkeypatch):
    wrong = replace(expected("3.7", "3.9"), fatal_setting="upgrade.from=3.7 crashes")
    monkeypatch.setattr(matrix_evidence, "expect", lambda *_: wrong)
    assert "starts, but expected" in gather("3.7", "3.9", seeds=1).disagreements[0]


def test_the_command_prints_one_pair_with_its_reason():
    done = run("--from 2.0.1 --to 2.3.0")
    assert done.exit_code == 0, done.output
    assert "broken: KAFKA-8649; go through 2.2.2" in done.stdout
    assert "one bounce without a setting breaks" in done.stdout


@pytest.mark.slow
def test_the_command_ends_with_1_where_the_simulation_disagrees(monkeypatch):
    wrong = replace(expected("3.8", "3.9"), outcome=CellOutcome.TWO_BOUNCES)
    monkeypatch.setattr(matrix_evidence, "expect", lambda *_: wrong)
    done = run("--from 3.8 --to 3.9")
    assert done.exit_code == 1
    assert "broke no rule" in done.stderr


def test_json_has_the_outcome_of_a_pair():
    done = run("--from 3.9 --to native --format json")
    assert done.exit_code == 0, done.output
    (pair,) = json.loads(done.stdout)["pairs"]
    assert (pair["outcome"], pair["bounces"], pair["simulated"]) == ("one bounce", 1, True)


def test_html_is_no_format_of_the_matrix():
    done = run("--from 3.9 --to native --format html")
    assert done.exit_code == 2
    assert "'html' is not one of 'text', 'json', 'markdown'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--kip268 --from 3.9", "leave --from and --to out"),
        ("--no-backport", "add --kip268"),
        ("--from 9.9", "unknown"),
        ("--from 3.9 --format markdown", "whole matrix"),
    ],
)
def test_wrong_usage_ends_with_2_and_names_what_to_do(arguments, text):
    done = run(arguments)
    assert done.exit_code == 2
    assert text in done.stderr


def test_a_stored_matrix_reads_back_sorted():
    rows = [
        Verdict("3.9", "4.0", agrees=True, unprepared=""),
        Verdict("2.3", "3.9", agrees=False, unprepared="one owner"),
    ]
    text = to_text(rows)
    assert list(from_text(text).values()) == sorted(rows)


@pytest.mark.parametrize("text", ["", "{}", "[[1, 2, 3, 4]]", '[["a", "b", true]]'])
def test_other_text_is_not_a_stored_matrix(text):
    with pytest.raises(StoreError, match="--write"):
        from_text(text)


@pytest.mark.usefixtures("clock")
def test_two_processes_find_what_one_finds():
    pairs = [("3.9.2", "native"), ("native", "next")]
    found = sorted(gather_many(pairs, workers=2), key=lambda evidence: evidence.old)
    assert found == [gather(old, new) for old, new in pairs]


def test_a_file_of_verdicts_is_completed_and_its_pairs_are_not_simulated_again(
    tmp_path, monkeypatch
):
    stored = from_text((Path(__file__).parent / "upgrades.json").read_text(encoding="utf-8"))
    new = [pair for pair in stored if "native" in pair][:3]
    path, asked = tmp_path / "verdicts.json", []

    def gather_some(pairs, *, workers):
        asked.extend(pairs)
        yield from gather_many(pairs[:2], workers=workers)
        raise KeyboardInterrupt

    path.write_text(to_text(row for pair, row in stored.items() if pair not in new), "utf-8")
    monkeypatch.setattr(matrix, "gather_many", gather_some)
    assert run(f"--missing --write {path}").exit_code
    assert sorted(asked) == sorted(new)
    assert len(from_text(path.read_text(encoding="utf-8"))) == len(stored) - 1
    monkeypatch.setattr(matrix, "gather_many", gather_many)
    assert run(f"--missing --write {path}").exit_code == 0
    assert from_text(path.read_text(encoding="utf-8")) == stored
    path.write_text("[", encoding="utf-8")
    assert "a stored matrix is JSON" in run(f"--missing --write {path}").stderr
    assert "name it with --write FILE" in run("--missing").stderr
