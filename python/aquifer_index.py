# SPDX-License-Identifier: Apache-2.0
"""Indexes in far memory, through libaquifer.

    import aquifer_index
    with aquifer_index.open("orders") as index:
        index["2024-05-17/0042"] = b"ann"
        for key, value in index.items("2024-05", "2024-06"):
            print(key, value)

Keys and values are bytes; text is taken as UTF-8, and a number as a key is its
eight bytes, which keep the order. An index belongs to one thread at a time.
Failures raise IndexingError with the library's words; a missing key raises
KeyError where a dictionary would.
"""
import ctypes
import errno
import os

__all__ = ["Index", "IndexingError", "create", "drop", "open"]

_c = ctypes
_ROOM = 4096
_PAGE = 256
_STOP = 1
KINDS = {"tree": 0, "versions": 1}


class IndexingError(OSError):
    """A call of libaquifer failed; errno says how."""


class _Options(_c.Structure):
    _fields_ = [("kind", _c.c_uint32), ("flags", _c.c_uint32),
                ("value_max", _c.c_uint32), ("clients", _c.c_uint32),
                ("failure_ms", _c.c_uint32), ("node", _c.c_char_p),
                ("key_max", _c.c_uint32), ("node_bytes", _c.c_uint32),
                ("locks", _c.c_uint32), ("reserved0", _c.c_uint32),
                ("size_bytes", _c.c_uint64), ("keys", _c.c_uint64),
                ("versions", _c.c_uint64), ("reserved", _c.c_uint64 * 4)]


class _Range(_c.Structure):
    _fields_ = [("from_", _c.c_char_p), ("from_len", _c.c_size_t),
                ("to", _c.c_char_p), ("to_len", _c.c_size_t),
                ("is_after", _c.c_bool), ("reserved", _c.c_uint8 * 7)]


_PAIR_FN = _c.CFUNCTYPE(_c.c_int, _c.c_void_p, _c.c_void_p, _c.c_size_t,
                        _c.c_void_p, _c.c_size_t)


def _load():
    lib = _c.CDLL(os.environ.get("AQUIFER_LIB") or "libaquifer.so.1")
    p, s = _c.c_void_p, _c.c_size_t
    key = [p, _c.c_char_p, s]
    calls = {
        "aq_rack_open": [_c.c_char_p, _c.POINTER(p)],
        "aq_index_create": [p, _c.c_char_p, _c.POINTER(_Options),
                            _c.POINTER(p)],
        "aq_index_open": [p, _c.c_char_p, _c.POINTER(p)],
        "aq_index_drop": [p, _c.c_char_p],
        "aq_index_client_open": [p, p, _c.POINTER(p)],
        "aq_index_get": key + [_c.c_char_p, s, _c.POINTER(s)],
        "aq_index_put": key + [_c.c_char_p, s],
        "aq_index_del": key,
        "aq_index_scan": [p, _c.POINTER(_Range), _PAIR_FN, p],
    }
    for name, types in calls.items():
        getattr(lib, name).argtypes = types
    for name in ("aq_rack_close", "aq_index_close", "aq_index_client_close"):
        getattr(lib, name).argtypes = [p]
        getattr(lib, name).restype = None
    lib.aq_last_error.restype = _c.c_char_p
    return lib


_lib = None


def _library():
    global _lib
    if _lib is None:
        _lib = _load()
    return _lib


def _check(err):
    if err:
        words = _library().aq_last_error() or b""
        raise IndexingError(-err, words.decode("utf-8", "replace") or
                            os.strerror(-err))


def _bytes(data):
    if isinstance(data, int):
        return data.to_bytes(8, "big")
    return data.encode() if isinstance(data, str) else bytes(data)


class Index:
    """One client of one index; use open() or create()."""

    def __init__(self):
        self._rack = self._index = self._client = None

    def close(self):
        """Gives everything back; the index stays."""
        lib = _library()
        if self._client:
            lib.aq_index_client_close(self._client)
        if self._index:
            lib.aq_index_close(self._index)
        if self._rack:
            lib.aq_rack_close(self._rack)
        self._rack = self._index = self._client = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _call(self, name, key, *more):
        if not self._client:
            raise IndexingError(errno.EBADF, "the index is closed")
        key = _bytes(key)
        return getattr(_library(), name)(self._client, key, len(key), *more)

    def get(self, key, default=None):
        """The value, or the default when there is none."""
        buf, length = _c.create_string_buffer(_ROOM), _c.c_size_t()
        err = self._call("aq_index_get", key, buf, _ROOM, _c.byref(length))
        if err == -errno.ENOENT:
            return default
        _check(err)
        return buf.raw[:length.value]

    def _page(self, start, end, is_after):
        """The next pairs, at most _PAGE of them."""
        found = []

        def each(_user, key, key_len, value, value_len):
            found.append((_c.string_at(key, key_len),
                          _c.string_at(value, value_len)))
            return _STOP if len(found) == _PAGE else 0

        span = _Range(from_=start, from_len=len(start), to=end,
                      to_len=len(end or b""), is_after=is_after)
        err = _library().aq_index_scan(self._client, _c.byref(span),
                                       _PAIR_FN(each), None)
        _check(0 if err == _STOP else err)
        return found

    def items(self, start=b"", end=None):
        """Pairs from `start` on and before `end`, in order; no snapshot."""
        start, is_after = _bytes(start), False
        end = None if end is None else _bytes(end)
        while True:
            found = self._page(start, end, is_after)
            yield from found
            if len(found) < _PAGE:
                return
            start, is_after = found[-1][0], True

    def __iter__(self):
        return (k for k, _ in self.items())

    def __getitem__(self, key):
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key, value):
        value = _bytes(value)
        _check(self._call("aq_index_put", key, value, len(value)))

    def __delitem__(self, key):
        err = self._call("aq_index_del", key)
        if err == -errno.ENOENT:
            raise KeyError(key)
        _check(err)

    def __contains__(self, key):
        return self.get(key) is not None


def _open(rack, make):
    """`make` fills in the index; all is given back when something fails."""
    lib, out = _library(), Index()
    rack_handle, index, client = (_c.c_void_p() for _ in range(3))
    try:
        _check(lib.aq_rack_open(rack.encode() if rack else None,
                                _c.byref(rack_handle)))
        out._rack = rack_handle
        _check(make(lib, rack_handle, _c.byref(index)))
        out._index = index
        _check(lib.aq_index_client_open(index, None, _c.byref(client)))
        out._client = client
    except BaseException:
        out.close()
        raise
    return out


def open(name, rack=None):
    """An index that there is."""
    return _open(rack, lambda lib, r, out:
                 lib.aq_index_open(r, name.encode(), out))


def create(name, kind="tree", rack=None, **options):
    """A new one; options are those of struct aq_index_options."""
    o = _Options(kind=KINDS[kind], **options)
    return _open(rack, lambda lib, r, out:
                 lib.aq_index_create(r, name.encode(), _c.byref(o), out))


def drop(name, rack=None):
    """Deletes it, for everybody."""
    lib, handle = _library(), _c.c_void_p()
    _check(lib.aq_rack_open(rack.encode() if rack else None,
                            _c.byref(handle)))
    try:
        _check(lib.aq_index_drop(handle, name.encode()))
    finally:
        lib.aq_rack_close(handle)
