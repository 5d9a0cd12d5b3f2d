"""UpdateFeatures requests, decoded from the bytes that a controller receives."""

import asyncio
from types import SimpleNamespace

import pytest
from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin import UpdateFeaturesRequest
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsResponse

from assignor.adapters.admin import BrokerError, read_features, update_features
from probing.features import UNKNOWN_LEVELS, FeatureUpdate, UpdateKind

ALLOWS_NOTHING, SAFE, UNSAFE = 1, 2, 3


class Cluster:
    """A connected admin client whose controller accepts every update and keeps the requests."""

    def __init__(self):
        self.target = SimpleNamespace(timeout_ms=5)
        self.requests = []

    def ask(self, doing, question):
        return asyncio.run(question(self))

    async def _send_request_to_controller(self, request, *, get_errors_fn, raise_errors):
        self.requests.append(request)
        return SimpleNamespace(error_code=0, error_message=None, results=[])


def sent(*updates, dry_run=False):
    """The request, decoded from the bytes of version 1."""
    cluster = Cluster()
    answers = update_features(cluster, updates, dry_run=dry_run)
    assert [answer.feature for answer in answers] == [update.feature for update in updates]
    (request,) = cluster.requests
    return request, UpdateFeaturesRequest.decode(bytes(request.encode(version=1)), version=1)


@pytest.mark.kip("778-2", "core")
def test_each_update_carries_the_number_of_its_kind():
    updates = (
        FeatureUpdate(feature="a", level=3, kind=UpdateKind.UPGRADE),
        FeatureUpdate(feature="b", level=2, kind=UpdateKind.SAFE_DOWNGRADE),
        FeatureUpdate(feature="c", level=0, kind=UpdateKind.UNSAFE_DOWNGRADE),
    )
    request, read = sent(*updates)
    rows = [(row.feature, row.max_version_level, row.upgrade_type) for row in read.feature_updates]
    assert rows == [("a", 3, ALLOWS_NOTHING), ("b", 2, SAFE), ("c", 0, UNSAFE)]
    # Version 0 has no kinds, only a flag that allows a downgrade.
    assert [row.allow_downgrade for row in request.feature_updates] == [False, True, True]


@pytest.mark.kip("778-2", "core")
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_dry_run_is_sent_as_one_and_never_in_a_version_that_knows_none(dry_run):
    request, read = sent(FeatureUpdate(feature="a", level=3), dry_run=dry_run)
    assert read.validate_only is dry_run
    old = BrokerVersionData(api_versions={request.API_KEY: (0, 0)})
    if dry_run:
        with pytest.raises(IncompatibleBrokerVersion):
            old.api_version(request)
    else:
        assert old.api_version(request) == 0


class OldCluster(Cluster):
    """A controller with UpdateFeatures version 0 only: each request changes levels at once."""

    def ask(self, doing, question):
        try:
            return super().ask(doing, question)
        except IncompatibleBrokerVersion as error:
            raise BrokerError(f"could not {doing}") from error

    async def _send_request_to_controller(self, request, **rest):
        BrokerVersionData(api_versions={request.API_KEY: (0, 0)}).api_version(request)
        return await super()._send_request_to_controller(request, **rest)


@pytest.mark.kip("778-14", "core")
def test_a_dry_run_that_the_brokers_do_not_know_is_refused_and_nothing_is_sent():
    cluster, update = OldCluster(), FeatureUpdate(feature="a", level=3)
    (answer,) = update_features(cluster, [update], dry_run=True)
    assert (answer.error, cluster.requests) == ("UNSUPPORTED_VERSION", [])
    assert "do not support a dry run" in answer.why
    assert update_features(cluster, [update], dry_run=False)[0].error == ""
    assert len(cluster.requests) == 1


class Node(Cluster):
    """An admin client whose node answers with a finalized level, with or without an epoch."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch
        where = SimpleNamespace(node_id=1, host="b", port=9092)
        self._manager = SimpleNamespace(
            least_loaded_node=lambda: 1,
            send=self._send,
            cluster=SimpleNamespace(broker_metadata=lambda _: where),
        )

    async def _send(self, request, node_id):
        row = ApiVersionsResponse
        return row(
            error_code=0,
            api_keys=[],
            supported_features=[row.SupportedFeatureKey(name="a", min_version=1, max_version=9)],
            finalized_features_epoch=self.epoch,
            finalized_features=[
                row.FinalizedFeatureKey(name="a", max_version_level=7, min_version_level=7)
            ],
        )


@pytest.mark.kip("778-15", "core")
@pytest.mark.parametrize("epoch", [None, -1, -7])
def test_levels_that_a_broker_reports_without_an_epoch_are_not_finalized(epoch):
    features = read_features(Node(epoch))
    assert features.finalized == UNKNOWN_LEVELS
    assert features.supported["a"].max == 9


@pytest.mark.kip("778-15", "core")
def test_levels_that_a_broker_reports_with_an_epoch_are_finalized():
    assert read_features(Node(0)).finalized.levels == {"a": 7}
