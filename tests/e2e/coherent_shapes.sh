#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Litmus shapes of two to four programs on two machines end only as TSO allows:
# message passing, store and load buffering, causality, independent readers,
# double writes. Arguments: the program, rounds of 64 runs each.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
CLIENT=$1 ROUNDS=$2

start_rack
serve a
serve b
MACHINES=(a b)
"$CLIENT" list >"$TMP/shapes"
(($(wc -l <"$TMP/shapes") >= 8)) || fail "shapes: $(<"$TMP/shapes")"
while read -r shape threads; do
	pids=()
	for ((i = 0; i < threads; i++)); do
		PATIENCE=1500 on "${MACHINES[i % 2]}" "$shape" "$i" "$ROUNDS" \
			>"$TMP/thread$i" 2>&1 </dev/null &
		pids+=("$!")
		PIDS+=("$!")
	done
	for ((i = 0; i < threads; i++)); do
		wait "${pids[i]}" ||
			fail "$shape, thread $i: $(cat "$TMP/thread$i" "$TMP"/serve.*.err)"
	done
done <"$TMP/shapes"
expect 0 "$AQUIFER" shared check
