# SPDX-License-Identifier: Apache-2.0
"""What aquifer.elastic and aquifer.fs offer; run by python_elastic.sh."""
import collections.abc
import errno
import io
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import unittest

import aquifer
from aquifer import elastic
from aquifer.elastic import Job


class OnJob(unittest.TestCase):
    def setUp(self):
        self.job = Job("/" + self.id().split(".")[-1][:60], lease=60)
        self.addCleanup(self.job.close)
        self.addCleanup(self.job.remove)


class Files(OnJob):
    def test_what_is_written_is_read(self):
        data = os.urandom(300000)
        with self.job.open("a", "wb", block_bytes=65536) as f:
            self.assertIsInstance(f, io.BufferedWriter)
            f.write(data[:100])
            f.write(data[100:])
        with self.job.open("a", "rb") as f:
            self.assertEqual(f.read(), data)
            f.seek(1000)
            self.assertEqual(f.read(10), data[1000:1010])
            self.assertEqual(f.seek(-5, os.SEEK_END), len(data) - 5)
            self.assertEqual(f.read(), data[-5:])
            self.assertEqual(f.read(), b"")
            with self.assertRaises(io.UnsupportedOperation):
                f.write(b"x")

    def test_modes_are_those_of_open(self):
        with self.job.open("t", "w") as f:
            print("ein Wörtchen", file=f)
        with self.job.open("t", "a") as f:
            print("more", file=f)
        with self.job.open("t") as f:
            self.assertEqual(list(f), ["ein Wörtchen\n", "more\n"])
        with self.job.open("t", "w") as f:
            f.write("anew")
        with self.job.open("t") as f:
            self.assertEqual(f.read(), "anew")
        with self.assertRaises(FileExistsError):
            self.job.open("t", "x")
        with self.assertRaises(FileNotFoundError):
            self.job.open("none")
        with self.assertRaises(ValueError):
            self.job.open("t", "r+")
        f = self.job.open("t", "ab", 0)
        f.seal()
        with self.assertRaises(OSError):
            f.write(b"x")
        f.close()
        with self.assertRaises(ValueError):
            f.write(b"x")

    def test_a_large_write_is_several_records(self):
        with self.job.open("l", "wb", 0, block_bytes=65536) as f:
            data = memoryview(os.urandom(200000))
            at = 0
            while at < len(data):
                n = f.write(data[at:])
                self.assertGreater(n, 0)
                at += n
        with self.job.open("l", "rb") as f:
            self.assertEqual(f.read(), data)


def count(store, times):
    for i in range(times):
        store.add("shared")
        store.add(f"own-{os.getpid()}")


