#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node that is known only by its TCP address in rack.ini, as from another
# machine: no socket, no token file. With and without TLS.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

port=$(free_port)
printf '[memory far]\nsize = 64M\nlisten = 127.0.0.1:%s\n' "$port" \
	>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
printf '[node over]\naddress = 127.0.0.1:%s\n' "$port" >"$TMP/client.ini"
# elsewhere COMMAND...: with a runtime directory and an address of its own.
elsewhere() {
	AQUIFER_RUNDIR=$TMP/elsewhere AQUIFER_CONFIG=$TMP/client.ini \
		AQUIFER_NIC_ADDRESS=127.0.0.2 "$@"
}
expect 0 elsewhere "$AQUIFER" status --json
json "$TMP/out" 'd["nodes"][0]["name"] == "over"
    and d["nodes"][0]["state"] == "up"' >/dev/null
expect 1 elsewhere "$AQUIFER" region create r 2M
grep -q EACCES "$TMP/err" || fail "without a token: $(cat "$TMP/err")"
AQUIFER_TOKEN=$(cat "$RUNDIR/token")
export AQUIFER_TOKEN
expect 0 elsewhere "$AQUIFER" region create r 2M
elsewhere client basic r || fail "basic"

# HTTPS: who does not know the authority gets no token out of the client.
expect 0 "$AQUIFER" down
tls_make good
tls_make other
printf '[memory far]\nsize = 64M\nlisten = 127.0.0.1:%s\n' "$port" \
	>"$TMP/rack.ini"
printf 'tls_cert = %s\ntls_key = %s\n' "$TMP/good.pem" \
	"$TMP/good-key.pem" >>"$TMP/rack.ini"
expect 0 "$AQUIFER" up
# trust CA: what the client trusts; "" is the system's authorities.
trust() {
	printf '[node over]\naddress = https://127.0.0.1:%s\n' "$port"
	[[ -z $1 ]] || printf 'ca = %s\n' "$1"
}
trust "$TMP/good-ca.pem" >"$TMP/client.ini"
expect 0 elsewhere "$AQUIFER" region create s 2M
elsewhere client basic s || fail "basic over HTTPS"
expect 0 elsewhere "$AQUIFER" status --json
json "$TMP/out" 'd["nodes"][0]["state"] == "up"' >/dev/null
for ca in "$TMP/other-ca.pem" "" /nonexistent; do
	trust "$ca" >"$TMP/client.ini"
	expect 1 elsewhere "$AQUIFER" region list
	grep -qi "EACCES" "$TMP/err" || fail "trusting '$ca': $(cat "$TMP/err")"
done
# Neither plain HTTP on that port nor another name of the host.
printf '[node over]\naddress = http://127.0.0.1:%s\n' "$port" \
	>"$TMP/client.ini"
expect 1 elsewhere "$AQUIFER" region list
printf '[node over]\naddress = https://localhost:%s\nca = %s\n' "$port" \
	"$TMP/good-ca.pem" >"$TMP/client.ini"
expect 1 elsewhere "$AQUIFER" region list
grep -q EACCES "$TMP/err" || fail "another name: $(cat "$TMP/err")"
