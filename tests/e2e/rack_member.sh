#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Members of rack.group may write to the rack's directory. One who puts files
# and sockets there that look like the daemons' own gets nothing of it: no
# process of others ended, no file of others written, no token told, nobody
# waits.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

((EUID == 0)) || skip "only root can start other users' processes"
need setpriv
uid=$(id -u nobody) gid=$(id -g nobody)
chmod 755 "$TMP"
mkdir -m 755 "$TMP/open"
export AQUIFER_CONFIG=$TMP/open/rack.ini AQUIFER_RUNDIR=$TMP/open/run
export AQUIFER_STATEDIR=$TMP/open/state
RUNDIR=$AQUIFER_RUNDIR/$AQUIFER_RACK_NAME
printf '[rack]\ngroup = %s\n[memory m0]\nsize = 16M\n' "$gid" >"$AQUIFER_CONFIG"

# member COMMAND...: in the rack's directory.
member() {
	(cd "$RUNDIR" && exec setpriv --reuid "$uid" --regid "$gid" \
		--clear-groups env PATH=/usr/bin:/bin "$@")
}
# node OPTION...: one that must not start, and why.
node() {
	local status=0
	timeout -k 5 30 "$AQUIFER" memory --size 1M "$@" >"$TMP/out" 2>&1 ||
		status=$?
	((status == 1)) || fail "memory $*: $status $(<"$TMP/out")"
}
not_own='no file of the rack.s own'

# The directory is there and the rack is down.
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" down
[[ $(stat -c '%a %g' "$RUNDIR") == "3770 $gid" ]] || fail "$(stat "$RUNDIR")"
rm -f "$RUNDIR"/m0.* "$RUNDIR"/e0.* "$RUNDIR"/*token

# A process of root's, said to be the node.
sleep 300 &
victim=$!
PIDS+=("$victim")
ticks=$(awk '{ print $22 }' "/proc/$victim/stat")
member sh -c "echo $victim $ticks >m0.pid"
"$AQUIFER" down >/dev/null 2>&1 || true
kill -0 "$victim" 2>/dev/null || fail "'down' ended somebody else's process"
# A pipe that nobody reads, where the next number is written first.
member mkfifo m0.pid.new
expect 0 timeout -k 5 60 "$AQUIFER" up
expect 0 "$AQUIFER" down
kill -0 "$victim" 2>/dev/null || fail "the process was ended"
echo "ok: a process"

# A link to a file of root's in the place of the log, and a pipe.
echo precious >"$TMP/precious"
rm -f "$RUNDIR"/m0.*
member ln -s "$TMP/precious" m0.log
expect 1 timeout -k 5 60 "$AQUIFER" up
[[ $(<"$TMP/precious") == precious ]] || fail "written: $(<"$TMP/precious")"
"$AQUIFER" down >/dev/null 2>&1 || true
rm -f "$RUNDIR"/m0.*
member mkfifo m0.log
expect 1 timeout -k 5 60 "$AQUIFER" up
grep -q "$not_own\|No such device" "$TMP/out" "$TMP/err" || fail "$(<"$TMP/err")"
"$AQUIFER" down >/dev/null 2>&1 || true
echo "ok: a log"

# The lock, and a second name of a file of root's.
rm -f "$RUNDIR"/m0.*
member mkfifo m0.lock
chmod 666 "$RUNDIR/m0.lock" # so that only its owner and kind are wrong
node
grep -q "$not_own" "$TMP/out" || fail "a pipe: $(<"$TMP/out")"
rm "$RUNDIR/m0.lock"
ln "$TMP/precious" "$RUNDIR/m0.lock"
node
grep -q "$not_own" "$TMP/out" || fail "a second name: $(<"$TMP/out")"
[[ $(<"$TMP/precious") == precious ]] || fail "written: $(<"$TMP/precious")"
rm "$RUNDIR/m0.lock"
echo "ok: a lock"

# A token that the member knows; a node with all rights of root could read it.
rm -f "$RUNDIR"/*token
member sh -c "umask 077; printf '%064d\n' 7 >admin-token"
node --no-confine
grep -q "$not_own" "$TMP/out" || fail "a token: $(<"$TMP/out")"
rm "$RUNDIR/admin-token"
echo "ok: a token"

# A node that is none, and hears what clients say.
: >"$TMP/open/heard"
chown "$uid" "$TMP/open/heard"
: >"$TMP/fake"
member python3 - "$TMP/open/heard" >"$TMP/fake" 2>&1 <<'END' &
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind('a0.sock')
os.chmod('a0.sock', 0o777)
s.listen(8)
s.settimeout(60) # ends with the test, or soon after it
print('ready', flush=True)
while True:
    c, _ = s.accept()
    with open(sys.argv[1], 'ab') as f:
        f.write(c.recv(65536))
    c.close()
END
PIDS+=("$!")
[[ $(wait_line "$TMP/fake" 1) == ready ]] || fail "$(<"$TMP/fake")"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create data 1M
expect 0 "$AQUIFER" region list --json
json "$TMP/out" '[r["name"] for r in d["regions"]] == ["data"]' >/dev/null ||
	fail "$(<"$TMP/out")"
"$AQUIFER" status >"$TMP/out" 2>&1 || true
! grep -qi "authorization" "$TMP/open/heard" ||
	fail "a member was told a token: $(<"$TMP/open/heard")"
expect 0 "$AQUIFER" down
echo "ok: a node"
