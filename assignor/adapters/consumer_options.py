"""Keywords of a consumer: options of the member, settings of the client, and both checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypedDict

from assignor.adapters.client_settings import split_keywords
from assignor.adapters.membership import MemberKeywords
from assignor.adapters.servers import check_servers

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class ProducerSettings(TypedDict, total=False):
    """Settings of the `KafkaProducer` of changelogs and outputs, beside those of a consumer."""

    batch_size: int
    compression_type: str | None
    delivery_timeout_ms: float
    linger_ms: float
    max_block_ms: float
    max_request_size: int
    retries: float
    transaction_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Settings that the consumer of a client library has.

    Attributes:
        defaults: name -> default of the client.
        fixed: name that cannot be given -> why, or what to give.
        has_scheme: servers may have a scheme, such as `PLAINTEXT://`.
        deserializers: classes whose instances it takes for a deserializer, beside functions.
    """

    defaults: Mapping[str, object]
    fixed: Mapping[str, str]
    has_scheme: bool
    deserializers: tuple[type, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    """What the keywords of `streams_consumer` and `StreamsApplication` say.

    Attributes:
        member: options of the assignor.
        client: settings of the consumer, as given, with group and servers.
        producer: settings that only a producer has.
    """

    member: MemberKeywords
    client: Mapping[str, Any]
    producer: Mapping[str, Any] = field(default_factory=dict)


def consumer_options(
    keywords: Mapping[str, Any],
    settings: ClientSettings,
    *,
    group_id: str,
    bootstrap_servers: str | Sequence[str],
    fixed: Mapping[str, str] = _NONE,
    producer: Iterable[str] = (),
) -> ConsumerOptions:
    """Return the checked keywords, as those of the assignor and those of the client.

    Args:
        keywords: as a user gave them.
        settings: of the client.
        group_id: of the consumer.
        bootstrap_servers: `host:port`, or several.
        fixed: further names that cannot be given -> why.
        producer: names of further settings, of a producer.

    Raises:
        TypeError: there is no group id.
        ConfigError: a name is unknown, or a value is wrong, `bootstrap_servers` included.
    """
    if group_id is None:
        raise TypeError("group_id=None: a consumer without a group gets no tasks; give a group_id")
    member, given = split_keywords(
        keywords,
        client={**dict.fromkeys(producer), **settings.defaults},
        fixed={"application_id": "it is the group_id", **settings.fixed, **fixed},
        instances=settings.deserializers,
    )
    check_servers(bootstrap_servers, has_scheme=settings.has_scheme)
    if rack := given.get("client_rack"):
        member.setdefault("rack", rack)
    servers = {"group_id": group_id, "bootstrap_servers": bootstrap_servers}
    client = {name: value for name, value in given.items() if name in settings.defaults}
    more = {name: value for name, value in given.items() if name not in settings.defaults}
    return ConsumerOptions(member=member, client=client | servers, producer=more)
