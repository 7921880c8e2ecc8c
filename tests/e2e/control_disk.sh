#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A controller whose disk is full, whose file somebody else keeps locked, and
# whose disk cannot be written at all: changes are refused with words, nothing is
# half done, reads and the data path go on, and it goes on by itself.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/control_disk_lib.sh
source "$(dirname "$0")/control_disk_lib.sh"

head -c 16M /dev/zero >"$DISK/filler" 2>/dev/null || true
refused "nothing was changed: .*(full|space|lead)"
goes_on "$LAST"
rm "$DISK/filler"
until_ok "$AQUIFER" tenant create after-full --token-file "$TMP/af.token"
goes_on "$LAST"
echo "ok: a full disk"

# Somebody has a transaction of its own, and does not end it.
python3 -c 'import sqlite3, sys, time
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(600)' "$DISK/c.db" >"$TMP/locked" &
locker=$!
PIDS+=("$locker")
wait_line "$TMP/locked" 1 >/dev/null
refused "nothing was changed: .*(locked|lead)"
goes_on "$LAST"
kill -KILL "$locker"
wait "$locker" 2>/dev/null || true
until_ok "$AQUIFER" tenant create after-lock --token-file "$TMP/al.token"
goes_on "$LAST"
echo "ok: a file that is locked"

kill -TERM "$control"
wait "$control" || fail "it ended badly: $(<"$TMP/c0.err")"
mount -o remount,ro "$DISK"
start
status=0
wait "$control" || status=$?
((status)) || fail "it runs on a disk that cannot be written"
grep -Eqi "read-only|cannot" "$TMP/c0.err" || fail "no reason: $(<"$TMP/c0.err")"
mount -o remount,rw "$DISK"
start
until_ok "$AQUIFER" tenant create after-ro --token-file "$TMP/ar.token"
expect 0 "$AQUIFER" tenant ls --json
json "$TMP/out" '{"first", "after-full", "after-lock", "after-ro"} <=
	set(t["name"] for t in d["tenants"])' >/dev/null
echo "ok: a disk that cannot be written"
