# SPDX-License-Identifier: Apache-2.0
"""Tables of keys and values in far memory, through libaquifer.

    import aquifer_kv
    with aquifer_kv.open("users") as table:
        table["ann"] = b"42"
        print(table["ann"], table.incr("visits"), len(table))

Keys and values are bytes; text is taken as UTF-8. A table belongs to one thread
at a time. Failures raise KvError with the library's words; a missing key raises
KeyError where a dictionary would.
"""
import ctypes
import ctypes.util
import errno
import os

__all__ = ["KvError", "Table", "create", "drop", "open"]

_c = ctypes
_KEEP, _STORE, _DELETE = range(3)


class KvError(OSError):
    """A call of libaquifer failed; errno says how."""


class _Options(_c.Structure):
    _fields_ = [("capacity", _c.c_uint64), ("extent_bytes", _c.c_uint64),
                ("entry_bytes", _c.c_uint32), ("entries_per_row", _c.c_uint32),
                ("rows_per_lock", _c.c_uint32), ("clients", _c.c_uint32),
                ("chunk_bytes", _c.c_uint32), ("hash", _c.c_uint32),
                ("locality_milli", _c.c_uint32), ("failure_ms", _c.c_uint32),
                ("flags", _c.c_uint32), ("lock_max", _c.c_uint32),
                ("node", _c.c_char_p), ("seed", _c.c_uint64),
                ("reserved", _c.c_uint64 * 4)]


class _PutOptions(_c.Structure):
    _fields_ = [("flags", _c.c_uint32), ("reserved", _c.c_uint32),
                ("expire_at_ms", _c.c_uint64)]


class _Item(_c.Structure):
    _fields_ = [("key", _c.c_void_p), ("key_len", _c.c_size_t),
                ("value", _c.c_void_p), ("value_len", _c.c_size_t),
                ("expire_at_ms", _c.c_uint64)]


_ITEM_FN = _c.CFUNCTYPE(_c.c_int, _c.POINTER(_Item), _c.c_void_p)
_NX, _XX = 1, 2
_SCAN_KEYS = 1
_SCAN_ROWS = 256
_FIRST_ROOM = 4096


def _load():
    path = os.environ.get("AQUIFER_LIB") or "libaquifer.so.1"
    lib = _c.CDLL(path)
    p, s, u64 = _c.c_void_p, _c.c_size_t, _c.c_uint64
    key = [p, _c.c_char_p, s]
    calls = {
        "aq_rack_open": [_c.c_char_p, _c.POINTER(p)],
        "aq_kv_create": [p, _c.c_char_p, _c.POINTER(_Options), _c.POINTER(p)],
        "aq_kv_open": [p, _c.c_char_p, _c.POINTER(p)],
        "aq_kv_drop": [p, _c.c_char_p],
        "aq_kv_client_open": [p, p, _c.POINTER(p)],
        "aq_kv_get": key + [_c.c_char_p, s, _c.POINTER(s)],
        "aq_kv_put": key + [_c.c_char_p, s, _c.POINTER(_PutOptions)],
        "aq_kv_del": key,
        "aq_kv_cas": key + [_c.c_char_p, s, _c.c_char_p, s,
                            _c.POINTER(_c.c_bool)],
        "aq_kv_incr": key + [_c.c_int64, _c.POINTER(_c.c_int64)],
        "aq_kv_expiry": key + [_c.POINTER(u64)],
        "aq_kv_expire": key + [u64],
        "aq_kv_count": [p, _c.POINTER(u64)],
        "aq_kv_scan": [p, _c.POINTER(u64), u64, _c.c_uint, _ITEM_FN, p],
    }
    for name, types in calls.items():
        getattr(lib, name).argtypes = types
    for name in ("aq_rack_close", "aq_kv_close", "aq_kv_client_close"):
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
        raise KvError(-err, words.decode("utf-8", "replace") or
                      os.strerror(-err))


def _bytes(data):
    return data.encode() if isinstance(data, str) else bytes(data)


