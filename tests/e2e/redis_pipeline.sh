#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Changes that go together answer as if they went one by one, also several of
# one key; and a node that is killed under them takes neither the gateway nor
# the answers with it.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
need redis-cli redis-benchmark redis-check-rdb python3

pipeline() {
	timeout 120 python3 "$(dirname "$0")/redis_pipeline.py" "$@"
}

rack_with_gateway
start_redis
for seed in 1 2 3; do
	pipeline same "$GATEWAY_PORT" "$TMP/redis.sock" "$seed" ||
		fail "answers differ"
done

# Pipelines of one counter, on 20 connections at once.
cli del total >/dev/null
pipeline count "$GATEWAY_PORT" 20 25 || fail "counting"
[[ $(cli get total) == 8000 ]] || fail "8000 increments gave $(cli get total)"

# The node is killed under pipelines of changes: all are answered, then with
# errors, and the gateway serves the table that it makes on the next one.
pipeline until "$GATEWAY_PORT" "$TMP/runs" &
pid=$!
PIDS+=("$pid")
while [[ ! -e $TMP/runs ]]; do
	kill -0 "$pid" || fail "no pipelines"
	sleep 0.05
done
kill -KILL "$(node_pid m0)"
wait "$pid" || fail "who sent the pipelines ended with $?"
"$AQUIFER" down >/dev/null 2>&1 || true
expect 0 "$AQUIFER" up
# Threads find it one after the other.
until [[ $(cli exists total) == 0 ]]; do
	kill -0 "$GATEWAY_PID" || fail "the gateway has ended"
	sleep 0.1
done
pipeline ready "$GATEWAY_PORT" 12 || fail "not all of it serves the new table"
pipeline count "$GATEWAY_PORT" 4 25 || fail "counting on the new table"
