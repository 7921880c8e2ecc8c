#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A tenant is deleted while the node's own tick takes down what it has: the
# tenant is gone as a whole, its memory is back, and a full disk changes nothing.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

start_node
python3 - "$SOCKET" "$TOKEN" "$ADMIN" <<'PY'
import http.client, json, socket, sys, time

class Node(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])

node = Node("m0", timeout=30)
ADMIN = sys.argv[3]

def ask(token, method, path, body=None):
    node.request(method, path, json.dumps(body) if body else None,
                 {"Authorization": "Bearer " + token})
    answer = node.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text else None

for round in range(8):
    status, tenant = ask(ADMIN, "POST", "/v1/tenants", {"name": "t%d" % round})
    assert status == 201, tenant
    token = tenant["token"]
    status, c = ask(token, "POST", "/v1/connect", {
        "proto": "1.0", "gid": "00000000000000000000ffff7f000001",
        "qpn": 7 << 14 | 3, "psn": 0})
    assert status == 200, c
    # All of them end with the connection: the tick does that.
    for i in range(60):
        status, r = ask(token, "POST", "/v1/regions", {
            "name": "r%d" % i, "size": 2 << 20 if i % 2 else 4096,
            "owner": c["connection"]})
        assert status == 201, r
    # In half of the rounds the tick is at it already.
    if round % 2:
        ask(token, "DELETE", "/v1/connections/" + c["connection"])
        while len(ask(token, "GET", "/v1/regions")[1]["regions"]) == 60:
            pass
    status, r = ask(ADMIN, "DELETE", "/v1/tenants/t%d" % round)
    assert status == 204, (round, status, r)
    assert ask(token, "GET", "/v1/regions")[0] == 401
    # What the tick had in its hands comes back by the next one.
    for _ in range(100):
        left = ask(ADMIN, "GET", "/v1/tenants")[1]["tenants"]
        used = ask(ADMIN, "GET", "/v1/status")[1]["pool"]["used"]
        if len(left) == 1 and used == 0:
            break
        time.sleep(0.1)
    assert len(left) == 1 and used == 0, (left, used)
PY

# A disk that is full: a small file system of its own, if we may have one.
state=$TMP/state/$AQUIFER_RACK_NAME
full_cleanup() {
	local status=$?
	set +e
	umount "$state" 2>/dev/null
	(exit "$status")
	cleanup
}
trap full_cleanup EXIT
if mount -t tmpfs -o size=64k none "$state" 2>/dev/null; then
	ask "$ADMIN" 201 POST /v1/tenants '{"name": "stays"}'
	token=$(json "$TMP/answer" 'd["token"]')
	head -c 1M /dev/zero >"$state/full" 2>/dev/null || true
	ask "$ADMIN" 507 DELETE /v1/tenants/stays
	ask "$token" 200 GET /v1/regions
	rm "$state/full"
	ask "$ADMIN" 204 DELETE /v1/tenants/stays
	ask "$token" 401 GET /v1/regions
	! grep -q stays "$state/m0.tenants.json" || fail "it is still there"
fi
stop_node
