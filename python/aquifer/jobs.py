# SPDX-License-Identifier: Apache-2.0
"""Models of jobs on elastic memory: MapReduce, dataflow with streams, Piccolo.
examples/word_count.py and its sisters show each of them.

A task is a process, which may die at any moment and is run again then. What it
has made counts from the moment its result is renamed, and only the first of
several runs of a task can do that. The process that calls these functions is
the master: it renews the job's lease and keeps nothing that a second call in its
place needs. Functions of tasks are importable, as multiprocessing wants them
("spawn").
"""
from __future__ import annotations

import ctypes
import heapq
import itertools
import multiprocessing
import os
import pickle
import signal
import sys
import traceback
import uuid
import zlib
from collections import deque
from multiprocessing.connection import wait
from operator import itemgetter
from queue import Empty as _Empty
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Optional, Sequence

from . import _errors
from .elastic import Ekv, Job, Queue

__all__ = ["Flow", "Table", "TaskError", "lines", "map_reduce", "piccolo", "splits"]

_Pairs = Iterable[tuple[Any, Any]]
_Mapper = Callable[[Job, Any], _Pairs]
_Reducer = Callable[[Any, Iterator[Any]], Iterable[str]]
_Combiner = Optional[Callable[[Any, Iterator[Any]], Any]]
_Partition = Callable[[Any, int], int]
_BATCH = 32  # items of a stream between two saves
_NAP_S = 0.2


class TaskError(RuntimeError):
    """A task has failed as often as it may."""


# ---- tasks -----------------------------------------------------------------


