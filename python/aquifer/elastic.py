# SPDX-License-Identifier: Apache-2.0
"""Files, queues and stores of jobs in far memory, which live by a lease.

    from aquifer.elastic import Job

    with Job("/wc", lease=5) as job:
        with job.open("part-0", "wb") as out:
            out.write(b"some words")
        todo = job.queue("todo")
        todo.put({"part": 0})
        print(todo.get())
        hits = job.ekv("hits", values=int)
        print(hits.add("front page", 2))

The lease is renewed while the job is open. Jobs, queues and stores can be
pickled into other processes, which open them anew; docs/elastic.md says more.
A rack with a controller has to be there.
"""
from __future__ import annotations

import ctypes as c
import errno
import io
import json
import os
import pickle
import queue
import threading
import time
import weakref
from typing import (
    Any, Callable, Iterable, Mapping, Optional, Sequence, Union,
)

from . import _errors, _structs
from . import _library as lib
from ._handle import Exclusive
from ._names import (
    CREATE,
    LOAD,
    NEW,
    Name,
    call,
    flush,
    listdir,
    load,
    makedirs,
    open_handle,
    path_bytes,
    remove,
    rename,
    stat,
)
from ._rack import Rack
from ._store import Ekv
from ._watch import Event, Watch
from ._watch import bits as _event_bits

__all__ = ["Ekv", "Event", "File", "Job", "Name", "Queue", "Watch"]

_SLICE_S = 0.5  # of a wait, so that interrupts are heard
_ITEM_BYTES = 4096  # room for a first try
_EAGAIN, _EMSGSIZE, _EPIPE = -errno.EAGAIN, -errno.EMSGSIZE, -errno.EPIPE


def _watch(rack: Rack, path: str, events: Optional[Iterable[str]]) -> Watch:
    options = _structs.WatchOptions(events=_event_bits(events))
    handle = open_handle(
        rack, lib.aq_watch_open, lib.aq_watch_close, path, options
    )
    return Watch(handle, call)


class File(io.RawIOBase):
    """A file without a buffer: Job.open puts one around it.

    Files are only appended to, so each write is one record, whole or not at
    all, at the end; what was written can be read at any place. Threads may
    share it and wait for each other.
    """

    def __init__(
        self,
        rack: Rack,
        path: str,
        mode: str = "r",
        *,
        block_bytes: int = 0,
        load: bool = False,
    ) -> None:
        super().__init__()
        if mode not in ("r", "a", "w", "x"):
            raise ValueError(f"mode {mode!r}: a file is r, a, w or x")
        flags = {"r": 0, "a": CREATE, "w": NEW, "x": NEW}[mode]
        options = _structs.ElasticOptions(
            flags=flags | (LOAD if load else 0), block_bytes=block_bytes
        )
        self._handle: Optional[Exclusive] = None
        self._mode = mode
        self._at = 0
        if mode == "w":
            try:
                remove(rack, path)
            except _errors.NotFoundError:
                pass
        self._rack, self.name = rack, path
        self._handle = open_handle(
            rack, lib.aq_file_open, lib.aq_file_close, path, options
        )
        self._finalizer = weakref.finalize(self, self._handle.close)
        if mode != "r":
            self._at = self.size()

    def _do(self, function: Any, *arguments: Any) -> None:
        if self.closed or self._handle is None:
            raise ValueError("I/O operation on closed file")
        _errors.check(call(self._handle, function, *arguments))

    @property
    def mode(self) -> str:
        return self._mode + "b"

    def size(self) -> int:
        """Bytes, now."""
        out = c.c_uint64()
        self._do(lib.aq_file_size, out)
        return out.value

    def readable(self) -> bool:
        return self._mode == "r"

    def writable(self) -> bool:
        return self._mode != "r"

    def seekable(self) -> bool:
        return self._mode == "r"

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if self._mode != "r":
            raise io.UnsupportedOperation("files are written at their end")
        base = {
            os.SEEK_SET: lambda: 0,
            os.SEEK_CUR: lambda: self._at,
            os.SEEK_END: self.size,
        }[whence]()
        if base + offset < 0:
            raise ValueError("a place before the beginning")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._mode != "r":
            raise io.UnsupportedOperation("not readable")
        view = memoryview(buffer).cast("B")
        if not view.nbytes:
            return 0
        got = c.c_size_t()
        place = c.addressof(c.c_char.from_buffer(view))
        self._do(lib.aq_file_read, self._at, place, view.nbytes, got)
        self._at += got.value
        return got.value

    def write(self, data: Any) -> int:
        if self._mode == "r":
            raise io.UnsupportedOperation("not writable")
        if self._handle is None or self.closed:
            raise ValueError("I/O operation on closed file")
        view = memoryview(data).cast("B")
        pointer = self._handle.pointer
        if pointer is None:
            pointer = self._handle.revive()
        record = bytes(view[: lib.aq_file_record_max(pointer)])
        self._do(lib.aq_file_append, record, len(record), None)
        self._at += len(record)
        return len(record)

    def seal(self) -> None:
        """Nothing is appended any more, by anybody."""
        self._do(lib.aq_file_seal)

    def close(self) -> None:
        if not self.closed and self._handle is not None:
            self._handle.close()
        super().close()


