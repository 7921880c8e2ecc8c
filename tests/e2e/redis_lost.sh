#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A gateway whose rack goes and comes: it says so in its log, over HTTP, to PING
# and in INFO, and serves again by itself, or ends where it was told to. A table
# that exists and cannot be reached is not made a second time.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
need redis-cli curl promtool

# get PATH: over HTTP; the status is printed, the answer is in $TMP/http.
get() {
	curl -s -m 60 -o "$TMP/http" -w '%{http_code}' \
		--unix-socket "$TMP/http.sock" "http://gateway$1"
}
health_is() {
	[[ $(get /health) == "$1" ]]
}
# wait_for COMMAND...: until it succeeds.
wait_for() {
	for _ in {1..600}; do
		"$@" && return 0
		sleep 0.1
	done
	fail "$*: $(cat "$TMP/http" "$TMP"/gateway.*.err)"
}
log_lines() {
	cat "$TMP"/gateway.*.err | grep -c "$1" || true
}
# log_files WORDS: how many gateways have said so. On a busy machine one may also
# miss its table for a moment, and say so twice.
log_files() {
	grep -l "$1" "$TMP"/gateway.*.err | wc -l
}

# Two nodes, and the table on the first. Three gateways that start at once: one
# makes the table, the others wait for it.
printf '[memory m%d]\nsize = 64M\n' 0 1 >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
sizes=(--capacity 4K --values 4M)
for port in 7101 7102; do
	"$AQUIFER" redis --port "$port" "${sizes[@]}" >"$TMP/gateway.$port" 2>"$TMP/gateway.$port.err" &
	PIDS+=("$!")
done
gateway "${sizes[@]}" --http "$TMP/http.sock"
keeper=$GATEWAY_PORT keeper_pid=$GATEWAY_PID
gateway "${sizes[@]}" --lost exit
quitter=$GATEWAY_PID
GATEWAY_PORT=$keeper
for port in 7101 7102; do
	answers() { [[ $(redis-cli -p "$port" ping 2>/dev/null) == PONG ]]; }
	wait_for answers
done
[[ $(cli set kept 1) == OK ]] || fail "set"
wait_for health_is 200
grep -q '"status":"ok"' "$TMP/http" || fail "$(cat "$TMP/http")"
cli foo bar >/dev/null
cli incr word >/dev/null
[[ $(get /nosuch) == 404 ]] || fail "a path that there is none of"
counted() {
	[[ $(get /metrics) == 200 ]] && grep -q '^aquifer_redis_keys 2$' "$TMP/http"
}
wait_for counted
promtool check metrics <"$TMP/http" || fail "promtool"
for line in 'commands_total{command="set"} 1$' 'commands_rejected_total 1$' \
	'table_up{table="redis"} 1$' 'command_duration_seconds_count [1-9]'; do
	grep -q "^aquifer_redis_$line" "$TMP/http" || fail "no $line: $(cat "$TMP/http")"
done
cli info memory | grep -q far_memory: || fail "INFO of a table that is there"

# The rack goes.
expect 0 "$AQUIFER" down
wait_for health_is 503
grep -q '"status":"lost".*"reason":"' "$TMP/http" || fail "$(cat "$TMP/http")"
cli ping | grep -q "^ERR far memory: table redis is lost" || fail "PING: $(cli ping)"
cli get kept | grep -q "is lost" || fail "GET: $(cli get kept)"
[[ $(cli echo still) == still ]] || fail "ECHO needs no table"
cli info server | grep -q aquifer_table_status:lost || fail "INFO: $(cli info)"
cli info memory | grep far_memory && fail "INFO has the memory of a lost table"
get /metrics >/dev/null
grep -q '^aquifer_redis_table_up{table="redis"} 0$' "$TMP/http" || fail "$(cat "$TMP/http")"
code=0
wait "$quitter" || code=$?
((code == 1)) || fail "--lost exit gave $code"

# And comes: a new one, so one of the gateways makes the table anew, empty.
expect 0 "$AQUIFER" up
wait_for health_is 200
[[ $(cli ping) == PONG && $(cli exists kept) == 0 ]] || fail "the new table"
[[ $(cli set kept 2) == OK ]] || fail "set"
for port in 7101 7102; do
	again() { [[ $(redis-cli -p "$port" get kept 2>/dev/null) == 2 ]]; }
	wait_for again
done
(($(log_files 'warn.*[ "]table redis is lost') == 4)) || fail "$(cat "$TMP"/gateway.*.err)"
(($(log_lines "made anew") == 1)) || fail "$(cat "$TMP"/gateway.*.err)"
(($(log_files "it is back") >= 2)) || fail "$(cat "$TMP"/gateway.*.err)"

# The node that has a table does not answer, the other one does: nobody makes
# another table there, and when the first goes on, everything is as it was.
expect 0 "$AQUIFER" kv create pinned 4K --extents 4M --node m1
kill -TERM "$keeper_pid"
wait "$keeper_pid" || fail "SIGTERM gave $?"
gateway --table pinned --http "$TMP/http.sock"
[[ $(cli set kept 3) == OK ]] || fail "set"
wait_for health_is 200
kill -STOP "$(node_pid m1)"
# Until the gateway has given the node up it has no answer for anybody.
wait_for health_is 503
expect 1 timeout 60 "$AQUIFER" redis --port 0 --table pinned
grep -q "does not answer" "$TMP/err" || fail "$(cat "$TMP/err")"
kill -CONT "$(node_pid m1)"
wait_for health_is 200
[[ $(cli get kept) == 3 ]] || fail "after a pause of the node: $(cli get kept)"
(($(log_lines "made anew") == 1)) || fail "$(cat "$TMP"/gateway.*.err)"
