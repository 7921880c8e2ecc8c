# SPDX-License-Identifier: Apache-2.0
"""Reads and writes by the rack's engine, for asyncio.

A request costs a few stores into rings of this process; the engine moves the
data and writes its progress back. There is no descriptor to wait for and the
rings belong to one thread, so the event loop itself looks at them: every turn
while something is under way and was answered lately, then by a timer that gets
slower. A request that takes microseconds is so not delayed by a second thread
that would have to get the interpreter's lock first, and a loop with nothing
under way never wakes. Only what asks a node (attaching, a region's first use)
is left to the loop's executor.

There is one context (struct aq_async) for each rack and event loop.
"""
from __future__ import annotations

import asyncio
import ctypes as c
import errno
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _errors, _structs
from . import _library as lib
from ._handle import Exclusive, Handle

if TYPE_CHECKING:
    from ._rack import Rack
    from ._region import Region

_RING_BYTES = 4 << 20  # data of reads, and of writes, under way
_PIECE_BYTES = 1 << 20  # a request may have half of that
_REQUESTS = 1024  # under way at most
_TOGETHER = 256  # answers that are taken at one go
_LOOK_US = 20  # how long one look may wait
_EAGER_S = 0.002  # without an answer, before the timer
_SLOWEST_S = 0.05  # the timer's
_DOUBT_S = 0.1  # without an answer, before the engine is doubted
_NO_REGION = 2**32 - 1
_EAGAIN, _EHOSTDOWN = -errno.EAGAIN, -errno.EHOSTDOWN


