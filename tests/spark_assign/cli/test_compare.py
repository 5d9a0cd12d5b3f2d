"""What `spark-assign compare` prints; the comparison itself is in the tests of the batch."""

from contextlib import nullcontext

from click.testing import CliRunner

from spark_assign.cli.main import main


def test_differing_groups_that_are_not_listed_are_counted(monkeypatch):
    found = {"total": 10, "equal": 2, "different": ["a", "b\n", "c", "d", "e"]}
    module = "spark_assign.cli.compare"
    monkeypatch.setattr(f"{module}.job", lambda *_: nullcontext())
    monkeypatch.setattr(f"{module}.read_results", lambda *_: None)
    monkeypatch.setattr(f"{module}.compared", lambda *_: found)
    result = CliRunner().invoke(main, ["compare", "plans", "answers"])
    assert result.exit_code == 1
    head, *lines = result.stdout.splitlines()
    assert head == "2 / 10 equal"
    assert lines[1] == "  differs: b\\n"
    assert lines[-1] == "  and 3 more"
