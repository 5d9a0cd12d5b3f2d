"""Queries that wait, and functions that do not return: what they hold up, and what they do not."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from assignor.embedding.serving import Health, ProbeServer
from tests.assignor.embedding.clusters import until
from tests.assignor.embedding.serving.members import LIMIT_S, WRONG, Peer

CLIENTS = 8


def test_an_owner_that_hangs_holds_up_no_query_for_own_keys(group):
    """Each client waits for its answer, while more clients than threads wait for the owner."""
    group.start("one-thread", group.reserved_port(), threads=1)
    name = "one-thread"
    peers = [Peer(group, b"HTTP/1.1 200 OK\r\nX: drip")]
    # The host map of each key: `far` is at the peer, which never ends its answer.
    hosts = {b"far": "peer", b"near": name}
    group.owner_of, group.holders = hosts.get, {name}
    with ThreadPoolExecutor(CLIENTS) as clients:
        far = [clients.submit(group.get, name, "/far") for _ in range(CLIENTS - 1)]
        until(peers[0].is_asked.is_set)
        try:
            near = [clients.submit(group.get, name, "/near").result(LIMIT_S) for _ in range(20)]
            assert near == [(200, b"one-thread: near")] * 20
            assert not any(each.done() for each in far)
        finally:
            peers[0].close()
    assert {each.result()[0] for each in far} == {503}


def test_half_of_the_connections_are_left_for_own_keys(group):
    group.start("full", group.reserved_port(), threads=1, connections=6)
    peer = Peer(group, b"HTTP/1.1 200 OK\r\nX: drip")
    group.owner_of, group.holders = {b"far": "peer", b"near": "full"}.get, {"full"}
    with ThreadPoolExecutor(CLIENTS) as clients:
        far = [clients.submit(group.get, "full", "/far") for _ in range(5)]  # 1 asks, 3 wait
        try:
            until(lambda: any(each.done() for each in far))
            [refused] = [each.result()[1] for each in far if each.done()]
            assert refused.startswith(b"too many queries wait")
            assert group.get("full", "/near") == (200, b"full: near")
        finally:
            peer.close()
    assert [each.result()[0] for each in far] == [503] * 5


def test_a_task_that_has_just_left_is_asked_for_at_its_standby(group):
    group.owner, group.standbys, group.holders = "one", ("three",), {"three"}
    assert group.get("one") == (200, b"three: some/key")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_a_function_that_ends_its_thread_is_an_answer_all_the_same(group, error):
    def leave():
        raise error

    WRONG[b"leaves"] = leave
    group.owner, group.holders = "one", {"one"}
    try:
        assert [group.get(asked, "/leaves")[0] for asked in ("one", "two") * 5] == [500] * 10
        assert group.get("one")[0] == 200
    finally:
        del WRONG[b"leaves"]


def head(port, path):
    """Return the status line and what follows the headers."""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as taken:
        taken.sendall(b"HEAD %s HTTP/1.1\r\nConnection: close\r\n\r\n" % path)
        received = b""
        while piece := taken.recv(4096):
            received += piece
    headers, _, body = received.partition(b"\r\n\r\n")
    return headers.splitlines()[0], body


def test_the_answer_to_head_has_no_body(group):
    port = group.reserved_port()
    assert head(group.servers["one"].port, b"/k") == (b"HTTP/1.1 405 Method Not Allowed", b"")
    with ProbeServer(f"127.0.0.1:{port}", lambda: Health(has_joined=True)):
        assert head(port, b"/ready") == (b"HTTP/1.1 200 OK", b"")
