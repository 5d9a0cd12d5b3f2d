"""Peak resident memory of this process and its descendants; Linux only."""

import os
from pathlib import Path

_PROC = Path("/proc")


def family():
    """Process ids of this process and its descendants -> command."""
    children = {}
    names = {os.getpid(): "driver"}
    for folder in _PROC.glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(encoding="utf-8")
        except OSError:
            continue  # the process has ended
        name, _, rest = stat.partition("(")[2].rpartition(")")
        children.setdefault(int(rest.split()[1]), []).append((int(folder.name), name))
    todo = [os.getpid()]
    while todo:
        for number, name in children.get(todo.pop(), ()):
            names[number] = name
            todo.append(number)
    return names


def forget_peaks():
    """Reset the peak of each process to its current memory."""
    for number in family():
        try:
            (_PROC / str(number) / "clear_refs").write_text("5", encoding="utf-8")
        except OSError:
            continue


def peaks_mb():
    """Peaks since `forget_peaks`, in MB: JVM, all Python workers, Python of the driver."""
    found = {"jvm": 0, "workers": 0, "driver": 0}
    for number, name in family().items():
        try:
            status = (_PROC / str(number) / "status").read_text(encoding="utf-8")
        except OSError:
            continue
        peak = next((line for line in status.split("\n") if line.startswith("VmHWM")), "VmHWM 0")
        kind = {"java": "jvm", "driver": "driver"}.get(name, "workers")
        found[kind] += int(peak.split()[1]) // 1024
    return found
