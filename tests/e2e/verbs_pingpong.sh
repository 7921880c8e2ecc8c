#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One ibv_*_pingpong of Debian; its words are the arguments.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"

pingpong "$@"
