#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A disk that becomes read-only, loses what it is told to keep, or does not answer
# while the controller runs (strace makes these system calls fail or wait):
# changes are refused with words, nothing is half done, nodes beat, reads and the
# data path go on, and so does all else when the disk is back.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
need strace
# shellcheck source=tests/e2e/control_disk_lib.sh
source "$(dirname "$0")/control_disk_lib.sh"

# fault INJECTION...: of the controller's system calls, until heal.
fault() {
	local i options=()
	for i; do
		options+=(-e "inject=$i")
	done
	: >"$TMP/strace.err"
	strace -f -qq -e trace=pwrite64,fdatasync,fsync,ftruncate "${options[@]}" \
		-p "$control" -o /dev/null 2>"$TMP/strace.err" &
	tracer=$!
	PIDS+=("$tracer")
	# All of its threads are traced.
	for _ in {1..600}; do
		kill -0 "$tracer" 2>/dev/null ||
			skip "it may not trace: $(<"$TMP/strace.err")"
		! grep -L "TracerPid:[[:space:]]*$tracer\$" \
			"/proc/$control"/task/*/status | grep -q . || {
			sleep 0.02
			continue
		}
		return 0
	done
	fail "never traced"
}

heal() {
	kill -INT "$tracer"
	wait "$tracer" 2>/dev/null || true
}

# beats: nodes are heard while the disk is as it is.
beats() {
	local before
	count() {
		curl -sS -m 10 "http://127.0.0.1:$port/metrics" \
			-H "Authorization: Bearer $(<"$RUNDIR/admin-token")" |
			awk '$1 == "aquifer_control_beats_total" {print $2}'
	}
	before=$(count)
	for _ in {1..600}; do
		(($(count) <= before + 1)) || return 0
		sleep 0.05
	done
	fail "no beat comes through"
}

fault pwrite64:error=EROFS ftruncate:error=EROFS
refused "nothing was changed: .*(disk|lead|read)"
goes_on "$LAST"
heal
until_ok "$AQUIFER" tenant create after-ro --token-file "$TMP/ro.token"
goes_on "$LAST"
echo "ok: a disk that became read-only"

fault fdatasync:error=EIO fsync:error=EIO
# The first one may have happened or not, and is asked about below.
"$AQUIFER" tenant create perhaps --token-file "$TMP/p.token" >"$TMP/out" 2>"$TMP/err" &&
	fail "a change that is not on the disk was said to be made"
grep -Eq "may have been made or not|nothing was changed" "$TMP/err" ||
	fail "no words: $(<"$TMP/err")"
refused "nothing was changed: .*(disk|lead)"
goes_on "$LAST"
heal
until_ok "$AQUIFER" tenant create after-eio --token-file "$TMP/eio.token"
goes_on "$LAST"
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '{"first", "after-ro", "after-eio"} <=
	set(t["name"] for t in d["tenants"])' >/dev/null
echo "ok: a disk that does not keep what it is told to"

fault fdatasync:delay_enter=600000000
# It waits for the disk, until it is told that its end is not known.
"$AQUIFER" tenant create slow --token-file "$TMP/slow.token" >"$TMP/out" 2>"$TMP/err" &&
	fail "a change that is not on the disk was said to be made"
grep -q "may have been made or not.*ledger does not answer" "$TMP/err" ||
	fail "no words: $(<"$TMP/err")"
refused "nothing was changed: the ledger has not answered for"
expect 0 "$AQUIFER" node ls
expect 0 "$AQUIFER" region stat mine
expect 0 "$AQUIFER" region create another 1M
beats
until_node 'd["m0"]["state"] == "up"'
heal
until_ok "$AQUIFER" tenant create after-slow --token-file "$TMP/as.token"
# What was under way has happened, as a whole; what was refused has not.
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '{"first", "slow", "after-slow"} <=
	set(t["name"] for t in d["tenants"])' >/dev/null
goes_on "$LAST"
echo "ok: a disk that does not answer"

kill -TERM "$control"
wait "$control" || fail "it ended badly: $(<"$TMP/c0.err")"
start
wait_line "$TMP/c0" 1 >/dev/null
until_ok "$AQUIFER" tenant ls --json
json "$TMP/out" '{"first", "after-ro", "after-eio", "slow", "after-slow"} <=
	set(t["name"] for t in d["tenants"])' >/dev/null
echo "ok: all of it is there after a restart"
