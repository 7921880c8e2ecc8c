#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rack.user serves the rack that root starts: daemons are that user's processes,
# root and that user use it, and nobody else comes in. With rack.group, daemons
# that stay root's reach members' sockets without any capability.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

((EUID == 0)) || skip "only root can start other users' processes"
need setpriv
uid=$(id -u nobody) gid=$(id -g nobody)
nobody=(setpriv --reuid "$uid" --regid "$gid" --clear-groups)
other=(setpriv --reuid 12345 --regid 12345 --clear-groups)
"${nobody[@]}" test -x "$AQUIFER" || skip "nobody cannot run $AQUIFER"
chmod 755 "$TMP"
mkdir -m 755 "$TMP/open"
export AQUIFER_CONFIG=$TMP/open/rack.ini AQUIFER_RUNDIR=$TMP/open/run
export AQUIFER_STATEDIR=$TMP/open/state
RUNDIR=$AQUIFER_RUNDIR/$AQUIFER_RACK_NAME

printf '[rack]\nuser = nobody\n[memory m0]\nsize = 16M\n' >"$AQUIFER_CONFIG"
chmod 644 "$AQUIFER_CONFIG"
expect 0 "$AQUIFER" up
for name in m0 e0; do
	grep -qP "^Uid:\t$uid\t$uid\t$uid\t$uid$" \
		"/proc/$(node_pid "$name")/status" || fail "$name is not nobody's"
done
[[ $(stat -c '%u %a' "$RUNDIR") == "$uid 700" ]] ||
	fail "$RUNDIR: $(stat -c '%u %a' "$RUNDIR")"
expect 0 "$AQUIFER" region create data 8M
client basic data >"$TMP/out" 2>&1 || fail "root: $(<"$TMP/out")"
expect 0 "${nobody[@]}" "$AQUIFER" region list --json
json "$TMP/out" '[r["name"] for r in d["regions"]] == ["data"]' >/dev/null ||
	fail "$(<"$TMP/out")"
expect 1 "${other[@]}" "$AQUIFER" region list
grep -q "may not look into $RUNDIR" "$TMP/err" ||
	fail "another user: $(<"$TMP/err")"
expect 1 "${other[@]}" "$AQUIFER" status
grep -q "may not look into $RUNDIR.*rack.group" "$TMP/out" ||
	fail "status of another user: $(<"$TMP/out")"
expect 1 "${other[@]}" "$AQUIFER" status --json
json "$TMP/out" '"may not look" in d["error"]' >/dev/null ||
	fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" down
rm -rf "$TMP/open/run" "$TMP/open/state"

port=$(free_port)
printf '[rack]\ngroup = %s\n[memory m0]\nsize = 16M\nlisten = 127.0.0.1:%s\n' \
	"$gid" "$port" >"$AQUIFER_CONFIG"
expect 0 "$AQUIFER" up
grep -qx "CapEff:	0000000000000000" "/proc/$(node_pid m0)/status" ||
	fail "$(grep Cap "/proc/$(node_pid m0)/status")"
expect 0 "$AQUIFER" region create data 8M
printf '[rack]\ngroup = %s\n[node m0]\naddress = http://127.0.0.1:%s\n' \
	"$gid" "$port" >"$TMP/open/client.ini"
chmod 644 "$TMP/open/client.ini"
"${nobody[@]}" env AQUIFER_CONFIG="$TMP/open/client.ini" \
	AQUIFER_TOKEN="$(<"$RUNDIR/token")" \
	${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} \
	timeout -k 5 60 "$AQ_RACK_CLIENT" basic data >"$TMP/out" 2>&1 ||
	fail "a member: $(<"$TMP/out")"
# Root's top sees what a member does, and believes it of no other's process.
"${nobody[@]}" env AQUIFER_CONFIG="$TMP/open/client.ini" \
	AQUIFER_TOKEN="$(<"$RUNDIR/token")" \
	${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} \
	timeout -k 5 600 "$AQ_RACK_CLIENT" busy data 600 >"$TMP/busy" 2>&1 &
PIDS+=("$!")
[[ $(wait_line "$TMP/busy" 1) == ready ]] || fail "$(<"$TMP/busy")"
: >"$TMP/files" # its counters are there from the first operation on
for _ in {1..200}; do
	ls "$RUNDIR"/counters/*-client >"$TMP/files" 2>/dev/null && break
	sleep 0.05
done
[[ $(stat -c '%u %a' "$RUNDIR/counters") == "0 3770" ]] ||
	fail "counters: $(stat -c '%u %a' "$RUNDIR/counters")"
cp "$(<"$TMP/files")" "$RUNDIR/counters/$(node_pid m0)-client"
python3 - "$RUNDIR/counters/$(node_pid m0)-client" "$(node_pid m0)" <<'EOF'
import struct, sys
with open(sys.argv[1], 'r+b') as f:
    f.seek(80)
    f.write(struct.pack('<Q', int(sys.argv[2])))
EOF
chown "$uid" "$RUNDIR/counters/$(node_pid m0)-client"
exec 9<"$RUNDIR/counters/$(node_pid m0)-client"
flock -x 9
expect 0 "$AQUIFER" top --once --json --interval 0.5
json "$TMP/out" 'len(d["clients"]) == 1 and
	d["clients"][0]["reads_per_s"] > 1 and
	d["clients"][0]["tenant"] == "default"' >/dev/null ||
	fail "$(<"$TMP/out")"
exec 9<&-
"${other[@]}" env AQUIFER_CONFIG="$TMP/open/client.ini" \
	AQUIFER_TOKEN="$(<"$RUNDIR/token")" \
	${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} \
	timeout -k 5 60 "$AQ_RACK_CLIENT" basic data >"$TMP/out" 2>&1 &&
	fail "a stranger was let in"
# Whoever is no member has TCP and a token, as from another machine; data goes by
# UDP.
printf '[nic]\naddress = 127.0.0.3\nport = udp\n[node m0]
address = http://127.0.0.1:%s\n' "$port" >"$TMP/open/client.ini"
mkdir -m 777 "$TMP/open/theirs"
expect 0 "${other[@]}" env AQUIFER_CONFIG="$TMP/open/client.ini" \
	AQUIFER_RUNDIR="$TMP/open/theirs/run" AQUIFER_TOKEN="$(<"$RUNDIR/token")" \
	"$AQUIFER" region list --json
json "$TMP/out" '[r["name"] for r in d["regions"]] == ["data"]' >/dev/null ||
	fail "by TCP: $(<"$TMP/out")"
"${other[@]}" env AQUIFER_CONFIG="$TMP/open/client.ini" \
	AQUIFER_RUNDIR="$TMP/open/theirs/run" \
	AQUIFER_TOKEN="$(<"$RUNDIR/token")" \
	${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} \
	timeout -k 5 60 "$AQ_RACK_CLIENT" basic data >"$TMP/out" 2>&1 ||
	fail "data by UDP: $(<"$TMP/out")"
expect 0 "$AQUIFER" down
