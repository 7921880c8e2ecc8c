# SPDX-License-Identifier: Apache-2.0
"""Elastic key-value stores as mappings."""
from __future__ import annotations

import ctypes as c
import errno
import pickle
import struct
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Optional

from . import _errors, _structs
from . import _library as lib
from ._handle import Exclusive
from ._names import CREATE, LOAD, call, open_handle

if TYPE_CHECKING:
    from .elastic import Job

ANY, ABSENT = 2**64 - 1, 0
_HOWS = {"sum": 0, "min": 1, "max": 2}
_GET, _PUT, _ADD = 1, 2, 4
_GROUP = 64  # operations of a message
_NUMBER = struct.Struct("<q")
_VALUE_BYTES = 4096  # room for a first try
_ENOENT, _EMSGSIZE, _ENODATA = -errno.ENOENT, -errno.EMSGSIZE, -errno.ENODATA


class Ekv(MutableMapping):
    """A key-value store that grows by blocks, for any number of processes.

    Keys are texts or bytes; the keys of an iteration are of the type `keys`.
    values says what values are: object (pickled), bytes, or int (64 bits, which
    add() changes in one step). Threads have a connection each.

    Every change happens once, also where a node had to be asked twice. An
    iteration has each key that is there all the time once.
    """

    def __init__(
        self,
        job: Job,
        path: str,
        *,
        keys: type = str,
        values: type = object,
        block_bytes: int = 0,
        load: bool = False,
        create: bool = True,
    ) -> None:
        if keys not in (str, bytes) or values not in (object, bytes, int):
            raise ValueError("keys: str or bytes; values: object, bytes or int")
        self._job, self._path = job, path
        self._keys, self._values = keys, values
        self._options = _structs.ElasticOptions(
            flags=(CREATE if create else 0) | (LOAD if load else 0),
            block_bytes=block_bytes,
        )
        self._local = threading.local()
        self._handles: list[Exclusive] = []
        self._finalizer = weakref.finalize(self, _close_all, self._handles)
        self._handle()

    def __reduce__(self) -> Any:
        return _reopen, (self._job, self._path, self._keys, self._values)

    @property
    def path(self) -> str:
        return self._path

    def _handle(self) -> Exclusive:
        handle: Optional[Exclusive] = getattr(self._local, "handle", None)
        if handle is None or handle.is_inherited:
            handle = open_handle(
                self._job.rack, lib.aq_ekv_open, lib.aq_ekv_close, self._path,
                self._options,
            )
            self._local.handle = handle
            self._local.room = c.create_string_buffer(_VALUE_BYTES)
            self._handles.append(handle)
        return handle

    # ---- forms -----------------------------------------------------------

    def _key(self, key: Any) -> bytes:
        if isinstance(key, str):
            return key.encode()
        if isinstance(key, (bytes, bytearray, memoryview)):
            return bytes(key)
        raise TypeError("a key is a text or bytes")

    def _pack(self, value: Any) -> bytes:
        if self._values is int:
            return _NUMBER.pack(value)
        return pickle.dumps(value) if self._values is object else bytes(value)

    def _unpack(self, data: bytes) -> Any:
        if self._values is object:
            return pickle.loads(data)
        if self._values is bytes:
            return data
        if len(data) != _NUMBER.size:
            raise ValueError("the value is no number")
        return _NUMBER.unpack(data)[0]

    # ---- one key ---------------------------------------------------------

    def lookup(self, key: Any) -> tuple[Any, int]:
        """The value and its version. KeyError."""
        handle, name = self._handle(), self._key(key)
        length, version = c.c_size_t(), c.c_uint64()
        while True:
            room = self._local.room
            err = call(
                handle, lib.aq_ekv_get, name, len(name), room, len(room),
                length, version,
            )
            if err != _EMSGSIZE:
                break
            self._local.room = c.create_string_buffer(length.value)
        if err == _ENOENT:
            raise KeyError(key)
        _errors.check(err)
        return self._unpack(room.raw[: length.value]), version.value

    def put(self, key: Any, value: Any, expect: int = ANY) -> int:
        """Its new version. expect: the version that the key must have, or
        ABSENT; if it is another one, Error with ECANCELED or ExistsError."""
        name, data = self._key(key), self._pack(value)
        version = c.c_uint64()
        _errors.check(
            call(
                self._handle(), lib.aq_ekv_put, name, len(name), data,
                len(data), expect, version,
            )
        )
        return version.value

    def add(self, key: Any, operand: int = 1, how: str = "sum") -> int:
        """Adds a number to the one that is there, or keeps the smaller (min)
        or larger one (max), in one step; what is there then."""
        name, result = self._key(key), c.c_int64()
        if self._values is not int:
            raise TypeError("add() is for stores with values=int")
        _errors.check(
            call(
                self._handle(), lib.aq_ekv_add, name, len(name), _HOWS[how],
                operand, result,
            )
        )
        return result.value

    def append(self, key: Any, data: bytes) -> int:
        """Bytes at the end of the value; its length then."""
        name, total = self._key(key), c.c_uint64()
        if self._values is not bytes:
            raise TypeError("append() is for stores with values=bytes")
        _errors.check(
            call(
                self._handle(), lib.aq_ekv_append, name, len(name), bytes(data),
                len(data), total,
            )
        )
        return total.value

    def __getitem__(self, key: Any) -> Any:
        return self.lookup(key)[0]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.put(key, value)

    def __delitem__(self, key: Any) -> None:
        name = self._key(key)
        err = call(self._handle(), lib.aq_ekv_delete, name, len(name), ANY)
        if err == _ENOENT:
            raise KeyError(key)
        _errors.check(err)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As of dict, in one step for all processes."""
        while True:
            try:
                return self[key]
            except KeyError:
                pass
            try:
                self.put(key, default, ABSENT)
                return default
            except _errors.ExistsError:
                pass

    # ---- several keys ----------------------------------------------------

    def _many(self, ops: Any) -> None:
        _errors.check(call(self._handle(), lib.aq_ekv_many, ops, len(ops)))

    def get_many(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """Those of the keys that are there, with their values; in groups."""
        out: dict[Any, Any] = {}
        for group in _groups(keys):
            names = [self._key(key) for key in group]
            room = c.create_string_buffer(len(group) * _VALUE_BYTES)
            ops = (_structs.EkvOp * len(group))()
            for i, name in enumerate(names):
                at = c.addressof(room) + i * _VALUE_BYTES
                ops[i] = _structs.EkvOp(
                    verb=_GET, key=name, key_bytes=len(name), value=at,
                    value_bytes=_VALUE_BYTES,
                )
            self._many(ops)
            for key, op in zip(group, ops):
                if op.error == _EMSGSIZE:
                    try:
                        out[key] = self[key]
                    except KeyError:
                        pass
                elif op.error != _ENOENT:
                    _errors.check(op.error)
                    data = c.string_at(op.value, op.value_bytes)
                    out[key] = self._unpack(data)
        return out

    def update(self, other: Any = (), /, **more: Any) -> None:
        """As of dict; in groups, so in fewer messages than one by one."""
        pairs = other.items() if hasattr(other, "keys") else other
        for group in _groups(chain(pairs, more.items())):
            data = [(self._key(k), self._pack(v)) for k, v in group]
            ops = (_structs.EkvOp * len(data))()
            for i, (name, value) in enumerate(data):
                ops[i] = _structs.EkvOp(
                    verb=_PUT, key=name, key_bytes=len(name),
                    value=c.cast(c.c_char_p(value), c.c_void_p),
                    value_bytes=len(value), version=ANY,
                )
            self._many(ops)
            for op in ops:
                _errors.check(op.error)

    def add_many(
        self, operands: Mapping[Any, int], how: str = "sum"
    ) -> dict[Any, int]:
        """As add() of each of them; in groups."""
        if self._values is not int:
            raise TypeError("add_many() is for stores with values=int")
        out: dict[Any, int] = {}
        for group in _groups(operands.items()):
            names = [self._key(key) for key, _ in group]
            ops = (_structs.EkvOp * len(group))()
            for i, (name, (_, number)) in enumerate(zip(names, group)):
                ops[i] = _structs.EkvOp(
                    verb=_ADD, key=name, key_bytes=len(name), how=_HOWS[how],
                    number=number,
                )
            self._many(ops)
            for (key, _), op in zip(group, ops):
                _errors.check(op.error)
                out[key] = op.number
        return out

    # ---- all of them -----------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        handle = self._handle()
        scan, entry = c.c_void_p(), _structs.EkvEntry()
        _errors.check(call(handle, lib.aq_ekv_scan_begin, scan))
        try:
            while True:
                with handle.lock:
                    if handle.pointer is None:
                        handle.refuse()
                    err = lib.aq_ekv_scan_next(scan, entry)
                if err == _ENODATA:
                    return
                _errors.check(err)
                key = c.string_at(entry.key, entry.key_bytes)
                yield key.decode() if self._keys is str else key
        finally:
            lib.aq_ekv_scan_end(scan)

    def items(self) -> Any:
        """Pairs; what is deleted meanwhile is left out."""
        return _Items(self)

    def values(self) -> Any:
        return _Values(self)

    def stat(self) -> tuple[int, int, int]:
        """Keys, bytes in use and blocks, now."""
        out = _structs.EkvStat()
        _errors.check(call(self._handle(), lib.aq_ekv_stat, out))
        return out.keys, out.used_bytes, out.blocks

    def __len__(self) -> int:
        return self.stat()[0]

    def close(self) -> None:
        """Ends the connections of all threads; the store stays."""
        self._finalizer()

    def __repr__(self) -> str:
        return f"<aquifer.elastic.Ekv {self._path!r}>"


class _Items:
    def __init__(self, store: Ekv) -> None:
        self._store = store

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[Any]:
        for key in self._store:
            try:
                yield key, self._store[key]
            except KeyError:
                pass

    def __contains__(self, pair: Any) -> bool:
        key, value = pair
        try:
            return bool(self._store[key] == value)
        except KeyError:
            return False


class _Values(_Items):
    def __iter__(self) -> Iterator[Any]:
        return (value for _, value in super().__iter__())

    def __contains__(self, value: Any) -> bool:
        return any(value == mine for mine in self)


def _groups(things: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(things)
    while group := list(islice(rest, _GROUP)):
        yield group


def _close_all(handles: list[Exclusive]) -> None:
    while handles:
        handles.pop().close()


def _reopen(job: Job, path: str, keys: type, values: type) -> Ekv:
    return Ekv(job, path, keys=keys, values=values)
