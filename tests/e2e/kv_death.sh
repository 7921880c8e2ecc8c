#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs that use one table are killed at any moment; the others go on, never
# see a torn or foreign value, and in the end every invariant holds.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
kv=$1

printf '[memory m0]\nsize = 128M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" kv create t 256 --entry 32 --extents 16M --failure 300 \
	--rows-per-lock 4 --grow no

start() {
	: >"$TMP/lines.$1"
	"$kv" work t "$1" "$2" >"$TMP/lines.$1" 2>"$TMP/errors.$1" &
	PIDS+=("$!")
}

start 1 6
first=$!
start 2 6
second=$!
for seed in $(seq 10 17); do
	start "$seed" 10
	victim=$!
	wait_line "$TMP/lines.$seed" 1 >/dev/null || fail "$(cat "$TMP/errors.$seed")"
	sleep "0.0$((seed * 7 % 10))"
	kill -KILL "$victim" || fail "it ended: $(cat "$TMP/errors.$seed")"
	wait "$victim" || true
done
wait "$first" || fail "the first: $(cat "$TMP/errors.1")"
wait "$second" || fail "the second: $(cat "$TMP/errors.2")"
cat "$TMP/lines.1" "$TMP/lines.2"
# Nodes notice a dead process by themselves, soon; behind a switch only when it
# was silent for five heartbeats.
sleep "$((${AQ_VIA_SWITCH+7} + 1))"
expect 0 "$AQUIFER" kv check t --repair --json
json "$TMP/out" 'd["good"] and d["clients"] == 1' >/dev/null
