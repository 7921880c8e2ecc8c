/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region of far memory: make it, write and read it, and take a lock in it
 * with a compare-and-swap. Needs a rack: aquifer up.
 *
 *	cc region.c $(pkg-config --cflags --libs aquifer) -o region && ./region
 */
#include <aquifer/aquifer.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	TEXT_AT = 4096,
	LOCK_AT = 0, /* divisible by 8, as all atomics */
};

static int use(struct aq_region *region)
{
	static const char text[] = "hello from another machine's memory";
	char got[sizeof(text)];
	uint64_t owner = 7, old;
	int err = aq_write(region, TEXT_AT, text, sizeof(text));

	if (!err)
		err = aq_read(region, TEXT_AT, got, sizeof(got));
	if (err)
		return err;
	printf("read: %s\n", got);
	/* A new region is all zeros, so the lock is free. */
	for (int i = 0; i < 2; i++) {
		err = aq_cas(region, LOCK_AT, 0, owner, &old);
		if (err)
			return err;
		if (old == 0)
			printf("locked by %" PRIu64 "\n", owner);
		else
			printf("already locked by %" PRIu64 "\n", old);
	}
	return aq_faa(region, LOCK_AT + 8, 1, NULL); /* a counter */
}

int main(void)
{
	struct aq_region *region = NULL;
	struct aq_rack *rack;
	int err = aq_rack_open(NULL, &rack);

	if (err) {
		fprintf(stderr, "%s\n", aq_last_error());
		return 1;
	}
	err = aq_region_create(rack, "example", 1 << 20, NULL, &region);
	if (!err) {
		err = use(region);
		aq_region_close(region);
		if (!err)
			err = aq_region_delete(rack, "example");
	}
	if (err)
		fprintf(stderr, "%s\n", aq_last_error());
	aq_rack_close(rack);
	return err ? 1 : 0;
}
