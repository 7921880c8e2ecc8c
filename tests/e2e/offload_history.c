/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application whose threads read and write the same few words of a region
 * with the asynchronous interface, and write down what they call and what they
 * get, as JSON lines for `aquifer sim check`.
 */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	THREADS = 4,
	WINDOW = 2,
	WORDS = 6,
	STEP = 4096 + 64, /* bytes between words: over both nodes */
	GIVE_UP_S = 20,
};

/* What all threads share; the lock orders the lines. */
struct log {
	pthread_mutex_t lock;
	FILE *out;
	unsigned next_process;
};

struct flight {
	int64_t id; /* 0: none */
	int is_write;
	unsigned word;
	unsigned process;
	uint64_t value;
};

struct worker {
	pthread_t thread;
	struct aq_rack *rack;
	const char *region;
	struct log *log;
	unsigned index;
	double end_s;
	uint64_t state, values, done;
	int bad;
};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Every second thread's engine maps what it reads. */
static const struct aq_async_options *options(unsigned thread)
{
	static const struct aq_async_options plain,
		direct = {.flags = AQ_ASYNC_DIRECT};

	return thread % 2 ? &direct : &plain;
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

static void note(struct log *l, const struct flight *f, const char *type)
{
	pthread_mutex_lock(&l->lock);
	fprintf(l->out,
		"{\"process\":%u,\"type\":\"%s\",\"f\":\"%s\",\"key\":%u,"
		"\"value\":%llu,\"time\":%.0f}\n",
		f->process, type, f->is_write ? "write" : "read", f->word,
		(unsigned long long)f->value, now_s() * 1e9);
	pthread_mutex_unlock(&l->lock);
}

static unsigned new_process(struct log *l)
{
	unsigned n;

	pthread_mutex_lock(&l->lock);
	n = l->next_process++;
	pthread_mutex_unlock(&l->lock);
	return n;
}

/* The line is written before the request can have an effect. */
static void begin(struct worker *w, struct aq_async *a, uint32_t region,
		  struct flight *f)
{
	uint64_t offset;

	f->is_write = next_random(&w->state) % 2 == 0;
	f->word = (unsigned)(next_random(&w->state) % WORDS);
	f->value = f->is_write ? ++w->values * THREADS + w->index : 0;
	offset = (uint64_t)f->word * STEP;
	note(w->log, f, "invoke");
	f->id = f->is_write ? aq_async_write(a, region, offset, &f->value, 8)
			    : aq_async_read(a, region, offset, &f->value, 8);
	if (f->id > 0)
		return;
	if (f->id != -EAGAIN && f->id != -EHOSTDOWN)
		w->bad = (int)f->id;
	f->id = 0;
	note(w->log, f, "fail"); /* it was not taken at all */
}

static int finish(struct worker *w, struct aq_async *a, struct flight *f)
{
	int r = aq_async_done(a, f->id);

	if (r == 0)
		return 0;
	f->id = 0;
	if (r == 1) {
		note(w->log, f, "ok");
		w->done++;
		return 1;
	}
	/* Nobody knows what became of a write that failed. */
	note(w->log, f, f->is_write ? "info" : "fail");
	if (f->is_write)
		f->process = new_process(w->log);
	w->bad = r; /* no memory node dies here */
	return 1;
}

static void run(struct worker *w, struct aq_async *a, uint32_t region)
{
	struct flight f[WINDOW] = {{0}};
	const struct timespec pause = {0, 200000};
	double give_up_s = w->end_s + GIVE_UP_S;
	unsigned open = 0;

	for (unsigned i = 0; i < WINDOW; i++)
		f[i].process = new_process(w->log);
	do {
		open = 0;
		for (unsigned i = 0; i < WINDOW; i++) {
			if (f[i].id && !finish(w, a, &f[i])) {
				open++;
			} else if (now_s() < w->end_s && !w->bad) {
				begin(w, a, region, &f[i]);
				open += f[i].id != 0;
			}
		}
		/* Few requests say enough, and the machine has others. */
		nanosleep(&pause, NULL);
	} while ((open || now_s() < w->end_s) && now_s() < give_up_s);
	if (open)
		w->bad = -ETIMEDOUT;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct aq_region *region;
	struct aq_async *a;
	int n;

	w->bad = aq_region_open(w->rack, w->region, 0, &region);
	if (w->bad)
		return NULL;
	/* The engine may be down at this very moment. */
	do {
		w->bad = aq_async_open(w->rack, options(w->index), &a);
	} while ((w->bad == -EHOSTDOWN || w->bad == -ENOENT) &&
		 now_s() < w->end_s + GIVE_UP_S && usleep(10000) == 0);
	if (!w->bad) {
		do {
			n = aq_async_add(a, region);
		} while (n == -EHOSTDOWN && now_s() < w->end_s + GIVE_UP_S &&
			 usleep(10000) == 0);
		if (n < 0)
			w->bad = n;
		else
			run(w, a, (uint32_t)n);
		aq_async_close(a);
	}
	aq_region_close(region);
	return NULL;
}

int main(int argc, char **argv)
{
	struct log log = {PTHREAD_MUTEX_INITIALIZER, NULL, 0};
	struct worker w[THREADS];
	struct aq_rack *rack;
	uint64_t done = 0;
	int bad = 0;

	if (argc != 4 || aq_rack_open(NULL, &rack))
		return 2;
	log.out = fopen(argv[3], "w");
	if (!log.out)
		return 2;
	for (unsigned i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.rack = rack,
				       .region = argv[1],
				       .log = &log,
				       .index = i,
				       .end_s = now_s() + atof(argv[2]),
				       .state = i + 1};
		if (pthread_create(&w[i].thread, NULL, work, &w[i]))
			return 2;
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(w[i].thread, NULL);
		done += w[i].done;
		if (w[i].bad)
			fprintf(stderr, "thread %u: %s\n", i,
				aq_strerror(w[i].bad));
		bad |= w[i].bad;
	}
	aq_rack_close(rack);
	printf("%llu requests\n", (unsigned long long)done);
	return fclose(log.out) || bad ? 1 : 0;
}
