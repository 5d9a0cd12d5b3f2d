"""A folder in memory that records writes, and can lose power after each byte."""

from dataclasses import dataclass, field

from assignor.stores import StoreError


@dataclass
class MemoryDisk:
    """A fake of `FolderDisk`; `steps` are the writes in order, with the acknowledged state."""

    files: dict[str, bytes] = field(default_factory=dict)
    steps: list[tuple[str, str, bytes]] = field(default_factory=list)

    def names(self):
        return sorted(self.files)

    def read(self, name, limit):
        if name not in self.files:
            raise StoreError(f"{name} cannot be read: it is not there")
        assert len(self.files[name]) <= limit
        return self.files[name]

    def replace(self, name, data):
        self.steps.append(("replace", name, data))
        self.files[name] = data

    def append(self, name, data):
        self.steps.append(("append", name, data))
        self.files[name] = self.files.get(name, b"") + data

    def remove(self, name):
        self.steps.append(("remove", name, b""))
        self.files.pop(name, None)


def apply(files, step):
    """The files after a whole step."""
    disk = MemoryDisk(dict(files))
    kind, name, data = step
    getattr(disk, kind)(*((name,) if kind == "remove" else (name, data)))
    return disk.files


def power_cuts(files, step):
    """Every content that a folder can have when the power fails within a step.

    A replaced file is the old one with an unfinished file beside it; an appended one is cut off
    anywhere, and the file system may have written its new length before its bytes.
    """
    kind, name, data = step
    old = files.get(name, b"")
    if kind == "replace":
        for length in range(len(data) + 1):
            yield {**files, f".{name}.7.partial": data[:length]}
    if kind == "append":
        for length in range(len(data)):
            yield {**files, name: old + data[:length]}
            yield {**files, name: old + data[:length] + bytes(len(data) - length)}
    yield dict(files)
