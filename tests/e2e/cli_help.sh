#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every command explains itself, in words and as JSON.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

expect 0 "$AQUIFER" help
grep -q '^commands:' "$TMP/out" || fail "no list of commands"
expect 0 "$AQUIFER" --help
expect 0 "$AQUIFER" help --json
names=$(json "$TMP/out" '" ".join(c["name"] for c in d["commands"])')
for name in $names; do
	expect 0 "$AQUIFER" "$name" --help
	grep -q "^usage: aquifer $name" "$TMP/out" || fail "$name: no usage"
	expect 0 "$AQUIFER" help "$name"
	expect 0 "$AQUIFER" help --json "$name"
	json "$TMP/out" "d['name'] == '$name'" >/dev/null
done
