#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Walks are made from C, shown and checked; what cannot be one is refused with
# its line; and only compiling needs clang.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "$0")/lib.sh"
need clang cc

cd "$TMP"
says() {
	grep -qF -- "$1" "$TMP/err" || fail "not '$1': $(cat "$TMP/err")"
}

cp "$AQ_SOURCE/examples/walk_find.c" find.c
expect 0 "$AQUIFER" walk build find.c --json
[[ ! -s $TMP/err ]] || fail "clang complains: $(cat "$TMP/err")"
json "$TMP/out" 'd["walk"] == "find" and d["file"] == "find.walk" and
	d["load_bytes"] == 48 and d["pad_bytes"] == 48 and d["stores"] == 0 and
	0 < d["longest"] <= d["instructions"] < 32 and d["offloaded"] and
	abs(d["compute_ns"] - d["longest"] * 0.4) < 0.01 and d["load_ns"] == 100'
hash=$(json "$TMP/out" 'd["hash"]')

# The same image has the same hash, wherever it comes from.
expect 0 "$AQUIFER" walk check find.walk --json
[[ $(json "$TMP/out" 'd["hash"]') == "$hash" ]] || fail "another hash"
expect 0 "$AQUIFER" walk show find.walk
grep -q ' cmp ' "$TMP/out" || fail "no comparison: $(cat "$TMP/out")"
grep -q ' go ' "$TMP/out" || fail "no end: $(cat "$TMP/out")"
expect 0 "$AQUIFER" walk show find.walk --json
json "$TMP/out" 'len(d["code"]) > 8 and d["walk"] == "find"'

# A node whose instructions take long leaves it to the client.
expect 0 "$AQUIFER" walk check find.walk --step-ns 4 --load-ns 20 --json
json "$TMP/out" 'not d["offloaded"] and d["compute_over_load"] > 0.75'
expect 1 "$AQUIFER" walk check find.walk --longest 3
says "the longest path costs"
echo "ok: build, show, check"

# The bytes in a program are those of the file.
expect 0 "$AQUIFER" walk build find.c --embed
cat >uses.c <<'C'
#include <stdio.h>
#include "find.walk.h"
int main(void)
{
	fwrite(find_walk, 1, sizeof(find_walk), stdout);
	return 0;
}
C
cc -Wall -Wextra -Werror uses.c -o uses
./uses | cmp - find.walk || fail "other bytes"
# The source is a function of this machine, too.
cc -Wall -Wextra -Werror -I "$AQ_SOURCE/include" -c find.c -o native.o
echo "ok: embedded and native"

# Several walks in a file, one of them in two functions.
cat >two.c <<'C'
#include <aquifer/walk_prog.h>
#include "shape.h"
AQ_WALK_INLINE int ends(const struct node *n, struct pad *p)
{
	return n->key == p->key;
}
AQ_WALK_INLINE uint64_t next(const struct node *n, struct pad *p)
{
	return n->next;
}
AQ_WALK_ITERATOR(list, ends, next)
AQ_WALK(mark, struct node *n, struct pad *p)
{
	n->key = p->key;
	return AQ_WALK_DONE;
}
C
mkdir shapes
cat >shapes/shape.h <<'C'
struct node { uint64_t key, next; };
struct pad { uint64_t key; };
C
expect 1 "$AQUIFER" walk build two.c
says "'shape.h' file not found"
expect 1 "$AQUIFER" walk build two.c --include shapes
says "there are several walks; say which with --only NAME: list, mark"
if grep -q "Too many links" "$TMP/err"; then fail "$(cat "$TMP/err")"; fi
expect 1 "$AQUIFER" walk build two.c --include shapes --only none
says "there is no walk 'none'"
expect 0 "$AQUIFER" walk build two.c --include shapes --only list -o list.walk
expect 0 "$AQUIFER" walk build two.c --include shapes --only mark -o m.walk --json
json "$TMP/out" 'd["stores"] == 1 and d["offloaded"] and d["file"] == "m.walk"'
echo "ok: several"

# What cannot be a walk.
cat >bad.c <<'C'
#include <aquifer/walk_prog.h>
struct node { struct node *next; uint64_t key; };
AQ_WALK(bad, const struct node *n, uint64_t *key)
{
	return n->next->key == *key ? AQ_WALK_DONE
				    : AQ_WALK_NEXT(n->next);
}
C
expect 1 "$AQUIFER" walk build bad.c
says "bad.c:5: bad: follows a pointer"
[[ ! -e bad.walk ]] || fail "a walk that cannot be was written"
expect 1 "$AQUIFER" walk build bad.c --json
json "$TMP/err" '"follows a pointer" in d["error"] and d["code"] == 1'
echo 'int main(void) { return none; }' >typo.c
expect 1 "$AQUIFER" walk build typo.c
says "clang does not compile it: typo.c:1"
expect 1 "$AQUIFER" walk build none.c
says "none.c: No such file"
expect 1 "$AQUIFER" walk build uses
says "uses is no object file of a walk"
expect 1 "$AQUIFER" walk build find.c -o /nowhere/find.walk
says "/nowhere/find.walk"
expect 1 "$AQUIFER" walk check bad.c
expect 1 "$AQUIFER" walk show "$TMP"
says "is a folder"
head -c 100 find.walk >short.walk
expect 1 "$AQUIFER" walk check short.walk
says "short.walk: "
echo "ok: refusals"

# Without clang, object files still become walks.
clang -O2 -target bpf -mcpu=v3 -g -I "$AQ_SOURCE/include" -c find.c -o far.o
mkdir empty
expect 1 env PATH="$TMP/empty" "$AQUIFER" walk build find.c
says "apt install clang"
expect 0 env PATH="$TMP/empty" "$AQUIFER" walk build far.o
expect 0 env PATH="$TMP/empty" "$AQUIFER" walk check far.walk
ln -s "$(command -v clang)" empty/clang-14
ln -s "$(command -v ld)" empty/ld
expect 0 env PATH="$TMP/empty" "$AQUIFER" walk build find.c -o again.walk
cmp again.walk find.walk || fail "the other name of clang makes another walk"
echo "ok: clang"
