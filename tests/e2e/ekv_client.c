/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of an elastic key-value store, for tests that kill it.
 *
 *	ekv_client fill PATH NAME COUNT BYTES	puts NAME0, NAME1 ..., prints
 *"put KEY" ekv_client check PATH NAME COUNT BYTES	gets them, once each
 *	ekv_client drop PATH NAME FROM TO	deletes them
 *	ekv_client count PATH NAME KEYS ROUNDS	adds 1 to each of NAME0 ...,
 *round by round, prints "added N"
 *	ekv_client sum PATH NAME KEYS		prints the sum of their numbers
 *	ekv_client move PATH NAME KEYS ROUNDS	takes 1 from one of them and
 *						gives it to another, "moved N"
 *	ekv_client edges PATH			limits of keys and values
 */
#include <aquifer/elastic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                             \
	do {                                                           \
		if (!(condition)) {                                    \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, \
				#condition, aq_last_error());          \
			exit(1);                                       \
		}                                                      \
	} while (0)

static struct aq_rack *rack;
static struct aq_ekv *kv;
static char value[4 << 20], got[4 << 20];

static size_t name_key(char *key, const char *name, unsigned i)
{
	return (size_t)snprintf(key, 100, "%.40s%u", name, i);
}

static void fill_value(const char *key, size_t bytes)
{
	memset(value, key[strlen(key) - 1], bytes);
	snprintf(value, sizeof(value), "%s", key);
}

static void fill(const char *name, unsigned count, size_t bytes)
{
	char key[100];

	for (unsigned i = 0; i < count; i++) {
		size_t n = name_key(key, name, i);

		fill_value(key, bytes);
		REQUIRE(aq_ekv_put(kv, key, n, value, bytes, AQ_EKV_ANY,
				   NULL) == 0);
		printf("put %s\n", key);
		fflush(stdout);
	}
}

static void check(const char *name, unsigned count, size_t bytes)
{
	struct aq_ekv_entry entry;
	struct aq_ekv_scan *scan;
	unsigned seen = 0;
	char key[100];
	size_t len;
	int err;

	for (unsigned i = 0; i < count; i++) {
		size_t n = name_key(key, name, i);

		fill_value(key, bytes);
		REQUIRE(aq_ekv_get(kv, key, n, got, sizeof(got), &len, NULL) ==
			0);
		REQUIRE(len == bytes && memcmp(got, value, bytes) == 0);
	}
	REQUIRE(aq_ekv_scan_begin(kv, &scan) == 0);
	while (!(err = aq_ekv_scan_next(scan, &entry)))
		seen += !strncmp(entry.key, name, strlen(name));
	REQUIRE(err == -ENODATA);
	aq_ekv_scan_end(scan);
	if (seen != count) {
		fprintf(stderr, "%u keys instead of %u\n", seen, count);
		exit(1);
	}
}

static void drop(const char *name, unsigned from, unsigned to)
{
	char key[100];

	for (unsigned i = from; i < to; i++) {
		size_t n = name_key(key, name, i);

		REQUIRE(aq_ekv_delete(kv, key, n, AQ_EKV_ANY) == 0);
		REQUIRE(aq_ekv_get(kv, key, n, got, sizeof(got), &n, NULL) ==
			-ENOENT);
	}
}

static void count(const char *name, unsigned keys, unsigned rounds)
{
	unsigned n = 0;
	char key[100];

	for (unsigned r = 0; r < rounds; r++)
		for (unsigned i = 0; i < keys; i++) {
			REQUIRE(aq_ekv_add(kv, key, name_key(key, name, i),
					   AQ_EKV_SUM, 1, NULL) == 0);
			printf("added %u\n", ++n);
			fflush(stdout);
		}
}

static void add(const char *name, unsigned i, int64_t n)
{
	char key[100];

	REQUIRE(aq_ekv_add(kv, key, name_key(key, name, i), AQ_EKV_SUM, n,
			   NULL) == 0);
}

static void move(const char *name, unsigned keys, unsigned rounds)
{
	for (unsigned r = 0; r < rounds; r++) {
		add(name, (unsigned)rand() % keys, -1);
		add(name, (unsigned)rand() % keys, 1);
		printf("moved %u\n", r);
		fflush(stdout);
	}
}

