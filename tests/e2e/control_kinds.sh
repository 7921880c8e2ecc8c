#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Engines, switches and gateways join, are shown, leave without a trace, and are
# down when they are killed. Over TLS a controller asks all of them for
# certificates.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/redis_lib.sh
source "$(dirname "$0")/redis_lib.sh"

expect 0 "$AQUIFER" cert init --dir "$TMP/ca"
for name in localhost machine; do
	expect 0 "$AQUIFER" cert issue "$name" --address 127.0.0.1 --dir "$TMP/ca"
done
port=$(free_port)
cat >"$TMP/rack.ini" <<END
[rack]
control = c0
[control c0]
listen = 127.0.0.1:$port
tls_cert = $TMP/ca/localhost.pem
tls_key = $TMP/ca/localhost-key.pem
tls_ca = $TMP/ca/ca.pem
[memory m0]
size = 128M
[engine e0]
[switch s0]
END
expect 0 "$AQUIFER" up
gateway --capacity 1K --values 4M
gw='[n for n in d.values() if n["kind"] == "gateway"]'
until_node "(d['m0']['state'] == d['e0']['state'] == d['s0']['state'] == 'up' and
	d['e0']['kind'] == 'engine' and d['s0']['kind'] == 'switch' and
	${gw}[0]['address'] == 'redis://127.0.0.1:$GATEWAY_PORT')"
expect 0 "$AQUIFER" status
grep -q "^s0 *switch *up" "$TMP/out" || fail "$(<"$TMP/out")"
grep -q "gateway *up *redis://127.0.0.1:$GATEWAY_PORT" "$TMP/out" ||
	fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'sorted(o["kind"] for o in d["others"]) == ["gateway", "switch"]' \
	>/dev/null
echo "ok: shown"

# What is no memory leaves nothing behind; only who is killed is missed.
kill -TERM "$GATEWAY_PID"
until_node "not $gw"
kill -KILL "$(node_pid s0)"
until_node 'd["s0"]["state"] == "down"'
echo "ok: gone"

# Another machine: its node shows its certificate, and is refused without.
cat >"$TMP/away.ini" <<END
[rack]
control = https://127.0.0.1:$port
ca = $TMP/ca/ca.pem
cert = $TMP/ca/machine.pem
key = $TMP/ca/machine-key.pem
node_token_file = $RUNDIR/node-token
END
mkdir "$TMP/away"
away() {
	AQUIFER_CONFIG=$TMP/away.ini AQUIFER_RUNDIR=$TMP/away \
		AQUIFER_TOKEN=$(<"$RUNDIR/token") \
		AQUIFER_ADMIN_TOKEN=$(<"$RUNDIR/admin-token") "$@"
}
sed '/^cert\|^key/d' "$TMP/away.ini" >"$TMP/bare.ini"
away env AQUIFER_CONFIG="$TMP/bare.ini" "$AQUIFER" node ls >"$TMP/out" 2>"$TMP/err" &&
	fail "without a certificate"
grep -qi certificate "$TMP/err" || fail "$(<"$TMP/err")"
expect 0 away "$AQUIFER" node ls
away exec "$AQUIFER" memory --name m7 --size 16M >"$TMP/m7" 2>&1 &
PIDS+=("$!")
until_node 'd["m7"]["state"] == "up"'
grep -q '"certificate":"machine"' "$TMP/state/$AQUIFER_RACK_NAME/c0.audit.jsonl" ||
	fail "the audit log does not name the certificate"
echo "ok: certificates"
