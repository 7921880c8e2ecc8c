#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Links: a program's own queue pair to a region and to one piece of a striped
# one; its rights; a node that dies fails its requests in bounded time.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
link=$1

printf '[memory m0]\nsize = 64M\n[memory m1]\nsize = 64M\n' >"$TMP/rack.ini"
expect 0 "$AQUIFER" up
expect 0 "$AQUIFER" region create one 1M
expect 0 "$AQUIFER" region create two 1M --nodes 2 --stripe 64K
expect 0 timeout 20 "$link" one
expect 0 timeout 20 "$link" two.1-2-10

mkfifo "$TMP/in"
timeout 30 "$link" two.0-2-10 dies <"$TMP/in" >"$TMP/lines" 2>"$TMP/errors" &
app=$!
PIDS+=("$app")
exec 3>"$TMP/in"
[[ $(wait_line "$TMP/lines" 1) == ready ]] || fail "$(cat "$TMP/errors")"
kill -KILL "$(node_pid m0)" "$(node_pid m1)"
echo >&3
wait "$app" || fail "the dead node: $(cat "$TMP/errors")"
exec 3>&-
