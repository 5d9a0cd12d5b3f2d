"""Notes beside copies of stores that are kept for the operator, because a changelog lost records.

`STATE_DIR/0_1/counts.db.kept` says why `counts.db` is kept. While the directory of a task has one
such file, whatever it is, no application runs any task with the state directory, and nothing
removes or clears a copy of that task. `assignor write-back` writes the copies of a task to their
changelogs, and then removes the notes.
"""

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assignor.embedding.errors import CopiesKept
from assignor.stores import StoreError, check_no_link, read_limited, replace_file, text
from encoding import shown

KEPT: Final = ".kept"
"""Ending of a note, after the name of the file that it is about."""
_TASK: Final = re.compile("(0|[1-9][0-9]{0,8})_(0|[1-9][0-9]{0,8})")
_LIMIT: Final = 16 << 10
_WHY_LIMIT: Final = 2000
_SHOWN_FILES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptNote:
    """Why the copies of a task are kept.

    Attributes:
        why: for the operator.
        stores: all stores of the task, as far as they are known.
        topics: topics that the task reads, as far as they are known.
    """

    why: str
    stores: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


def note_of(file: Path) -> Path:
    """Return the path of the note about a file."""
    return file.with_name(file.name + KEPT)


def write_note(file: Path, note: KeptNote) -> None:
    """Note why a file is kept; names of stores and topics are left out if there are too many.

    Raises:
        StoreError: the note cannot be written.
    """
    fields: dict[str, object] = {"why": note.why[:_WHY_LIMIT]}
    data = json.dumps(fields | {"stores": note.stores, "topics": note.topics}).encode()
    check_no_link(note_of(file))
    replace_file(note_of(file), data if len(data) <= _LIMIT else json.dumps(fields).encode())


def read_note(path: Path) -> KeptNote:
    """Return what a note says.

    Raises:
        StoreError: it is no regular file, is too large, or is not a note; the message says what to
            do.
    """
    try:
        check_no_link(path)
        data = read_limited(path, limit=_LIMIT) or b""
        found = json.loads(data)
        stores, topics = (tuple(map(text, found.get(name, ()))) for name in ("stores", "topics"))
        return KeptNote(why=text(found["why"]), stores=stores, topics=topics)
    except (StoreError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = str(error) if isinstance(error, StoreError) else "it is empty, or no such note"
        raise StoreError(
            f"{shown(str(path))} says that {shown(path.name.removesuffix(KEPT))} is kept, but why "
            f"cannot be read ({shown(why)}); run assignor write-back --state-dir "
            f"{shown(str(path.parent.parent))}, or remove what is there if the copy is of no use"
        ) from error


def kept_notes(directory: Path) -> list[Path]:
    """Return the notes in a state directory, of all tasks, sorted.

    Names that no task has, and links in place of a task's directory, are of no application.
    """
    found = sorted(directory.glob(f"*_*/*{KEPT}"))
    return [p for p in found if _TASK.fullmatch(p.parent.name) and not p.parent.is_symlink()]


def check_none_kept(directory: Path) -> None:
    """Check that no copy in a state directory is kept for the operator.

    Raises:
        CopiesKept: some are; the message is that of the first note.
        StoreError: the first note cannot be read.
    """
    found = kept_notes(directory)
    if found:
        raise CopiesKept(f"{shown(read_note(found[0]).why, limit=_WHY_LIMIT)}; {listed(found)}")


def listed(notes: Collection[Path]) -> str:
    """Return the files that notes are about, and how to begin without them, for messages."""
    files = _few(str(path).removesuffix(KEPT) for path in notes)
    tasks = _few(dict.fromkeys(str(path.parent) for path in notes))
    return f"kept: {files}; to begin without them, as after assignor reset, delete {tasks}"


def _few(names: Iterable[str]) -> str:
    found = [*names]
    more = f" and {len(found) - _SHOWN_FILES} more" if len(found) > _SHOWN_FILES else ""
    return f"{shown(', '.join(found[:_SHOWN_FILES]), limit=_WHY_LIMIT)}{more}"


def notes_of_task(folder: Path) -> list[Path]:
    """Return the notes in the directory of a task, sorted."""
    return sorted(folder.glob(f"*{KEPT}"))


def remove_notes(folder: Path) -> None:
    """Remove all notes in the directory of a task.

    Raises:
        StoreError: one cannot be removed.
    """
    for note in notes_of_task(folder):
        try:
            note.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{note} cannot be removed: {error.strerror}; remove it") from error
