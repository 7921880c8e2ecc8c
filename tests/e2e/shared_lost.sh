#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A machine that dies together with the switch: nobody knows what it had, so all
# segments are lost until they are repaired. And a memory node that is killed:
# nothing that it had is there again, and nobody is told otherwise.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/shared_lib.sh
source "$(dirname "$0")/shared_lib.sh"

expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" shared create board 4M --json
va=$(json "$TMP/out" 'd["va"]')
start b
start c
tell b join "joined 1"
tell c join "joined 1"
tell b "get 0 w" "got 0"
tell b "set 0 8" set
tell c "get 12 w" "got 0"
kill_node s1
kill_machine c
expect 0 "$AQUIFER" up
until_term b "term 2"
tell b again "again 2"
until_segment 'd["lost"] == d["size"] and d["lost_by"] == "c"'
# Either the directory still refuses all, or the rights are gone already.
echo "get 0 r" >&"${IN[b]}"
((++LINES[b]))
[[ $(wait_line "$TMP/b.out" "${LINES[b]}") == refused* ]] || fail "not lost"
for _ in {1..600}; do
	"$AQUIFER" shared repair board >"$TMP/repair" 2>&1 && break
	sleep 0.1
done
segment 'd["lost"] == 0'
tell b "get 0 r" "got 8"
switch_is_sound

kill_node m0
expect 0 "$AQUIFER" up
until_term b expelled
expect 1 "$AQUIFER" shared stat board
expect 0 "$AQUIFER" shared create board 4M
tell b join "joined 3"
tell b "get 0 r" "got 0"
switch_is_sound
