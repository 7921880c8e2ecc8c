# SPDX-License-Identifier: Apache-2.0
"""libaquifer.so.1: where it is, and its functions.

Functions have the names of <aquifer/aquifer.h>, <aquifer/kv.h>,
<aquifer/index.h>, <aquifer/walk.h>, <aquifer/elastic.h> and <aquifer/shared.h>.
While one of them runs, other Python threads do.
"""
from __future__ import annotations

import ctypes as c
import os
import sysconfig
from pathlib import Path
from typing import Any, Iterator

from ._structs import (
    AsyncOptions,
    EkvEntry,
    EkvOp,
    EkvStat,
    ElasticOptions,
    Event,
    IndexClientOptions,
    IndexInfo,
    IndexOptions,
    IndexRange,
    IndexReduced,
    IndexReport,
    Item,
    JobOptions,
    KvClientOptions,
    KvHealth,
    KvInfo,
    KvItem,
    KvOptions,
    KvPutOptions,
    KvReport,
    Name,
    RegionOptions,
    RegionStat,
    Response,
    SharedInfo,
    SharedOptions,
    Taken,
    WalkInfo,
    WalkOptions,
    WalkResult,
    WalkShape,
    WatchOptions,
)

_SONAME = "libaquifer.so.1"
_MAJOR = "1"


def _own_folders() -> Iterator[Path]:
    """The library folders of the prefix that this package is installed in:
    PREFIX/lib for PREFIX/lib/python3*/dist-packages/aquifer."""
    package = Path(__file__).resolve().parent
    for child, folder in zip(package.parents, package.parents[1:]):
        if child.name.startswith("python") and folder.name.startswith("lib"):
            yield folder / (sysconfig.get_config_var("MULTIARCH") or ".")
            yield folder
            yield folder.parent / "lib64"
            return


def _candidates() -> Iterator[str]:
    given = os.environ.get("AQUIFER_LIB")
    if given:
        yield given
        return
    for folder in _own_folders():
        if (folder / _SONAME).exists():
            yield str(folder / _SONAME)
    yield _SONAME


def _load() -> c.CDLL:
    if c.sizeof(c.c_void_p) != 8:
        raise ImportError("aquifer needs a 64-bit Python")
    for path in _candidates():
        try:
            found = c.CDLL(path)
            break
        except OSError as e:
            reason = str(e)
    else:
        raise ImportError(
            f"{reason}. Install libaquifer1, or `make install`; AQUIFER_LIB "
            f"may name the library's file"
        )
    found.aq_version.restype = c.c_char_p
    version = found.aq_version().decode()
    if version.split(".")[0] != _MAJOR:
        raise ImportError(
            f"{path} has interface {version}; this package is for {_MAJOR}.x"
        )
    return found


_lib = _load()

REGION_FN = c.CFUNCTYPE(
    c.c_int, c.c_char_p, c.POINTER(RegionStat), c.c_void_p
)
KV_ITEM_FN = c.CFUNCTYPE(c.c_int, c.POINTER(KvItem), c.c_void_p)
INDEX_PAIR_FN = c.CFUNCTYPE(
    c.c_int, c.c_void_p, c.c_void_p, c.c_size_t, c.c_void_p, c.c_size_t
)

NAME_FN = c.CFUNCTYPE(c.c_int, c.POINTER(Name), c.c_void_p)

_ptr, _out, _str = c.c_void_p, c.POINTER(c.c_void_p), c.c_char_p
_size, _u32, _u64, _uint = c.c_size_t, c.c_uint32, c.c_uint64, c.c_uint
_ref = c.POINTER


def _f(name: str, result: Any, *arguments: Any) -> Any:
    function: Any = getattr(_lib, name)
    function.restype = result
    function.argtypes = arguments
    return function


aq_strerror = _f("aq_strerror", _str, c.c_int)
aq_last_error = _f("aq_last_error", _str)
aq_version = _f("aq_version", _str)

aq_rack_open = _f("aq_rack_open", c.c_int, _str, _out)
aq_rack_close = _f("aq_rack_close", None, _ptr)
aq_rack_set_deadline = _f("aq_rack_set_deadline", c.c_int, _ptr, _u32)
aq_rack_deadline = _f("aq_rack_deadline", _u32, _ptr)
aq_rack_set_token = _f("aq_rack_set_token", c.c_int, _ptr, _str)

