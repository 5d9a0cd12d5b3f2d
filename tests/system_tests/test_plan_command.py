"""`rolling-bounce plan`: the steps, the bridge, the pin that crashes, the way back."""

from click.testing import CliRunner

from system_tests.cli import main


def run(*arguments):
    return CliRunner().invoke(main, ["plan", *arguments])


def test_from_2_3_to_4_1_leads_over_a_bridge_with_a_pin_that_is_taken_out_again():
    result = run("--from", "2.3.1", "--to", "4.1")
    assert result.exit_code == 0
    steps = [line for line in result.stdout.splitlines() if line.startswith("step ")]
    assert len(steps) == 3
    assert "3.9.2, upgrade.from=2.3" in steps[0]
    assert "no upgrade.from" in steps[1]
    assert "4.1" in steps[2]
    assert "point of no return" in result.stdout


def test_the_pin_that_crashes_3_5_1_is_named():
    result = run("--from", "3.4.0", "--to", "3.5.1", "--uses", "ktable")
    assert "3.4" in result.stdout
    assert "3.5.2" in result.stdout + result.stderr


def test_to_native_one_bounce_is_enough_and_the_way_back_is_open():
    result = run("--from", "3.9", "--to", "native")
    assert result.exit_code == 0
    steps = [line for line in result.stdout.splitlines() if line.startswith("step ")]
    assert len(steps) == 1
    assert "back:" in result.stdout


def test_an_unknown_release_is_bad_input():
    result = run("--from", "9.9", "--to", "native")
    assert result.exit_code == 2
    assert "unknown" in result.stderr
