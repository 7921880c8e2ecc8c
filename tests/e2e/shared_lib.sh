# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the shared_* tests with the program that is a machine: a rack with
# shared memory, and machines that are told what to do.
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
machine=$1

# The switch is patient, because a busy machine is slow and not dead.
cat >"$TMP/rack.ini" <<END
[nic]
port = switch:s1
[switch s1]
programs = coherence:node_ms=${NODE_MS:-60000},fin_ms=60000,peer_ms=60000
[memory m0]
size = 16M
shared = 16M
END

# start NAME: a machine that uses the segment at $va; tell NAME LINE... talks
# to it.
declare -A IN LINES PID
va=${va:-}
start() {
	mkfifo "$TMP/$1.in"
	: >"$TMP/$1.out"
	env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} "$machine" \
		"$RUNDIR/m0.sock" "$(<"$RUNDIR/token")" "$1" "$va" \
		<"$TMP/$1.in" >"$TMP/$1.out" 2>"$TMP/$1.err" &
	PIDS+=("$!")
	PID[$1]=$!
	exec {fd}>"$TMP/$1.in"
	IN[$1]=$fd
	LINES[$1]=0
}

# tell NAME LINE PATTERN: what the machine answers.
tell() {
	local got
	echo "$2" >&"${IN[$1]}"
	((++LINES[$1]))
	got=$(wait_line "$TMP/$1.out" "${LINES[$1]}") ||
		fail "$1 says nothing to '$2': $(cat "$TMP/$1.err")"
	# shellcheck disable=SC2053 # a pattern
	[[ $got == $3 ]] || fail "$1: '$2' gave '$got' instead of '$3'"
}

# until_term NAME WANT: until a beat says so.
until_term() {
	local got
	for _ in {1..600}; do
		echo term >&"${IN[$1]}"
		((++LINES[$1]))
		got=$(wait_line "$TMP/$1.out" "${LINES[$1]}") || fail "$1 is silent"
		[[ $got == "$2" ]] && return
		sleep 0.1
	done
	fail "$1: '$got' instead of '$2'"
}

# kill_machine NAME
kill_machine() {
	kill -KILL "${PID[$1]}"
	wait "${PID[$1]}" 2>/dev/null || true
}

# segment EXPRESSION: of what stat says of the board.
segment() {
	expect 0 "$AQUIFER" shared stat board --json
	json "$TMP/out" "$1" >/dev/null || fail "not so: $1: $(<"$TMP/out")"
}

# until_segment EXPRESSION
until_segment() {
	for _ in {1..200}; do
		"$AQUIFER" shared stat board --json >"$TMP/stat"
		json "$TMP/stat" "$1" >/dev/null 2>&1 && return
		sleep 0.1
	done
	fail "not so: $1: $(<"$TMP/stat")"
}

# is_sound: the directory holds together, and the node agrees.
is_sound() {
	expect 0 "$AQUIFER" shared check
	[[ $(<"$TMP/out") == sound ]] || fail "$(<"$TMP/out")"
}
