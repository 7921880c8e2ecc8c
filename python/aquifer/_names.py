# SPDX-License-Identifier: Apache-2.0
"""Names of elastic memory, and handles of what they name."""
from __future__ import annotations

import ctypes as c
from typing import Any, NamedTuple

from . import _errors, _structs
from . import _library as lib
from ._handle import Exclusive
from ._rack import Rack

CREATE, NEW, LOAD = 1, 2, 4
_KINDS = {1: "folder", 2: "file", 3: "queue", 5: "ekv"}


class Name(NamedTuple):
    """What is known of a name."""

    path: str
    kind: str
    """folder, file, queue or ekv"""
    is_ready: bool
    """False: at the vault, on its way, or lost"""
    used: int
    """bytes of an object, as the nodes said lately"""


def path_bytes(path: str) -> bytes:
    if not isinstance(path, str) or "\0" in path:
        raise ValueError("a path is a text without NUL")
    return path.encode()


# ---- names -----------------------------------------------------------------


def _name_of(found: _structs.Name) -> Name:
    return Name(
        found.path.decode(),
        _KINDS.get(found.kind, "other"),
        found.is_ready,
        found.used_bytes,
    )


def stat(rack: Rack, path: str) -> Name:
    """What a path names."""
    out = _structs.Name()
    _errors.check(rack._handle.call(lib.aq_name_stat, path_bytes(path), out))
    return _name_of(out)


def listdir(rack: Rack, path: str = "/") -> list[Name]:
    """What lies directly below."""
    names: list[Name] = []

    @lib.NAME_FN
    def each(found: Any, _: Any) -> int:
        names.append(_name_of(found.contents))
        return 0

    _errors.check(
        rack._handle.call(lib.aq_name_each, path_bytes(path), each, None)
    )
    return names


def makedirs(rack: Rack, path: str) -> None:
    """Makes a folder, and those that are missing on the way."""
    _errors.check(rack._handle.call(lib.aq_name_make, path_bytes(path)))


def rename(rack: Rack, path: str, to: str) -> None:
    """Fails where something has the new name."""
    _errors.check(
        rack._handle.call(lib.aq_name_move, path_bytes(path), path_bytes(to))
    )


def remove(rack: Rack, path: str, recursive: bool = False) -> None:
    _errors.check(
        rack._handle.call(lib.aq_name_remove, path_bytes(path), recursive)
    )


def flush(
    rack: Rack, path: str, timeout: float = 60, freeze: bool = False
) -> None:
    """Writes it, or all below it, to the vault, and waits for the end; with
    freeze each object as all of it was at one moment, for which changes wait.
    """
    how = lib.aq_name_flush_frozen if freeze else lib.aq_name_flush
    _errors.check(
        rack._handle.call(how, path_bytes(path), int(timeout * 1000))
    )


def load(
    rack: Rack, path: str, back: bool = False, timeout: float = 60
) -> None:
    """Brings back what is lost or at the vault; with back also what is there,
    which becomes what it was when it was flushed last."""
    _errors.check(
        rack._handle.call(
            lib.aq_name_load, path_bytes(path), back, int(timeout * 1000)
        )
    )


# ---- what is opened --------------------------------------------------------


def open_handle(
    rack: Rack,
    function: Any,
    close: Any,
    path: str,
    options: Any,
) -> Exclusive:
    def opened() -> int:
        out = c.c_void_p()
        _errors.check(
            rack._handle.call(function, path_bytes(path), options, out)
        )
        assert out.value is not None
        return out.value

    return Exclusive(path, opened(), close, rack._handle)


def call(handle: Exclusive, function: Any, *arguments: Any) -> int:
    with handle.lock:
        pointer = handle.pointer
        if pointer is None:
            pointer = handle.revive()
        err: int = function(pointer, *arguments)
    return err
