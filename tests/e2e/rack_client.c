/* SPDX-License-Identifier: Apache-2.0 */
/* An application of libaquifer, for the rack_* tests: one scenario per run,
 * chosen by the first word. Knows only the public header. */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	THREADS = 4,
	HANG_THREADS = 16,
	ROUNDS = 500,
	PATTERN_BYTES = 1 << 20,
};

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %d: %s (%s)\n", what, err, aq_last_error(),
		aq_strerror(err));
	return 1;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Writes, reads back, swaps and adds. */
static int basic(struct aq_rack *rack, const char *name)
{
	unsigned char *a = malloc(PATTERN_BYTES), *b = malloc(PATTERN_BYTES);
	struct aq_region_stat stat;
	struct aq_region *r;
	uint64_t old = 1;
	int err = aq_region_open(rack, name, 0, &r);

	if (err)
		return fail("open", err);
	for (size_t i = 0; i < PATTERN_BYTES; i++)
		a[i] = (unsigned char)(i * 7 + i / 65536);
	err = aq_write(r, 4096 + 3, a, PATTERN_BYTES);
	if (!err)
		err = aq_read(r, 4096 + 3, b, PATTERN_BYTES);
	if (err)
		return fail("write and read", err);
	if (memcmp(a, b, PATTERN_BYTES) != 0)
		return fail("what was read is not what was written", 0);
	memset(a, 0, 8);
	err = aq_write(r, 0, a, 8);
	if (!err)
		err = aq_cas(r, 0, 0, 40, &old);
	if (err || old != 0)
		return fail("cas", err);
	err = aq_faa(r, 0, 2, &old);
	if (err || old != 40)
		return fail("faa", err);
	err = aq_cas(r, 0, 1, 2, &old);
	if (err || old != 42)
		return fail("failing cas", err);
	err = aq_region_stat(r, &stat);
	if (err || stat.size_bytes != aq_region_size(r))
		return fail("stat", err);
	aq_region_close(r);
	free(a);
	free(b);
	return 0;
}

/* One operation; prints the name of its error. */
static int code(struct aq_rack *rack, const char *name, const char *op,
		const char *argument)
{
	unsigned long long at = strtoull(argument, NULL, 0);
	struct aq_region *r = NULL;
	uint64_t word = 0;
	double start;
	int err = 0;

	if (strcmp(op, "create") == 0)
		err = aq_region_create(rack, name, at, NULL, &r);
	else
		err = aq_region_open(
			rack, name,
			strcmp(op, "write-ro") == 0 ? AQ_REGION_READ_ONLY : 0,
			&r);
	start = now_s();
	if (!err && strncmp(op, "write", 5) == 0)
		err = aq_write(r, at, &word, 8);
	else if (!err && strncmp(op, "read", 4) == 0)
		err = aq_read(r, at, &word, 8);
	else if (!err && strcmp(op, "faa") == 0)
		err = aq_faa(r, at, 1, &word);
	else if (!err && strcmp(op, "resize") == 0)
		err = aq_region_resize(r, at);
	aq_region_close(r);
	printf("%s %.3f\n", err ? strerrorname_np(-err) : "0", now_s() - start);
	if (err)
		fprintf(stderr, "%s\n", aq_last_error());
	return 0;
}

/* The node dies between two lines of stdin, and is back after the next. */
static int death(struct aq_rack *rack, const char *name)
{
	struct aq_region *r, *window, *fresh;
	char line[16];
	uint64_t v = 1;
	double start;
	int err = aq_region_open(rack, name, 0, &r);

	if (!err)
		err = aq_write(r, 0, &v, 8);
	if (!err)
		err = aq_region_open(rack, name, AQ_REGION_READ_ONLY, &window);
	if (!err)
		err = aq_read(window, 0, &v, 8);
	if (err)
		return fail("before", err);
	puts("ready");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	/* A window is not mapped here: frames go out and nobody answers. */
	start = now_s();
	err = aq_read(window, 0, &v, 8);
	printf("%s %.3f\n", err ? strerrorname_np(-err) : "0", now_s() - start);
	/* Memory that is mapped here outlives its node for a moment: until the
	 * heartbeat, a write can still succeed, as one just before would. */
	start = now_s();
	do
		err = aq_write(r, 0, &v, 8);
	while (!err && now_s() < start + 10);
	printf("%s %.3f\n", err ? strerrorname_np(-err) : "0", now_s() - start);
	err = aq_faa(r, 0, 1, &v);
	printf("%s\n", err ? strerrorname_np(-err) : "0");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	err = aq_read(r, 0, &v, 8);
	printf("%s\n", err ? strerrorname_np(-err) : "0");
	err = aq_region_create(rack, name, 1 << 20, NULL, &fresh);
	if (!err)
		err = aq_faa(fresh, 0, 1, &v);
	printf("%s\n", err ? strerrorname_np(-err) : "0");
	aq_region_close(r);
	aq_region_close(window);
	aq_region_close(fresh);
	return err ? fail("after", err) : 0;
}

