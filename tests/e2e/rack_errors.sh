#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Misuse gets the right error: bounds, alignment, rights, quota, token, names.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"

need curl
expect_code ENOENT r read 0
expect 0 "$AQUIFER" up
expect_code ENOENT r read 0
expect_code 0 r create 65536
expect_code EEXIST r create 65536
expect_code 0 r write 65528
expect_code ERANGE r read 65529
expect_code ERANGE r write 0xffffffffffffffff
expect_code EINVAL r faa 4
expect_code EINVAL a/b create 4096
expect_code EINVAL r2 create 0
expect_code ENOSPC r2 create 0x100000000
expect_code EACCES r write-ro 0
expect_code 0 r read-ro 8
expect_code 0 r resize 131072
expect_code 0 r read 131064

# A tenant of its own, with a quota.
tenant=$(curl -sS --unix-socket "$RUNDIR/m0.sock" \
	-H "Authorization: Bearer $(cat "$RUNDIR/admin-token")" \
	-d '{"name":"small","quota":1048576}' http://localhost/v1/tenants)
token=$(python3 -c 'import json, sys
print(json.loads(sys.argv[1])["token"])' "$tenant")
export AQUIFER_TOKEN=$token
expect_code ENOENT r read 0
expect_code 0 mine create 524288
expect_code EDQUOT more create 1048576
expect_code EDQUOT mine resize 2097152
expect_code 0 mine read 0
expect 1 "$AQUIFER" region create more 1M
grep -q EDQUOT "$TMP/err" || fail "$(cat "$TMP/err")"

# A node that is gone: its socket is named, and not what curl makes of it.
unset AQUIFER_TOKEN
kill_node m0
expect 1 "$AQUIFER" region list
grep -q "unix:$RUNDIR/m0.sock: nothing listens there" "$TMP/err" ||
	fail "$(<"$TMP/err")"
expect 1 "$AQUIFER" status --json
json "$TMP/out" '"m0.sock" in d["nodes"][0]["error"]
    and "localhost" not in d["nodes"][0]["error"]
    and "GET" not in d["nodes"][0]["error"]' >/dev/null || fail "$(<"$TMP/out")"
expect 0 "$AQUIFER" up

AQUIFER_TOKEN=$(printf 'f%.0s' {1..64})
export AQUIFER_TOKEN
expect_code EACCES r read 0
AQUIFER_TOKEN=short
expect_code EINVAL r read 0

# A pool that this machine cannot have, by the command and by rack.ini.
expect 1 "$AQUIFER" memory --name big --size 32T
grep -q 'pool of 32T is larger than this machine.s memory' "$TMP/err" ||
	fail "$(cat "$TMP/err")"
printf '[memory big]\nsize = 32T\n' >"$TMP/rack.ini"
expect 1 "$AQUIFER" up
grep -q 'pool of 32T is larger' "$TMP/err" || fail "$(cat "$TMP/err")"
