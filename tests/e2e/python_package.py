# SPDX-License-Identifier: Apache-2.0
"""What the Python package promises, on a rack of two nodes and an engine.
Started by python_package.sh; AQ_OTHER_RACK names a second rack."""
import array
import asyncio
import ctypes
import errno
import gc
import mmap
import os
import pickle
import random
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import aquifer
from aquifer import _library, _structs

NOT_DATA = (5, 5.0, None, True, ["a"], {"a": 1}, object())


class OnRack(unittest.TestCase):
    def setUp(self):
        self.rack = aquifer.Rack()
        self.addCleanup(self.rack.close)

    def region(self, size=1 << 20, **options):
        name = f"r-{os.urandom(4).hex()}"
        region = self.rack.create_region(name, size, **options)
        self.addCleanup(self.delete_region, name)
        return region

    def delete_region(self, name):
        with aquifer.Rack() as rack:
            rack.delete_region(name)

    def table(self, capacity=2000, **options):
        name = f"t-{os.urandom(4).hex()}"
        options.setdefault("extent_bytes", 8 << 20)
        table = self.rack.create_table(name, capacity, **options)
        self.addCleanup(self.drop, "drop_table", name)
        return table

    def index(self, **options):
        name = f"i-{os.urandom(4).hex()}"
        options.setdefault("size_bytes", 4 << 20)
        index = self.rack.create_index(name, **options)
        self.addCleanup(self.drop, "drop_index", name)
        return index

    def drop(self, how, name):
        with aquifer.Rack() as rack:
            getattr(rack, how)(name)

    def refused(self, error, words, call, *arguments, **more):
        with self.assertRaisesRegex(error, words):
            call(*arguments, **more)


