#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How a program under `aquifer run` ends: its own code or signal; by SIGBUS when
# far memory is lost; and killed, never with zeros, when its pager is gone.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
CLIENT=$1

# expect_end STATUS: of the loop.
expect_end() {
	local status=0
	wait "$RUN" || status=$?
	((status == $1)) || fail "$status instead of $1: $(cat "$TMP/loop.err")"
	# It compares every byte, so zeros would have been code 3 and a line.
	! grep -q '^line' "$TMP/loop.err" || fail "$(cat "$TMP/loop.err")"
}

expect 7 "$AQUIFER" run --local 4M -- sh -c 'exit 7'
expect 127 "$AQUIFER" run --local 4M -- /nowhere/program
expect 126 "$AQUIFER" run --local 4M -- /etc/passwd
expect 126 "$AQUIFER" run --rack nobody --local 4M -- true
grep -q 'aquifer up' "$TMP/err" || fail "no advice: $(cat "$TMP/err")"
expect 2 "$AQUIFER" run -- true
expect 2 "$AQUIFER" run --local 512K -- true
expect 2 "$AQUIFER" run --local 4M
status=0
"$AQUIFER" run --local 4M -- sh -c 'kill -USR1 $$' 2>/dev/null || status=$?
((status == 128 + 10)) || fail "USR1: $status"

start_loop 4M 12
kill -TERM "$RUN"
expect_end 143
echo "ok: a signal is passed on"

# A daemon: the program's first process ends, and its memory still works.
expect 0 "$AQUIFER" run --local 4M --json -- sh -c "\"$CLIENT\" threads 12 &"
[[ $(grep -c ok "$TMP/out") == 1 ]] || fail "the orphan: $(cat "$TMP/err")"
echo "ok: an orphan is served"

for _ in 1 2 3; do
	start_loop 4M 12
	program=$(pgrep -P "$RUN" run_client)
	kill -KILL "$(pgrep -P "$RUN" -x aquifer-pager)"
	expect_end 137
	grep -q 'pager ended' "$TMP/loop.err" || fail "$(cat "$TMP/loop.err")"
	! kill -0 "$program" 2>/dev/null || fail "the program lives on"
done
echo "ok: no pager, no program"

start_loop 4M 12
program=$(pgrep -P "$RUN" run_client)
pager=$(pgrep -P "$RUN" -x aquifer-pager)
kill -KILL "$RUN"
expect_end 137
for _ in {1..100}; do
	kill -0 "$program" 2>/dev/null || kill -0 "$pager" 2>/dev/null || break
	sleep 0.05
done
! kill -0 "$pager" 2>/dev/null || fail "the pager lives on"
echo "ok: no supervisor, no program and no pager"

start_loop 4M 12
kill_node m0
expect_end 135
grep -q 'memory node m0 is lost' "$TMP/loop.err" ||
	fail "no name: $(cat "$TMP/loop.err")"
echo "ok: lost memory is SIGBUS"
