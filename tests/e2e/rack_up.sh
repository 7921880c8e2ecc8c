#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# up, status, up again, down: only processes that up started are touched.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

expect 1 "$AQUIFER" status
grep -q "aquifer up" "$TMP/out" || fail "status does not say what to do"
expect 0 "$AQUIFER" up --json
json "$TMP/out" 'd["nodes"][0]["name"] == "m0"
    and d["nodes"][0]["state"] == "up"' >/dev/null
pid=$(node_pid m0)
kill -0 "$pid" || fail "no process $pid"
expect 0 "$AQUIFER" up --json
json "$TMP/out" 'd["nodes"][0]["state"] == "already up"' >/dev/null
[[ $(node_pid m0) == "$pid" ]] || fail "up started a second m0"

expect 0 "$AQUIFER" region create data 4M --json
json "$TMP/out" 'd["size"] == 4 << 20 and d["nodes"] == 1' >/dev/null
expect 1 "$AQUIFER" region create data 4M
grep -q EEXIST "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" region list --json
json "$TMP/out" 'len(d["regions"]) == 1' >/dev/null
expect 0 "$AQUIFER" region resize data 8M
expect 0 "$AQUIFER" region stat data --json
json "$TMP/out" 'd["size"] == 8 << 20' >/dev/null
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["nodes"][0]["state"] == "up"
    and d["pool"]["used"] == 8 << 20
    and d["pool"]["size"] == 1 << 30
    and d["regions"][0]["name"] == "data"
    and d["nodes"][0]["pid"] == '"$pid" >/dev/null
expect 0 "$AQUIFER" status
# A client whose port can less than the node's.
AQUIFER_NIC_MTU=1024 expect 0 client basic data
expect 0 "$AQUIFER" region delete data
expect 1 "$AQUIFER" region stat data
expect 2 "$AQUIFER" region create data
expect 2 "$AQUIFER" region create data many
expect 2 "$AQUIFER" region frobnicate

# Each start has its time in the log, and so have a daemon's own lines.
day='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}'
grep -qE "^${day}Z start of m0$" "$RUNDIR/m0.log" || fail "$(<"$RUNDIR/m0.log")"
timeout -k 5 30 "$AQUIFER" -vv memory --name m9 --size 2M >"$TMP/m9" 2>&1 &
PIDS+=("$!")
for _ in {1..200}; do
	"$AQUIFER" status >/dev/null || true # a line for each request
	! grep -qE "^${day}\.[0-9]{6}Z (info|debug) " "$TMP/m9" || break
	sleep 0.05
done
grep -qE "^${day}\.[0-9]{6}Z (info|debug) " "$TMP/m9" || fail "$(<"$TMP/m9")"
kill -TERM "${PIDS[-1]}"
wait "${PIDS[-1]}" || fail "m9: $? $(<"$TMP/m9")"

# Somebody else's process has the number of the pid file: it must live.
sleep 60 &
PIDS+=("$!")
other=$!
cp "$RUNDIR/m0.pid" "$TMP/m0.pid"
echo "$other 12345" >"$RUNDIR/m0.pid"
expect 0 "$AQUIFER" down --json
json "$TMP/out" '[n["state"] for n in d["nodes"]] == ["was gone"] and
	[e["name"] for e in d["engines"]] == ["e0"]' >/dev/null ||
	fail "$(cat "$TMP/out")"
kill -0 "$other" || fail "down ended a stranger"
cp "$TMP/m0.pid" "$RUNDIR/m0.pid"
expect 0 "$AQUIFER" down --json
json "$TMP/out" '[n["name"] for n in d["nodes"]] == ["m0"] and
	d["nodes"][0]["state"] == "down" and d["clients"] == [] and
	d["lost"] == {"regions": 0, "bytes": 0}' >/dev/null ||
	fail "$(cat "$TMP/out")"
[[ -e /proc/$pid/exe ]] && fail "m0 still runs"
expect 0 "$AQUIFER" down --json
json "$TMP/out" 'd["nodes"] == []' >/dev/null

# A node that cannot start: the reason is shown.
printf '[memory m0]\nsize=2M\nlisten=192.0.2.1:1\n' >"$TMP/rack.ini"
expect 1 "$AQUIFER" up
grep -q "m0.log" "$TMP/err" || fail "the log is not shown: $(cat "$TMP/err")"
[[ -e $RUNDIR/m0.pid ]] && fail "a pid file is left over"
printf '[memory m0]\nsize=tiny\n' >"$TMP/rack.ini"
expect 1 "$AQUIFER" up
grep -q "rack.ini:2" "$TMP/err" || fail "$(cat "$TMP/err")"
: >"$TMP/rack.ini"

# A node hangs while it starts, and what has its name takes calls and answers
# none: each look at it takes a second, and all of them no more than the 15 s.
mkfifo "$TMP/cert.pem"
printf '[memory m0]\nsize=2M\nlisten=127.0.0.1:0\ntls_cert=%s\ntls_key=%s\n' \
	"$TMP/cert.pem" "$TMP/cert.pem" >"$TMP/rack.ini"
python3 - "$RUNDIR/m0.sock" <<'PY' &
import signal, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(1000)
signal.pause()
PY
PIDS+=("$!")
until [[ -S $RUNDIR/m0.sock ]]; do sleep 0.05; done
expect 1 timeout -k 5 100 "$AQUIFER" up
grep -q "did not answer within 15 s" "$TMP/err" || fail "$(cat "$TMP/err")"
: >"$TMP/rack.ini"
