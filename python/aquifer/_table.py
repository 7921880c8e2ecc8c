# SPDX-License-Identifier: Apache-2.0
"""Tables of keys and values."""
from __future__ import annotations

import ctypes as c
import errno
import time
import weakref
from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping
from collections.abc import ValuesView
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union, overload

from . import _batch, _errors, _scan, _structs
from . import _library as lib
from ._data import Buffer, Key, fresh_bytes, key_bytes, number, value_memory
from ._handle import Exclusive, Shared
from ._options import table_options

if TYPE_CHECKING:
    from ._rack import Rack

_T = TypeVar("_T")
_NX, _XX, _KEEP_TTL = 1, 2, 4
_DIRECT_READS = 1
_DEPTH = 64  # reads of a batch that are under way together
_SCRATCH = 4096  # values up to this need one call
_ENOENT, _EEXIST, _EMSGSIZE = -errno.ENOENT, -errno.EEXIST, -errno.EMSGSIZE
_aq_kv_get, _aq_kv_put = lib.aq_kv_get, lib.aq_kv_put


class Table(MutableMapping[Key, bytes]):
    """A table, from Rack.create_table or Rack.open_table; it is a mapping.

    Keys have 1 to 250 bytes: bytes, another buffer, or a str, which is taken as
    its UTF-8. Values are bytes or another buffer, up to 64 MiB, and come back
    as bytes, and so do keys. Everything else is a TypeError.

    Operations on one key are linearizable; what goes over the whole table
    (iteration, items, clear) is no snapshot and may see a key twice that others
    move meanwhile. Threads may share a table and wait for each other; threads
    that each open it do not.
    """

    def __init__(
        self, rack: Rack, name: str, handle: Shared, direct_reads: bool
    ) -> None:
        self._rack = rack
        self._name = name
        self._table = handle
        options = _structs.KvClientOptions(
            depth=_DEPTH, flags=_DIRECT_READS if direct_reads else 0
        )

        def open_client() -> int:
            out = c.c_void_p()
            _errors.check(handle.call(lib.aq_kv_client_open, options, out))
            assert out.value is not None
            return out.value

        self._handle = Exclusive(
            f"table {name}",
            open_client(),
            lib.aq_kv_client_close,
            handle,
            open_client,
        )
        self._finalizer = weakref.finalize(self, handle.close)
        self._scratch = memoryview(bytearray(_SCRATCH))
        self._scratch_address = c.addressof(c.c_char.from_buffer(self._scratch))
        self._length = c.c_size_t()
        self._slot_bytes = _batch.SLOT_MIN

    __eq__ = object.__eq__  # a comparison would read both tables
    __hash__ = object.__hash__

    # ---- life ------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    def close(self) -> None:
        """Gives everything back; the table stays. Twice is allowed."""
        self._table.close()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " closed" if self._table.pointer is None else ""
        return f"<aquifer.Table {self._name!r}{state}>"

    def _call(self, function: Any, *arguments: Any) -> int:
        """Returns what the library returned, also errors."""
        handle = self._handle
        with handle.lock:
            client = handle.pointer
            if client is None:
                client = handle.revive()
            result: int = function(client, *arguments)
            return result

    def _check(self, function: Any, *arguments: Any) -> None:
        handle = self._handle
        with handle.lock:
            _errors.check(self._call(function, *arguments))

    # ---- one key ---------------------------------------------------------

    def _get(self, key: Any) -> Optional[bytes]:
        key = key if type(key) is bytes else key_bytes(key)
        handle = self._handle
        length = self._length
        with handle.lock:
            client = handle.pointer
            if client is None:
                client = handle.revive()
            err = _aq_kv_get(
                client, key, len(key), self._scratch_address, _SCRATCH, length
            )
            if not err:
                return self._scratch[: length.value].tobytes()
            while err == _EMSGSIZE:
                value = fresh_bytes(length.value)
                err = _aq_kv_get(client, key, len(key), value, len(value), length)
                if not err:  # it may have become shorter meanwhile
                    return value[: length.value]
            if err != _ENOENT:
                _errors.fail(err)
            return None

    @overload
    def get(self, key: Key) -> Optional[bytes]: ...

    @overload
    def get(self, key: Key, default: _T) -> Union[bytes, _T]: ...

    def get(self, key: Key, default: Any = None) -> Any:
        """The value, or the default when there is none."""
        value = self._get(key)
        return default if value is None else value

    def put(
        self,
        key: Key,
        value: Buffer,
        *,
        nx: bool = False,
        xx: bool = False,
        keep_ttl: bool = False,
        ttl: Optional[float] = None,
        expire_at_ms: int = 0,
    ) -> bool:
        """Stores it; False when nx or xx forbid that.

        nx: only if there is no such key; xx: only if there is one.
        ttl: seconds that the key lives; expire_at_ms: when it ends, in
            milliseconds since 1970; keep_ttl: as it was. Otherwise: for ever.
        """
        key = key if type(key) is bytes else key_bytes(key)
        address, length, _held = value_memory(value)
        options = None
        if nx or xx or keep_ttl or ttl is not None or expire_at_ms:
            if ttl is not None:
                expire_at_ms = _end_of(ttl)
            options = _structs.KvPutOptions(
                flags=(_NX if nx else 0)
                | (_XX if xx else 0)
                | (_KEEP_TTL if keep_ttl else 0),
                expire_at_ms=number("expire_at_ms", expire_at_ms),
            )
        handle = self._handle
        with handle.lock:
            client = handle.pointer
            if client is None:
                client = handle.revive()
            err = _aq_kv_put(client, key, len(key), address, length, options)
            if err:
                if err == _EEXIST and nx or err == _ENOENT and xx:
                    return False
                _errors.fail(err)
            return True

    def delete(self, key: Key) -> bool:
        """Removes it; whether there was one."""
        data = key_bytes(key)
        handle = self._handle
        with handle.lock:
            err = self._call(lib.aq_kv_del, data, len(data))
            if err and err != _ENOENT:
                _errors.fail(err)
            return not err

    def _on_key(self, key: Any, function: Any, *arguments: Any) -> None:
        """A call about a key that has to be there."""
        data = key_bytes(key)
        with self._handle.lock:
            err = self._call(function, data, len(data), *arguments)
            if err == _ENOENT:
                raise KeyError(key)
            _errors.check(err)

    def compare_and_swap(self, key: Key, expected: Buffer, desired: Buffer) -> bool:
        """Replaces the value if it is `expected`; whether it was. KeyError
        when there is none. The time to live stays."""
        was, was_len, _held = value_memory(expected)
        new, new_len, _held_too = value_memory(desired)
        swapped = c.c_bool()
        self._on_key(key, lib.aq_kv_cas, was, was_len, new, new_len, swapped)
        return swapped.value

    def increment(self, key: Key, add: int = 1) -> int:
        """Adds to a value that is a decimal number, as in Redis, and returns
        the sum; a missing key is 0. The time to live stays."""
        if not -(2**63) <= add < 2**63:
            raise ValueError(f"{add} has more than 64 bits")
        result = c.c_int64()
        self._on_key(key, lib.aq_kv_incr, add, result)
        return result.value

    def expiry(self, key: Key) -> Optional[int]:
        """When the key ends, in milliseconds since 1970; None: never."""
        at = c.c_uint64()
        self._on_key(key, lib.aq_kv_expiry, at)
        return at.value or None

    def expire(
        self, key: Key, ttl: Optional[float] = None, *, at_ms: int = 0
    ) -> None:
        """The key ends in `ttl` seconds, or at a time in milliseconds since
        1970; without both, never."""
        end = number("at_ms", at_ms) if ttl is None else _end_of(ttl)
        self._on_key(key, lib.aq_kv_expire, end)

    # ---- a mapping -------------------------------------------------------

    def __getitem__(self, key: Key) -> bytes:
        value = self._get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Key, value: Buffer) -> None:
        self.put(key, value)

    def __delitem__(self, key: Key) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        data = key_bytes(key)
        with self._handle.lock:
            err = self._call(lib.aq_kv_get, data, len(data), None, 0, self._length)
            if err not in (0, _ENOENT, _EMSGSIZE):
                _errors.fail(err)
            return err != _ENOENT

    def __len__(self) -> int:
        """How many keys there are, with expired ones that nobody has met."""
        count = c.c_uint64()
        self._check(lib.aq_kv_count, count)
        return count.value

    def __iter__(self) -> Iterator[bytes]:
        return _scan.keys(self)

    def items(self) -> ItemsView[Any, bytes]:
        """All pairs; values are read together with their keys."""
        return _scan.Items(self)

    def values(self) -> ValuesView[bytes]:
        return _scan.Values(self)

    def setdefault(self, key: Key, default: Any = None) -> bytes:
        """The value; where there is none, the default is stored."""
        value_memory(default)  # a wrong one is told in any case
        while True:
            value = self._get(key)
            if value is not None:
                return value
            if self.put(key, default, nx=True):
                return bytes(memoryview(default))

    def update(self, *others: Any, **pairs: Any) -> None:
        """As of a dict; in batches."""
        for other in others:
            self.put_many(other)
        if pairs:
            self.put_many(pairs)

    def clear(self) -> None:
        """Deletes all keys that it meets, in batches."""
        for page in _scan.pages(self, _scan.KEYS):
            self.delete_many(key for key, _ in page)

    # ---- several at once -------------------------------------------------

    def get_many(self, keys: Iterable[Key], default: Any = None) -> list[Any]:
        """The values of these keys, in their order; the default for those that
        are not there. The library has many reads under way at a time."""
        return _batch.get_many(self, keys, default)

    def put_many(
        self,
        pairs: Union[Mapping[Any, Buffer], Iterable[tuple[Key, Buffer]]],
        *,
        ttl: Optional[float] = None,
    ) -> None:
        """Stores all pairs, in their order where keys are the same; the
        library does several at a time. Each is stored by itself: when some
        fail, the others are stored. The exception is the first failure; its
        `failed` are the keys that failed."""
        end = 0 if ttl is None else _end_of(ttl)
        given = pairs.items() if isinstance(pairs, Mapping) else pairs
        _batch.put_many(self, given, end)

    def delete_many(self, keys: Iterable[Key]) -> int:
        """Removes these keys; how many of them there were."""
        return _batch.delete_many(self, keys)

    # ---- the whole table -------------------------------------------------

    def info(self) -> dict[str, Any]:
        """What the table is, as it was when it was opened: the members of
        struct aq_kv_info."""
        info = _structs.KvInfo()
        self._table.call(lib.aq_kv_get_info, info)
        return _structs.as_dict(info)

    def health(self) -> dict[str, Any]:
        """How its copies are: the members of struct aq_kv_health."""
        health = _structs.KvHealth()
        self._check(lib.aq_kv_get_health, health)
        return _structs.as_dict(health)

    def check(self) -> dict[str, Any]:
        """Reads everything and verifies every invariant: the members of struct
        aq_kv_report. In use, changes under way may be reported as bad."""
        report = _structs.KvReport()
        self._check(lib.aq_kv_check, report)
        return _structs.as_dict(report)

    def repair(self) -> None:
        """Repairs what clients left behind whose connections are gone."""
        self._check(lib.aq_kv_repair)

    def resize(
        self,
        *,
        capacity: int = 0,
        extent_bytes: int = 0,
        shards: Union[int, str] = 0,
        copies: int = 0,
    ) -> None:
        """Makes it larger or smaller, or gives it other shards and copies,
        while others use it; what is not given stays. This is also how a table
        that has lost a copy gets another."""
        options = table_options(capacity, shards, copies, extent_bytes, True, {})
        self._check(lib.aq_kv_resize, options)


def _end_of(ttl: float) -> int:
    """Milliseconds since 1970; at least now, because 0 would be never."""
    return max(1, int((time.time() + ttl) * 1000))