class Stores(OnJob):
    def test_it_is_a_mapping(self):
        store = self.job.ekv("m")
        self.assertIsInstance(store, collections.abc.MutableMapping)
        mine = {"a": 1, "b": [2, "zwei"], "c": None, "ü": b"x" * 20000}
        store.update(mine)
        self.assertEqual(len(store), 4)
        self.assertEqual(dict(store), mine)
        self.assertEqual(sorted(store), sorted(mine))
        self.assertEqual(store, mine)
        self.assertIn("a", store)
        self.assertNotIn("z", store)
        self.assertIn(("a", 1), store.items())
        self.assertIn(None, store.values())
        self.assertEqual(len(store.items()), 4)
        self.assertEqual(store.get("z", 7), 7)
        self.assertEqual(store.setdefault("a", 9), 1)
        self.assertEqual(store.setdefault("n", 9), 9)
        self.assertEqual(store.pop("n"), 9)
        del store["a"]
        with self.assertRaises(KeyError):
            store["a"]
        with self.assertRaises(KeyError):
            del store["a"]
        with self.assertRaises(TypeError):
            store[7] = 1
        with self.assertRaises(TypeError):
            store.add("b")
        store.clear()
        self.assertFalse(store)

    def test_bytes_numbers_and_versions(self):
        raw = self.job.ekv("raw", keys=bytes, values=bytes)
        self.assertEqual(raw.append(b"\0k", b"abc"), 3)
        self.assertEqual(raw.append(b"\0k", b"def"), 6)
        self.assertEqual(list(raw.items()), [(b"\0k", b"abcdef")])
        version = raw.put(b"v", b"1", elastic.Ekv.put.__defaults__[0])
        self.assertEqual(raw.lookup(b"v"), (b"1", version))
        self.assertGreater(raw.put(b"v", b"2", version), version)
        with self.assertRaises(OSError) as caught:
            raw.put(b"v", b"3", version)
        self.assertEqual(caught.exception.errno, errno.ECANCELED)
        with self.assertRaises(FileExistsError):
            raw.put(b"v", b"3", 0)
        numbers = self.job.ekv("numbers", values=int)
        self.assertEqual(numbers.add("n", 5), 5)
        self.assertEqual(numbers.add("n", -7), -2)
        self.assertEqual(numbers.add("n", 3, "max"), 3)
        self.assertEqual(numbers.add("n", -3, "min"), -3)
        self.assertEqual(numbers["n"], -3)
        with self.assertRaises(ValueError):
            self.job.ekv("raw", values=int)["\0k"]
        with self.assertRaises(ValueError):
            self.job.ekv("raw", values=float)

    def test_several_keys_at_a_time(self):
        store = self.job.ekv("g", values=bytes, block_bytes=65536)
        mine = {f"{i}": b"%d" % i * (i % 9 * 300) for i in range(200)}
        store.update(mine, last=b"\0")
        wanted = [*mine, "last", "no such key"]
        self.assertEqual(store.get_many(wanted), {**mine, "last": b"\0"})
        self.assertEqual(store.get_many([]), {})
        with self.assertRaises(TypeError):
            store.add_many({"a": 1})
        with self.assertRaises(OSError) as caught:
            store.update({"a": b"", "": b""})
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        numbers = self.job.ekv("gn", values=int)
        self.assertEqual(numbers.add_many({"a": 2, "b": -3}), {"a": 2, "b": -3})
        self.assertEqual(numbers.add_many({"a": 1, "b": 1}, "max")["b"], 1)
        self.assertEqual(numbers.get_many("ab"), {"a": 2, "b": 1})

    def test_processes_share_it(self):
        store = self.job.ekv("s", values=int, block_bytes=65536)
        self.assertEqual(pickle.loads(pickle.dumps(store)).add("shared", 0), 0)
        spawn = multiprocessing.get_context("spawn")
        several = [spawn.Process(target=count, args=(store, 100)) for _ in "ab"]
        for p in several:
            p.start()
        count(store, 100)
        for p in several:
            p.join()
            self.assertEqual(p.exitcode, 0)
        self.assertEqual(store["shared"], 300)
        self.assertEqual(sorted(store.values()), [100, 100, 100, 300])

    def test_it_goes_back_to_its_image(self):
        store = self.job.ekv("c", block_bytes=65536)
        store.update({f"{i}": "x" * 3000 for i in range(60)})
        self.assertGreater(store.stat()[2], 1)
        self.job.flush("c")
        store["0"] = "changed"
        store["more"] = 1
        self.job.load("c", back=True)
        with self.assertRaises(aquifer.StaleError):
            store["0"]
        again = self.job.ekv("c")
        self.assertEqual(len(again), 60)
        self.assertEqual(set(again.values()), {"x" * 3000})
        self.assertEqual(self.job.stat("c").kind, "ekv")


def consume(todo, done):
    while True:
        item = todo.get()
        if item is None:
            return
        done.put(item * item)


def take_and_die(todo, told):
    told.put(todo.get())
    os.kill(os.getpid(), signal.SIGKILL)


