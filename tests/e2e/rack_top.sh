#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# top sees the operations of clients of every kind, with their latency: by
# process, by kind, by what they work on and by tenant; and their grants.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"
: "${AQ_BUSY_CLIENT:?}"
need redis-cli

# busy KIND COMMAND...: goes on in the background once it has said "ready".
KINDS=()
busy() {
	local out=$TMP/$1.lines
	KINDS+=("$1")
	shift
	: >"$out"
	env ${AQ_PRELOAD:+LD_PRELOAD="$AQ_PRELOAD"} timeout -k 5 600 "$@" \
		>"$out" 2>"$out.err" &
	PIDS+=("$!")
	[[ $(wait_line "$out" 1) == ready ]] || fail "$*: $(cat "$out.err")"
}

# look EXPRESSION: over one look of top, d; row(LIST, KEY, VALUE) finds one.
look() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
def row(rows, key, value):
    return [r for r in d[rows] if r[key] == value][0]
sys.exit(not eval("(" + sys.argv[2] + ")"))' "$TMP/top" "$1" ||
		fail "not so: $1 in $(cat "$TMP/top")"
}

expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 1M
expect 0 "$AQUIFER" kv create users 1K
expect 0 "$AQUIFER" index create names --memory 4M
busy region "$AQ_RACK_CLIENT" busy r 600
busy kv "$AQ_BUSY_CLIENT" kv users 600
busy index "$AQ_BUSY_CLIENT" index names 600
busy async "$AQ_BUSY_CLIENT" async r 600

# The gateway counts as what it is, and not as the table that it uses.
gateway --capacity 1K --values 1M --table cache
# shellcheck disable=SC2016 # for the inner shell
busy redis bash -c 'echo ready
	while redis-cli -p "$0" set a 1 && redis-cli -p "$0" get a; do
		sleep 0.1
	done >/dev/null' "$GATEWAY_PORT"

if [[ -n ${AQ_NBD_PLUGIN:-} ]] && command -v nbdcopy >/dev/null; then
	head -c 1M /dev/urandom >"$TMP/disk"
	# shellcheck disable=SC2016 # nbdkit sets $uri
	busy nbd nbdkit -U - "$AQ_NBD_PLUGIN" size=4M name=disk0 --run \
		"echo ready; while nbdcopy $TMP/disk \$uri; do sleep 0.3; done"
fi
if python3 -c 'import ctypes, sys
sys.exit(ctypes.CDLL(None).syscall(323, 0) < 0)' && [[ -z $AQ_PRELOAD ]]; then
	busy run "$AQUIFER" run --local 8M -- python3 -c '
import time
b = bytearray(24 << 20)
print("ready", flush=True)
while True:
    for i in range(0, len(b), 4096):
        b[i] = (b[i] + 1) & 255
    time.sleep(0.3)'
fi

# All these leave a node little time; top gives it half a second to answer, and
# looks again.
for _ in {1..20}; do
	"$AQUIFER" top --once --json --interval 2 >"$TMP/top" 2>"$TMP/err" ||
		fail "top: $(cat "$TMP/err")"
	! python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(any(n["state"] != "up" for n in d["nodes"]))' \
		"$TMP/top" || break
done
for kind in "${KINDS[@]}"; do
	look "row('kinds', 'kind', '$kind')['operations_per_s'] > 1"
	look "0 < row('kinds', 'kind', '$kind')['latency_p50_ns'] <=
		row('kinds', 'kind', '$kind')['latency_p99_ns']"
	look "row('kinds', 'kind', '$kind')['read_bytes_per_s'] +
		row('kinds', 'kind', '$kind')['write_bytes_per_s'] > 0"
	look "row('kinds', 'kind', '$kind')['errors_per_s'] == 0"
	look "row('clients', 'kind', '$kind')['pid'] > 1"
done
look "row('objects', 'object', 'users')['kind'] == 'kv' and
	row('objects', 'object', 'names')['kind'] == 'index' and
	row('objects', 'object', 'cache')['kind'] == 'redis' and
	row('objects', 'object', 'e0')['kind'] == 'async'"
look "row('clients', 'kind', 'redis')['pid'] == $GATEWAY_PID"
look "not [c for c in d['clients'] if c['kind'] == 'kv' and
	c['object'] == 'cache']"
