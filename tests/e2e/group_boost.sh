#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boost.Interprocess between two machines: managed memory, a message queue, mutexes
# and a condition. Results are as on one machine. Arguments: the program.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
# shellcheck source=tests/e2e/group_lib.sh
source "$(dirname "$0")/group_lib.sh"
BOOST=$1

"$BOOST" 0 10 >"$TMP/alone0" 2>&1 &
PIDS+=("$!")
"$BOOST" 1 10 >"$TMP/alone1" 2>&1 || fail "alone: $(<"$TMP/alone1")"
wait "$!" || fail "alone: $(<"$TMP/alone0")"

start_rack
beside a far0 "$BOOST" 0 10
in_group b "$BOOST" 1 10 >"$TMP/far1" 2>&1 || fail "$(<"$TMP/far1") $(server_log)"
wait "$PID" || fail "$(<"$TMP/far0") $(server_log)"
for where in alone1 far0 far1; do
	[[ $(<"$TMP/$where") == "$(<"$TMP/alone0")" ]] ||
		fail "$where: $(<"$TMP/$where") instead of $(<"$TMP/alone0")"
done
grep -q '20 entries .*named 20, sound 1' "$TMP/far0" || fail "$(<"$TMP/far0")"
segments_are words
directory_is_sound
