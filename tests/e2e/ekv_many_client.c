/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of operations on an elastic key-value store.
 *
 *	ekv_many_client verbs PATH		what each of a group is told
 *	ekv_many_client mixed PATH		small and large ones in a group
 *	ekv_many_client fill PATH COUNT BYTES	in groups of 200, read back
 *	ekv_many_client count PATH KEYS ROUNDS	adds 1 twice to each of them
 *	ekv_many_client sum PATH KEYS
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

enum {
	GROUP = 200,
	LARGE = 100000,
};

static struct aq_rack *rack;
static struct aq_ekv *kv;

static struct aq_ekv_op op_of(enum aq_ekv_verb verb, const char *key)
{
	return (struct aq_ekv_op){.verb = verb,
				  .key = key,
				  .key_bytes = strlen(key),
				  .version = AQ_EKV_ANY};
}

static struct aq_ekv_op put(const char *key, const char *value)
{
	struct aq_ekv_op op = op_of(AQ_EKV_PUT, key);

	op.value = (void *)(uintptr_t)value;
	op.value_bytes = strlen(value);
	return op;
}

static struct aq_ekv_op get(const char *key, void *out, size_t room)
{
	struct aq_ekv_op op = op_of(AQ_EKV_GET, key);

	op.value = out;
	op.value_bytes = room;
	return op;
}

static struct aq_ekv_op add(const char *key, int64_t number)
{
	struct aq_ekv_op op = op_of(AQ_EKV_ADD, key);

	op.number = number;
	return op;
}

/* Those on one key happen in their order, and each has an answer of its own. */
static void verbs(void)
{
	char a[8], b[8], c[2];
	size_t len;
	struct aq_ekv_op ops[] = {
		get("k", a, sizeof(a)),		 /* 0: is not there yet */
		put("k", "one"),		 /* 1 */
		get("k", a, sizeof(a)),		 /* 2 */
		put("k", "two"),		 /* 3: must not be there */
		put("k", "three"),		 /* 4 */
		get("k", c, sizeof(c)),		 /* 5: too long */
		get("k", b, sizeof(b)),		 /* 6 */
		add("n", 40),			 /* 7 */
		add("n", 2),			 /* 8 */
		add("k", 1),			 /* 9: no number */
		op_of(AQ_EKV_DELETE, "k"),	 /* 10 */
		op_of(AQ_EKV_DELETE, "k"),	 /* 11 */
		op_of(AQ_EKV_DELETE, ""),	 /* 12 */
		op_of((enum aq_ekv_verb)9, "k"), /* 13 */
		get("n", NULL, 0),		 /* 14: how long it is */
	};
	static const int errors[] = {
		-ENOENT, 0,	  0, -EEXIST, 0,       -EMSGSIZE, 0,	    0,
		0,	 -EINVAL, 0, -ENOENT, -EINVAL, -EINVAL,	  -EMSGSIZE};
	const unsigned n = sizeof(ops) / sizeof(ops[0]);

	ops[3].version = AQ_EKV_ABSENT;
	REQUIRE(aq_ekv_many(kv, ops, n) == 0);
	for (unsigned i = 0; i < n; i++)
		if (ops[i].error != errors[i]) {
			fprintf(stderr, "%u: %d instead of %d\n", i,
				ops[i].error, errors[i]);
			exit(1);
		}
	REQUIRE(ops[2].value_bytes == 3 && !memcmp(a, "one", 3));
	REQUIRE(ops[2].version == ops[1].version);
	REQUIRE(ops[4].version > ops[1].version);
	REQUIRE(ops[5].value_bytes == 5);
	REQUIRE(ops[6].value_bytes == 5 && !memcmp(b, "three", 5));
	REQUIRE(ops[7].number == 40 && ops[8].number == 42);
	REQUIRE(ops[14].value_bytes == 8);
	REQUIRE(aq_ekv_many(kv, ops, 0) == 0);
	/* A value that goes inside the answer, for one key. */
	REQUIRE(aq_ekv_get(kv, "n", 1, c, sizeof(c), &len, NULL) == -EMSGSIZE);
	REQUIRE(len == 8);
}

