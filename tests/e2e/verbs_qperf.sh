#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# qperf's tests over reliable connections, atomics verified.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

need qperf
need_nic
port=$(free_port)
"${SOFT[@]}" qperf -lp "$port" >"$TMP/server" 2>&1 &
pid=$!
PIDS+=("$pid")
wait_port "$port" "$pid" || fail "server: $(cat "$TMP/server")"
for test in "$@"; do
	soft timeout 60 qperf -lp "$port" -t 1 127.0.0.1 "$test" \
		>"$TMP/out" 2>&1 || {
		cat "$TMP/out" "$TMP/server"
		fail "$test"
	}
	cat "$TMP/out"
	# qperf reports a failure in words and returns 0.
	grep -Eq ' = ' "$TMP/out" || fail "$test has no result"
done
soft timeout 20 qperf -lp "$port" 127.0.0.1 quit || true
