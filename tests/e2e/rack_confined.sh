#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Switch, node, engine and gateway have given up what they do not need, in every
# thread, and serve: a region through the switch, an offload session, Redis
# commands. With --user they are somebody else's processes, files included.
# Argument: the client of an engine.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
offload_client=$1
need redis-cli python3

# confined PID CAPABILITIES: what every thread of the process has.
confined() {
	local file seen=0
	for file in /proc/"$1"/task/*/status; do
		[[ -e $file ]] || continue
		grep -qx "NoNewPrivs:	1" "$file" || fail "$file: NoNewPrivs"
		grep -qx "CapEff:	$2" "$file" ||
			fail "$file: $(grep Cap "$file"), not $2"
		grep -qx "CapPrm:	$2" "$file" || fail "$file: CapPrm"
		case $(uname -m) in
		x86_64 | aarch64)
			grep -qx "Seccomp:	2" "$file" ||
				fail "$file: $(grep Seccomp: "$file")"
			;;
		esac
		if ((EUID == 0)); then
			grep -qx "CapBnd:	$2" "$file" ||
				fail "$file: $(grep CapBnd "$file"), not $2"
		fi
		((++seen))
	done
	((seen > 0)) || fail "no process $1: $(cat "$TMP"/raw "$TMP"/user 2>/dev/null)"
}
none=0000000000000000

cat >"$TMP/rack.ini" <<END
[nic]
port = switch:s1
[switch s1]
[memory m0]
size = 64M
END
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create data 4M
expect 0 "$AQUIFER" region create async 1M
client basic data >"$TMP/out" 2>&1 || fail "through the switch: $(<"$TMP/out")"
(
	AQ_RACK_CLIENT=$offload_client
	client many async 1 0.2
) >"$TMP/out" 2>&1 || fail "through the engine: $(<"$TMP/out")"
gateway --capacity 4K --values 4M --socket "$TMP/redis.sock"
[[ $(cli SET k v) == OK && $(cli GET k) == v ]] || fail "Redis commands"
[[ $(timeout 20 redis-cli -s "$TMP/redis.sock" GET k) == v ]] ||
	fail "the unix socket"
for name in s1 m0 e0; do
	confined "$(node_pid "$name")" "$none"
done
confined "$GATEWAY_PID" "$none"
# Threads still have their names.
for pid in "$(node_pid m0)" "$GATEWAY_PID"; do
	grep -qx aq-nic /proc/"$pid"/task/*/comm || fail "no thread aq-nic"
done
kill -TERM "$GATEWAY_PID"
wait "$GATEWAY_PID" || fail "the gateway does not end well"
[[ ! -e $TMP/redis.sock ]] || fail "the gateway left its socket"
expect 0 "$AQUIFER" down
: >"$TMP/rack.ini"

# Not confined, for who looks for mistakes.
: >"$TMP/plain"
"$AQUIFER" memory --name plain --size 1M --no-confine >"$TMP/plain" 2>&1 &
PIDS+=("$!")
pid=$!
wait_line "$TMP/plain" 1 >/dev/null
grep -qx "NoNewPrivs:	0" "/proc/$pid/status" || fail "--no-confine"
kill -TERM "$pid"
wait "$pid" || fail "it does not end well"
expect 1 "$AQUIFER" memory --size 1M --user no-such-user-here
grep -q "no user 'no-such-user-here'" "$TMP/err" || fail "$(<"$TMP/err")"

((EUID == 0)) || exit 0
# A raw port keeps one capability.
"$AQUIFER" switch --name raw --port raw:lo --for 20 >"$TMP/raw" 2>&1 &
PIDS+=("$!")
pid=$!
wait_line "$TMP/raw" 1 >/dev/null
confined "$pid" 0000000000002000

# Another user's node. Its directories are made for it; nobody is in the way
# of the files above.
chmod 755 "$TMP"
mkdir -m 755 "$TMP/other"
: >"$TMP/other/rack.ini"
: >"$TMP/user"
export AQUIFER_CONFIG=$TMP/other/rack.ini AQUIFER_RUNDIR=$TMP/other/run
AQUIFER_STATEDIR=$TMP/other/state "$AQUIFER" memory --size 8M --user nobody \
	>"$TMP/user" 2>&1 &
PIDS+=("$!")
pid=$!
wait_line "$TMP/user" 1 >/dev/null
confined "$pid" "$none"
uid=$(id -u nobody)
grep -qP "^Uid:\t$uid\t$uid\t$uid\t$uid$" "/proc/$pid/status" ||
	fail "$(grep Uid "/proc/$pid/status")"
for path in run "run/$AQUIFER_RACK_NAME" state "state/$AQUIFER_RACK_NAME"; do
	[[ $(stat -c '%u %a' "$TMP/other/$path") == "$uid 700" ]] ||
		fail "$path: $(stat -c '%u %a' "$TMP/other/$path")"
done
need setpriv
as_nobody=(setpriv --reuid "$uid" --regid "$(id -g nobody)" --clear-groups)
"${as_nobody[@]}" test -x "$AQUIFER" || skip "nobody cannot run $AQUIFER"
expect 0 "${as_nobody[@]}" "$AQUIFER" region create theirs 1M
expect 0 "${as_nobody[@]}" "$AQUIFER" region list --json
json "$TMP/out" '[r["name"] for r in d["regions"]] == ["theirs"]' >/dev/null ||
	fail "$(<"$TMP/out")"
kill -TERM "$pid"
wait "$pid" || fail "it does not end well"
[[ ! -e $TMP/other/run/$AQUIFER_RACK_NAME/m0.sock ]] || fail "a socket is left"
