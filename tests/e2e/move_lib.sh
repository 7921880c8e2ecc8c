# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the control_drain_* tests after control_lib.sh: programs that use
# what is moved.

USERS=()

# use_lives PID: it runs; one that has ended is still there until it is waited for.
use_lives() {
	[[ $(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null) == [^Z] ]]
}

# use_begin region|index NAME: somebody uses it from now on.
use_begin() {
	"$AQ_MOVE_CLIENT" "$1" "$2" "$TMP/stop" >"$TMP/use.$2" 2>&1 &
	USERS+=("$!:$2")
	PIDS+=("$!")
	for _ in {1..1200}; do
		! grep -qs ready "$TMP/use.$2" || return 0
		use_lives "${USERS[-1]%%:*}" || fail "$2: $(<"$TMP/use.$2")"
		sleep 0.05
	done
	fail "$2 is not used: $(<"$TMP/use.$2")"
}

# use_go_on: none of them has found anything wrong.
use_go_on() {
	local u
	for u in "${USERS[@]}"; do
		use_lives "${u%%:*}" || fail "${u#*:}: $(<"$TMP/use.${u#*:}")"
	done
}

# use_end: they end, and all was well.
use_end() {
	local u
	touch "$TMP/stop"
	for u in "${USERS[@]}"; do
		wait "${u%%:*}" || fail "${u#*:}: $(<"$TMP/use.${u#*:}")"
		sed "s/^/${u#*:}: /" "$TMP/use.${u#*:}"
	done
	USERS=()
	rm "$TMP/stop"
}

# use_hold, use_release: they stand still meanwhile.
use_hold() {
	local u
	for u in "${USERS[@]}"; do kill -STOP "${u%%:*}"; done
}
use_release() {
	local u
	for u in "${USERS[@]}"; do kill -CONT "${u%%:*}"; done
}
