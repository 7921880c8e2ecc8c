#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs of two machines use memory of a node that was added while their cache
# servers ran.
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
expect 0 "$AQUIFER" shared check
directory_is_sound
