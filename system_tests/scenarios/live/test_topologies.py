"""Rolling changes of an application's topology with real processes: every record counts once."""

import pytest

from system_tests.scenarios.conftest import run_command

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]

KINDS = ["add", "remove", "change", "rename"]


def changed(kind, *options, session_ms=60_000):
    command = ("live --from native --to native --partitions 4 --topology", kind, *options)
    run = run_command(f"{' '.join(command)} --session-timeout-ms {session_ms}")
    assert run.status == 0, (run.stderr, run.report)
    return run.report


def check_counts(kind, verdict):
    """Every record is counted once: by a whole store, or by the old store and then the new one."""
    assert (verdict["broken"], verdict["errors"]) == ([], [])
    assert verdict["before"] != verdict["after"]
    whole = {store: n for store, n in verdict["expected"].items() if n is not None}
    assert whole.items() <= verdict["found"].items()
    if kind == "rename":
        assert sum(verdict["found"].values()) == verdict["written"]["words"]
        assert all(verdict["found"].values())


@pytest.mark.nightly("8 s each; every run renames, and takes a change back", but=("rename",))
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_counts_every_record_once(kind):
    verdict = changed(kind)
    assert verdict["broker"] == "embedded"
    check_counts(kind, verdict)


@pytest.mark.real
@pytest.mark.nightly("30 s a kind; every run has `change` on real Kafka", but=("change",))
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_counts_every_record_once_on_real_kafka(kind):
    verdict = changed(kind, "--broker", "kafka:3.9")
    assert verdict["broker"].startswith("kafka:3.9.")
    check_counts(kind, verdict)


@pytest.mark.nightly(
    "6 bounces, half a minute a kind; every run takes a change back", but=("change",)
)
@pytest.mark.parametrize("kind", ["change", "rename"])
def test_a_change_is_taken_back_and_every_record_counts_once(kind):
    """Both kinds need the lowered memory: without it, partitions wait for the new form."""
    verdict = changed(kind, "--take-back", "--members", "2")
    assert (verdict["broken"], verdict["errors"]) == ([], [])
    assert (verdict["taken_back"], verdict["lowered"]["version"]) == (True, 1)
    written = verdict["expected"]["counts"] or sum(verdict["found"].values())
    found = verdict["found"]
    assert written == (found["counts"] if kind == "change" else sum(found.values()))


def test_a_change_survives_the_kill_of_the_leader_under_the_cooperative_protocol():
    verdict = changed("change", "--kill leader --protocol cooperative", session_ms=6_000)
    assert verdict["broken"] == []
    # The second of three: one member has the new program then, and one still the old one.
    assert verdict["killed"]
    assert verdict["found"]["counts"] == verdict["expected"]["counts"]
