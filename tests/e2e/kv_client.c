/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a table, linked with libaquifer only.
 *	kv_client work TABLE SEED SECONDS	changes and reads keys at random
 * Every value says which key it belongs to and is filled from its number, so a
 * torn or foreign one shows. Prints "ready", and at the end what it did.
 */
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	KEYS = 200,
	VALUE_MAX = 3000,
};

static uint64_t state;

static uint64_t draw(uint64_t bound)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % bound;
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %d %s\n", what, err, aq_last_error());
	return 1;
}

static size_t make_value(uint32_t key, uint8_t *out)
{
	size_t len = 12 + (draw(3) ? draw(20) : draw(VALUE_MAX - 12)), i;
	uint32_t number = (uint32_t)draw(1u << 31), size = (uint32_t)len;

	memcpy(out, &key, 4);
	memcpy(out + 4, &number, 4);
	memcpy(out + 8, &size, 4);
	for (i = 12; i < len; i++)
		out[i] = (uint8_t)(number + i * 3);
	return len;
}

static int check_value(uint32_t key, const uint8_t *v, size_t len)
{
	uint32_t its_key, number, size;
	size_t i;

	if (len < 12)
		return -1;
	memcpy(&its_key, v, 4);
	memcpy(&number, v + 4, 4);
	memcpy(&size, v + 8, 4);
	if (its_key != key || size != len)
		return -1;
	for (i = 12; i < len; i++)
		if (v[i] != (uint8_t)(number + i * 3))
			return -1;
	return 0;
}

static int step(struct aq_kv_client *c, uint64_t *stale)
{
	static uint8_t value[VALUE_MAX];
	uint32_t key = (uint32_t)draw(KEYS);
	size_t len = 0;
	int err;

	switch (draw(4)) {
	case 0:
		len = make_value(key, value);
		err = aq_kv_put(c, &key, sizeof(key), value, len, NULL);
		break;
	case 1:
		err = aq_kv_del(c, &key, sizeof(key));
		break;
	default:
		err = aq_kv_get(c, &key, sizeof(key), value, sizeof(value),
				&len);
		if (!err && check_value(key, value, len))
			return fail("a torn or foreign value", (int)key);
	}
	/* Taken for dead on a busy machine: allowed, and survived. */
	if (err == -ESTALE || err == -ETIMEDOUT) {
		++*stale;
		err = 0;
	}
	return err && err != -ENOENT ? fail("step", err) : 0;
}

int main(int argc, char **argv)
{
	struct timespec now, end;
	struct aq_kv_client *c;
	struct aq_kv_stats s;
	struct aq_rack *rack;
	struct aq_kv *kv;
	uint64_t stale = 0, steps = 0;
	int err;

	if (argc != 5 || strcmp(argv[1], "work") != 0)
		return 2;
	state = strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
	err = aq_rack_open(NULL, &rack);
	if (err || (err = aq_kv_open(rack, argv[2], &kv)) ||
	    (err = aq_kv_client_open(kv, NULL, &c)))
		return fail("open", err);
	printf("ready\n");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += atoi(argv[4]);
	do {
		for (int i = 0; i < 100; i++, steps++)
			if (step(c, &stale))
				return 1;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	aq_kv_client_stats(c, &s);
	printf("%llu steps, %llu repairs, %llu stale\n",
	       (unsigned long long)steps, (unsigned long long)s.repairs,
	       (unsigned long long)stale);
	aq_kv_client_close(c);
	aq_kv_close(kv);
	aq_rack_close(rack);
	return 0;
}
