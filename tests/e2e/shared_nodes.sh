#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shared memory of two nodes: segments lie on both, one that is killed is an
# error for its own segments only, and when it is back they are lost until
# somebody repairs them.
NODE_MS=1500
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/shared_lib.sh
source "$(dirname "$0")/shared_lib.sh"
cat >>"$TMP/rack.ini" <<END
[memory m1]
size = 16M
shared = 16M
END

# of SEGMENT EXPRESSION: of what stat says, as soon as it does.
of() {
	for _ in {1..200}; do
		"$AQUIFER" shared stat "$1" --json >"$TMP/stat"
		json "$TMP/stat" "$2" >/dev/null 2>&1 && return
		sleep 0.1
	done
	fail "not so: $2: $(<"$TMP/stat")"
}

expect 0 "$AQUIFER" up
# The second node's memory is there as soon as the lead has seen it.
for _ in {1..200}; do
	expect 0 "$AQUIFER" status --json
	! json "$TMP/out" 'any(len(n.get("shared", {}).get("nodes", [])) == 2
		for n in d["nodes"])' >/dev/null 2>&1 || break
	sleep 0.05
done
expect 0 "$AQUIFER" shared create board 4M --json
va=$(json "$TMP/out" 'd["va"]')
start a
expect 0 "$AQUIFER" shared create far 2M --json
va=$(json "$TMP/out" 'd["va"]')
start b
start c
of board 'd["node"] == "m0"'
of far 'd["node"] == "m1" and not d["away"]'
expect 0 "$AQUIFER" shared list
grep -q "^far .* m1 " "$TMP/out" || fail "$(<"$TMP/out")"

for machine in a b c; do
	tell "$machine" join "joined 1"
done
tell a "get 0 w" "got 0"
tell a "set 0 3" set
tell b "get 0 w" "got 0"
tell b "set 0 7" set
tell c "get 0 w" "got 7"
tell c "set 0 8" set
tell b "get 12 w" "got 0"
tell b "set 12 9" set
tell b "give 12" given
is_sound

# Killed: an error for what it had, and for nothing else.
kill_node m1
tell c "get 5 r" "refused node"
tell a "get 1 w" "got 0"
of far 'd["away"]'
of board 'not d["away"] and d["lost"] == 0'
expect 1 "$AQUIFER" shared repair far
is_sound

# It comes again with nothing. What machines had they give back to it.
expect 0 "$AQUIFER" up
of far 'not d["away"] and d["lost"] == d["size"] and d["lost_by"] == "m1"'
of board 'd["lost"] == 0'
for machine in a b c; do
	until_term "$machine" "term 2"
	tell "$machine" again "again 2"
done
tell a "get 0 r" "got 3"
tell b "get 12 r" "refused right"
expect 0 "$AQUIFER" shared repair far
tell b "get 0 r" "got 8"
tell b "get 12 r" "got 0"
is_sound

# The switch is killed: both nodes are there again before anybody gets a page.
tell c "get 2 w" "got 0"
tell c "set 2 4" set
kill_node s1
expect 0 "$AQUIFER" up
for machine in a b c; do
	until_term "$machine" "term 3"
	tell "$machine" again "again 3"
done
tell b "get 2 r" "got 4"
tell a "get 0 r" "got 3"

# What is deleted there is zeros for the next one.
expect 0 "$AQUIFER" shared delete far
for _ in {1..200}; do
	expect 0 "$AQUIFER" status --json
	! json "$TMP/out" 'all(m["used"] == 0 for n in d["nodes"]
		for m in n.get("shared", {}).get("nodes", [])
		if m["name"] == "m1")' >/dev/null 2>&1 || break
	sleep 0.05
done
expect 0 "$AQUIFER" shared create far 2M --json
[[ $(json "$TMP/out" 'd["va"]') == "$va" ]] || fail "$(<"$TMP/out")"
tell b "get 2 r" "got 0"
is_sound
