# SPDX-License-Identifier: Apache-2.0
"""The structures of the library's headers, member by member.

Names are those of the headers without `aq_`: KvOptions is struct aq_kv_options.
"""
import ctypes as c
from typing import Any, Dict


class RegionOptions(c.Structure):
    _fields_ = [
        ("nodes", c.c_uint32),
        ("flags", c.c_uint32),
        ("stripe_bytes", c.c_uint64),
        ("node", c.c_char_p),
        ("part_of", c.c_char_p),
        ("reserved_more", c.c_uint64 * 3),
    ]


class RegionStat(c.Structure):
    _fields_ = [
        ("size_bytes", c.c_uint64),
        ("stripe_bytes", c.c_uint64),
        ("nodes", c.c_uint32),
        ("id", c.c_uint32),
        ("epoch", c.c_uint32),
        ("nodes_missing", c.c_uint32),
    ]


class AsyncOptions(c.Structure):
    _fields_ = [
        ("requests", c.c_uint32),
        ("batch", c.c_uint32),
        ("flush_us", c.c_uint32),
        ("flags", c.c_uint32),
        ("read_bytes", c.c_uint64),
        ("write_bytes", c.c_uint64),
        ("engine", c.c_char_p),
        ("reserved_more", c.c_uint64 * 4),
    ]


class Response(c.Structure):
    _fields_ = [
        ("id", c.c_int64),
        ("err", c.c_int32),
        ("reserved", c.c_uint32),
    ]


class KvOptions(c.Structure):
    _fields_ = [
        ("capacity", c.c_uint64),
        ("extent_bytes", c.c_uint64),
        ("entry_bytes", c.c_uint32),
        ("entries_per_row", c.c_uint32),
        ("rows_per_lock", c.c_uint32),
        ("clients", c.c_uint32),
        ("chunk_bytes", c.c_uint32),
        ("hash", c.c_uint32),
        ("locality_milli", c.c_uint32),
        ("failure_ms", c.c_uint32),
        ("flags", c.c_uint32),
        ("lock_max", c.c_uint32),
        ("node", c.c_char_p),
        ("seed", c.c_uint64),
        ("shards", c.c_uint32),
        ("copies", c.c_uint32),
        ("max_bytes", c.c_uint64),
        ("reserved", c.c_uint64 * 2),
    ]


class KvInfo(c.Structure):
    _fields_ = [
        ("rows", c.c_uint64),
        ("capacity", c.c_uint64),
        ("locks", c.c_uint64),
        ("extent_bytes", c.c_uint64),
        ("size_bytes", c.c_uint64),
        ("entries_per_row", c.c_uint32),
        ("entry_bytes", c.c_uint32),
        ("row_bytes", c.c_uint32),
        ("rows_per_lock", c.c_uint32),
        ("clients", c.c_uint32),
        ("chunk_bytes", c.c_uint32),
        ("hash", c.c_uint32),
        ("locality_milli", c.c_uint32),
        ("failure_ms", c.c_uint32),
        ("inline_bytes", c.c_uint32),
        ("masked_atomics", c.c_bool),
        ("locks_on_device", c.c_bool),
        ("reserved0", c.c_uint16),
        ("shards", c.c_uint32),
        ("copies", c.c_uint32),
        ("generation", c.c_uint32),
        ("grows", c.c_bool),
        ("reserved1", c.c_uint8 * 7),
        ("max_bytes", c.c_uint64),
        ("reserved", c.c_uint64 * 3),
    ]


class KvClientOptions(c.Structure):
    _fields_ = [
        ("depth", c.c_uint32),
        ("covering_bytes", c.c_uint32),
        ("cache_bytes", c.c_uint32),
        ("search", c.c_uint32),
        ("deadline_ms", c.c_uint32),
        ("flags", c.c_uint32),
        ("reserved", c.c_uint64 * 4),
    ]


class KvPutOptions(c.Structure):
    _fields_ = [
        ("flags", c.c_uint32),
        ("reserved", c.c_uint32),
        ("expire_at_ms", c.c_uint64),
    ]


class KvOp(c.Structure):
    _fields_ = [
        ("kind", c.c_uint32),
        ("flags", c.c_uint32),
        ("key", c.c_void_p),
        ("key_len", c.c_size_t),
        ("value", c.c_void_p),
        ("value_len", c.c_size_t),
        ("expire_at_ms", c.c_uint64),
        ("user", c.c_void_p),
        ("err", c.c_int),
        ("len", c.c_size_t),
        ("fn", c.c_void_p),
        ("fn_user", c.c_void_p),
        ("reserved", c.c_uint64 * 8),
    ]


