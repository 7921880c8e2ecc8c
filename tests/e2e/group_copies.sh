#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs that ask for two copies themselves: by the library, and unmodified ones
# by `aquifer run --shared GROUP --copies 2`. Numbers go from one machine to another
# while one memory node is killed, and then the other one, which leads: none is lost,
# and no program sees an error. Arguments: the library's client, the relay.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
# shellcheck source=tests/e2e/group_lib.sh
source "$(dirname "$0")/group_lib.sh"
CLIENT=$1 RELAY=$2 OBJECT=e2e.f.relay
RUN_OPTIONS=(--copies 2)

# maps PID: waits until the program that this `timeout` runs has mapped the object.
maps() {
	for _ in {1..600}; do
		! grep -qs '/memfd:aquifer' "/proc/$(pgrep -P "$1")/maps" ||
			return 0
		sleep 0.05
	done
	fail "$(cat "$TMP/take" "$TMP/put") $(server_log)"
}

# relays COUNT: both sides begin, on two machines. Their object has two copies, and
# numbers are on their way when this returns.
relays() {
	beside a take "$RELAY" take "$1"
	RELAYS=("$PID")
	is "$OBJECT" 'd["copies"] == 2 and d.get("copy")'
	beside b put "$RELAY" put "$1"
	RELAYS+=("$PID")
	maps "${RELAYS[0]}"
	maps "${RELAYS[1]}"
}

# relayed COUNT SUM: both have ended well.
relayed() {
	local pid
	for pid in "${RELAYS[@]}"; do
		wait "$pid" || fail "$(cat "$TMP/take" "$TMP/put") $(server_log)"
	done
	[[ $(<"$TMP/take") == "$1 numbers, sum $2" ]] || fail "$(<"$TMP/take")"
}

start_nodes
serve a
serve b
for copies in 3 4294967295; do
	if on a make 0 "$copies" >"$TMP/out" 2>&1; then fail "$copies copies"; fi
	grep -q "1 or 2 copies" "$TMP/out" || fail "$(<"$TMP/out")"
done
expect 2 "$AQUIFER" run --shared e2e --copies 3 -- true
grep -q "1 or 2 copies" "$TMP/err" || fail "$(<"$TMP/err")"
until on a make 1 2 >"$TMP/out" 2>&1; do # the node that follows comes later
	grep -q "second memory node" "$TMP/out" || fail "make: $(<"$TMP/out")"
	sleep 0.1
done
is words 'd["copies"] == 2 and {d["node"], d["copy"]} == {"m0", "m1"}'
is words 'd["on_loss"] == "last"'
both add 1000
sum_is 2000 a

# The node that follows.
relays 1500
kill_node m1
relayed 1500 1124250
both add 1000
sum_is 4000 b a
is words 'd["node"] == "m0" and "copy" not in d and d["lost"] == 0'
# Where there is no second node memory is refused when it is made, not later.
if in_group a "$RELAY" put 1 >"$TMP/put" 2>&1; then fail "it was made"; fi
grep -q "No space left" "$TMP/put" || fail "$(<"$TMP/put")"
expect 0 "$AQUIFER" shared delete "$OBJECT"
expect 0 "$AQUIFER" up
is words 'd.get("copy") == "m1"'

# The one that leads.
relays 1500
kill_node m0
expect 0 "$AQUIFER" up
relayed 1500 1124250
both add 1000
sum_is 6000 a b
is words '{d["node"], d.get("copy")} == {"m0", "m1"} and d["lost"] == 0'
# Its name could not be taken away if both had ended before somebody led again.
"$AQUIFER" shared delete "$OBJECT" >"$TMP/out" 2>&1 || true
segments_are words
directory_is_sound

# Whatever a cache has the directory knows: the one that wrote, and the other.
stored a store 7
cache_is_sound a
stored b store 8
cache_is_sound b
expect 0 "$AQUIFER" shared check
