"""Queries that wait, and functions that do not return: what they hold up, and what they do not."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest

from assignor.embedding.serving import Health, ProbeServer
from tests.assignor.embedding.clusters import until
from tests.assignor.embedding.serving.members import HERE, LIMIT_S, WRONG, Peer

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
        far = [clients.submit(group.get, "full", "/far")]
        until(peer.is_asked.is_set)
        far += [clients.submit(group.get, "full", "/far") for _ in range(4)]  # 3 wait
        try:
            until(lambda: any(each.done() for each in far))
            [refused] = [each.result()[1] for each in far if each.done()]
            assert refused.startswith(b"too many queries wait")
            assert group.get("full", "/near") == (200, b"full: near")
        finally:
            peer.close()
    assert [each.result()[0] for each in far] == [503] * 5


def test_only_what_members_pass_on_has_threads_for_that(group):
    """Queries of clients that have the header with another value wait with all others."""
    group.start("marked", group.reserved_port(), threads=1)
    peer = Peer(group, b"HTTP/1.1 200 OK\r\nX: drip")
    group.owner_of, group.holders = {b"far": "peer", b"near": "marked"}.get, {"marked"}
    with ThreadPoolExecutor(CLIENTS) as clients:
        far = clients.submit(group.get, "marked", "/far", **{"Streams-Query": "x"})
        until(peer.is_asked.is_set)
        try:
            near = clients.submit(group.get, "marked", "/near", **HERE)
            assert near.result(LIMIT_S) == (200, b"marked: near")
            assert not far.done()
        finally:
            peer.close()


def test_metrics_that_hang_hold_up_no_probe(group):
    """A collector of the registry may wait for something."""
    port, hang, asked = group.reserved_port(), threading.Event(), threading.Semaphore(0)

    def metrics():
        asked.release()
        hang.wait(LIMIT_S)
        return "text/plain", b""

    health = partial(Health, has_joined=True)
    with ProbeServer(f"127.0.0.1:{port}", health, metrics), ThreadPoolExecutor(CLIENTS) as clients:
        hanging = [clients.submit(head, port, b"/metrics") for _ in range(CLIENTS)]
        asked.acquire()
        asked.acquire()
        try:
            assert head(port, b"/live") == (b"HTTP/1.1 200 OK", b"")
            assert not any(each.done() for each in hanging)
        finally:
            hang.set()


def test_a_forked_process_leaves_the_servers_to_its_parent(group):
    port = group.reserved_port()
    with ProbeServer(f"127.0.0.1:{port}", lambda: Health(has_joined=True)) as server:
        child = get_context("fork").Process(target=server.close, daemon=True)
        with server._server._dispatchers[0].lock:  # of a thread, which the child does not have
            child.start()
        child.join(LIMIT_S)
        assert child.exitcode == 0
        assert head(port, b"/ready") == (b"HTTP/1.1 200 OK", b"")


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
