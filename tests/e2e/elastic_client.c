/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A producer, a consumer or a writer that says what it has done, line by line,
 * after it was answered; the script kills it anywhere.
 *
 *	elastic_client put PATH ID COUNT	items "ID N", padded
 *	elastic_client take PATH		until the queue is sealed
 *	elastic_client hold PATH		takes one, and keeps it
 *	elastic_client append PATH ID COUNT	records "ID N", padded
 *	elastic_client many PATH COUNT		puts and gets of many, large
 *						ones
 *	elastic_client seal PATH
 */
#include <aquifer/elastic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	ITEM_MAX = 300000,
	PATIENCE_MS = 60000,
};

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %s (%d)\n", what, aq_last_error(), err);
	return 1;
}

/* Mostly small, sometimes larger than a message. */
static size_t fill(char *buf, const char *id, unsigned n)
{
	size_t len = n % 7 == 3 ? 9000 : 100 + n % 50;

	memset(buf, '.', len);
	buf[snprintf(buf, len, "%s %u", id, n)] = ' ';
	buf[len - 1] = '\n';
	return len;
}

static int put(struct aq_rack *rack, char **argv, char *buf)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_CREATE,
				       .block_bytes = 64 << 10};
	unsigned count = (unsigned)atoi(argv[4]);
	struct aq_queue *q;
	int err = aq_queue_open(rack, argv[2], &o, &q);

	for (unsigned i = 0; i < count && !err; i++) {
		err = aq_queue_put(q, buf, fill(buf, argv[3], i), PATIENCE_MS);
		if (!err)
			printf("put %s %u\n", argv[3], i);
	}
	if (err)
		return fail("put", err);
	aq_queue_close(q);
	return 0;
}

static int take(struct aq_rack *rack, char **argv, char *buf)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_CREATE,
				       .block_bytes = 64 << 10};
	struct aq_taken taken;
	struct aq_queue *q;
	size_t len;
	int err = aq_queue_open(rack, argv[2], &o, &q);

	while (!err) {
		err = aq_queue_take(q, buf, ITEM_MAX, &len, &taken,
				    PATIENCE_MS);
		if (err == -EAGAIN) {
			err = 0;
			continue;
		}
		if (err)
			break;
		buf[len - 1] = 0;
		printf("took %.*s\n", (int)strcspn(buf, "."), buf);
		err = aq_queue_ack(q, &taken);
		if (!err)
			printf("acked %.*s\n", (int)strcspn(buf, "."), buf);
	}
	if (err != -EPIPE)
		return fail("take", err);
	aq_queue_close(q);
	return 0;
}

static int hold(struct aq_rack *rack, char **argv, char *buf)
{
	struct aq_taken taken;
	struct aq_queue *q;
	size_t len;
	int err = aq_queue_open(rack, argv[2], NULL, &q);

	if (!err)
		err = aq_queue_take(q, buf, ITEM_MAX, &len, &taken,
				    PATIENCE_MS);
	if (err)
		return fail("hold", err);
	printf("took %.*s\n", (int)len, buf);
	for (;;)
		(void)pause();
}

static int append(struct aq_rack *rack, char **argv, char *buf)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_CREATE,
				       .block_bytes = 64 << 10};
	unsigned count = (unsigned)atoi(argv[4]);
	struct aq_file *f;
	int err = aq_file_open(rack, argv[2], &o, &f);

	for (unsigned i = 0; i < count && !err; i++) {
		uint64_t offset = 0;

		err = aq_file_append(f, buf, fill(buf, argv[3], i), &offset);
		if (!err)
			printf("appended %s %u %llu\n", argv[3], i,
			       (unsigned long long)offset);
	}
	if (err)
		return fail("append", err);
	aq_file_close(f);
	return 0;
}

static int check(const char *what, size_t a, size_t b)
{
	if (a == b)
		return 0;
	fprintf(stderr, "%s: %zu instead of %zu\n", what, a, b);
	return 1;
}