static void sum(const char *name, unsigned keys)
{
	int64_t all = 0, one;
	char key[100];

	for (unsigned i = 0; i < keys; i++) {
		REQUIRE(aq_ekv_add(kv, key, name_key(key, name, i), AQ_EKV_SUM,
				   0, &one) == 0);
		all += one;
	}
	printf("%lld\n", (long long)all);
}

static void edges(void)
{
	size_t key_max = aq_ekv_key_max(kv), len;
	uint64_t value_max = aq_ekv_value_max(kv, 3), version, again;
	char *key = malloc(key_max + 1);

	REQUIRE(key);
	memset(key, 'k', key_max + 1);
	REQUIRE(key_max == 64 << 10);
	REQUIRE(value_max < sizeof(value));
	memset(value, 'v', sizeof(value));
	/* The longest key, with a value, and one byte more. */
	REQUIRE(aq_ekv_put(kv, key, key_max, value, 100, AQ_EKV_ANY, NULL) ==
		0);
	REQUIRE(aq_ekv_get(kv, key, key_max, got, sizeof(got), &len, NULL) ==
		0);
	REQUIRE(len == 100 && !memcmp(got, value, len));
	REQUIRE(aq_ekv_put(kv, key, key_max + 1, "", 0, AQ_EKV_ANY, NULL) ==
		-EMSGSIZE);
	REQUIRE(aq_ekv_get(kv, key, key_max + 1, got, 1, &len, NULL) ==
		-EMSGSIZE);
	REQUIRE(aq_ekv_get(kv, "", 0, got, 1, &len, NULL) == -EINVAL);
	/* The largest value, and one byte more. It has no room beside the key,
	 * so that the block is split. */
	REQUIRE(aq_ekv_put(kv, "abc", 3, value, value_max, AQ_EKV_ANY,
			   &version) == 0);
	REQUIRE(aq_ekv_put(kv, "abc", 3, value, value_max + 1, AQ_EKV_ANY,
			   NULL) == -EMSGSIZE);
	REQUIRE(aq_ekv_get(kv, "abc", 3, got, 10, &len, NULL) == -EMSGSIZE);
	REQUIRE(len == value_max);
	REQUIRE(aq_ekv_get(kv, "abc", 3, got, sizeof(got), &len, &again) == 0);
	REQUIRE(len == value_max && again == version);
	REQUIRE(!memcmp(got, value, len));
	/* Versions. */
	REQUIRE(aq_ekv_put(kv, "abc", 3, "x", 1, AQ_EKV_ABSENT, NULL) ==
		-EEXIST);
	REQUIRE(aq_ekv_put(kv, "abc", 3, "x", 1, version + 1, NULL) ==
		-ECANCELED);
	REQUIRE(aq_ekv_put(kv, "abc", 3, "x", 1, version, &again) == 0);
	REQUIRE(again > version);
	REQUIRE(aq_ekv_add(kv, "abc", 3, AQ_EKV_SUM, 1, NULL) == -EINVAL);
	REQUIRE(aq_ekv_delete(kv, "abc", 3, version) == -ECANCELED);
	REQUIRE(aq_ekv_delete(kv, "abc", 3, again) == 0);
	REQUIRE(aq_ekv_delete(kv, "abc", 3, AQ_EKV_ANY) == -ENOENT);
	free(key);
}

int main(int argc, char **argv)
{
	struct aq_elastic_options options = {.flags = AQ_ELASTIC_CREATE};
	const char *bytes = getenv("EKV_BLOCK");
	unsigned a = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	unsigned b = argc > 5 ? (unsigned)atoi(argv[5]) : 0;

	options.block_bytes = bytes ? (uint64_t)atoll(bytes) : 0;
	if (argc < 3)
		return 2;
	REQUIRE(aq_rack_open(NULL, &rack) == 0);
	(void)aq_rack_set_deadline(rack, 60000);
	REQUIRE(aq_ekv_open(rack, argv[2], &options, &kv) == 0);
	if (strcmp(argv[1], "fill") == 0)
		fill(argv[3], a, b);
	else if (strcmp(argv[1], "check") == 0)
		check(argv[3], a, b);
	else if (strcmp(argv[1], "drop") == 0)
		drop(argv[3], a, b);
	else if (strcmp(argv[1], "count") == 0)
		count(argv[3], a, b);
	else if (strcmp(argv[1], "move") == 0)
		move(argv[3], a, b);
	else if (strcmp(argv[1], "sum") == 0)
		sum(argv[3], a);
	else
		edges();
	aq_ekv_close(kv);
	aq_rack_close(rack);
	return 0;
}
