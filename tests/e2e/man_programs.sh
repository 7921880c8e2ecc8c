#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The programs in the pages of section 3 compile as they stand and do what they
# say, and the pages name no function that the headers do not have.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=tests/e2e/rack_lib.sh
source "$(dirname "$0")/rack_lib.sh"
need cc
[[ -z $AQ_PRELOAD ]] || skip "programs of a reader are not sanitized"

export AQUIFER_RACK_CONTROL=c0 # names of elastic memory are kept there
expect 0 "$AQUIFER" up
for name in elastic kv index shared; do
	page=$AQ_SOURCE/man/aquifer_$name.3.scd
	# scdoc takes two backslashes for one.
	# shellcheck disable=SC2016 # these are no commands
	sed -n '/^# EXAMPLE/,/^# SEE/{/^```/,/^```/{/^```/d;s/\\\\/\\/g;p}}' "$page" \
		>"$TMP/$name.c"
	cc -Wall -Wextra -Werror -I"$AQ_SOURCE/include" "$TMP/$name.c" \
		-L"${AQUIFER%/*}" -laquifer -Wl,-rpath,"${AQUIFER%/*}" \
		-o "$TMP/$name" >"$TMP/out" 2>&1 || fail "$page: $(cat "$TMP/out")"
	# Machines that share memory have tests of their own (coherent_memory).
	[[ $name == shared ]] || expect 0 timeout 60 "$TMP/$name"
	for function in $(grep -o 'aq_[a-z0-9_]*[a-z0-9](' "$page" |
		tr -d '(' | sort -u); do
		grep -qr "\b$function(" "$AQ_SOURCE/include" ||
			fail "$page: there is no $function"
	done
	cp "$TMP/out" "$TMP/$name.out"
done
[[ $(cat "$TMP/elastic.out") == hello ]] || fail "elastic: $(cat "$TMP/elastic.out")"
[[ $(cat "$TMP/kv.out") == 42 ]] || fail "kv: $(cat "$TMP/kv.out")"
[[ $(cat "$TMP/index.out") == "2024-05-17 ann" ]] ||
	fail "index: $(cat "$TMP/index.out")"
