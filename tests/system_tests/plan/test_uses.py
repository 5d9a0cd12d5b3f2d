"""Features of applications that a release does not have."""

import pytest
from click.testing import CliRunner

from probing import find_release
from system_tests.cli.main import main
from system_tests.engine import OptionError
from system_tests.plan import Use, make_plan
from system_tests.plan.uses import read_uses


def plan(old, new, *uses):
    return make_plan(find_release(old), find_release(new), frozenset(uses))


@pytest.mark.parametrize(("release", "use"), [("2.4", Use.EOS_V2), ("4.0", Use.EOS_V1)])
def test_a_version_that_the_group_cannot_run_is_refused(release, use):
    with pytest.raises(OptionError, match="has no version"):
        plan(release, "4.3", *read_uses(use))
    with pytest.raises(ValueError, match="eos-v1 and eos-v2"):
        read_uses("eos-v1,eos-v2")


@pytest.mark.parametrize(
    ("release", "use"),
    [
        ("0.10.2", Use.EOS),
        ("2.3.1", Use.FK_JOIN),
        ("2.0", Use.SUPPRESS),
        ("2.2", Use.STATIC),
        ("0.10.0", Use.IQ),
        ("0.10.0", Use.REGEX),
    ],
)
def test_a_feature_that_a_release_does_not_have_is_refused(release, use):
    for pair in ((release, "3.9"), ("3.9", release)):
        with pytest.raises(OptionError, match=f"leave {use} out of --uses, or take releases from"):
            plan(*pair, use)


def test_the_command_refuses_it_too_and_names_no_option_that_it_does_not_have():
    words = ["plan", "--from", "0.10.0", "--to", "1.1", "--uses", "static"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "leave static out of --uses" in done.stderr
