# SPDX-License-Identifier: Apache-2.0
"""Shared memory: segments that machines of a rack load from and store to."""
from __future__ import annotations

import ctypes as c
import errno
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from . import _errors, _structs
from . import _library as lib
from ._data import number
from ._handle import Shared

if TYPE_CHECKING:
    from ._rack import Rack

RIGHTS = {"none": 0, "r": 1, "rw": 2}


class SharedInfo(NamedTuple):
    """What a segment is now; counts are of this machine."""

    size: int
    lost: int
    """Bytes whose last stores died with a machine, until `aquifer shared
    repair`; 0: all is well."""
    cached: int
    """Bytes of it that this machine's cache has."""
    faults: int
    gets: int
    invalidations: int
    given_back: int


def _unmap(pointer: int, pid: int) -> None:
    # A child has no such memory, and may have something else there.
    if os.getpid() == pid:
        lib.aq_shared_close(pointer)


class Mapping:
    """The memory of a segment while anybody has a view of it.

    All views hold the window, directly or not, so it lives as long as the last
    of them: only then the memory may be unmapped.
    """

    def __init__(self, is_read_only: bool) -> None:
        self._is_read_only = is_read_only
        self._window: Optional[c.Array[c.c_char]] = None
        self.view: Optional[memoryview] = None

    def begin(self, address: int, size: int) -> None:
        self._window = (c.c_char * size).from_address(address)
        self._look()

    def _look(self) -> None:
        assert self._window is not None
        view = memoryview(self._window).cast("B")
        self.view = view.toreadonly() if self._is_read_only else view

    def _let_go(self) -> Any:
        """What is left of the window: None, if nobody has a view."""
        if self._window is None:
            return None
        window = weakref.ref(self._window)
        self._window = self.view = None
        return window()

    def is_free(self) -> bool:
        """Lets go of the memory, unless somebody has another view of it than
        our own, which ends here."""
        try:
            if self.view is not None:
                self.view.release()
        except BufferError:
            pass  # an array of NumPy, for example; it holds the window
        left = self._let_go()
        if left is None:
            return True
        self._window = left
        self._look()
        return False

    def close(self, pointer: int) -> None:
        """Unmaps it now, or with the last view."""
        left = self._let_go()
        if left is None:
            lib.aq_shared_close(pointer)
            return
        # At the end of the program the kernel does it: others may look still.
        weakref.finalize(left, _unmap, pointer, os.getpid()).atexit = False


class SharedMemory:
    """A segment, from Rack.create_shared or Rack.open_shared, at one address on
    all machines of the rack. `buf` is its memory.

    Memory that is lost cannot be an exception: who touches it gets SIGBUS.
    """

    def __init__(
        self, rack: Rack, name: str, handle: Shared, mapping: Mapping
    ) -> None:
        self._rack = rack
        self._name = name
        self._handle = handle
        self._mapping = mapping
        self._lock = threading.Lock()
        self._address: int = handle.call(lib.aq_shared_addr)
        self._size: int = handle.call(lib.aq_shared_size)
        mapping.begin(self._address, self._size)
        self._finalizer = weakref.finalize(self, handle.close)

    # ---- life ------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @property
    def size(self) -> int:
        """Bytes: what was asked for, in whole pages of 4096."""
        return self._size

    def __len__(self) -> int:
        return self._size

    @property
    def address(self) -> int:
        """The same on all machines, so addresses may be stored in it."""
        return self._address

    @property
    def buf(self) -> memoryview:
        """The memory itself: loads and stores, nothing is copied. `buf.cast`
        makes numbers of it, and NumPy arrays. close() releases it."""

        def look(_pointer: int) -> memoryview:
            view = self._mapping.view
            assert view is not None
            return view

        with self._lock:
            return self._handle.call(look)

    def close(self) -> None:
        """Unmaps it; what was stored stays. BufferError: there are slices,
        casts or arrays of `buf`. Twice is allowed."""
        with self._lock:
            if self._handle.pointer is not None and not self._mapping.is_free():
                raise BufferError(
                    f"shared memory {self._name} has views that are in use; "
                    f"release or delete them before it is closed"
                )
            self._handle.close()

    def __enter__(self) -> SharedMemory:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " closed" if self._handle.pointer is None else ""
        return f"<aquifer.SharedMemory {self._name!r}{state}>"

    # ---- pages -----------------------------------------------------------

    def _call(self, function: Any, *arguments: Any) -> None:
        with self._lock:
            _errors.check(self._handle.call(function, *arguments))

    def _range(self, offset: int, length: Optional[int]) -> tuple[int, int]:
        offset = number("an offset", offset)
        if length is None:
            length = max(0, self._size - offset)
        length = number("a length", length)
        if offset + length > self._size:
            raise _errors.make(
                errno.ERANGE,
                f"shared memory {self._name}: {length} bytes at offset "
                f"{offset} are outside its {self._size}",
            )
        return offset, length

    def flush(self, offset: int = 0, length: Optional[int] = None) -> None:
        """Returns when all that this machine has stored there is in the memory
        node, so that this machine's death loses none of it."""
        self._call(lib.aq_shared_flush, *self._range(offset, length))

    def fetch(
        self, offset: int = 0, length: Optional[int] = None, *, write: bool = False
    ) -> None:
        """Brings the pages here while the program does something else, to be
        read, or written. Returns at once."""
        right = RIGHTS["rw" if write else "r"]
        self._call(lib.aq_shared_fetch, *self._range(offset, length), right)

    def info(self) -> SharedInfo:
        """Asks this machine's cache, and the memory node."""
        found = _structs.SharedInfo()
        self._call(lib.aq_shared_stat, found)
        return SharedInfo(
            *(getattr(found, field[0]) for field in found._fields_)
        )
