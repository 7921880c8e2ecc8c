#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every daemon tells who started it that it is ready, once it can be reached, and
# that it ends: the protocol of sd_notify(3), also with a name that is in no
# directory. Two of one name are not possible.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

# listen ADDRESS FILE: writes datagrams to the file, one a line.
cat >"$TMP/listen.py" <<'PYTHON'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
s.bind("\0" + name[1:] if name[0] == "@" else name)
with open(sys.argv[2], "w") as out:
    print("listening", file=out, flush=True)
    while True:
        print(s.recv(4096).decode(), file=out, flush=True)
PYTHON

wait_for() { # WORD FILE PID
	local i
	for ((i = 0; i < 300; i++)); do
		if grep -qx "$1" "$2" 2>/dev/null; then
			return 0
		fi
		kill -0 "$3" 2>/dev/null || break
		sleep 0.05
	done
	fail "no $1: $(cat "$2" "$TMP/daemon.err")"
}

# tells ADDRESS PROBE COMMAND...: when READY=1 has come, the probe succeeds.
tells() {
	local address=$1 probe=$2 heard=$TMP/heard listener daemon
	shift 2
	rm -f "$heard"
	python3 "$TMP/listen.py" "$address" "$heard" &
	listener=$!
	PIDS+=("$listener")
	wait_for listening "$heard" "$listener"
	NOTIFY_SOCKET=$address "$AQUIFER" "$@" \
		>"$TMP/daemon.out" 2>"$TMP/daemon.err" &
	daemon=$!
	PIDS+=("$daemon")
	wait_for READY=1 "$heard" "$daemon"
	"$probe" >/dev/null || fail "$1 said it was ready, and is not"
	! grep -q STOPPING "$heard" || fail "$1 ends early"
	if [[ $1 != "$KEEP" ]]; then
		kill "$daemon"
		wait "$daemon" || fail "$1 ended with $?"
		wait_for STOPPING=1 "$heard" "$listener"
	fi
	kill "$listener"
	wait "$listener" || true
}

memory_is_up() { "$AQUIFER" status; }
engine_is_up() { [[ -S $RUNDIR/e0.engine.sock ]]; }
switch_is_up() { "$AQUIFER" switch --stats; }
redis_is_up() { [[ -S $TMP/redis.sock ]]; }

KEEP=memory
tells "$TMP/notify" memory_is_up memory --size 64M
expect 1 "$AQUIFER" memory --size 64M
grep -q 'a memory node m0 of rack .* runs already (process [0-9]*)' "$TMP/err" ||
	fail "two of one name: $(cat "$TMP/err")"
tells "$TMP/notify2" engine_is_up engine
tells "@aquifer-$$" switch_is_up switch
tells "$TMP/notify3" redis_is_up redis --port none \
	--socket "$TMP/redis.sock" --capacity 1000 --values 1M
# Nobody there: it runs all the same, and says so.
NOTIFY_SOCKET=$TMP/nobody "$AQUIFER" switch --for 0.1 >"$TMP/out" 2>"$TMP/err" ||
	fail "it needs a listener: $(cat "$TMP/err")"
grep -q "NOTIFY_SOCKET=$TMP/nobody" "$TMP/err" || fail "not a word about it"
