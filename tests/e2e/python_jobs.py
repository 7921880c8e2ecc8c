# SPDX-License-Identifier: Apache-2.0
"""Jobs whose tasks die: results are those of a job in which nobody did. Run by
python_jobs.sh."""
import collections
import os
import signal
import subprocess
import sys
import unittest

from aquifer.elastic import Job
from aquifer.jobs import Flow, TaskError, lines, map_reduce, piccolo, splits

TEXT = "".join(f"line {i} of {i % 7} words {i % 3}\n" for i in range(600))
FOLDER = os.environ["TMP_FOLDER"]


def first_time(what):
    """Whether nobody has asked this before."""
    try:
        os.close(os.open(f"{FOLDER}/{what}", os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


def die_once(what):
    if first_time(what):
        os.kill(os.getpid(), signal.SIGKILL)


def counted(text):
    return collections.Counter(text.split())


def words(job, split):
    for number, line in enumerate(lines(job, split)):
        for word in line.split():
            yield word, 1
        if split.start and number == 20:
            die_once("map")


def total(word, counts):
    die_once("reduce")
    yield f"{word} {sum(counts)}"


def read_counts(job, names):
    found = collections.Counter()
    for name in names:
        with job.open(name) as f:
            for line in f:
                word, count = line.split()
                assert word not in found, word
                found[word] = int(count)
    return found


def slow_words(job, split):
    """The run that comes first waits for the other one to have committed."""
    if split.start and first_time("slow"):
        while True:
            signal.pause()
    return words_of(job, split)


def words_of(job, split):
    for line in lines(job, split):
        for word in line.split():
            yield word, 1


def plain_total(word, counts):
    yield f"{word} {sum(counts)}"


def fails(job, split):
    raise ValueError("as it should")
    yield


class Jobs(unittest.TestCase):
    def setUp(self):
        self.job = Job("/" + self.id().split(".")[-1][:60], lease=60)
        self.addCleanup(self.job.close)
        self.addCleanup(self.job.remove)

    def put(self, name):
        with self.job.open(name, "w") as f:
            f.write(TEXT)

    def test_map_and_reduce_die(self):
        self.put("in")
        parts = splits(self.job, ["in"], 5000)
        self.assertGreater(len(parts), 2)
        names = map_reduce(self.job, parts, words, total)
        self.assertEqual(read_counts(self.job, names), counted(TEXT))
        # It is done: nothing is run again.
        self.assertEqual(map_reduce(self.job, parts, fails, total), names)
        self.assertEqual(
            [n.path.split("/")[-1] for n in self.job.listdir("mr")], ["out"]
        )

    def test_a_task_that_runs_twice_counts_once(self):
        self.put("in")
        parts = splits(self.job, ["in"], 9000)
        names = map_reduce(
            self.job, parts, slow_words, plain_total, workers=3, backups=True
        )
        self.assertEqual(read_counts(self.job, names), counted(TEXT))

    def test_what_always_fails_is_given_up(self):
        self.put("in")
        with self.assertRaises(TaskError):
            map_reduce(
                self.job, splits(self.job, ["in"]), fails, total, attempts=2
            )

    def test_the_master_dies(self):
        self.put("in")
        again = [sys.executable, __file__, "master", self.job.path]
        self.assertEqual(
            subprocess.run(again).returncode, -signal.SIGKILL
        )
        self.assertEqual(subprocess.run(again).returncode, 0)
        names = ["mr/out/part-0", "mr/out/part-1"]
        self.assertEqual(read_counts(self.job, names), counted(TEXT))


def master_words(job, split):
    """The second part comes after the first one, and ends its master once."""
    if split.start and first_time("master"):
        while not any(n.path.endswith("/0") for n in job.listdir("mr/map")):
            pass
        os.kill(os.getppid(), signal.SIGKILL)
    return words_of(job, split)


def run_master(path):
    with Job(path, create=False) as job:
        map_reduce(
            job, splits(job, ["in"], 9000), master_words, plain_total
        )


# ---- flows -------------------------------------------------------------------


def upper(readers, writers):
    die_once("upper")
    for line in readers[0]:
        writers[0].write(line.upper())


def join(readers, writers):
    for reader in readers:
        writers[0].write(reader.read())


def numbers():
    for i in range(300):
        if i == 100:
            die_once("source")
        yield i


def twice(number):
    if number == 150:
        die_once("each")
    yield number % 2, number
    if number == 200:
        die_once("between")
    yield (number + 1) % 2, number


def add_up(state, number):
    count, total = state or (0, 0)
    if number is None:
        return [f"{count} {total}"]
    if number == 250:
        die_once("fold")
    return count + 1, total + number


class Flows(unittest.TestCase):
    setUp = Jobs.setUp

    def test_files_in_their_order(self):
        with self.job.open("flow/a", "w") as f:
            f.write("one\n")
        flow = Flow(self.job)
        flow.task("last", join, ["b", "a"], ["c"])
        flow.task("first", upper, ["a"], ["b"])
        flow.run()
        with self.job.open("flow/c") as f:
            self.assertEqual(f.read(), "ONE\none\n")
        flow.run()  # nothing is left to do

    def test_graphs_that_are_none(self):
        flow = Flow(self.job)
        flow.task("a", join, ["y"], ["x"])
        flow.task("b", join, ["x"], ["y"])
        with self.assertRaisesRegex(ValueError, "wait for each other"):
            flow.run()
        with self.assertRaisesRegex(ValueError, "already"):
            flow.task("a", join)
        with self.assertRaisesRegex(ValueError, "two tasks"):
            flow.task("c", join, outputs=["x"])
        flow = Flow(self.job)
        flow.task("a", join, ["nothing"], ["x"])
        with self.assertRaisesRegex(ValueError, "nobody makes"):
            flow.run()
        flow = Flow(self.job)
        flow.fold("f", add_up, "q", "x")
        with self.assertRaisesRegex(ValueError, "nobody writes"):
            flow.run()

    def test_each_item_of_a_stream_counts_once(self):
        flow = Flow(self.job, maxsize=16)
        flow.source("numbers", numbers, "in")
        flow.each("twice", twice, "in", ["out-0", "out-1"])
        flow.fold("even", add_up, "out-0", "even")
        flow.fold("odd", add_up, "out-1", "odd")
        flow.run(attempts=6)
        for name in ("even", "odd"):
            with self.job.open(f"flow/{name}") as f:
                self.assertEqual(f.read(), f"300 {sum(range(300))}\n")


# ---- Piccolo -----------------------------------------------------------------


def kernel(tables, part, parts, step):
    sums = tables["sums"]
    sums.add(f"{step}", part + 1)
    sums.add("all", part + 1)
    sums.add("largest", step * 10 + part, "max")
    if step == 3 and part == 1:
        die_once("kernel")
    tables["notes"][f"{part}"] = ("step", step)


class Tables(unittest.TestCase):
    setUp = Jobs.setUp

    def test_a_step_that_was_half_done_is_done_again(self):
        tables = piccolo(
            self.job, kernel, {"sums": int, "notes": object}, 5, parts=3,
            workers=3, checkpoint=2,
        )
        sums = tables["sums"]
        self.assertEqual(
            dict(sums), {**{f"{s}": 6 for s in range(5)}, "all": 30, "largest": 42}
        )
        self.assertEqual(len(sums), 7)
        self.assertEqual(tables["notes"]["2"], ("step", 4))
        # A master that comes later goes on from the checkpoint.
        sums.add("all", 1000)
        tables = piccolo(
            self.job, kernel, {"sums": int, "notes": object}, 6, parts=3
        )
        self.assertEqual(tables["sums"]["all"], 36)


if __name__ == "__main__":
    if sys.argv[1] == "master":
        run_master(sys.argv[2])
    else:
        unittest.main()
