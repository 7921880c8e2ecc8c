/* SPDX-License-Identifier: Apache-2.0 */
/* An application of the asynchronous interface, for the offload_* tests: one
 * scenario per run, chosen by the first word. Knows only the public header. */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	THREADS_MAX = 8,
	SHARE = 1 << 16, /* bytes of the region that a thread has for itself */
	WINDOW = 64,
	LEN_MAX = 600,
	WAIT_US = 20 * 1000000,
	DEADLINE_MS = 30 * 1000,
};

static int fail(const char *what, long long err)
{
	fprintf(stderr, "%s: %lld: %s (%s)\n", what, err,
		err < 0 ? aq_strerror((int)err) : "", aq_last_error());
	return 1;
}

/* Every second thread's engine maps what it reads. */
static const struct aq_async_options *options(unsigned thread)
{
	static const struct aq_async_options plain,
		direct = {.flags = AQ_ASYNC_DIRECT};

	return thread % 2 ? &direct : &plain;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* ---- random requests against a model ------------------------------------ */

struct worker {
	struct aq_rack *rack;
	const char *region;
	unsigned index;
	double seconds;
	const char *until; /* a file that ends it, or NULL: seconds do */
	uint64_t done;
	int bad;
};

struct op {
	int64_t id;
	size_t len;
	uint8_t want[LEN_MAX];
	uint8_t got[LEN_MAX];
};

/* Waits for one completion and checks it. */
static int finish(struct aq_poll *poll, struct op *ops, unsigned *pending,
		  double deadline)
{
	struct aq_response r[WINDOW];
	int n;

	/* Without an engine for a while: the requests stay. */
	do {
		n = aq_poll_wait(poll, r, 1, WAIT_US);
		if (n == -EHOSTDOWN)
			usleep(10000);
	} while (n == -EHOSTDOWN && now_s() < deadline);
	if (n != 1)
		return fail("poll_wait", n);
	if (r[0].err)
		return fail("a request", r[0].err);
	for (unsigned i = 0; i < WINDOW; i++) {
		if (ops[i].id != r[0].id)
			continue;
		ops[i].id = 0;
		--*pending;
		if (memcmp(ops[i].want, ops[i].got, ops[i].len) != 0)
			return fail("what was read is not what was written",
				    (long long)r[0].id);
		return 0;
	}
	return fail("an id that was not asked for", (long long)r[0].id);
}

static int issue(struct aq_async *a, struct aq_poll *poll, struct op *op,
		 uint32_t region, uint64_t base, uint8_t *model, uint64_t *rng)
{
	uint64_t len =
		1 + next_random(rng) % (next_random(rng) % 8 ? 64 : LEN_MAX);
	uint64_t at = next_random(rng) % (SHARE - len);

	op->len = len;
	if (next_random(rng) % 2) {
		memcpy(op->want, model + at, len);
		op->id = aq_async_read(a, region, base + at, op->got, len);
	} else {
		for (uint64_t i = 0; i < len; i++)
			op->want[i] = (uint8_t)next_random(rng);
		memcpy(op->got, op->want, len);
		op->id = aq_async_write(a, region, base + at, op->want, len);
		if (op->id > 0)
			memcpy(model + at, op->want, len);
	}
	if (op->id < 0) {
		int err = (int)op->id;

		op->id = 0;
		return err;
	}
	return aq_poll_add(poll, op->id);
}

static bool is_over(const struct worker *w, double end)
{
	return w->until ? access(w->until, F_OK) == 0 : now_s() >= end;
}

static int work(struct worker *w, struct aq_async *a, uint32_t region)
{
	static __thread struct op ops[WINDOW];
	uint64_t rng = w->index + 1, base = (uint64_t)w->index * SHARE;
	uint8_t *model = calloc(1, SHARE);
	double end = now_s() + w->seconds;
	unsigned pending = 0, i;
	struct aq_poll *poll;
	bool over = false;
	int err = aq_poll_create(a, &poll);

	if (err || !model)
		return fail("poll_create", err);
	while (!over || pending) {
		over = over || is_over(w, end);
		for (i = 0; i < WINDOW && ops[i].id; i++)
			;
		if (i < WINDOW && !over) {
			err = issue(a, poll, &ops[i], region, base, model,
				    &rng);
			if (!err) {
				pending++;
				w->done++;
				continue;
			}
			if (err != -EAGAIN && err != -EHOSTDOWN)
				return fail("issue", err);
			if (!pending)
				usleep(1000);
		}
		if (pending && finish(poll, ops, &pending, now_s() + 20))
			return 1;
	}
	if (aq_async_pending(a) != 0)
		return fail("left over", aq_async_pending(a));
	/* The region itself says the same. */
	for (uint64_t at = 0; at < SHARE; at += LEN_MAX) {
		uint64_t len = SHARE - at < LEN_MAX ? SHARE - at : LEN_MAX;
		int64_t id =
			aq_async_read(a, region, base + at, ops[0].got, len);

		while (id > 0 && (err = aq_async_done(a, id)) == 0)
			usleep(10);
		if (id < 0 || err != 1)
			return fail("the last look", id < 0 ? id : err);
		if (memcmp(ops[0].got, model + at, len) != 0)
			return fail("the region is not what was written",
				    (long long)at);
	}
	aq_poll_destroy(poll);
	free(model);
	return 0;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct aq_region *region;
	struct aq_async *a;
	int err = aq_region_open(w->rack, w->region, 0, &region), number = 0;
	double deadline = now_s() + 10;

	w->bad = 1;
	if (err) {
		fail("open", err);
		return NULL;
	}
	/* The engine may be down at this very moment. */
	do {
		err = aq_async_open(w->rack, options(w->index), &a);
	} while ((err == -EHOSTDOWN || err == -ENOENT) && now_s() < deadline &&
		 usleep(10000) == 0);
	do {
		number = err ? 0 : aq_async_add(a, region);
	} while (number == -EHOSTDOWN && now_s() < deadline &&
		 usleep(10000) == 0);
	aq_region_close(region); /* not needed any more */
	if (err || number < 0) {
		fail("async_open", err ? err : number);
		return NULL;
	}
	w->bad = work(w, a, (uint32_t)number);
	aq_async_close(a);
	return NULL;
}

static int many(struct aq_rack *rack, const char *region, unsigned threads,
		const char *how_long)
{
	const char *until = how_long[0] == '/' ? how_long : NULL;
	struct worker w[THREADS_MAX];
	pthread_t thread[THREADS_MAX];
	uint64_t done = 0;
	int bad = 0;

	/* On a busy machine a node takes its time; that is no error here. */
	if (aq_rack_set_deadline(rack, DEADLINE_MS))
		return fail("deadline", 0);
	for (unsigned i = 0; i < threads; i++) {
		w[i] = (struct worker){rack,  region, i, atof(how_long),
				       until, 0,      1};
		pthread_create(&thread[i], NULL, worker_main, &w[i]);
	}
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		bad |= w[i].bad;
		done += w[i].done;
	}
	printf("%llu requests\n", (unsigned long long)done);
	return bad;
}