class KvItem(c.Structure):
    _fields_ = [
        ("key", c.c_void_p),
        ("key_len", c.c_size_t),
        ("value", c.c_void_p),
        ("value_len", c.c_size_t),
        ("expire_at_ms", c.c_uint64),
    ]


class KvHealth(c.Structure):
    _fields_ = [
        ("generation", c.c_uint32),
        ("shards", c.c_uint32),
        ("copies", c.c_uint32),
        ("shards_lost", c.c_uint32),
        ("shards_single", c.c_uint32),
        ("is_growing", c.c_bool),
        ("reserved0", c.c_uint8 * 3),
        ("capacity", c.c_uint64),
        ("reserved", c.c_uint64 * 4),
    ]


class KvReport(c.Structure):
    _fields_ = [
        ("rows", c.c_uint64),
        ("used", c.c_uint64),
        ("expired", c.c_uint64),
        ("inline_entries", c.c_uint64),
        ("extent_entries", c.c_uint64),
        ("bad_rows", c.c_uint64),
        ("bad_entries", c.c_uint64),
        ("duplicates", c.c_uint64),
        ("locks_held", c.c_uint64),
        ("bad_extents", c.c_uint64),
        ("leaked_extents", c.c_uint64),
        ("shared_extents", c.c_uint64),
        ("count_error", c.c_uint64),
        ("clients", c.c_uint64),
        ("reserved", c.c_uint64 * 8),
    ]


class IndexOptions(c.Structure):
    _fields_ = [
        ("kind", c.c_uint32),
        ("flags", c.c_uint32),
        ("value_max", c.c_uint32),
        ("clients", c.c_uint32),
        ("failure_ms", c.c_uint32),
        ("node", c.c_char_p),
        ("key_max", c.c_uint32),
        ("node_bytes", c.c_uint32),
        ("locks", c.c_uint32),
        ("reserved0", c.c_uint32),
        ("size_bytes", c.c_uint64),
        ("keys", c.c_uint64),
        ("versions", c.c_uint64),
        ("reserved", c.c_uint64 * 4),
    ]


class IndexInfo(c.Structure):
    _fields_ = [
        ("kind", c.c_uint32),
        ("key_max", c.c_uint32),
        ("value_max", c.c_uint32),
        ("node_bytes", c.c_uint32),
        ("entries_per_leaf", c.c_uint32),
        ("entries_per_inner", c.c_uint32),
        ("clients", c.c_uint32),
        ("failure_ms", c.c_uint32),
        ("locks", c.c_uint32),
        ("locks_on_device", c.c_bool),
        ("locks_at_switch", c.c_bool),
        ("reserved0", c.c_uint8 * 2),
        ("nodes", c.c_uint64),
        ("size_bytes", c.c_uint64),
        ("keys", c.c_uint64),
        ("reserved", c.c_uint64 * 3),
    ]


class IndexClientOptions(c.Structure):
    _fields_ = [
        ("deadline_ms", c.c_uint32),
        ("cache", c.c_uint32),
        ("flags", c.c_uint32),
        ("reserved0", c.c_uint32),
        ("reserved", c.c_uint64 * 3),
    ]


class IndexReduced(c.Structure):
    _fields_ = [
        ("count", c.c_uint64),
        ("sum", c.c_int64),
        ("min", c.c_int64),
        ("max", c.c_int64),
        ("sum_is_cut", c.c_bool),
        ("reserved0", c.c_uint8 * 7),
        ("reserved", c.c_uint64 * 4),
    ]


class IndexRange(c.Structure):
    _fields_ = [
        ("from_", c.c_char_p),
        ("from_len", c.c_size_t),
        ("to", c.c_char_p),
        ("to_len", c.c_size_t),
        ("is_after", c.c_bool),
        ("reserved", c.c_uint8 * 7),
    ]


class IndexReport(c.Structure):
    _fields_ = [
        ("keys", c.c_uint64),
        ("levels", c.c_uint64),
        ("leaves", c.c_uint64),
        ("inner_nodes", c.c_uint64),
        ("versions", c.c_uint64),
        ("bad_nodes", c.c_uint64),
        ("bad_entries", c.c_uint64),
        ("bad_links", c.c_uint64),
        ("unfinished", c.c_uint64),
        ("locks_held", c.c_uint64),
        ("clients", c.c_uint64),
        ("chunks", c.c_uint64),
        ("chunks_taken", c.c_uint64),
        ("reserved", c.c_uint64 * 8),
    ]


def as_dict(structure: c.Structure) -> Dict[str, Any]:
    """The members that have a meaning."""
    return {
        name: getattr(structure, name)
        for name, _ in structure._fields_
        if not name.startswith("reserved")
    }


