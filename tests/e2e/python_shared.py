# SPDX-License-Identifier: Apache-2.0
"""What aquifer.SharedMemory offers; run by python_shared.sh."""
import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
import unittest

import aquifer

try:
    import numpy
except ImportError:
    numpy = None

PAGE = 4096


def elsewhere(program):
    """Runs it on the other machine, on the segment of its name."""
    env = dict(os.environ, AQUIFER_NIC_ADDRESS=os.environ["OTHER_ADDRESS"])
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(program)],
        env=env, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )


class OnRack(unittest.TestCase):
    def setUp(self):
        self.rack = aquifer.Rack(deadline=60)
        self.addCleanup(self.rack.close)

    def make(self, name, size=2 * PAGE):
        shared = self.rack.create_shared(name, size)
        self.addCleanup(self.rack.delete_shared, name)
        return shared


class Buffers(OnRack):
    def test_it_is_memory(self):
        with self.make("memory", 5000) as shared:
            buf = shared.buf
            self.assertIsInstance(buf, memoryview)
            self.assertEqual((len(shared), shared.size, len(buf)), (8192,) * 3)
            self.assertEqual(bytes(buf[:16]), bytes(16))
            buf[1:6] = b"hello"
            self.assertEqual(bytes(shared.buf[:7]), b"\0hello\0")
            words = buf[PAGE:].cast("q")
            words[0] -= 5
            self.assertEqual(words[0], -5)
            grid = buf.cast("B", (2, PAGE))
            self.assertEqual(grid[1, 0], 0xFB)
            grid.release()
            words.release()
            self.assertGreater(shared.address, 0)
            self.assertIn("memory", repr(shared))

    @unittest.skipUnless(numpy, "no NumPy")
    def test_numpy_has_no_copy(self):
        with self.make("numpy") as shared:
            array = numpy.frombuffer(shared.buf, dtype=numpy.float64)
            array[:] = numpy.arange(len(array))
            self.assertEqual(shared.buf.cast("d")[7], 7.0)
            with self.assertRaises(BufferError):
                shared.close()
            self.assertEqual(array[9], 9.0)
            del array

    def test_what_is_read_only_is(self):
        self.make("only").close()
        with self.rack.open_shared("only", read_only=True) as shared:
            self.assertTrue(shared.buf.readonly)
            with self.assertRaises(TypeError):
                shared.buf[0] = 1
            with self.assertRaises(aquifer.AccessError):
                shared.fetch(write=True)


class Machines(OnRack):
    def test_both_see_all_stores(self):
        with self.make("both") as shared:
            words = shared.buf.cast("Q")
            words[0], words[1] = 41, shared.address
            done = elsewhere("""
                import aquifer
                with aquifer.Rack(deadline=60) as rack:
                    with rack.open_shared("both") as shared:
                        words = shared.buf.cast("Q")
                        assert words[1] == shared.address
                        words[0] += 1
                        words[600] = 7
                        shared.flush()
                        words.release()
            """)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual((words[0], words[600]), (42, 7))
            info = shared.info()
            self.assertEqual((info.size, info.lost), (2 * PAGE, 0))
            self.assertGreater(info.invalidations, 0)
            words.release()

    def test_it_says_what_counts_after_a_loss(self):
        self.addCleanup(self.rack.delete_shared, "last")
        with self.rack.create_shared("last", PAGE, copies=1, on_loss="last") as shared:
            self.assertEqual(shared.size, PAGE)
        found = subprocess.run(
            [os.environ["AQUIFER"], "shared", "stat", "last", "--json"],
            stdout=subprocess.PIPE, check=True, text=True,
        )
        self.assertIn('"last"', found.stdout)

    def test_pages_come_ahead(self):
        with self.make("ahead", 64 * PAGE) as shared:
            shared.fetch()
            while shared.info().cached < 64 * PAGE:
                time.sleep(0.01)
            faults = shared.info().faults
            self.assertEqual(bytes(shared.buf[:: PAGE]), bytes(64))
            shared.fetch(PAGE, PAGE, write=True)
            shared.flush(0, PAGE)
            self.assertGreaterEqual(shared.info().faults, faults)

    def test_what_is_deleted_is_sigbus(self):
        with self.rack.create_shared("gone", PAGE) as shared:
            shared.buf[0] = 1
            self.rack.delete_shared("gone")
            done = elsewhere("""
                import aquifer
                aquifer.Rack(deadline=60).open_shared("gone")
            """)
            self.assertIn("NotFoundError", done.stdout)
        program = """
            import aquifer
            rack = aquifer.Rack(deadline=60)
            shared = rack.create_shared("bus", 4096)
            rack.delete_shared("bus")
            shared.buf[0]
        """
        self.assertEqual(elsewhere(program).returncode, -signal.SIGBUS)


