#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An engine that did not run for a moment hears of every orderly end as soon as
# it runs again, and takes the time for nobody's silence. It used to be told for
# so short a time that it went on asking rings that were gone, and it gave up a
# node whose answers it had not read; either counted as a fault.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1

# Where a switch moves the data, it is stopped together with the engine.
movers() {
	node_pid e0
	[[ ${AQ_VIA_SWITCH-} != *cowbird* ]] || echo "${PIDS[0]}"
}
stop() {
	# shellcheck disable=SC2046 # one or two
	kill -STOP $(movers)
}
go_on() {
	# shellcheck disable=SC2046 # one or two
	kill -CONT $(movers)
}

# engine_has SESSIONS: until it has so many; none of them may be broken.
engine_has() {
	for _ in {1..100}; do
		expect 0 "$AQUIFER" status --json
		! json "$TMP/out" "d['engines'][0]['sessions'] == $1" \
			>/dev/null || break
		sleep 0.05
	done
	json "$TMP/out" "d['engines'][0]['sessions'] == $1 and d['engines'][0]['counters']['broken'] == 0" >/dev/null ||
		fail "$(<"$TMP/out")"
}

expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 1M
mkfifo "$TMP/in"
AQUIFER_LOG=debug client lines r <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "not ready"
engine_has 1

# Until the application has given it up; then it attaches to it anew. The engine
# is back before the node; on a busy machine the node may be too late for the
# first attempt, and what was asked meanwhile is told so.
kill -STOP "$(node_pid m0)"
echo again >&3
sleep 0.1
stop
for _ in {1..100}; do
	! grep -q 'was not told' "$TMP/errors" || break
	sleep 0.05
done
go_on
sleep 0.3
kill -CONT "$(node_pid m0)"
grep -q 'was not told' "$TMP/errors" || fail "the engine was not given up"
line=2
while [[ $(wait_line "$TMP/lines" "$line") == "again EHOSTDOWN "* ]]; do
	((line < 60)) || fail "$(<"$TMP/lines")"
	sleep 0.1
	echo again >&3
	line=$((line + 1))
done
[[ $(wait_line "$TMP/lines" "$line") == "again 0 "* ]] || fail "$(<"$TMP/lines")"
engine_has 1

# While the application closes: it waits for the engine's answer.
stop
exec 3>&-
sleep 1
go_on
wait "$app" || fail "$(<"$TMP/errors")"
expect 0 "$AQUIFER" status --json
json "$TMP/out" "d['engines'][0]['sessions'] == 0 and d['engines'][0]['counters']['broken'] == 0" >/dev/null ||
	fail "$(<"$TMP/out")"