class Queue:
    """A queue with the methods of queue.Queue, for any number of processes.

    Items are pickled; with raw they are bytes. With tasks an item that was got
    waits for task_done(), and comes back when its consumer dies before that.
    Threads have a connection each. maxsize is that of a queue that is made.
    """

    def __init__(
        self,
        job: Job,
        path: str,
        maxsize: int = 0,
        *,
        raw: bool = False,
        tasks: bool = False,
        block_bytes: int = 0,
        load: bool = False,
    ) -> None:
        self._job, self._path, self._maxsize = job, path, maxsize
        self._raw, self._tasks = raw, tasks
        self._options = _structs.ElasticOptions(
            flags=CREATE | (LOAD if load else 0),
            block_bytes=block_bytes,
            bound=max(maxsize, 0),
        )
        self._local = threading.local()
        self._handles: list[Exclusive] = []
        self._finalizer = weakref.finalize(self, _close_all, self._handles)
        self._handle()

    def __reduce__(self) -> Any:
        return _reopen_queue, (
            self._job, self._path, self._maxsize, self._raw, self._tasks,
            self._options.block_bytes,
        )

    @property
    def path(self) -> str:
        return self._path

    def _handle(self) -> Exclusive:
        handle: Optional[Exclusive] = getattr(self._local, "handle", None)
        if handle is None or handle.is_inherited:
            handle = open_handle(
                self._job.rack, lib.aq_queue_open, lib.aq_queue_close,
                self._path, self._options,
            )
            self._local.handle = handle
            self._local.taken = []
            self._local.room = c.create_string_buffer(_ITEM_BYTES)
            self._handles.append(handle)
        return handle

    def _wait(
        self, call: Callable[[int], int], block: bool, timeout: Optional[float],
        nothing: type[Exception],
    ) -> None:
        """Calls with milliseconds until it is done or the time is over."""
        if block and timeout is not None and timeout < 0:
            raise ValueError("'timeout' must be a non-negative number")
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _SLICE_S if end is None else end - time.monotonic()
            ms = max(0, int(min(left, _SLICE_S) * 1000)) if block else 0
            err = call(ms)
            if not err:
                return
            if err == _EPIPE:
                raise EOFError(f"{self._path} is sealed")
            if err != _EAGAIN:
                _errors.fail(err)
            if not block or (end is not None and time.monotonic() >= end):
                raise nothing

    def put(
        self, item: Any, block: bool = True, timeout: Optional[float] = None
    ) -> None:
        """Raises queue.Full."""
        data = bytes(item) if self._raw else pickle.dumps(item)
        handle = self._handle()
        self._wait(
            lambda ms: call(handle, lib.aq_queue_put, data, len(data), ms),
            block, timeout, queue.Full,
        )

    def put_many(self, items: Sequence[Any]) -> None:
        """All of them, in this order, with few messages; waits for room."""
        data = [bytes(i) if self._raw else pickle.dumps(i) for i in items]
        handle = self._handle()
        at, done = 0, c.c_uint()

        def put(ms: int) -> int:
            nonlocal at
            rows = (_structs.Item * (len(data) - at))(*[
                _structs.Item(c.cast(c.c_char_p(d), c.c_void_p), len(d))
                for d in data[at:]
            ])
            done.value = 0
            err = call(
                handle, lib.aq_queue_put_many, rows, len(rows), ms, done
            )
            at += done.value
            return err

        if data:
            self._wait(put, True, None, queue.Full)

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        """Raises queue.Empty; EOFError where it is sealed, too."""
        handle = self._handle()
        local = self._local
        taken = _structs.Taken()
        length = c.c_size_t()

        def take(ms: int) -> int:
            while True:
                room = local.room
                more = (taken, ms) if self._tasks else (ms,)
                function = lib.aq_queue_take if self._tasks else lib.aq_queue_get
                err = call(handle, function, room, len(room), length, *more)
                if err != _EMSGSIZE:
                    return err
                local.room = c.create_string_buffer(length.value)

        self._wait(take, block, timeout, queue.Empty)
        if self._tasks:
            local.taken.append(taken)
        data = local.room.raw[: length.value]
        return data if self._raw else pickle.loads(data)

    def put_nowait(self, item: Any) -> None:
        self.put(item, False)

    def get_nowait(self) -> Any:
        return self.get(False)

    def qsize(self) -> int:
        """Items now, also those that wait for task_done."""
        out = c.c_uint64()
        _errors.check(call(self._handle(), lib.aq_queue_length, out))
        return out.value

    def empty(self) -> bool:
        return self.qsize() == 0

    def full(self) -> bool:
        return 0 < self._maxsize <= self.qsize()

    def task_done(self) -> None:
        """The oldest item that this thread got and has not said it of."""
        handle = self._handle()
        if not self._local.taken:
            raise ValueError("task_done() called too many times")
        taken = self._local.taken.pop(0)
        _errors.check(call(handle, lib.aq_queue_ack, taken))

    def join(self) -> None:
        """Until nothing is left that was put, by any process."""
        pause = 0.001
        while self.qsize():
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def watch(self, events: Optional[Iterable[str]] = None) -> Watch:
        """What is done to it from now on: `async for event in q.watch()`."""
        return _watch(self._job.rack, self._path, events)

    def seal(self) -> None:
        """Nothing is put any more, by anybody."""
        _errors.check(call(self._handle(), lib.aq_queue_seal))

    def close(self) -> None:
        """Ends the connections of all threads; the queue stays."""
        self._finalizer()


