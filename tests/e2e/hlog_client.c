/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store on far memory of a rack, for a script that kills it:
 *	hlog_client DEVICE load N	fills it, syncs, says so, and goes on
 *					changing values until it is killed
 *	hlog_client DEVICE check N	recovers it and checks every value
 * DEVICE is sync, async or cow.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <aquifer/aquifer.h>

#include "hlog/hlog.h"

enum {
	VALUE = 64,
	REGION_BYTES = 48 << 20,
	PAGE = 16 << 10,
	SHARDS = 2,
};

struct rig {
	struct aq_rack *rack;
	struct aq_region *region;
	struct hlog_device *device;
	struct hlog *store;
	struct hlog_session *session;
};

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s (%s)\n", what, strerror(-rc), aq_last_error());
	exit(1);
}

static int link_open(void *ctx, const struct client_link_options *opt,
		     struct client_link **out)
{
	return client_link_open(ctx, "hlog", opt, out);
}

static void link_close(void *ctx, struct client_link *link)
{
	client_link_close(link);
}

static void open_device(struct rig *r, const char *kind)
{
	struct hlog_verbs_options vo = {
		.links = {.open = link_open, .close = link_close},
		.size_bytes = REGION_BYTES,
		.batch = 100,
		.is_sync = strcmp(kind, "sync") == 0,
		.rights = CLIENT_LINK_WRITE,
	};
	int rc;

	must(aq_rack_open(NULL, &r->rack), "rack");
	rc = aq_region_open(r->rack, "hlog", 0, &r->region);
	if (rc == -ENOENT)
		rc = aq_region_create(r->rack, "hlog", REGION_BYTES, NULL,
				      &r->region);
	must(rc, "region");
	vo.links.ctx = r->rack;
	must(strcmp(kind, "cow") == 0
		     ? hlog_device_cow_create(r->rack, r->region, NULL,
					      &r->device)
		     : hlog_device_verbs_create(&vo, &r->device),
	     "device");
}

static void make_value(uint64_t *v, uint64_t key, uint64_t version)
{
	for (unsigned i = 0; i < VALUE / 8; i++)
		v[i] = key * 1000003 + version * 16 + i;
	v[0] = version;
}

static void put(struct rig *r, uint64_t key, uint64_t version)
{
	uint64_t value[VALUE / 8];
	struct hlog_done done[16];
	int rc;

	make_value(value, key, version);
	while ((rc = hlog_upsert(r->session, key, value, VALUE)) == -EAGAIN)
		must(hlog_poll(r->session, done, 16), "poll");
	must(rc, "upsert");
}

static void load(struct rig *r, uint64_t count)
{
	for (uint64_t k = 0; k < count; k++)
		put(r, k, 1);
	must(hlog_sync(r->session), "sync");
	printf("synced\n");
	fflush(stdout);
	for (uint64_t version = 2;; version++)
		for (uint64_t k = 0; k < count; k += 1 + version % 7)
			put(r, k, version);
}

/* Answers whether the value is newer than what was synced. */
static bool check_value(const void *bytes, uint64_t key)
{
	uint64_t value[VALUE / 8], want[VALUE / 8];

	memcpy(value, bytes, sizeof(value));
	make_value(want, key, value[0]);
	if (value[0] >= 1 && memcmp(value, want, VALUE) == 0)
		return value[0] > 1;
	fprintf(stderr, "key %llu is damaged\n", (unsigned long long)key);
	exit(1);
}

static void check(struct rig *r, uint64_t count)
{
	uint64_t newer = 0, key = 0, ended = 0;

	while (ended < count) {
		struct hlog_done d[16];
		uint64_t value[VALUE / 8];
		uint32_t len = sizeof(value);
		int rc = -EAGAIN;

		if (key < count)
			rc = hlog_read(r->session, key, value, &len, 0);
		if (rc == 0) {
			newer += check_value(value, key);
			ended++;
		}
		if (rc != -EAGAIN) {
			must(rc == -EINPROGRESS ? 0 : rc, "read");
			key++;
			continue;
		}
		rc = hlog_poll(r->session, d, 16);
		must(rc, "poll");
		for (int i = 0; i < rc; i++) {
			must(d[i].err, "far read");
			newer += check_value(d[i].value, d[i].key);
			ended++;
		}
	}
	printf("sound %llu newer %llu\n", (unsigned long long)count,
	       (unsigned long long)newer);
}

int main(int argc, char **argv)
{
	struct hlog_options opt = {.local_bytes = 8 * PAGE * SHARDS,
				   .value_max = VALUE,
				   .page_bytes = PAGE,
				   .shard_count = SHARDS};
	struct hlog_recovery found;
	struct rig r = {0};
	bool is_load;

	if (argc != 4)
		return 2;
	is_load = strcmp(argv[2], "load") == 0;
	open_device(&r, argv[1]);
	opt.device = r.device;
	opt.record_count = strtoull(argv[3], NULL, 10);
	must(is_load ? hlog_create(&opt, &r.store)
		     : hlog_recover(&opt, &found, &r.store),
	     "store");
	if (!is_load)
		printf("recovered pages %llu records %llu\n",
		       (unsigned long long)found.pages,
		       (unsigned long long)found.records);
	must(hlog_session_open(r.store, NULL, &r.session), "session");
	if (is_load)
		load(&r, opt.record_count);
	check(&r, opt.record_count);
	hlog_session_close(r.session);
	hlog_destroy(r.store);
	hlog_device_destroy(r.device);
	aq_region_close(r.region);
	aq_rack_close(r.rack);
	return 0;
}
