# SPDX-License-Identifier: Apache-2.0
"""Indexes: keys in order, with scans, or numbers with versions."""
from __future__ import annotations

import ctypes as c
import errno
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union, overload

from . import _errors, _structs
from . import _library as lib
from ._data import Buffer, Key, key_bytes, number, value_bytes
from ._handle import Exclusive, Shared
from ._options import KINDS

if TYPE_CHECKING:
    from ._rack import Rack

_T = TypeVar("_T")
_PAGE = 512  # pairs that a call of the library brings
_STOP = 1
_SCRATCH = 4096  # more than any value has
_COUNT = 1  # AQ_INDEX_COUNT
_ENOENT = -errno.ENOENT


def _range(start: bytes, end: Optional[bytes], is_after: bool) -> _structs.IndexRange:
    return _structs.IndexRange(
        from_=start,
        from_len=len(start),
        to=end,
        to_len=len(end or b""),
        is_after=is_after,
    )


def key_of_number(n: int) -> bytes:
    """A number from 0 to 2**64 - 1 as a key: its eight bytes, the highest
    first, which have the order of the numbers. Indexes of the kind "versions"
    have such keys only."""
    return number("a key's number", n).to_bytes(8, "big")


def number_of_key(key: bytes) -> int:
    """The number that key_of_number made a key of."""
    if len(key) != 8:
        raise ValueError(f"the key of a number has 8 bytes, not {len(key)}")
    return int.from_bytes(key, "big")


