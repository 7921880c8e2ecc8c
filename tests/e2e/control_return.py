# SPDX-License-Identifier: Apache-2.0
"""Many clients in one process: control_return.py PORT COUNT TOKENFILE. Each has a connection and renews its path once
a second. Whoever loses the connection rests for 50 to 100 ms, twice as long each time, 1.6 s at most, as nodes and
programs do. It says "all" when all were answered, "none" when all have lost the connection, and "back" when all were
answered again; an answer other than 200 is the end."""
import pathlib
import random
import selectors
import socket
import sys
import time

port, count = int(sys.argv[1]), int(sys.argv[2])
token = pathlib.Path(sys.argv[3]).read_text().strip()
chooser = selectors.DefaultSelector()
REST_FIRST_S, REST_MAX_S, EVERY_S = 0.1, 1.6, 1.0


class Client:
    def __init__(self, number):
        body = '{"paths":["/many/t%d"]}' % number
        self.request = (f"POST /v1/renew HTTP/1.1\r\nHost: c0\r\nAuthorization: Bearer {token}\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
        self.socket, self.state, self.rest = None, "away", REST_FIRST_S
        self.due, self.answers, self.losses, self.text = time.monotonic() + random.random(), 0, 0, b""

    def begin(self):
        """Its time has come: it connects, or it asks."""
        if self.socket:
            self.ask()
            return
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", port))
        self.due = float("inf")
        chooser.register(self.socket, selectors.EVENT_WRITE, self)

    def ask(self):
        self.due, self.text = float("inf"), b""
        chooser.modify(self.socket, selectors.EVENT_READ, self)
        try:
            self.socket.send(self.request)
        except OSError:
            self.lose()

    def lose(self):
        chooser.unregister(self.socket)
        self.socket.close()
        if self.state == "in":
            self.losses += 1
        self.socket, self.state = None, "away"
        self.due = time.monotonic() + random.uniform(self.rest / 2, self.rest)
        self.rest = min(2 * self.rest, REST_MAX_S)

    def event(self):
        if self.due == float("inf") and self.state == "away" and not self.text and self.socket.getsockopt(
                socket.SOL_SOCKET, socket.SO_ERROR):
            self.lose()
        elif self.state == "away" and chooser.get_key(self.socket).events & selectors.EVENT_WRITE:
            self.ask()
        else:
            self.hear()

    def hear(self):
        try:
            more = self.socket.recv(65536)
        except OSError:
            more = b""
        if not more:
            self.lose()
            return
        self.text += more
        head, end, body = self.text.partition(b"\r\n\r\n")
        if not end or len(body) < int(head.lower().partition(b"content-length:")[2].split()[0]):
            return
        if not self.text.startswith(b"HTTP/1.1 200") or b'"unknown":[]' not in body:
            sys.exit("answered with " + self.text.decode())
        self.state, self.rest, self.answers = "in", REST_FIRST_S, self.answers + 1
        self.due = time.monotonic() + EVERY_S
        chooser.modify(self.socket, selectors.EVENT_READ, self)


clients = [Client(i) for i in range(count)]
began = time.monotonic()


def until(what):
    """Until it holds of every client; the seconds from the first to the last of whom it did not hold."""
    first = None
    while True:
        left = sum(not what(c) for c in clients)
        if left < count and first is None:
            first = time.monotonic()
        if not left:
            return time.monotonic() - first
        now = time.monotonic()
        for c in clients:
            if c.due <= now:
                c.begin()
        for key, _ in chooser.select(0.02):
            key.data.event()


until(lambda c: c.answers)
print("all have been answered", flush=True)
until(lambda c: c.losses)
print("none is connected", flush=True)
for c in clients:
    c.answers = 0
print("back after %.1f s, from the first to the last" % until(lambda c: c.answers), flush=True)
