"""Rolls that raise the persistent version: followers take the leader's, nobody goes back."""

from dataclasses import replace

import pytest

from probing import persisted
from system_tests.sim.formats import check_formats, roll_formats

SEEDS = 400


def rolls():
    for seed in range(SEEDS):
        yield seed, roll_formats(seed, members=2 + seed % 5)


@pytest.mark.kip("384-6", "sim")
def test_during_a_roll_followers_take_the_leaders_format_whatever_their_setting():
    rules = set()
    for seed, seen in rolls():
        assert check_formats(seen) == (), f"seed {seed}"
        rules |= {row.rule for row in seen}
    assert rules >= {
        "as set",
        "raised",
        "as the leader writes",
        "as a leader wrote",
        "no way back",
    }


def test_a_seed_tells_the_whole_story():
    assert roll_formats(7) == roll_formats(7)
    assert roll_formats(7) != roll_formats(8)


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("as the leader writes", {"says": lambda n: n.settings.version}),
        ("as the leader writes", {"says": lambda n: n.leader_version}),
        ("no way back", {"holds": lambda n: n.written_version > n.settings.version}),
        ("no way back", {"holds": lambda _: False}),
        ("as a leader wrote", {"says": lambda n: n.settings.version}),
    ],
)
def test_without_a_rule_the_checkers_go_red(monkeypatch, rule, changes):
    rules = tuple(
        replace(row, **changes) if row.name == rule else row for row in persisted.PERSISTED_RULES
    )
    monkeypatch.setattr(persisted, "PERSISTED_RULES", rules)
    assert any(check_formats(seen) for _, seen in rolls())
