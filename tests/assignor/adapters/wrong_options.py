"""Options that a consumer of either client refuses, and what it says."""

import math
import re
from types import SimpleNamespace

from tests.assignor.rebalance.groups import TOPOLOGY

WRONG_SERVERS = [
    ("", "''"),
    ("::", "'::'"),
    ("localhost:99999", "'localhost:99999'"),
    (["a:1", "b:x"], "'b:x'"),
    ([], "[]"),
    (None, "None"),
    (5, "5"),
    ([5], "[5]"),
]
WRONG_OPTIONS = [
    ({"num_standby_replica": 1}, "did you mean num_standby_replicas"),
    ({"auto_offset_rest": "latest"}, "did you mean auto_offset_reset"),
    ({"application_id": "app"}, "it is the group_id"),
    ({"rebalance_protocol": "coperative"}, "'eager', 'cooperative'"),
    ({"auto_offset_reset": "earlyest"}, "give 'earliest', the nearest of 'earliest', 'latest'"),
    ({"security_protocol": "sasl_ssl "}, "give 'SASL_SSL', the nearest of 'PLAINTEXT', 'SSL'"),
    (
        {"session_timeout_ms": "6000"},
        "session_timeout_ms='6000' is refused; give a whole",
    ),
    (
        {"session_timeout_ms": math.nan},
        "session_timeout_ms=nan is refused; give a whole",
    ),
    ({"session_timeout_ms": 1.5}, "give a whole number, 1 to 2147483647"),
    ({"session_timeout_ms": 2**31}, "give a whole number, 1 to 2147483647"),
    ({"session_timeout_ms": True}, "session_timeout_ms=True is refused"),
    ({"max_poll_interval_ms": 0}, "max_poll_interval_ms=0 is refused; give a whole number, 1"),
    ({"max_poll_interval_ms": math.nan}, "max_poll_interval_ms=nan is refused"),
    ({"max_poll_records": 0}, "max_poll_records=0 is refused; give a whole number, 1"),
    ({"max_poll_records": -1}, "max_poll_records=-1 is refused"),
    ({"value_deserializer": 5}, "value_deserializer=5 is refused; give a function"),
    ({"key_deserializer": "utf-8"}, "key_deserializer='utf-8' is refused; give a function"),
    (
        {"value_deserializer": SimpleNamespace(deserialize=len)},
        "is refused; give a function or None",
    ),
    ({"ssl_context": 5}, "ssl_context=5 is refused; give an instance of SSLContext or None"),
    ({"release": 5}, "release=5 is refused; give a text, such as 'native'"),
    ({"state_dir": "a\0b"}, "is refused; give a path that is not empty, or None"),
    *(
        ({"bootstrap_servers": servers}, f"bootstrap_servers={re.escape(shown)} is refused")
        for servers, shown in WRONG_SERVERS
    ),
    ({"group_instance_id": 7}, "group_instance_id=7 is refused; give a text or None"),
    ({"enable_auto_commit": "false"}, "give True or False"),
    ({"topologies": [TOPOLOGY]}, "topology and topologies are both given"),
]
