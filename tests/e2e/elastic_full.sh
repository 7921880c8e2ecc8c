#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A node without room: who writes hears that, whoever wants the last block, and
# nobody hears that a file is gone which is there.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"

cat >"$TMP/rack.ini" <<-END
	[rack]
	control = c0
	[memory m0]
	size = 16M
END
expect 0 "$AQUIFER" up
until_node 'd["m0"]["state"] == "up"'
head -c 8000000 /dev/urandom >"$TMP/in"
expect 0 "$AQUIFER" ns mkdir /job --keep

# All of them together want more than there is.
pids=()
for w in 1 2 3 4 5; do
	"$AQUIFER" file put "/job/f$w" "$TMP/in" --block 512K \
		>"$TMP/out$w" 2>"$TMP/err$w" || echo "$w" >>"$TMP/refused" &
	pids+=($!)
done
wait "${pids[@]}"
[ -e "$TMP/refused" ] || fail "40 MB fit into 16"
while read -r w; do
	grep -qi "is gone\|lost" "$TMP/err$w" &&
		fail "it is there: $(<"$TMP/err$w")"
	grep -qi "no node\|full\|left\|room\|space" "$TMP/err$w" ||
		fail "no reason: $(<"$TMP/err$w")"
done <"$TMP/refused"

# What was written is there, and can be read.
for w in 1 2 3 4 5; do
	"$AQUIFER" file cat "/job/f$w" >"$TMP/back" 2>"$TMP/err" ||
		fail "f$w cannot be read: $(<"$TMP/err")"
	head -c "$(stat -c %s "$TMP/back")" "$TMP/in" | cmp - "$TMP/back" ||
		fail "f$w is not what was written"
done
expect 0 "$AQUIFER" ns rm /job --recursive
until_ok "$AQUIFER" file put /again/f "$TMP/in" --block 512K
echo "ok: full"
