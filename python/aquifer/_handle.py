# SPDX-License-Identifier: Apache-2.0
"""Who may use a thing of the library, and when it is given back.

A pointer into the library must not be used after it was given back, by no
thread, and in no child of this process. So each lies in a Handle. A handle is
closed once: by close(), by its rack's close(), when its object is no longer
reachable, or at the end of the program.

The library lets threads share racks and regions (Shared), but a client of a
table or index belongs to one thread at a time (Exclusive).
"""
from __future__ import annotations

import errno
import os
import threading
import time
import weakref
from threading import get_ident
from typing import Any, Callable, NoReturn, Optional, TypeVar

from . import _errors

_T = TypeVar("_T")
_POLL_S = 0.001  # how often who closes looks whether others are done

_handles: weakref.WeakSet[Handle] = weakref.WeakSet()


class Handle:
    """A pointer, None when it must not be used now."""

    __slots__ = (
        "__weakref__",
        "what",
        "pointer",
        "children",
        "is_closed",
        "is_inherited",
        "_parent",
        "_close",
        "_inherited",
    )

    def __init__(
        self,
        what: str,
        pointer: Optional[int],
        close: Callable[[int], None],
        parent: Optional[Handle] = None,
    ) -> None:
        self.what = what
        self.pointer = pointer
        self.children: set[Handle] = set()
        self.is_closed = False
        self.is_inherited = False
        self._close = close
        self._parent = parent
        self._inherited: Optional[int] = None
        if parent is not None:
            parent.children.add(self)
        _handles.add(self)

    def refuse(self) -> NoReturn:
        """Says why the pointer is None."""
        if self.is_inherited:
            raise _errors.make(
                errno.ESTALE,
                f"{self.what} was opened by the parent process; after fork "
                f"the child opens its own",
            )
        if self.is_closed:
            raise _errors.make(errno.EBADF, f"{self.what} is closed")
        self._refuse_if_busy()
        raise AssertionError(f"{self.what} has no pointer")

    def is_busy_here(self) -> bool:
        """Whether this thread is in the middle of a call, here or below."""
        return any(child.is_busy_here() for child in list(self.children))

    def _refuse_if_busy(self) -> None:
        if self.is_busy_here():
            raise RuntimeError(
                f"{self.what} is in the middle of a call of this thread"
            )

    def close(self) -> None:
        raise NotImplementedError

    def _give_back(self, pointer: Optional[int]) -> None:
        for child in list(self.children):
            child.close()
        if pointer is not None:
            self._close(pointer)
        if self._parent is not None:
            self._parent.children.discard(self)

    def _close_inherited(self) -> None:
        """Nothing but the memory of a handle belongs to a child."""

    def after_fork(self) -> None:
        self.is_inherited = True
        self._inherited = self.pointer
        self.pointer = None


class Shared(Handle):
    """Threads use it at the same time, by `call`.

    Who closes takes the pointer away first and then waits for the users. Who
    uses it has entered itself before it looks at the pointer.
    """

    __slots__ = ("users", "_closing")

    def __init__(
        self,
        what: str,
        pointer: int,
        close: Callable[[int], None],
        parent: Optional[Handle] = None,
    ) -> None:
        super().__init__(what, pointer, close, parent)
        self.users: list[int] = []
        self._closing = threading.RLock()

    def call(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Calls it with the pointer and the arguments."""
        users = self.users
        me = get_ident()
        try:
            # Interrupts come after calls, so this is the first one here.
            users.append(me)
            pointer = self.pointer
            if pointer is None:
                self.refuse()
            return function(pointer, *arguments)
        finally:
            users.remove(me)

    def is_busy_here(self) -> bool:
        return get_ident() in self.users or super().is_busy_here()

    def close(self) -> None:
        with self._closing:
            if self.is_inherited:
                self._close_inherited()
                return
            if self.is_closed:
                return
            self._refuse_if_busy()
            self.is_closed = True
            pointer, self.pointer = self.pointer, None
            try:
                while self.users:
                    time.sleep(_POLL_S)
            except BaseException:  # it is as if nobody had asked
                self.is_closed, self.pointer = False, pointer
                raise
            self._give_back(pointer)

    def after_fork(self) -> None:
        super().after_fork()
        self.users = []
        self._closing = threading.RLock()


class SharedRack(Shared):
    """A rack; a child may close the one that it inherited."""

    __slots__ = ()

    def _close_inherited(self) -> None:
        pointer, self._inherited = self._inherited, None
        if pointer is not None:
            self._close(pointer)


class Exclusive(Handle):
    """One thread at a time, by `lock`:

        with handle.lock:
            pointer = handle.pointer
            if pointer is None:
                pointer = handle.revive()

    The lock may be taken again by its thread, for a signal's handler. Where
    the library calls Python (lend), the pointer is taken away for that time,
    so that a handler is refused and not let into the middle of a call.
    """

    __slots__ = ("lock", "_lent_to", "_reopen")

    def __init__(
        self,
        what: str,
        pointer: int,
        close: Callable[[int], None],
        parent: Handle,
        reopen: Optional[Callable[[], int]] = None,
    ) -> None:
        super().__init__(what, pointer, close, parent)
        self.lock = threading.RLock()
        self._lent_to: Optional[int] = None  # a thread
        self._reopen = reopen

    def lend(self, call: Callable[[int], int]) -> int:
        """A call that calls back; the caller has the lock."""
        pointer = self.pointer
        if pointer is None:
            pointer = self.revive()
        self._lent_to, self.pointer = get_ident(), None
        try:
            return call(pointer)
        finally:
            self._lent_to = None
            if not self.is_inherited:  # a handler may have forked
                self.pointer = pointer

    def is_busy_here(self) -> bool:
        return self._lent_to == get_ident() or super().is_busy_here()

    def abandon(self) -> None:
        """Gives the pointer back after a failure; the next use has another."""
        pointer, self.pointer = self.pointer, None
        if pointer is not None:
            self._close(pointer)

    def revive(self) -> int:
        if (
            self.is_inherited
            or self.is_closed
            or self._lent_to
            or self._reopen is None
        ):
            self.refuse()
        self.pointer = self._reopen()
        return self.pointer

    def close(self) -> None:
        with self.lock:
            if self.is_closed or self.is_inherited:
                return
            self._refuse_if_busy()
            self.is_closed = True
            pointer, self.pointer = self.pointer, None
            self._give_back(pointer)

    def after_fork(self) -> None:
        super().after_fork()
        self.lock = threading.RLock()


def _after_fork() -> None:
    for handle in list(_handles):
        handle.after_fork()


os.register_at_fork(after_in_child=_after_fork)