class Regions(OnRack):
    def test_what_was_written_is_read(self):
        region = self.region(64 << 10)
        self.assertEqual(region.read(0, 4), b"\0\0\0\0")
        self.assertEqual(region.write(100, b"hello"), 5)
        self.assertEqual(region.read(99, 7), b"\0hello\0")
        self.assertEqual(region.read(5, 0), b"")
        self.assertEqual(len(region), region.size)
        self.assertEqual(region.info().size, region.size)
        region.resize(128 << 10)
        self.assertEqual(region.info().size, 128 << 10)
        self.assertIn(region.name, [r.name for r in self.rack.regions()])

    def test_buffers_of_all_kinds_are_used_in_place(self):
        region = self.region()
        data = os.urandom(4096)
        with mmap.mmap(-1, 4096) as pages:
            pages[:] = data
            for source in (data, bytearray(data), memoryview(data), pages,
                           memoryview(bytearray(data)),
                           array.array("Q", data)):
                region.write(0, b"\0" * 4096)
                self.assertEqual(region.write(0, source), 4096)
                self.assertEqual(region.read(0, 4096), data)
        into = bytearray(4098)
        region.read_into(0, memoryview(into)[1:4097])
        self.assertEqual(bytes(into), b"\0" + data + b"\0")
        words = array.array("Q", bytes(4096))
        self.assertEqual(region.read_into(0, words), 4096)
        self.assertEqual(words.tobytes(), data)
        words.append(1)  # nothing holds it any more
        self.refused(BufferError, "written", region.read_into, 0, bytes(8))
        self.refused(BufferError, "one piece", region.write, 0,
                     memoryview(data)[::2])

    def test_atomics_return_the_former_value(self):
        region = self.region()
        self.assertEqual(region.fetch_and_add(8, 5), 0)
        self.assertEqual(region.fetch_and_add(8, -6), 5)
        self.assertEqual(region.fetch_and_add(8, 0), 2**64 - 1)
        self.assertEqual(region.compare_and_swap(8, 1, 7), 2**64 - 1)
        self.assertEqual(region.compare_and_swap(8, 2**64 - 1, 7), 2**64 - 1)
        self.assertEqual(region.fetch_and_add(8, 0), 7)
        self.refused(aquifer.Error, "", region.fetch_and_add, 3, 1)
        for bad in (2**64, -(2**63) - 1):
            self.refused(ValueError, "64 bits", region.fetch_and_add, 8, bad)
        for bad in (2**64, -1):
            self.refused(ValueError, "from 0", region.compare_and_swap, 8, bad, 0)

    def test_what_is_outside_is_refused(self):
        region = self.region(64 << 10)
        for offset, length in ((64 << 10, 1), (0, 1 << 40), (2**63, 8)):
            with self.assertRaises(aquifer.Error) as caught:
                region.read(offset, length)
            self.assertEqual(caught.exception.errno, errno.ERANGE)
        for bad in (-1, 2**64):
            self.refused(ValueError, "from 0 to", region.read, bad, 1)
            self.refused(ValueError, "from 0 to", region.read, 0, bad)
            self.refused(ValueError, "from 0 to", region.write, bad, b"x")
        self.refused(TypeError, "", region.read, "0", 1)
        self.refused(TypeError, "", region.read, 0.5, 1)

    def test_only_buffers_are_written(self):
        region = self.region()
        for bad in NOT_DATA + ("text",):
            self.refused(TypeError, "buffer, not", region.write, 0, bad)
        self.refused(TypeError, "buffer, not", region.read_into, 0, "text")
        self.assertEqual(region.read(0, 8), bytes(8))

    def test_names_and_errors_of_the_rack(self):
        self.refused(aquifer.NotFoundError, "nothing", self.rack.open_region,
                     "nothing")
        self.refused(FileNotFoundError, "", self.rack.delete_region, "nothing")
        region = self.region()
        self.refused(aquifer.ExistsError, "", self.rack.create_region,
                     region.name, 4096)
        self.refused(aquifer.NoSpaceError, "", self.rack.create_region, "big",
                     1 << 40)
        self.refused(TypeError, "str", self.rack.open_region, b"bytes")
        self.refused(ValueError, "zero", self.rack.open_region, "a\0b")
        self.refused(aquifer.Error, "", self.rack.create_region, "bad/name", 4096)
        self.refused(TypeError, "str", aquifer.Rack, 5)
        self.refused(aquifer.NotFoundError, "no-such-rack", aquifer.Rack,
                     "no-such-rack")
        with self.rack.open_region(region.name, read_only=True) as only:
            self.assertEqual(only.read(0, 1), b"\0")
            self.refused(aquifer.AccessError, "", only.write, 0, b"x")

    def test_a_region_may_span_nodes(self):
        region = self.region(256 << 10, nodes="all", stripe_bytes=4096)
        self.assertEqual(region.info().nodes, 2)
        data = os.urandom(100_000)
        region.write(1000, data)
        self.assertEqual(region.read(1000, len(data)), data)


