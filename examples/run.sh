#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program with more memory than it is given: sort has 64 MB of lines, and 16 MB
# of this machine. Needs a rack (aquifer up), and root.
#
#	sudo sh run.sh
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

seq 1000000 | shuf >"$work/lines"
aquifer run --local 16M --stats -- sort -S 64M "$work/lines" \
	>"$work/sorted" 2>"$work/report"
# What was in far memory at most, and that nothing of it was lost.
grep -E 'resident_peak|far_peak|lost_pages' "$work/report"
LC_ALL=C sort "$work/lines" >"$work/want"
LC_ALL=C sort "$work/sorted" | cmp - "$work/want"
sort -c "$work/sorted"
echo "sorted: $(wc -l <"$work/sorted") lines"
