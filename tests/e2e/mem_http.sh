#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The memory node's requests with curl, as the man page shows them.
# shellcheck source=tests/e2e/mem_lib.sh
source "$(dirname "$0")/mem_lib.sh"

start_node
ask "" 200 GET /v1/status
json "$TMP/answer" 'd["node"] == "m0" and d["proto"] == "1.0"
    and d["pool"]["free"] == 64 << 20' >/dev/null
ask "" 401 GET /v1/regions
ask "$TOKEN" 201 POST /v1/regions '{"name": "a", "size": 1000000}'
ask "$TOKEN" 409 POST /v1/regions '{"name": "a", "size": 1000000}'
json "$TMP/answer" 'd["error"]["code"] == "-EEXIST" and d["error"]["message"]
    and d["error"]["advice"]' >/dev/null
ask "$TOKEN" 507 POST /v1/regions '{"name": "b", "size": 100000000}'
ask "$TOKEN" 200 PATCH /v1/regions/a '{"size": 3000000}'
ask "$TOKEN" 200 GET /v1/regions
json "$TMP/answer" 'd["regions"][0]["size"] == 3000000' >/dev/null
ask "$TOKEN" 400 POST /v1/regions '{"name": '
ask "$TOKEN" 426 POST /v1/connect '{"proto": "2.0"}'
ask "$TOKEN" 404 GET /v2/regions
ask "$TOKEN" 403 GET /v1/tenants
ask "$ADMIN" 201 POST /v1/tenants '{"name": "t", "quota": 4096}'
ask "$(json "$TMP/answer" 'd["token"]')" 507 POST /v1/regions \
	'{"name": "a", "size": 4097}'
ask "$TOKEN" 204 DELETE /v1/regions/a
ask "$TOKEN" 413 POST /v1/claims "{\"name\": \"$(printf %9000s x)\"}"
# Too large, said with a length and without.
head -c 100000 /dev/zero | tr '\0' ' ' >"$TMP/large"
for header in "X-None: x" "Transfer-Encoding: chunked"; do
	got=$(curl -sS --unix-socket "$SOCKET" -H "$header" -H "Expect:" \
		-H "Authorization: Bearer $TOKEN" --data-binary "@$TMP/large" \
		-o /dev/null -w '%{http_code}' http://m0/v1/regions)
	[[ $got == 413 ]] || fail "too large ($header): $got"
done

# The man page's own example.
# shellcheck disable=SC2016 # no expansion: backquotes of the page itself
sed -n '/^```$/,/^```$/p' "$AQ_SOURCE/man/aquifer-memory.1.scd" |
	sed -e '/^```/d' -e '/^aquifer memory/d' -e "s,^dir=.*,dir=$DIR," \
		>"$TMP/example.sh"
[[ -s $TMP/example.sh ]] || fail "no example in the man page"
bash -eu "$TMP/example.sh" >"$TMP/out" || fail "the man page's example"
! grep -q '"error"' "$TMP/out" || fail "the man page's example: $(<"$TMP/out")"

# Who may look: nobody but the owner.
[[ $(stat -c %a "$SOCKET" "$DIR/token" "$DIR/admin-token" "$DIR" |
	tr '\n' ' ') == "600 600 600 700 " ]] || fail "file modes"
stop_node
echo "ok: requests"
