#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Full, slow and lost nodes under `aquifer run`, in all modes: no page is lost
# for want of room, nobody crawls, and what is not far is told.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
CLIENT=$1 FULL=$2 STATIC=$3
need curl

# rack SIZE...: nodes m0, m1, ... of these sizes, started anew.
rack() {
	local i=0
	expect 0 "$AQUIFER" down
	: >"$TMP/rack.ini"
	for size; do
		printf '[memory m%d]\nsize = %s\n' "$i" "$size" >>"$TMP/rack.ini"
		i=$((i + 1))
	done
	expect 0 "$AQUIFER" up
}

# begin NAME OPTION... -- PROGRAM...: in the background, until it says "ready".
# Lines to fd 7 are its input; RUN is the supervisor's pid.
begin() {
	local name=$1
	shift
	rm -f "$TMP/$name.in"
	mkfifo "$TMP/$name.in"
	: >"$TMP/$name.out" # what the last one of that name said
	timeout -k 5 100 "$AQUIFER" run --local 8M "$@" <"$TMP/$name.in" \
		>"$TMP/$name.out" 2>"$TMP/$name.err" &
	RUN=$!
	PIDS+=("$RUN")
	exec 7>"$TMP/$name.in"
	wait_line "$TMP/$name.out" 1 >/dev/null || fail "$(cat "$TMP/$name.err")"
}

# go_on NAME STATUS: its next line of input, and its end.
go_on() {
	local status=0
	echo >&7
	exec 7>&-
	wait "$RUN" || status=$?
	((status == $2)) || fail "$1: $status, not $2: $(cat "$TMP/$1.err")"
}

# wait_word FILE WORD: until somebody has said it.
wait_word() {
	for _ in {1..600}; do
		! grep -q "$2" "$1" || return 0
		sleep 0.05
	done
	fail "nobody says '$2': $(cat "$1")"
}

# given_back: until the node has all its memory again. Who ends tells it so, but
# on a busy machine does not wait for its answer.
given_back() {
	for _ in {1..300}; do
		"$AQUIFER" status --json >"$TMP/status" || fail "no status"
		! json "$TMP/status" 'd["nodes"][0]["connections"] == 0' \
			>/dev/null || return 0
		sleep 0.05
	done
	fail "a connection stays: $(cat "$TMP/status")"
}

# alone LOCAL PROGRAM...: as far, with all of the node's memory.
alone() {
	given_back
	far "$@"
}

MODES=(static chain two-sided dynamic-1m dynamic-4k)

# 32M of memory, of which 4M may be local and at most 16M find room.
rack 16M
for mode in "${MODES[@]}"; do
	FAR_OPTIONS=(--mode "$mode")
	alone 4M "$CLIENT" random 32 >"$TMP/out" || fail "$mode: $? $(cat "$TMP/err")"
	report 'd["kept"] > 0 and d["lost_pages"] == 0 and d["over_peak"] > 0'
	# What has a place there leaves all the same.
	report 'd["far_peak"] > 8 << 20 and d["resident_peak"] < 28 << 20'
	(($(grep -c 'takes no more' "$TMP/err") == 1)) || fail "$(cat "$TMP/err")"
done
FAR_OPTIONS=(--mode two-sided)
alone 4M "$CLIENT" fork 20 >"$TMP/out" || fail "fork: $(cat "$TMP/err")"
report 'd["kept"] > 0 and d["forks"] == 6'
echo "ok: what does not fit stays local"

# No more than allowed: SIGBUS, with words; and who asks hears of it before.
for mode in static two-sided; do
	FAR_OPTIONS=(--mode "$mode" --overflow fail)
	status=0
	alone 4M "$CLIENT" random 32 >"$TMP/out" || status=$?
	((status == 135)) || fail "$mode: $status instead of 135"
	grep -q 'allow: process [0-9]* gets SIGBUS' "$TMP/err" ||
		fail "$(cat "$TMP/err")"
	report 'd["resident_peak"] <= 5 << 20'
	alone 4M "$FULL" ask 512 >"$TMP/out" || fail "ask: $? $(cat "$TMP/err")"
	grep -q told "$TMP/out" || fail "not told"
done
FAR_OPTIONS=(--overflow 24M)
alone 4M "$CLIENT" random 32 >"$TMP/out" || fail "24M: $(cat "$TMP/err")"
expect 2 "$AQUIFER" run --local 8M --overflow sometimes -- true
echo "ok: what may not stay local fails"

# One run after the other; the first has taken all there was, to the last page.
FAR_OPTIONS=(--mode static)
for _ in 1 2 3; do
	alone 2M "$CLIENT" random 24 >"$TMP/out" || fail "$(cat "$TMP/err")"
	! grep -q 'room for' "$TMP/err" || fail "late: $(cat "$TMP/err")"
	report 'd["far_peak"] == 16 << 20'
done
# The node was told of ends, and did not have to find out by their silence.
given_back
curl -sS --unix-socket "$RUNDIR/m0.sock" http://m0/metrics >"$TMP/metrics"
grep -q '^aquifer_connections_ended_total{reason="closed"} [1-9]' \
	"$TMP/metrics" || fail "nobody tells the node: $(cat "$TMP/metrics")"

# No room at all from the start, and room that comes later.
begin all --mode static -- "$FULL" hold 32
ALL=$RUN
exec 8>&7
begin none --mode static -- "$FULL" bus 24
grep -q 'has room for 0M only' "$TMP/none.err" || fail "$(cat "$TMP/none.err")"
expect 126 "$AQUIFER" run --local 8M --mode static --overflow fail -- true
grep -q full "$TMP/err" || fail "no reason: $(cat "$TMP/err")"
echo >&8
exec 8>&-
wait "$ALL" || fail "all: $(cat "$TMP/all.err")"
wait_word "$TMP/none.err" 'takes pages again'
go_on none 0
grep -q '^bus 0 .* wrong 0' "$TMP/none.out" || fail "$(cat "$TMP/none.out")"
echo "ok: room that comes is used"

