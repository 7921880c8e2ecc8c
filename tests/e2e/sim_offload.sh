#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer sim offload`: seeds, a planted bug, a history for `sim check`, a
# figure; errors name the option.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

expect 0 "$AQUIFER" sim offload --seeds 6 --json
[[ $(json "$TMP/out" 'd["violations"]') == 0 ]] || fail "violations"
expect 0 "$AQUIFER" sim offload --seed 3 --history "$TMP/history"
expect 0 "$AQUIFER" sim check --model register --initial 0 "$TMP/history"
# A planted bug that is found is what was wanted; one that is not, is not.
expect 0 "$AQUIFER" sim offload --seeds 20 --bug early-ack
grep -q '^replay: aquifer sim offload --seed .* --bug early-ack' "$TMP/out" ||
	fail "no way to replay it"
expect 1 "$AQUIFER" sim offload --seeds 2 --bug no-fence
grep -q '^the planted bug no-fence was not found' "$TMP/out" ||
	fail "no word of a bug that nobody found"
expect 0 "$AQUIFER" sim offload --bug list
grep -q '^repeat-writes ' "$TMP/out" || fail "no list of bugs"
expect 0 "$AQUIFER" sim offload --figure 13
grep -q '^batches of 100: median' "$TMP/out" || fail "no claims"
expect 0 "$AQUIFER" sim offload --figure 11 --json
[[ $(json "$TMP/out" 'len(d["points"])') == 12 ]] || fail "points are missing"
expect 0 "$AQUIFER" sim offload --costs
grep -q '^ring_issue_ps ' "$TMP/out" || fail "no constants"

expect 2 "$AQUIFER" sim offload --figure 3
grep -q -- '--figure' "$TMP/err" || fail "no name of the option"
expect 2 "$AQUIFER" sim offload --bug none-such
expect 2 "$AQUIFER" sim offload --seeds 0
expect 2 "$AQUIFER" sim offload --frob