class Rights(OnRack):
    def setUp(self):
        super().setUp()
        subprocess.run(
            [os.environ["AQUIFER"], "tenant", "create", "guest", "--json"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )

    def test_parts_begin_where_regions_do(self):
        self.make("parts", 4 << 20).close()
        self.rack.allow_shared("parts", "guest", "r")
        self.rack.allow_shared("parts", "guest", "rw", 2 << 20)
        self.rack.allow_shared("parts", "guest", "none", 0, 2 << 20)
        for offset, length in ((1, 0), (4 << 20, 0), (0, 1), (1 << 63, 0)):
            with self.assertRaises(aquifer.Error):
                self.rack.allow_shared("parts", "guest", "r", offset, length)


class Errors(OnRack):
    def test_refusals_have_words(self):
        shared = self.make("words2")
        for kind, call in (
            (aquifer.ExistsError, lambda: self.rack.create_shared("words2", 1)),
            (aquifer.ExistsError, lambda: self.rack.open_shared("words2")),
            (aquifer.NotFoundError, lambda: self.rack.open_shared("none")),
            (aquifer.NotFoundError, lambda: self.rack.delete_shared("none")),
            (aquifer.NoSpaceError, lambda: self.rack.create_shared("x", 1 << 40)),
            (aquifer.Error, lambda: self.rack.create_shared("x", 0)),
            (aquifer.Error, lambda: self.rack.create_shared("a b", 1)),
            # This rack has one node.
            (aquifer.NoSpaceError, lambda: self.rack.create_shared("x", 1, copies=2)),
            (ValueError, lambda: self.rack.create_shared("x", 1, copies=3)),
            (ValueError, lambda: self.rack.create_shared("x", 1, on_loss="zeros")),
            (ValueError, lambda: self.rack.create_shared("x", -1)),
            (ValueError, lambda: self.rack.allow_shared("words2", "t", "w")),
            (
                aquifer.NotFoundError,
                lambda: self.rack.allow_shared("words2", "nobody", "r"),
            ),
            (aquifer.Error, lambda: shared.flush(PAGE, 2 * PAGE)),
            (aquifer.Error, lambda: shared.fetch(3 * PAGE)),
            (ValueError, lambda: shared.flush(-1)),
        ):
            with self.assertRaises(kind) as caught:
                call()
            self.assertTrue(str(caught.exception))
        shared.close()

    def test_closed_is_closed(self):
        shared = self.make("closed")
        buf, part = shared.buf, shared.buf[5:9]
        with self.assertRaises(BufferError) as caught:
            shared.close()
        self.assertIn("closed", str(caught.exception))
        shared.buf[5] = 3  # it is open still
        self.assertEqual(part[0], 3)
        part.release()
        shared.close()
        shared.close()
        with self.assertRaises(ValueError):
            buf[0]
        for call in (lambda: shared.buf, shared.flush, shared.fetch, shared.info):
            with self.assertRaises(aquifer.ClosedError):
                call()
        with self.rack.open_shared("closed") as again:
            self.assertEqual(again.buf[5], 3)

    def test_views_outlive_the_rack_and_the_object(self):
        self.make("outlive").close()
        with aquifer.Rack(deadline=60) as rack:
            part = rack.open_shared("outlive").buf[:8]
            gc.collect()
            part[0] = 9
            shared = rack.open_shared("words")
            rest = shared.buf[8:16]
        rest[0] += 0
        self.assertEqual(part[0], 9)
        with self.assertRaises(aquifer.ClosedError):
            shared.buf
        with self.assertRaises(aquifer.ExistsError):
            self.rack.open_shared("outlive")
        part.release()
        rest.release()
        with self.rack.open_shared("outlive") as shared:
            self.assertEqual(shared.buf[0], 9)

    def test_a_child_opens_its_own(self):
        with self.make("child") as shared:
            shared.buf[0] = 5
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    shared.buf
                except aquifer.StaleError:
                    with aquifer.Rack(deadline=60) as rack:
                        with rack.open_shared("child") as own:
                            own.buf[0] += 1
                            del shared
                            gc.collect()
                            code = 0 if own.buf[0] == 6 else 2
                os._exit(code)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            self.assertEqual(shared.buf[0], 6)


if __name__ == "__main__":
    unittest.main()
