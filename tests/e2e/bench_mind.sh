#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer bench mind` counts frames in the switch's trace, and leaves nothing
# behind; times are not judged here.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
[[ -z $AQ_PRELOAD ]] || skip "a benchmark of sanitized code tells nothing"
# shellcheck source=tests/e2e/coherent_lib.sh
source "$(dirname "$0")/coherent_lib.sh"
can_share

export TMPDIR=$TMP
mkdir "$TMP/keep"
cd "$TMP/keep"
expect 0 "$AQUIFER" bench mind --only count --json
json "$TMP/out" 'd["bench"] == "mind" and not d["void"]'
# A machine that is starved for a second repeats packets, so these are bounds: a
# step more, or frames of hits, of which there are millions, would be above them.
json "$TMP/out" 'all(0 < d["ratios"]["hops_" + k] <= 4
	for k in ("i_s", "s_s", "i_m", "s_m", "m_s"))'
json "$TMP/out" '0 < d["ratios"]["hops_m_m"] <= 8'
json "$TMP/out" 'd["ratios"]["frames_hit"] < 20'
json "$TMP/out" '4 <= d["ratios"]["frames_read_miss"] <= 6'
json "$TMP/out" '0 < d["ratios"]["gets_per_mutex_pass"] <= 8'
left=$(find "$TMP" -mindepth 1 -maxdepth 1 -name 'aquifer-*')
[[ -z $left ]] || fail "it leaves $left"
