# SPDX-License-Identifier: Apache-2.0
"""What is done to a file, queue or store, as it happens."""
from __future__ import annotations

import asyncio
import ctypes as c
import errno
from typing import Any, Callable, Iterable, NamedTuple, Optional

from . import _errors, _structs
from . import _library as lib
from ._handle import Exclusive

KINDS = {
    1: "append", 2: "put", 3: "get", 4: "ack", 5: "back", 6: "set",
    7: "delete", 8: "add", 9: "seal", 31: "lost",
}
_AGAIN = (-errno.EAGAIN, -errno.EINTR)


class Event(NamedTuple):
    """One change, or how many events are missing at this place."""

    kind: str
    """append, put, get, ack, back, set, delete, add, seal or lost"""
    value: int
    """offset of a record, version of a key, result of an addition; of lost:
    how many events, 0: it is not known"""
    length: int
    """of the record, item or key, all of it"""
    data: bytes
    """the key, or the item as it lies in the queue, up to 256 bytes of it"""
    block: int


def bits(kinds: Optional[Iterable[str]]) -> int:
    """For aq_watch_options; None: all."""
    numbers = {name: number for number, name in KINDS.items()}
    found = 0
    for kind in kinds or ():
        if kind not in numbers:
            raise ValueError(f"there are no events {kind!r}")
        found |= 1 << numbers[kind]
    return found


class Watch:
    """Events from its making on: `async for event in watch`, or next().

    A node waits for no reader: who is too slow gets a "lost" with the number
    of what it missed. Close it, or use it in a `with`.
    """

    def __init__(self, handle: Exclusive, call: Callable[..., int]) -> None:
        self._handle, self._call = handle, call

    def fileno(self) -> int:
        """Readable when next(0) may have something, once it had nothing."""
        return self._call(self._handle, lib.aq_watch_fd)

    def next(self, timeout: float = 0) -> Optional[Event]:
        """None: nothing happened for so many seconds."""
        found = _structs.Event()
        err = self._call(
            self._handle, lib.aq_watch_next, found, max(0, int(timeout * 1000))
        )
        if err in _AGAIN:
            return None
        _errors.check(err)
        return Event(
            KINDS.get(found.kind, "other"), found.value, found.length_bytes,
            c.string_at(found.data, found.data_bytes) if found.data else b"",
            found.block,
        )

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> Event:
        loop = asyncio.get_running_loop()
        while True:
            event = self.next()
            if event is not None:
                return event
            ready = loop.create_future()
            fd = self.fileno()
            loop.add_reader(fd, _set, ready)
            try:
                await ready
            finally:
                loop.remove_reader(fd)

    def close(self) -> None:
        """Twice is allowed."""
        self._handle.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
