"""Queries over HTTP: answered here, at the owner, at a standby, or not at the moment."""

import socket
import struct
import threading
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import pytest

from assignor import ConfigError
from assignor.embedding.serving import QueryLimits, QueryServer
from assignor.errors import MissingSourceTopic
from tests.assignor.embedding.clusters import until
from tests.assignor.embedding.serving.members import COUNTS, HERE, LIMIT_S, WRONG, Peer


@pytest.mark.parametrize("asked", ["one", "two"])
def test_any_member_answers_with_the_state_of_the_owner(group, asked):
    group.owner, group.standbys, group.holders = "one", ("three",), {"one", "three"}
    assert group.get(asked) == (200, b"one: some/key")
    assert group.asked == ["one"]


@pytest.mark.parametrize("owner", ["two", "dead"])
def test_a_standby_answers_while_the_owner_cannot(group, owner):
    """The task has just left `two`; no process listens at the host of `dead`."""
    group.owner, group.standbys, group.holders = owner, ("three",), {"three"}
    assert group.get("one") == (200, b"three: some/key")


def test_without_a_host_map_a_member_answers_with_what_it_has(group):
    group.holders = {"one"}
    assert group.get("one") == (200, b"one: some/key")
    assert group.get("two")[0] == 503


def test_nobody_can_answer(group):
    group.owner, group.standbys = "two", ("three",)
    assert group.get("one") == (503, b"no member has this key at the moment; try again\n")
    group.error = MissingSourceTopic(["words"])
    assert group.get("one")[0] == 503


def test_a_query_is_passed_on_once(group):
    """Both believe that the other one has the key."""
    group.owner = "two"
    assert group.get("one", **HERE)[0] == 503
    group.holders = {"one"}
    assert group.get("one", **HERE) == (200, b"one: some/key")


@pytest.mark.parametrize("key", [key.decode() for key in WRONG])
def test_a_defect_of_the_application_is_an_error_of_all_members(group, caplog, key):
    """No standby is asked for an older value, also after an error of the operating system."""
    group.owner, group.holders, group.standbys = "one", {"one", "three"}, ("three",)
    for asked in ("one", "two"):
        assert group.get(asked, f"/{key}")[0] == 500
    assert group.asked == ["one", "one"]
    [failed, _again] = [each for each in caplog.records if f"request /{key} failed" in each.message]
    assert failed.exc_info is not None


def test_any_bytes_are_a_key_and_marks_of_urls_are_not(group):
    group.owner, group.holders = "one", {"one"}
    assert group.get("one", "//x%3F%2F%00%FF/here/") == (200, b"one: /x?/\x00\xff/here/")
    for path in ("/key?q=1", "/key#part", "key"):
        assert group.get("one", path)[0] == 400


MARK = b"Streams-Query: answer\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\n" + MARK + b"Content-Length: 1000\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\n" + MARK + b"\r\nwithout a length",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nSECRET",
        b"HTTP/1.1 200 OK\r\n" + MARK + b"Content-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 302 Found\r\n" + MARK + b"Location: /x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + MARK + b"Content-Length: 1000\r\n\r\ndrip",
        b"HTTP/1.1 200 OK\r\nX: drip",
        b"no HTTP at all\r\n\r\n",
        b"",
    ],
)
def test_an_answer_is_whole_and_of_a_member_or_the_standby_is_asked(group, answer):
    if "quick" not in group.servers:
        group.start("quick", group.reserved_port(), peer_s=1)
    peer = Peer(group, answer)
    group.owner, group.standbys, group.holders = "peer", ("three",), {"three"}
    try:
        assert group.get("quick") == (200, b"three: some/key")
    finally:
        peer.close()


def test_the_time_of_an_owner_counts_from_before_its_connection(group, monkeypatch):
    """A name server may need all of it."""

    class Fired(threading.Timer):
        def start(self):
            if self.args[0].port == group.servers["peer"].port:
                self.function(*self.args)

    peer = Peer(group, b"HTTP/1.1 200 OK\r\nX: drip")
    group.owner, group.standbys, group.holders = "peer", ("three",), {"three"}
    monkeypatch.setattr(threading, "Timer", Fired)
    try:
        assert group.get("one") == (200, b"three: some/key")
    finally:
        peer.close()