/* Many at once, and items that are larger than what the library stages. */
static int many(struct aq_rack *rack, char **argv, char *buf)
{
	enum {
		BATCH = 100,
		LARGE = 3 << 20
	};
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_CREATE};
	struct aq_item in[BATCH], out[BATCH];
	unsigned done = 0, got = 0;
	char *large = malloc(2 * LARGE);
	struct aq_queue *q;
	size_t len = 0;
	int bad = 0, err = aq_queue_open(rack, argv[2], &o, &q);

	for (unsigned i = 0; i < BATCH; i++) {
		in[i].data = buf + i * 64;
		in[i].len_bytes = (size_t)snprintf(in[i].data, 64, "n%u", i);
	}
	if (!err)
		err = aq_queue_put_many(q, in, BATCH, 0, &done);
	bad |= check("put_many", done, BATCH);
	while (!err && got < BATCH) {
		unsigned n = 0;

		for (unsigned i = 0; i < BATCH; i++) {
			out[i].data = large + i * 64;
			out[i].len_bytes = 64;
		}
		err = aq_queue_get_many(q, out, BATCH - got, 1000, &n);
		for (unsigned i = 0; i < n; i++)
			bad |= out[i].len_bytes != in[got + i].len_bytes ||
			       memcmp(out[i].data, in[got + i].data,
				      out[i].len_bytes);
		got += n;
	}
	bad |= check("get_many", got, BATCH);
	memset(large, 'x', LARGE);
	large[LARGE - 1] = 'y';
	if (!err)
		err = aq_queue_put(q, large, LARGE, 0);
	if (!err && aq_queue_get(q, buf, 100, &len, 0) != -EMSGSIZE)
		bad |= check("too long", 0, 1);
	bad |= check("its length", len, LARGE);
	if (!err)
		err = aq_queue_get(q, large + LARGE, LARGE, &len, 1000);
	bad |= check("large", len, LARGE);
	bad |= memcmp(large, large + LARGE, LARGE) != 0;
	if (!err &&
	    aq_queue_put(q, large, aq_queue_item_max(q) + 1, 0) != -EMSGSIZE)
		bad |= check("larger than a block", 0, 1);
	if (err)
		return fail("many", err);
	aq_queue_close(q);
	free(large);
	return bad;
}

static int seal(struct aq_rack *rack, char **argv)
{
	struct aq_queue *q;
	int err = aq_queue_open(rack, argv[2], NULL, &q);

	if (!err)
		err = aq_queue_seal(q);
	if (err)
		return fail("seal", err);
	aq_queue_close(q);
	return 0;
}

/* Reads a file twice by one handle, and a line from stdin in between: both are
 * the same. */
static int reread(struct aq_rack *rack, char **argv)
{
	struct aq_file *f = NULL;
	uint64_t size = 0;
	char *data[2] = {NULL, NULL}, line[16];
	size_t got = 0;
	int err = aq_file_open(rack, argv[2], NULL, &f), code;

	if (!err)
		err = aq_file_size(f, &size);
	for (unsigned i = 0; i < 2 && !err; i++) {
		data[i] = malloc(size + 1);
		err = aq_file_read(f, 0, data[i], size, &got);
		if (!err && got != size)
			err = -EIO;
		if (!err && !i) {
			puts("once");
			(void)!fgets(line, sizeof(line), stdin);
		}
	}
	aq_file_close(f);
	code = err ? fail("reread", err) : memcmp(data[0], data[1], size) != 0;
	free(data[0]);
	free(data[1]);
	return code;
}

int main(int argc, char **argv)
{
	char *buf = malloc(ITEM_MAX);
	struct aq_rack *rack;
	int code = 2, err = aq_rack_open(NULL, &rack);

	if (err || !buf || argc < 3)
		return fail("rack", err);
	(void)aq_rack_set_deadline(rack, PATIENCE_MS);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(argv[1], "put") == 0 && argc == 5)
		code = put(rack, argv, buf);
	else if (strcmp(argv[1], "take") == 0)
		code = take(rack, argv, buf);
	else if (strcmp(argv[1], "hold") == 0)
		code = hold(rack, argv, buf);
	else if (strcmp(argv[1], "append") == 0 && argc == 5)
		code = append(rack, argv, buf);
	else if (strcmp(argv[1], "many") == 0)
		code = many(rack, argv, buf);
	else if (strcmp(argv[1], "reread") == 0)
		code = reread(rack, argv);
	else if (strcmp(argv[1], "seal") == 0)
		code = seal(rack, argv);
	aq_rack_close(rack);
	free(buf);
	return code;
}
