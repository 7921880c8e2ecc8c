#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# TCP, with and without TLS.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

# port: of the node that runs.
port() {
	sed -n 's/.*(port \([0-9]*\)).*/\1/p' "$TMP/node"
}

# status OPTION... URL: only the HTTP status.
status() {
	curl -sS --max-time 20 -o "$TMP/answer" -w '%{http_code}' "$@"
}

NODE_OPTIONS=(--listen 127.0.0.1:0 --audit "$TMP/audit" --audit-json)
start_node
url=http://127.0.0.1:$(port)
[[ $(status "$url/v1/status") == 200 ]] || fail "status over TCP"
[[ $(status "$url/metrics") == 401 ]] || fail "metrics without a token"
[[ $(status -H "Authorization: Bearer $TOKEN" "$url/metrics") == 200 ]] ||
	fail "metrics over TCP"
[[ $(status -d '{"name": "r", "size": 4096}' \
	-H "Authorization: Bearer $TOKEN" "$url/v1/regions") == 201 ]] ||
	fail "a region over TCP"
stop_node
# Who did what, and who was refused.
python3 - "$TMP/audit" "$TOKEN" <<'PY'
import json, sys
text = open(sys.argv[1]).read()
assert sys.argv[2] not in text, "a token"
refused, made = [json.loads(line) for line in text.splitlines()]
assert refused["status"] == 401 and refused["path"] == "/metrics", refused
assert made["who"] == "default" and made["name"] == "r", made
assert made["from"].startswith("127.0.0.1:") and not made["refused"], made
PY

need openssl
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
	-keyout "$TMP/key" -out "$TMP/cert" -days 2 -subj /CN=localhost \
	-addext subjectAltName=IP:127.0.0.1 2>"$TMP/err" ||
	fail "openssl: $(<"$TMP/err")"
NODE_OPTIONS+=(--tls-cert "$TMP/cert" --tls-key "$TMP/key")
start_node
url=https://127.0.0.1:$(port)
[[ $(status --cacert "$TMP/cert" -H "Authorization: Bearer $TOKEN" \
	"$url/v1/regions") == 200 ]] || fail "HTTPS"
! status "$url/v1/status" 2>/dev/null || fail "an unknown certificate"
# Nothing older than 1.2, whatever the client is willing to do.
for version in tls1 tls1_1 tls1_2 tls1_3; do
	got=no
	openssl s_client -connect "127.0.0.1:$(port)" "-$version" \
		-cipher 'ALL:@SECLEVEL=0' </dev/null >"$TMP/out" 2>&1 && got=yes
	case $version in
	tls1 | tls1_1) [[ $got == no ]] || fail "$version is accepted" ;;
	*) [[ $got == yes ]] || fail "no $version: $(<"$TMP/out")" ;;
	esac
done
! status "http://127.0.0.1:$(port)/v1/status" 2>/dev/null ||
	fail "plain HTTP on the TLS port"
stop_node
echo "ok: TCP and TLS"
