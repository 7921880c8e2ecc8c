#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Certificates of `aquifer cert`: the node shows one, asks its callers for one,
# and takes new ones without losing a connection; without TLS it serves nobody
# elsewhere.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

CERTS=$TMP/certs
cert() {
	expect 0 "$AQUIFER" cert "$@" --dir "$CERTS"
}
cert init
cert issue m0 --address 127.0.0.1
cert issue friend
expect 1 "$AQUIFER" cert init --dir "$CERTS" # the old one is trusted
grep -q 'already' "$TMP/err" || fail "$(<"$TMP/err")"
[[ $(stat -c %a "$CERTS/ca-key.pem" "$CERTS/m0-key.pem" | tr '\n' ' ') == \
"600 600 " ]] || fail "keys of others"
"$AQUIFER" cert init --dir "$TMP/other" >/dev/null
"$AQUIFER" cert issue friend --dir "$TMP/other" >/dev/null
"$AQUIFER" cert show --json --dir "$CERTS" >"$TMP/out" || fail "show"
json "$TMP/out" '[c["days_left"] for c in d["certificates"] if c["valid"]
    and c["of_this_authority"] and "127.0.0.1" in c["names"]][0] > 800' >/dev/null

# Not where others can connect.
expect 1 "$AQUIFER" memory --name m1 --size 1M --listen 0.0.0.0:0
grep -q -- '--insecure' "$TMP/err" || fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" memory --name m1 --size 1M --listen '[::]:0'

NODE_OPTIONS=(--listen 127.0.0.1:0 --tls-cert "$CERTS/m0.pem"
	--tls-key "$CERTS/m0-key.pem" --tls-ca "$CERTS/ca.pem" --json
	--audit "$TMP/audit" --audit-json)
start_node
PORT=$(json "$TMP/node" 'd["port"]')
url=https://127.0.0.1:$PORT/v1/regions
# status OPTION...: only the HTTP status.
status() {
	curl -sS --max-time 20 -o "$TMP/answer" -w '%{http_code}' \
		-H "Authorization: Bearer $TOKEN" "$@" "$url" || true
}
friend=(--cert "$CERTS/friend.pem" --key "$CERTS/friend-key.pem")
foe=(--cert "$TMP/other/friend.pem" --key "$TMP/other/friend-key.pem")
[[ $(status --cacert "$CERTS/ca.pem" "${friend[@]}") == 200 ]] ||
	fail "a certificate of ours: $(<"$TMP/answer")"
[[ $(status --cacert "$CERTS/ca.pem") == 403 ]] || fail "no certificate"
grep -q "with a certificate only" "$TMP/answer" || fail "$(<"$TMP/answer")"
[[ $(status --cacert "$CERTS/ca.pem" "${foe[@]}") == 403 ]] ||
	fail "a certificate of another authority"
[[ $(status --cacert "$TMP/other/ca.pem" "${friend[@]}" 2>/dev/null) == 000 ]] ||
	fail "the node is believed by another authority"
[[ $(status --cacert "$CERTS/ca.pem" "${friend[@]}" \
	-d '{"name": "r", "size": 4096}') == 201 ]] || fail "$(<"$TMP/answer")"
grep -q '"certificate":"friend"' "$TMP/audit" || fail "$(<"$TMP/audit")"

# serial: of the certificate that a new connection meets.
serial() {
	openssl s_client -connect "127.0.0.1:$PORT" </dev/null 2>/dev/null |
		openssl x509 -noout -serial
}
need openssl
python3 - "$PORT" "$CERTS" "$TMP" "$TOKEN" <<'PY' &
import http.client, os, ssl, sys, time
port, certs, tmp, token = sys.argv[1:]
c = ssl.create_default_context(cafile=certs + "/ca.pem")
c.load_cert_chain(certs + "/friend.pem", certs + "/friend-key.pem")
h = http.client.HTTPSConnection("127.0.0.1", int(port), timeout=60, context=c)
h.auto_open = 0
h.connect()
def ask():
    h.request("GET", "/v1/regions", headers={"Authorization": "Bearer " + token})
    assert h.getresponse().read(), "no answer"
ask()
open(tmp + "/open", "w").close()
while not os.path.exists(tmp + "/renewed"):
    time.sleep(0.05)
    ask()
ask()
PY
kept=$!
PIDS+=("$kept")
for _ in {1..400}; do
	[[ -e $TMP/open ]] && break
	sleep 0.05
done
[[ -e $TMP/open ]] || fail "no connection"
before=$(serial)
[[ -n $before ]] || fail "no certificate is shown"

# await_log WORDS: the node has said so.
await_log() {
	for _ in {1..200}; do
		! grep -q "$1" "$TMP/node.err" || return 0
		sleep 0.05
	done
	fail "the node did not say $1: $(<"$TMP/node.err")"
}
# One that is wrong changes nothing.
cp "$CERTS/m0-key.pem" "$TMP/good-key"
cp "$CERTS/friend-key.pem" "$CERTS/m0-key.pem"
kill -HUP "$NODE"
await_log "the former certificate stays"
[[ $(serial) == "$before" ]] || fail "a key of another certificate is used"
# A new one; and the audit log was moved away.
mv "$TMP/audit" "$TMP/audit.1"
cert issue m0 --address 127.0.0.1
kill -HUP "$NODE"
for _ in {1..200}; do
	[[ $(serial) == "$before" ]] || break
	sleep 0.05
done
[[ $(serial) != "$before" ]] || fail "the old certificate is still shown"
[[ $(status --cacert "$CERTS/ca.pem" "${friend[@]}" -d '{"name": "s", "size": 1}') == \
201 ]] || fail "$(<"$TMP/answer")"
grep -q '"name":"s"' "$TMP/audit" || fail "the audit log is the old one"
: >"$TMP/renewed"
wait "$kept" || fail "a connection was lost"
stop_node
echo "ok: certificates"
