#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A client that is killed, or falls silent, leaves nothing behind.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

client=$1

# hold: a client that keeps a connection; HOLDER is its pid.
hold() {
	# Now, not when the client gets to it: "ready" may be the last one's.
	: >"$TMP/holder"
	"$client" "$SOCKET" "$TOKEN" hold a >>"$TMP/holder" 2>&1 &
	HOLDER=$!
	PIDS+=("$HOLDER")
	for _ in {1..100}; do
		grep -q ready "$TMP/holder" && return 0
		sleep 0.05
	done
	fail "the client did not connect: $(<"$TMP/holder")"
}

start_node
ask "$TOKEN" 201 POST /v1/regions '{"name": "a", "size": 1000000}'
hold
[[ $(metric aquifer_connections) == 1 && $(metric aquifer_grants) == 1 ]] ||
	fail "no connection"
kill -KILL "$HOLDER"
wait "$HOLDER" || true
# The reason would be its silence if the NIC did not know that it is gone.
until_metric 'aquifer_connections_ended_total{reason="gone"}' 1 30
[[ $(metric aquifer_connections) == 0 && $(metric aquifer_grants) == 0 ]] ||
	fail "the connection is still there"

hold
kill -STOP "$HOLDER"
sleep 3
[[ $(metric aquifer_connections) == 1 ]] || fail "too little patience"
until_metric 'aquifer_connections_ended_total{reason="silent"}' 1 60
kill -CONT "$HOLDER"
# It learns that it was given up.
for _ in {1..40}; do
	grep -q "410" "$TMP/holder" && break
	sleep 0.1
done
grep -q "410" "$TMP/holder" || fail "no 410: $(<"$TMP/holder")"

# The region is still there, and a client that holds it ends with the node.
hold
stop_node
echo "ok: dead clients"
