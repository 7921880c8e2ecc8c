#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The version names the commit, in words and as JSON.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

expect 0 "$AQUIFER" version
grep -Eq '^aquifer [0-9]+\.[0-9]+\.[0-9]+ \(.+\)$' "$TMP/out" ||
	fail "unexpected: $(cat "$TMP/out")"
expect 0 "$AQUIFER" version --json
json "$TMP/out" 'd["version"] and d["commit"]' >/dev/null
expect 0 "$AQUIFER" --version
