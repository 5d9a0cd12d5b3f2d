"""Error responses for every API: an error code and nothing else. Injected faults send them.

They follow from Kafka's schemas. If a response has no error field for the whole request, each of
its rows gets the code, one for each row of the request. Metadata has such a field from v13 on
(KIP-1102); lower versions are answered without the error.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from system_tests.broker.wire import APIS, api_versions_response

_ERROR: Final = "error_code"
_RESPONSES: Final = {api.name: api.response for api in APIS}
_TOP_LEVEL_METADATA_SINCE: Final = 13
_ABSENT: Final = {
    "int8": -1,
    "int16": -1,
    "int32": -1,
    "int64": -1,
    "string": "",
    "bytes": b"",
    "records": b"",
}
_NAMES: Final = frozenset({"string", "uuid"})
_ZERO: Final = frozenset({"throttle_time_ms", "topic_config_error_code"})


def refuse(api: str, version: int, request: Any, error: int) -> Any | None:
    """The response with that error; None if this version has no field for it.

    Raises:
        KeyError: the API is not served.
    """
    response = _RESPONSES[api]
    if api == "ApiVersions":
        return api_versions_response(error)
    if api == "Metadata" and version < _TOP_LEVEL_METADATA_SINCE:
        return None
    values = _values(response._struct.fields, version, request, error)  # noqa: SLF001 its schema
    if getattr(request, "member_id", None) and "member_id" in values:
        values["member_id"] = request.member_id
    return response(**values)


def _values(
    fields: Mapping[str, Any], version: int, source: Any, error: int, *, is_row: bool = False
) -> dict[str, Any]:
    """Return the values of a response or of one of its rows; a row names that of the request."""
    values: dict[str, Any] = {}
    known = {name: field for name, field in fields.items() if field.for_version_q(version)}
    own = [_own_name(source, version)] if is_row else []
    for name, field in known.items():
        is_nullable = field.nullable_for_version_q(version)
        has_default = "default" in field._json  # noqa: SLF001 its schema
        if name == _ERROR:
            values[name] = error
        elif is_row and field.type_str in _NAMES and hasattr(source, name):
            values[name] = getattr(source, name)
            own.clear()
        elif field.is_struct_array() and not is_nullable:
            rows = () if _ERROR in known else _rows_of(source, version)
            values[name] = [
                field.data_class(**_values(field.fields, version, row, error, is_row=True))
                for row in rows
            ]
        elif is_nullable and field.type_str != "records":
            values[name] = None
        elif own:
            values[name] = own.pop()
        elif field.type_str in _ABSENT and name not in _ZERO and not has_default:
            values[name] = _ABSENT[field.type_str]
    return values


def _fields_of(source: Any, version: int) -> Iterator[tuple[Any, Any]]:
    for name, field in source._struct.fields.items():  # noqa: SLF001 its schema
        if field.for_version_q(version):
            yield field, getattr(source, name)


def _rows_of(source: Any, version: int) -> Iterable[Any]:
    """Return the first array of a request, or of one of its rows."""
    found = (value for field, value in _fields_of(source, version) if field.is_array())
    return next(found, None) or ()


def _own_name(source: Any, version: int) -> Any:
    """Return what names a row of a request: its first value, or the row itself."""
    if not hasattr(source, "_struct"):
        return source
    return next(value for _, value in _fields_of(source, version))