class Tables(OnRack):
    def test_a_table_is_a_mapping(self):
        table = self.table()
        self.assertFalse(table)
        table["ann"] = b"42"
        table[b"bob"] = bytearray(b"7")
        table[memoryview(b"cid")] = memoryview(b"xyz")[1:]
        self.assertEqual(dict(table), {b"ann": b"42", b"bob": b"7", b"cid": b"yz"})
        self.assertEqual(table.get("nobody"), None)
        self.assertEqual(table.get("nobody", 3), 3)
        self.assertIn("ann", table)
        self.assertNotIn("nobody", table)
        self.assertEqual(len(table), 3)
        self.assertEqual(sorted(table.values()), [b"42", b"7", b"yz"])
        self.assertEqual(sorted(table.keys()), [b"ann", b"bob", b"cid"])
        self.assertEqual(table.setdefault("ann", b"1"), b"42")
        self.assertEqual(table.setdefault("dan", b"1"), b"1")
        self.assertEqual(table.pop("dan"), b"1")
        del table["bob"]
        for missing in (table.__getitem__, table.__delitem__, table.pop,
                        table.expiry):
            with self.assertRaises(KeyError) as caught:
                missing("bob")
            self.assertEqual(caught.exception.args, ("bob",))
        table.update({"x": b"1"}, y=b"2")
        self.assertEqual(table.get_many(["y", "x"]), [b"2", b"1"])
        table.clear()
        self.assertEqual(len(table), 0)
        self.assertEqual(list(table.items()), [])

    def test_values_of_all_sizes_come_back(self):
        table = self.table()
        for size in (0, 1, 55, 57, 4095, 4096, 4097, 70_000, 1_000_000):
            data = os.urandom(size)
            table["k"] = data
            self.assertEqual(table["k"], data)
            self.assertIn("k", table)
            table.put_many({"k": data[::-1], "l": data})
            self.assertEqual(table.get_many(["l", "k"]), [data, data[::-1]])
        self.refused(aquifer.Error, "", table.put, "k", bytes((64 << 20) + 1))

    def test_conditions_counters_and_ends(self):
        table = self.table()
        self.assertTrue(table.put("n", b"1", nx=True))
        self.assertFalse(table.put("n", b"2", nx=True))
        self.assertFalse(table.put("m", b"2", xx=True))
        self.assertEqual(table.increment("n"), 2)
        self.assertEqual(table.increment("n", -5), -3)
        self.assertEqual(table.increment("fresh", 2**63 - 1), 2**63 - 1)
        self.refused(aquifer.Error, "", table.increment, "fresh")
        self.refused(ValueError, "64 bits", table.increment, "n", 2**63)
        table["words"] = b"no number"
        self.refused(aquifer.Error, "", table.increment, "words")
        self.assertTrue(table.compare_and_swap("n", b"-3", b"4"))
        self.assertFalse(table.compare_and_swap("n", b"-3", b"5"))
        self.refused(KeyError, "gone", table.compare_and_swap, "gone", b"", b"")
        self.assertIsNone(table.expiry("n"))
        table.expire("n", 1000)
        self.assertGreater(table.expiry("n"), time.time() * 1000)
        table.put("n", b"6", keep_ttl=True)
        self.assertIsNotNone(table.expiry("n"))
        table.expire("n")
        self.assertIsNone(table.expiry("n"))
        table.put("n", b"5", ttl=-1)
        self.assertNotIn("n", table)
        table.put("n", b"5", expire_at_ms=1)
        self.assertIsNone(table.get("n"))
        table.put_many({"n": b"5"}, ttl=-1)
        self.assertIsNone(table.get("n"))

    def test_batches_are_as_single_operations(self):
        table, rng = self.table(8000), random.Random(26)
        pairs = {b"%d" % i: rng.randbytes(rng.choice((0, 8, 50, 300)))
                 for i in range(3000)}
        table.put_many(pairs)
        keys = list(pairs) + [b"no1", b"no2"]
        rng.shuffle(keys)
        self.assertEqual(table.get_many(keys, b"-"),
                         [pairs.get(k, b"-") for k in keys])
        self.assertEqual(dict(table.items()), pairs)
        # Of several values for one key the last one stays.
        table.put_many((b"same", b"%d" % i) for i in range(100))
        self.assertEqual(table["same"], b"99")
        self.assertEqual(table.delete_many(keys[:1000] + [b"no3"]),
                         len(set(keys[:1000]) & set(pairs)))
        self.assertEqual(table.get_many([]), [])
        self.assertEqual(table.delete_many(()), 0)
        table.put_many([])

    def test_numbers_and_others_are_refused_and_nothing_is_stored(self):
        table = self.table()
        for bad in NOT_DATA:
            for call in (table.__getitem__, table.get, table.delete,
                         table.__contains__, table.increment, table.expiry):
                self.refused(TypeError, "a key is a text, bytes or another "
                             "buffer, not", call, bad)
            self.refused(TypeError, "a key", table.__setitem__, bad, b"")
            self.refused(TypeError, "a key", table.get_many, [b"a", bad])
            self.refused(TypeError, "a key", table.put_many, [(b"a", b""), (bad, b"")])
            self.refused(TypeError, "a key", table.delete_many, [bad])
            self.refused(TypeError, "a value", table.__setitem__, b"a", bad)
            self.refused(TypeError, "a value", table.put, b"a", bad, nx=True)
            self.refused(TypeError, "a value", table.setdefault, b"a", bad)
            self.refused(TypeError, "a value", table.compare_and_swap, b"a", bad,
                         b"")
            self.refused(TypeError, "a value", table.put_many,
                         [(b"b", b"fine"), (b"a", bad)])
        self.refused(TypeError, "a value.*encode", table.__setitem__, "a", "text")
        self.refused(TypeError, "to_bytes", table.__setitem__, "a", 7)
        self.refused(TypeError, "not one", table.get_many, b"abc")
        for key in (b"", b"x" * 251):
            for call in (table.get, table.delete, table.increment):
                self.refused(aquifer.Error, "1 to 250", call, key)
            self.refused(aquifer.Error, "1 to 250", table.put_many,
                         [(b"b", b"fine"), (key, b"")])
        self.refused(BufferError, "", table.put, "a", memoryview(b"abcd")[::2])
        self.assertEqual(len(table), 0)

    def test_a_full_table_says_so_and_which_keys_failed(self):
        table = self.table(64, grow=False)
        with self.assertRaises(aquifer.NoSpaceError) as caught:
            table.put_many((b"k%d" % i, b"v") for i in range(500))
        failed = caught.exception.failed
        self.assertRegex(str(caught.exception), r"of 500 puts failed, the first")
        self.assertEqual(len(table), 500 - len(failed))
        self.assertEqual(table.get_many(failed), [None] * len(failed))

    def test_shards_copies_and_a_resize(self):
        table = self.table(shards="all", copies=2, clients=16)
        info = table.info()
        self.assertEqual((info["shards"], info["copies"]), (2, 2))
        table.put_many((b"%d" % i, b"v%d" % i) for i in range(200))
        self.assertEqual(table.health()["shards_single"], 0)
        table.resize(capacity=4000)
        self.assertGreaterEqual(table.health()["capacity"], 4000)
        self.assertEqual(len(dict(table)), 200)
        self.assertEqual(table.check()["bad_rows"], 0)
        table.repair()
        self.refused(TypeError, "no speed", self.rack.create_table, "x", 10,
                     speed=3)
        self.refused(ValueError, "copies", self.rack.create_table, "x", 10,
                     copies=3)
        self.refused(ValueError, "shards", self.rack.create_table, "x", 10,
                     shards=-1)
        self.refused(aquifer.ExistsError, "", self.rack.create_table,
                     table.name, 10)


