# SPDX-License-Identifier: Apache-2.0
"""Sorts the lines of a file: a sample says where partitions begin, so that their
results, one behind the other, are in order. python3 sort.py FILE >SORTED"""
import bisect
import functools
import random
import sys

from aquifer.elastic import Job
from aquifer.jobs import lines, map_reduce, splits

PARTITIONS = 4


def pairs(job, split):
    for line in lines(job, split):
        yield line, None


def as_often(line, nothing):
    for _ in nothing:
        yield line


def by_range(bounds, line, partitions):
    return bisect.bisect_right(bounds, line)


def bounds_of(job, parts):
    chosen = random.Random(1).sample(parts, min(len(parts), 8))
    sample = sorted(line for part in chosen for line in lines(job, part))
    step = max(len(sample) // PARTITIONS, 1)
    return sample[step::step][:PARTITIONS - 1]


def main():
    with Job("/sort", lease=30) as job:
        with open(sys.argv[1], "rb") as text, job.open("in", "wb") as copy:
            copy.write(text.read())
        parts = splits(job, ["in"], 64 << 10)
        partition = functools.partial(by_range, bounds_of(job, parts))
        for name in map_reduce(job, parts, pairs, as_often, name="run",
                               partition=partition, partitions=PARTITIONS):
            with job.open(name) as result:
                sys.stdout.writelines(result)
        job.remove()


if __name__ == "__main__":
    main()
