# SPDX-License-Identifier: Apache-2.0
"""Transactions by redis-py with its default settings: see redis_multi.sh.

clients PORT PORT   pipelines, watches and counters through two gateways
write PORT ROUND    transactions on all of KEYS until the gateway is gone
check PORT FILE     reads KEYS until FILE is there; fails where it sees a half
"""
import os
import sys

import redis

KEYS = [f"part{i}" for i in range(12)]
LARGE = "x" * 3000  # some values are beside the index


def connect(port):
    return redis.Redis(port=int(port), socket_timeout=30, decode_responses=True)


def clients(first, second):
    a, b = connect(first), connect(second)
    pipe = a.pipeline()
    for i in range(60):
        pipe.set(f"p{i}", i)
    assert pipe.execute() == [True] * 60
    assert b.mget([f"p{i}" for i in range(60)]) == [str(i) for i in range(60)]
    # The usual loop: both count, and every count is kept.
    for client in (a, b) * 10:
        with client.pipeline() as pipe:
            while True:
                try:
                    pipe.watch("total")
                    now = int(pipe.get("total") or 0)
                    pipe.multi()
                    pipe.set("total", now + 1)
                    pipe.execute()
                    break
                except redis.WatchError:
                    continue
    assert a.get("total") == "20", a.get("total")
    # Between WATCH and EXEC the other one is faster.
    with a.pipeline() as pipe:
        pipe.watch("total")
        b.incr("total")
        pipe.multi()
        pipe.set("total", 0)
        try:
            pipe.execute()
            raise AssertionError("a watched key had changed")
        except redis.WatchError:
            pass
    assert a.get("total") == "21"
    # An error of one command is raised, and the others have happened.
    pipe = a.pipeline()
    pipe.set("text", "abc").incr("text").set("after", "1")
    result = pipe.execute(raise_on_error=False)
    assert isinstance(result[1], redis.ResponseError), result
    assert b.get("after") == "1"
    a.transaction(lambda p: p.set("by function", 1), "total")
    assert b.get("by function") == "1"


def write(port, round_number):
    client = connect(port)
    count = int(round_number) * 1000000
    while True:
        count += 1
        pipe = client.pipeline()
        for i, key in enumerate(KEYS):
            pipe.set(key, f"{count}:{LARGE if (i + count) % 4 == 0 else ''}")
        pipe.execute()
        print(count, flush=True)


def number(value):
    return int(value.split(":")[0]) if value else 0


def check(port, stop):
    client = connect(port)
    seen = together = 0
    is_last = False
    while not is_last:
        is_last = os.path.exists(stop)
        # One after the other: no key may be older than one that was read before.
        for key in KEYS + KEYS[::-1]:
            now = number(client.get(key))
            assert now >= seen, f"{key} has {now} after {seen} was read"
            seen = now
        # And at once.
        pipe = client.pipeline()
        for key in KEYS:
            pipe.get(key)
        values = {number(v) for v in pipe.execute()}
        assert len(values) == 1, f"half of a transaction: {values}"
        assert values.pop() >= seen
        together += 1
    assert seen > 4000000, f"the last writer was not seen: {seen}"
    print(f"{together} looks, the last value is {seen}")


if __name__ == "__main__":
    mode, args = sys.argv[1], sys.argv[2:]
    {"clients": clients, "write": write, "check": check}[mode](*args)
