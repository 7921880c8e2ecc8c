#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program of a group has POSIX and System V shared memory, named semaphores and
# locks that sleep as on one machine, also with the other side on another machine;
# and nothing is left of it. Arguments: the program.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
# shellcheck source=tests/e2e/group_lib.sh
source "$(dirname "$0")/group_lib.sh"
CALLS=$1

start_rack
in_group a "$CALLS" alone >"$TMP/alone" 2>&1 ||
	fail "$(<"$TMP/alone") $(server_log)"
segments_are words

# A mutex and a condition variable in turns, barriers, and one lock for both.
beside a side0 "$CALLS" together 0 10
in_group b "$CALLS" together 1 10 >"$TMP/side1" 2>&1 ||
	fail "$(<"$TMP/side1") $(server_log)"
wait "$PID" || fail "$(<"$TMP/side0") $(server_log)"
[[ $(<"$TMP/side0") == "20 2000" && $(<"$TMP/side1") == "20 2000" ]] ||
	fail "$(<"$TMP/side0"), $(<"$TMP/side1")"
segments_are words
# A deadline in shared memory that the other machine has.
for side in 0 1; do
	machine=$( ((side)) && echo b || echo a)
	in_group "$machine" "$CALLS" deadline "$side" >"$TMP/when" 2>&1 ||
		fail "$(<"$TMP/when") $(server_log)"
done
segments_are words
# Groups share nothing with each other.
beside a one "$CALLS" together 0 1
env AQUIFER_NIC_ADDRESS="${ADDRESS[b]}" "$AQUIFER" run --shared other -- \
	python3 -c '
import _posixshmem, os
try:
    _posixshmem.shm_open("/meeting", os.O_RDWR, mode=0o600)
except FileNotFoundError:
    print("none")' >"$TMP/other" 2>&1 || fail "$(<"$TMP/other") $(server_log)"
[[ $(<"$TMP/other") == none ]] || fail "$(<"$TMP/other")"
in_group b "$CALLS" together 1 1 >"$TMP/side1" 2>&1 ||
	fail "$(<"$TMP/side1") $(server_log)"
wait "$PID" || fail "$(<"$TMP/one") $(server_log)"
directory_is_sound

expect 2 "$AQUIFER" run --shared 'no name' -- true
expect 127 "$AQUIFER" run --shared e2e -- /nowhere/program
# Servers end after their last program.
machines_are 0
