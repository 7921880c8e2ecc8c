/* SPDX-License-Identifier: Apache-2.0 */
/* Logs with wrong bytes: recovery and reads say so and never crash; devices
 * that fail while a page is written. */
#include "hlog/hlog_priv.h"
#include "hlog_fixture.h"

enum {
	DEVICE_BYTES = 1 << 20,
	PAGE = 4096,
	KEYS = 2000,
};

struct fixture {
	struct hlog_device *device;
	struct hlog_queue *raw;
	uint8_t *block;
	struct hlog_options opt;
	uint8_t *image; /* of the sound device */
};

static void raw_read(struct fixture *f, uint64_t off, void *buf, uint32_t len)
{
	assert_int_equal(hlog_device_read_wait(f->raw, off, buf, len), 0);
}

static void raw_write(struct fixture *f, uint64_t off, const void *buf,
		      uint32_t len)
{
	assert_int_equal(hlog_device_write_wait(f->raw, off, buf, len), 0);
}

/* A device with a synced store of KEYS records in one shard. */
static int setup(void **state)
{
	struct hlog_queue_options qo = {.depth = 4, .read_max = DEVICE_BYTES};
	struct fixture *f = calloc(1, sizeof(*f));
	struct hlog_session *s;
	struct hlog *h;

	assert_non_null(f);
	assert_int_equal(hlog_device_mem_create(DEVICE_BYTES, &f->device), 0);
	f->opt = (struct hlog_options){.device = f->device,
				       .local_bytes = 8 * PAGE,
				       .record_count = KEYS,
				       .value_max = FX_VALUE_MAX,
				       .page_bytes = PAGE,
				       .shard_count = 1};
	assert_int_equal(hlog_create(&f->opt, &h), 0);
	assert_int_equal(hlog_session_open(h, NULL, &s), 0);
	for (uint64_t k = 0; k < KEYS; k++) {
		uint8_t value[64];

		fx_value(value, k, 1, sizeof(value));
		assert_int_equal(
			FX_INSIST(s, hlog_upsert(s, k, value, sizeof(value))),
			0);
	}
	assert_int_equal(hlog_sync(s), 0);
	hlog_session_close(s);
	hlog_destroy(h);
	assert_int_equal(f->device->ops->queue_open(f->device, &qo, &f->raw),
			 0);
	f->image = malloc(DEVICE_BYTES);
	assert_non_null(f->image);
	raw_read(f, 0, f->image, DEVICE_BYTES);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	f->device->ops->queue_close(f->raw);
	hlog_device_destroy(f->device);
	free(f->image);
	free(f);
	return 0;
}

static uint64_t count_pages(struct fixture *f)
{
	struct hlog_recovery found;
	struct hlog *h;

	assert_int_equal(hlog_recover(&f->opt, &found, &h), 0);
	hlog_destroy(h);
	raw_write(f, 0, f->image, DEVICE_BYTES);
	return found.pages;
}

/* Every byte of the first page, and random ones elsewhere. */
static void test_flipped(void **state)
{
	struct fixture *f = *state;
	uint64_t pages = count_pages(f);
	struct hlog_recovery found;
	struct rng r;
	struct hlog *h;

	rng_init(&r, 3);
	for (unsigned i = 0; i < PAGE + 500; i++) {
		uint64_t at = HLOG_SUPER_BYTES + i;
		uint8_t byte;

		if (i >= PAGE)
			at = HLOG_SUPER_BYTES + rng_below(&r, pages * PAGE);
		byte = (uint8_t)(f->image[at] ^ 1u << rng_below(&r, 8));
		raw_write(f, at, &byte, 1);
		assert_int_equal(hlog_recover(&f->opt, &found, &h), 0);
		hlog_destroy(h);
		/* What lies behind a page's last record does not matter. */
		if (found.pages < pages) {
			assert_int_equal(found.damaged_shards, 1);
			assert_int_equal(found.pages,
					 (at - HLOG_SUPER_BYTES) / PAGE);
		}
		if (i < sizeof(struct hlog_page))
			assert_int_equal(found.pages, 0);
		raw_write(f, at, &f->image[at], 1);
		raw_write(f, 0, f->image, HLOG_SUPER_BYTES);
	}
}

static void test_first_block(void **state)
{
	struct fixture *f = *state;
	struct hlog *h;

	for (unsigned i = 0; i < sizeof(struct hlog_super); i++) {
		uint8_t byte = (uint8_t)~f->image[i];
		int rc;

		raw_write(f, i, &byte, 1);
		rc = hlog_recover(&f->opt, NULL, &h);
		assert_true(rc == -EBADMSG || rc == -EPROTONOSUPPORT);
		raw_write(f, i, &f->image[i], 1);
	}
	assert_int_equal(hlog_recover(&f->opt, NULL, &h), 0);
	hlog_destroy(h);
}