static void *add_many(void *arg)
{
	uint64_t buf[16];

	for (unsigned i = 0; i < ROUNDS; i++)
		if (aq_faa(arg, 8, 1, NULL) ||
		    aq_read(arg, 4096, buf, sizeof(buf)))
			return arg;
	return NULL;
}

/* Shared handles, own queue pairs. */
static int threads(struct aq_rack *rack, const char *name)
{
	pthread_t t[THREADS];
	struct aq_region *r;
	uint64_t zero = 0, sum = 0;
	void *bad = NULL;
	int err = aq_region_open(rack, name, 0, &r);

	if (!err)
		err = aq_write(r, 8, &zero, 8);
	if (err)
		return fail("open", err);
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, add_many, r))
			return 1;
	for (unsigned i = 0; i < THREADS; i++) {
		void *one;

		pthread_join(t[i], &one);
		bad = one ? one : bad;
	}
	err = aq_read(r, 8, &sum, 8);
	if (bad || err || sum != THREADS * ROUNDS)
		return fail("sum", err);
	aq_region_close(r);
	return 0;
}

struct two {
	struct aq_region *hung, *healthy;
	pthread_barrier_t ready, go;
};

/* Connects to both nodes; later only one of them is of interest. */
static void *use_two(void *arg)
{
	struct two *two = arg;
	uint64_t v = 1;
	int err = aq_write(two->hung, 0, &v, 8);

	if (!err)
		err = aq_write(two->healthy, 0, &v, 8);
	pthread_barrier_wait(&two->ready);
	pthread_barrier_wait(&two->go);
	if (!err)
		err = aq_write(two->healthy, 0, &v, 8);
	return err ? arg : NULL;
}

/* Many connections to each of two nodes, of which one will not answer. */
static int hang(struct aq_rack *rack, const char *hung, const char *healthy)
{
	struct two two;
	pthread_t t[HANG_THREADS];
	char line[16];
	void *bad;
	int err = aq_region_open(rack, hung, 0, &two.hung);
	unsigned failed = 0;

	if (!err)
		err = aq_region_open(rack, healthy, 0, &two.healthy);
	if (err)
		return fail("open", err);
	pthread_barrier_init(&two.ready, NULL, HANG_THREADS + 1);
	pthread_barrier_init(&two.go, NULL, HANG_THREADS + 1);
	for (unsigned i = 0; i < HANG_THREADS; i++)
		if (pthread_create(&t[i], NULL, use_two, &two))
			return 1;
	pthread_barrier_wait(&two.ready);
	printf("%d\n", HANG_THREADS);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	pthread_barrier_wait(&two.go);
	for (unsigned i = 0; i < HANG_THREADS; i++) {
		pthread_join(t[i], &bad);
		failed += bad != NULL;
	}
	printf("%u\n", failed);
	aq_region_close(two.hung);
	aq_region_close(two.healthy);
	return 0;
}

static int child(struct aq_region *inherited, struct aq_rack *old,
		 const char *name)
{
	struct aq_rack *rack;
	struct aq_region *r;
	uint64_t v;
	int err;

	if (aq_read(inherited, 16, &v, 8) != -ESTALE)
		return fail("an inherited region works", 0);
	aq_region_close(inherited);
	aq_rack_close(old);
	err = aq_rack_open(NULL, &rack);
	if (!err)
		err = aq_region_open(rack, name, 0, &r);
	if (!err)
		err = aq_faa(r, 16, 1, NULL);
	if (err)
		return fail("child", err);
	aq_region_close(r);
	aq_rack_close(rack);
	return 0;
}

