#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program under `aquifer run` has no right that it would not have without: not
# those that it gave up, not root because sudo was needed, no descriptor of ours.
# And what serves it keeps few of its own.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
CLIENT=$1 RIGHTS=$2
((EUID == 0)) || skip "rights are needed, to give them up"
need setpriv unshare
setpriv --reuid=65534 --clear-groups test -x "$RIGHTS" ||
	skip "nobody cannot reach $RIGHTS"

# It has far memory as before: itself, three children, and what one executes.
for way in setuid setresuid raw-setresuid capset; do
	far 1M "$RIGHTS" "$way" 4 >"$TMP/out" || fail "$way: $? $(cat "$TMP/err")"
	[[ $(cat "$TMP/out") == ok ]] || fail "$way: $(cat "$TMP/out")"
	! grep -q 'aquifer run:' "$TMP/err" || fail "$way: $(cat "$TMP/err")"
	# Its own 1,024 pages leave once before and twice after it gave up, a
	# child's twice.
	report 'd["processes"] == 5 and d["forks"] == 3 and d["stored"] > 3000'
	report 'd["refused"] == 0 and d["lost_pages"] == 0'
	echo "ok: $way"
done

# In a namespace where numbers of processes are others.
far 2M unshare --pid --fork "$CLIENT" fork 4 >"$TMP/out" ||
	fail "namespace: $? $(cat "$TMP/err")"
! grep -q 'aquifer run:' "$TMP/err" || fail "namespace: $(cat "$TMP/err")"
report 'd["processes"] == 9 and d["loads"] + d["prefetched"] > 100'
echo "ok: a namespace"

# sudo_run LOCAL PROGRAM...: as sudo would start it for nobody.
sudo_run() {
	SUDO_UID=65534 SUDO_GID=65534 SUDO_USER=nobody far "$@"
}
mkdir -m 777 "$TMP/open"
chmod 711 "$TMP"
sudo_run 2M sh -c "touch $TMP/open/file; id -u; id -g; id -G; echo \$HOME
	grep -E '^Cap(Prm|Eff|Amb)|^Uid' /proc/self/status; $CLIENT random 4" \
	>"$TMP/out" || fail "sudo: $? $(cat "$TMP/err")"
[[ $(stat -c %u:%g "$TMP/open/file") == 65534:65534 ]] || fail "file's owner"
[[ $(head -4 "$TMP/out" | tr '\n' ' ') == "65534 65534 65534 $HOME " ]] ||
	fail "who it is: $(cat "$TMP/out")"
! grep '^Cap' "$TMP/out" | grep -q '[1-9a-f]$' || fail "$(cat "$TMP/out")"
[[ $(tail -1 "$TMP/out") == ok ]] || fail "$(cat "$TMP/out")"
report 'd["stored"] > 500 and d["refused"] == 0'
# is_run_as UID RUNNER: whom a program is run as.
is_run_as() {
	"$2" 2M id -u >"$TMP/out" || fail "$2: $(cat "$TMP/err")"
	[[ $(cat "$TMP/out") == "$1" ]] || fail "$2 $1: $(cat "$TMP/out")"
}
FAR_OPTIONS=(--user root)
is_run_as 0 sudo_run
FAR_OPTIONS=(--user nobody)
is_run_as 65534 far
FAR_OPTIONS=()
is_run_as 0 far
expect 2 "$AQUIFER" run --local 2M --user no-such-user -- true
expect 126 env SUDO_UID=0x0 "$AQUIFER" run --local 2M -- true
expect 126 env SUDO_UID=12 SUDO_GID=-1 "$AQUIFER" run --local 2M -- true
expect 2 setpriv --reuid=65534 --clear-groups env AQUIFER_RUNDIR="$TMP/open" \
	"$AQUIFER" run --local 2M --user root -- true
echo "ok: the program is the caller's"

# Descriptors: the same as without, also in a child that forks.
script='cd /proc/self/fd; (cd /proc/self/fd; echo *); echo *'
for shell in bash dash; do
	command -v "$shell" >/dev/null || continue
	"$shell" -c "$script" >"$TMP/plain" </dev/null 2>"$TMP/err"
	far 2M "$shell" -c "$script" >"$TMP/out" </dev/null || fail "descriptors"
	cmp "$TMP/plain" "$TMP/out" ||
		fail "descriptors: $(cat "$TMP/plain" "$TMP/out")"
done
echo "ok: no descriptor more"

# caps PID: of all its threads, with their names.
caps() {
	local task
	for task in "/proc/$1/task/"*; do
		echo "$(cat "$task/comm") $(awk '/^CapPrm|^CapEff|^NoNew/ {
			printf "%s ", $2 }' "$task/status")"
	done
}
export SUDO_UID=65534 SUDO_GID=65534
start_loop 4M 12
program=$(pgrep -P "$RUN" run_client)
pager=$(pgrep -P "$RUN" -x aquifer-pager)
[[ $(stat -c %u "/proc/$program") == 65534 ]] || fail "the loop is root"
caps "$pager" >"$TMP/caps"
none=0000000000000000 kill=0000000000000020 serve=0000000000080020
for line in "aquifer-pager $serve $serve 1" "aquifer-reclaim $none $none 1" \
	"aquifer-mender $none $none 1"; do
	grep -q "^$line" "$TMP/caps" || fail "the pager: $(cat "$TMP/caps")"
done
# The NIC's threads may read files and use the network: bits 2, 12, 13, 39.
! grep -v "^aquifer-[pmr]" "$TMP/caps" | grep -qv ' 0000008000003004 .* 1' ||
	fail "the NIC: $(cat "$TMP/caps")"
[[ $(caps "$RUN") == *" $kill $kill 1 " ]] || fail "the supervisor: $(caps "$RUN")"
# Signals for another user's program, and its death with the supervisor.
kill -TERM "$RUN"
status=0
wait "$RUN" || status=$?
((status == 143)) || fail "a signal: $status"
start_loop 4M 12
program=$(pgrep -P "$RUN" run_client)
kill -KILL "$RUN"
for _ in {1..300}; do
	kill -0 "$program" 2>/dev/null || break
	sleep 0.1
done
! kill -0 "$program" 2>/dev/null || fail "the program outlives the supervisor"
echo "ok: few rights serve it"
