#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Held beats: 64 nodes of one user wait for orders without a thread each, hear
# an order at once, and are suspect, then down, when their connections end.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

printf '[rack]\ncontrol = c0\n[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'

cat >"$TMP/nodes.py" <<'END'
import http.client, json, socket, sys, threading
rundir, count = sys.argv[1], int(sys.argv[2])
token = open(rundir + "/node-token").read().strip()

class Node(http.client.HTTPConnection):
    def __init__(self, i):
        super().__init__("c0")
        self.named = "f%d" % i
        self.incarnation = "%016x" % i
        self.list = ""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(rundir + "/c0.control.sock")

    def ask(self, path, body):
        self.request("POST", path, json.dumps(body),
                     {"Authorization": "Bearer " + token})
        reply = self.getresponse()
        text = reply.read()
        assert reply.status == 200, (path, reply.status, text)
        return json.loads(text)

    def beat(self):
        said = self.ask("/v1/nodes/%s/beat" % self.named, {
            "incarnation": self.incarnation, "epoch": self.epoch,
            "tenants": self.list})
        self.list = said["tenants_name"]
        return said

    def run(self, has):
        self.epoch = self.ask("/v1/nodes", {
            "name": self.named, "kind": "memory", "size": 1 << 20,
            "address": "unix:/" + self.named,
            "incarnation": self.incarnation})["epoch"]
        while True:
            said = self.beat()
            if any(t["name"] == "team" for t in said.get("tenants", [])):
                has.release()

has = threading.Semaphore(0)
nodes = [Node(i) for i in range(count)]
for n in nodes:
    threading.Thread(target=n.run, args=(has,), daemon=True).start()
for n in nodes:
    has.acquire()
print("all", flush=True)
sys.stdin.readline()
END
mkfifo "$TMP/in"
python3 "$TMP/nodes.py" "$RUNDIR" 64 <"$TMP/in" >"$TMP/lines" 2>&1 &
nodes=$!
PIDS+=("$nodes")
exec 3>"$TMP/in"
until_node 'sum(n["state"] == "up" for n in d.values() if n["kind"] == "memory") == 65'
control=$(<"$RUNDIR/c0.control.lock")
threads=$(find "/proc/$control/task" -mindepth 1 -maxdepth 1 | wc -l)
((threads < 32)) || fail "$threads threads for 65 nodes"
expect 0 "$AQUIFER" tenant create team
[[ $(wait_line "$TMP/lines" 1) == all ]] || fail "$(<"$TMP/lines")"
echo "ok: 64 nodes heard it, $threads threads"

kill -9 "$nodes"
exec 3>&-
until_node 'all(n["state"] in ("suspect", "down") for n in d.values() if n["name"][0] == "f")'
until_node 'all(n["state"] == "down" for n in d.values() if n["name"][0] == "f")'
until_node 'd["m0"]["state"] == "up"'
echo "ok: their connections ended"