class Queues(OnJob):
    def test_the_methods_of_queue_queue(self):
        q = self.job.queue("q", maxsize=2)
        self.assertTrue(q.empty())
        with self.assertRaises(queue.Empty):
            q.get_nowait()
        with self.assertRaises(queue.Empty):
            q.get(timeout=0.01)
        q.put({"a": 1})
        q.put("two")
        self.assertTrue(q.full())
        self.assertEqual(q.qsize(), 2)
        with self.assertRaises(queue.Full):
            q.put_nowait(3)
        with self.assertRaises(queue.Full):
            q.put(3, timeout=0.01)
        self.assertEqual(q.get(), {"a": 1})
        self.assertEqual(q.get_nowait(), "two")
        with self.assertRaises(ValueError):
            q.get(timeout=-1)
        with self.assertRaises(ValueError):
            q.task_done()
        q.seal()
        with self.assertRaises(EOFError):
            q.put(1)
        with self.assertRaises(EOFError):
            q.get()

    def test_many_and_large_items(self):
        q = self.job.queue("m", raw=True, block_bytes=65536)
        items = [os.urandom(n) for n in (0, 1, 100, 5000, 40000)] * 20
        q.put_many(items)
        self.assertEqual([q.get() for _ in items], items)

    def test_task_done_and_join(self):
        q = self.job.queue("t", tasks=True)
        for i in range(10):
            q.put(i)
        got = []

        def work():
            for _ in range(10):
                got.append(q.get())
                q.task_done()

        worker = threading.Thread(target=work)
        worker.start()
        q.join()
        worker.join()
        self.assertEqual(got, list(range(10)))
        with self.assertRaises(ValueError):
            q.task_done()

    def test_processes_share_it(self):
        todo, done = self.job.queue("todo"), self.job.queue("done")
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=consume, args=(todo, done))
                   for _ in range(2)]
        for w in workers:
            w.start()
        for i in list(range(20)) + [None, None]:
            todo.put(i)
        for w in workers:
            w.join()
            self.assertEqual(w.exitcode, 0)
        self.assertEqual(sorted(done.get(False) for _ in range(20)),
                         [i * i for i in range(20)])

    def test_an_item_of_a_dead_consumer_comes_back(self):
        todo = self.job.queue("d", tasks=True)
        told = self.job.queue("told")
        todo.put("precious")
        context = multiprocessing.get_context("spawn")
        victim = context.Process(target=take_and_die, args=(todo, told))
        victim.start()
        self.assertEqual(told.get(), "precious")
        victim.join()
        self.assertEqual(todo.get(), "precious")
        todo.task_done()
        self.assertTrue(todo.empty())


class Jobs(unittest.TestCase):
    def test_the_lease_is_renewed_while_it_is_open(self):
        with Job("/renewed", lease=0.5, on_expiry="drop") as job:
            with job.open("a", "wb") as f:
                f.write(b"x")
            threading.Event().wait(2)
            self.assertTrue(job.stat("a").is_ready)
        with aquifer.Rack() as rack:
            for _ in range(1200):
                try:
                    elastic.stat(rack, "/renewed")
                except FileNotFoundError:
                    return
                threading.Event().wait(0.05)
        self.fail("the job goes on to live")

    def test_what_expired_is_loaded(self):
        with Job("/stored", lease=0.5) as job:
            with job.open("a", "wb") as f:
                f.write(b"kept")
        with aquifer.Rack() as rack:
            while elastic.stat(rack, "/stored/a").is_ready:
                threading.Event().wait(0.05)
        with Job("/stored") as job:
            with self.assertRaises(aquifer.StaleError):
                job.open("a")
            with job.open("a", "rb", load=True) as f:
                self.assertEqual(f.read(), b"kept")
            job.remove()

    def test_names(self):
        with Job("/plan", plan={"a": [], "b": ["a"]}, lease=60) as job:
            job.open("a/out", "wb").close()
            job.rename("a/out", "b/in")
            self.assertEqual([(n.path, n.kind) for n in job.listdir("b")],
                             [("/plan/a/b/in", "file")])
            with self.assertRaises(FileNotFoundError):
                job.stat("a/out")
            again = pickle.loads(pickle.dumps(job))
            self.assertEqual(again.path, "/plan")
            again.close()
            job.remove()
            with self.assertRaises(FileNotFoundError):
                job.stat()
        with self.assertRaises(OSError):
            Job("/bad name")
        with self.assertRaises(OSError):
            Job("/odd", on_expiry="sell")


