#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An engine is killed, and the memory node's answer to the first attempt to
# connect its successor is lost: the node has made a connection of which the
# application never hears. It once took that one's packet number for the dead
# engine's, and writes that nobody had done were told done.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1
need python3

printf '[engine e0]\n[engine e1]\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 1M
mv "$RUNDIR/m0.sock" "$TMP/node.sock"
: >"$TMP/proxy"
python3 "$(dirname "$0")/offload_lost_answer.py" "$RUNDIR/m0.sock" \
	"$TMP/node.sock" "$TMP/lose" >"$TMP/proxy" 2>&1 &
PIDS+=($!)
[[ $(wait_line "$TMP/proxy" 1) == ready ]] || fail "$(<"$TMP/proxy")"
# Both contexts are e0's, because nobody knows e1 until they are there.
mv "$RUNDIR/e1.engine.sock" "$TMP/e1.sock"
client many r 2 "$TMP/enough" >"$TMP/many" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
while kill -0 "$app"; do
	"$AQUIFER" status --json >"$TMP/out" 2>/dev/null || true
	json "$TMP/out" '[e.get("sessions") for e in d["engines"]][0] == 2' >/dev/null 2>&1 && break
	sleep 0.1
done
mv "$TMP/e1.sock" "$RUNDIR/e1.engine.sock"
sleep 0.3
# So that there are writes which it has not seen.
kill -STOP "$(node_pid e0)"
sleep 0.1
touch "$TMP/lose"
kill_node e0
wait_line "$TMP/proxy" 3 >/dev/null
touch "$TMP/enough"
wait "$app" || fail "$(<"$TMP/errors")"
rm "$RUNDIR/m0.sock"
mv "$TMP/node.sock" "$RUNDIR/m0.sock"
cat "$TMP/many"