aq_region_create = _f(
    "aq_region_create", c.c_int, _ptr, _str, _u64, _ref(RegionOptions), _out
)
aq_region_open = _f("aq_region_open", c.c_int, _ptr, _str, _uint, _out)
aq_region_close = _f("aq_region_close", None, _ptr)
aq_region_delete = _f("aq_region_delete", c.c_int, _ptr, _str)
aq_region_resize = _f("aq_region_resize", c.c_int, _ptr, _u64)
aq_region_stat = _f("aq_region_stat", c.c_int, _ptr, _ref(RegionStat))
aq_region_size = _f("aq_region_size", _u64, _ptr)
aq_region_each = _f("aq_region_each", c.c_int, _ptr, REGION_FN, _ptr)
aq_read = _f("aq_read", c.c_int, _ptr, _u64, _ptr, _size)
aq_write = _f("aq_write", c.c_int, _ptr, _u64, _ptr, _size)
aq_cas = _f("aq_cas", c.c_int, _ptr, _u64, _u64, _u64, _ref(_u64))
aq_faa = _f("aq_faa", c.c_int, _ptr, _u64, _u64, _ref(_u64))

aq_async_open = _f("aq_async_open", c.c_int, _ptr, _ref(AsyncOptions), _out)
aq_async_close = _f("aq_async_close", None, _ptr)
aq_async_add = _f("aq_async_add", c.c_int, _ptr, _ptr)
aq_async_read = _f(
    "aq_async_read", c.c_int64, _ptr, _u32, _u64, _ptr, _size
)
aq_async_write = _f(
    "aq_async_write", c.c_int64, _ptr, _u32, _u64, _ptr, _size
)
aq_poll_create = _f("aq_poll_create", c.c_int, _ptr, _out)
aq_poll_destroy = _f("aq_poll_destroy", None, _ptr)
aq_poll_add = _f("aq_poll_add", c.c_int, _ptr, c.c_int64)
aq_poll_wait = _f(
    "aq_poll_wait", c.c_int, _ptr, _ref(Response), _uint, _u32
)

aq_kv_create = _f(
    "aq_kv_create", c.c_int, _ptr, _str, _ref(KvOptions), _out
)
aq_kv_open = _f("aq_kv_open", c.c_int, _ptr, _str, _out)
aq_kv_close = _f("aq_kv_close", None, _ptr)
aq_kv_drop = _f("aq_kv_drop", c.c_int, _ptr, _str)
aq_kv_get_info = _f("aq_kv_get_info", None, _ptr, _ref(KvInfo))
aq_kv_client_open = _f(
    "aq_kv_client_open", c.c_int, _ptr, _ref(KvClientOptions), _out
)
aq_kv_client_close = _f("aq_kv_client_close", None, _ptr)
aq_kv_get = _f(
    "aq_kv_get", c.c_int, _ptr, _str, _size, _ptr, _size, _ref(_size)
)
aq_kv_put = _f(
    "aq_kv_put", c.c_int, _ptr, _str, _size, _ptr, _size, _ref(KvPutOptions)
)
aq_kv_del = _f("aq_kv_del", c.c_int, _ptr, _str, _size)
aq_kv_cas = _f(
    "aq_kv_cas", c.c_int, _ptr, _str, _size, _ptr, _size, _ptr, _size,
    _ref(c.c_bool),
)
aq_kv_incr = _f(
    "aq_kv_incr", c.c_int, _ptr, _str, _size, c.c_int64, _ref(c.c_int64)
)
aq_kv_expiry = _f("aq_kv_expiry", c.c_int, _ptr, _str, _size, _ref(_u64))
aq_kv_expire = _f("aq_kv_expire", c.c_int, _ptr, _str, _size, _u64)
aq_kv_batch = _f("aq_kv_batch", c.c_int, _ptr, _ptr, _size)
aq_kv_scan = _f(
    "aq_kv_scan", c.c_int, _ptr, _ref(_u64), _u64, _uint, KV_ITEM_FN, _ptr
)
aq_kv_count = _f("aq_kv_count", c.c_int, _ptr, _ref(_u64))
aq_kv_repair = _f("aq_kv_repair", c.c_int, _ptr)
aq_kv_get_health = _f("aq_kv_get_health", c.c_int, _ptr, _ref(KvHealth))
aq_kv_resize = _f("aq_kv_resize", c.c_int, _ptr, _ref(KvOptions))
aq_kv_check = _f("aq_kv_check", c.c_int, _ptr, _ref(KvReport))

