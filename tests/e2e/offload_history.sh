#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Threads read and write the same words while the engine is killed again and
# again: what they saw is linearizable.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1
seconds=${AQ_KILL_SECONDS:-4}

printf '[memory m0]\nsize = 64M\n[memory m1]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create shared 1M --nodes 2 --stripe 4K
client shared "$seconds" "$TMP/history" >"$TMP/done" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
kills=0
end=$((SECONDS + seconds))
while ((SECONDS < end)); do
	sleep 0.5
	kill_node e0
	kills=$((kills + 1))
	expect 0 "$AQUIFER" up
done
wait "$app" || fail "after $kills kills: $(cat "$TMP/errors")"
# Fresh memory is zeros.
expect 0 "$AQUIFER" sim check --model register --initial 0 "$TMP/history"
echo "$kills kills, $(cat "$TMP/done"), $(head -1 "$TMP/out")"
(($(grep -c '"ok"' "$TMP/history") > 100)) || fail "too few requests"
