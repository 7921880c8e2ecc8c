#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The rows of `aquifer bench paging` that are programs on far memory: every work
# runs and is right in every place, or says what this machine lacks. Far bytes
# are what the faults ask for, to the byte.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
need_nic
need memcached sqlite3

expect 2 "$AQUIFER" bench paging --only nothing
expect 0 "$AQUIFER" bench paging --only programs --quick --json
json "$TMP/out" 'all("error" in r or r["value"] > 0 for r in d["rows"])'
json "$TMP/out" 'not any("error" in r for r in d["rows"]
	if r["place"] not in ("zram", "swap-file"))'
json "$TMP/out" 'd["ratios"]["app_chain_vs_static_worst"] > 0 and
	d["ratios"]["quicksort50_vs_local"] > 0'
json "$TMP/out" 'all(d["bounds"][k]["kept"] for k in
	("far_bytes_vs_faults", "far_bytes_vs_faults_chain"))'
