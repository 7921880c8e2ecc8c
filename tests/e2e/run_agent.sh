#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program under `aquifer run` has no thread and no child that it did not make,
# and what takes its pages out ends when nobody has the memory any more.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
CLIENT=$1 STATIC=$2

# agents: of the run, that live. A shell that has just forked may have one more.
agents() {
	pgrep -c -P "$RUN" -x -r D,R,S aquifer-agent || true
}

# expect_agents COUNT: in the end.
expect_agents() {
	for _ in {1..100}; do
		(($(agents) == $1)) && return
		sleep 0.05
	done
	fail "$(agents) agents instead of $1"
}

[[ $(far 2M grep '^Threads' /proc/self/status) == $'Threads:\t1' ]] ||
	fail "threads of a program with one"
# The end of its only thread is the end of it.
far 2M python3 -c 'import ctypes; ctypes.CDLL(None).syscall(60, 5)' && fail "0"
status=0
far 2M python3 -c 'import ctypes; ctypes.CDLL(None).syscall(60, 5)' || status=$?
((status == 5)) || fail "a raw exit: $status $(cat "$TMP/err")"
# Only a process of one thread may enter another user namespace.
if unshare --user --map-root-user true 2>/dev/null; then
	[[ $(far 2M unshare --user --map-root-user id -u) == 0 ]] ||
		fail "a user namespace: $(cat "$TMP/err")"
fi
# Nobody is there to be waited for, also not for who waits for clones.
far 2M python3 -c 'import ctypes
libc = ctypes.CDLL(None, use_errno=True)
assert libc.wait4(-1, None, 0x40000001, None) == -1
assert ctypes.get_errno() == 10, ctypes.get_errno()' ||
	fail "a child: $(cat "$TMP/err")"
echo "ok: no thread and no child more"

if command -v strace >/dev/null; then
	far 2M strace -f -o "$TMP/strace" "$CLIENT" fork 2 >"$TMP/out" ||
		fail "strace: $? $(cat "$TMP/err")"
	echo "ok: strace"
fi

# What is executed has its own memory, or none; the old one's is given back.
mkfifo "$TMP/in"
"$AQUIFER" run --local 2M --json -- sh -c "exec '$STATIC'" \
	<"$TMP/in" >"$TMP/out" 2>"$TMP/err" &
RUN=$!
PIDS+=("$RUN")
exec {in}>"$TMP/in"
wait_line "$TMP/out" 1 >/dev/null || fail "$(cat "$TMP/err")"
expect_agents 0
exec {in}>&-
wait "$RUN" || fail "a static program: $(cat "$TMP/err")"
echo "ok: exec leaves no memory behind"

# Killed alone, its process dies and does not hang.
start_loop 4M 12
expect_agents 1
kill -KILL "$(pgrep -P "$RUN" -x aquifer-agent)"
status=0
wait "$RUN" || status=$?
((status == 137)) || fail "without an agent: $status"
grep -q 'agent of process' "$TMP/loop.err" || fail "$(cat "$TMP/loop.err")"
echo "ok: no agent, no program"

# All at once: nothing is left that would keep the memory.
start_loop 4M 12
agent=$(pgrep -P "$RUN" -x aquifer-agent)
pager=$(pgrep -P "$RUN" -x aquifer-pager)
kill -KILL "$pager" "$RUN"
for _ in {1..400}; do
	kill -0 "$agent" 2>/dev/null || break
	sleep 0.05
done
! kill -0 "$agent" 2>/dev/null || fail "the agent lives on"
echo "ok: no agent alone"