class Table:
    """One client of one table; use open() or create()."""

    def __init__(self, rack, kv, client):
        self._rack, self._kv, self._client = rack, kv, client

    def close(self):
        """Gives everything back; the table stays."""
        lib = _library()
        if self._rack:
            lib.aq_kv_client_close(self._client)
            lib.aq_kv_close(self._kv)
            lib.aq_rack_close(self._rack)
        self._rack = self._kv = self._client = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def _call(self, name, key, *more):
        if not self._client:
            raise KvError(errno.EBADF, "the table is closed")
        key = _bytes(key)
        return getattr(_library(), name)(self._client, key, len(key), *more)

    def get(self, key, default=None):
        """The value, or the default when there is none."""
        room = _FIRST_ROOM
        while True:
            buf = _c.create_string_buffer(room)
            length = _c.c_size_t()
            err = self._call("aq_kv_get", key, buf, room, _c.byref(length))
            if err == -errno.ENOENT:
                return default
            if err == -errno.EMSGSIZE:
                room = length.value
                continue
            _check(err)
            return buf.raw[:length.value]

    def put(self, key, value, *, nx=False, xx=False, expire_at_ms=0):
        """Stores it; False when nx or xx forbid that."""
        value = _bytes(value)
        options = _PutOptions(flags=(_NX if nx else 0) | (_XX if xx else 0),
                              expire_at_ms=expire_at_ms)
        err = self._call("aq_kv_put", key, value, len(value),
                         _c.byref(options))
        if err == -(errno.EEXIST if nx else errno.ENOENT) and (nx or xx):
            return False
        _check(err)
        return True

    def delete(self, key):
        """Whether there was one."""
        err = self._call("aq_kv_del", key)
        if err == -errno.ENOENT:
            return False
        _check(err)
        return True

    def cas(self, key, expected, desired):
        """Replaces `expected`; whether it was the value. None: no key."""
        expected, desired = _bytes(expected), _bytes(desired)
        swapped = _c.c_bool()
        err = self._call("aq_kv_cas", key, expected, len(expected), desired,
                         len(desired), _c.byref(swapped))
        if err == -errno.ENOENT:
            return None
        _check(err)
        return swapped.value

    def incr(self, key, add=1):
        """Adds to a decimal number and returns it; a missing key is 0."""
        result = _c.c_int64()
        _check(self._call("aq_kv_incr", key, add, _c.byref(result)))
        return result.value

    def expire(self, key, at_ms):
        """The key ends then (milliseconds since 1970); 0: never."""
        err = self._call("aq_kv_expire", key, at_ms)
        if err == -errno.ENOENT:
            raise KeyError(key)
        _check(err)

    def items(self, keys_only=False):
        """Pairs of key and value, row by row; not a snapshot."""
        cursor = _c.c_uint64()
        while True:
            found = []

            def each(item, _user):
                i = item.contents
                found.append((_c.string_at(i.key, i.key_len),
                              None if keys_only
                              else _c.string_at(i.value, i.value_len)))
                return 0

            _check(_library().aq_kv_scan(
                self._client, _c.byref(cursor), _SCAN_ROWS,
                _SCAN_KEYS if keys_only else 0, _ITEM_FN(each), None))
            yield from found
            if cursor.value == 0:
                return

    def keys(self):
        return (k for k, _ in self.items(keys_only=True))

    __iter__ = keys

    def __getitem__(self, key):
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key, value):
        self.put(key, value)

    def __delitem__(self, key):
        if not self.delete(key):
            raise KeyError(key)

    def __contains__(self, key):
        return self.get(key) is not None

    def __len__(self):
        count = _c.c_uint64()
        _check(_library().aq_kv_count(self._client, _c.byref(count)))
        return count.value


def _with_rack(rack, make):
    lib, handle = _library(), _c.c_void_p()
    _check(lib.aq_rack_open(rack.encode() if rack else None,
                            _c.byref(handle)))
    try:
        return make(lib, handle)
    except BaseException:
        lib.aq_rack_close(handle)
        raise


def _attach(lib, rack, kv):
    client = _c.c_void_p()
    err = lib.aq_kv_client_open(kv, None, _c.byref(client))
    if err:
        words = lib.aq_last_error().decode("utf-8", "replace")
        lib.aq_kv_close(kv)
        raise KvError(-err, words)
    return Table(rack, kv, client)


def open(name, rack=None):  # pylint: disable=redefined-builtin
    """The table of that name."""
    def make(lib, handle):
        kv = _c.c_void_p()
        _check(lib.aq_kv_open(handle, name.encode(), _c.byref(kv)))
        return _attach(lib, handle, kv)
    return _with_rack(rack, make)


def create(name, capacity, rack=None, **options):
    """Makes a table; options as in struct aq_kv_options."""
    def make(lib, handle):
        kv = _c.c_void_p()
        o = _Options(capacity=capacity, **options)
        _check(lib.aq_kv_create(handle, name.encode(), _c.byref(o),
                                _c.byref(kv)))
        return _attach(lib, handle, kv)
    return _with_rack(rack, make)


def drop(name, rack=None):
    """Removes the table for everybody."""
    def make(lib, handle):
        _check(lib.aq_kv_drop(handle, name.encode()))
        lib.aq_rack_close(handle)
    _with_rack(rack, make)
