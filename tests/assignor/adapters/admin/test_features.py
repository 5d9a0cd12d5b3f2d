"""Updates of feature levels as a controller gets them: the request's bytes."""

import asyncio
from types import SimpleNamespace

import pytest
from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin import UpdateFeaturesRequest
from kafka.protocol.broker_version_data import BrokerVersionData

from assignor.adapters.admin import update_features
from probing.features import FeatureUpdate, UpdateKind

ALLOWS_NOTHING, SAFE, UNSAFE = 1, 2, 3


class Cluster:
    """A connected admin client whose controller takes every update, and keeps what it was sent."""

    def __init__(self):
        self.target = SimpleNamespace(timeout_ms=5)
        self.requests = []

    def ask(self, doing, question):
        return asyncio.run(question(self))

    async def _send_request_to_controller(self, request, *, get_errors_fn, raise_errors):
        self.requests.append(request)
        return SimpleNamespace(error_code=0, error_message=None, results=[])


def sent(*updates, dry_run=False):
    """The request as a controller reads it from the bytes of version 1."""
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
    # Version 0 knows no kinds, only whether a level may go down.
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