/* ---- misuse ------------------------------------------------------------- */

static int expect(const char *what, long long got, long long want)
{
	return got == want ? 0 : fail(what, got);
}

static int misuse(struct aq_rack *rack, const char *name)
{
	struct aq_async_options bad = {.requests = 17};
	struct aq_async_options odd = {.flags = 1u << 31};
	struct aq_async_options none = {.engine = "nobody"};
	struct aq_async_options small = {
		.requests = 16, .read_bytes = 4096, .write_bytes = 4096};
	static uint8_t buf[8192];
	struct aq_region *region, *ro;
	struct aq_response r[16];
	struct aq_poll *poll;
	struct aq_async *a;
	int64_t id, first = 0;
	int err = 0, n, n_ro, k;

	err |= expect("options", aq_async_open(rack, &bad, &a), -EINVAL);
	err |= expect("flags", aq_async_open(rack, &odd, &a), -EINVAL);
	err |= expect("engine's name", aq_async_open(rack, &none, &a), -ENOENT);
	err |= expect("open", aq_region_open(rack, name, 0, &region), 0);
	err |= expect("open",
		      aq_region_open(rack, name, AQ_REGION_READ_ONLY, &ro), 0);
	err |= expect("async_open", aq_async_open(rack, &small, &a), 0);
	if (err)
		return 1;
	err |= expect("no region yet", aq_async_read(a, 0, 0, buf, 8), -EBADF);
	n = aq_async_add(a, region);
	n_ro = aq_async_add(a, ro);
	if (n < 0 || n_ro != n + 1)
		return fail("add", n < 0 ? n : n_ro);
	err |= expect("region", aq_async_read(a, 7, 0, buf, 8), -EBADF);
	err |= expect("end",
		      aq_async_read(a, (uint32_t)n, aq_region_size(region) - 7,
				    buf, 8),
		      -ERANGE);
	err |= expect("oversize", aq_async_write(a, (uint32_t)n, 0, buf, 2049),
		      -EMSGSIZE);
	err |= expect("nothing", aq_async_write(a, (uint32_t)n, 0, buf, 0),
		      -EMSGSIZE);
	err |= expect("read-only", aq_async_write(a, (uint32_t)n_ro, 0, buf, 8),
		      -EACCES);
	err |= expect("poll", aq_poll_create(a, &poll), 0);
	err |= expect("never issued", aq_poll_add(poll, 5), -EINVAL);
	err |= expect("an error", aq_poll_add(poll, -EAGAIN), -EINVAL);
	err |= expect("never issued", aq_async_done(a, 5), -EINVAL);
	/* Full at some point, and never more than 16. */
	for (k = 0; k < 100000; k++) {
		id = aq_async_read(a, (uint32_t)n_ro, 0, buf, 8);
		if (id < 0)
			break;
		if (!first)
			first = id;
	}
	err |= expect("full", id, -EAGAIN);
	err |= expect("added", aq_poll_add(poll, first), 0);
	err |= expect("added twice", aq_poll_add(poll, first), -EEXIST);
	err |= expect("removed", aq_poll_remove(poll, first), 0);
	err |= expect("removed twice", aq_poll_remove(poll, first), -ENOENT);
	err |= expect("an empty group", aq_poll_wait(poll, r, 16, WAIT_US), 0);
	err |= expect("added", aq_poll_add(poll, first), 0);
	err |= expect("waited", aq_poll_wait(poll, r, 16, WAIT_US), 1);
	err |= expect("the id", r[0].id, first);
	aq_poll_destroy(poll);
	aq_async_close(a);
	aq_region_close(ro);
	aq_region_close(region);
	return err;
}

