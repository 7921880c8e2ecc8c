#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nic.auth = psk with an engine: the application hands the nodes' keys on, the
# engine gives one for the rings, and every packet over UDP carries a MAC.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
AQ_RACK_CLIENT=$1

config() {
	printf '[nic]\nport = udp\nauth = %s\n[memory m0]\nsize = 64M\n' "$1"
}

config psk >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create one 1M
AQUIFER_PCAP=$TMP/app.pcap expect 0 client many one 2 0.3
read -r packets macs <<<"$(count_macs "$TMP/app.pcap")"
((packets > 100 && packets == macs)) || fail "$macs of $packets have a MAC"
expect 0 "$AQUIFER" status --json
json "$TMP/out" 'd["engines"][0]["counters"]["reads"] > 0
    and d["engines"][0]["counters"]["broken"] == 0' >/dev/null

# An application that says nothing of it is refused, and hears why.
curl -sS --unix-socket "$RUNDIR/e0.engine.sock" -H "Authorization: Bearer $(
	cat "$RUNDIR/engine-token")" -d '{"proto": "1.0", "nodes": 0, "epoch": 1,
  "gid": "00000000000000000000ffff7f000001", "qpn": 70000, "psn": 1,
  "ring": {"addr": 4096, "size": 65536, "rkey": 1}}' \
	http://e/v1/sessions >"$TMP/out"
grep -q 'nic.auth = psk' "$TMP/out" || fail "refused with: $(cat "$TMP/out")"
expect 0 "$AQUIFER" down

# Who asks for it gets nothing less: here node and engine do without.
config none >"$TMP/rack.ini"
config psk >"$TMP/client.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create one 1M
expect 0 client many one 1 0.1
AQUIFER_CONFIG=$TMP/client.ini client many one 1 0.1 >"$TMP/out" 2>&1 &&
	fail "an engine without is good enough"
grep -q 'authenticate packets' "$TMP/out" ||
	fail "the application says: $(cat "$TMP/out")"
echo "ok: $packets packets"
