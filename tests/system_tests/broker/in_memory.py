"""An event loop with a clock of its own, and connections in memory: no sockets, no waiting."""

import asyncio
import selectors


class _Selector(selectors.DefaultSelector):
    """Lets time pass instead of waiting."""

    now_s = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everything waits for what nothing will do"
            self.now_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only while nothing is ready, up to the next timer."""

    def __init__(self):
        self._own_selector = _Selector()
        super().__init__(self._own_selector)

    def time(self):
        return self._own_selector.now_s


def run(work):
    """Run a coroutine in virtual time; return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


class _End(asyncio.Transport):
    """One end of a connection: the other end reads what is written here."""

    def __init__(self, protocol):
        super().__init__({"peername": ("memory", 0)})
        self._protocol, self._is_closing, self.other = protocol, False, None

    def write(self, data):
        if not self.other.is_closing():
            self.other._protocol.data_received(bytes(data))

    def write_eof(self):
        if not self.other.is_closing():
            self.other._protocol.eof_received()

    def is_closing(self):
        return self._is_closing

    def close(self):
        if not self._is_closing:
            self.write_eof()
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    abort = close


def connect():
    """Return (reader, writer) of both ends of a new connection."""
    loop = asyncio.get_running_loop()
    readers = [asyncio.StreamReader(), asyncio.StreamReader()]
    protocols = [asyncio.StreamReaderProtocol(reader) for reader in readers]
    ends = [_End(protocol) for protocol in protocols]
    for end, other, protocol in zip(ends, reversed(ends), protocols, strict=True):
        end.other = other
        protocol.connection_made(end)
    return [
        (reader, asyncio.StreamWriter(end, protocol, reader, loop))
        for reader, end, protocol in zip(readers, ends, protocols, strict=True)
    ]
