"""Metadata version 13, as the supervisor of an aiokafka client asks for it."""

from assignor.adapters.rebootstrap.metadata_request import DemandRequest, DemandResponse


def test_the_request_is_version_13_and_asks_for_nothing():
    assert DemandRequest.is_served({3: (0, 13)})
    assert not DemandRequest.is_served({3: (0, 12)})
    assert not DemandRequest.is_served({})
    request = DemandRequest.prepare({})
    assert request.build_request_header(7, "c").encode() + request.encode() == bytes.fromhex(
        "0003000d00000007000163" + "00" + "01" + "00" + "00" + "00"
    )


def test_the_answer_is_read_whole():
    values = (0, [(1, "h", 9, None, {})], "id", 1, [(0, "t", (1, 2), False, [], 5, {})], 129, {})
    assert DemandResponse.decode(DemandResponse(*values).encode()).error_code == 129