static int forked(struct aq_rack *rack, const char *name)
{
	uint64_t zero = 0, v = 0;
	struct aq_region *r;
	int status, err = aq_region_open(rack, name, 0, &r);
	pid_t pid;

	if (!err)
		err = aq_write(r, 16, &zero, 8);
	if (err)
		return fail("open", err);
	pid = fork();
	if (pid == 0)
		_exit(child(r, rack, name));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return fail("child", 0);
	err = aq_faa(r, 16, 1, &v);
	if (err || v != 1)
		return fail("parent", err);
	aq_region_close(r);
	return 0;
}

/* Operations for some seconds, for `aquifer top` to see. */
static int busy(struct aq_rack *rack, const char *name, double seconds)
{
	double end = now_s() + seconds;
	struct aq_region *r;
	char buf[64];
	int err = aq_region_open(rack, name, 0, &r);

	if (err)
		return fail("open", err);
	puts("ready");
	while (!err && now_s() < end) {
		struct timespec pause = {.tv_nsec = 1000000};

		for (unsigned i = 0; i < 10 && !err; i++)
			err = aq_read(r, 64 * i, buf, sizeof(buf));
		nanosleep(&pause, NULL);
	}
	aq_region_close(r);
	return err ? fail("read", err) : 0;
}

/* The rack of the settings and another one at once, with a region of the same
 * name in each. */
static int two(struct aq_rack *first, const char *second)
{
	struct aq_rack *rack[2] = {first, NULL};
	struct aq_region *region[2];
	uint64_t word, sum[2];
	int err = aq_rack_open(second, &rack[1]);

	if (err)
		return fail("the second rack", err);
	for (unsigned i = 0; i < 2; i++) {
		err = aq_region_create(rack[i], "r", 1 << 20, NULL, &region[i]);
		if (err)
			return fail("create", err);
	}
	for (uint64_t n = 0; n < 64; n++)
		for (unsigned i = 0; i < 2; i++) {
			word = n << 8 | i;
			err = aq_write(region[i], 4096 * n, &word, 8);
			if (!err)
				err = aq_faa(region[i], 8, i + 1, NULL);
			if (err)
				return fail("write", err);
		}
	for (uint64_t n = 1; n < 64; n++)
		for (unsigned i = 0; i < 2; i++)
			if (aq_read(region[i], 4096 * n, &word, 8) ||
			    word != (n << 8 | i))
				return fail("read", 0);
	for (unsigned i = 0; i < 2; i++) {
		if (aq_read(region[i], 8, &sum[i], 8) || sum[i] != 64 * (i + 1))
			return fail("sum", 0);
		aq_region_close(region[i]);
	}
	/* The first goes on without the second. */
	aq_rack_close(rack[1]);
	err = aq_region_open(first, "r", 0, &region[0]);
	if (err || aq_read(region[0], 4096, &word, 8) || word != 1 << 8)
		return fail("the first rack alone", err);
	aq_region_close(region[0]);
	puts("ok");
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	const char *name = argc > 2 ? argv[2] : "r";
	struct aq_rack *rack;
	int result, err = aq_rack_open(NULL, &rack);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (err && strcmp(verb, "code") == 0) {
		printf("%s 0\n", strerrorname_np(-err));
		fprintf(stderr, "%s\n", aq_last_error());
		return 0;
	}
	if (err)
		return fail("aq_rack_open", err);
	if (getenv("DEADLINE_MS") &&
	    aq_rack_set_deadline(rack, (uint32_t)atoi(getenv("DEADLINE_MS"))) !=
		    0)
		return fail("deadline", 0);
	if (strcmp(verb, "basic") == 0)
		result = basic(rack, name);
	else if (strcmp(verb, "death") == 0)
		result = death(rack, name);
	else if (strcmp(verb, "threads") == 0)
		result = threads(rack, name);
	else if (strcmp(verb, "two") == 0)
		result = two(rack, name);
	else if (strcmp(verb, "fork") == 0)
		result = forked(rack, name);
	else if (strcmp(verb, "busy") == 0 && argc > 3)
		result = busy(rack, name, atof(argv[3]));
	else if (strcmp(verb, "hang") == 0 && argc > 3)
		result = hang(rack, name, argv[3]);
	else if (strcmp(verb, "code") == 0 && argc > 4)
		result = code(rack, name, argv[3], argv[4]);
	else
		result = fail("unknown scenario", 0);
	aq_rack_close(rack);
	return result;
}