def _close_all(handles: list[Exclusive]) -> None:
    while handles:
        handles.pop().close()


# ---- jobs ------------------------------------------------------------------


class _Renewal(threading.Thread):
    """Renews a path at a third of its lease until it is stopped."""

    def __init__(self, rack: Rack, path: str, period_s: float) -> None:
        super().__init__(name="aquifer-lease", daemon=True)
        self._rack, self._path, self._pause = rack, path, period_s / 3
        self._stop_event = threading.Event()

    def run(self) -> None:
        period = c.c_uint32()
        while not self._stop_event.wait(self._pause):
            try:
                err = self._rack._handle.call(
                    lib.aq_job_renew, path_bytes(self._path), period
                )
            except OSError:
                return  # the rack is closed
            # Without a controller leases stand still: the next time.
            if not err:
                self._pause = period.value / 3000

    def end(self) -> None:
        self._stop_event.set()
        self.join()


class Job:
    """A job's root or folder, "/NAME", whose lease is renewed while it is open.

    lease: seconds, of a root that is made; 10 if not given.
    plan: {"task": ["parent", ...]}, of a root that is made.
    on_expiry: "flush", "drop" or "keep", of a root that is made.
    rack: one that is open; otherwise the rack of the settings is opened.

    After close() nothing renews it any more, and what it has ends with the
    lease; remove() ends it at once.
    """

    def __init__(
        self,
        path: str,
        *,
        lease: Optional[float] = None,
        plan: Optional[Mapping[str, Sequence[str]]] = None,
        on_expiry: Optional[str] = None,
        rack: Optional[Rack] = None,
        create: bool = True,
    ) -> None:
        self._path = "/" + path.strip("/")
        self._owns = rack is None
        self.rack = Rack() if rack is None else rack
        self._renewal: Optional[_Renewal] = None
        try:
            if create:
                self._create(lease, plan, on_expiry)
            self._renewal = _Renewal(self.rack, self._path, self.renew())
            self._renewal.start()
        except BaseException:
            self.close()
            raise

    def _create(
        self,
        lease: Optional[float],
        plan: Optional[Mapping[str, Sequence[str]]],
        on_expiry: Optional[str],
    ) -> None:
        options = _structs.JobOptions(
            lease_ms=0 if lease is None else int(lease * 1000),
            on_expiry=None if on_expiry is None else on_expiry.encode(),
            plan=None if plan is None else json.dumps(
                {task: list(parents) for task, parents in plan.items()}
            ).encode(),
        )
        err = self.rack._handle.call(
            lib.aq_job_create, path_bytes(self._path), options
        )
        if err != -errno.EEXIST:
            _errors.check(err)

    def __reduce__(self) -> Any:
        return _reopen_job, (self._path, self.rack.name)

    @property
    def path(self) -> str:
        return self._path

    def _below(self, name: str) -> str:
        return f"{self._path}/{name.strip('/')}" if name else self._path

    def renew(self, name: str = "") -> float:
        """Once; how many seconds it lasts."""
        period = c.c_uint32()
        _errors.check(
            self.rack._handle.call(
                lib.aq_job_renew, path_bytes(self._below(name)), period
            )
        )
        return period.value / 1000

    def open(
        self,
        name: str,
        mode: str = "r",
        buffering: int = 1 << 16,
        encoding: Optional[str] = None,
        *,
        block_bytes: int = 0,
        load: bool = False,
    ) -> Union[io.BufferedReader, io.BufferedWriter, io.TextIOWrapper, File]:
        """As the builtin open: r, a, w (a file that is there is replaced) and
        x, with b for bytes. What a buffer holds is appended as one record."""
        kind = mode.replace("b", "").replace("t", "") or "r"
        raw = File(
            self.rack, self._below(name), kind, block_bytes=block_bytes,
            load=load,
        )
        if buffering == 0:
            return raw
        buffered: Union[io.BufferedReader, io.BufferedWriter]
        if kind == "r":
            buffered = io.BufferedReader(raw, buffering)
        else:
            buffered = io.BufferedWriter(raw, buffering)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, encoding)

    def queue(
        self,
        name: str,
        maxsize: int = 0,
        *,
        raw: bool = False,
        tasks: bool = False,
        block_bytes: int = 0,
        load: bool = False,
    ) -> Queue:
        """Opens a queue, and makes it if it is not there."""
        return Queue(
            self, self._below(name), maxsize, raw=raw, tasks=tasks,
            block_bytes=block_bytes, load=load,
        )

    def ekv(
        self,
        name: str,
        *,
        keys: type = str,
        values: type = object,
        block_bytes: int = 0,
        load: bool = False,
    ) -> Ekv:
        """Opens a key-value store, and makes it if it is not there."""
        return Ekv(
            self, self._below(name), keys=keys, values=values,
            block_bytes=block_bytes, load=load,
        )

    def flush(
        self, name: str = "", timeout: float = 60, freeze: bool = False
    ) -> None:
        """Writes it, or all below it, to the rack's vault; with freeze each
        object as all of it was at one moment, for which changes wait."""
        flush(self.rack, self._below(name), timeout, freeze)

    def load(
        self, name: str = "", back: bool = False, timeout: float = 60
    ) -> None:
        """Brings it, or all below it, back from the vault; with back also what
        is there, which becomes what it was when it was flushed last."""
        load(self.rack, self._below(name), back, timeout)

    def watch(
        self, name: str, events: Optional[Iterable[str]] = None
    ) -> Watch:
        """What is done to a file, queue or store from now on."""
        return _watch(self.rack, self._below(name), events)

    def listdir(self, name: str = "") -> list[Name]:
        return listdir(self.rack, self._below(name))

    def stat(self, name: str = "") -> Name:
        return stat(self.rack, self._below(name))

    def makedirs(self, name: str) -> None:
        makedirs(self.rack, self._below(name))

    def rename(self, name: str, to: str) -> None:
        rename(self.rack, self._below(name), self._below(to))

    def remove(self, name: str = "", recursive: bool = False) -> None:
        """Without a name: the job and all that is in it."""
        remove(self.rack, self._below(name), recursive or not name)

    def close(self) -> None:
        """Nothing is renewed any more. Twice is allowed."""
        renewal, self._renewal = self._renewal, None
        if renewal is not None and renewal.is_alive():
            renewal.end()
        if self._owns:
            self.rack.close()

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<aquifer.elastic.Job {self._path!r}>"


def _reopen_job(path: str, rack: Optional[str]) -> Job:
    return Job(path, rack=None if rack is None else Rack(rack), create=False)


def _reopen_queue(
    job: Job, path: str, maxsize: int, raw: bool, tasks: bool, block_bytes: int
) -> Queue:
    return Queue(
        job, path, maxsize, raw=raw, tasks=tasks, block_bytes=block_bytes
    )
