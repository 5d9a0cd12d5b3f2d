"""Frames and headers: bytes to request objects and back.

The bodies are kafka-python's protocol classes, which encode and decode requests and responses. This
module reads and writes the frames.
"""

import asyncio
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kafka.protocol import admin, consumer, metadata, producer

_PREFIX = struct.Struct(">hhi")
_SIZE = struct.Struct(">i")
UNSUPPORTED_VERSION = 35


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """An API and its implemented versions, which are advertised."""

    name: str
    key: int
    min_version: int
    max_version: int
    request: Any
    response: Any


def _api(module: Any, name: str, min_version: int, max_version: int) -> Api:
    request = getattr(module, f"{name}Request")
    response = getattr(module, f"{name}Response")
    return Api(
        name=name,
        key=request.API_KEY,
        min_version=min_version,
        max_version=max_version,
        request=request,
        response=response,
    )


APIS = (
    _api(producer, "Produce", 3, 9),
    _api(consumer, "Fetch", 4, 12),
    _api(consumer, "ListOffsets", 1, 7),
    _api(metadata, "Metadata", 0, 13),
    _api(consumer, "OffsetCommit", 2, 9),
    _api(consumer, "OffsetFetch", 1, 8),
    _api(metadata, "FindCoordinator", 0, 4),
    _api(consumer, "JoinGroup", 0, 9),
    _api(consumer, "Heartbeat", 0, 4),
    _api(consumer, "LeaveGroup", 0, 5),
    _api(consumer, "SyncGroup", 0, 5),
    _api(admin, "DescribeGroups", 0, 5),
    _api(admin, "ListGroups", 0, 5),
    _api(metadata, "ApiVersions", 0, 4),
    _api(admin, "CreateTopics", 2, 7),
    _api(admin, "DeleteTopics", 1, 6),
    _api(producer, "InitProducerId", 0, 4),
    _api(consumer, "OffsetForLeaderEpoch", 2, 4),
    _api(admin, "DescribeConfigs", 1, 4),
    _api(admin, "CreatePartitions", 0, 3),
    _api(admin, "DeleteGroups", 0, 2),
    _api(consumer, "OffsetDelete", 0, 0),
    _api(admin, "DescribeCluster", 0, 1),
    _api(admin, "UpdateFeatures", 0, 2),
)
_ALL_VERSIONS: Mapping[str, int] = MappingProxyType({})
API_BY_KEY = {api.key: api for api in APIS}
API_VERSIONS = API_BY_KEY[18]


class FrameError(Exception):
    """The peer sent bytes that are not a request; its connection is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A request with its header. `body` is `None` for an unsupported version of ApiVersions."""

    api: Api
    version: int
    correlation_id: int
    client_id: str
    body: Any


async def read_frame(reader: asyncio.StreamReader, max_bytes: int) -> bytes | None:
    """Return the next frame, or `None` if the peer closed the connection between two frames.

    Raises:
        FrameError: the size is negative or too large, or the frame is incomplete.
    """
    try:
        (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise FrameError(f"{len(error.partial)} bytes where a frame size has 4") from error
        return None
    if not _PREFIX.size <= size <= max_bytes:
        raise FrameError(f"a frame of {size} bytes; from {_PREFIX.size} to {max_bytes} are read")
    try:
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError as error:
        raise FrameError(f"{len(error.partial)} of {size} bytes came") from error


def decode_request(frame: bytes, newest: Mapping[str, int] = _ALL_VERSIONS) -> Incoming:
    """Return the request of a frame.

    Args:
        frame: the bytes of the frame.
        newest: as in `api_versions_response`.

    Raises:
        FrameError: the API is unknown, the version unsupported, or the body invalid.
    """
    key, version, correlation_id = _PREFIX.unpack_from(frame)
    api = API_BY_KEY.get(key)
    if api is None:
        raise FrameError(f"API key {key} is not supported")
    most = newest.get(api.name, api.max_version)
    if not api.min_version <= version <= most:
        if api is API_VERSIONS:
            return Incoming(
                api=api, version=version, correlation_id=correlation_id, client_id="", body=None
            )
        raise FrameError(
            f"{api.name} v{version} is not supported, only v{api.min_version} to v{most}"
        )
    try:
        body = api.request.decode(frame, version=version, header=True)
    except Exception as error:
        # The decoder raises many types of exceptions for invalid bytes.
        raise FrameError(f"{api.name} v{version} does not decode: {error!r}") from error
    return Incoming(
        api=api,
        version=version,
        correlation_id=correlation_id,
        client_id=body.header.client_id or "",
        body=body,
    )


def encode_response(incoming: Incoming, response: Any) -> bytes:
    """Return the frame of a response."""
    version = 0 if incoming.body is None else incoming.version
    response.API_VERSION = version
    response.with_header(correlation_id=incoming.correlation_id)
    encoded: bytes = response.encode(header=True, framed=True)
    return encoded


def api_versions_response(error: int = 0, newest: Mapping[str, int] = _ALL_VERSIONS) -> Any:
    """Return the ApiVersions response.

    Args:
        error: error code of the response.
        newest: API name to its newest served version; default: all implemented versions.
    """
    rows = [
        API_VERSIONS.response.ApiVersion(
            api_key=api.key,
            min_version=api.min_version,
            max_version=newest.get(api.name, api.max_version),
        )
        for api in sorted(APIS, key=lambda api: api.key)
    ]
    return API_VERSIONS.response(error_code=error, api_keys=rows)
