# SPDX-License-Identifier: Apache-2.0
"""Walks: traversals that memory nodes execute."""
from __future__ import annotations

import ctypes as c
import weakref
from typing import TYPE_CHECKING, NamedTuple

from . import _errors, _structs
from . import _library as lib
from ._data import Buffer, number, value_memory
from ._handle import Shared
from ._region import Region

if TYPE_CHECKING:
    from ._rack import Rack

_WHERE = {None: 0, "here": 1, "there": 2}
_CROSS = {None: 0, "switch": 4, "bounce": 8}
# As <aquifer/walk_shape.h> has them.
_KINDS = (
    "list-find",
    "hash-find",
    "bst-find",
    "bst-lower",
    "btree-find",
    "bplus-find",
    "bplus-scan",
    "bplus-reduce",
    "skip-find",
    "radix-find",
)
_WIDTHS = {
    name: 8 * getattr(_structs.WalkShape, name).size
    for name, _type in _structs.WalkShape._fields_
    if name not in ("kind", "flags")
}


class WalkInfo(NamedTuple):
    """What a walk is."""

    name: str
    hash: int
    instructions: int
    longest: int
    """Cost of the longest path through them."""
    load_bytes: int
    """Of each node."""
    pad_bytes: int
    stores: bool


class WalkResult(NamedTuple):
    """What became of a walk."""

    pad: bytes
    iterations: int
    """Nodes of the structure that were visited."""
    at: int
    """The last of them."""
    where: str
    """Where it ran: "here" or "there"."""
    requests: int
    crossings: int
    """From one memory node to another."""
    carried: int
    """Of these, by the switch."""


def walk_options(
    where: str | None, cross: str | None, iterations: int
) -> _structs.WalkOptions:
    if where not in _WHERE:
        raise ValueError(f"a walk runs 'here' or 'there', not {where!r}")
    if cross not in _CROSS:
        raise ValueError(f"it crosses by 'switch' or 'bounce', not {cross!r}")
    return _structs.WalkOptions(
        flags=_WHERE[where] | _CROSS[cross],
        iterations=number("iterations", iterations, 2**32 - 1),
    )


def walk_shape(
    kind: str, key_is_bytes: bool, value_is_signed: bool, at: dict[str, int]
) -> _structs.WalkShape:
    if kind not in _KINDS:
        raise ValueError(
            f"a walk is one of {', '.join(_KINDS)}, not {kind!r}"
        )
    shape = _structs.WalkShape(
        kind=_KINDS.index(kind) + 1,
        flags=(1 if key_is_bytes else 0) | (2 if value_is_signed else 0),
    )
    for name, value in at.items():
        if name not in _WIDTHS:
            raise TypeError(
                f"a node has no {name!r}, but {', '.join(_WIDTHS)}"
            )
        setattr(shape, name, number(name, value, 2 ** _WIDTHS[name] - 1))
    return shape


class Walk:
    """A program that follows pointers, from Rack.load_walk or make_walk.

    Threads may share a walk; its calls run one after the other.
    """

    def __init__(self, rack: Rack, name: str, handle: Shared) -> None:
        self._rack = rack
        self._handle = handle
        self._finalizer = weakref.finalize(self, handle.close)

    @property
    def info(self) -> WalkInfo:
        info = _structs.WalkInfo()
        self._handle.call(lib.aq_walk_info, info)
        return WalkInfo(
            info.name.decode(),
            info.hash,
            info.instructions,
            info.longest,
            info.load_bytes,
            info.pad_bytes,
            bool(info.stores),
        )

    def run(
        self, region: Region, start: int, pad: Buffer = b""
    ) -> WalkResult:
        """Follows pointers in the region from offset `start` on.

        pad: the first bytes of the scratch pad; the rest is zero. All of it
            comes back in the result.
        """
        start = number("a start", start)
        address, length, _held = value_memory(pad)
        room = self.info.pad_bytes
        if length > room:
            raise ValueError(f"the pad has {length} bytes, not up to {room}")
        memory = c.create_string_buffer(max(room, 1))
        c.memmove(memory, address, length)
        result = _structs.WalkResult()
        _errors.check(
            self._handle.call(
                lambda walk: region._handle.call(
                    lambda pointer: lib.aq_walk_run(
                        walk, pointer, start, memory, room, result
                    )
                )
            )
        )
        return WalkResult(
            memory.raw[:room],
            result.iterations,
            result.at,
            "here" if result.where == 1 else "there",
            result.requests,
            result.crossings,
            result.carried,
        )

    def close(self) -> None:
        """Gives the handle back; nodes keep the program. Twice is allowed."""
        self._handle.close()

    def __enter__(self) -> Walk:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._handle.pointer is None:
            return "<aquifer.Walk closed>"
        return f"<aquifer.Walk {self.info.name!r}>"
