# SPDX-License-Identifier: Apache-2.0
"""Many operations of a table in one call of the library.

The operations of a call are an array of struct aq_kv_op. It is filled column by
column, by slices of an array of words: a Python statement for each operation
would take longer than the operation.
"""
from __future__ import annotations

import ctypes as c
import errno
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from . import _errors
from . import _library as lib
from ._data import address_of, key_bytes, value_memory
from ._structs import KvOp

if TYPE_CHECKING:
    from ._table import Table

_GET, _PUT, _DEL = range(3)
KEY_MAX = 250
COUNT_MAX = 1024  # operations of one call
SLOT_MIN = 128  # room for a value whose length is not known yet
BIG = 64 << 10  # such a value is not copied, and no room is kept for it
_ROOM_MAX = 4 << 20  # for the values of one call of get
_WORDS = c.sizeof(KvOp) // 8
_INTS = c.sizeof(KvOp) // 4
_ERR = KvOp.err.offset // 4
_ENOENT, _EMSGSIZE = -errno.ENOENT, -errno.EMSGSIZE


class _Ops:
    """The operations of one call, all of one kind."""

    def __init__(self, kind: int, keys: list[bytes]) -> None:
        self.keys = keys
        self._blob = b"".join(keys)
        self._words = array("Q", bytes(len(keys) * c.sizeof(KvOp)))
        if kind != _GET:
            ints = memoryview(self._words).cast("B").cast("I")
            ints[KvOp.kind.offset // 4 :: _INTS] = array("I", [kind]) * len(keys)
        lengths = array("Q", map(len, keys))
        self.column(KvOp.key, _starts(self._blob, lengths))
        self.column(KvOp.key_len, lengths)

    def column(self, field: Any, values: array[int]) -> None:
        self._words[field.offset // 8 :: _WORDS] = values

    def run(self, table: Table) -> list[int]:
        """Does them and returns what each ended with, 0 or -errno."""
        handle = table._handle
        with handle.lock:
            client = handle.pointer
            if client is None:
                client = handle.revive()
            address, _ = self._words.buffer_info()
            try:
                err = lib.aq_kv_batch(client, address, len(self.keys))
            except BaseException:
                handle.abandon()
                raise
            if err:
                words = lib.aq_last_error().decode("utf-8", "replace")
                # Operations may still be under way in memory that is ours.
                handle.abandon()
                raise _errors.make(err, words or _errors.words_of(err))
        ints = memoryview(self._words).cast("B").cast("i")
        return ints[_ERR::_INTS].tolist()

    def lengths(self) -> list[int]:
        return self._words[KvOp.len.offset // 8 :: _WORDS].tolist()


def _starts(blob: bytes, lengths: Iterable[int]) -> array[int]:
    """The address of each of the parts that the bytes were joined from."""
    starts = array("Q", accumulate(lengths, initial=address_of(blob)))
    starts.pop()
    return starts


def _keys(keys: Iterable[Any]) -> list[bytes]:
    """All of them, before anything is done: a key that cannot be is nobody's
    half-done batch."""
    if isinstance(keys, (str, bytes, bytearray)):
        raise TypeError("keys are given as a list or another iterable, not one")
    found = [key if type(key) is bytes else key_bytes(key) for key in keys]
    for key in found:
        if not 1 <= len(key) <= KEY_MAX:
            raise _errors.make(
                errno.EINVAL,
                f"a key has 1 to {KEY_MAX} bytes, not {len(key)}",
            )
    return found


def _raise_first(errors: list[tuple[bytes, int]], what: str, count: int) -> None:
    """The first failure, in words that say how many there were."""
    if not errors:
        return
    key, code = errors[0]
    failure = _errors.make(
        code,
        f"{len(errors)} of {count} {what} failed, the first that of "
        f"{key!r}: {_errors.words_of(code)}",
    )
    failure.failed = [key for key, _ in errors]
    raise failure


# ---- get ------------------------------------------------------------------


def get_many(table: Table, keys: Iterable[Any], default: Any) -> list[Any]:
    wanted = _keys(keys)
    values: list[Any] = [default] * len(wanted)
    failed: list[tuple[bytes, int]] = []
    places, longer = list(range(len(wanted))), []
    while places:
        slot = table._slot_bytes
        count = min(COUNT_MAX, _ROOM_MAX // slot)
        part, places = places[:count], places[count:]
        for place, err, found in _get([wanted[i] for i in part], slot, table, part):
            if not err:
                values[place] = found
            elif err == _EMSGSIZE and found <= BIG:
                # Once more, with room for values of that size.
                table._slot_bytes = max(table._slot_bytes, found)
                longer.append(place)
            elif err == _EMSGSIZE:
                values[place] = table.get(wanted[place], default)
            elif err != _ENOENT:
                failed.append((wanted[place], err))
        if not places:
            places, longer = longer, []
    _raise_first(failed, "gets", len(wanted))
    return values


def _get(
    keys: list[bytes], slot: int, table: Table, places: list[int]
) -> Iterator[tuple[int, int, Any]]:
    """For each place: how it ended, and the value, or its length."""
    ops = _Ops(_GET, keys)
    room = bytearray(slot * len(keys))
    base = c.addressof(c.c_char.from_buffer(room))
    ops.column(KvOp.value, array("Q", range(base, base + len(room), slot)))
    ops.column(KvOp.value_len, array("Q", [slot]) * len(keys))
    errors = ops.run(table)
    view = memoryview(room)
    start = 0
    for place, err, length in zip(places, errors, ops.lengths()):
        if err:
            yield place, err, length
        else:
            yield place, 0, view[start : start + length].tobytes()
        start += slot


# ---- put ------------------------------------------------------------------


def put_many(
    table: Table, pairs: Iterable[tuple[Any, Any]], expire_at_ms: int
) -> None:
    given = list(pairs)
    keys = _keys([key for key, _ in given])
    values = [value for _, value in given]
    for value in values:
        if type(value) is not bytes:
            value_memory(value)  # a wrong one is told before any is stored
    failed: list[tuple[bytes, int]] = []
    for at in range(0, len(keys), COUNT_MAX):
        part = keys[at : at + COUNT_MAX]
        ops = _Ops(_PUT, part)
        lengths, addresses, held = _place(values[at : at + COUNT_MAX])
        ops.column(KvOp.value, addresses)
        ops.column(KvOp.value_len, lengths)
        if expire_at_ms:
            ops.column(KvOp.expire_at_ms, array("Q", [expire_at_ms]) * len(part))
        errors = ops.run(table)
        if any(errors):
            failed += [(k, e) for k, e in zip(part, errors) if e]
        del held
    _raise_first(failed, "puts", len(keys))


def _place(values: list[Any]) -> tuple[array[int], array[int], Any]:
    """Lengths and addresses of values, and what to hold meanwhile. Small ones
    are copied together, which is cheaper than to ask each where it is."""
    if set(map(type, values)) == {bytes}:
        lengths = array("Q", map(len, values))
        if max(lengths) < BIG:
            blob = b"".join(values)
            return lengths, _starts(blob, lengths), blob
    memory = [value_memory(value) for value in values]
    lengths = array("Q", [length for _, length, _ in memory])
    addresses = [
        a if isinstance(a, int) else address_of(a) for a, _, _ in memory
    ]
    return lengths, array("Q", addresses), memory


# ---- delete ---------------------------------------------------------------


def delete_many(table: Table, keys: Iterable[Any]) -> int:
    todo, deleted = iter(_keys(keys)), 0
    failed: list[tuple[bytes, int]] = []
    count = 0
    while part := list(islice(todo, COUNT_MAX)):
        count += len(part)
        errors = _Ops(_DEL, part).run(table)
        deleted += errors.count(0)
        if any(errors):
            failed += [(k, e) for k, e in zip(part, errors) if e not in (0, _ENOENT)]
    _raise_first(failed, "deletes", count)
    return deleted
