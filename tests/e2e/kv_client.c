/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a table, linked with libaquifer only.
 *	kv_client work TABLE SEED SECONDS	changes and reads keys at random
 *	kv_client store TABLE COUNT		makes keys
 *	kv_client churn TABLE COUNT SECONDS	writes those anew, and inserts
 *						and deletes others meanwhile
 *	kv_client check TABLE COUNT		whether they are there, and
 *right Every value says which key it belongs to and is filled from its number,
 *so a torn or foreign one shows. Prints "ready", and at the end what it did.
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
	/* One that waited for a larger table for as long as it may. */
	if (err == -ENOSPC && strstr(aq_last_error(), "still grows"))
		err = 0;
	return err && err != -ENOENT ? fail("step", err) : 0;
}

static int work(struct aq_kv_client *c, int seconds)
{
	struct timespec now, end;
	struct aq_kv_stats s;
	uint64_t stale = 0, steps = 0;

	printf("ready\n");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
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
	return 0;
}

static int store(struct aq_kv_client *c, uint32_t key)
{
	static uint8_t value[VALUE_MAX];
	size_t len = make_value(key, value);

	return aq_kv_put(c, &key, sizeof(key), value, len, NULL);
}

static int store_all(struct aq_kv_client *c, uint32_t count)
{
	int err = 0;

	for (uint32_t key = 0; key < count && !err; key++)
		err = store(c, key);
	return err ? fail("store", err) : 0;
}

/* Inserts into a table that is nearly full move other keys about. */
static int churn(struct aq_kv_client *c, uint32_t count, int seconds)
{
	struct timespec now, end;
	int err;

	printf("ready\n");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += seconds;
	do {
		uint32_t other = count + (uint32_t)draw(count / 8);

		switch (draw(4)) {
		case 0:
			err = store(c, (uint32_t)draw(count));
			break;
		case 1:
			err = aq_kv_del(c, &other, sizeof(other));
			break;
		default:
			err = store(c, other);
		}
		if (err && err != -ENOENT && err != -ENOSPC && err != -ESTALE &&
		    err != -ETIMEDOUT)
			return fail("churn", err);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	return 0;
}

static int check_all(struct aq_kv_client *c, uint32_t count)
{
	static uint8_t value[VALUE_MAX];
	uint32_t missing = 0, wrong = 0;
	size_t len = 0;

	for (uint32_t key = 0; key < count; key++) {
		int err = aq_kv_get(c, &key, sizeof(key), value, sizeof(value),
				    &len);

		if (err && err != -ENOENT)
			return fail("check", err);
		missing += err != 0;
		wrong += !err && check_value(key, value, len);
	}
	if (missing || wrong)
		fprintf(stderr, "%u keys are missing, %u are wrong\n", missing,
			wrong);
	return missing || wrong;
}

static int run(struct aq_kv_client *c, int argc, char **argv)
{
	uint32_t number = (uint32_t)strtoul(argv[3], NULL, 10);

	state = number * 0x9e3779b97f4a7c15u + 1;
	if (argc == 5 && strcmp(argv[1], "work") == 0)
		return work(c, atoi(argv[4]));
	if (argc == 5 && strcmp(argv[1], "churn") == 0)
		return churn(c, number, atoi(argv[4]));
	if (argc == 4 && strcmp(argv[1], "store") == 0)
		return store_all(c, number);
	return argc == 4 && strcmp(argv[1], "check") == 0 ? check_all(c, number)
							  : 2;
}

int main(int argc, char **argv)
{
	struct aq_kv_client *c;
	struct aq_rack *rack;
	struct aq_kv *kv;
	int err;

	if (argc < 4)
		return 2;
	err = aq_rack_open(NULL, &rack);
	if (err || (err = aq_kv_open(rack, argv[2], &kv)) ||
	    (err = aq_kv_client_open(kv, NULL, &c)))
		return fail("open", err);
	err = run(c, argc, argv);
	aq_kv_client_close(c);
	aq_kv_close(kv);
	aq_rack_close(rack);
	return err;
}