# Puts, gets and those of the batch: each counts once.
look "6 < row('kinds', 'kind', 'kv')['reads_per_s'] /
	row('kinds', 'kind', 'kv')['writes_per_s'] < 12"
[[ ! " ${KINDS[*]} " == *" nbd "* ]] ||
	look "row('objects', 'kind', 'nbd')['writes_per_s'] > 1 and
	row('clients', 'kind', 'nbd')['name'].startswith('nbdkit')"
[[ ! " ${KINDS[*]} " == *" run "* ]] ||
	look "row('objects', 'kind', 'run')['object'].startswith('run-')"
look "len(d['tenants']) == 1 and d['tenants'][0]['tenant'] == 'default'"
look "d['total']['operations_per_s'] >= 0.99 * sum(
	k['operations_per_s'] for k in d['kinds'])"
look "d['nodes'][0]['state'] == 'up' and d['nodes'][0]['connections'] > 3"
look "d['engines'][0]['name'] == 'e0' and d['engines'][0]['reads_per_s'] > 1"
echo "ok: kinds ${KINDS[*]}"

expect 0 "$AQUIFER" top --once --interval 0.2
grep -q '^m0 ' "$TMP/out" || fail "no node"
grep -q '^redis  *1 ' "$TMP/out" || fail "no line of gateways: $(cat "$TMP/out")"
grep -q ' kv  *users ' "$TMP/out" || fail "no table: $(cat "$TMP/out")"
! grep -q 'q quits' "$TMP/out" || fail "a screen's line without a screen"
expect 2 "$AQUIFER" top --interval never
# A rack that is not there is not one that does nothing.
expect 1 "$AQUIFER" top --once --interval 0.1 --rack nosuch
grep -q 'rack nosuch has no memory node' "$TMP/out" || fail "$(cat "$TMP/out")"
expect 1 "$AQUIFER" top --once --interval 0.1 --rack nosuch --json
json "$TMP/out" '"has no memory node" in d["error"]' >/dev/null

# On a terminal the key q ends it, and the terminal is as it was.
python3 - "$AQUIFER" <<'EOF' || fail "the key q"
import os, pty, select, sys, termios, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], 'top', '--interval', '0.1'])
before, seen, end = termios.tcgetattr(fd)[3], b'', time.time() + 60
while b'q quits' not in seen and time.time() < end:
    if select.select([fd], [], [], 1)[0]:
        seen += os.read(fd, 65536)
assert not termios.tcgetattr(fd)[3] & termios.ECHO
os.write(fd, b'xq')
while time.time() < end:
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        sys.exit(status or termios.tcgetattr(fd)[3] != before)
    if select.select([fd], [], [], 0.1)[0]:
        try:
            os.read(fd, 65536)
        except OSError:
            pass
sys.exit(1)
EOF
echo "ok: q"

expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["nodes"][0]["connections"] > 3 and d["clients"]["kv"] == 1
	and d["clients"]["redis"] == 1 and d["clients"]["async"] == 1' >/dev/null
expect 0 "$AQUIFER" status
grep -q '^clients of this machine: .*1 kv' "$TMP/out" || fail "$(cat "$TMP/out")"

# Who has a key of the region, and that a mapping could not be taken back.
expect 0 "$AQUIFER" region grants r --json
json "$TMP/out" 'len(d["grants"]) >= 1 and d["grants"][0]["node"] == "m0"
    and all(g["region"] == "r" for g in d["grants"])
    and not all(g["revocable"] for g in d["grants"])' >/dev/null
expect 0 "$AQUIFER" region grants
grep -q ' not revocable' "$TMP/out" || fail "$(cat "$TMP/out")"
expect 0 "$AQUIFER" region grants other --json
json "$TMP/out" 'd["grants"] == []' >/dev/null
expect 2 "$AQUIFER" region grants r s

# What ends with the rack is said, and whom it hits.
expect 0 "$AQUIFER" down
grep -q '^engines .*e0' "$TMP/out" || fail "no engine: $(cat "$TMP/out")"
! grep -q '^nodes .*e0' "$TMP/out" || fail "an engine is a node"
grep -qE '^busy_client \(process [0-9]+, kv users\) was connected$' \
	"$TMP/out" || fail "no client: $(cat "$TMP/out")"
grep -qE '^[0-9]+ regions and [0-9.]+M of data are lost' "$TMP/out" ||
	fail "nothing lost: $(cat "$TMP/out")"
