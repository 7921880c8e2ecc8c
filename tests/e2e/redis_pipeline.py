# SPDX-License-Identifier: Apache-2.0
"""Pipelines of changes: see redis_pipeline.sh.

same PORT SOCKET SEED   random commands on few keys, in pipelines, to the gateway
                        and to redis-server: the same answers, byte by byte
count PORT PEERS ROUNDS connections that count with pipelines, all at once: no
                        number is given twice, and none is left out
ready PORT PEERS        waits until all of so many connections are answered PONG
until PORT FILE         pipelines until an answer is an error; makes FILE when
                        the first one is answered
"""
import random
import selectors
import socket
import sys
import time

KEYS = [f"k{i}" for i in range(12)]
PIPELINE = 300  # more than a batch, and more than a flight
LATER = 4102444800000  # ms, in the year 2100


def command(*words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        word = str(word).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(out)


def answer_end(buf, at):
    """Where the answer that begins at `at` ends, or -1."""
    end = buf.find(b"\r\n", at)
    if end < 0:
        return -1
    if buf[at:at + 1] == b"*":
        count, end = int(buf[at + 1:end]), end + 2
        for _ in range(count):
            end = answer_end(buf, end) if end < len(buf) else -1
            if end < 0:
                break
        return end
    if buf[at:at + 1] != b"$" or buf[at:end] == b"$-1":
        return end + 2
    end += 2 + int(buf[at + 1:end]) + 2
    return end if end <= len(buf) else -1


class Peer:
    def __init__(self, where):
        is_path = "/" in where
        self.socket = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET)
        self.socket.connect(where if is_path else ("127.0.0.1", int(where)))
        self.buf = b""

    def take(self):
        """Answers that have come, at least one unless the connection ended."""
        got = self.socket.recv(1 << 16)
        if not got:
            raise ConnectionError("the connection has ended")
        self.buf += got
        answers, at = [], 0
        while at < len(self.buf) and (end := answer_end(self.buf, at)) > 0:
            answers.append(self.buf[at:end])
            at = end
        self.buf = self.buf[at:]
        return answers

    def run(self, commands):
        self.socket.sendall(b"".join(commands))
        answers = []
        while len(answers) < len(commands):
            answers += self.take()
        return answers


def many_keys(r):
    """Sometimes more than a batch."""
    return [r.choice(KEYS) for _ in range(r.choice([2, 5, 300]))]


def random_command(r):
    key = r.choice(KEYS)
    # Some stand beside the index, and some no longer fit once more comes.
    value = r.choice(["7", "-3", "text", "v" * 30, "w" * 90, "x" * 3000])
    later = LATER + r.randrange(1000)
    return r.choice([
        lambda: ("set", key, value),
        lambda: ("set", key, value, "nx"),
        lambda: ("set", key, value, "XX"),
        lambda: ("set", key, value, "keepttl"),
        lambda: ("set", key, value, "pxat", later),
        lambda: ("set", key, value, "xx", "exat", later // 1000),
        lambda: ("set", key, value, "pxat", 1000),  # long ago
        lambda: ("set", key, value, "px", "none"),
        lambda: ("set", key, value, "nx", "xx"),
        lambda: ("set", key, value, "get"),
        lambda: ("setnx", key, value),
        lambda: ("append", key, value),
        lambda: ("append", key, ""),
        lambda: ("persist", key),
        lambda: ("pexpireat", key, later),
        lambda: ("pexpireat", key, 1000),
        lambda: ("pexpiretime", key),
        lambda: ("del", key),
        lambda: ("del", *many_keys(r)[:5]),
        lambda: ("mset", *(w for i, k in enumerate(many_keys(r)) for w in (k, i))),
        lambda: ("mset", key, value, r.choice(KEYS), "m", key, value + "2"),
        lambda: ("mget", *many_keys(r)),
        lambda: ("exists", *many_keys(r)),
        lambda: ("incr", key),
        lambda: ("decrby", key, r.choice(["5", "x", "9223372036854775807"])),
        lambda: ("get", key),
        lambda: ("get", key),
        lambda: ("getdel", key),
        lambda: ("strlen", key),
    ])()


def same(port, path, seed):
    r = random.Random(int(seed))
    ours, theirs = Peer(port), Peer(path)
    for _ in range(12):
        words = [random_command(r) for _ in range(PIPELINE)]
        lines = [command(*w) for w in words]
        got, want = ours.run(lines), theirs.run(lines)
        for i, w in enumerate(words):
            if got[i] != want[i]:
                before = [" ".join(map(str, x))[:40]
                          for x in words[:i + 1] if w[1] in x][-8:]
                sys.exit(f"seed {seed}: {got[i][:80]!r} instead of "
                         f"{want[i][:80]!r} to the last of {before}")


def count(port, peers, rounds):
    peers = [Peer(port) for _ in range(int(peers))]
    left = {p: int(rounds) for p in peers}
    want = {p: 0 for p in peers}
    mine = {p: [] for p in peers}
    pipeline = command("incr", "total") * 16
    look = selectors.DefaultSelector()
    for p in peers:
        look.register(p.socket, selectors.EVENT_READ, p)
    total = 16 * sum(left.values())
    ready = list(peers)
    while sum(map(len, mine.values())) < total:
        for p in ready:
            if want[p] == len(mine[p]) and left[p]:
                left[p] -= 1
                want[p] += 16
                p.socket.sendall(pipeline)
        ready = [key.data for key, _ in look.select()]
        for p in ready:
            mine[p] += [int(a[1:]) for a in p.take()]
    for numbers in mine.values():
        assert numbers == sorted(numbers), "a connection counted backwards"
    given = sorted(n for numbers in mine.values() for n in numbers)
    assert given == list(range(1, total + 1)), "a number twice, or left out"


def ready(port, peers):
    peers = [Peer(port) for _ in range(int(peers))]
    while any(p.run([command("ping")]) != [b"+PONG\r\n"] for p in peers):
        time.sleep(0.1)


def until(port, path):
    lines = [command("incr", "total"), command("append", "long", "x")] * 50
    lines += [command("set", f"k{i}", i) for i in range(100)]
    peer = Peer(port)
    while not any(a.startswith(b"-") for a in peer.run(lines)):
        with open(path, "w", encoding="ascii"):
            pass


if __name__ == "__main__":
    {"same": same, "count": count, "ready": ready, "until": until}[sys.argv[1]](*sys.argv[2:])