/* ---- faults ------------------------------------------------------------- */

/* One request, from issue to its end; prints its error's name and the time. */
static int one(struct aq_async *a, struct aq_poll *poll, uint32_t region,
	       const char *what)
{
	struct aq_response r;
	uint64_t value = 0;
	double start = now_s();
	int64_t id = aq_async_read(a, region, 0, &value, 8);
	int n = 0, err;

	if (id > 0) {
		aq_poll_add(poll, id);
		n = aq_poll_wait(poll, &r, 1, WAIT_US);
		if (n < 0)
			aq_poll_remove(poll, id);
	}
	err = id < 0 ? (int)id : n < 0 ? n : n == 1 ? r.err : -ETIME;
	printf("%s %s %.2f\n", what, err ? strerrorname_np(-err) : "0",
	       now_s() - start);
	fflush(stdout);
	return err;
}

static void add_again(struct aq_async *a, struct aq_region *region)
{
	double start = now_s();
	int n = aq_async_add(a, region);

	printf("add %s %.2f\n", n < 0 ? strerrorname_np(-n) : "0",
	       now_s() - start);
	fflush(stdout);
}

/* For every line on stdin: one request; "add" adds the region once more. */
static int lines(struct aq_rack *rack, const char *name, uint32_t deadline_ms)
{
	struct aq_region *region;
	struct aq_poll *poll;
	struct aq_async *a;
	char line[64];
	int n, err = aq_region_open(rack, name, 0, &region);

	if (!err && deadline_ms)
		err = aq_rack_set_deadline(rack, deadline_ms);
	if (!err)
		err = aq_async_open(rack, NULL, &a);
	if (err)
		return fail("open", err);
	n = aq_async_add(a, region);
	err = n < 0 ? n : aq_poll_create(a, &poll);
	if (err)
		return fail("add", err);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "add") == 0)
			add_again(a, region);
		else
			(void)one(a, poll, (uint32_t)n, line);
	}
	aq_poll_destroy(poll);
	aq_async_close(a);
	aq_region_close(region);
	return 0;
}

