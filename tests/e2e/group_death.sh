#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cache server is killed while a program of its machine sleeps in a held futex
# call: the program ends, and does not sleep for ever. The next program there has
# another server. Arguments: the program.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
# shellcheck source=tests/e2e/group_lib.sh
source "$(dirname "$0")/group_lib.sh"
CALLS=$1

# sleeper NAME: a program on machine a that sleeps on this semaphore; sets PID.
sleeper() {
	local pid
	: >"$TMP/sleeper"
	beside a sleeper "$CALLS" sleep "$1"
	pid=$(wait_line "$TMP/sleeper" 1)
	# 202 is futex: from there on it is held.
	for _ in {1..1200}; do
		! grep -q '^202 ' "/proc/$pid/syscall" || return 0
		sleep 0.05
	done
	fail "it does not sleep: $(<"$TMP/sleeper")"
}

start_rack
sleeper /first
expect 0 "$AQUIFER" status --json
cache=$(json "$TMP/out" '[c["pid"] for c in d["caches"]][0]')
kill -KILL "$cache"
status=0
wait "$PID" || status=$?
# SIGBUS of its memory, or libc gives up over a call that failed.
((status == 135 || status == 134)) ||
	fail "it ended with $status: $(<"$TMP/sleeper") $(server_log)"

# Another server serves the next one, which is woken. What the first one slept on
# is lost with its server.
sleeper /second
in_group a "$CALLS" wake /second >"$TMP/wake" 2>&1 || fail "$(<"$TMP/wake") $(server_log)"
wait "$PID" || fail "it was not woken: $(<"$TMP/sleeper") $(server_log)"
directory_is_sound
