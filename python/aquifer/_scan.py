# SPDX-License-Identifier: Apache-2.0
"""Walks over all of a table, some rows of its index at a time."""
from __future__ import annotations

import ctypes as c
from collections.abc import ItemsView, Iterator, ValuesView
from typing import TYPE_CHECKING, Any

from . import _errors
from . import _library as lib

if TYPE_CHECKING:
    from ._table import Table

KEYS = 1  # the values are not read
_ROWS = 256  # of one call of the library


def pages(table: Table, flags: int) -> Iterator[list[tuple[bytes, bytes]]]:
    """The table is nobody's between two of them."""
    cursor = c.c_uint64()
    while True:
        yield _page(table, cursor, flags)
        if cursor.value == 0:
            return


def _page(
    table: Table, cursor: c.c_uint64, flags: int
) -> list[tuple[bytes, bytes]]:
    found: list[tuple[bytes, bytes]] = []
    failure: list[BaseException] = []
    string_at = c.string_at

    def each(item: Any, _user: object) -> int:
        try:
            i = item.contents
            value = string_at(i.value, i.value_len) if i.value else b""
            found.append((string_at(i.key, i.key_len), value))
            return 0
        except BaseException as e:  # the library must not be jumped over
            failure.append(e)
            return 1

    callback = lib.KV_ITEM_FN(each)
    handle = table._handle
    with handle.lock:
        err = handle.lend(
            lambda client: int(
                lib.aq_kv_scan(client, cursor, _ROWS, flags, callback, None)
            )
        )
        if failure:
            raise failure[0]
        _errors.check(err)
    return found


def keys(table: Table) -> Iterator[bytes]:
    return (key for page in pages(table, KEYS) for key, _ in page)


class Items(ItemsView[Any, bytes]):
    """Pairs, read together."""

    _mapping: Table

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return (pair for page in pages(self._mapping, 0) for pair in page)


class Values(ValuesView[bytes]):
    _mapping: Table

    def __iter__(self) -> Iterator[bytes]:
        return (value for page in pages(self._mapping, 0) for _, value in page)
