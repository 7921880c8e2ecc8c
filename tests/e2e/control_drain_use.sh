#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Regions, a piece of a striped one and indexes of both kinds move from node to
# node and back while programs write to them and read them back: nothing that
# was acknowledged is lost.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/move_lib.sh
source "$(dirname "$0")/move_lib.sh"

up_two
expect 0 "$AQUIFER" region create plain 4M --node m1
expect 0 "$AQUIFER" region create wide 4M --nodes 2
expect 0 "$AQUIFER" index create tree --memory 2M --node m1
use_begin region plain
use_begin region wide
use_begin index tree
# The controller knows all of it: plain, a half of wide, a tree and its locks.
until_node 'd["m1"]["regions"] == 4 and d["m0"]["regions"] == 1'

expect 0 "$AQUIFER" node drain m1 --json
json "$TMP/out" 'len(d["moved"]) == 3 and all(t["to"] == "m0" for t in d["moved"]) and
	d["stays"] == []' >/dev/null || fail "$(<"$TMP/out")"
until_node 'd["m1"]["regions"] == 0 and d["m1"]["moved"] == 4 and d["m1"]["moving"] == 0'
use_go_on
echo "ok: away after $SECONDS s"

# And all of it back, while the same programs go on.
expect 0 "$AQUIFER" node undrain m1
until_ok "$AQUIFER" region create probe 1M --node m1
expect 0 "$AQUIFER" region delete probe
expect 0 "$AQUIFER" node drain m0
grep -q "nothing is left on it" "$TMP/out" || fail "$(<"$TMP/out")"
until_node 'd["m0"]["regions"] == 0'
use_go_on
echo "ok: back after $SECONDS s"

# A node that is empty may go: a program that stood still meanwhile follows, too.
expect 0 "$AQUIFER" node undrain m0
until_ok "$AQUIFER" region create probe 1M --node m0
expect 0 "$AQUIFER" region delete probe
use_hold
expect 0 "$AQUIFER" node drain m1
grep -q "nothing is left on it" "$TMP/out" || fail "$(<"$TMP/out")"
kill -9 "$(curl -sS --unix-socket "$RUNDIR/m1.sock" http://m1/v1/status | python3 -c \
	'import json, sys; print(json.load(sys.stdin)["pid"])')"
use_release
echo "ok: its node is gone after $SECONDS s"
use_end
expect 0 "$AQUIFER" index check tree
expect 0 "$AQUIFER" region stat wide --json
json "$TMP/out" 'd["nodes"] == 2' >/dev/null || fail "$(<"$TMP/out")"
echo "ok: nothing is lost"
