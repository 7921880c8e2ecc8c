#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shared memory between two machines, through a real switch and memory node: a
# page that one writes the other reads, also after the switch was killed, and
# what dies with a machine is lost until it is repaired.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/shared_lib.sh
source "$(dirname "$0")/shared_lib.sh"

expect 1 "$AQUIFER" shared list
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" shared create board 4M --json
va=$(json "$TMP/out" 'd["va"]')
expect 1 "$AQUIFER" shared create board 4M
expect 1 "$AQUIFER" shared create much 32M
grep -q "shared memory of m0" "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 "$AQUIFER" shared list
grep -q "^board .* 4M rw " "$TMP/out" || fail "$(<"$TMP/out")"
segment 'd["size"] == 4 << 20 and d["lost"] == 0 and d["tenant"] == "default"'

# A page by READ, and back by WRITE; another machine sees it.
start a
start b
tell a join "joined 1"
tell b join "joined 1"
expect 0 "$AQUIFER" shared machines --json
json "$TMP/out" 'sorted(m["name"] for m in d["members"]) == ["a", "b"]
	and d["term"] == 1' >/dev/null || fail "$(<"$TMP/out")"
tell a "get 0 w" "got 0"
tell a "set 0 7" set
tell a "give 0" given
tell b "get 0 r" "got 7"
tell a "get 0 w" "got 7"
tell a "set 0 8" set
tell b "get 0 w" "got 8"
tell b "get 5 w" "got 0"

# The switch is killed: no store is lost, and nobody gets a page before both
# have given back what they had.
tell a "get 1 w" "got 0"
tell a "set 1 9" set
tell b "set 5 5" set
kill_node s1
expect 0 "$AQUIFER" up
until_term a "term 2"
until_term b "term 2"
tell a again "again 2"
tell b again "again 2"
tell b "get 1 r" "got 9"
tell a "get 5 r" "got 5"
tell a "get 0 r" "got 8"
is_sound

# A machine dies with the only copy of stores.
tell a "get 8 w" "got 0"
tell a "set 8 1" set
tell a "give 8" given
tell a "set 8 2" set
tell a "get 0 r" "got 8"
kill_machine a
tell b "get 8 r" "refused lost"
until_segment '0 < d["lost"] < d["size"] and d["lost_by"] == "a"'
tell b "get 8 w" "refused lost"
tell b "get 0 w" "got 8"
# The next switch knows, too.
kill_node s1
expect 0 "$AQUIFER" up
until_term b "term 3"
tell b again "again 3"
tell b "get 8 r" "refused lost"
segment 'd["lost"] > 0'
expect 0 "$AQUIFER" shared repair board
segment 'd["lost"] == 0'
tell b "get 8 w" "got 1"

# Another tenant, and the end of the segment.
expect 0 "$AQUIFER" tenant create other
expect 0 "$AQUIFER" shared allow board other r --offset 2M
expect 1 "$AQUIFER" shared allow board nobody r
expect 2 "$AQUIFER" shared allow board other r --offset 4K
expect 0 "$AQUIFER" shared delete board
tell b "get 1 r" "refused right"
expect 1 "$AQUIFER" shared stat board
tell b leave left
expect 0 "$AQUIFER" shared list --json
json "$TMP/out" 'd["segments"] == []' >/dev/null || fail "$(<"$TMP/out")"
is_sound
