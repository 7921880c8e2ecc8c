# SPDX-License-Identifier: Apache-2.0
"""Counts words of a stream: sentences go through queues to tasks that split them
and on to tasks that count, all at the same time. Each of them may be killed.
python3 stream.py FILE"""
import sys
import zlib

from aquifer.elastic import Job
from aquifer.jobs import Flow

COUNTERS = 2


def sentences(text):
    for line in text:
        yield line


def words(sentence):
    for word in sentence.lower().split():
        yield zlib.crc32(word.encode()) % COUNTERS, word


def count(counts, word):
    if word is None:
        return [f"{n} {w}" for w, n in sorted((counts or {}).items())]
    counts = counts or {}
    counts[word] = counts.get(word, 0) + 1
    return counts


def main():
    with Job("/stream", lease=30) as job:
        with open(sys.argv[1]) as text, job.open("flow/text", "w") as copy:
            copy.write(text.read())
        flow = Flow(job, maxsize=64)
        queues = [f"words-{n}" for n in range(COUNTERS)]
        flow.source("read", sentences, "sentences", inputs=["text"])
        for n in range(2):
            flow.each(f"split-{n}", words, "sentences", queues)
        for n, queue in enumerate(queues):
            flow.fold(f"count-{n}", count, queue, f"counts-{n}")
        flow.run()
        for n in range(COUNTERS):
            with job.open(f"flow/counts-{n}") as result:
                sys.stdout.writelines(result)
        job.remove()


if __name__ == "__main__":
    main()
