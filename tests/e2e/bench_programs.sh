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
json "$TMP/out" '1 if all("void" in r or "loads" in r or r["median"] > 0
	for r in d["programs"]) else None'
json "$TMP/out" '1 if not any("void" in r for r in d["programs"]
	if r["place"] not in ("zram", "swap-file")) else None'
json "$TMP/out" '1 if d["bounds"]["app_chain_vs_static_worst"]["value"] > 0
	and d["bounds"]["quicksort50_vs_local"]["value"] > 0 else None'
json "$TMP/out" '1 if all(d["bounds"][k]["kept"] for k in
	("far_bytes_vs_faults", "far_bytes_vs_faults_chain")) else None'