aq_index_create = _f(
    "aq_index_create", c.c_int, _ptr, _str, _ref(IndexOptions), _out
)
aq_index_open = _f("aq_index_open", c.c_int, _ptr, _str, _out)
aq_index_close = _f("aq_index_close", None, _ptr)
aq_index_drop = _f("aq_index_drop", c.c_int, _ptr, _str)
aq_index_get_info = _f("aq_index_get_info", None, _ptr, _ref(IndexInfo))
aq_index_client_open = _f(
    "aq_index_client_open", c.c_int, _ptr, _ref(IndexClientOptions), _out
)
aq_index_client_close = _f("aq_index_client_close", None, _ptr)
aq_index_get = _f(
    "aq_index_get", c.c_int, _ptr, _str, _size, _ptr, _size, _ref(_size)
)
aq_index_put = _f(
    "aq_index_put", c.c_int, _ptr, _str, _size, _ptr, _size
)
aq_index_del = _f("aq_index_del", c.c_int, _ptr, _str, _size)
aq_index_scan = _f(
    "aq_index_scan", c.c_int, _ptr, _ref(IndexRange), INDEX_PAIR_FN, _ptr
)
aq_index_reduce = _f(
    "aq_index_reduce", c.c_int, _ptr, _ref(IndexRange), c.c_uint32, _ref(IndexReduced)
)
aq_index_check = _f("aq_index_check", c.c_int, _ptr, _ref(IndexReport))

aq_walk_load = _f(
    "aq_walk_load", c.c_int, _ptr, _str, _ref(WalkOptions), _out
)
aq_walk_load_bytes = _f(
    "aq_walk_load_bytes", c.c_int, _ptr, _ptr, _size, _ref(WalkOptions), _out
)
aq_walk_make = _f(
    "aq_walk_make", c.c_int, _ptr, _ref(WalkShape), _ref(WalkOptions), _out
)
aq_walk_close = _f("aq_walk_close", None, _ptr)
aq_walk_info = _f("aq_walk_info", None, _ptr, _ref(WalkInfo))
aq_walk_run = _f(
    "aq_walk_run", c.c_int, _ptr, _ptr, _u64, _ptr, _size, _ref(WalkResult)
)

