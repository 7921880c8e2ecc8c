#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nic.auth = psk: every packet of a connection over UDP carries a MAC, and who
# cannot do it is refused in words, on both sides.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
need curl

# config AUTH: of nodes and clients; all packets go by UDP.
config() {
	printf '[nic]\nport = udp\nauth = %s\n[memory m0]\nsize = 64M\n' "$1"
}

config psk >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 2M
AQUIFER_PCAP=$TMP/with.pcap client basic r || fail "basic"
read -r packets macs <<<"$(count_macs "$TMP/with.pcap")"
((packets > 0 && packets == macs)) || fail "$macs of $packets have a MAC"

# A client that says nothing of it: no connection, and why.
body='{"proto": "1.0", "gid": "00000000000000000000ffff7f000001",
  "qpn": 70000, "psn": 1}'
curl -sS --unix-socket "$RUNDIR/m0.sock" -H "Authorization: Bearer $(
	cat "$RUNDIR/token")" -d "$body" http://m0/v1/connect >"$TMP/out"
grep -q 'nic.auth = psk' "$TMP/out" || fail "refused with: $(cat "$TMP/out")"

# It is the node that decides, but who asks for it gets nothing less.
config none >"$TMP/client.ini"
AQUIFER_CONFIG=$TMP/client.ini client basic r || fail "basic, none"
expect 0 "$AQUIFER" down
config none >"$TMP/rack.ini"
config psk >"$TMP/client.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 2M
AQUIFER_PCAP=$TMP/without.pcap client basic r || fail "basic, without"
read -r packets macs <<<"$(count_macs "$TMP/without.pcap")"
((packets > 0 && macs == 0)) || fail "$macs of $packets have a MAC"
if AQUIFER_CONFIG=$TMP/client.ini client basic r >"$TMP/out" 2>&1; then
	fail "a node without is good enough"
fi
grep -q 'does not authenticate packets' "$TMP/out" ||
	fail "the client says: $(cat "$TMP/out")"
expect 0 "$AQUIFER" down

# through PROGRAMS: a rack of a switch with these, and a node behind it.
through() {
	printf '[nic]\nport = switch:s0\nauth = psk\n[switch s0]\nprograms = %s
[memory m0]\nsize = 64M\n' "$1" >"$TMP/rack.ini"
}

# A switch forwards such packets, also with a program that leaves them alone or
# loses some. One that would have to change them does not get to.
through "steer fault:loss=1%,dup=1%"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create r 2M
AQUIFER_PCAP=$TMP/switch.pcap client basic r || fail "through a switch"
read -r packets macs <<<"$(count_macs "$TMP/switch.pcap")"
((packets > 0 && packets == macs)) ||
	fail "$macs of $packets have a MAC, through a switch"
expect 1 "$AQUIFER" region create words 2M --switch-atomics
grep -q 'nic.auth = psk: swordbox' "$TMP/err" || fail "$(cat "$TMP/err")"
expect 0 "$AQUIFER" down
through "swordbox"
expect 1 "$AQUIFER" up
grep -q 'psk does not go with the program swordbox' "$TMP/err" ||
	fail "with swordbox: $(cat "$TMP/out" "$TMP/err")"
"$AQUIFER" down >/dev/null 2>&1 || true
echo "ok: $packets packets"
