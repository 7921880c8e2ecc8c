/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes that go on while this thread does something else: an engine
 * of the rack moves the data. Needs a rack with an engine: aquifer up.
 *
 *	cc async.c $(pkg-config --cflags --libs aquifer) -o async && ./async
 */
#include <aquifer/aquifer.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	COUNT = 16,
	WAIT_US = 5000000,
};

/* Waits for all COUNT requests of the group. */
static int wait_all(struct aq_poll *poll)
{
	struct aq_response done[COUNT];
	int n = aq_poll_wait(poll, done, COUNT, WAIT_US);

	for (int i = 0; i < n; i++)
		if (done[i].err)
			return done[i].err;
	if (n < 0)
		return n;
	return n == COUNT ? 0 : -1; /* the time was over */
}

static int use(struct aq_async *a, uint32_t region)
{
	uint64_t squares[COUNT], sum = 0;
	struct aq_poll *poll;
	int err = aq_poll_create(a, &poll);

	if (err)
		return err;
	for (uint64_t i = 0; i < COUNT && !err; i++) {
		uint64_t square = i * i; /* copied at once */

		err = aq_poll_add(
			poll, aq_async_write(a, region, 64 * i, &square, 8));
	}
	if (!err)
		err = wait_all(poll);
	for (uint64_t i = 0; i < COUNT && !err; i++)
		err = aq_poll_add(
			poll, aq_async_read(a, region, 64 * i, &squares[i], 8));
	/* Here is the time for something else. */
	if (!err)
		err = wait_all(poll);
	for (int i = 0; i < COUNT && !err; i++)
		sum += squares[i];
	if (!err)
		printf("sum of squares: %" PRIu64 "\n", sum);
	aq_poll_destroy(poll);
	return err;
}

int main(void)
{
	struct aq_region *region = NULL;
	struct aq_async *a = NULL;
	struct aq_rack *rack;
	int number, err = aq_rack_open(NULL, &rack);

	if (err) {
		fprintf(stderr, "%s\n", aq_last_error());
		return 1;
	}
	err = aq_region_create(rack, "example", 1 << 20, NULL, &region);
	if (!err)
		err = aq_async_open(rack, NULL, &a);
	if (!err) {
		number = aq_async_add(a, region);
		err = number < 0 ? number : use(a, (uint32_t)number);
	}
	aq_async_close(a);
	if (region) {
		aq_region_close(region);
		(void)aq_region_delete(rack, "example");
	}
	if (err)
		fprintf(stderr, "%s (%s)\n", aq_strerror(err), aq_last_error());
	aq_rack_close(rack);
	return err ? 1 : 0;
}
