#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `aquifer ns flush --freeze` while writers take from one key of a store and give
# to another one, over many blocks and two nodes, with and without copies: in the
# image at most one unit of each writer is on its way. Writers go on afterwards,
# also where the vault does not take the image.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
# shellcheck source=tests/e2e/control_lib.sh
source "$(dirname "$0")/control_lib.sh"
# shellcheck source=tests/e2e/vault_lib.sh
source "$(dirname "$0")/vault_lib.sh"
client=$1
export EKV_BLOCK=65536
WRITERS=3

# more FILE: waits until there is one line more.
more() {
	local n
	n=$(wc -l <"$TMP/$1")
	for _ in {1..600}; do
		[ "$(wc -l <"$TMP/$1")" -le "$n" ] || return 0
		sleep 0.05
	done
	fail "nothing more in $1: $(cat "$TMP/$1.err")"
}

# writers PATH: leaves them in $movers; they have begun.
writers() {
	local i
	movers=()
	for ((i = 0; i < WRITERS; i++)); do
		"$client" move "$1" n 40 1000000 >"$TMP/move$i" 2>"$TMP/move$i.err" &
		movers+=("$!")
	done
	PIDS+=("${movers[@]}")
	for ((i = 0; i < WRITERS; i++)); do
		more "move$i"
	done
}

stop_writers() {
	kill -9 "${movers[@]}"
	wait "${movers[@]}" 2>/dev/null || true
}

# sum_of PATH: leaves it in $sum.
sum_of() {
	expect 0 "$client" sum "$1" n 40
	sum=$(<"$TMP/out")
}

# round PATH
round() {
	local before i
	sum_of "$1"
	before=$sum
	writers "$1"
	expect 0 "$AQUIFER" ns flush "$1" --freeze
	for ((i = 0; i < WRITERS; i++)); do
		more "move$i"
	done
	stop_writers
	expect 0 "$AQUIFER" ns load "$1" --back
	sum_of "$1"
	if ((sum > before || sum < before - WRITERS)); then
		fail "$before before, and the image has $sum"
	fi
}

up_with_folder
expect 0 "$AQUIFER" ns mkdir /one --keep
expect 0 "$AQUIFER" ns mkdir /two --keep --copies 2
for name in one two; do
	"$client" fill "/$name/kv" filler 40 12000 >/dev/null || fail "no filler"
	until_name "/$name/kv" 'd["blocks"] > 5'
	round "/$name/kv"
	round "/$name/kv"
	expect 0 "$client" check "/$name/kv" filler 40 12000
	echo "ok: /$name, $sum on its way"
done

# A queue: what waits is there, in order, and a consumer that waits gets on.
seq 200 | "$AQUIFER" queue put /one/q - --block 64K >/dev/null
expect 0 "$AQUIFER" ns flush /one/q --freeze
expect 0 "$AQUIFER" queue get /one/q
expect 0 "$AQUIFER" ns load /one/q --back
expect 0 "$AQUIFER" queue get /one/q
[ "$(<"$TMP/out")" = 1 ] || fail "$(<"$TMP/out")"

# The vault fails: the flush does, and writers go on.
writers /one/kv
mv "$TMP/vault" "$TMP/away"
touch "$TMP/vault"
expect 1 "$AQUIFER" ns flush /one/kv --freeze
for ((i = 0; i < WRITERS; i++)); do
	more "move$i"
done
stop_writers
rm "$TMP/vault"
mv "$TMP/away" "$TMP/vault"
expect 0 "$AQUIFER" ns flush /one/kv --freeze
echo "ok: a vault that fails"
expect 0 "$AQUIFER" down
