# SPDX-License-Identifier: Apache-2.0
"""PageRank with shared tables: tasks add to the ranks of pages that theirs link
to, and a task that dies costs the steps since the last checkpoint. Lines of the
file: PAGE LINK... ; python3 pagerank.py FILE [STEPS]"""
import sys
import zlib

from aquifer.elastic import Job
from aquifer.jobs import piccolo

ONE = 10**9  # ranks are numbers without a point, so that adding is exact
DAMPING = 85  # of a hundred


def mine(graph, part, parts):
    return [p for p in sorted(graph) if zlib.crc32(p.encode()) % parts == part]


def kernel(tables, part, parts, step):
    graph, ranks = tables["graph"], tables["ranks"]
    for page in mine(graph, part, parts):
        links = graph[page]
        rank = ranks.get(f"{step} {page}", 0) if step else ONE
        ranks.add(f"{step + 1} {page}", ONE * (100 - DAMPING) // 100)
        for link in links:
            ranks.add(f"{step + 1} {link}", rank * DAMPING // 100 // len(links))
        if step > 1:
            del ranks[f"{step - 1} {page}"]


class Load:
    """The first step puts the graph into its table."""

    def __init__(self, graph):
        self.graph = graph

    def __call__(self, tables, part, parts, step):
        if step == 0:
            for page in mine(self.graph, part, parts):
                tables["graph"][page] = self.graph[page]
        else:
            kernel(tables, part, parts, step - 1)


def main():
    with open(sys.argv[1]) as text:
        rows = [line.split() for line in text if line.strip()]
    graph = {row[0]: row[1:] for row in rows}
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    with Job("/pagerank", lease=30) as job:
        tables = piccolo(job, Load(graph), {"graph": object, "ranks": int},
                         steps + 1, checkpoint=3)
        for page in sorted(graph):
            print(page, tables["ranks"][f"{steps} {page}"])
        job.remove()


if __name__ == "__main__":
    main()
