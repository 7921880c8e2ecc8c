#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What programs do with their mappings, through libc and past it, has the same
# effect on far memory as on any other.
# shellcheck source=tests/e2e/run_lib.sh
source "$(dirname "$0")/run_lib.sh"
MAPPING=$2

for play in removed raced moved unmapped advice forked storm; do
	same 2M "$MAPPING" "$play" 8
	report 'd["stored"] > 500'
	echo "ok: $play"
done