/* Prints the name of the error that opening gives, and how long that took. */
static int open_only(struct aq_rack *rack)
{
	double start = now_s();
	struct aq_async *a;
	int err = aq_async_open(rack, NULL, &a);

	printf("%s %.2f\n", err ? strerrorname_np(-err) : "0", now_s() - start);
	if (err)
		fail("open", err);
	else
		aq_async_close(a);
	return 0;
}

/* What a child may do with what it inherited: nothing, but without a crash. */
static int forked(struct aq_rack *rack, const char *name, unsigned direct)
{
	struct aq_region *region;
	struct aq_response r;
	struct aq_poll *poll;
	struct aq_async *a;
	uint64_t value;
	int64_t id;
	int status, n, err = aq_region_open(rack, name, 0, &region);

	if (!err)
		err = aq_async_open(rack, options(direct), &a);
	n = err ? err : aq_async_add(a, region);
	err = n < 0 ? n : aq_poll_create(a, &poll);
	if (err)
		return fail("open", err);
	id = aq_async_read(a, (uint32_t)n, 0, &value, 8);
	aq_poll_add(poll, id);
	if (fork() == 0) {
		err = expect("read",
			     aq_async_read(a, (uint32_t)n, 0, &value, 8),
			     -ESTALE);
		err |= expect("done", aq_async_done(a, id), -ESTALE);
		err |= expect("wait", aq_poll_wait(poll, &r, 1, 1000), -ESTALE);
		err |= expect("add", aq_async_add(a, region), -ESTALE);
		aq_async_close(a);
		_exit(err);
	}
	if (wait(&status) < 0 || status != 0)
		return fail("the child", status);
	err = expect("the parent", aq_poll_wait(poll, &r, 1, WAIT_US), 1);
	aq_poll_destroy(poll);
	aq_async_close(a);
	aq_region_close(region);
	return err;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct aq_rack *rack;
	int err = aq_rack_open(NULL, &rack);

	if (err)
		return fail("rack_open", err);
	if (strcmp(what, "many") == 0 && argc == 5)
		err = many(rack, argv[2], (unsigned)atoi(argv[3]), argv[4]);
	else if (strcmp(what, "misuse") == 0 && argc == 3)
		err = misuse(rack, argv[2]);
	else if (strcmp(what, "lines") == 0 && (argc == 3 || argc == 4))
		err = lines(rack, argv[2],
			    argc == 4 ? (uint32_t)atoi(argv[3]) : 0);
	else if (strcmp(what, "fork") == 0 && argc == 3)
		err = forked(rack, argv[2], 0) || forked(rack, argv[2], 1);
	else if (strcmp(what, "open") == 0)
		err = open_only(rack);
	else
		err = fail("which scenario?", 0);
	aq_rack_close(rack);
	return err;
}
