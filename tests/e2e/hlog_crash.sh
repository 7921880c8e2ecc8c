#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A store whose log is in a rack's far memory, by three devices: the process is
# killed in the middle of its writes, and another one recovers everything that
# was synced. hlog_crash.sh HLOG_CLIENT
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
client=$1

# shellcheck disable=SC2034 # rack_lib.sh wants it; the client here is another
AQ_RACK_CLIENT=$client
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

"$AQUIFER" up >/dev/null
for device in cow async sync; do
	"$AQUIFER" region delete hlog >/dev/null 2>&1 || true
	: >"$TMP/load"
	"$client" "$device" load 5000 >>"$TMP/load" 2>"$TMP/err" &
	pid=$!
	PIDS+=("$pid")
	for _ in {1..300}; do
		grep -q synced "$TMP/load" && break
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	grep -q synced "$TMP/load" || {
		cat "$TMP/err" >&2
		kill -0 "$pid" 2>/dev/null || wait "$pid" || echo "status $?" >&2
		fail "$device: never synced"
	}
	# Long enough to be in the middle, too short to fill the region.
	sleep 0.02
	kill -KILL "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
	# By another device than the one that wrote: the log is the same.
	for reader in "$device" sync; do
		expect 0 timeout 60 "$client" "$reader" check 5000
		grep -q 'sound 5000' "$TMP/out" || fail "$device by $reader"
	done
	sed "s/^/$device: /" "$TMP/out"
done
