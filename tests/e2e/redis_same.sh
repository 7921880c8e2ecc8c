#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The gateway answers as Redis does: the same commands to both, from Debian's
# redis-cli, in RESP2 and in RESP3.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
need redis-cli redis-check-rdb

rack_with_gateway
commands=$(dirname "$0")/redis_commands.txt
start_redis

for proto in -2 -3; do
	timeout 60 redis-cli "$proto" -p "$GATEWAY_PORT" <"$commands" >"$TMP/ours" ||
		fail "redis-cli with the gateway"
	timeout 60 redis-cli "$proto" -s "$TMP/redis.sock" <"$commands" >"$TMP/theirs" ||
		fail "redis-cli with redis-server"
	diff -a "$TMP/theirs" "$TMP/ours" >"$TMP/diff" ||
		fail "answers differ (< Redis, > ours) with $proto: $(cat "$TMP/diff")"
done
(($(wc -l <"$TMP/ours") > 150)) || fail "too few answers"