class _Transfer:
    """One read or write of the caller's, in one piece or several."""

    __slots__ = ("future", "left", "err", "held")

    def __init__(self, future: asyncio.Future[None], held: Any) -> None:
        self.future = future
        self.left = 1  # pieces, and one for who is issuing them
        self.err = 0
        self.held = held  # the memory, until the library is done with it

    def end_piece(self, err: int) -> None:
        self.err = self.err or err
        self.left -= 1
        if self.left:
            return
        self.held = None
        if self.future.done():  # cancelled
            return
        if self.err:
            self.fail(_errors.make(self.err, _errors.words_of(self.err)))
        else:
            self.future.set_result(None)

    def fail(self, reason: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(reason)


class _ContextHandle(Exclusive):
    """The rings; whoever closes them tells those who wait."""

    __slots__ = ("context",)

    context: weakref.ref[Context]

    def close(self) -> None:
        super().close()
        context = self.context()
        if context is not None:
            context.tell_closed()


class Context:
    """The rings of one event loop."""

    def __init__(self, rack: Rack, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._numbers: dict[Handle, asyncio.Future[int]] = {}
        self._under_way: dict[int, _Transfer] = {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._answers = (_structs.Response * _TOGETHER)()
        self._is_looking = False
        self._answered = 0.0  # when something was, last
        self._group = c.c_void_p()
        group = self._group
        options = _structs.AsyncOptions(
            requests=_REQUESTS, read_bytes=_RING_BYTES, write_bytes=_RING_BYTES
        )
        parent = rack._handle

        def give_back(pointer: int) -> None:
            lib.aq_poll_destroy(group)
            lib.aq_async_close(pointer)

        def make(pointer: int) -> _ContextHandle:
            out = c.c_void_p()
            _errors.check(lib.aq_async_open(pointer, options, out))
            assert out.value is not None
            err = lib.aq_poll_create(out, group)
            if err:
                lib.aq_async_close(out)
                _errors.fail(err)
            handle = _ContextHandle(
                "the asynchronous context", out.value, give_back, parent
            )
            handle.context = weakref.ref(self)
            return handle

        self.handle = parent.call(make)
        self._finalizer = weakref.finalize(self, self.handle.close)

    # ---- regions ---------------------------------------------------------

    def _add(self, region: Region) -> int:
        with self.handle.lock:
            context = self.handle.pointer
            if context is None:
                self.handle.refuse()
            return region._call(lambda r: lib.aq_async_add(context, r))

    async def number_of(self, region: Region) -> int:
        """What the region is called in the rings."""
        handle = region._handle
        if handle.pointer is None:
            handle.refuse()
        future = self._numbers.get(handle)
        if future is None:
            future = self._loop.run_in_executor(None, self._add, region)
            self._numbers[handle] = future
        try:
            return await asyncio.shield(future)
        except Exception:
            if self._numbers.get(handle) is future:
                del self._numbers[handle]
            raise

    # ---- requests --------------------------------------------------------

    def _request(
        self, is_write: bool, number: int, offset: int, address: int, length: int
    ) -> int:
        """The id of a request, or -errno."""
        # Answers that nobody has looked at still have their place in the group.
        if len(self._under_way) == _REQUESTS and number != _NO_REGION:
            return _EAGAIN
        if not self.handle.lock.acquire(blocking=False):
            return _EAGAIN  # a region is being added
        try:
            context = self.handle.pointer
            if context is None:
                self.handle.refuse()
            issue = lib.aq_async_write if is_write else lib.aq_async_read
            result: int = issue(context, number, offset, address, length)
            if result >= 0:
                err = lib.aq_poll_add(self._group, result)
                assert not err, _errors.words_of(err)
            return result
        finally:
            self.handle.lock.release()

    async def issue(
        self,
        transfer: _Transfer,
        is_write: bool,
        number: int,
        offset: int,
        address: int,
        length: int,
    ) -> int:
        """0, or why the request was refused."""
        while True:
            result = self._request(is_write, number, offset, address, length)
            if result >= 0:
                self._under_way[result] = transfer
                transfer.left += 1
                if not self._is_looking:
                    self._is_looking = True
                    self._answered = time.monotonic()
                    self._loop.call_soon(self._look)
                return 0
            if result != _EAGAIN:
                return result
            if self._under_way:  # the rings are full
                waiter = self._loop.create_future()
                self._waiting.append(waiter)
                await waiter
            else:
                await asyncio.sleep(_EAGER_S)

    # ---- answers ---------------------------------------------------------

    def _collect(self) -> int:
        """How many were answered, or -errno."""
        if not self.handle.lock.acquire(blocking=False):
            return 0
        try:
            if self.handle.pointer is None:
                return 0
            return int(
                lib.aq_poll_wait(self._group, self._answers, _TOGETHER, _LOOK_US)
            )
        finally:
            self.handle.lock.release()

    def _look(self) -> None:
        """Every turn of the loop, or by its timer."""
        if not self._under_way or self.handle.is_closed:
            self._is_looking = False
            return
        count = self._collect()
        now = time.monotonic()
        if count > 0:
            self._answered = now
            for i in range(count):
                answer = self._answers[i]
                self._under_way.pop(answer.id).end_piece(answer.err)
            while self._waiting:
                self._wake(self._waiting.popleft())
        silent = now - self._answered
        if count < 0 or (silent > _DOUBT_S and self._is_engine_lost()):
            self._fail_all(
                _errors.make(
                    count if count < 0 else _EHOSTDOWN,
                    "no engine serves this context; `aquifer status` says more",
                )
            )
        if silent < _EAGER_S:
            self._loop.call_soon(self._look)
        else:
            self._loop.call_later(min(_SLOWEST_S, silent / 2), self._look)

    def _is_engine_lost(self) -> bool:
        """A request that no region has is refused in any case; the reason
        says whether there is an engine."""
        try:
            return self._request(False, _NO_REGION, 0, 0, 8) == _EHOSTDOWN
        except _errors.ClosedError:
            return False

    @staticmethod
    def _wake(waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_result(None)

    def _fail_all(self, reason: BaseException) -> None:
        """The callers are told, and those who wait for a place, too: there is
        none as long as nobody answers. Their memory stays held: an engine that
        comes back would go on with the requests."""
        for transfer in self._under_way.values():
            transfer.fail(reason)
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(reason)

    def _end(self) -> None:
        self._fail_all(
            _errors.make(errno.EBADF, "the rack was closed before the answer")
        )
        self._under_way.clear()

    def tell_closed(self) -> None:
        """From any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end)


class Contexts:
    """Those of a rack, by event loop."""

    def __init__(self) -> None:
        self._found: dict[
            asyncio.AbstractEventLoop, Union[Context, asyncio.Future[Context]]
        ] = {}

    async def get(self, rack: Rack) -> Context:
        loop = asyncio.get_running_loop()
        found: Optional[Any] = self._found.get(loop)
        if isinstance(found, Context):
            return found
        if found is None:
            for other in list(self._found):
                if other.is_closed():
                    self._found.pop(other, None)
            found = loop.run_in_executor(None, Context, rack, loop)
            self._found[loop] = found
        try:
            context: Context = await asyncio.shield(found)
        except Exception:
            if self._found.get(loop) is found:
                del self._found[loop]
            raise
        self._found[loop] = context
        return context


async def transfer(
    region: Region,
    is_write: bool,
    offset: int,
    address: int,
    length: int,
    held: Any,
) -> None:
    """Moves the data; the memory is held until the library is done with it."""
    rack = region._rack
    context = await rack._contexts.get(rack)
    number = await context.number_of(region)
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    moved = _Transfer(future, held)
    for at in range(0, length, _PIECE_BYTES):
        piece = min(_PIECE_BYTES, length - at)
        try:
            err = await context.issue(
                moved, is_write, number, offset + at, address + at, piece
            )
        except BaseException:
            if not future.cancel():
                future.exception()  # the caller is told by this one
            raise
        if err:
            moved.err = moved.err or err
            break
    moved.end_piece(0)
    await future
