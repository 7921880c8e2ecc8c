#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node with --numa has its regions and the pages of programs on that NUMA node,
# by a policy that holds for all processes that map them; a node that is not
# there is refused in words.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

client=$1
[[ -e /proc/self/numa_maps ]] || skip "a kernel without NUMA"
expect 1 "$AQUIFER" memory --size 1M --numa 1023
grep -q 'no NUMA node 1023 with memory; it has node 0' "$TMP/err" ||
	fail "$(cat "$TMP/err")"

NODE_OPTIONS=(--numa 0 --json)
start_node
# Some containers forbid policies of memory, and then there is nothing to test.
got=$(curl -s --unix-socket "$SOCKET" -H "Authorization: Bearer $TOKEN" \
	-d '{"name": "a", "size": 1000000}' http://m0/v1/regions)
[[ $got != *"Operation not permitted"* ]] || skip "mbind is not allowed here"
ask "$TOKEN" 200 GET /v1/status
[[ $(json "$TMP/answer" 'd["numa"]') == 0 ]] || fail "$(cat "$TMP/answer")"
"$client" "$SOCKET" "$TOKEN" zero a
"$client" "$SOCKET" "$TOKEN" fill a
"$client" "$SOCKET" "$TOKEN" check a
bound() {
	grep -c 'bind:0 .*aquifer-grant' "/proc/$NODE/numa_maps" || true
}
(($(bound) == 1)) || fail "$(cat "/proc/$NODE/numa_maps")"
# Another size is other memory, on the same node.
ask "$TOKEN" 200 PATCH /v1/regions/a '{"size": 500000}'
(($(bound) == 1)) || fail "$(cat "/proc/$NODE/numa_maps")"
"$client" "$SOCKET" "$TOKEN" check a

# What a program of `run` has there is shared memory that it touches first.
# A sanitized program has no room for its range of addresses.
if [[ -z $AQ_PRELOAD ]] && python3 -c 'import ctypes, sys
sys.exit(ctypes.CDLL(None).syscall(323, 0) < 0)'; then
	before=$(bound)
	mkfifo "$TMP/go"
	"$AQUIFER" run --local 1M -- sh -c "echo ready >'$TMP/ready'; read _ <'$TMP/go'" \
		2>"$TMP/run.err" &
	pid=$!
	PIDS+=("$pid")
	while [[ ! -s $TMP/ready ]]; do
		kill -0 "$pid" 2>/dev/null || fail "$(cat "$TMP/run.err")"
		sleep 0.05
	done
	(($(bound) > before)) || fail "pages of a program are not bound"
	echo >"$TMP/go"
	wait "$pid" || fail "$(cat "$TMP/run.err")"
fi
stop_node
