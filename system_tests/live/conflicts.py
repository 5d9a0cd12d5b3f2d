"""Options of ``rolling-bounce live`` that exclude each other: a table, the first row wins."""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from probing import find_release

_Given = Mapping[str, Any]
_CONFLICTS: tuple[tuple[Callable[[_Given], bool], str], ...] = (
    (
        lambda given: given["client"] == "aiokafka" and given["protocol"] != "eager",
        "aiokafka moves partitions eagerly; leave --protocol out, or take --client mixed",
    ),
    (
        lambda given: given["offline"] and given["kill"] is not None,
        "--kill needs a rolling bounce; leave --offline out",
    ),
    (
        lambda given: given["offline"] and given["garbage"],
        "--garbage needs a rolling bounce; leave --offline out",
    ),
    (
        lambda given: given["offline"] and given["no_pin"],
        "--offline never pins; leave --no-pin out",
    ),
    (
        lambda given: (
            given["garbage"] and not given["force"] and not find_release(given["new"]).is_native
        ),
        "--garbage needs --to native: Kafka's leaders die of what they cannot read; or --force",
    ),
    (
        lambda given: given["hold_back"] and not find_release(given["new"]).is_native,
        "--hold-back needs --to native: JVM releases know no levels",
    ),
    (
        lambda given: given["take_back"] and not given["hold_back"],
        "--take-back comes after a level was lowered; add --hold-back",
    ),
    (
        lambda given: given["bootstrap_server"] is not None and given["port"] != 0,
        "--port is that of a broker to start; leave it or --bootstrap-server out",
    ),
    (
        lambda given: given["bootstrap_server"] is not None and given["broker"] is not None,
        "--broker starts one and --bootstrap-server names one; leave one of them out",
    ),
    (
        lambda given: (
            given["replace_brokers"]
            and (given["bootstrap_server"] is not None or given["broker"] is not None)
        ),
        "--replace-brokers needs the embedded brokers; leave --bootstrap-server and --broker out",
    ),
    (
        lambda given: given["offline"] and given["replace_brokers"],
        "--replace-brokers needs a rolling bounce; leave --offline out",
    ),
    (
        lambda given: not isfinite(given["rate"]) or not isfinite(given["timeout"]),
        "--rate and --timeout must be numbers; give finite ones",
    ),
    (
        lambda given: 3 * given["heartbeat_ms"] > given["session_timeout_ms"],
        "--session-timeout-ms must be at least three times --heartbeat-ms; raise it",
    ),
)


def conflict_of(given: Mapping[str, Any]) -> str | None:
    """Say which options exclude each other and what to leave out; None where all go together.

    Args:
        given: the options of the command, by the names of its parameters.
    """
    return next((sentence for conflicts, sentence in _CONFLICTS if conflicts(given)), None)