/* Whole pages of noise, and pages at the wrong place. */
static void test_pages(void **state)
{
	struct fixture *f = *state;
	uint64_t pages = count_pages(f);
	struct hlog_recovery found;
	uint8_t page[PAGE];
	struct hlog *h;
	struct rng r;

	rng_init(&r, 4);
	for (uint64_t n = 0; n < pages; n++) {
		uint64_t at = HLOG_SUPER_BYTES + n * PAGE;

		if (n % 2)
			memcpy(page,
			       f->image + HLOG_SUPER_BYTES + (n - 1) * PAGE,
			       PAGE);
		else
			rng_fill(&r, page, PAGE);
		raw_write(f, at, page, PAGE);
		assert_int_equal(hlog_recover(&f->opt, &found, &h), 0);
		hlog_destroy(h);
		assert_int_equal(found.pages, n);
		assert_int_equal(found.damaged_shards, 1);
		raw_write(f, 0, f->image, DEVICE_BYTES);
	}
}

/* A sealed page whose records claim anything is still refused. */
static void test_forged(void **state)
{
	struct hlog_page_id id = {.shard = 0, .number = 0};
	struct fixture *f = *state;
	struct hlog_recovery found;
	struct hlog_super sb;
	uint8_t page[PAGE];
	struct hlog_record *rec;
	struct hlog *h;

	memcpy(&sb, f->image, sizeof(sb));
	id.store = le64_get(sb.store);
	memcpy(page, f->image + HLOG_SUPER_BYTES, PAGE);
	rec = (struct hlog_record *)(page + sizeof(struct hlog_page));
	rec->prev = le64_put(hlog_ref_make(8 * PAGE, 88, 1));
	hlog_page_seal(page, 64 + 88, &id);
	raw_write(f, HLOG_SUPER_BYTES, page, PAGE);
	assert_int_equal(hlog_recover(&f->opt, &found, &h), 0);
	hlog_destroy(h);
	assert_int_equal(found.pages, 0);
	assert_int_equal(found.damaged_shards, 1);
	/* A page that was given up by an earlier recovery does not come back:
	 * its generation is too old. */
	raw_write(f, 0, f->image, DEVICE_BYTES);
	memcpy(page, f->image + HLOG_SUPER_BYTES, PAGE);
	assert_int_equal(hlog_page_check(page, PAGE, &id, 0), 0);
	assert_int_equal(hlog_page_check(page, PAGE, &id, 1), -ENOENT);
}

/* Bytes that change under a running store: reads of them fail, others go on. */
static void test_read_damage(void **state)
{
	struct fixture *f = *state;
	struct hlog_session *s;
	uint8_t value[FX_VALUE_MAX];
	uint32_t len;
	struct hlog *h;
	uint8_t byte;
	unsigned bad = 0;

	assert_int_equal(hlog_recover(&f->opt, NULL, &h), 0);
	assert_int_equal(hlog_session_open(h, NULL, &s), 0);
	for (uint64_t at = HLOG_SUPER_BYTES + 64; at < HLOG_SUPER_BYTES + PAGE;
	     at += 88) {
		byte = (uint8_t)~f->image[at + 30];
		raw_write(f, at + 30, &byte, 1);
	}
	for (uint64_t k = 0; k < KEYS; k++) {
		int rc = fx_get(s, k, value, &len);

		if (rc == 0)
			fx_check(value, len, k, 1, 64);
		else
			bad += rc == -EBADMSG;
	}
	assert_true(bad > 40 && bad < 50);
	hlog_session_close(s);
	hlog_destroy(h);
}

static void test_failing_writes(void **state)
{
	struct fixture *f = *state;
	struct fx_late *late = fx_late_create(f->device, 9);
	struct hlog_session *s;
	uint8_t value[64] = {0};
	uint64_t k = 0;
	uint32_t len;
	struct hlog *h;
	int rc;

	f->opt.device = &late->base;
	assert_int_equal(hlog_recover(&f->opt, NULL, &h), 0);
	assert_int_equal(hlog_session_open(h, NULL, &s), 0);
	late->fail_write_ppm = 1000000;
	do
		rc = FX_INSIST(s, hlog_upsert(s, 100000 + k, value, 64));
	while (rc == 0 && ++k < 100000);
	assert_int_equal(rc, -EIO);
	assert_true(k > 100); /* what fits into memory */
	assert_int_equal(hlog_sync(s), -EIO);
	/* Nothing that was accepted is lost while the store lives. */
	for (uint64_t i = 0; i < k; i++) {
		uint8_t got[FX_VALUE_MAX];

		assert_int_equal(fx_get(s, 100000 + i, got, &len), 0);
	}
	hlog_session_close(s);
	hlog_destroy(h);
	hlog_device_destroy(&late->base);
	f->opt.device = f->device;
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_flipped), T(test_first_block), T(test_pages),
		T(test_forged),	 T(test_read_damage), T(test_failing_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
