# SPDX-License-Identifier: Apache-2.0
"""Regions: memory of the rack by name."""
from __future__ import annotations

import ctypes as c
import errno
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _async, _errors, _structs
from . import _library as lib
from ._data import U64_MAX, Borrowed, Buffer, WriteableBuffer, address_of
from ._data import fresh_bytes, number, value_memory
from ._handle import Shared

if TYPE_CHECKING:
    from ._rack import Rack

_aq_read, _aq_write = lib.aq_read, lib.aq_write


class RegionInfo(NamedTuple):
    """What a region is now."""

    name: str
    size: int
    """Bytes; 0 in a list when a node of a striped region is missing."""
    nodes: int
    stripe_bytes: int
    """Bytes that stay together on one node; 0 on one node."""


def info_of(name: str, stat: _structs.RegionStat) -> RegionInfo:
    return RegionInfo(name, stat.size_bytes, stat.nodes, stat.stripe_bytes)


class Region:
    """Memory of the rack, from Rack.create_region or Rack.open_region.

    Offsets, lengths and sizes are bytes. Threads may share a region.
    """

    def __init__(self, rack: Rack, name: str, handle: Shared) -> None:
        self._rack = rack
        self._name = name
        self._handle = handle
        self._finalizer = weakref.finalize(self, handle.close)

    # ---- life ------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    def close(self) -> None:
        """Gives the handle back; the memory stays. Twice is allowed."""
        self._handle.close()

    def __enter__(self) -> Region:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " closed" if self._handle.pointer is None else ""
        return f"<aquifer.Region {self._name!r}{state}>"

    def _call(self, function: Any, *arguments: Any) -> int:
        result: int = self._handle.call(function, *arguments)
        if result < 0:
            _errors.fail(result)
        return result

    @property
    def size(self) -> int:
        """As it was last heard of; info() asks."""
        return self._call(lib.aq_region_size)

    def __len__(self) -> int:
        return self.size

    def info(self) -> RegionInfo:
        """Asks the nodes, so it also sees what others changed."""
        stat = _structs.RegionStat()
        self._call(lib.aq_region_stat, stat)
        return info_of(self._name, stat)

    def resize(self, size: int) -> None:
        """Grows with zeros or cuts; other users follow by themselves."""
        self._call(lib.aq_region_resize, number("a size", size))

    # ---- data ------------------------------------------------------------

    def _room(self, offset: int, length: int) -> bytes:
        """Bytes to be filled. No memory is taken for what cannot be there."""
        length = number("a length", length)
        if length > self.size and offset + length > self.info().size:
            raise _errors.make(
                errno.ERANGE,
                f"region {self._name}: {length} bytes at offset {offset} are "
                f"outside its {self.size}",
            )
        return fresh_bytes(length)

    def read(self, offset: int, length: int) -> bytes:
        """The bytes at that offset."""
        offset = number("an offset", offset)
        data = self._room(offset, length)
        self._call(_aq_read, offset, data, len(data))
        return data

    def read_into(self, offset: int, buffer: WriteableBuffer) -> int:
        """Fills a buffer (bytearray, memoryview, array ...) in place and
        returns its length."""
        offset = number("an offset", offset)
        memory = Borrowed(buffer, is_written=True)
        try:
            self._call(_aq_read, offset, memory.address, memory.nbytes)
            return memory.nbytes
        finally:
            memory.release()

    def write(self, offset: int, data: Buffer) -> int:
        """Stores the bytes of a buffer and returns how many.

        A write that failed may have been done, whole or in part.
        """
        offset = number("an offset", offset)
        address, length, _held = value_memory(data)
        self._call(_aq_write, offset, address, length)
        return length

    def fetch_and_add(self, offset: int, add: int) -> int:
        """Adds to the 8 bytes at an offset divisible by 8, atomically, and
        returns what they were: a number from 0 to 2**64 - 1 in the byte order
        of this machine, which wraps around. `add` may be negative."""
        if not -(2**63) <= add <= U64_MAX:
            raise ValueError(f"{add} has more than 64 bits")
        old = c.c_uint64()
        self._call(lib.aq_faa, number("an offset", offset), add & U64_MAX, old)
        return old.value

    def compare_and_swap(self, offset: int, expected: int, desired: int) -> int:
        """Replaces the 8 bytes at an offset divisible by 8 if they are
        `expected`, atomically. Returns what they were: if that is `expected`,
        they are `desired` now."""
        old = c.c_uint64()
        self._call(
            lib.aq_cas,
            number("an offset", offset),
            number("expected", expected),
            number("desired", desired),
            old,
        )
        return old.value

    # ---- asynchronous ----------------------------------------------------

    async def read_async(self, offset: int, length: int) -> bytes:
        """As read(), by the rack's engine while the event loop goes on."""
        offset = number("an offset", offset)
        data = self._room(offset, length)
        await _async.transfer(
            self, False, offset, address_of(data), len(data), data
        )
        return data

    async def read_into_async(
        self, offset: int, buffer: WriteableBuffer
    ) -> int:
        """As read_into(). The buffer must not be used before it is filled,
        and cannot be resized until then, also where the task was cancelled."""
        offset = number("an offset", offset)
        memory = Borrowed(buffer, is_written=True)
        await _async.transfer(
            self, False, offset, memory.address, memory.nbytes, memory
        )
        return memory.nbytes

    async def write_async(self, offset: int, data: Buffer) -> int:
        """As write(). The data may be changed once this has returned."""
        offset = number("an offset", offset)
        memory = Borrowed(data)
        await _async.transfer(
            self, True, offset, memory.address, memory.nbytes, memory
        )
        return memory.nbytes
