"""Reading and updating feature levels of a Kafka cluster with kafka-python (KIP-584, KIP-778).

kafka-python's own methods lose error codes and cannot address a node, so this module sends the
protocol requests itself. Responses become values of `probing.features`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kafka.admin import KafkaAdminClient
from kafka.errors import (
    IllegalSaslStateError,
    IncompatibleBrokerVersion,
    KafkaError,
    NodeNotReadyError,
    for_code,
)
from kafka.protocol.admin import DescribeQuorumRequest, UpdateFeaturesRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse

from assignor.adapters.admin.client import Admin, Ask, BrokerError
from probing.features import (
    FIRST_EPOCH,
    UNKNOWN_LEVELS,
    FeatureUpdate,
    FinalizedLevels,
    LevelRange,
    UpdateKind,
    advertised_range,
)

_Answer = TypeVar("_Answer")
_METADATA_TOPIC: Final = "__cluster_metadata"
_FEATURES_SINCE: Final = 3
_DRY_RUN_SINCE: Final = 1
_NO_DRY_RUN: Final = (
    "the brokers do not support a dry run (UpdateFeatures version 1, since Kafka 3.3), so nothing"
    " was sent; compare the level with `assignor features describe`"
)
_SOFTWARE: Final = "streams-rebalance"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFeatures:
    """The feature levels that one node reports.

    Attributes:
        node: the node, for messages: `broker 1 at 127.0.0.1:9092`.
        supported: feature -> range that the node supports.
        finalized: finalized levels of the cluster and their epoch, as known to the node; unknown
            if the epoch is below 0 (KIP-778).
    """

    node: str
    supported: Mapping[str, LevelRange]
    finalized: FinalizedLevels


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAnswer:
    """The controller's answer for one feature.

    Attributes:
        feature: name of the feature.
        error: Kafka's name of the error; "" if the update succeeded, or in a dry run would.
        why: the controller's error message.
    """

    feature: str
    error: str = ""
    why: str = ""


def read_features(
    admin: Admin, *, broker: int | None = None, from_controller: bool = False
) -> NodeFeatures:
    """Return the supported and finalized levels that one node reports.

    Args:
        admin: the connected admin client.
        broker: node id of the broker to ask; None: any broker.
        from_controller: ask the active controller instead of a broker.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`; also if the node is older than Kafka 2.7, or
            the cluster has no such broker now.
    """

    async def ask(client: KafkaAdminClient) -> NodeFeatures:
        manager = client._manager  # noqa: SLF001 the client's own methods have no deadline
        if from_controller:
            node_id = await _controller(client)
        else:
            node_id = manager.least_loaded_node() if broker is None else await _live(client, broker)
        if node_id is None:
            raise NodeNotReadyError("no node is connected")
        return await _ask_node(client, node_id)

    return _run_request(admin, ask)


def read_all_features(admin: Admin) -> tuple[NodeFeatures, ...]:
    """Return the levels that every live broker reports, sorted by node id.

    Raises:
        BrokerError, NotAuthorized: as in `read_features`; also if one broker does not answer.
    """

    async def ask(client: KafkaAdminClient) -> tuple[NodeFeatures, ...]:
        manager = client._manager  # noqa: SLF001 the client's own methods have no deadline
        response = await manager.send(MetadataRequest(topics=[], max_version=9))
        nodes = sorted(broker.node_id for broker in response.brokers)
        return tuple([await _ask_node(client, node) for node in nodes])

    return _run_request(admin, ask)


async def _ask_node(client: KafkaAdminClient, node_id: Any) -> NodeFeatures:
    """Return the levels that one node reports."""
    manager = client._manager  # noqa: SLF001 the client's own methods have no deadline
    request = ApiVersionsRequest(
        client_software_name=_SOFTWARE, client_software_version="0", min_version=_FEATURES_SINCE
    )
    try:
        response = await manager.send(request, node_id=node_id)
    except IllegalSaslStateError as error:
        where = _spelled(manager.cluster.broker_metadata(node_id))
        raise BrokerError(
            f"{where} has other security settings than the brokers; ask a broker"
        ) from error
    if response.error_code:
        raise for_code(response.error_code)
    return _node_features(_spelled(manager.cluster.broker_metadata(node_id)), response)


def _run_request(admin: Admin, ask: Ask[_Answer]) -> _Answer:
    """Run a request for feature levels; raise a specific error for brokers without levels."""
    try:
        return admin.ask("report its feature levels", ask)
    except BrokerError as error:
        if isinstance(error.__cause__, IncompatibleBrokerVersion):
            raise BrokerError(
                "the broker has no feature levels; they need Kafka 2.7 or newer"
            ) from error
        raise


def update_features(
    admin: Admin, updates: Sequence[FeatureUpdate], *, dry_run: bool
) -> tuple[UpdateAnswer, ...]:
    """Send updates to the controller, which applies all or none (since Kafka 3.3).

    Args:
        admin: the connected admin client.
        updates: one update per feature.
        dry_run: the controller only validates the updates.

    Returns:
        One answer per update, in the same order. A dry run with brokers before Kafka 3.3, which do
        not support it, is an error for each update, and nothing is sent.

    Raises:
        NotAuthorized: the user may not alter the cluster.
        BrokerError: as in `Admin.ask`.
    """

    async def ask(client: KafkaAdminClient) -> tuple[UpdateAnswer, ...]:
        row = UpdateFeaturesRequest.FeatureUpdateKey
        request = UpdateFeaturesRequest(
            timeout_ms=admin.target.timeout_ms,
            feature_updates=[
                row(
                    feature=update.feature,
                    max_version_level=update.level,
                    allow_downgrade=update.kind is not UpdateKind.UPGRADE,
                    upgrade_type=update.kind.value,
                )
                for update in updates
            ],
            validate_only=dry_run,
            min_version=_DRY_RUN_SINCE if dry_run else 0,
        )
        response = await client._send_request_to_controller(  # noqa: SLF001 no public way to the errors
            request, get_errors_fn=lambda answer: [for_code(answer.error_code)], raise_errors=False
        )
        return _answers(updates, response)

    try:
        return admin.ask("alter the cluster's feature levels", ask)
    except BrokerError as error:
        if dry_run and isinstance(error.__cause__, IncompatibleBrokerVersion):
            return tuple(
                UpdateAnswer(feature=update.feature, error="UNSUPPORTED_VERSION", why=_NO_DRY_RUN)
                for update in updates
            )
        raise


def _answers(updates: Sequence[FeatureUpdate], response: Any) -> tuple[UpdateAnswer, ...]:
    """Return one answer per update; an error of the whole request applies to each update.

    Raises:
        KafkaError: the error is not about features: authorization, or a controller that moved.
    """
    whole = for_code(response.error_code)
    code = response.error_code
    if code and not _is_about_features(code):
        raise whole(response.error_message or whole.description)
    row_by_feature = {row.feature: row for row in response.results or []}
    answers = []
    for update in updates:
        row = row_by_feature.get(update.feature)
        found = code or (row.error_code if row is not None else 0)
        if found and not _is_about_features(found):
            raise for_code(found)(row.error_message if row is not None else "")
        message = response.error_message if code else row.error_message if row is not None else ""
        name = for_code(found).message if found else ""
        answers.append(
            UpdateAnswer(feature=update.feature, error=name, why=(message or "").strip())
        )
    return tuple(answers)


def _is_about_features(code: int) -> bool:
    """Return whether the controller rejected an update, so that the error is its answer."""
    # UNSUPPORTED_VERSION, INVALID_REQUEST, INVALID_UPDATE_VERSION, FEATURE_UPDATE_FAILED
    return code in (35, 42, 95, 96)


async def _live(client: KafkaAdminClient, broker: int) -> int:
    """Return the node id if the cluster has this broker now.

    Raises:
        BrokerError: it does not; the message lists the brokers.
    """
    metadata = await client._get_cluster_metadata([])  # noqa: SLF001 as above
    found = sorted(node["node_id"] for node in metadata["brokers"])
    if broker not in found:
        raise BrokerError(
            f"the cluster has no broker {broker} now; it has {', '.join(map(str, found))}"
        )
    return broker


async def _controller(client: KafkaAdminClient) -> Any:
    """Return the active controller's node id, after adding its address to the client's metadata.

    KRaft brokers do not report the controller's address. Without a quorum (KIP-595) the controller
    is the broker that the metadata names.
    """
    manager = client._manager  # noqa: SLF001 as above
    topic = DescribeQuorumRequest.TopicData
    request = DescribeQuorumRequest(
        topics=[
            topic(topic_name=_METADATA_TOPIC, partitions=[topic.PartitionData(partition_index=0)])
        ],
        min_version=2,
    )
    try:
        response = await manager.send(request)
    except IncompatibleBrokerVersion:
        return await client._refresh_controller_id()  # noqa: SLF001 as above
    if response.error_code:
        raise for_code(response.error_code)(response.error_message or "")
    leader = response.topics[0].partitions[0].leader_id
    for node in response.nodes:
        if node.node_id == leader and node.listeners:
            where = node.listeners[0]
            name = f"controller {leader}"
            manager.cluster._coordinator_brokers[name] = MetadataResponse.MetadataResponseBroker(  # noqa: SLF001 connects to the broker that is in here
                node_id=name, host=where.host, port=where.port, rack=None
            )
            return name
    raise KafkaError(f"the quorum reports no address of its leader {leader}")


def _spelled(node: Any) -> str:
    name = node.node_id if isinstance(node.node_id, str) else f"broker {node.node_id}"
    if name.startswith("bootstrap"):
        name = "a broker"
    return f"{name} at {node.host}:{node.port}"


def _node_features(node: str, response: Any) -> NodeFeatures:
    ranges = {
        row.name: advertised_range(row.min_version, row.max_version)
        for row in response.supported_features or []
    }
    epoch = response.finalized_features_epoch
    finalized = UNKNOWN_LEVELS
    if epoch is not None and epoch >= FIRST_EPOCH:
        levels = {
            row.name: row.max_version_level
            for row in response.finalized_features or []
            if row.max_version_level > 0
        }
        finalized = FinalizedLevels(levels=levels, epoch=epoch)
    return NodeFeatures(
        node=node,
        supported={name: found for name, found in sorted(ranges.items()) if found is not None},
        finalized=finalized,
    )
