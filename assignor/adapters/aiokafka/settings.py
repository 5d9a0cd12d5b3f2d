"""Settings of an `AIOKafkaConsumer`, as type checkers see them."""

from collections.abc import Callable
from ssl import SSLContext
from typing import Any, Literal, TypedDict


class ConsumerSettings(TypedDict, total=False):
    """Settings that `streams_consumer` passes on; meanings and defaults are those of aiokafka.

    `streams_consumer` has parameters of its own for servers, group and assignors. A test compares
    the names with the signature of the locked release. A later aiokafka may have more: they are
    accepted, and type checkers do not know them.
    """

    client_id: str
    group_instance_id: str | None
    key_deserializer: Callable[[Any], Any] | None
    value_deserializer: Callable[[Any], Any] | None
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    fetch_min_bytes: int
    max_partition_fetch_bytes: int
    request_timeout_ms: int
    retry_backoff_ms: int
    auto_offset_reset: Literal["earliest", "latest", "none"]
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    check_crcs: bool
    metadata_max_age_ms: int
    max_poll_interval_ms: int
    rebalance_timeout_ms: int | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    consumer_timeout_ms: int
    max_poll_records: int | None
    ssl_context: SSLContext | None
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    exclude_internal_topics: bool
    connections_max_idle_ms: int
    isolation_level: Literal["read_uncommitted", "read_committed"]
    sasl_mechanism: str
    sasl_plain_password: str | None
    sasl_plain_username: str | None
    sasl_kerberos_service_name: str
    sasl_kerberos_domain_name: str | None
    sasl_oauth_token_provider: Any
    client_rack: str | None
