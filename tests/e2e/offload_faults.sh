#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine is absent and comes back, another takes over, a memory node dies
# and comes back empty, the application is killed.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1

# ask NAME WANT SECONDS: one request, its error and its time.
line=1
ask() {
	local name code seconds
	echo "$1" >&3
	line=$((line + 1))
	read -r name code seconds < <(wait_line "$TMP/lines" "$line")
	[[ $name == "$1" && $code == "$2" ]] ||
		fail "$1 gave $code instead of $2: $(cat "$TMP/errors")"
	awk -v s="$seconds" -v m="$3" 'BEGIN { exit !(s < m) }' ||
		fail "$1 took $seconds s"
	echo "$1: $code after $seconds s"
}

# until_ok NAME: requests until one is served.
until_ok() {
	local code
	for _ in {1..100}; do
		echo "$1" >&3
		line=$((line + 1))
		read -r _ code _ < <(wait_line "$TMP/lines" "$line")
		[[ $code == 0 ]] && return 0
		sleep 0.05
	done
	fail "$1: $code"
}

expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 1M
mkfifo "$TMP/in"
client lines r 1200 <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "not ready"
ask first 0 2

# No engine: a clear error within a second or so, also for who waits.
kill_node e0
# An engine in the switch serves on.
if [[ ${AQ_VIA_SWITCH:-} == *cowbird* ]]; then
	for _ in {1..8}; do
		ask served 0 2
		sleep 0.5
	done
else
	ask absent EHOSTDOWN 2.5
	ask still EHOSTDOWN 0.5
fi
expect 0 "$AQUIFER" up
until_ok back

# Another engine takes over from one that hangs.
"$AQUIFER" engine --name e1 >"$TMP/e1" 2>&1 &
e1=$!
PIDS+=("$e1")
wait_line "$TMP/e1" 1
kill -STOP "$(node_pid e0)"
until_ok taken
kill -CONT "$(node_pid e0)"
ask after 0 2
kill -TERM "$e1"
wait "$e1" || fail "e1: $(cat "$TMP/e1")"
until_ok again

# The region is resized: its keys die, and the requests go on.
expect 0 "$AQUIFER" region resize r 2M
ask resized 0 6

# The node hangs: an error within the deadline and what this machine adds; then
# it goes on.
pid=$(node_pid m0)
kill -STOP "$pid"
for _ in {1..200}; do
	grep -q '^State:[[:space:]]*[^T[:space:]]' /proc/"$pid"/task/*/status || break
	sleep 0.01
done
ask hung EHOSTDOWN 5
kill -CONT "$(node_pid m0)"
until_ok woken

# The node: an error in bounded time, and for ever when its memory is lost.
kill_node m0
ask node EHOSTDOWN 8
expect 0 "$AQUIFER" up
for _ in {1..60}; do
	echo gone >&3
	line=$((line + 1))
	read -r _ code _ < <(wait_line "$TMP/lines" "$line")
	[[ $code == ESTALE ]] && break
	sleep 0.1
done
[[ $code == ESTALE ]] || fail "a lost region: $code"

# The application is killed: nothing of it is left.
pid=$app
while child=$(pgrep -P "$pid"); do
	pid=$child # a shell, timeout, and then the program
done
[[ $(<"/proc/$pid/comm") == offload_client ]] || fail "$pid is not the client"
kill -KILL "$pid"
exec 3>&-
for _ in {1..100}; do
	expect 0 "$AQUIFER" status --json
	if json "$TMP/out" 'd["engines"][0]["sessions"] == 0 and d["nodes"][0]["connections"] == 0' >/dev/null 2>&1; then
		exit 0
	fi
	sleep 0.1
done
fail "left over: $(cat "$TMP/out")"
