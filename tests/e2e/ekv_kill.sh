#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Clients of a key-value store die by kill -9 while its blocks are split, some
# of them while they move one: what was answered is there, each addition was
# made once, and others go on.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
client=$1

up_two
expect 0 "$AQUIFER" ns mkdir /k --keep
export EKV_BLOCK=65536

# lines FILE N PID: waits until a file has so many lines, or the process is gone.
lines() {
	until [ "$(wc -l <"$1")" -ge "$2" ] || ! kill -0 "$3" 2>/dev/null; do
		sleep 0.02
	done
}

touch "$TMP"/{p,c}.dies{1,2,3}
"$client" count /k/kv n 40 20 >"$TMP/c.steady" &
steady=$!
for round in 1 2 3; do
	"$client" fill /k/kv "dies$round-" 100000 2000 >"$TMP/p.dies$round" &
	p=$!
	"$client" count /k/kv n 40 100000 >"$TMP/c.dies$round" &
	c=$!
	lines "$TMP/p.dies$round" $((100 * round)) "$p"
	lines "$TMP/c.dies$round" 100 "$c"
	kill -9 "$p" "$c"
	wait "$p" "$c" 2>/dev/null || true
done
wait "$steady" || fail "the steady client failed"
for round in 1 2 3; do
	put=$(wc -l <"$TMP/p.dies$round")
	[ "$put" -ge $((100 * round)) ] || fail "round $round ended early"
	n=$(grep -c "^put" "$TMP/p.dies$round")
	# One more may be there, whose answer died with its client.
	"$client" check /k/kv "dies$round-" "$n" 2000 2>"$TMP/err" ||
		"$client" check /k/kv "dies$round-" $((n + 1)) 2000 ||
		fail "round $round: $(<"$TMP/err")"
done
expect 0 "$client" sum /k/kv n 40
sum=$(<"$TMP/out")
answered=$(cat "$TMP"/c.* | grep -c "^added")
if [ "$sum" -lt "$answered" ] || [ "$sum" -gt $((answered + 3)) ]; then
	fail "$answered additions were answered, and the sum is $sum"
fi
expect 0 "$AQUIFER" ekv scan /k/kv --json
echo "ok: $answered additions, $(json "$TMP/out" 'd["blocks"]') blocks"
expect 0 "$AQUIFER" down
