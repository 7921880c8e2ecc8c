#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A table of two copies loses a node, which comes back empty: programs that have
# the table open and do nothing make the second copy again, once, though there
# are two of them. Then the other node is lost, and all keys are there. One that
# is killed over it is followed by the other. Without such a program nothing
# happens until somebody asks for it.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"

# The table's row of `kv list`, which changes nothing.
row() {
	"$AQUIFER" kv list --json >"$TMP/list" || fail "no list"
	json "$TMP/list" "d[\"tables\"][0]$1"
}

# wait_health WORD: until the list says so.
wait_health() {
	for _ in {1..300}; do
		[[ $(row '["health"]') != "$1" || $(row '["resizing"]') == True ]] ||
			return 0
		sleep 0.2
	done
	fail "not $1: $(cat "$TMP/list")"
}

printf '[memory m%d]\nsize = 64M\n' 0 1 >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" kv create t 2000 --copies 2 --failure 300
expect 0 "$AQUIFER" kv fill t --count 400
gateway --table t
first=$GATEWAY_PID
gateway --table t
second=$GATEWAY_PID
wait_health whole

kill_node m1
wait_health "copy lost"
expect 0 "$AQUIFER" kv put t alone yes
expect 0 "$AQUIFER" up
wait_health whole
[[ $(row '["generation"]') == 1 ]] || fail "$(cat "$TMP/list")"
kill_node m0
expect 0 "$AQUIFER" kv scan t --keys
[[ $(sort -u "$TMP/out" | wc -l) == 401 ]] || fail "$(wc -l <"$TMP/out") keys"
expect 0 "$AQUIFER" kv get t alone

# One of the two dies, be it over the copy or before.
expect 0 "$AQUIFER" up
for _ in {1..100}; do
	[[ $(row '["resizing"]') == False && $(row '["generation"]') == 1 ]] || break
	sleep 0.02
done
kill -KILL "$first"
wait_health whole
[[ $(row '["keys"]') == 401 ]] || fail "$(cat "$TMP/list")"
expect 0 "$AQUIFER" kv check t --repair

# Nobody has it open: then it is done by hand.
kill "$second"
wait "$second" || true
kill_node m1
expect 0 "$AQUIFER" up
wait_health "copy lost"
expect 0 "$AQUIFER" kv repair t --json
json "$TMP/out" 'd["healed"] and d["parts_single"] == 0' >/dev/null
wait_health whole
expect 0 "$AQUIFER" kv repair t --json
json "$TMP/out" 'not d["healed"]' >/dev/null
expect 0 "$AQUIFER" kv scan t --keys
[[ $(sort -u "$TMP/out" | wc -l) == 401 ]] || fail "$(wc -l <"$TMP/out") keys"