class Index:
    """An index, from Rack.create_index or Rack.open_index.

    Keys and values are as those of a Table, with up to key_max and value_max
    bytes; numbers become keys by key_of_number(). A scan is no snapshot, but
    misses no key that is there all the time. Threads may share an index and
    wait for each other; threads that each open it do not.
    """

    def __init__(self, rack: Rack, name: str, handle: Shared) -> None:
        self._rack = rack
        self._name = name
        self._index = handle

        def open_client() -> int:
            out = c.c_void_p()
            _errors.check(handle.call(lib.aq_index_client_open, None, out))
            assert out.value is not None
            return out.value

        self._handle = Exclusive(
            f"index {name}", open_client(), lib.aq_index_client_close, handle
        )
        self._finalizer = weakref.finalize(self, handle.close)
        self._scratch = memoryview(bytearray(_SCRATCH))
        self._scratch_address = c.addressof(c.c_char.from_buffer(self._scratch))
        self._length = c.c_size_t()
        self._is_tree = self.info()["kind"] == "tree"

    # ---- life ------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    def close(self) -> None:
        """Gives everything back; the index stays. Twice is allowed."""
        self._index.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = " closed" if self._index.pointer is None else ""
        return f"<aquifer.Index {self._name!r}{state}>"

    def _call(self, function: Any, *arguments: Any) -> int:
        """Returns what the library returned, 0 or ENOENT; the caller has the
        lock."""
        client = self._handle.pointer
        if client is None:
            client = self._handle.revive()
        err: int = function(client, *arguments)
        if err and err != _ENOENT:
            _errors.fail(err)
        return err

    # ---- one key ---------------------------------------------------------

    def _get(self, key: Any) -> Optional[bytes]:
        data = key_bytes(key)
        with self._handle.lock:
            if self._call(
                lib.aq_index_get,
                data,
                len(data),
                self._scratch_address,
                _SCRATCH,
                self._length,
            ):
                return None
            return self._scratch[: self._length.value].tobytes()

    @overload
    def get(self, key: Key) -> Optional[bytes]: ...

    @overload
    def get(self, key: Key, default: _T) -> Union[bytes, _T]: ...

    def get(self, key: Key, default: Any = None) -> Any:
        """The value, or the default when there is none."""
        value = self._get(key)
        return default if value is None else value

    def put(self, key: Key, value: Buffer) -> None:
        """Stores it, over what there is."""
        data, content = key_bytes(key), value_bytes(value)
        with self._handle.lock:
            err = self._call(
                lib.aq_index_put, data, len(data), content, len(content)
            )
            _errors.check(err)

    def delete(self, key: Key) -> bool:
        """Removes it; whether there was one. An index of the kind "versions"
        cannot tell and says True."""
        data = key_bytes(key)
        with self._handle.lock:
            return not self._call(lib.aq_index_del, data, len(data))

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

    def __contains__(self, key: Key) -> bool:
        return self._get(key) is not None

    # ---- scans -----------------------------------------------------------

    def _page(
        self, start: bytes, end: Optional[bytes], is_after: bool, has_values: bool
    ) -> list[tuple[bytes, bytes]]:
        """The next pairs, at most _PAGE of them."""
        found: list[tuple[bytes, bytes]] = []
        failure: list[BaseException] = []
        string_at = c.string_at

        def each(
            _user: object, key: int, key_len: int, value: int, value_len: int
        ) -> int:
            try:
                content = string_at(value, value_len) if has_values else b""
                found.append((string_at(key, key_len), content))
                return _STOP if len(found) == _PAGE else 0
            except BaseException as e:  # the library must not be jumped over
                failure.append(e)
                return _STOP

        callback = lib.INDEX_PAIR_FN(each)
        span = _range(start, end, is_after)
        with self._handle.lock:
            err = self._handle.lend(
                lambda client: int(lib.aq_index_scan(client, span, callback, None))
            )
            if failure:
                raise failure[0]
            if err != _STOP:
                _errors.check(err)
        return found

    def _scan(
        self, start: Optional[Key], end: Optional[Key], has_values: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        at = b"" if start is None else key_bytes(start)
        to = None if end is None else key_bytes(end)
        return self._pairs(at, to, has_values)

    def _pairs(
        self, at: bytes, to: Optional[bytes], has_values: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        is_after = False
        while True:
            found = self._page(at, to, is_after, has_values)
            yield from found
            if len(found) < _PAGE:
                return
            at, is_after = found[-1][0], True

    def items(
        self, start: Optional[Key] = None, end: Optional[Key] = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from `start` on and before `end`, in the order of keys."""
        return self._scan(start, end, True)

    def keys(
        self, start: Optional[Key] = None, end: Optional[Key] = None
    ) -> Iterator[bytes]:
        """Keys from `start` on and before `end`, in order."""
        return (key for key, _ in self._scan(start, end, False))

    def values(
        self, start: Optional[Key] = None, end: Optional[Key] = None
    ) -> Iterator[bytes]:
        """Values of keys from `start` on and before `end`."""
        return (value for _, value in self._scan(start, end, True))

    def __iter__(self) -> Iterator[bytes]:
        return self.keys()

    def __len__(self) -> int:
        """How many keys there are. An index of versions is read for this."""
        if not self._is_tree:
            return int(self.check()["keys"])
        return self.count()

    def __bool__(self) -> bool:
        """True; an index that has no keys is an index, too."""
        return True

    # ---- ranges that are added up ----------------------------------------

    def _reduce(
        self, start: Optional[Key], end: Optional[Key], flags: int
    ) -> _structs.IndexReduced:
        at = b"" if start is None else key_bytes(start)
        span = _range(at, None if end is None else key_bytes(end), False)
        reduced = _structs.IndexReduced()
        with self._handle.lock:
            _errors.check(self._call(lib.aq_index_reduce, span, flags, reduced))
        return reduced

    def count(self, start: Optional[Key] = None, end: Optional[Key] = None) -> int:
        """How many keys of a tree are there from `start` on and before `end`; the
        memory node counts them."""
        return int(self._reduce(start, end, _COUNT).count)

    def reduce(
        self, start: Optional[Key] = None, end: Optional[Key] = None
    ) -> dict[str, Any]:
        """Count, sum, min and max of the values of a range of a tree, which the
        memory node adds up: the members of struct aq_index_reduced. Values are
        numbers, int.to_bytes(8, "little", signed=True); others raise EDOM."""
        return _structs.as_dict(self._reduce(start, end, 0))

    # ---- the whole index -------------------------------------------------

    def info(self) -> dict[str, Any]:
        """What the index is: the members of struct aq_index_info."""
        info = _structs.IndexInfo()
        self._index.call(lib.aq_index_get_info, info)
        return {**_structs.as_dict(info), "kind": KINDS[info.kind]}

    def check(self) -> dict[str, Any]:
        """Reads everything and verifies every invariant: the members of struct
        aq_index_report. In use, changes under way may be reported as bad."""
        report = _structs.IndexReport()
        with self._handle.lock:
            _errors.check(self._call(lib.aq_index_check, report))
        return _structs.as_dict(report)
