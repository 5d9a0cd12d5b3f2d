"""`assignor features disable` while live groups depend on the feature."""

from click.testing import CliRunner

from assignor.cli import main
from assignor.inspection import DescribedGroup
from system_tests.broker import BrokerConfig, running_broker

GROUPS = [
    DescribedGroup(group_id="swc", state="Stable", group_type="streams"),
    DescribedGroup(group_id="old", state="Empty", group_type="streams"),
    DescribedGroup(group_id="orders", state="Stable", group_type="classic"),
]


def test_a_feature_that_live_groups_depend_on_is_disabled_only_by_force(clock, monkeypatch):
    monkeypatch.setattr("assignor.adapters.admin.list_groups", lambda _: GROUPS)
    with running_broker(BrokerConfig(metadata_version=22)) as broker:

        def features(command, *options):
            where = ("--bootstrap-server", broker.bootstrap_servers[0], "--timeout", "120")
            found = CliRunner().invoke(main, ["features", command, *where, *options])
            return found.exit_code, found.stdout, found.stderr

        def level():
            finalized = broker.call(lambda running: running.cluster.features.finalized)
            return finalized.level_of("streams.version")

        assert features("upgrade-all", "--release-version", "4.2")[0] == 0
        options = ("--feature", "streams.version", "--yes")
        for more in ((), ("--dry-run",)):
            status, out, err = features("disable", *options, *more)
            assert (status, out) == (1, "")
            assert "streams.version is not disabled: 1 live group" in err
            assert "(swc)" in err
        assert level() == 1
        assert features("disable", *options, "--force")[0] == 0
        assert level() == 0
