"""Levels are lowered after a question, and only those that can be lowered are asked about."""

import pytest
from click.testing import CliRunner

from assignor.cli import main
from system_tests.broker import BrokerConfig, running_broker


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("downgrade --metadata 3.0", "cannot be downgraded to 1 (3.0-IV1): metadata.version level"),
        ("downgrade --metadata 3.6", "cannot be downgraded to 14 (3.6-IV2): metadata.version"),
        ("downgrade --metadata 3.6 --unsafe", "does not support unsafe downgrades yet"),
        ("disable --feature metadata.version", "metadata.version cannot be disabled: "),
        ("upgrade --metadata 3.0", "metadata.version level 1 is not supported by broker 1 (7..33)"),
        ("downgrade-all --release-version 3.0", "none of 2 features can be changed (group.vers"),
    ],
)
@pytest.mark.usefixtures("clock")
def test_what_the_controller_refuses_is_not_asked_about(command, reason):
    with running_broker(BrokerConfig(nodes=2, metadata_version=22)) as broker:
        server = broker.bootstrap_servers[0]
        words = ["features", *command.split(), "--bootstrap-server", server, "--timeout", "120"]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 1
        assert broker.call(lambda running: running.cluster.features.finalized.epoch) == 0
    assert reason in done.stderr
    assert "Lower " not in done.stderr
    assert not command.startswith("upgrade") or "a downgrade below" not in done.stderr