class FileSystem(unittest.TestCase):
    def setUp(self):
        self.job = Job("/fs", lease=60, on_expiry="drop")
        self.addCleanup(self.job.close)
        self.addCleanup(self.job.remove)

    def test_it_is_found_by_its_entry_point(self):
        import fsspec

        with fsspec.open("aquifer://fs/a", "wb") as f:
            f.write(b"one,two\n1,2\n")
        fs = fsspec.filesystem("aquifer")
        self.assertEqual(type(fs).__name__, "AquiferFileSystem")
        self.assertEqual(fs.cat("aquifer://fs/a"), b"one,two\n1,2\n")
        self.assertEqual(fs.info("fs/a")["size"], 12)
        self.assertEqual(fs.ls("/fs", detail=False), ["/fs/a"])
        self.assertTrue(fs.isdir("/fs") and fs.isfile("/fs/a"))
        self.assertFalse(fs.exists("/fs/none"))
        fs.makedirs("/fs/deep/er", exist_ok=True)
        fs.makedirs("/fs/deep/er", exist_ok=True)
        fs.copy("/fs/a", "/fs/deep/er/b")
        fs.mv("/fs/deep/er/b", "/fs/deep/er/c")
        self.assertEqual(fs.find("/fs"), ["/fs/a", "/fs/deep/er/c"])
        self.assertEqual(fs.glob("/fs/deep/*/c"), ["/fs/deep/er/c"])
        with fs.open("/fs/a", "ab") as f:
            f.write(b"3,4\n")
        self.assertEqual(fs.tail("/fs/a", 4), b"3,4\n")
        fs.rm("/fs/deep", recursive=True)
        self.assertEqual(fs.find("/fs"), ["/fs/a"])
        with self.assertRaises(FileNotFoundError):
            fs.open("/fs/none")

    def test_pandas_and_dask(self):
        import dask.dataframe
        import pandas

        for part in range(3):
            frame = pandas.DataFrame({"n": range(part * 100, part * 100 + 100)})
            frame.to_csv(f"aquifer://fs/part-{part}", index=False)
        one = pandas.read_csv("aquifer://fs/part-1")
        self.assertEqual(int(one["n"].sum()), sum(range(100, 200)))
        all_of_it = dask.dataframe.read_csv("aquifer://fs/part-*")
        total = all_of_it["n"].sum().compute(scheduler="threads")
        self.assertEqual(int(total), sum(range(300)))

    def test_events_are_awaited(self):
        import asyncio

        with elastic.Job("/events", lease=60) as job:
            q = job.queue("q", raw=True)
            q.put(b"before")
            with q.watch(["put", "seal"]) as watch:
                self.assertIsNone(watch.next())

                async def listen():
                    heard = []
                    async for event in watch:
                        heard.append((event.kind, event.data))
                        if event.kind == "seal":
                            return heard
                        if len(heard) == 3:
                            q.seal()
                        else:
                            q.put(b"after " + event.data)

                async def run():
                    task = asyncio.create_task(listen())
                    await asyncio.sleep(0)
                    q.put(b"it")
                    return await task

                heard = asyncio.run(run())
            self.assertEqual(heard[0], ("put", b"it"))
            self.assertEqual(heard[1], ("put", b"after it"))
            self.assertEqual(heard[-1][0], "seal")
            self.assertEqual(len(heard), 4)
            with self.assertRaises(ValueError):
                q.watch(["nothing"])
            with self.assertRaises(FileNotFoundError):
                job.watch("none")


if __name__ == "__main__":
    unittest.main()
