# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the run_* tests: a rack with a node of 512M, and programs on it.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/rack_lib.sh"

# Far memory needs userfaultfd for system calls too.
python3 -c 'import ctypes, sys
sys.exit(ctypes.CDLL(None).syscall(323, 0) < 0)' ||
	skip "userfaultfd is not allowed here"

printf '[memory m0]\nsize = 512M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up

# far LOCAL PROGRAM...: its report is in $TMP/report, its stderr in $TMP/err.
read -ra FAR_OPTIONS <<<"${AQ_RUN_OPTIONS:-}"
far() {
	local local=$1 status=0
	shift
	timeout -k 5 110 "$AQUIFER" run --local "$local" --json \
		"${FAR_OPTIONS[@]}" -- "$@" 2>"$TMP/err" || status=$?
	grep '^{"local"' "$TMP/err" | tail -1 >"$TMP/report" || true
	return "$status"
}

# report EXPRESSION: over the last report, d.
report() {
	json "$TMP/report" "$1" >/dev/null ||
		fail "not so: $1 in $(cat "$TMP/report" "$TMP/err")"
}

# same LOCAL PROGRAM...: it prints the same as without far memory.
same() {
	local local=$1
	shift
	"$@" >"$TMP/plain" || fail "$* without: $?"
	far "$local" "$@" >"$TMP/out" || fail "$*: $? $(cat "$TMP/err")"
	cmp "$TMP/plain" "$TMP/out" ||
		fail "$*: $(diff "$TMP/plain" "$TMP/out")"
	report 'd["lost_pages"] == 0'
}

# start_loop LOCAL MIB: run_client's endless reader; RUN is the supervisor's pid.
start_loop() {
	: >"$TMP/loop"
	"$AQUIFER" run --local "$1" -- "$CLIENT" loop "$2" >"$TMP/loop" \
		2>"$TMP/loop.err" &
	RUN=$!
	PIDS+=("$RUN")
	wait_line "$TMP/loop" 1 >/dev/null || fail "$(cat "$TMP/loop.err")"
}
