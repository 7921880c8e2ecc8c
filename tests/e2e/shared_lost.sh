#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A machine that dies together with the switch: nobody knows what it had, so all
# segments are lost until they are repaired. A memory node that is paused: the
# next term begins, and all is lost if something was given back meanwhile. And
# one that is killed: nothing that it had is there again.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
export NODE_MS=8000
# shellcheck source=tests/e2e/shared_lib.sh
source "$(dirname "$0")/shared_lib.sh"

repair() {
	expect 0 "$AQUIFER" shared repair board
	segment 'd["lost"] == 0'
}

# pause_node: until no thread of the node runs any more.
pause_node() {
	local pid
	pid=$(node_pid m0)
	kill -STOP "$pid"
	for _ in {1..600}; do
		grep -hs '^State:' "/proc/$pid/task/"*/status >"$TMP/states"
		grep -qv T "$TMP/states" || return 0
		sleep 0.05
	done
	fail "m0 does not pause"
}

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
tell b "get 0 r" "refused *"
repair
tell b "get 0 r" "got 8"
is_sound

# The node does not answer: an error, until it is back.
tell b "get 3 w" "got 0"
tell b "set 3 3" set
pause_node
tell b "get 4 r" "refused node"
kill -CONT "$(node_pid m0)"
until_term b "term 3"
tell b again "again 3"
tell b "get 3 r" "got 3"
segment 'd["lost"] == 0'
# What was given back to nobody is not old bytes afterwards.
tell b "get 3 w" "got 3"
tell b "set 3 4" set
pause_node
tell b "give 3" given
kill -CONT "$(node_pid m0)"
until_term b "term 4"
tell b again "again 4"
until_segment 'd["lost"] == d["size"]'
repair
tell b "get 3 r" "got [34]" # it may have arrived when the node went on
is_sound

kill_node m0
expect 0 "$AQUIFER" up
until_term b expelled
expect 1 "$AQUIFER" shared stat board
expect 0 "$AQUIFER" shared create board 4M
tell b join "joined 5"
tell b "get 0 r" "got 0"
is_sound
