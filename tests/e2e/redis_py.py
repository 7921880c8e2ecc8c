# SPDX-License-Identifier: Apache-2.0
"""What redis-py does with its default settings, printed: redis_py.py PORT|SOCKET

redis_same.sh compares what it prints at the gateway with what it prints at
redis-server.
"""
import sys

import redis


def attempt(what):
    """The result, or the kind of error and its words."""
    try:
        return what()
    except redis.RedisError as error:
        return type(error).__name__, str(error)


def strings(r):
    yield r.set("k", "v"), r.get("k"), r.get("none")
    yield r.set("k", "w", nx=True), r.set("k", "w", xx=True, get=True)
    yield r.setnx("n", 1), r.setex("e", 100, "v"), r.psetex("e", 100000, "v")
    yield r.ttl("e"), r.persist("e"), r.ttl("e"), r.ttl("none")
    yield r.mset({"a": 1, "b": 2}), r.mget("a", "b", "none")
    yield r.incr("c"), r.incrby("c", 4), r.decr("c", 2), r.incrbyfloat("c", 0.5)
    yield attempt(lambda: r.incr("k"))
    yield r.append("k", "xyz"), r.strlen("k"), r.getrange("k", 1, 2)
    yield r.setrange("k", 2, "__"), r.getset("k", "new"), r.getdel("k")
    yield r.getex("e", px=50000), r.getex("e", persist=True)
    yield r.exists("a", "b", "none"), r.delete("a", "none"), r.unlink("b")
    yield r.touch("n"), r.type("n"), r.type("none"), r.expire("n", 50)
    yield r.expireat("n", 32503680000), r.pexpireat("n", 32503680000000)
    yield r.expiretime("n"), r.pexpiretime("n")
    yield r.set("bytes", bytes(range(256))), r.get("bytes")
    yield attempt(lambda: r.execute_command("NOSUCH", 1))
    yield attempt(lambda: r.execute_command("GET"))


def keys(r):
    r.flushdb()
    for i in range(25):
        r.set(f"key:{i:02}", i)
    yield r.dbsize(), sorted(r.keys("key:0*")), sorted(r.scan_iter(match="key:1*"))
    yield r.ping(), r.echo("text"), r.client_setname("me"), r.client_getname()
    yield r.config_get("maxmemory-policy"), "redis_version" in r.info()
    yield r.flushall(), r.dbsize()


def transactions(r):
    yield r.pipeline().set("a", 1).incr("a").get("a").execute()
    yield r.pipeline(transaction=False).set("a", 5).get("a").execute()
    yield r.pipeline().execute()
    pipe = r.pipeline().set("t", "x").incr("t").get("t")
    yield attempt(pipe.execute)
    yield [
        type(x).__name__ if isinstance(x, Exception) else x
        for x in r.pipeline().incr("t").set("u", 1).execute(raise_on_error=False)
    ]
    yield attempt(lambda: r.pipeline().set("t", 1).execute_command("NOSUCH").execute())
    yield r.get("t")
    with r.pipeline() as pipe:
        pipe.watch("t")
        r.set("t", "by another")
        pipe.multi()
        pipe.set("t", "late")
        yield attempt(pipe.execute)
    yield r.get("t")
    with r.pipeline() as pipe:
        pipe.watch("t")
        pipe.multi()
        pipe.set("t", "in time")
        yield attempt(pipe.execute)
        pipe.watch("t")
        r.set("t", "again")
        pipe.unwatch()
        yield pipe.set("t", 3).get("t").execute()

    def bump(pipe):
        now = int(pipe.get("t"))
        pipe.multi()
        pipe.set("t", now + 1)

    yield r.transaction(bump, "t"), r.get("t")
    pipe = r.pipeline()
    for i in range(64):
        pipe.set(f"m{i}", i)
    yield pipe.execute()
    pipe = r.pipeline()
    for i in range(64):
        pipe.get(f"m{i}")
    yield pipe.execute()
    yield r.pipeline().mset({"x": 1, "y": 2}).delete("x").mget("x", "y").execute()
    yield r.pipeline().set("big", "b" * 300000).strlen("big").execute()


def main():
    where = sys.argv[1]
    r = redis.Redis(port=int(where)) if where.isdigit() else redis.Redis(unix_socket_path=where)
    r.flushall()
    for part in (strings, keys, transactions):
        for line in part(r):
            for item in line if isinstance(line, tuple) else (line,):
                print(part.__name__, item)


if __name__ == "__main__":
    main()
