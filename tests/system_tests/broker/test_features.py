"""Feature levels of the embedded broker: ApiVersions and UpdateFeatures."""

import asyncio

import pytest
from kafka.protocol.admin import UpdateFeaturesRequest

from probing.features import KAFKA_RELEASES, FeatureError
from system_tests.broker import BrokerConfig, Fault
from system_tests.broker.features import ClusterFeatures
from tests.system_tests.broker.wire_client import on_broker

METADATA = "metadata.version"
NEWEST = KAFKA_RELEASES[-1].metadata[1]


def levels(response):
    return {row.name: row.max_version_level for row in response.finalized_features}


def supported(response):
    return {row.name: (row.min_version, row.max_version) for row in response.supported_features}


def update(feature, level, kind=1, *, allow_downgrade=False):
    return UpdateFeaturesRequest.FeatureUpdateKey(
        feature=feature,
        max_version_level=level,
        upgrade_type=kind,
        allow_downgrade=allow_downgrade,
    )


async def ask_update(client, *updates, version=2, dry_run=False):
    return await client.ask(
        "UpdateFeatures",
        version,
        timeout_ms=1_000,
        feature_updates=list(updates),
        validate_only=dry_run,
    )


def test_api_versions_has_levels_from_version_3_and_minimums_of_0_from_version_4():
    async def work(_, connect):
        client = await connect()
        old, three, four = [await client.ask("ApiVersions", v) for v in (2, 3, 4)]
        assert not old.finalized_features
        assert supported(three) == {METADATA: (7, NEWEST)}
        assert supported(four)["transaction.version"] == (0, 2)
        assert levels(three) == levels(four)
        assert levels(four)[METADATA] == NEWEST
        assert four.finalized_features_epoch == 0

    on_broker(work)


def test_an_update_is_one_step_of_the_epoch_and_reported_by_every_node():
    async def work(_, connect):
        first, second = await connect(1), await connect(2)
        answer = await ask_update(first, update(METADATA, 24), update("transaction.version", 1))
        assert (answer.error_code, answer.error_message) == (0, None)
        seen = await second.ask("ApiVersions", 4)
        assert (levels(seen)[METADATA], levels(seen)["transaction.version"]) == (24, 1)
        assert seen.finalized_features_epoch == 1

    config = BrokerConfig(nodes=2, metadata_version=22)
    on_broker(work, config)


def test_a_stale_node_reports_old_levels_until_it_updates():
    async def work(broker, connect):
        first, second = await connect(1), await connect(2)
        broker.cluster.features.freeze([2])
        await ask_update(first, update(METADATA, 23))
        stale = await second.ask("ApiVersions", 4)
        assert (levels(stale)[METADATA], stale.finalized_features_epoch) == (22, 0)
        assert levels(await first.ask("ApiVersions", 4))[METADATA] == 23
        broker.cluster.features.thaw()
        assert levels(await second.ask("ApiVersions", 4))[METADATA] == 23

    on_broker(work, BrokerConfig(nodes=2, metadata_version=22))


def test_a_level_that_one_node_does_not_support_is_refused_and_changes_nothing():
    async def work(broker, connect):
        broker.cluster.features.set_release(2, "4.0")
        client = await connect()
        other = await (await connect(2)).ask("ApiVersions", 4)
        assert supported(other)[METADATA] == (7, 25)
        answer = await ask_update(client, update(METADATA, 26))
        assert answer.error_code == 95
        assert "broker 2 (7..25)" in answer.error_message
        seen = await client.ask("ApiVersions", 4)
        assert (levels(seen)[METADATA], seen.finalized_features_epoch) == (22, 0)

    on_broker(work, BrokerConfig(nodes=2, metadata_version=22))


@pytest.mark.parametrize("version", [0, 1])
def test_up_to_version_1_each_line_has_its_result(version):
    async def work(_, connect):
        client = await connect()
        answer = await ask_update(client, update(METADATA, 31), version=version)
        assert answer.error_code == 0
        [row] = answer.results
        assert (row.feature, row.error_code) == (METADATA, 95)
        assert "31" in row.error_message

    on_broker(work)


def test_version_0_allows_a_safe_downgrade_by_a_flag():
    async def work(_, connect):
        client = await connect()
        for flag, code in ((False, 95), (True, 0)):
            lower = update(METADATA, 28, allow_downgrade=flag)
            answer = await ask_update(client, lower, version=0)
            assert answer.results[0].error_code == code

    on_broker(work, BrokerConfig(metadata_version=29))


def test_a_dry_run_answers_the_same_and_changes_nothing():
    async def work(_, connect):
        client = await connect()
        assert (await ask_update(client, update(METADATA, 29), dry_run=True)).error_code == 0
        assert (
            await ask_update(client, update(METADATA, NEWEST + 1), dry_run=True)
        ).error_code == 95
        seen = await client.ask("ApiVersions", 4)
        assert (levels(seen)[METADATA], seen.finalized_features_epoch) == (28, 0)

    on_broker(work, BrokerConfig(metadata_version=28))


def test_only_the_controller_updates_levels():
    async def work(broker, connect):
        assert broker.cluster.controller_id == 1
        answer = await ask_update(await connect(2), update(METADATA, 23))
        assert answer.error_code == 41
        assert broker.cluster.features.finalized.epoch == 0

    on_broker(work, BrokerConfig(nodes=2, metadata_version=22))


def test_an_upgrade_type_that_nobody_knows_is_an_invalid_request():
    async def work(_, connect):
        answer = await ask_update(await connect(), update(METADATA, 23, kind=7))
        assert answer.error_code == 42

    on_broker(work)


def test_a_fault_can_refuse_an_update_as_a_broker_without_rights_does():
    async def work(broker, connect):
        broker.inject(Fault(api="UpdateFeatures", error=31))
        answer = await ask_update(await connect(), update(METADATA, 23))
        assert answer.error_code == 31
        assert broker.cluster.features.finalized.epoch == 0

    on_broker(work, BrokerConfig(metadata_version=22))


def test_a_release_that_had_no_levels_is_refused():
    with pytest.raises(FeatureError, match=r"release '2\.8' has no finalized levels"):
        ClusterFeatures("2.8")


def test_an_old_cluster_begins_with_the_level_of_its_release():
    assert asyncio.run(_first_levels()) == {METADATA: 21}


async def _first_levels():
    return dict(ClusterFeatures("3.9").finalized.levels)
