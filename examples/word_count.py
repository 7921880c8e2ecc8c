# SPDX-License-Identifier: Apache-2.0
"""Counts words with MapReduce: files go to far memory, map and reduce tasks are
processes that exchange files there. python3 word_count.py FILE..."""
import sys

from aquifer.elastic import Job
from aquifer.jobs import lines, map_reduce, splits


def words(job, split):
    for line in lines(job, split):
        for word in line.lower().split():
            yield word.strip(".,;:!?()[]`'\"*#|"), 1


def add(word, counts):
    return sum(counts)


def show(word, counts):
    if word:
        yield f"{sum(counts)} {word}"


def main():
    with Job("/word_count", lease=30) as job:
        with job.open("text", "wb", block_bytes=1 << 20) as copy:
            for path in sys.argv[1:]:
                with open(path, "rb") as text:
                    copy.write(text.read())
        results = map_reduce(job, splits(job, ["text"], 128 << 10), words, show,
                             name="count", combiner=add)
        counts = []
        for name in results:
            with job.open(name) as result:
                counts += [line.split() for line in result]
    for count, word in sorted(counts, key=lambda c: (-int(c[0]), c[1]))[:5]:
        print(f"{count:>6} {word}")


if __name__ == "__main__":
    main()
