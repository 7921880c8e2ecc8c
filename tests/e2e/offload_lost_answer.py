# SPDX-License-Identifier: Apache-2.0
"""Stands before a memory node and loses answers.

usage: offload_lost_answer.py LISTEN NODE TRIGGER

While the file TRIGGER is there, the node executes each request to connect that
continues a session, but nobody hears of it; once per session.
"""
import os
import socket
import sys
import threading

listen, node, trigger = sys.argv[1:]
lost = set()


def read_message(sock):
    """Headers and as many bytes as they announce."""
    data = b''
    while b'\r\n\r\n' not in data:
        part = sock.recv(65536)
        if not part:
            return b''
        data += part
    head, body = data.split(b'\r\n\r\n', 1)
    length = 0
    for line in head.split(b'\r\n')[1:]:
        name, value = line.split(b':', 1)
        if name.lower() == b'content-length':
            length = int(value)
    while len(body) < length:
        body += sock.recv(65536)
    return head + b'\r\n\r\n' + body


def is_lost(request):
    start = request.find(b'"session"')
    session = request[start:start + 60]
    if not request.startswith(b'POST /v1/connect ') or start < 0 or \
            session in lost or not os.path.exists(trigger):
        return False
    lost.add(session)
    return True


def serve(client):
    upstream = socket.socket(socket.AF_UNIX)
    upstream.connect(node)
    with client, upstream:
        while True:
            request = read_message(client)
            if not request:
                return
            upstream.sendall(request)
            answer = read_message(upstream)
            if is_lost(request):
                print('lost', flush=True)
                client.recv(1)  # until the client gives up
                return
            client.sendall(answer)


server = socket.socket(socket.AF_UNIX)
server.bind(listen)
server.listen(64)
print('ready', flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],),
                     daemon=True).start()
