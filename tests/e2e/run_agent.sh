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

# A filter of the program's own kills the agent of a child that it forks, at its
# first system call or later: the child does not wait for it, and has its memory.
for call in 39 436 117 323; do # getpid, close_range, setresuid, userfaultfd
	far 4M python3 - "$call" <<'PY' || fail "a filter on $call: $? $(cat "$TMP/err")"
import ctypes, os, struct, sys
call = int(sys.argv[1])
data = [bytearray(b'%04d' % i * 1024) for i in range(2000)]
rules = b''.join(struct.pack('=HBBI', *r) for r in (
    (0x20, 0, 0, 0),            # the number of the call
    (0x15, 0, 1, call), (0x06, 0, 0, 0x80000000),  # kill the process
    (0x06, 0, 0, 0x7fff0000)))  # allow the others
text = ctypes.create_string_buffer(rules)
program = ctypes.create_string_buffer(
    struct.pack('@HP', len(rules) // 8, ctypes.addressof(text)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
child = os.fork()
right = all(d == b'%04d' % i * 1024 for i, d in enumerate(data))
if not child:
    os._exit(0 if right else 1)
assert right and os.waitpid(child, 0)[1] == 0
PY
done
echo "ok: a filter that kills agents"

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