aq_job_create = _f("aq_job_create", c.c_int, _ptr, _str, _ref(JobOptions))
aq_job_renew = _f("aq_job_renew", c.c_int, _ptr, _str, _ref(_u32))
aq_name_make = _f("aq_name_make", c.c_int, _ptr, _str)
aq_name_move = _f("aq_name_move", c.c_int, _ptr, _str, _str)
aq_name_remove = _f("aq_name_remove", c.c_int, _ptr, _str, c.c_bool)
aq_name_stat = _f("aq_name_stat", c.c_int, _ptr, _str, _ref(Name))
aq_name_flush = _f("aq_name_flush", c.c_int, _ptr, _str, _u32)
aq_name_flush_frozen = _f(
    "aq_name_flush_frozen", c.c_int, _ptr, _str, _u32
)
aq_name_load = _f("aq_name_load", c.c_int, _ptr, _str, c.c_bool, _u32)
aq_name_each = _f("aq_name_each", c.c_int, _ptr, _str, NAME_FN, _ptr)
aq_file_open = _f(
    "aq_file_open", c.c_int, _ptr, _str, _ref(ElasticOptions), _out
)
aq_file_close = _f("aq_file_close", None, _ptr)
aq_file_append = _f("aq_file_append", c.c_int, _ptr, _ptr, _size, _ref(_u64))
aq_file_read = _f(
    "aq_file_read", c.c_int, _ptr, _u64, _ptr, _size, _ref(_size)
)
aq_file_size = _f("aq_file_size", c.c_int, _ptr, _ref(_u64))
aq_file_seal = _f("aq_file_seal", c.c_int, _ptr)
aq_file_record_max = _f("aq_file_record_max", _u64, _ptr)
aq_queue_open = _f(
    "aq_queue_open", c.c_int, _ptr, _str, _ref(ElasticOptions), _out
)
aq_queue_close = _f("aq_queue_close", None, _ptr)
aq_queue_put = _f("aq_queue_put", c.c_int, _ptr, _str, _size, _u32)
aq_queue_put_many = _f(
    "aq_queue_put_many", c.c_int, _ptr, _ref(Item), _uint, _u32,
    _ref(_uint),
)
aq_queue_get = _f(
    "aq_queue_get", c.c_int, _ptr, _ptr, _size, _ref(_size), _u32
)
aq_queue_take = _f(
    "aq_queue_take", c.c_int, _ptr, _ptr, _size, _ref(_size),
    _ref(Taken), _u32,
)
aq_queue_ack = _f("aq_queue_ack", c.c_int, _ptr, _ref(Taken))
aq_queue_length = _f("aq_queue_length", c.c_int, _ptr, _ref(_u64))
aq_queue_seal = _f("aq_queue_seal", c.c_int, _ptr)
aq_ekv_open = _f(
    "aq_ekv_open", c.c_int, _ptr, _str, _ref(ElasticOptions), _out
)
aq_ekv_close = _f("aq_ekv_close", None, _ptr)
aq_ekv_get = _f(
    "aq_ekv_get", c.c_int, _ptr, _str, _size, _ptr, _size, _ref(_size),
    _ref(_u64),
)
aq_ekv_put = _f(
    "aq_ekv_put", c.c_int, _ptr, _str, _size, _str, _size, _u64, _ref(_u64)
)
aq_ekv_delete = _f("aq_ekv_delete", c.c_int, _ptr, _str, _size, _u64)
aq_ekv_add = _f(
    "aq_ekv_add", c.c_int, _ptr, _str, _size, _uint, c.c_int64,
    _ref(c.c_int64),
)
aq_ekv_append = _f(
    "aq_ekv_append", c.c_int, _ptr, _str, _size, _str, _size, _ref(_u64)
)
aq_ekv_many = _f("aq_ekv_many", c.c_int, _ptr, _ref(EkvOp), _uint)
aq_ekv_scan_begin = _f("aq_ekv_scan_begin", c.c_int, _ptr, _out)
aq_ekv_scan_next = _f("aq_ekv_scan_next", c.c_int, _ptr, _ref(EkvEntry))
aq_ekv_scan_end = _f("aq_ekv_scan_end", None, _ptr)
aq_ekv_stat = _f("aq_ekv_stat", c.c_int, _ptr, _ref(EkvStat))
aq_watch_open = _f(
    "aq_watch_open", c.c_int, _ptr, _str, _ref(WatchOptions), _out
)
aq_watch_close = _f("aq_watch_close", None, _ptr)
aq_watch_next = _f("aq_watch_next", c.c_int, _ptr, _ref(Event), _u32)
aq_watch_fd = _f("aq_watch_fd", c.c_int, _ptr)

aq_shared_create_with = _f(
    "aq_shared_create_with", c.c_int, _ptr, _str, _u64, _ref(SharedOptions)
)
aq_shared_delete = _f("aq_shared_delete", c.c_int, _ptr, _str)
aq_shared_allow_part = _f(
    "aq_shared_allow_part", c.c_int, _ptr, _str, _str, _u64, _u64, c.c_int
)
aq_shared_open = _f("aq_shared_open", c.c_int, _ptr, _str, _uint, _out)
aq_shared_close = _f("aq_shared_close", None, _ptr)
aq_shared_addr = _f("aq_shared_addr", _ptr, _ptr)
aq_shared_size = _f("aq_shared_size", _u64, _ptr)
aq_shared_flush = _f("aq_shared_flush", c.c_int, _ptr, _u64, _u64)
aq_shared_fetch = _f("aq_shared_fetch", c.c_int, _ptr, _u64, _u64, c.c_int)
aq_shared_stat = _f("aq_shared_stat", c.c_int, _ptr, _ref(SharedInfo))
