"""Reads the log of changes of a Redis server (AOF) while it is being written.

The server writes what a script did as one transaction, in the order in which it did it. What was
written half way when the server was killed, it throws away itself when it starts again; so only
whole transactions are taken.
"""

from __future__ import annotations

from pathlib import Path

Command = list[bytes]
Transaction = list[Command]

_FOLDER = "appendonlydir"
_MANIFEST = "appendonly.aof.manifest"
_EMPTY = 256
"""Bytes of a snapshot without keys; what comes before the log must be such."""


class LogTail:
    """The log of one server from its beginning, a piece at a time."""

    def __init__(self, home: Path) -> None:
        self._folder = home / _FOLDER
        self._file: str | None = None
        self._offset = 0

    def news(self) -> list[Transaction]:
        """Give the transactions that were written since the last call."""
        found: list[Transaction] = []
        for name in self._files():
            if name != self._file:
                self._file, self._offset = name, 0
            with (self._folder / name).open("rb") as file:
                file.seek(self._offset)
                data = file.read()
            transactions, size = whole(data)
            found += transactions
            self._offset += size
        return found

    def _files(self) -> list[str]:
        """Give the files that may have news: the one we are in, and those after it."""
        parts = [line.split() for line in self._manifest().splitlines()]
        base = [words[1] for words in parts if words[5] == "b"]
        for name in base:
            if (self._folder / name).stat().st_size > _EMPTY:
                raise RuntimeError(f"{name} has keys, so that the log after it does not tell all")
        names = [words[1] for words in parts if words[5] == "i"]
        return names[names.index(self._file) :] if self._file in names else names

    def _manifest(self) -> str:
        return (self._folder / _MANIFEST).read_text(encoding="utf-8")


def whole(data: bytes) -> tuple[list[Transaction], int]:
    """Give the whole transactions that stand at the beginning, and how many bytes they are."""
    found: list[Transaction] = []
    open_: Transaction | None = None
    at = size = 0
    while (read := _command(data, at)) is not None:
        command, at = read
        name = command[0].upper() if command else b"SELECT"
        if name == b"MULTI":
            open_ = []
        elif name == b"EXEC":
            found.append(open_ or [])
            open_ = None
        elif name != b"SELECT":
            if open_ is None:
                found.append([command])
            else:
                open_.append(command)
        if open_ is None:
            size = at
    return found, size


def _command(data: bytes, at: int) -> tuple[Command, int] | None:
    """Give the command at a place and the place behind it; None if it is not all there."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    if data[at : at + 1] == b"#":
        return [], end + 2  # a remark about the time
    words: Command = []
    count = int(data[at + 1 : end])
    at = end + 2
    for _ in range(count):
        end = data.find(b"\r\n", at)
        if end < 0:
            return None
        length = int(data[at + 1 : end])
        at = end + 2 + length + 2
        if at > len(data):
            return None
        words.append(data[end + 2 : end + 2 + length])
    return words, at