class Indexes(OnRack):
    def test_keys_are_in_order(self):
        index, key = self.index(), aquifer.key_of_number
        for i in range(1200):
            index[key(i * 7 % 1200)] = b"%d" % (i * 7 % 1200)
        self.assertEqual([aquifer.number_of_key(k) for k in index],
                         list(range(1200)))
        self.assertEqual(len(index), 1200)
        self.assertEqual(list(index.values(key(3), key(6))), [b"3", b"4", b"5"])
        self.assertEqual(list(index.keys(key(1198))), [key(1198), key(1199)])
        self.assertEqual(list(index.items(end=key(1))), [(key(0), b"0")])
        self.assertTrue(index.delete(key(5)))
        self.assertFalse(index.delete(key(5)))
        for missing in (index.__getitem__, index.__delitem__):
            self.refused(KeyError, "", missing, key(5))
        self.assertEqual(index.get(key(5), b"-"), b"-")
        self.assertIn(key(6), index)
        self.assertEqual(index.check()["bad_nodes"], 0)
        index["text"] = bytearray(b"t")
        self.assertEqual(index["text"], b"t")

    def test_index_adds_up(self):
        index, key = self.index(), aquifer.key_of_number
        for i in range(300):
            index[key(i)] = (i - 100).to_bytes(8, "little", signed=True)
        self.assertEqual(index.count(key(10), key(250)), 240)
        self.assertEqual(index.reduce(), {"count": 300, "sum": 14850, "min": -100,
                                          "max": 199, "sum_is_cut": False})
        self.assertEqual(index.reduce(key(300))["count"], 0)
        index[key(7)] = b"seven"
        with self.assertRaises(aquifer.Error) as caught:
            index.reduce(end=key(8))
        self.assertEqual(caught.exception.errno, errno.EDOM)
        self.assertEqual(len(index), 300)

    def test_versions_have_numbers_as_keys(self):
        index, key = self.index(kind="versions", keys=100), aquifer.key_of_number
        index[key(1)] = b"one"
        index[key(1)] = b"two"
        self.assertEqual(index[key(1)], b"two")
        self.assertEqual(len(index), 1)
        self.assertEqual(index.info()["kind"], "versions")
        self.assertEqual(list(index.items()), [(key(1), b"two")])
        self.refused(aquifer.Error, "no order", list, index.items(key(1), key(2)))

    def test_numbers_and_others_are_refused(self):
        index = self.index()
        for bad in NOT_DATA:
            self.refused(TypeError, "a key", index.get, bad)
            self.refused(TypeError, "a key", index.put, bad, b"")
            self.refused(TypeError, "a key", index.delete, bad)
            self.refused(TypeError, "a value", index.put, b"k", bad)
            if bad is not None:
                self.refused(TypeError, "a key", index.items, bad)
                self.refused(TypeError, "a key", index.keys, b"", bad)
        self.refused(TypeError, "encode", index.put, b"k", "text")
        self.refused(aquifer.Error, "", index.put, b"k", bytes(33))
        self.refused(aquifer.Error, "", index.put, b"k" * 33, b"")
        for bad in (-1, 2**64):
            self.refused(ValueError, "", aquifer.key_of_number, bad)
        self.refused(ValueError, "8 bytes", aquifer.number_of_key, b"short")
        self.refused(ValueError, "kind", self.rack.create_index, "x", kind="odd")
        self.refused(TypeError, "no speed", self.rack.create_index, "x", speed=1)
        self.refused(aquifer.NotFoundError, "", self.rack.open_index, "nothing")
        self.assertEqual(len(index), 0)


