#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer sim elastic`: promises of files, queues and key-value stores hold,
# slots move while it is played, and every planted bug is found.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

expect 0 "$AQUIFER" sim elastic --seeds 1..30 --json
json "$TMP/out" 'd["violations"] == 0 and d["counts"]["batches"] > 100 and
	d["counts"]["helped"] > 10 and d["counts"]["alone"] > 0 and
	d["counts"]["listed"] > 100 and d["counts"]["moved"] > 0 and
	d["counts"]["grouped"] > 1000 and d["counts"]["behind"] > 100' >/dev/null
for bug in $("$AQUIFER" sim elastic --bug list | cut -d' ' -f1); do
	expect 0 "$AQUIFER" sim elastic --bug "$bug" --seeds 1..40
done
