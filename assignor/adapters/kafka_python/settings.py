"""Settings of kafka-python's clients, as type checkers see them."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from kafka.serializer import Deserializer

from assignor.adapters.client_settings import CommonSettings
from assignor.adapters.consumer_options import ProducerSettings


class ConsumerSettings(CommonSettings, total=False):
    """Settings that `streams_consumer` passes on; meanings and defaults are those of kafka-python.

    `streams_consumer` has parameters of its own for servers, group and assignors. A test compares
    the names with `KafkaConsumer.DEFAULT_CONFIG` of the locked release. A later kafka-python may
    have more: they are accepted, and type checkers do not know them.
    """

    client_rack: str
    key_deserializer: Callable[[Any], Any] | Deserializer | None
    value_deserializer: Callable[[Any], Any] | Deserializer | None
    enable_incremental_fetch_sessions: bool
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    max_in_flight_requests_per_connection: int
    default_offset_commit_callback: Callable[..., object]
    allow_auto_create_topics: bool
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
    max_poll_records: int
    receive_buffer_bytes: int | None
    send_buffer_bytes: int | None
    receive_message_max_bytes: int
    socket_options: Sequence[tuple[int, int, int]]
    consumer_timeout_ms: float
    ssl_check_hostname: bool
    ssl_cafile: str | None
    ssl_certfile: str | None
    ssl_keyfile: str | None
    ssl_crlfile: str | None
    ssl_password: str | None
    ssl_ciphers: str | None
    api_version: tuple[int, ...] | None
    bootstrap_timeout_ms: int
    metric_reporters: Sequence[Any]
    metrics_enabled: bool
    metrics_num_samples: int
    metrics_sample_window_ms: int
    metric_group_prefix: str
    selector: Callable[[], Any]
    sasl_mechanism: str | None
    sasl_kerberos_name: Any
    proxy_url: str | None
    socks5_proxy: str | None
    kafka_client: Callable[..., Any]


class ChangelogSettings(ConsumerSettings, ProducerSettings, total=False):
    """Settings of `KafkaChangelogs`: servers, those of a consumer, and those of a producer."""

    bootstrap_servers: str | Sequence[str]
    group_id: str | None
    metadata_recovery_strategy: str
    metadata_recovery_rebootstrap_trigger_ms: int