class Life(OnRack):
    def test_what_is_closed_raises(self):
        region, table, index = self.region(), self.table(), self.index()
        table["a"] = index["a"] = b"1"
        scans = [iter(table.items()), iter(index.items())]
        for thing in (region, table, index):
            thing.close()
            thing.close()
            self.assertIn("closed", repr(thing))
        calls = [lambda: region.read(0, 1), lambda: region.write(0, b"x"),
                 lambda: region.read_into(0, bytearray(1)),
                 lambda: region.fetch_and_add(0, 1), lambda: region.size,
                 lambda: region.info(), lambda: region.resize(1),
                 lambda: asyncio.run(region.read_async(0, 1)),
                 lambda: table["a"], lambda: table.put("a", b""),
                 lambda: table.get_many(["a"]), lambda: len(table),
                 lambda: table.put_many({"a": b""}), lambda: list(table),
                 lambda: table.info(), lambda: table.check(),
                 lambda: index["a"], lambda: index.put("a", b""),
                 lambda: len(index), lambda: index.info(), lambda: index.check(),
                 lambda: next(scans[0]), lambda: next(scans[1])]
        for call in calls:
            self.refused(aquifer.ClosedError, "is closed", call)

    def test_a_rack_closes_what_it_opened(self):
        with aquifer.Rack() as rack:
            region = rack.open_region(self.region().name)
            table = rack.open_table(self.table().name)
            index = rack.open_index(self.index().name)
        for call in (lambda: region.read(0, 1), lambda: table.get("a"),
                     lambda: index.get("a"), rack.regions,
                     lambda: rack.open_table("t"), lambda: rack.deadline):
            self.refused(aquifer.ClosedError, "is closed", call)
        rack.close()

    def test_what_is_forgotten_is_given_back(self):
        table = self.table(clients=4)
        for _ in range(12):
            self.rack.open_table(table.name)["a"] = b"1"
            gc.collect()
        self.assertLessEqual(table.check()["clients"], 2)

    def test_deadlines_and_tokens(self):
        self.rack.deadline = 2.5
        self.assertEqual(self.rack.deadline, 2.5)
        self.refused(aquifer.Error, "deadline", setattr, self.rack, "deadline", 0)
        self.refused(ValueError, "", setattr, self.rack, "deadline", -1)
        self.refused(aquifer.Error, "64 hexadecimal", aquifer.Rack, token="short")
        self.refused(aquifer.AccessError, "",
                     aquifer.Rack(token="0" * 64).create_region, "x", 4096)

    def test_a_settings_file_may_be_given(self):
        before = os.environ["AQUIFER_CONFIG"]
        with tempfile.NamedTemporaryFile(suffix=".ini") as other:
            with open(before, "rb") as f:
                other.write(f.read())
            other.flush()
            with aquifer.Rack(config=other.name) as rack:
                self.assertEqual(os.environ["AQUIFER_CONFIG"], other.name)
                self.assertIsInstance(rack.regions(), list)
                self.refused(ValueError, "one settings file", aquifer.Rack,
                             config=before)
        self.assertEqual(os.environ["AQUIFER_CONFIG"], before)
        self.refused(FileNotFoundError, "", aquifer.Rack, config="/no/rack.ini")

    def test_two_racks_are_two(self):
        with aquifer.Rack(os.environ["AQ_OTHER_RACK"]) as other:
            mine, theirs = self.table(), other.create_table("both", 1000,
                                                            extent_bytes=1 << 20)
            mine["k"], theirs["k"] = b"mine", b"theirs"
            self.assertEqual((mine["k"], theirs["k"]), (b"mine", b"theirs"))
            theirs.close()
            other.drop_table("both")

    def test_errors_can_be_sent(self):
        try:
            self.rack.open_table("nothing")
        except aquifer.Error as e:
            copy = pickle.loads(pickle.dumps(e))
            self.assertEqual((type(copy), str(copy)), (type(e), str(e)))

    def test_a_child_is_told_to_open_its_own(self):
        region, table, index = self.region(), self.table(), self.index()
        table["a"] = b"1"
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                for call in (lambda: region.read(0, 1), lambda: table["a"],
                             lambda: index.get("a"), self.rack.regions,
                             lambda: list(table.items())):
                    self.refused(aquifer.StaleError, "parent process", call)
                for thing in (region, table, index, self.rack):
                    thing.close()
                with aquifer.Rack() as rack:
                    self.assertEqual(rack.open_table(table.name)["a"], b"1")
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.assertEqual(table["a"], b"1")
        self.assertEqual(region.read(0, 1), b"\0")

    def test_a_signal_in_a_scan_is_told_to_wait(self):
        table = self.table()
        table.put_many((b"%d" % i, b"v") for i in range(500))
        told = []

        def inside(item, user):
            for call in (lambda: table["1"], table.close, self.rack.close):
                try:
                    call()
                except RuntimeError as e:
                    told.append(str(e))
            return 0

        # As a handler that runs while the library calls Python.
        callback, cursor = _library.KV_ITEM_FN(inside), ctypes.c_uint64()
        with table._handle.lock:
            table._handle.lend(lambda client: _library.aq_kv_scan(
                client, cursor, 1 << 20, 0, callback, None))
        self.assertEqual(len(told), 1500)
        self.assertRegex(told[0], "in the middle of a call")
        self.assertEqual(table["1"], b"v")


