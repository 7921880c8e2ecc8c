/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of each kind that works a little all the time, for tests of what
 * others see of it:
 *
 *	busy_client kv|index|async NAME SECONDS
 */
#include <aquifer/aquifer.h>
#include <aquifer/index.h>
#include <aquifer/kv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	AT_ONCE = 8,
	VALUE_BYTES = 32,
};

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %d: %s (%s)\n", what, err, aq_last_error(),
		aq_strerror(err));
	return 1;
}

/* True, after a pause, until the time is over. */
static int goes_on(time_t end)
{
	const struct timespec pause = {.tv_nsec = 2000000};

	nanosleep(&pause, NULL);
	return time(NULL) < end;
}

/* One by one, and several at once. */
static int busy_kv(struct aq_rack *rack, const char *name, time_t end)
{
	char value[VALUE_BYTES] = "value", buf[VALUE_BYTES];
	struct aq_kv_op op[AT_ONCE];
	struct aq_kv_client *c;
	struct aq_kv *kv;
	size_t len;
	int err = aq_kv_open(rack, name, &kv);

	if (!err)
		err = aq_kv_client_open(kv, NULL, &c);
	if (err)
		return fail("open", err);
	puts("ready");
	do {
		err = aq_kv_put(c, "a", 1, value, sizeof(value), NULL);
		if (!err)
			err = aq_kv_get(c, "a", 1, buf, sizeof(buf), &len);
		for (unsigned i = 0; i < AT_ONCE; i++)
			op[i] = (struct aq_kv_op){.kind = AQ_KV_OP_GET,
						  .key = "a",
						  .key_len = 1,
						  .value = buf,
						  .value_len = sizeof(buf)};
		if (!err)
			err = aq_kv_batch(c, op, AT_ONCE);
	} while (!err && goes_on(end));
	aq_kv_client_close(c);
	aq_kv_close(kv);
	return err ? fail("kv", err) : 0;
}

static int busy_index(struct aq_rack *rack, const char *name, time_t end)
{
	char value[8] = "value", buf[VALUE_BYTES];
	struct aq_index_client *c;
	struct aq_index *x;
	size_t len;
	int err = aq_index_open(rack, name, &x);

	if (!err)
		err = aq_index_client_open(x, NULL, &c);
	if (err)
		return fail("open", err);
	puts("ready");
	do {
		err = aq_index_put(c, "a", 1, value, sizeof(value));
		if (!err)
			err = aq_index_get(c, "a", 1, buf, sizeof(buf), &len);
	} while (!err && goes_on(end));
	aq_index_client_close(c);
	aq_index_close(x);
	return err ? fail("index", err) : 0;
}

static int busy_async(struct aq_rack *rack, const char *name, time_t end)
{
	struct aq_response done[AT_ONCE];
	struct aq_region *region;
	struct aq_async *a;
	struct aq_poll *poll;
	char buf[VALUE_BYTES];
	int r = 0, err = aq_region_open(rack, name, 0, &region);

	if (!err)
		err = aq_async_open(rack, NULL, &a);
	if (!err)
		err = aq_poll_create(a, &poll);
	if (!err)
		r = aq_async_add(a, region);
	if (err || r < 0)
		return fail("open", err ? err : r);
	puts("ready");
	do {
		for (unsigned i = 0; i < AT_ONCE && !err; i++) {
			int64_t id = aq_async_read(a, (uint32_t)r, 64 * i, buf,
						   sizeof(buf));

			err = id < 0 ? (int)id : aq_poll_add(poll, id);
		}
		if (!err)
			err = aq_poll_wait(poll, done, AT_ONCE, 5000000);
		if (err > 0)
			err = 0;
	} while (!err && goes_on(end));
	aq_poll_destroy(poll);
	aq_async_close(a);
	aq_region_close(region);
	return err ? fail("async", err) : 0;
}

int main(int argc, char **argv)
{
	struct aq_rack *rack;
	time_t end;
	int err;

	if (argc != 4)
		return fail("kv|index|async NAME SECONDS", 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	end = time(NULL) + atoi(argv[3]);
	err = aq_rack_open(NULL, &rack);
	if (err)
		return fail("rack", err);
	if (strcmp(argv[1], "kv") == 0)
		err = busy_kv(rack, argv[2], end);
	else if (strcmp(argv[1], "index") == 0)
		err = busy_index(rack, argv[2], end);
	else
		err = busy_async(rack, argv[2], end);
	aq_rack_close(rack);
	return err;
}
