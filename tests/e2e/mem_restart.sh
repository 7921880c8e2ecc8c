#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One node per name; a killed one is replaced; tenants survive, memory does not.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

start_node
ask "$ADMIN" 201 POST /v1/tenants '{"name": "t", "quota": 8192}'
other=$(json "$TMP/answer" 'd["token"]')
ask "$other" 201 POST /v1/regions '{"name": "a", "size": 4096}'
expect 1 "$AQUIFER" memory --size 1M
grep -q "m0 of rack $AQUIFER_RACK_NAME runs already (process $NODE)" \
	"$TMP/err" || fail "$(<"$TMP/err")"
ask "" 200 GET /v1/status
first=$(json "$TMP/answer" 'd["incarnation"]')
ask "" 200 GET /v1/status
[[ $(json "$TMP/answer" 'd["incarnation"]') == "$first" ]] ||
	fail "another incarnation without a restart"

old=$NODE
kill -KILL "$old"
wait "$old" || true
[[ -S $SOCKET ]] || fail "a killed node removed its socket?"
start_node
ask "" 200 GET /v1/status
[[ $(json "$TMP/answer" 'd["incarnation"]') != "$first" ]] ||
	fail "the same incarnation after a restart"
ask "$other" 200 GET /v1/regions
json "$TMP/answer" 'd["regions"] == []' >/dev/null
ask "$other" 507 POST /v1/regions '{"name": "a", "size": 9000}'
! grep -rqs "$other" "$TMP/state" || fail "a token is on disk"

# Two nodes of other names, side by side; SIGINT is as good.
"$AQUIFER" memory --size 1M --name m1 --json >"$TMP/m1" &
second=$!
PIDS+=("$second")
for _ in {1..100}; do
	[[ -S $DIR/m1.sock && -s $TMP/m1 ]] && break
	sleep 0.05
done
json "$TMP/m1" 'd["node"] == "m1" and d["size"] == 1 << 20' >/dev/null
kill -INT "$second"
wait "$second" || fail "SIGINT: $?"
[[ ! -e $DIR/m1.sock && -S $SOCKET ]] || fail "the wrong socket went away"

# A client that stays connected and says nothing does not hold up the end.
python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.send(b"GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
s.recv(100)
open(sys.argv[2], "w").close()
time.sleep(20)' "$SOCKET" "$TMP/idle" &
PIDS+=("$!")
for _ in {1..100}; do
	[[ -e $TMP/idle ]] && break
	sleep 0.05
done
start=$SECONDS
stop_node
((SECONDS - start < 5)) || fail "the end took $((SECONDS - start)) s"

# Wrong arguments.
expect 2 "$AQUIFER" memory
expect 2 "$AQUIFER" memory --size
expect 2 "$AQUIFER" memory --size 8Q
expect 2 "$AQUIFER" memory --size 1M extra
expect 2 "$AQUIFER" memory --size 1M --tls-cert x
expect 2 "$AQUIFER" memory --size 1M --name "Not Good"
expect 2 "$AQUIFER" memory --size 1M --rack "Not Good"
expect 2 "$AQUIFER" memory --size 1M --listen nowhere
echo "ok: restart"
