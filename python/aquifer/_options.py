# SPDX-License-Identifier: Apache-2.0
"""What may be chosen when a thing is made: names and numbers, checked."""
from __future__ import annotations

from typing import Union

from . import _structs
from ._data import number

KINDS = ("tree", "versions")  # of an index

_ALL_NODES = 65535  # of a region
_ALL_SHARDS = 2**32 - 1
_DEVICE, _SWITCH_ATOMICS = 1, 2
_TABLE_SIZES = {
    "entry_bytes": 32,
    "entries_per_row": 32,
    "rows_per_lock": 32,
    "clients": 32,
    "chunk_bytes": 32,
    "failure_ms": 32,
    "lock_max": 32,
}
_INDEX_SIZES = {
    "value_max": 32,
    "clients": 32,
    "failure_ms": 32,
    "key_max": 32,
    "node_bytes": 32,
    "locks": 32,
    "size_bytes": 64,
    "keys": 64,
    "versions": 64,
}


def _count(what: str, given: Union[int, str], most: int) -> int:
    """A number of nodes; as many as the library takes for all of them."""
    return most if given == "all" else number(what, given, most - 1)


def _set(
    options: Union[_structs.KvOptions, _structs.IndexOptions],
    what: str,
    sizes: dict[str, int],
    known: dict[str, int],
) -> None:
    for name, size in sizes.items():
        if name not in known:
            raise TypeError(f"{what} has no {name}; there are {', '.join(known)}")
        setattr(options, name, number(name, size, 2 ** known[name] - 1))


def region_options(
    nodes: Union[int, str], stripe_bytes: int, device: bool, switch_atomics: bool
) -> _structs.RegionOptions:
    return _structs.RegionOptions(
        nodes=_count("nodes", nodes, _ALL_NODES),
        stripe_bytes=number("stripe_bytes", stripe_bytes),
        flags=(_DEVICE if device else 0)
        | (_SWITCH_ATOMICS if switch_atomics else 0),
    )


_LAST = 1  # AQ_SHARED_LAST


def shared_options(copies: int, on_loss: str) -> _structs.SharedOptions:
    if on_loss not in ("error", "last"):
        raise ValueError(f'on_loss is "error" or "last", not {on_loss!r}')
    return _structs.SharedOptions(
        flags=_LAST if on_loss == "last" else 0,
        copies=number("copies", copies, 2),
    )


_FIXED = 1 << 2  # AQ_KV_FIXED


def table_options(
    capacity: int,
    shards: Union[int, str],
    copies: int,
    extent_bytes: int,
    grow: bool,
    sizes: dict[str, int],
) -> _structs.KvOptions:
    options = _structs.KvOptions(
        capacity=number("capacity", capacity),
        extent_bytes=number("extent_bytes", extent_bytes),
        flags=0 if grow else _FIXED,
        shards=_count("shards", shards, _ALL_SHARDS),
        copies=number("copies", copies, 2),
    )
    _set(options, "a table", sizes, _TABLE_SIZES)
    return options


def index_options(kind: str, sizes: dict[str, int]) -> _structs.IndexOptions:
    if kind not in KINDS:
        raise ValueError(f"an index is of the kind tree or versions, not {kind!r}")
    options = _structs.IndexOptions(kind=KINDS.index(kind))
    _set(options, "an index", sizes, _INDEX_SIZES)
    return options
