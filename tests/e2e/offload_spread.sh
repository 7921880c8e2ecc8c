#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Engines of a rack share the applications: each new one goes to the engine that
# has the fewest, a full engine says so, and those of a lost engine go to the
# others. Threads of an engine share what it has in the same way.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1

# sessions_soon LIST: of e0, e1 and so on, within ten seconds.
sessions_soon() {
	for _ in {1..100}; do
		"$AQUIFER" status --json >"$TMP/out" 2>/dev/null || true
		sessions=$(json "$TMP/out" '[e.get("sessions") for e in d["engines"]]' 2>/dev/null) || true
		[[ $sessions == "$1" ]] && return 0
		sleep 0.1
	done
	fail "sessions are $sessions, not $1"
}

# threads_of ENGINE: which of its threads have its sessions.
threads_of() {
	curl -sS --unix-socket "$RUNDIR/$1.engine.sock" -H "Authorization: Bearer $(<"$RUNDIR/engine-token")" \
		http://e/v1/sessions >"$TMP/out"
	json "$TMP/out" 'sorted(s["thread"] for s in d["sessions"])'
}

# attach N: application N, which stays; what it is told comes by file descriptor
# 10 + N.
attach() {
	mkfifo "$TMP/in$1"
	client lines r <"$TMP/in$1" >"$TMP/lines$1" 2>"$TMP/errors$1" &
	PIDS+=("$!")
	eval "exec 1$1>$TMP/in$1"
	[[ $(wait_line "$TMP/lines$1" 1) == ready ]] || fail "$(<"$TMP/errors$1")"
}

printf '[memory m0]\nsize = 16M\n[engine e0]\nsessions = 1\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 1M
attach 0
client open >"$TMP/out" 2>"$TMP/err" || true
grep -q '^ENOSPC' "$TMP/out" || fail "a full engine: $(<"$TMP/out")"
grep -q 'engine e0 is full: it serves 1 application threads' "$TMP/err" || fail "$(<"$TMP/err")"
json <("$AQUIFER" status --json) 'd["engines"][0]["sessions_max"] == 1' >/dev/null

printf '[engine e1]\n[engine e2]\nthreads = 2\n' >>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
for n in 1 2 3 4; do
	attach "$n"
done
sessions_soon '[1, 2, 2]'
[[ $(threads_of e2) == '[0, 1]' ]] || fail "threads of e2: $(<"$TMP/out")"

# Whoever had e1 goes on elsewhere, and not at e0, which is full.
kill_node e1
for n in 0 1 2 3 4; do
	eval "echo r >&1$n"
done
for n in 0 1 2 3 4; do
	[[ $(wait_line "$TMP/lines$n" 2) == "r 0 "* ]] || fail "$n: $(<"$TMP/lines$n") $(<"$TMP/errors$n")"
done
sessions_soon '[1, None, 4]'
[[ $(threads_of e2) == '[0, 0, 1, 1]' ]] || fail "threads of e2: $(<"$TMP/out")"
"$AQUIFER" status --json >"$TMP/out" || true # e1 is down
json "$TMP/out" 'd["engines"][2]["counters"]["reads"] >= 4' >/dev/null || fail "e2 counted $(<"$TMP/out")"
expect 0 "$AQUIFER" up
attach 5
sessions_soon '[1, 1, 4]'
