# SPDX-License-Identifier: Apache-2.0
"""What can go wrong: subclasses of OSError with the library's words."""
from __future__ import annotations

import errno
from typing import NoReturn, Optional

from . import _library as lib

__all__ = [
    "AccessError",
    "ClosedError",
    "DeadlineError",
    "Error",
    "ExistsError",
    "NodeLostError",
    "NoSpaceError",
    "NotFoundError",
    "StaleError",
]


class Error(OSError):
    """A call of libaquifer failed: `errno` says how, `strerror` in words."""

    failed: Optional[list[bytes]] = None
    """Of a batch: the keys whose operations failed."""


class NotFoundError(Error, FileNotFoundError):
    """There is no such rack, region, table, index or engine (ENOENT)."""


class ExistsError(Error, FileExistsError):
    """There is one of that name already (EEXIST)."""


class AccessError(Error, PermissionError):
    """A wrong token, or a right that was not granted (EACCES)."""


class NoSpaceError(Error):
    """The table, the node or the tenant's quota is full (ENOSPC, EDQUOT)."""


class NodeLostError(Error, ConnectionError):
    """A node or engine is lost, or did not answer in time (EHOSTDOWN).

    A change that failed so may have been made.
    """


class StaleError(Error):
    """What was opened is not there any more (ESTALE).

    A region was deleted, its node was started anew, a client was taken for
    dead, or the object was opened by the parent of this process.
    """


class DeadlineError(Error, TimeoutError):
    """Others were faster until the deadline (ETIMEDOUT)."""


class ClosedError(Error):
    """The object was closed before (EBADF)."""


_KINDS: dict[int, type[Error]] = {
    errno.ENOENT: NotFoundError,
    errno.EEXIST: ExistsError,
    errno.EACCES: AccessError,
    errno.ENOSPC: NoSpaceError,
    errno.EDQUOT: NoSpaceError,
    errno.EHOSTDOWN: NodeLostError,
    errno.ESTALE: StaleError,
    errno.ETIMEDOUT: DeadlineError,
    errno.EBADF: ClosedError,
}


def make(code: int, words: str) -> Error:
    """The exception for an errno, positive or negative."""
    code = abs(code)
    return _KINDS.get(code, Error)(code, words)


def words_of(code: int) -> str:
    """What a code means, for calls that leave no words of their own."""
    return str(lib.aq_strerror(code), "utf-8", "replace")


def fail(code: int) -> NoReturn:
    """Raises this thread's last failure, which had that code."""
    words = lib.aq_last_error().decode("utf-8", "replace")
    raise make(code, words or words_of(code))


def check(code: int) -> None:
    """Raises unless the code is 0."""
    if code:
        fail(code)
