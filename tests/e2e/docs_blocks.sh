#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs_run.sh finds what is wrong with a page, and takes one that is right.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
[[ -z $AQ_PRELOAD && -n ${AQ_OWN_NET:-} ]] || skip "as docs_run.sh"
need cc pgrep pkg-config
tree=$TMP/tree
mkdir -p "$tree/tests/e2e"
for name in include examples dist docs python; do
	ln -s "$AQ_SOURCE/$name" "$tree"
done
cp "$AQ_SOURCE"/tests/e2e/{docs_blocks.py,docs_page.sh,docs_run.sh,lib.sh} \
	"$tree/tests/e2e"

# page WANT WORDS: what docs_run.sh says of the page on standard input.
page() {
	local status=0
	cat >"$tree/page.md"
	AQ_SOURCE=$tree bash "$tree/tests/e2e/docs_run.sh" page.md \
		>"$TMP/out" 2>&1 || status=$?
	((status != 77)) || skip "$(<"$TMP/out")"
	((status == $1)) || fail "$status instead of $1: $(<"$TMP/out")"
	grep -qF -- "$2" "$TMP/out" || fail "no '$2': $(<"$TMP/out")"
	echo "ok: $2"
}

page 0 "5 blocks ran, 1 are marked" <<'EOF2'
```
x=5
sleep 61234 &
cat <<END
$x apples
END
```
<!-- run: prints -->
```text
5 apples
```
<!-- run: no, takes longer than a life -->
```
sleep 2000000000
```
```c
#include <aquifer/aquifer.h>
#include <stdio.h>
int main(void)
{
	printf("%s, %d of 17.5M\nx\n", aq_strerror(0), 4);
	return 0;
}
```
<!-- run: prints, numbers vary -->
```text
..., 12 of 3.2M
...
```
<!-- run: fails -->
```
false
```
EOF2
# Nothing of a page is left.
! pgrep -f 'sleep 61234' >/dev/null || fail "a job outlived its page"

page 1 "page.md:3: ended with 1: false" <<'EOF2'
```
true
false
true
```
EOF2
page 1 "this does not compile" <<'EOF2'
```c
int main(void) { return aq_nothing(); }
```
EOF2
page 1 "this program ended with 3" <<'EOF2'
```c
int main(void) { return 3; }
```
EOF2
page 1 "this program ended with 1" <<'EOF2'
```python
import nothing
```
EOF2
page 1 "this is not what is printed" <<'EOF2'
```
echo 5 apples
```
<!-- run: prints, numbers vary -->
```text
5 pears
```
EOF2
page 1 "this should have failed" <<'EOF2'
<!-- run: fails -->
```
true
```
EOF2
page 1 "these settings are wrong" <<'EOF2'
```
[nic]
colour = red
```
EOF2
page 1 "a mark that means nothing: no," <<'EOF2'
<!-- run: no, -->
```
true
```
EOF2
page 1 "a text block with commands" <<'EOF2'
```text
aquifer up
```
EOF2
page 1 "nobody runs blocks of cobol" <<'EOF2'
```cobol
```
EOF2
page 1 "no command uses a.txt" <<'EOF2'
<!-- run: file a.txt -->
```text
a
```
EOF2
page 0 "0 blocks ran, 2 are marked" <<'EOF2'
<!-- run page: no, another test runs it -->
```
false
```
<!-- run: prints -->
```text
nothing
```
EOF2
page 1 "a block without an end" <<'EOF2'
```
true
EOF2
