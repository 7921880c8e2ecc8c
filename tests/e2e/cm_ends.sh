#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Connections that end otherwise: nobody listens, and a server that is killed
# without a word. The client must learn of both, soon.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need rping
need_nic
status=0
soft timeout 20 rping -c -a 127.0.0.1 -C 1 >"$TMP/out" 2>&1 || status=$?
((status != 0 && status != 124)) || fail "nobody listens, rping says $status"
grep -q REJECTED "$TMP/out" || fail "not rejected: $(cat "$TMP/out")"

start_cm_server rping -s -a 127.0.0.1
# The server itself, not the timeout(1) around it.
victim=$(pgrep -P "$SERVER_PID" | head -n 1)
soft timeout 30 rping -c -a 127.0.0.1 -C 100000000 >"$TMP/client" 2>&1 &
client=$!
PIDS+=("$client")
sleep 1
kill -0 "$client" || fail "the client ended early: $(cat "$TMP/client")"
kill -KILL "$victim"
status=0
wait "$client" || status=$?
((status != 124)) || fail "the client did not notice its server's death"
wait "$SERVER_PID" || true
echo "ok: refused, and a dead server noticed ($status)"
