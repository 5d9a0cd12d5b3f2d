"""Settings of an `AIOKafkaConsumer`, as type checkers see them."""

from collections.abc import Callable
from ssl import SSLContext
from typing import Any

from assignor.adapters.consumer_options import SharedSettings
from assignor.adapters.membership import FromOne, FromZero


class ConsumerSettings(SharedSettings, total=False):
    """Settings that `streams_consumer` passes on; meanings and defaults are those of aiokafka.

    `streams_consumer` has parameters of its own for servers, group and assignors. A test compares
    the names with the signature of the locked release. A later aiokafka may have more: they are
    accepted, and type checkers do not know them.
    """

    key_deserializer: Callable[[Any], Any] | None
    value_deserializer: Callable[[Any], Any] | None
    rebalance_timeout_ms: FromOne | None
    consumer_timeout_ms: FromZero
    max_poll_records: FromOne | None
    ssl_context: SSLContext | None
    exclude_internal_topics: bool
    sasl_mechanism: str
    sasl_kerberos_service_name: str
    sasl_kerberos_domain_name: str | None
    sasl_oauth_token_provider: Any
    client_rack: str | None
