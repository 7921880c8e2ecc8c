#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What dies, and what programs see then: a program, the switch while all add, the
# segment, a cache server. Never zeros, never old bytes, never a silent hang.
# Arguments: the program.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
CLIENT=$1

start_rack
serve a
serve b

# A program is killed: its machine still has what it stored.
stored a store 41
kill -KILL "$PID"
ends_with 137 "$PID"
sum_is 41 b a

# One closes all its descriptors: an error for it, and nothing for others.
status=0
on a bare 0 0 >"$TMP/bare" 2>&1 || status=$?
((status == 135)) || fail "bare: $status $(<"$TMP/bare")"
sum_is 41 a b

# The switch is killed while both add, and started again: they pause.
rm -f "$TMP"/add.[ab]
on a add 0 3000000 >"$TMP/add.a" 2>&1 &
adders=("$!")
on b add 0 3000000 >"$TMP/add.b" 2>&1 &
adders+=("$!")
PIDS+=("${adders[@]}")
begun "$TMP/add.a" "$TMP/add.b"
kill_node s1
expect 0 "$AQUIFER" up
for pid in "${adders[@]}"; do
	wait "$pid" || fail "add: $(cat "$TMP"/add.? "$TMP"/serve.*.err)"
done
sum_is 6000041 a b
directory_is_sound

# Deleted under a program: SIGBUS, and no old bytes for the next one.
stored a store 60
expect 0 "$AQUIFER" shared delete words
ends_with 135 "$PID"
AQUIFER_NIC_ADDRESS=${ADDRESS[b]} expect 1 \
	env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} "$CLIENT" words show 0 0
for _ in {1..200}; do
	! "$AQUIFER" shared create words 32M >"$TMP/out" 2>&1 || break
	sleep 0.05
done
sum_is 0 a b

# A server is killed: SIGBUS for its programs at once.
stored a store 70
kill -KILL "${SERVER[a]}"
ends_with 135 "$PID"
