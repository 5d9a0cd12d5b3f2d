from itertools import product

import pytest

from probing.features import MIGRATION_RULES, Phase, ProtocolSetup, decide_protocol

MIGRATION = 5
SETTINGS = (None, *range(1, 10))


@pytest.mark.kip("584-12", "core")
@pytest.mark.parametrize(("setting", "flag"), list(product(SETTINGS, range(10))))
def test_the_flag_decides_once_it_is_finalized_and_the_setting_is_migrated(setting, flag):
    setup = ProtocolSetup(setting=setting, migration=MIGRATION, flag=flag)
    decision = decide_protocol(setup)
    if setting is None:
        assert (decision.level, decision.phase) == (flag, Phase.SETTING_RETIRED)
    elif flag > 0 and setting >= MIGRATION:
        assert (decision.level, decision.phase) == (flag, Phase.FLAG)
    else:
        assert decision.level == setting
        assert decision.phase == (Phase.SETTING_ONLY if setting < MIGRATION else Phase.BOTH)


@pytest.mark.kip("584-12", "core")
def test_a_node_goes_through_the_phases_and_can_go_back_in_an_emergency():
    steps = [
        ProtocolSetup(setting=4, migration=MIGRATION),
        ProtocolSetup(setting=6, migration=MIGRATION),
        ProtocolSetup(setting=6, migration=MIGRATION, flag=8),
        # Emergency: one rolling bounce lowers the setting, the flag stays finalized.
        ProtocolSetup(setting=4, migration=MIGRATION, flag=8),
    ]
    decided = [decide_protocol(step) for step in steps]
    assert [decision.phase for decision in decided] == [1, 2, 3, 1]
    assert [decision.level for decision in decided] == [4, 6, 8, 4]
    assert [step.is_migrated for step in steps] == [False, True, True, False]
    assert "migration version 5" in decided[3].why


def test_every_row_of_the_table_decides_somewhere():
    fired = {
        decide_protocol(ProtocolSetup(setting=setting, migration=MIGRATION, flag=flag)).rule
        for setting, flag in product(SETTINGS, range(10))
    }
    assert fired == {rule.name for rule in MIGRATION_RULES}
