import pytest
from click.testing import CliRunner

from system_tests.cli.main import main


def run(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--to 2.0", "--from"),
        ("--from 9.9 --to 2.0", "'9.9' is unknown; the newest release recorded here is"),
        ("--from 3.1 --to native --members 0", "0 is not in the range"),
        ("--from 3.1 --to native --order sideways", "or use leader-last, leader-first, random"),
        ("--from 3.1 --to native --order 0,1", "must name each of a, b, c once"),
        ("--from 3.1 --to native --kill d", "there is no member 'd'; members are a, b, c"),
        ("--from 3.1 --to native --kill leader --offline", "leave --offline out"),
        ("--from 3.1 --to native --offline --no-pin", "leave --no-pin out"),
        ("--from 3.1 --to native --port 9092 --bootstrap-server x:1", "leave it or"),
        ("--from 3.1 --to native --heartbeat-ms 3000", "at least three times"),
        ("--from 3.1 --to native --client aiokafka --protocol cooperative", "take --client mixed"),
        ("--from 3.1 --to native --client librdkafka", "is not one of"),
        ("--from 3.9 --to 4.4 --broker kafka:RELEASE", "the release of your brokers after kafka:"),
        ("--from 4.3 --to streams --broker kafka:4.3 --report x", "leave --report out"),
        ("--from 2.0.1 --to 2.3.0", "KAFKA-8649"),
        ("--from 2.0 --to 4.0", "bounce to 3.9 with upgrade.from=2.0, then 3.9 without it"),
        ("--from 3.1 --to native --rate nan", "rate"),
        ("--from 3.1 --to native --frm 2", "no such option"),
    ],
)
def test_invalid_input_is_refused_before_anything_starts(arguments, expected):
    result = run("live", *arguments.split())
    assert result.exit_code == 2
    assert expected in result.stderr
    assert result.stdout == ""


def test_a_refusal_is_one_sentence_that_names_what_to_do():
    result = run("live", "--from", "2.0.1", "--to", "2.3.0")
    assert len(result.stderr.splitlines()) == 1
    assert "use one of 2.2.2, 2.3.1, 2.4 instead" in result.stderr
    assert "--force" in result.stderr
