"""Members with query servers, and a process that answers wrongly in place of a member."""

import socket
import threading
from contextlib import ExitStack, suppress
from http.client import HTTPConnection

from assignor.embedding import JSON, TEXT, DictStore, KeyHosts, StoreNotHeld, partition_for_key
from assignor.embedding.serving import QueryLimits, QueryServer
from encoding import HostInfo

COUNTS = DictStore("counts", key=TEXT, value=JSON)
LIMIT_S = 120
HERE = {"Streams-Query": "here"}
WRONG = {
    b"error": ZeroDivisionError("of the application"),
    b"os-error": ConnectionRefusedError("the price service is down"),
    b"text": "no bytes",
    b"none": None,
    b"large": bytes((64 << 20) + 1),
}


class Group:
    """Members with query servers; `owner` and `standbys` are names, as the host map has them."""

    def __init__(self):
        self.servers, self.resources = {}, ExitStack()
        self.reset()

    def reset(self):
        self.owner, self.standbys, self.error = None, (), None
        self.owner_of = lambda _key: self.owner
        self.holders, self.asked = set(), []

    def start(self, name, port, **limits):
        member = Member(self, name)
        limits = QueryLimits(**{"peer_s": LIMIT_S, "connection_s": LIMIT_S, **limits})
        server = QueryServer(
            f"127.0.0.1:{port}", member, member, COUNTS, member.answer, limits=limits
        )
        self.servers[name] = HostInfo("127.0.0.1", port)
        self.resources.callback(server.close)

    def reserved_port(self):
        """Return a port that only this process can listen on, until the end of the module."""
        kept = self.resources.enter_context(socket.socket())
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        return kept.getsockname()[1]

    def get(self, name, path="/some%2Fkey", **headers):
        connection = HTTPConnection(*self.servers[name], timeout=LIMIT_S)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body


class Member:
    """Assignor and stores of one member."""

    def __init__(self, group, name):
        self.group, self.name = group, name

    def hosts_for_key(self, store, key, *, partitioner):
        assert (store, partitioner(key, 4)) == ("counts", partition_for_key(key, 4))
        if self.group.error:
            raise self.group.error
        hosts, owner = self.group.servers, self.group.owner_of(key)
        return KeyHosts(
            partition=3,
            active=hosts.get(owner, HostInfo("127.0.0.1", 1)) if owner else None,
            standby=tuple(hosts[name] for name in self.group.standbys),
        )

    def local_state(self, store, partition):
        assert (store, partition) == (COUNTS, 3)
        if self.name not in self.group.holders:
            raise StoreNotHeld("moved")
        return self

    def answer(self, key, state):
        assert state is self
        self.group.asked.append(self.name)
        if key in WRONG:
            if isinstance(WRONG[key], Exception):
                raise WRONG[key]
            return WRONG[key]() if callable(WRONG[key]) else WRONG[key]
        return b"%s: %s" % (self.name.encode(), key)


class Peer:
    """A process at the owner's endpoint, which sends bytes that are no whole answer."""

    def __init__(self, group, answer):
        self.group, self.answer, self.cut = group, answer, threading.Event()
        self.is_asked = threading.Event()
        self.listening = socket.create_server(("127.0.0.1", 0))
        group.servers["peer"] = HostInfo(*self.listening.getsockname())
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        with suppress(OSError):
            taken, _ = self.listening.accept()
            with taken:
                taken.recv(4096)
                self.is_asked.set()
                taken.sendall(self.answer)
                if self.answer.endswith(b"drip"):
                    while not self.cut.wait(0.05):
                        taken.sendall(b".")

    def close(self):
        self.cut.set()
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join()
