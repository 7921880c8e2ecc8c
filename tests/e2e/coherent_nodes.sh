#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs of two machines use memory of a node that was added while their cache
# servers ran; it moves to another node and back while they add, and none of the
# additions is lost, also when the switch is killed meanwhile.
# Arguments: the program.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
CLIENT=$1

start_rack
serve a
serve b
both add 1000
sum_is 2000 a

# The second node comes; its memory is used when all machines know of it.
cat >>"$TMP/rack.ini" <<END
[memory m1]
size = 16M
shared = 64M
END
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" shared delete words
expect 0 "$AQUIFER" shared create filler 32M
node=
for i in {1..300}; do
	"$AQUIFER" shared create "words$i" 2M --json >"$TMP/out" 2>&1 || true
	node=$(json "$TMP/out" 'd.get("node")' 2>"$TMP/err") || true
	[[ $node != m1 ]] || break
	"$AQUIFER" shared delete "words$i" >"$TMP/out" 2>&1 || true
	sleep 0.1
done
[[ $node == m1 ]] || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" shared create words 32M --json
[[ $(json "$TMP/out" 'd["node"]') == m1 ]] || fail "$(<"$TMP/out")"
both add 1000
sum_is 2000 a b

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

# To the other node, and back as soon as there are zeros.
adders 1000000
expect 0 "$AQUIFER" shared move words m0 --json
[[ $(json "$TMP/out" 'd["node"]') == m0 ]] || fail "$(<"$TMP/out")"
for _ in {1..100}; do
	! "$AQUIFER" shared move words m1 >"$TMP/out" 2>"$TMP/err" || break
	grep -q "not zeros yet" "$TMP/err" || fail "$(<"$TMP/err")"
	sleep 0.1
done
added
sum_is 2002000 a b
expect 0 "$AQUIFER" shared check

# The switch is killed in the midst of it: it has moved, or it has not.
adders 1000000
"$AQUIFER" shared move words m0 >"$TMP/moved" 2>"$TMP/err" &
mover=$!
PIDS+=("$mover")
sleep 0.05
kill_node s1
expect 0 "$AQUIFER" up
wait "$mover" || true
added
sum_is 4002000 a b
for _ in {1..200}; do
	! "$AQUIFER" shared move words m0 >"$TMP/out" 2>&1 || break
	sleep 0.1
done
expect 0 "$AQUIFER" shared check

# Nothing of it is at the old node.
kill_node m1
sum_is 4002000 b a
both add 1000
sum_is 4004000 a b
expect 0 "$AQUIFER" shared check
directory_is_sound