class Threads(OnRack):
    def run_all(self, count, work):
        failures = []

        def guarded(i):
            try:
                work(i)
            except BaseException as e:
                failures.append(e)

        threads = [threading.Thread(target=guarded, args=(i,))
                   for i in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])

    def test_threads_share_a_table_an_index_and_a_region(self):
        region, table, index = self.region(), self.table(4000), self.index()

        def work(i):
            for j in range(60):
                table[f"{i}-{j}"] = b"%d" % j
                self.assertEqual(table[f"{i}-{j}"], b"%d" % j)
                index[f"{i}-{j:03}"] = b"%d" % j
                region.fetch_and_add(0, 1)
            table.put_many((f"m{i}-{j}", b"v") for j in range(60))
            self.assertEqual(table.get_many(f"m{i}-{j}" for j in range(60)),
                             [b"v"] * 60)
            self.assertEqual(sum(1 for _ in index.keys(f"{i}-", f"{i}.")), 60)

        self.run_all(4, work)
        self.assertEqual(len(table), 480)
        self.assertEqual(len(index), 240)
        self.assertEqual(region.fetch_and_add(0, 0), 240)

    def test_closing_waits_for_the_others_and_they_are_told(self):
        rack = aquifer.Rack()
        region = rack.open_region(self.region().name)
        table = rack.open_table(self.table().name)
        begun = threading.Barrier(4)

        def work(i):
            begun.wait()
            if i == 3:
                rack.close()
                return
            with self.assertRaises(aquifer.ClosedError):
                while True:
                    region.read(0, 4096)
                    table.put("k", b"v")
                    table.get_many([b"k"] * 10)

        self.run_all(4, work)


