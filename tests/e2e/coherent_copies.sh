#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A segment that two memory nodes have: programs of two machines add, and one node
# is killed, then the other, which leads. No addition is lost, no program sees an
# error, and a second copy comes by itself each time. What only the killed lead had
# is gone, and says so; what only the other node had stays. And a segment that goes
# on with memory's bytes when a machine dies, alone or together with the switch.
# Arguments: the program.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
CLIENT=$1

start_nodes

# made NAME SIZE OPTION...: a segment, as soon as there is room for it.
made() {
	for _ in {1..200}; do
		! "$AQUIFER" shared create "$@" --json >"$TMP/out" 2>"$TMP/err" ||
			return 0
		sleep 0.1
	done
	fail "create $*: $(<"$TMP/err")"
}

# adders COUNT, and added: two programs, and their end.
adders() {
	rm -f "$TMP"/add.[ab]
	on a add 0 "$1" >"$TMP/add.a" 2>&1 &
	ADDERS=("$!")
	on b add 0 "$1" >"$TMP/add.b" 2>&1 &
	ADDERS+=("$!")
	PIDS+=("${ADDERS[@]}")
	begun "$TMP/add.a" "$TMP/add.b"
}
added() {
	local pid
	for pid in "${ADDERS[@]}"; do
		wait "$pid" || fail "add: $(cat "$TMP"/add.? "$TMP"/serve.*.err)"
	done
}

made words 4M --copies 2
json "$TMP/out" '{d["node"], d["copy"]} == {"m0", "m1"}' >/dev/null ||
	fail "$(<"$TMP/out")"
expect 1 "$AQUIFER" shared create large 32M --copies 2
grep -q "no place of 32M" "$TMP/err" || fail "$(<"$TMP/err")"
# One more at each node.
made one 8M
made two 8M
expect 0 "$AQUIFER" shared list --json
json "$TMP/out" '{g["node"] for g in d["segments"] if g["name"] in ("one", "two")}
	== {"m0", "m1"}' >/dev/null || fail "$(<"$TMP/out")"
stays=$(json "$TMP/out" '[g["name"] for g in d["segments"]
	if g["node"] == "m1" and g["name"] != "words"][0]')
goes=$([[ $stays == one ]] && echo two || echo one)
serve a
serve b
both add 1000
sum_is 2000 a

# The node that follows.
adders 3000000
kill_node m1
added
both add 1000 # also if the others had ended before
sum_is 6004000 a b
is words 'd["node"] == "m0" and "copy" not in d and d["lost"] == 0'
expect 0 "$AQUIFER" up
is words 'd.get("copy") == "m1"'
expect 0 "$AQUIFER" shared check

# The one that leads; all that m1 has came by the copy.
adders 3000000
kill_node m0
expect 0 "$AQUIFER" up
added
both add 1000
sum_is 12006000 a b
is words '{d["node"], d.get("copy")} == {"m0", "m1"} and d["lost"] == 0'
expect 1 "$AQUIFER" shared stat "$goes"
expect 0 "$AQUIFER" shared stat "$stays"
expect 0 "$AQUIFER" shared check
directory_is_sound

# And the node that followed again.
kill_node m1
both add 1000
sum_is 12008000 b a
expect 0 "$AQUIFER" shared delete words
directory_is_sound

# A machine dies with the only copy of a store, where memory's bytes shall count.
# Both nodes and both machines are there first.
expect 0 "$AQUIFER" up
made three 2M --copies 2
machines_are 2
made words 2M --on-loss last
stored a store 7
kill -KILL "${SERVER[a]}"
ends_with 135 "$PID"
sum_is 0 b
is words 'd["lost"] == 0 and d["on_loss"] == "last"'

# Together with the switch: nobody knows what the machine had. Who asks meanwhile
# waits for its lease, and sees no error.
serve a
machines_are 2
stored a store 7
kill_node s1
kill -KILL "${SERVER[a]}"
ends_with 135 "$PID"
expect 0 "$AQUIFER" up
sum_is 0 b
is words 'd["lost"] == 0'
is three 'd["lost"] == d["size"] and d["lost_by"] == "a"'
expect 0 "$AQUIFER" shared repair three
expect 0 "$AQUIFER" shared check
