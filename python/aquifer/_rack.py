# SPDX-License-Identifier: Apache-2.0
"""Racks: where everything begins."""
from __future__ import annotations

import ctypes as c
import os
import threading
import weakref
from typing import Any, Callable, Optional, TypeVar, Union

from . import _async, _errors
from . import _library as lib
from ._data import Buffer, name_bytes, number, value_memory
from ._handle import Shared, SharedRack
from ._index import Index
from ._options import index_options, region_options, shared_options, table_options
from ._region import Region, RegionInfo, info_of
from ._shared import RIGHTS, Mapping, SharedMemory
from ._table import Table
from ._walk import Walk, walk_options, walk_shape

_CONFIG = "AQUIFER_CONFIG"
_U32_MAX = 2**32 - 1
_READ_ONLY, _REVOCABLE = 1, 2
_Made = TypeVar("_Made")


class _Settings:
    """The settings file of the process, for racks that name one.

    The library finds it by the environment, for all that it has open: so
    there is one of them at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._path: Optional[str] = None
        self._former: Optional[str] = None
        self._users = 0

    def take(self, config: Union[str, os.PathLike[str]]) -> None:
        path = os.path.abspath(os.fsdecode(config))
        with open(path, "rb"):
            pass  # a file that cannot be read is told here, by its name
        with self._lock:
            if self._users and path != self._path:
                raise ValueError(
                    f"a process has one settings file at a time, and racks "
                    f"with {self._path} are open"
                )
            if not self._users:
                self._former, self._path = os.environ.get(_CONFIG), path
                os.environ[_CONFIG] = path
            self._users += 1

    def after_fork(self) -> None:
        self._lock = threading.RLock()

    def give_back(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if self._former is None:
                os.environ.pop(_CONFIG, None)
            else:
                os.environ[_CONFIG] = self._former


_settings = _Settings()
os.register_at_fork(after_in_child=_settings.after_fork)


def _close_with_settings(pointer: int) -> None:
    lib.aq_rack_close(pointer)
    _settings.give_back()


class Rack:
    """A rack by its name; without one, that of the settings.

    with aquifer.Rack() as rack:
        table = rack.open_table("users")

    config: the file rack.ini to use. A process has one at a time, so racks
        that are open together name the same one, or none.
    deadline: the most seconds that one call may take; 5 if not given.
    token: a tenant's, 64 hexadecimal digits; otherwise AQUIFER_TOKEN or the
        rack's own file is taken.

    Closing a rack closes all that was opened with it. Threads may share one.
    After fork, a child opens its own.
    """

    def __init__(
        self,
        name: Optional[str] = None,
        config: Union[None, str, os.PathLike[str]] = None,
        *,
        deadline: Optional[float] = None,
        token: Optional[str] = None,
    ) -> None:
        text = None if name is None else name_bytes("rack", name)
        out = c.c_void_p()
        if config is not None:
            _settings.take(config)
        try:
            _errors.check(lib.aq_rack_open(text, out))
        except BaseException:
            if config is not None:
                _settings.give_back()
            raise
        assert out.value is not None
        self._name = name
        close: Callable[[int], None] = lib.aq_rack_close
        if config is not None:
            close = _close_with_settings
        self._handle = SharedRack(
            "the rack" if name is None else f"rack {name}", out.value, close
        )
        self._finalizer = weakref.finalize(self, self._handle.close)
        self._contexts: _async.Contexts = _async.Contexts()
        try:
            if deadline is not None:
                self.deadline = deadline
            if token is not None:
                words = name_bytes("token", token)
                self._call(lib.aq_rack_set_token, words)
        except BaseException:
            self.close()
            raise

    # ---- life ------------------------------------------------------------

    @property
    def name(self) -> Optional[str]:
        """As it was given."""
        return self._name

    def close(self) -> None:
        """Closes what was opened with it, and ends all connections. Waits for
        calls of other threads; twice is allowed."""
        self._handle.close()

    def __enter__(self) -> Rack:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " closed" if self._handle.pointer is None else ""
        return f"<aquifer.Rack {self._name or 'of the settings'}{state}>"

    def _call(self, function: Any, *arguments: Any) -> int:
        result: int = self._handle.call(function, *arguments)
        if result < 0:
            _errors.fail(result)
        return result

    def _open(
        self,
        kind: Callable[..., _Made],
        what: str,
        name: str,
        call: Callable[[int, c.c_void_p], Any],
        close: Callable[[int], None],
        *more: Any,
    ) -> _Made:
        """Opens a thing in the library and makes its object. The rack cannot
        be closed until the thing is among its children."""

        def make(pointer: int) -> _Made:
            out = c.c_void_p()
            _errors.check(call(pointer, out))
            assert out.value is not None
            made = Shared(what, out.value, close, self._handle)
            try:
                return kind(self, name, made, *more)
            except BaseException:
                made.close()
                raise

        return self._handle.call(make)

    @property
    def deadline(self) -> float:
        """The most seconds that one call may take, 0.001 to 3600."""
        return self._call(lib.aq_rack_deadline) / 1000

    @deadline.setter
    def deadline(self, seconds: float) -> None:
        milliseconds = number("a deadline", round(seconds * 1000), _U32_MAX)
        self._call(lib.aq_rack_set_deadline, milliseconds)

    # ---- regions ---------------------------------------------------------

    def create_region(
        self,
        name: str,
        size: int,
        *,
        nodes: Union[int, str] = 1,
        stripe_bytes: int = 0,
        node: Optional[str] = None,
        device: bool = False,
        switch_atomics: bool = False,
    ) -> Region:
        """Makes a region of zeros and opens it.

        nodes: how many to spread it over, or "all"; stripe_bytes: bytes that
            stay together on one node, a power of two; 0: 64 KiB.
        node: the node to use; otherwise the one with the most free memory.
        device: the NIC's own memory; switch_atomics: the switch executes
            atomics on it.
        """
        options = region_options(nodes, stripe_bytes, device, switch_atomics)
        options.node = None if node is None else name_bytes("node", node)
        text, size = name_bytes("region", name), number("a size", size)
        return self._open(
            Region,
            f"region {name}",
            name,
            lambda rack, out: lib.aq_region_create(rack, text, size, options, out),
            lib.aq_region_close,
        )

    def open_region(
        self, name: str, *, read_only: bool = False, revocable: bool = False
    ) -> Region:
        """The region of that name. revocable: it is never mapped, so that the
        node can shut this process out at once."""
        flags = (_READ_ONLY if read_only else 0) | (_REVOCABLE if revocable else 0)
        text = name_bytes("region", name)
        return self._open(
            Region,
            f"region {name}",
            name,
            lambda rack, out: lib.aq_region_open(rack, text, flags, out),
            lib.aq_region_close,
        )

    def delete_region(self, name: str) -> None:
        """Deletes it on all its nodes, for everybody."""
        self._call(lib.aq_region_delete, name_bytes("region", name))

    def regions(self) -> list[RegionInfo]:
        """All regions of the tenant."""
        found: list[RegionInfo] = []

        def each(name: bytes, stat: Any, _user: object) -> int:
            found.append(info_of(name.decode(), stat.contents))
            return 0

        self._call(lib.aq_region_each, lib.REGION_FN(each), None)
        return found

    # ---- shared memory ---------------------------------------------------

    def create_shared(
        self, name: str, size: int, *, copies: int = 1, on_loss: str = "error"
    ) -> SharedMemory:
        """Makes a segment of zeros and opens it. It lives until it is
        deleted. copies=2: two memory nodes have it, and the death of one loses
        nothing. on_loss="last": when a machine dies with the only copy of
        stores, all go on with what the memory node has."""
        text, size = name_bytes("segment", name), number("a size", size)
        options = shared_options(copies, on_loss)
        self._call(lib.aq_shared_create_with, text, size, options)
        try:
            return self.open_shared(name)
        except BaseException:
            # A machine that cannot use it leaves nothing behind.
            self._handle.call(lib.aq_shared_delete, text)
            raise

    def open_shared(self, name: str, *, read_only: bool = False) -> SharedMemory:
        """Maps the segment of that name, or "TENANT/NAME" of another tenant.
        The first program of a machine starts its cache server. ExistsError:
        this process has it open already."""
        text, mapping = name_bytes("segment", name), Mapping(read_only)
        flags = _READ_ONLY if read_only else 0
        return self._open(
            SharedMemory,
            f"shared memory {name}",
            name,
            lambda rack, out: lib.aq_shared_open(rack, text, flags, out),
            mapping.close,
            mapping,
        )

    def allow_shared(
        self, name: str, tenant: str, right: str, offset: int = 0, length: int = 0
    ) -> None:
        """What another tenant may do with it: "r", "rw" or "none"; or with a
        part, which begins and ends at multiples of 2 MiB or at its end."""
        if right not in RIGHTS:
            raise ValueError(f'a right is "r", "rw" or "none", not {right!r}')
        self._call(
            lib.aq_shared_allow_part,
            name_bytes("segment", name),
            name_bytes("tenant", tenant),
            number("an offset", offset),
            number("a length", length),
            RIGHTS[right],
        )

    def delete_shared(self, name: str) -> None:
        """Deletes it for everybody: who touches it gets SIGBUS from now on."""
        self._call(lib.aq_shared_delete, name_bytes("segment", name))

    # ---- tables ----------------------------------------------------------

    def create_table(
        self,
        name: str,
        capacity: int,
        *,
        shards: Union[int, str] = 1,
        copies: int = 1,
        extent_bytes: int = 0,
        grow: bool = True,
        node: Optional[str] = None,
        direct_reads: bool = True,
        **sizes: int,
    ) -> Table:
        """Makes a table with room for that many keys and opens it.

        shards: parts on different nodes, or "all"; copies: of each part, on
            different nodes, 1 or 2; extent_bytes: memory for values that do
            not fit beside their keys, at first; grow: by itself when it gets
            full, as long as somebody has it open.
        sizes: entry_bytes, entries_per_row, rows_per_lock, clients,
            chunk_bytes, failure_ms, lock_max, as in <aquifer/kv.h>.
        direct_reads: see open_table().
        """
        options = table_options(
            capacity, shards, copies, extent_bytes, grow, sizes
        )
        options.node = None if node is None else name_bytes("node", node)
        text = name_bytes("table", name)
        return self._open(
            Table,
            f"table {name}",
            name,
            lambda rack, out: lib.aq_kv_create(rack, text, options, out),
            lib.aq_kv_close,
            direct_reads,
        )

    def open_table(self, name: str, *, direct_reads: bool = True) -> Table:
        """The table of that name.

        direct_reads: reads are loads where the table is on this machine, and
            the node takes no part. False: all goes through the NIC.
        """
        text = name_bytes("table", name)
        return self._open(
            Table,
            f"table {name}",
            name,
            lambda rack, out: lib.aq_kv_open(rack, text, out),
            lib.aq_kv_close,
            direct_reads,
        )

    def drop_table(self, name: str) -> None:
        """Removes the table for everybody."""
        self._call(lib.aq_kv_drop, name_bytes("table", name))

    # ---- indexes ---------------------------------------------------------

    def create_index(
        self,
        name: str,
        *,
        kind: str = "tree",
        value_max: int = 0,
        key_max: int = 0,
        size_bytes: int = 0,
        keys: int = 0,
        node: Optional[str] = None,
        **sizes: int,
    ) -> Index:
        """Makes an index and opens it.

        kind: "tree", whose keys have an order, or "versions", whose keys are
            numbers (see key_of_number).
        value_max: the largest value, 32 bytes if not given, 128 for versions.
        key_max and size_bytes: of a tree, 32 bytes and 64 MiB if not given.
        keys: how many keys there is room for; versions must say it.
        sizes: versions, clients, failure_ms, node_bytes, locks, as in
            <aquifer/index.h>.
        """
        sizes.update(
            value_max=value_max, key_max=key_max, size_bytes=size_bytes, keys=keys
        )
        options = index_options(kind, sizes)
        options.node = None if node is None else name_bytes("node", node)
        text = name_bytes("index", name)
        return self._open(
            Index,
            f"index {name}",
            name,
            lambda rack, out: lib.aq_index_create(rack, text, options, out),
            lib.aq_index_close,
        )

    def open_index(self, name: str) -> Index:
        """The index of that name."""
        text = name_bytes("index", name)
        return self._open(
            Index,
            f"index {name}",
            name,
            lambda rack, out: lib.aq_index_open(rack, text, out),
            lib.aq_index_close,
        )

    def drop_index(self, name: str) -> None:
        """Removes the index for everybody."""
        self._call(lib.aq_index_drop, name_bytes("index", name))

    # ---- walks -----------------------------------------------------------

    def load_walk(
        self,
        source: Union[str, os.PathLike[str], Buffer],
        *,
        where: Optional[str] = None,
        cross: Optional[str] = None,
        iterations: int = 0,
    ) -> Walk:
        """A walk from a .walk file, or from the bytes of one.

        where: "here" in this process, or "there" on the memory node;
            otherwise the library decides.
        cross: from one memory node to another by the "switch", or by a
            "bounce" off this process; otherwise the configuration decides.
        iterations: nodes to visit at most; 65536 if not given.
        """
        options = walk_options(where, cross, iterations)
        if isinstance(source, (str, os.PathLike)):
            path = os.fsencode(source)
            return self._open(
                Walk,
                "the walk",
                "",
                lambda rack, out: lib.aq_walk_load(rack, path, options, out),
                lib.aq_walk_close,
            )
        address, length, _held = value_memory(source)
        return self._open(
            Walk,
            "the walk",
            "",
            lambda rack, out: lib.aq_walk_load_bytes(
                rack, address, length, options, out
            ),
            lib.aq_walk_close,
        )

    def make_walk(
        self,
        kind: str,
        *,
        key_is_bytes: bool = False,
        value_is_signed: bool = False,
        where: Optional[str] = None,
        cross: Optional[str] = None,
        iterations: int = 0,
        **shape: int,
    ) -> Walk:
        """A ready walk of a structure that is given as offsets of its nodes.

        kind: "list-find", "hash-find", "bst-find", "bst-lower", "btree-find",
            "bplus-find", "bplus-scan", "bplus-reduce", "skip-find" or
            "radix-find".
        key_is_bytes: keys are strings, and not numbers without a sign.
        value_is_signed: of bplus-reduce.
        where, cross, iterations: as of load_walk.
        shape: key_at, key_bytes, value_at, next_at and whatever else struct
            aq_walk_shape has.
        """
        described = walk_shape(kind, key_is_bytes, value_is_signed, shape)
        options = walk_options(where, cross, iterations)
        return self._open(
            Walk,
            "the walk",
            "",
            lambda rack, out: lib.aq_walk_make(rack, described, options, out),
            lib.aq_walk_close,
        )
