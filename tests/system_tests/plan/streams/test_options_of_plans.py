"""The move to the streams protocol: what is refused, and wrong usage."""

import pytest
from click.testing import CliRunner

from system_tests.cli.main import main


def plan(*words):
    return CliRunner().invoke(main, ["plan", "--to", "streams", *words])


REFUSED = {
    ("--brokers", "4.2.0"): "brokers of 4.2.0 have KAFKA-20254",
    ("--brokers", "4.1"): "have the streams protocol as early access only",
    ("--brokers", "3.9"): "do not know the streams protocol",
    ("--brokers", "4.3", "--streams-version", "0"): "streams.version is not finalized",
    ("--brokers", "4.3", "--uses", "regex"): "regular expressions: members of 4.3.1 refuse",
    ("--brokers", "4.3", "--uses", "static"): "static members: 4.3.1 refuses group.instance.id",
}


@pytest.mark.parametrize("words", REFUSED)
def test_refusals_have_status_1_and_a_name(words):
    done = plan("--from", "4.3", *words)
    assert done.exit_code == 1
    assert done.stdout.partition("\n")[0].endswith(": refused")
    assert REFUSED[words] in done.stdout
    assert "step 1" not in done.stdout


def test_every_reason_is_printed():
    done = plan("--from", "3.9", "--brokers", "4.2.0", "--uses", "regex,static")
    assert done.exit_code == 1
    assert done.stdout.count("refused:") == 4
    assert "members of 3.9.2 have no streams protocol (KIP-1071)" in done.stdout
    assert "rolling-bounce plan --from 3.9.2 --to 4.4" in done.stdout
    early = plan("--from", "4.1", "--brokers", "4.3").stdout
    assert "members of 4.1.2 have the streams protocol as early access only" in early


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--from", "4.3"), "give the release of the brokers"),
        (("--from", "streams"), "the way back to the classic protocol is part of the move"),
        (("--brokers", "4.3"), "give the release that the group runs"),
        (("--from", "4.3", "--brokers", "native"), "not a release of brokers"),
        (("--from", "4.3", "--brokers", "9.9"), "9.9"),
    ],
)
def test_wrong_usage_has_one_sentence(words, sentence):
    done = plan(*words)
    assert done.exit_code == 2
    assert sentence in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--members", "3"),
        ("--threads", "2"),
        ("--partitions", "4"),
        ("--bootstrap-server", "localhost:9092"),
        ("--timeout", "3"),
        ("--application-id", "shop"),
        ("--seeds", "2"),
    ],
)
def test_an_option_without_a_use_is_refused_by_its_name(words):
    done = plan("--from", "4.3", "--brokers", "4.3", *words)
    assert done.exit_code == 2
    assert words[0] in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--from 3.9 --to 4.3 --application-id a", "--topology uses --application-id"),
        ("--from 3.9 --to 4.3 --timeout 3", "(--group ID), or leave out --timeout"),
        ("--from 3.9 --to 4.3 --problem g --timeout 3", "or leave out --timeout"),
        ("--from 3.9 --to 4.3 --streams-version 1", "--streams-version needs --to streams"),
        ("--topology a:B a:C --members 3 --uses eos", "leave out --members, --uses"),
    ],
)
def test_options_of_another_plan_are_refused(words, sentence):
    done = CliRunner().invoke(main, ["plan", *words.split()])
    assert done.exit_code == 2
    assert sentence in done.stderr
