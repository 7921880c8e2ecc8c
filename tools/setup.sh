# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by run.sh and test.sh: packages, steps, and nothing else.

# need_packages GROUP...: installs what is missing from tools/packages.txt.
# apt is not touched when everything is there.
need_packages() {
	local group name pattern=" $* " missing=() sudo=()
	while read -r group name; do
		[[ $pattern == *" $group "* ]] || continue
		[[ $(dpkg-query -W -f='${Status}' "$name" 2>/dev/null) == \
			"install ok installed" ]] || missing+=("$name")
	done < <(grep -v '^#' tools/packages.txt)
	((${#missing[@]})) || return 0
	if ((EUID != 0)); then
		if ! command -v sudo >/dev/null; then
			echo "Missing packages; run as root or install them:" \
				"apt-get install ${missing[*]}" >&2
			return 1
		fi
		sudo=(sudo)
	fi
	echo "installing: ${missing[*]}"
	local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
		-o Dpkg::Use-Pty=0)
	"${apt[@]}" update
	"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# configure DIR OPTION...: sets a build folder up once.
configure() {
	local dir=$1
	shift
	[[ -f $dir/build.ninja ]] || meson setup "$dir" "$@"
}
