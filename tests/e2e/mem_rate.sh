#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A tenant that asks too often is told when to come again, wherever it comes
# from; nobody else notices. (test_mem_handlers: callers without a token.)
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

NODE_OPTIONS=(--listen 127.0.0.1:0 --json)
start_node
PORT=$(json "$TMP/node" 'd["port"]')
ask "$ADMIN" 201 POST /v1/tenants \
	'{"name": "eager", "limits": {"requests": 1}}'
EAGER=$(json "$TMP/answer" 'd["token"]')
ask "$ADMIN" 400 POST /v1/tenants \
	'{"name": "more", "limits": {"requests": 1000000}}'

# flood ADDRESS TOKEN: forty requests on one connection to a port or a socket,
# until one is refused; prints how many were answered, and when to come again.
flood() {
	python3 - "$@" <<'PY'
import http.client, json, socket, sys
address, token, count = sys.argv[1], sys.argv[2], 40
headers = {"Authorization": "Bearer " + token}
if address[0] == "/":
    c = http.client.HTTPConnection("m0")
    c.sock = socket.socket(socket.AF_UNIX)
    c.sock.connect(address)
else:
    c = http.client.HTTPConnection("127.0.0.1", int(address), 60)
for i in range(count):
    c.request("GET", "/v1/regions", headers=headers)
    r = c.getresponse()
    body = r.read()
    if r.status == 429:
        error = json.loads(body)["error"]
        assert error["code"] == "-EAGAIN" and "Retry-After" in error["advice"], error
        print(i, r.headers["Retry-After"])
        break
    assert r.status == 200, (r.status, body)
else:
    print(count, "never")
PY
}

# One a second, two at once: forty take longer than this does.
read -r served again <<<"$(flood "$PORT" "$EAGER")"
((served >= 2 && served < 40)) || fail "$served requests at one a second"
((again >= 1 && again <= 2)) || fail "come again after $again s"
# Over the socket it is the same tenant; others are not refused.
read -r served again <<<"$(flood "$SOCKET" "$EAGER")"
[[ $again != never ]] || fail "a tenant is another one on the socket"
read -r served again <<<"$(flood "$PORT" "$TOKEN")"
[[ $again == never ]] || fail "a tenant pays for another: $served"
ask "$ADMIN" 200 GET /v1/tenants
json "$TMP/answer" '[t for t in d["tenants"] if t["name"] == "eager"
    and t["limits"]["requests"] == 1 and t["requests"] >= 3]' >/dev/null
# Who has waited is served again.
for _ in {1..100}; do
	sleep 0.2
	got=$(curl -sS --unix-socket "$SOCKET" -H "Authorization: Bearer $EAGER" \
		-o /dev/null -w '%{http_code}' http://m0/v1/regions)
	[[ $got == 429 ]] || break
done
[[ $got == 200 ]] || fail "it never was: $got"

# Our own programs wait by themselves: more requests than it may have at once.
ask "$ADMIN" 200 PATCH /v1/tenants/eager '{"limits": {"requests": 4}}'
for _ in {1..8}; do
	AQUIFER_TOKEN=$EAGER expect 0 "$AQUIFER" region list
done
stop_node
echo "ok: callers that ask too often"
