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
setpriv --reuid=65534 --clear-groups test -x "$(realpath "$RIGHTS")" ||
	skip "nobody cannot reach $(realpath "$RIGHTS")"

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

# Without the right that it takes, a line says which, and --strict runs nothing.
mkdir -m 700 "$TMP/nobody"
chown 65534 "$TMP/nobody"
nobody=(setpriv --reuid=65534 --clear-groups env "AQUIFER_RUNDIR=$TMP/nobody")
"${nobody[@]}" "$AQUIFER" up >/dev/null || fail "a rack of nobody's"
expect 0 "${nobody[@]}" "$AQUIFER" run --local 2M -- echo ran
grep -q ran "$TMP/out" || fail "it did not run"
grep -q 'CAP_SYS_PTRACE is missing.*sudo' "$TMP/err" || fail "$(cat "$TMP/err")"
expect 126 "${nobody[@]}" "$AQUIFER" run --local 2M --strict -- echo ran
[[ ! -s $TMP/out ]] || fail "it ran"
grep -q 'strict: CAP_SYS_PTRACE is missing' "$TMP/err" || fail "$(cat "$TMP/err")"
"${nobody[@]}" "$AQUIFER" doctor --json >"$TMP/out" || true
json "$TMP/out" 'any(c["name"] == "userfaultfd" and c["state"] == "warn"
	and "CAP_SYS_PTRACE" in c["fix"] for c in d["checks"])' >/dev/null ||
	fail "doctor: $(cat "$TMP/out")"
"${nobody[@]}" "$AQUIFER" down >/dev/null || fail "the rack of nobody's"
echo "ok: the right that is missing is named"

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

export SUDO_UID=65534 SUDO_GID=65534
start_loop 4M 12
program=$(pgrep -P "$RUN" run_client)
pager=$(pgrep -P "$RUN" -x aquifer-pager)
broker=$(pgrep -P "$pager" -x aquifer-broker)
[[ $(stat -c %u "/proc/$program") == 65534 ]] || fail "the loop is root"
# The pager with its NIC is confined as daemons are; landlock cannot be seen.
confined "$pager" 0000000000000000
grep -qx aq-nic /proc/"$pager"/task/*/comm || fail "no thread of the NIC"
# caps PID: of a process of one thread.
caps() {
	awk '/^CapPrm|^CapEff|^NoNew|^Threads/ { printf "%s ", $2 }' "/proc/$1/status"
}
# The supervisor may kill, the broker also look at processes: bits 5 and 19.
kill=0000000000000020 serve=0000000000080020
[[ $(caps "$RUN") == "1 $kill $kill 1 " ]] || fail "the supervisor: $(caps "$RUN")"
[[ $(caps "$broker") == "1 $serve $serve 1 " ]] ||
	fail "the broker: $(caps "$broker")"
[[ $(cd "/proc/$broker/fd" && echo *) == "0 1 2 3 4 5" ]] ||
	fail "the broker has $(ls -l "/proc/$broker/fd")"
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
# Pager and broker end then, and leave nothing.
for _ in {1..300}; do
	compgen -G "/run/aquifer-run-$RUN-*" >/dev/null || break
	sleep 0.1
done
! compgen -G "/run/aquifer-run-$RUN-*" || fail "the directory is left"
echo "ok: few rights serve it"

# rack.ini of somebody else costs one right, that of reading: bit 2.
mkdir -m 700 "$TMP/home"
cp "$TMP/rack.ini" "$TMP/home/rack.ini"
chown -R 65534 "$TMP/home"
AQUIFER_CONFIG=$TMP/home/rack.ini start_loop 4M 12
confined "$(pgrep -P "$RUN" -x aquifer-pager)" 0000000000000004
kill -TERM "$RUN"
wait "$RUN" || true
# With rack.user the pager is that user's, as daemons are.
unset SUDO_UID SUDO_GID
expect 0 "$AQUIFER" down
printf '[rack]\nuser = nobody\n[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
chmod 644 "$TMP/rack.ini"
mkdir -m 755 "$TMP/theirs"
export AQUIFER_RUNDIR=$TMP/theirs/run AQUIFER_STATEDIR=$TMP/theirs/state
expect 0 "$AQUIFER" up
start_loop 4M 12
pager=$(pgrep -P "$RUN" -x aquifer-pager)
confined "$pager" 0000000000000000
# A build with sanitizers stays open to tracers.
[[ -n ${AQ_PRELOAD:-} || $(stat -c %u "/proc/$pager/maps") == 0 ]] ||
	fail "the pager can be traced"
grep -qP "^Uid:\t65534\t65534\t65534\t65534$" "/proc/$pager/status" ||
	fail "the pager is $(grep Uid "/proc/$pager/status")"
kill -TERM "$RUN"
wait "$RUN" || true
far 2M "$CLIENT" random 4 >"$TMP/out" || fail "rack.user: $(cat "$TMP/err")"
report 'd["stored"] > 500 and d["refused"] == 0'
expect 0 "$AQUIFER" down
echo "ok: another user's rack"