def test_idle_connections_hold_neither_descriptors_nor_the_server(group):
    """Each sends a byte now and then; more than the limit wait in the kernel."""
    group.start("small", group.reserved_port(), connections=4, connection_s=1)
    group.owner, group.holders = "small", {"small"}
    descriptors = Path("/proc/self/fd")
    with ExitStack() as opened:
        before = len(list(descriptors.iterdir())) if descriptors.exists() else 0
        idle = [
            opened.enter_context(socket.create_connection(group.servers["small"]))
            for _ in range(12)
        ]
        for each in idle:
            each.sendall(b"G")
        if before:
            # Those of the clients, and of the four that are accepted.
            assert len(list(descriptors.iterdir())) - before <= len(idle) + 4
        assert group.get("small") == (200, b"small: some/key")


def test_connections_that_are_reset_are_no_lines_on_stderr(group, capfd):
    group.owner, group.holders = "one", {"one"}
    for _ in range(20):
        with socket.create_connection(group.servers["one"]) as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            taken.sendall(b"GET /some HTTP/1.1\r\n\r\n")
    assert group.get("one")[0] == 200
    assert capfd.readouterr() == ("", "")


def test_a_large_answer_waits_on_the_disk_for_a_slow_reader(group):
    size = 32 << 20
    WRONG[b"long"] = bytes(size)
    group.owner, group.holders = "one", {"one"}
    with ExitStack() as opened:
        slow = []
        for _ in range(6):  # more than there are threads
            taken = opened.enter_context(socket.create_connection(group.servers["one"]))
            taken.sendall(b"GET /long HTTP/1.1\r\n\r\n")
            slow.append(taken)
        assert group.get("one") == (200, b"one: some/key")
    del WRONG[b"long"]


def test_members_that_wait_for_each_other_can_answer_each_other(group):
    """All threads of a member may be busy with queries that wait."""
    group.start("busy", group.reserved_port(), threads=1)
    group.owner, group.holders = "busy", {"busy"}
    begun, is_over = threading.Event(), threading.Event()
    WRONG[b"waits"] = lambda: begun.set() or (is_over.wait(LIMIT_S) and b"done")
    waiting = threading.Thread(target=group.get, args=("busy", "/waits"))
    waiting.start()
    try:
        assert begun.wait(LIMIT_S)
        assert group.get("one") == (200, b"busy: some/key")
    finally:
        is_over.set()
        waiting.join()
        del WRONG[b"waits"]


def test_a_client_that_asks_on_without_reading_gets_what_is_answered(group):
    size = 32 << 20
    WRONG[b"long"] = bytes(size)
    group.start("single", group.reserved_port(), threads=1)
    group.owner, group.holders = "single", {"single"}
    with socket.create_connection(group.servers["single"], timeout=LIMIT_S) as taken:
        taken.sendall(b"GET /long HTTP/1.1\r\n\r\n" * 50)
        until(lambda: group.asked)
        assert group.get("single")[0] == 200  # by the one thread, which has done with the others
        got = 0
        while piece := taken.recv(1 << 20):
            got += len(piece)
    assert group.asked == ["single"] * 2
    assert size < got < size + 4096
    del WRONG[b"long"]


def test_a_connection_whose_client_does_not_read_is_cut(group):
    WRONG[b"long"] = bytes(32 << 20)
    group.start("hasty", group.reserved_port(), connections=1, connection_s=3.0)
    group.owner, group.holders = "hasty", {"hasty"}
    with socket.create_connection(group.servers["hasty"], timeout=LIMIT_S) as taken:
        taken.sendall(b"GET /long HTTP/1.1\r\n\r\n")
        until(lambda: group.asked)
        assert group.get("hasty")[0] == 200  # it is accepted once the other one is cut
    del WRONG[b"long"]


def test_other_methods_and_a_used_address_are_refused(group):
    connection = HTTPConnection(*group.servers["one"], timeout=LIMIT_S)
    connection.request("POST", "/key", b"")
    assert connection.getresponse().status == 405
    connection.close()
    with pytest.raises(OSError, match="Address already in use"):
        group.start("again", group.servers["one"].port)
    with pytest.raises(ConfigError, match="endpoint 'nowhere' is not host:port"):
        QueryServer("nowhere", None, None, COUNTS, None)
    with pytest.raises(ConfigError, match="threads=0"):
        QueryLimits(threads=0)
