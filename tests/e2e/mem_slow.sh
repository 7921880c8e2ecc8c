#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Half-open requests lock nobody out, however many there are; they end after a
# while also when bytes keep coming; and descriptors that run out are waited for.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

port() {
	sed -n 's/.*(port \([0-9]*\)).*/\1/p' "$TMP/node"
}

# Few enough places: a quarter of the files is for one socket, half of that for
# one address.
ulimit -Sn 4096
ulimit -Hn 4096
NODE_OPTIONS=(--listen 127.0.0.1:0)
start_node
python3 - "$(port)" "$TMP" <<'PY' &
import resource, socket, sys, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
half = []
for i in range(1100):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
    s.sendall(b"GET /v1/status HTTP/1.1\r\nX: ")
    half.append(s)
open(sys.argv[2] + "/half", "w").close()
# The last ones are the youngest. Bytes do not keep them alive.
s = half[-1]
end = time.time() + 60
while time.time() < end:
    try:
        s.sendall(b"a")
    except OSError:
        open(sys.argv[2] + "/late", "w").close()
        break
    time.sleep(0.2)
PY
slow=$!
PIDS+=("$slow")
for _ in {1..600}; do
	[[ -e $TMP/half ]] && break
	sleep 0.1
done
[[ -e $TMP/half ]] || fail "no half-open requests"
for _ in {1..10}; do
	[[ $(curl -sS --max-time 20 -o /dev/null -w '%{http_code}' \
		"http://127.0.0.1:$(port)/v1/status") == 200 ]] ||
		fail "half-open requests keep others out"
done
ask "$TOKEN" 200 GET /v1/regions
wait "$slow"
[[ -e $TMP/late ]] || fail "a request may take for ever"
stop_node

# Few descriptors: the node waits for one, and does not burn the processor.
ulimit -Sn 64
ulimit -Hn 64
start_node
python3 - "$(port)" "$NODE" <<'PY'
import os, socket, sys, time

def cpu():
    fields = open("/proc/%s/stat" % sys.argv[2]).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

address = ("127.0.0.1", int(sys.argv[1]))
half = [socket.create_connection(address, 10) for i in range(40)]
# More than there are descriptors for; some of them make room.
before = cpu()
time.sleep(2)
used = cpu() - before
assert used < 1, "%.1f s of the processor in 2 s" % used
s = socket.create_connection(address, 10)
s.sendall(b"GET /v1/status HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
assert s.recv(100).startswith(b"HTTP/1.1 200"), "no answer"
PY
stop_node
echo "ok: slow and many"
