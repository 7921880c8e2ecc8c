#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Page stores in a rack: every mode keeps what it is given; a client that is
# killed gives its pages back; a node that is killed is an error, and with two
# copies it costs nothing.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
page=$1
what=${2:-modes}
MODES="static dynamic-1m dynamic-4k two-sided chain sparse"

nodes="m0 m1"
[[ $what == modes ]] || nodes="m0 m1 m2 m3"
for n in $nodes; do
	printf '[memory %s]\nsize = 64M\n' "$n"
done >"$TMP/rack.ini"
expect 0 "$AQUIFER" up 3>&-

# start MODE COPIES PAGES: leaves its lines in $TMP/lines, takes from fd 3.
start() {
	rm -f "$TMP/in"
	mkfifo "$TMP/in"
	: >"$TMP/lines"
	lines=1
	"$page" "$@" <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
	app=$!
	PIDS+=("$app")
	exec 3>"$TMP/in"
	[[ $(wait_line "$TMP/lines" 1) == "ready $3" ]] ||
		fail "$*: $(cat "$TMP/lines" "$TMP/errors")"
}

# ask LINE WANT
ask() {
	local got
	echo "$1" >&3
	lines=$((lines + 1))
	got=$(wait_line "$TMP/lines" "$lines")
	[[ $got == "$2" ]] || fail "$1: '$got', not '$2': $(cat "$TMP/errors")"
}

stop() {
	exec 3>&-
	wait "$app" || fail "the program: $(cat "$TMP/errors")"
}

# used: bytes that the nodes have given out.
used() {
	local sum=0 n
	for n in $nodes; do
		curl -sS --unix-socket "$RUNDIR/$n.sock" http://x/v1/status \
			>"$TMP/status" || fail "$n does not answer"
		[[ $(<"$TMP/status") =~ \"used\":\ *([0-9]+) ]] ||
			fail "no pool in $(<"$TMP/status")"
		sum=$((sum + BASH_REMATCH[1]))
	done
	echo "$sum"
}

# Until everything has come back.
wait_unused() {
	for _ in {1..100}; do
		[[ $(used) == 0 ]] && return
		sleep 0.1
	done
	fail "the nodes still hold $(used) bytes"
}

# Every mode; and a client of it that dies.
check_mode() {
	start "$mode" 1 400
	ask verify "good 400 missing 0 lost 0 bad 0"
	ask "mix 200" "wrong 0"
	ask drop "dropped 200"
	stop

	# The client dies: everything comes back.
	start "$mode" 2 200
	(($(used) > 0)) || fail "$mode uses nothing"
	kill -KILL "$app"
	wait "$app" || true
	exec 3>&-
	wait_unused
}

if [[ $what == modes ]]; then
	for mode in $MODES; do
		check_mode
	done
	exit 0
fi

# A node dies, and then another one.
mode=${3:-chain}
start "$mode" 2 500
kill_node m2
ask verify "good 500 missing 0 lost 0 bad 0"
ask store "stored 500 failed 0"
ask rebuild "error EHOSTDOWN"
expect 0 "$AQUIFER" up 3>&-
ask rebuild "left 0"
kill_node m1
ask verify "good 500 missing 0 lost 0 bad 0"
stop
[[ $what == death ]] && exit 0
expect 0 "$AQUIFER" up 3>&-
start "$mode" 3 500
kill_node m0
kill_node m3
ask verify "good 500 missing 0 lost 0 bad 0"
stop
expect 0 "$AQUIFER" up 3>&-
start "$mode" 1 400
kill_node m3
ask verify "good 300 missing 0 lost 100 bad 0"
stop