class Async(OnRack):
    def test_reads_and_writes_of_many_tasks(self):
        region = self.region(4 << 20)

        async def one(i):
            data = random.Random(i).randbytes(500)
            self.assertEqual(await region.write_async(i * 512, data), 500)
            self.assertEqual(await region.read_async(i * 512, 500), data)
            into = bytearray(500)
            self.assertEqual(await region.read_into_async(i * 512, into), 500)
            self.assertEqual(bytes(into), data)
            into.append(0)  # nothing holds it any more

        async def main():
            await asyncio.gather(*(one(i) for i in range(200)))
            large = os.urandom(3_000_001)
            await region.write_async(512_000, large)
            self.assertEqual(await region.read_async(512_000, len(large)), large)
            self.assertEqual(await region.read_async(0, 0), b"")

        for _ in range(2):  # each loop has a context of its own
            asyncio.run(main())

    def test_more_requests_than_the_rings_hold(self):
        region = self.region(1 << 20)
        region.write(0, bytes(range(256)))

        async def main():
            found = await asyncio.gather(
                *(region.read_async(i % 256, 1) for i in range(3000)))
            self.assertEqual(found, [bytes([i % 256]) for i in range(3000)])

        asyncio.run(main())

    def test_misuse_is_told_and_the_loop_goes_on(self):
        region, rack = self.region(64 << 10), aquifer.Rack()
        other = rack.open_region(region.name, read_only=True)

        async def main():
            for bad in NOT_DATA + ("text",):
                with self.assertRaises(TypeError):
                    await region.write_async(0, bad)
            with self.assertRaises(BufferError):
                await region.read_into_async(0, b"read-only")
            for offset in (-1, 2**64):
                with self.assertRaises(ValueError):
                    await region.read_async(offset, 8)
            with self.assertRaises(aquifer.Error) as caught:
                await region.read_async((64 << 10) - 4, 8)
            self.assertEqual(caught.exception.errno, errno.ERANGE)
            with self.assertRaises(aquifer.AccessError):
                await other.write_async(0, b"x")
            task = asyncio.ensure_future(region.read_async(0, 8))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(await region.read_async(0, 8), bytes(8))
            self.assertEqual(await other.read_async(0, 8), bytes(8))
            rack.close()
            with self.assertRaises(aquifer.ClosedError):
                await other.read_async(0, 8)

        asyncio.run(main())

    def test_who_waits_is_told_that_the_rack_was_closed(self):
        region = self.region(64 << 10)

        async def main():
            await region.read_async(0, 8)
            tasks = [asyncio.ensure_future(region.read_async(0, 8))
                     for _ in range(2000)]  # more than are under way
            await asyncio.sleep(0)
            self.rack.close()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertEqual({type(e) for e in ended}, {aquifer.ClosedError})

        asyncio.run(main())