def _enter(master: int, function: Callable[..., None], arguments: Any) -> None:
    """In the process of a task, which ends with its master."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != master:
        os._exit(1)
    try:
        function(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


class _Task(NamedTuple):
    name: str
    function: Callable[..., None]
    arguments: tuple[Any, ...]


class _Runner:
    """Runs tasks as processes, those that die again."""

    def __init__(self, workers: int, attempts: int, backups: bool = False) -> None:
        if workers < 1 or attempts < 1:
            raise ValueError("at least one worker and one attempt")
        self._workers, self._attempts = workers, attempts
        self._backups = backups
        self._context = multiprocessing.get_context("spawn")
        self._running: dict[Any, _Task] = {}
        self._tries: dict[str, int] = {}

    def start(self, task: _Task) -> None:
        tries = self._tries[task.name] = self._tries.get(task.name, 0) + 1
        if tries > self._attempts:
            raise TaskError(f"{task.name} has failed {self._attempts} times")
        process = self._context.Process(
            target=_enter, args=(os.getpid(), task.function, task.arguments), name=task.name
        )
        process.start()
        self._running[process] = task

    def names(self) -> list[str]:
        return [task.name for task in self._running.values()]

    def ended(self, timeout: float) -> list[tuple[_Task, bool]]:
        """Those that end in this time, and whether well."""
        done = wait([p.sentinel for p in self._running], timeout)
        found = []
        for process in [p for p in self._running if p.sentinel in done]:
            process.join()
            found.append((self._running.pop(process), process.exitcode == 0))
        return found

    def stop(self, name: Optional[str] = None) -> None:
        for process, task in list(self._running.items()):
            if name is None or task.name == name:
                process.kill()
                process.join()
                del self._running[process]

    def run_all(self, tasks: Sequence[_Task]) -> None:
        """Until each has ended well once. With backups idle workers run what
        others still run, a second time."""
        todo, left = deque(tasks), {task.name: task for task in tasks}
        try:
            while left:
                while todo and len(self._running) < self._workers:
                    self.start(todo.popleft())
                if self._backups and not todo:
                    self._start_backup(left)
                for task, is_well in self.ended(_NAP_S):
                    if is_well and left.pop(task.name, None):
                        self.stop(task.name)
                    elif task.name in left and task.name not in self.names():
                        todo.append(task)
        finally:
            self.stop()

    def _start_backup(self, left: dict[str, _Task]) -> None:
        names = self.names()
        for name in names:
            if len(self._running) >= self._workers:
                return
            if names.count(name) == 1 and self._tries[name] < self._attempts:
                self.start(left[name])


# ---- files -----------------------------------------------------------------


Split = NamedTuple("Split", [("name", str), ("start", int), ("end", int)])


def splits(job: Job, names: Iterable[str], size: int = 4 << 20) -> list[Split]:
    """Parts of at most `size` bytes of these files of the job."""
    found = []
    for name in names:
        with job.open(name, "rb", 0) as f:
            total = f.size()
        found += [Split(name, at, min(at + size, total)) for at in range(0, total, size)]
    return found


def lines(job: Job, split: Split) -> Iterator[str]:
    """The lines that begin in this part, without their ends."""
    with job.open(split.name, "rb", 1 << 18) as f:
        at = max(split.start - 1, 0)
        f.seek(at)
        if split.start:
            at += len(f.readline())  # the end of a line that began before
        while at < split.end and (line := f.readline()):
            at += len(line)
            yield line.rstrip(b"\r\n").decode("utf-8", "replace")


def _exists(job: Job, name: str) -> bool:
    try:
        job.stat(name)
        return True
    except _errors.NotFoundError:
        return False


def _commit(job: Job, made: str, name: str) -> None:
    """The first run of a task counts; what others made is removed."""
    try:
        job.rename(made, name)
    except _errors.ExistsError:
        job.remove(made, recursive=True)


def _attempt_name(base: str, task: str) -> str:
    return f"{base}/try/{task}-{uuid.uuid4().hex[:12]}"


def _records(f: Any) -> Iterator[Any]:
    with f:
        while True:
            try:
                yield pickle.load(f)
            except EOFError:
                return


def _make_folder(job: Job, name: str) -> None:
    try:
        job.makedirs(name)
    except _errors.ExistsError:
        pass


# ---- MapReduce -------------------------------------------------------------


def by_hash(key: Any, partitions: int) -> int:
    """The same in every process, unlike hash()."""
    return zlib.crc32(repr(key).encode()) % partitions


class _MapReduce(NamedTuple):
    job: Job
    base: str
    mapper: _Mapper
    reducer: _Reducer
    combiner: _Combiner
    partition: _Partition
    partitions: int
    block_bytes: int


def _groups(pairs: _Pairs) -> Iterator[tuple[Any, Iterator[Any]]]:
    for key, group in itertools.groupby(pairs, key=itemgetter(0)):
        yield key, (value for _, value in group)


def _map(m: _MapReduce, index: int, split: Any) -> None:
    parts: list[Any] = [[] for _ in range(m.partitions)]
    for pair in m.mapper(m.job, split):
        parts[m.partition(pair[0], m.partitions)].append(pair)
    made = _attempt_name(m.base, f"map-{index}")
    m.job.makedirs(made)
    for number, part in enumerate(parts):
        part.sort(key=itemgetter(0))
        with m.job.open(f"{made}/{number}", "xb", 1 << 18, block_bytes=m.block_bytes) as out:
            pairs: _Pairs = part
            if m.combiner is not None:
                pairs = ((k, m.combiner(k, v)) for k, v in _groups(part))
            for pair in pairs:
                pickle.dump(pair, out)
    _commit(m.job, made, f"{m.base}/map/{index}")


def _reduce(m: _MapReduce, number: int, maps: int) -> None:
    sources = [
        _records(m.job.open(f"{m.base}/map/{i}/{number}", "rb", 1 << 18)) for i in range(maps)
    ]
    made = _attempt_name(m.base, f"reduce-{number}")
    with m.job.open(made, "x", block_bytes=m.block_bytes) as out:
        merged = heapq.merge(*sources, key=itemgetter(0))
        for key, values in _groups(merged):
            for line in m.reducer(key, values):
                out.write(line + "\n")
    _commit(m.job, made, f"{m.base}/out/part-{number}")


def map_reduce(
    job: Job, inputs: Sequence[Any], mapper: _Mapper, reducer: _Reducer, *, name: str = "mr",
    combiner: _Combiner = None, partition: _Partition = by_hash, partitions: int = 2,
    workers: int = 2, attempts: int = 4, backups: bool = False, block_bytes: int = 1 << 20,
) -> list[str]:
    """The names of the results, one for each partition.

    mapper(job, input) yields pairs; reducer(key, values) yields lines. All
    values of a key come together, keys in their order. combiner(key, values)
    makes one value of several before they are exchanged. Each of these files
    has at least a block. Who calls it again with the same name goes on where
    the master died.
    """
    m = _MapReduce(job, name, mapper, reducer, combiner, partition, partitions, block_bytes)
    results = [f"{name}/out/part-{i}" for i in range(partitions)]
    if all(_exists(job, result) for result in results):
        return results
    for folder in ("try", "map", "out"):
        _make_folder(job, f"{name}/{folder}")
    runner = _Runner(workers, attempts, backups)
    runner.run_all([
        _Task(f"map-{i}", _map, (m, i, split))
        for i, split in enumerate(inputs) if not _exists(job, f"{name}/map/{i}")
    ])
    runner.run_all([
        _Task(f"reduce-{i}", _reduce, (m, i, len(inputs)))
        for i in range(partitions) if not _exists(job, results[i])
    ])
    job.remove(f"{name}/map", recursive=True)
    job.remove(f"{name}/try", recursive=True)
    return results


# ---- dataflow --------------------------------------------------------------


class _Vertex(NamedTuple):
    name: str
    body: Callable[..., None]
    function: Callable[..., Any]
    inputs: tuple[str, ...]  # files
    outputs: tuple[str, ...]
    streams_in: tuple[str, ...]  # queues
    streams_out: tuple[str, ...]


class _Scene(NamedTuple):
    job: Job
    base: str
    maxsize: int
    window: int

    def queue(self, name: str) -> Queue:
        return self.job.queue(f"{self.base}/{name}", self.maxsize, tasks=True)

    def memory(self) -> Ekv:
        """Where streams keep how far they are."""
        return self.job.ekv(f"{self.base}/memory")


def _run_files(scene: _Scene, v: _Vertex) -> None:
    readers = [scene.job.open(f"{scene.base}/{n}") for n in v.inputs]
    made = [_attempt_name(scene.base, f"{v.name}-{n}") for n in v.outputs]
    writers = [scene.job.open(name, "x") for name in made]
    v.function(readers, writers)
    for f in readers + writers:
        f.close()
    for temporary, name in zip(made, v.outputs):
        _commit(scene.job, temporary, f"{scene.base}/{name}")


def _run_source(scene: _Scene, v: _Vertex) -> None:
    """Puts what a generator yields; after a death it goes on behind what was
    put, so a generator yields the same each time."""
    readers = [scene.job.open(f"{scene.base}/{n}") for n in v.inputs]
    memory, out = scene.memory(), scene.queue(v.streams_out[0])
    key = f"source {v.name}"
    done = memory.get(key, 0)
    items = itertools.islice(enumerate(v.function(*readers)), done, None)
    while batch := list(itertools.islice(items, _BATCH)):
        out.put_many([((v.name, n), item) for n, item in batch])
        memory[key] = batch[-1][0] + 1


def _run_each(scene: _Scene, v: _Vertex) -> None:
    """What an item becomes has names that follow from the item's, so a second
    run of it makes the same again."""
    todo = scene.queue(v.streams_in[0])
    outs = [scene.queue(name) for name in v.streams_out]
    while True:
        try:
            name, item = todo.get()
        except EOFError:
            return
        for n, made in enumerate(v.function(item)):
            number, value = made if len(outs) > 1 else (0, made)
            outs[number].put(((name, n), value))
        todo.task_done()


def _run_fold(scene: _Scene, v: _Vertex) -> None:
    """The state and the names of what is in it are one value, written before
    items are acknowledged: each item counts once."""
    todo, memory = scene.queue(v.streams_in[0]), scene.memory()
    state, names = memory.get(f"fold {v.name}", (None, ()))
    recent, seen = deque(names), set(names)
    is_open = True
    while is_open:
        taken = 0
        try:
            while taken < _BATCH:
                name, item = todo.get(True, None if not taken else 0)
                taken += 1
                if name in seen:
                    continue
                state = v.function(state, item)
                recent.append(name)
                seen.add(name)
        except EOFError:
            is_open = False
        except _Empty:
            pass
        while len(recent) > scene.window:
            seen.discard(recent.popleft())
        if taken:
            memory[f"fold {v.name}"] = (state, tuple(recent))
        for _ in range(taken):
            todo.task_done()
    made = _attempt_name(scene.base, v.name)
    with scene.job.open(made, "x") as out:
        for line in v.function(state, None):
            out.write(line + "\n")
    _commit(scene.job, made, f"{scene.base}/{v.outputs[0]}")


class Flow:
    """A graph of tasks whose edges are files and queues.

    A task is ready when all files that it reads are complete. Tasks that are
    joined by queues run together, and are ready when all of them are; a queue
    ends when all that write to it have ended. A task that dies is run again
    alone: items that it had not finished come back to it.
    """

    def __init__(self, job: Job, name: str = "flow", *, maxsize: int = 256) -> None:
        if maxsize < 1:
            raise ValueError("queues of a flow have a bound of at least 1")
        self._job, self._base, self._maxsize = job, name, maxsize
        self._vertices: list[_Vertex] = []

    def _add(self, vertex: _Vertex) -> None:
        made = [n for v in self._vertices for n in v.outputs]
        if any(v.name == vertex.name for v in self._vertices):
            raise ValueError(f"there is a task {vertex.name} already")
        if set(made) & set(vertex.outputs):
            raise ValueError(f"two tasks write to one file: {vertex.outputs}")
        self._vertices.append(vertex)

    def task(
        self, name: str, function: Callable[[list[Any], list[Any]], None],
        inputs: Sequence[str] = (), outputs: Sequence[str] = (),
    ) -> None:
        """function(readers, writers), text files."""
        self._add(_Vertex(name, _run_files, function, tuple(inputs), tuple(outputs), (), ()))

    def source(
        self, name: str, function: Callable[..., Iterable[Any]], output: str,
        inputs: Sequence[str] = (),
    ) -> None:
        """function(*readers) yields what goes to the queue, the same each
        time."""
        self._add(_Vertex(name, _run_source, function, tuple(inputs), (), (), (output,)))

    def each(
        self, name: str, function: Callable[[Any], Iterable[Any]], input: str,
        outputs: Sequence[str],
    ) -> None:
        """function(item) yields what goes to the output; where there are
        several, pairs of which one and what."""
        self._add(_Vertex(name, _run_each, function, (), (), (input,), tuple(outputs)))

    def fold(self, name: str, function: Callable[[Any, Any], Any], input: str, output: str) -> None:
        """function(state, item) is the next state, the first one None. At the
        end function(state, None) yields the lines of the file."""
        self._add(_Vertex(name, _run_fold, function, (), (output,), (input,), ()))

    def _gang(self, first: _Vertex) -> list[_Vertex]:
        """Those that are joined with it by queues."""
        gang, before = [first], 0
        while before != len(gang):
            before = len(gang)
            queues = {q for v in gang for q in v.streams_in + v.streams_out}
            gang = [
                v for v in self._vertices
                if v is first or queues & set(v.streams_in + v.streams_out)
            ]
        return gang

    def _check(self) -> None:
        made = {n for v in self._vertices for n in v.outputs}
        fed = {q for v in self._vertices for q in v.streams_out}
        for v in self._vertices:
            for queue in v.streams_in:
                if queue not in fed:
                    raise ValueError(f"nobody writes to the queue {queue}")
            for name in v.inputs:
                if name not in made and not _exists(self._job, f"{self._base}/{name}"):
                    raise ValueError(f"nobody makes the file {name}")

    def run(self, workers: int = 2, attempts: int = 4) -> None:
        """Until all have ended. Gangs are run whole, whatever `workers` is."""
        self._check()
        _make_folder(self._job, f"{self._base}/try")
        window = self._maxsize * (1 + len(self._vertices)) + _BATCH
        scene = _Scene(self._job, self._base, self._maxsize, window)
        if any(v.streams_out for v in self._vertices):
            scene.memory().close()
        runner = _Runner(workers, attempts)
        waiting = [v for v in self._vertices if not self._is_made(v)]
        left = {v.name: v for v in waiting}
        try:
            while left:
                waiting = self._start_ready(runner, scene, waiting, workers)
                if not runner.names():
                    raise ValueError(f"the tasks {sorted(left)} wait for each other")
                for task, is_well in runner.ended(_NAP_S):
                    if not is_well:
                        runner.start(task)
                        continue
                    v = left.pop(task.name)
                    for queue in v.streams_out:
                        if not any(queue in o.streams_out for o in left.values()):
                            scene.queue(queue).seal()
        finally:
            runner.stop()
        self._job.remove(f"{self._base}/try", recursive=True)

    def _is_made(self, v: _Vertex) -> bool:
        """Streams are run again as a whole: their ends know what they had."""
        return not v.streams_in + v.streams_out and all(
            _exists(self._job, f"{self._base}/{n}") for n in v.outputs
        )

    def _start_ready(
        self, runner: _Runner, scene: _Scene, waiting: list[_Vertex], workers: int
    ) -> list[_Vertex]:
        ready: set[str] = set()
        for v in waiting:
            gang = self._gang(v)
            busy = len(runner.names()) + len(ready)
            if v.name in ready or busy and busy + len(gang) > workers:
                continue
            if all(_exists(self._job, f"{self._base}/{n}") for one in gang for n in one.inputs):
                ready |= {one.name for one in gang}
        for v in waiting:
            if v.name in ready:
                for queue in v.streams_in + v.streams_out:
                    scene.queue(queue).close()
                runner.start(_Task(v.name, v.body, (scene, v)))
        return [v for v in waiting if v.name not in ready]


# ---- Piccolo ---------------------------------------------------------------


class Table(Ekv):
    """A table of a Piccolo job: keys are texts, values numbers (int) or
    objects. All tables lie in one store, so that one image has all of them as
    they were at one moment."""

    def __init__(self, job: Job, path: str, name: str, values: type) -> None:
        self._prefix = f"{name}\0".encode()
        super().__init__(job, job._below(path), keys=bytes, values=values)

    def _key(self, key: Any) -> bytes:
        return self._prefix + super()._key(key)

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            if key.startswith(self._prefix):
                yield key[len(self._prefix):].decode()

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _run_kernel(
    job: Job, path: str, tables: dict[str, type], kernel: Callable[..., None],
    part: int, parts: int, step: int,
) -> None:
    opened = {n: Table(job, path, n, kind) for n, kind in tables.items()}
    kernel(opened, part, parts, step)


def _begin_piccolo(job: Job, path: str) -> tuple[Table, int]:
    """The step to go on with: that of the last checkpoint, else 0."""
    if _exists(job, path):
        try:
            job.load(path, back=True)
        except _errors.NotFoundError:  # it has no image
            job.remove(path)
    control = Table(job, path, "", object)
    if control.get("running") is not None:  # an image that is no checkpoint
        job.remove(path)
        control = Table(job, path, "", object)
    return control, control.get("step", 0)


def piccolo(
    job: Job, kernel: Callable[..., None], tables: dict[str, type], steps: int, *,
    name: str = "piccolo", parts: int = 2, workers: int = 2, attempts: int = 4,
    checkpoint: int = 1,
) -> dict[str, Table]:
    """Runs kernel(tables, part, parts, step) for each part, step after step.

    Kernels share tables, {"name": int or object}, and change them as they like;
    what several add to a number of the same step is accumulated. All tables are
    flushed to the rack's vault after each `checkpoint` steps. When a process
    dies they go back to that, and so they do when the master is started again.
    """
    path = f"{name}/tables"
    _make_folder(job, name)
    control, step = _begin_piccolo(job, path)
    failures = 0
    while step < steps:
        try:
            end = min(step + checkpoint, steps)
            control["running"] = step
            for number in range(step, end):
                common = (job, path, tables, kernel)
                _Runner(workers, 1).run_all([
                    _Task(f"kernel-{number}.{i}", _run_kernel, (*common, i, parts, number))
                    for i in range(parts)
                ])
            control["step"], control["running"] = end, None
            job.flush(path)
            step = end
        except TaskError:
            failures += 1
            if failures >= attempts:
                raise
            control, step = _begin_piccolo(job, path)
    return {n: Table(job, path, n, kind) for n, kind in tables.items()}