class WalkOptions(c.Structure):
    _fields_ = [
        ("flags", c.c_uint32),
        ("iterations", c.c_uint32),
        ("reserved_more", c.c_uint64 * 4),
    ]


class WalkShape(c.Structure):
    _fields_ = [
        (name, c.c_uint32)
        for name in (
            "kind",
            "flags",
            "key_at",
            "key_bytes",
            "key_stride",
            "value_at",
            "value_bytes",
            "value_stride",
            "next_at",
            "left_at",
            "right_at",
            "count_at",
            "count_bytes",
            "fanout",
            "child_at",
            "child_stride",
            "leaf_at",
            "leaf_bytes",
        )
    ] + [
        ("leaf_mask", c.c_uint64),
        ("leaf_value", c.c_uint64),
        ("levels", c.c_uint32),
        ("scan_pairs", c.c_uint32),
    ]


class WalkInfo(c.Structure):
    _fields_ = [
        ("name", c.c_char * 25),
        ("stores", c.c_uint8),
        ("reserved", c.c_uint8 * 6),
        ("hash", c.c_uint64),
        ("instructions", c.c_uint32),
        ("longest", c.c_uint32),
        ("load_from", c.c_int32),
        ("load_bytes", c.c_uint32),
        ("pad_bytes", c.c_uint32),
        ("reserved_more", c.c_uint32),
    ]


class WalkResult(c.Structure):
    _fields_ = [
        ("user", c.c_void_p),
        ("iterations", c.c_uint64),
        ("at", c.c_uint64),
        ("err", c.c_int32),
        ("code", c.c_uint32),
        ("where", c.c_uint32),
        ("requests", c.c_uint32),
        ("crossings", c.c_uint32),
        ("carried", c.c_uint32),
    ]


class ElasticOptions(c.Structure):
    _fields_ = [
        ("flags", c.c_uint32),
        ("block_bytes", c.c_uint64),
        ("bound", c.c_uint64),
        ("copies", c.c_uint64),
        ("reserved_more", c.c_uint64 * 3),
    ]


class JobOptions(c.Structure):
    _fields_ = [
        ("lease_ms", c.c_uint32),
        ("on_expiry", c.c_char_p),
        ("plan", c.c_char_p),
        ("reserved_more", c.c_uint64 * 4),
    ]


class Name(c.Structure):
    _fields_ = [
        ("path", c.c_char * 512),
        ("kind", c.c_uint32),
        ("is_ready", c.c_bool),
        ("used_bytes", c.c_uint64),
        ("reserved_more", c.c_uint64 * 4),
    ]


class Item(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("len_bytes", c.c_size_t),
    ]


class Taken(c.Structure):
    _fields_ = [
        ("block", c.c_uint64),
        ("name", c.c_uint64),
    ]


class EkvEntry(c.Structure):
    _fields_ = [
        ("key", c.c_void_p),
        ("key_bytes", c.c_size_t),
        ("value_bytes", c.c_size_t),
        ("version", c.c_uint64),
    ]


class EkvOp(c.Structure):
    _fields_ = [
        ("verb", c.c_uint),
        ("error", c.c_int),
        ("key", c.c_char_p),
        ("key_bytes", c.c_size_t),
        ("value", c.c_void_p),
        ("value_bytes", c.c_size_t),
        ("version", c.c_uint64),
        ("how", c.c_uint),
        ("number", c.c_int64),
        ("reserved", c.c_uint64 * 4),
    ]


class EkvStat(c.Structure):
    _fields_ = [
        ("keys", c.c_uint64),
        ("used_bytes", c.c_uint64),
        ("blocks", c.c_uint64),
        ("reserved", c.c_uint64 * 5),
    ]


class Event(c.Structure):
    _fields_ = [
        ("kind", c.c_int),
        ("value", c.c_uint64),
        ("length_bytes", c.c_size_t),
        ("data", c.c_void_p),
        ("data_bytes", c.c_size_t),
        ("block", c.c_uint64),
        ("reserved", c.c_uint64 * 4),
    ]


class WatchOptions(c.Structure):
    _fields_ = [
        ("events", c.c_uint32),
        ("reserved_more", c.c_uint64 * 4),
    ]


class SharedOptions(c.Structure):
    _fields_ = [
        ("flags", c.c_uint32),
        ("copies", c.c_uint32),
        ("reserved_more", c.c_uint64 * 4),
    ]


class SharedInfo(c.Structure):
    """struct aq_shared_info"""

    _fields_ = [
        ("size_bytes", c.c_uint64),
        ("lost_bytes", c.c_uint64),
        ("cached_bytes", c.c_uint64),
        ("faults", c.c_uint64),
        ("gets", c.c_uint64),
        ("invalidations", c.c_uint64),
        ("given_back", c.c_uint64),
    ]
