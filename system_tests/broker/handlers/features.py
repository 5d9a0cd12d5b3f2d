"""ApiVersions with feature levels, and UpdateFeatures (KIP-584, KIP-778, KIP-1022)."""

from typing import Any

from kafka.protocol import admin, metadata

from probing.features import FeatureUpdate, UpdateKind, UpdateOutcome, UpdateRequest
from system_tests.broker.handlers.table import Call, Handler
from system_tests.broker.wire import api_versions_response

INVALID_REQUEST = 42
_FEATURES_SINCE = 3
_MINIMUM_0_SINCE = 4
_KINDS_SINCE = 1
_NO_RESULTS_SINCE = 2
_LOWER = (UpdateKind.UPGRADE, UpdateKind.SAFE_DOWNGRADE)


async def api_versions(call: Call) -> Any:
    """ApiVersions v0 to v4; features from v3 on."""
    response = api_versions_response(newest=call.cluster.config.newest_versions)
    if call.version < _FEATURES_SINCE:
        return response
    features = call.cluster.features
    seen = features.seen_by(call.node_id)
    row = metadata.ApiVersionsResponse
    response.supported_features = [
        row.SupportedFeatureKey(name=name, min_version=low, max_version=high)
        for name, found in sorted(features.ranges_of(call.node_id).items())
        for low, high in (found.advertised,)
        # Clients of v3 reject a minimum of 0 (KAFKA-17492).
        if low > 0 or call.version >= _MINIMUM_0_SINCE
    ]
    response.finalized_features_epoch = seen.epoch
    response.finalized_features = [
        row.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in sorted(seen.levels.items())
    ]
    return response


async def update_features(call: Call) -> Any:
    """UpdateFeatures v0 to v2."""
    response = admin.UpdateFeaturesResponse
    updates = [_update(call.version, row) for row in call.request.feature_updates]
    known = [update for update in updates if update is not None]
    if len(known) < len(updates):
        text = "the upgrade type is none of 1 (upgrade), 2 (safe), 3 (unsafe downgrade)"
        return response(error_code=INVALID_REQUEST, error_message=text, results=[])
    outcome = call.cluster.features.update(
        UpdateRequest(
            updates=tuple(known),
            validate_only=bool(call.version >= _KINDS_SINCE and call.request.validate_only),
            # Up to v1 the response has a result per feature.
            together=call.version >= _NO_RESULTS_SINCE,
        ),
        node_id=call.node_id,
        controller_id=call.cluster.controller_id,
        live=call.cluster.live,
    )
    return _answer(call.version, outcome)


def _update(version: int, row: Any) -> FeatureUpdate | None:
    try:
        kind = (
            UpdateKind(row.upgrade_type) if version >= _KINDS_SINCE else _LOWER[row.allow_downgrade]
        )
    except ValueError:
        return None
    return FeatureUpdate(feature=row.feature, level=row.max_version_level, kind=kind)


def _answer(version: int, outcome: UpdateOutcome) -> Any:
    response = admin.UpdateFeaturesResponse
    whole = outcome.error if version >= _NO_RESULTS_SINCE else outcome.request_error
    failed = next((row for row in outcome.results if not row.ok), None)
    why = outcome.why or (failed.why if failed is not None and whole.code else "")
    return response(
        error_code=whole.code,
        error_message=why or None,
        results=[
            response.UpdatableFeatureResult(
                feature=row.feature,
                error_code=row.error.code,
                error_message=None if row.ok else row.why,
            )
            for row in outcome.results
            if version < _NO_RESULTS_SINCE
        ],
    )


FEATURE_HANDLERS: dict[str, Handler] = {
    "ApiVersions": api_versions,
    "UpdateFeatures": update_features,
}
