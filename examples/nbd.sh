#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A disk in far memory, for whatever speaks NBD (qemu, fio, nbd-client): a file is
# copied onto it and back. The disk ends with its server. Needs a rack (aquifer
# up), nbdkit, and nbdcopy of libnbd-bin.
#
#	sh nbd.sh
#
# nbdkit finds the plugin by its name where Debian's package has installed it;
# elsewhere AQUIFER_NBD_PLUGIN is its path.
set -eu
plugin=${AQUIFER_NBD_PLUGIN:-aquifer}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

head -c 8388608 /dev/urandom >"$work/file"
# nbdkit starts its server on a socket that only this command sees: $uri.
# shellcheck disable=SC2016 # nbdkit's shell knows it
WORK=$work nbdkit "$plugin" size=16M name=nbd-example --run '
	nbdinfo --size "$uri"
	nbdcopy "$WORK/file" "$uri"
	nbdcopy "$uri" "$WORK/back"'
head -c 8388608 "$work/back" | cmp - "$work/file"
echo "8 MB went to the rack and came back"