class Structures(unittest.TestCase):
    def test_they_are_those_of_the_headers(self):
        lines, want = [], []
        for name, kind in vars(_structs).items():
            if not isinstance(kind, type) or not issubclass(kind, ctypes.Structure):
                continue
            struct = "aq" + re.sub("[A-Z]", lambda m: "_" + m[0].lower(), name)
            lines.append(f"sizeof(struct {struct})")
            want.append(ctypes.sizeof(kind))
            for field, _ in kind._fields_:
                lines.append(f"offsetof(struct {struct}, {field.rstrip('_')})")
                want.append(getattr(kind, field).offset)
        program = ("#include <aquifer/index.h>\n#include <aquifer/kv.h>\n"
                   "#include <aquifer/walk.h>\n"
                   "#include <aquifer/elastic.h>\n#include <aquifer/shared.h>\n"
                   "#include <stdio.h>\nint main(void)\n{\n" +
                   "".join(f'printf("%zu\\n", {line});\n' for line in lines) + "}\n")
        with tempfile.TemporaryDirectory() as folder:
            binary = os.path.join(folder, "sizes")
            subprocess.run(["cc", "-I", os.environ["AQ_INCLUDE"], "-xc", "-", "-o",
                            binary], input=program, text=True, check=True)
            got = subprocess.check_output([binary], text=True).split()
        self.assertEqual(list(zip(lines, map(int, got))), list(zip(lines, want)))


class Killed(OnRack):
    """By itself, because the rack is not whole afterwards."""

    def kill(self, name):
        path = os.path.join(os.environ["AQ_RACK_DIR"], name + ".pid")
        with open(path) as f:
            os.kill(int(f.read().split()[0]), signal.SIGKILL)

    def test_a_lost_node_is_an_exception_within_the_deadline(self):
        names = [self.rack.create_region("on-m1", 4096, node="m1"),
                 self.rack.create_table("t-m1", 1000, node="m1",
                                        extent_bytes=1 << 20),
                 self.rack.create_index("i-m1", node="m1", size_bytes=1 << 20),
                 self.rack.create_region("on-m0", 4096, node="m0")]
        region, table, index, fine = names
        table["a"] = index["a"] = b"1"
        self.rack.deadline = 2

        async def ask():
            return await region.read_async(0, 8)

        self.assertEqual(asyncio.run(ask()), bytes(8))
        self.kill("m1")
        for call in (lambda: region.read(0, 8), lambda: region.fetch_and_add(0, 1),
                     lambda: table.put("a", b"2"),
                     lambda: table.put_many({"a": b"3", "b": b"3"}),
                     lambda: table.get_many(["a", "b"]), lambda: table["a"],
                     lambda: index.put("a", b"2"), lambda: list(index.items()),
                     lambda: asyncio.run(ask())):
            with self.assertRaises((aquifer.NodeLostError, aquifer.StaleError)):
                call()
        self.assertEqual(fine.write(0, b"x"), 1)
        for thing in names:
            thing.close()

    def test_z_a_lost_engine_is_an_exception(self):
        region = self.rack.open_region("on-m0")
        self.rack.deadline = 1

        async def main():
            await region.read_async(0, 8)
            self.kill("e0")
            # More than can be under way: who waits for a place is told, too.
            for ended in await asyncio.wait_for(asyncio.gather(
                    *(region.read_async(0, 8) for _ in range(3000)),
                    return_exceptions=True), 60):
                if ended != bytes(8):  # the engine had done some already
                    self.assertIsInstance(ended, aquifer.NodeLostError)
            with self.assertRaises(aquifer.NodeLostError):
                while True:
                    await region.read_async(0, 8)

        asyncio.run(main())
        self.refused(aquifer.Error, "", lambda: asyncio.run(region.read_async(0, 8)))


if __name__ == "__main__":
    unittest.main()
