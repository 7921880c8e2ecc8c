#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A consumer is killed with an item that it has not acknowledged, and another
# one gets it: at once where the node sees the process end, and seconds after
# its silence where it does not, as over UDP. Also of a queue with copies.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
client=$1

# holder QUEUE COPIES: leaves the process that has taken its item in $pid.
holder() {
	expect 0 "$AQUIFER" queue put "/b/$1" "item of $1" --copies "$2"
	"$client" hold "/b/$1" >"$TMP/$1.hold" &
	pid=$!
	PIDS+=("$pid")
	for _ in {1..400}; do
		[ ! -s "$TMP/$1.hold" ] || return 0
		sleep 0.05
	done
	fail "nobody takes an item of $1"
}

# taken QUEUE: the item came back.
taken() {
	expect 0 "$AQUIFER" queue get "/b/$1" --wait 30000
	[ "$(cat "$TMP/out")" = "item of $1" ] || fail "got $(cat "$TMP/out")"
}

# round NAME SECONDS: how long it takes at most.
round() {
	local one both since
	holder "one-$1" 1
	one=$pid
	holder "both-$1" 2
	both=$pid
	# Those of the living stay where they are.
	expect 0 "$AQUIFER" queue len "/b/one-$1"
	[ "$(cat "$TMP/out")" = 1 ] || fail "$(cat "$TMP/out") items"
	expect 1 "$AQUIFER" queue get "/b/one-$1" --wait 100
	kill -9 "$one" "$both"
	wait "$one" "$both" 2>/dev/null || true
	since=$SECONDS
	taken "one-$1"
	taken "both-$1"
	((SECONDS - since <= $2)) || fail "after $((SECONDS - since)) s"
	echo "ok: $1, after $((SECONDS - since)) s"
}

up_two
expect 0 "$AQUIFER" ns mkdir /b --keep
round seen 6
expect 0 "$AQUIFER" down
export AQUIFER_NIC_PORT=udp
up_two
# Five heartbeats, then two seconds; the rest is for a busy machine.
round silent 20
expect 0 "$AQUIFER" down