# A node that stands still for longer than anybody else would wait.
rack 64M
for mode in static two-sided; do
	: >"$TMP/$mode"
	"$AQUIFER" run --local 4M --no-direct --mode $mode -- "$CLIENT" loop 12 \
		>"$TMP/$mode" 2>"$TMP/$mode.err" &
	PIDS+=("$!")
	wait_line "$TMP/$mode" 1 >/dev/null
done
kill -STOP "$(node_pid m0)"
sleep 6
kill -CONT "$(node_pid m0)"
for mode in static two-sided; do
	wait_word "$TMP/$mode.err" 'm0 has not answered'
	wait_word "$TMP/$mode.err" 'answers again'
	! grep -q lost "$TMP/$mode.err" || fail "$(cat "$TMP/$mode.err")"
done
for pid in "${PIDS[@]: -2}"; do
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	((status == 143)) || fail "the loop: $status"
done
# Nobody waits for it when nobody needs its pages any more.
: >"$TMP/loop"
"$AQUIFER" run --local 4M --no-direct -- "$CLIENT" loop 12 >"$TMP/loop" &
RUN=$!
PIDS+=("$RUN")
wait_line "$TMP/loop" 1 >/dev/null
kill -STOP "$(node_pid m0)"
kill -TERM "$RUN"
for _ in {1..300}; do
	kill -0 "$RUN" 2>/dev/null || break
	sleep 0.05
done
! kill -0 "$RUN" 2>/dev/null || fail "it waits for a node that stands still"
kill -CONT "$(node_pid m0)"
expect 2 "$AQUIFER" run --local 8M --patience 0 -- true
echo "ok: slow is not lost"

# A dead one is noticed at once, however patient one is: far pages are SIGBUS,
# near ones are there, and new ones come.
for mode in static two-sided; do
	begin dead --mode $mode --patience 60 -- "$FULL" lost 24
	kill_node m0
	go_on dead 0
	grep -Eq '^bus [1-9][0-9]* right [1-9][0-9]* wrong 0' "$TMP/dead.out" ||
		fail "$mode: $(cat "$TMP/dead.out")"
	grep -q 'memory node m0 is lost, and pages' "$TMP/dead.err" ||
		fail "no name: $(cat "$TMP/dead.err")"
	rm -f "$TMP/dead.in"
	expect 0 "$AQUIFER" up
done
echo "ok: dead is lost"

# Two copies, one node after the other.
rack 64M 64M
begin two --copies 2 -- "$FULL" bus 16
kill_node m0
expect 0 "$AQUIFER" up
wait_word "$TMP/two.err" 'm0 is back'
kill_node m1
go_on two 0
grep -q '^bus 0 .* wrong 0' "$TMP/two.out" || fail "$(cat "$TMP/two.out")"
echo "ok: copies are made again"

# A run takes as much of a node as it needs, and a quarter and a first part more
# at most; when it ends, all of it is there again.
rack 512M
begin much -- "$FULL" hold 66
"$AQUIFER" status --json >"$TMP/status" || fail "no status"
json "$TMP/status" '50 << 20 <= d["nodes"][0]["pool"]["used"] <= 66 * 1.25 * 1048576 + (16 << 20)' >/dev/null ||
	fail "66M take $(cat "$TMP/status")"
go_on much 0
given_back
json "$TMP/status" 'd["nodes"][0]["pool"]["used"] == 0 and not d["nodes"][0]["regions"]' >/dev/null ||
	fail "left: $(cat "$TMP/status")"
echo "ok: no more than it needs"

# What was not far, and why; nothing about who was.
rack 64M
begin near -- "$STATIC" hold 32
go_on near 0
grep -q "M of '.*' .*not far, because the program is statically" \
	"$TMP/near.err" || fail "$(cat "$TMP/near.err")"
begin near --json -- "$FULL" fixed 32
sleep 1
go_on near 0
grep '^{"local"' "$TMP/near.err" >"$TMP/report"
report '32 << 20 <= d["near"] < 40 << 20 and "chose" in d["near_text"]'
begin near --json -- sh -c "\"$FULL\" hold 32; true"
sleep 1
go_on near 0
! grep -q 'not far' "$TMP/near.err" || fail "$(cat "$TMP/near.err")"
echo "ok: what was not far is told"

# No limit that is not kept.
expect 126 "$AQUIFER" run --local 8M --strict -- "$STATIC" hold 1
grep -q 'statically linked; run it' "$TMP/err" || fail "$(cat "$TMP/err")"
begin strict --strict -- sh -c "\"$STATIC\" hold 32; echo \$?; read -r _"
wait_word "$TMP/strict.out" 137
go_on strict 0
grep -q 'statically linked; it is killed' "$TMP/strict.err" ||
	fail "$(cat "$TMP/strict.err")"
# Root without the right to events of fork.
without() {
	python3 -c 'import ctypes, os, sys
ctypes.CDLL(None).prctl(24, 19, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])' "$@"
}
expect 126 without "$AQUIFER" run --local 8M --strict -- true
grep -q 'CAP_SYS_PTRACE is missing' "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 without "$AQUIFER" run --local 8M -- true
expect 0 "$AQUIFER" run --local 8M --strict -- true
echo "ok: strict"
