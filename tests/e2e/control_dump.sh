#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A controller's state moves from a file to an etcd with TLS and back: all rows,
# and terms go on, so nodes that run follow. A dump of a newer schema, a damaged
# one, and a store that is not empty are refused.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
need etcd
etcd_dir=$TMP
[[ -z ${AQ_OWN_NET:-} ]] || etcd_dir=/dev/shm

printf '[rack]\ncontrol = c0\n[memory m0]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
expect 0 "$AQUIFER" tenant create team --quota 16M --token-file "$TMP/t.token"
team=$(<"$TMP/t.token")
until_ok as "$team" "$AQUIFER" region create r 10M
# While it runs, to standard output, and to a file that is its owner's alone.
expect 0 "$AQUIFER" control dump -
grep -q '"kind":"tenant","key":"team"' "$TMP/out" || fail "$(<"$TMP/out")"
! grep -q "$team" "$TMP/out" || fail "a token in the dump"
kill_node c0
expect 0 "$AQUIFER" control dump "$TMP/state.dump"
[[ $(stat -c %a "$TMP/state.dump") == 600 ]] || fail "who may read the dump?"
head -1 "$TMP/state.dump" >"$TMP/head"
json "$TMP/head" 'd["aquifer"] == "ledger" and d["schema"] == 1 and
	d["rows"] >= 3' >/dev/null
echo "ok: dump"

# Refused, each with words.
expect 1 "$AQUIFER" control load "$TMP/state.dump"
grep -q "rows already" "$TMP/err" || fail "$(<"$TMP/err")"
sed '1s/"schema": 1/"schema": 12/' "$TMP/state.dump" >"$TMP/newer.dump"
expect 1 "$AQUIFER" control load "$TMP/newer.dump" --store "sqlite:$TMP/n.db"
grep -q "schema 12, this program knows 1" "$TMP/err" || fail "$(<"$TMP/err")"
sed '$d' "$TMP/state.dump" >"$TMP/short.dump"
expect 1 "$AQUIFER" control load "$TMP/short.dump" --store "sqlite:$TMP/n.db"
grep -q "should have" "$TMP/err" || fail "$(<"$TMP/err")"
[[ ! -e $TMP/n.db ]] || fail "a store was made for a bad dump"
expect 1 "$AQUIFER" control dump "$TMP/x" --store "sqlite:$TMP/n.db"
[[ ! -e $TMP/n.db ]] || fail "a store was made by looking"
expect 1 "$AQUIFER" control load "$TMP/none.dump"
expect 2 "$AQUIFER" control dump
expect 2 "$AQUIFER" control move "$TMP/x"
echo "ok: refusals"

# To an etcd that talks with TLS, and only to who has a certificate.
tls_make site
url=https://127.0.0.1:$(free_port)
peer=http://127.0.0.1:$(free_port)
etcd --name e0 --data-dir "$etcd_dir/e0" --listen-client-urls "$url" \
	--advertise-client-urls "$url" --listen-peer-urls "$peer" \
	--initial-advertise-peer-urls "$peer" --initial-cluster "e0=$peer" \
	--cert-file "$TMP/site.pem" --key-file "$TMP/site-key.pem" \
	--client-cert-auth --trusted-ca-file "$TMP/site-ca.pem" \
	>"$TMP/etcd.log" 2>&1 &
PIDS+=("$!")
tls=(--store "etcd:$url" --store-ca "$TMP/site-ca.pem"
	--store-cert "$TMP/site.pem" --store-key "$TMP/site-key.pem")
until_ok "$AQUIFER" control load "$TMP/state.dump" "${tls[@]}"
expect 1 "$AQUIFER" control dump - --store "etcd:$url"
expect 1 "$AQUIFER" control dump - --store "etcd:$url" \
	--store-ca "$TMP/site-ca.pem"
expect 1 "$AQUIFER" control load "$TMP/state.dump" "${tls[@]}"
cat >"$TMP/rack.ini" <<END
[rack]
control = c0
[control c0]
store = etcd:$url
store_ca = $TMP/site-ca.pem
store_cert = $TMP/site.pem
store_key = $TMP/site-key.pem
[memory m0]
size = 64M
END
expect 0 "$AQUIFER" up
# The node that ran all the time is back, and what it has counts.
until_node 'd["m0"]["state"] == "up" and d["m0"]["regions"] == 1'
expect 1 as "$team" "$AQUIFER" region create s 10M
expect 0 as "$team" "$AQUIFER" region delete r
until_ok as "$team" "$AQUIFER" region create s 12M
echo "ok: to etcd"

# And back to a file.
kill -TERM "$(node_pid c0)"
until_ok sh -c "! kill -0 $(node_pid c0) 2>/dev/null"
expect 0 "$AQUIFER" control dump "$TMP/again.dump" "${tls[@]}"
expect 0 "$AQUIFER" control load "$TMP/again.dump" --store "sqlite:$TMP/n.db" --json
json "$TMP/out" 'd["rows"] >= 3' >/dev/null
printf '[rack]\ncontrol = c0\n[control c0]\nstore = sqlite:%s\n[memory m0]\nsize = 64M\n' \
	"$TMP/n.db" >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up" and d["m0"]["regions"] == 1'
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '{t["name"]: t["quota"] for t in d["tenants"]}["team"] == 16 << 20' \
	>/dev/null
echo "ok: back to a file"