static void mixed(void)
{
	char *large = malloc(LARGE), *got = malloc(LARGE), small[8];
	struct aq_ekv_op ops[6];

	REQUIRE(large && got);
	memset(large, 'l', LARGE);
	ops[0] = put("s", "small");
	ops[1] = op_of(AQ_EKV_PUT, "l");
	ops[1].value = large;
	ops[1].value_bytes = LARGE;
	ops[2] = put("s", "again");
	ops[3] = get("l", got, LARGE);
	ops[4] = get("s", small, sizeof(small));
	ops[5] = get("l", small, sizeof(small));
	REQUIRE(aq_ekv_many(kv, ops, 6) == 0);
	for (unsigned i = 0; i < 5; i++)
		REQUIRE(ops[i].error == 0);
	REQUIRE(ops[3].value_bytes == LARGE && !memcmp(got, large, LARGE));
	REQUIRE(ops[4].value_bytes == 5 && !memcmp(small, "again", 5));
	REQUIRE(ops[5].error == -EMSGSIZE && ops[5].value_bytes == LARGE);
	free(large);
	free(got);
}

static void fill(unsigned count, size_t bytes)
{
	char *value = malloc(GROUP * bytes), *got = malloc(GROUP * bytes);
	static char key[GROUP][16];
	struct aq_ekv_op ops[GROUP];

	REQUIRE(value && got);
	for (unsigned at = 0; at < 2 * count; at += GROUP) {
		bool is_get = at >= count;

		for (unsigned i = 0; i < GROUP; i++) {
			unsigned k = (at + i) % count;

			snprintf(key[i], sizeof(key[i]), "key%u", k);
			memset(value + i * bytes, 'a' + k % 26, bytes);
			ops[i] = is_get ? get(key[i], got + i * bytes, bytes)
					: op_of(AQ_EKV_PUT, key[i]);
			if (!is_get)
				ops[i].value = value + i * bytes;
			ops[i].value_bytes = bytes;
		}
		REQUIRE(aq_ekv_many(kv, ops, GROUP) == 0);
		for (unsigned i = 0; i < GROUP; i++)
			REQUIRE(ops[i].error == 0 &&
				ops[i].value_bytes == bytes);
		REQUIRE(!is_get || !memcmp(value, got, GROUP * bytes));
	}
	free(value);
	free(got);
}

static void count(unsigned keys, unsigned rounds)
{
	char(*key)[16] = calloc(keys, sizeof(*key));
	struct aq_ekv_op *ops = calloc(2 * keys, sizeof(*ops));

	REQUIRE(key && ops);
	for (unsigned i = 0; i < keys; i++)
		snprintf(key[i], sizeof(key[i]), "n%u", i);
	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned i = 0; i < 2 * keys; i++)
			ops[i] = add(key[i / 2], 1);
		REQUIRE(aq_ekv_many(kv, ops, 2 * keys) == 0);
		for (unsigned i = 0; i < 2 * keys; i++)
			REQUIRE(ops[i].error == 0);
		/* Others may have added between the two, never after. */
		for (unsigned i = 0; i < keys; i++)
			REQUIRE(ops[2 * i + 1].number > ops[2 * i].number);
	}
	free(key);
	free(ops);
}

static void sum(unsigned keys)
{
	int64_t all = 0, one;
	char key[16];

	for (unsigned i = 0; i < keys; i++) {
		int n = snprintf(key, sizeof(key), "n%u", i);

		REQUIRE(aq_ekv_add(kv, key, (size_t)n, AQ_EKV_SUM, 0, &one) ==
			0);
		all += one;
	}
	printf("%lld\n", (long long)all);
}

int main(int argc, char **argv)
{
	struct aq_elastic_options options = {.flags = AQ_ELASTIC_CREATE};
	const char *bytes = getenv("EKV_BLOCK");
	unsigned a = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	unsigned b = argc > 4 ? (unsigned)atoi(argv[4]) : 0;

	options.block_bytes = bytes ? (uint64_t)atoll(bytes) : 0;
	if (argc < 3)
		return 2;
	REQUIRE(aq_rack_open(NULL, &rack) == 0);
	REQUIRE(aq_ekv_open(rack, argv[2], &options, &kv) == 0);
	if (strcmp(argv[1], "verbs") == 0)
		verbs();
	else if (strcmp(argv[1], "mixed") == 0)
		mixed();
	else if (strcmp(argv[1], "fill") == 0)
		fill(a, b);
	else if (strcmp(argv[1], "count") == 0)
		count(a, b);
	else
		sum(a);
	aq_ekv_close(kv);
	aq_rack_close(rack);
	return 0;
}
