"""The table of the groups most worth touching."""

from dataclasses import fields

from spark_assign.batch import GroupWorth
from spark_assign.cli.worth_table import print_worth


def test_a_long_name_does_not_widen_the_table(capsys):
    numbers = {field.name: 1 for field in fields(GroupWorth) if field.name != "name"}
    rows = [GroupWorth(name=name, **numbers) for name in ("orders", "n" * 1_000_000, "a\nb")]
    print_worth(rows, worth=3, placed=3)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) < 220
    assert lines[2].startswith("orders ")
    assert lines[4].startswith("a\\nb ")
