"""Feature levels of a Kafka cluster, asked and updated through kafka-python (KIP-584, KIP-778).

The client's own methods lose the error code of a refusal and name no node, so the requests are sent
as they are. What a broker answers becomes values of `probing.features`.
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

_Told = TypeVar("_Told")
_METADATA_TOPIC: Final = "__cluster_metadata"
_FEATURES_SINCE: Final = 3
_DRY_RUN_SINCE: Final = 1
_NO_DRY_RUN: Final = (
    "the brokers know no dry run (UpdateFeatures version 0; Kafka 3.3 brought it), so nothing was"
    " sent; compare the level with `assignor features describe`"
)
_SOFTWARE: Final = "streams-rebalance"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFeatures:
    """What one node tells.

    Attributes:
        node: who, for people: `broker 1 at 127.0.0.1:9092`.
        supported: range by feature, of that node.
        finalized: levels of the cluster as that node knows them, with their epoch; none without an
            epoch of 0 or more (KIP-778).
    """

    node: str
    supported: Mapping[str, LevelRange]
    finalized: FinalizedLevels


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAnswer:
    """What the controller answers about one feature.

    Attributes:
        error: Kafka's name of the error, "" if it was, or would be, done.
        why: the controller's own sentence.
    """

    feature: str
    error: str = ""
    why: str = ""


def read_features(
    admin: Admin, *, broker: int | None = None, from_controller: bool = False
) -> ToldFeatures:
    """Ask a node for what it supports and what is finalized.

    Args:
        admin: the cluster.
        broker: node id of the broker to ask; None for any.
        from_controller: ask the active controller, not a broker.

    Raises:
        BrokerError, NotAuthorized: see `Admin.ask`; or the node is older than Kafka 2.7, or the
            cluster has no such broker now.
    """

    async def ask(client: KafkaAdminClient) -> ToldFeatures:
        manager = client._manager  # noqa: SLF001 the client's own methods have no deadline
        if from_controller:
            node_id = await _controller(client)
        else:
            node_id = manager.least_loaded_node() if broker is None else await _live(client, broker)
        if node_id is None:
            raise NodeNotReadyError("no node is connected")
        return await _ask_node(client, node_id)

    return _asked(admin, ask)


def read_all_features(admin: Admin) -> tuple[ToldFeatures, ...]:
    """Ask every live broker for what it supports and what is finalized, by node id.

    Raises:
        BrokerError, NotAuthorized: as of `read_features`; one broker does not answer in time.
    """

    async def ask(client: KafkaAdminClient) -> tuple[ToldFeatures, ...]:
        manager = client._manager  # noqa: SLF001 the client's own methods have no deadline
        response = await manager.send(MetadataRequest(topics=[]))
        nodes = sorted(broker.node_id for broker in response.brokers)
        return tuple([await _ask_node(client, node) for node in nodes])

    return _asked(admin, ask)


async def _ask_node(client: KafkaAdminClient, node_id: Any) -> ToldFeatures:
    """Ask one node."""
    manager = client._manager  # noqa: SLF001 the client's own methods have no deadline
    request = ApiVersionsRequest(
        client_software_name=_SOFTWARE, client_software_version="0", min_version=_FEATURES_SINCE
    )
    try:
        response = await manager.send(request, node_id=node_id)
    except IllegalSaslStateError as error:
        where = _spelled(manager.cluster.broker_metadata(node_id))
        raise BrokerError(f"{where} is not secured as the brokers are; ask a broker") from error
    if response.error_code:
        raise for_code(response.error_code)
    return _told(_spelled(manager.cluster.broker_metadata(node_id)), response)


def _asked(admin: Admin, ask: Ask[_Told]) -> _Told:
    """Ask, and say what an answer without levels means."""
    try:
        return admin.ask("tell its feature levels", ask)
    except BrokerError as error:
        if isinstance(error.__cause__, IncompatibleBrokerVersion):
            raise BrokerError("this broker has no feature levels; they came with 2.7") from error
        raise


def update_features(
    admin: Admin, updates: Sequence[FeatureUpdate], *, dry_run: bool
) -> tuple[UpdateAnswer, ...]:
    """Ask the controller to change levels: all of them or none (since Kafka 3.3).

    Args:
        admin: the cluster.
        updates: one a feature.
        dry_run: let it say what would come of it, and do nothing.

    Returns:
        One answer a feature, in the order of the updates. A dry run on brokers whose UpdateFeatures
        knows none (version 0, before Kafka 3.3) is refused for each, and no update is sent.

    Raises:
        NotAuthorized: the user may not alter the cluster.
        BrokerError: see `Admin.ask`.
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
            request, get_errors_fn=lambda told: [for_code(told.error_code)], raise_errors=False
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
    """One answer a feature; an error of the whole request is everybody's.

    Raises:
        KafkaError: the answer is not about features: rights, a controller that moved.
    """
    whole = for_code(response.error_code)
    code = response.error_code
    if code and not _is_about_features(code):
        raise whole(response.error_message or whole.description)
    told = {row.feature: row for row in response.results or []}
    answers = []
    for update in updates:
        row = told.get(update.feature)
        found = code or (row.error_code if row is not None else 0)
        if found and not _is_about_features(found):
            raise for_code(found)(row.error_message if row is not None else "")
        said = response.error_message if code else row.error_message if row is not None else ""
        name = for_code(found).message if found else ""
        answers.append(UpdateAnswer(feature=update.feature, error=name, why=(said or "").strip()))
    return tuple(answers)


def _is_about_features(code: int) -> bool:
    """INVALID_REQUEST, INVALID_UPDATE_VERSION, FEATURE_UPDATE_FAILED, UNSUPPORTED_VERSION."""
    return code in (35, 42, 95, 96)


async def _live(client: KafkaAdminClient, broker: int) -> int:
    """The node id, if the cluster has this broker now.

    Raises:
        BrokerError: it has not; the sentence names those that it has.
    """
    told = await client._get_cluster_metadata([])  # noqa: SLF001 as above
    found = sorted(one["node_id"] for one in told["brokers"])
    if broker not in found:
        raise BrokerError(
            f"the cluster has no broker {broker} now; it has {', '.join(map(str, found))}"
        )
    return broker


async def _controller(client: KafkaAdminClient) -> Any:
    """The node id of the active controller, made known to the client; KRaft brokers do not name it.

    Where there is no quorum (KIP-595) the controller is the broker that metadata names.
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
            manager.cluster._coordinator_brokers[name] = MetadataResponse.MetadataResponseBroker(  # noqa: SLF001 connects to whoever is in here
                node_id=name, host=where.host, port=where.port, rack=None
            )
            return name
    raise KafkaError(f"the quorum names no address of its leader {leader}")


def _spelled(node: Any) -> str:
    name = node.node_id if isinstance(node.node_id, str) else f"broker {node.node_id}"
    if name.startswith("bootstrap"):
        name = "a broker"
    return f"{name} at {node.host}:{node.port}"


def _told(node: str, response: Any) -> ToldFeatures:
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
    return ToldFeatures(
        node=node,
        supported={name: found for name, found in sorted(ranges.items()) if found is not None},
        finalized=finalized,
    )
