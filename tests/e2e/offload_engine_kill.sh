#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine is killed again and again while threads check every byte that they
# read: no request is lost, none is done twice.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1
seconds=${AQ_KILL_SECONDS:-3}

printf '[memory m0]\nsize = 64M\n[memory m1]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create two 1M --nodes 2 --stripe 4K
client many two 3 "$seconds" >"$TMP/many" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
# Who comes while the engine is down may find it down until the end.
while kill -0 "$app" 2>/dev/null; do
	# On a busy machine the engine may not answer in time: asked again.
	"$AQUIFER" status --json >"$TMP/out" || true
	! json "$TMP/out" 'd["engines"][0].get("sessions", 0) >= 3' \
		>/dev/null || break
	sleep 0.05
done
kills=0
end=$((SECONDS + seconds))
while ((SECONDS < end)); do
	sleep 0.4
	kill_node e0
	kills=$((kills + 1))
	expect 0 "$AQUIFER" up
done
wait "$app" || fail "after $kills kills: $(cat "$TMP/errors")"
echo "$kills kills, $(cat "$TMP/many")"
