/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic_helper.h"

#include <aquifer/aquifer.h>
#include <aquifer/elastic.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "elastic_bench.h"
#include "place.h"
#include "shield.h"
#include "ticks.h"

enum {
	LISTEN_MS = 2000,
	SPLIT_VALUE = 1024,
	SPLIT_PUTS = 1 << 17, /* at most */
};

/* ---- in the helper ------------------------------------------------------- */

void elastic_helper_say(int fd)
{
	(void)!write(fd, "", 1);
}

void elastic_helper_note(struct elastic_shared *s, const void *data)
{
	uint64_t sent_ns, now_ns = bench_now_ns();

	memcpy(&sent_ns, data, sizeof(sent_ns));
	s->ns[s->heard++] = (uint32_t)u64_min(now_ns - sent_ns, UINT32_MAX);
}

static int watch(struct elastic_shared *s, struct aq_rack *rack, int out)
{
	struct aq_watch_options o = {.events = 1u << AQ_EVENT_PUT};
	struct aq_watch *w = NULL;
	struct aq_event e;
	int err = aq_watch_open(rack, s->path, &o, &w);

	elastic_helper_say(out);
	while (!err && s->heard + s->lost < s->count) {
		err = aq_watch_next(w, &e, LISTEN_MS);
		if (!err && e.kind == AQ_EVENT_LOST)
			s->lost += e.value;
		else if (!err)
			elastic_helper_note(s, e.data);
	}
	aq_watch_close(w);
	return err;
}

/* "message", the channel and what was published, which is ELASTIC_VALUE bytes:
 * they end the message, but for two. */
static int subscribe(struct elastic_shared *s, int out)
{
	static const char ask[] = "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n";
	static const char head[] = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$64\r\n";
	enum {
		WHOLE = sizeof(head) - 1 + ELASTIC_VALUE + 2
	};
	char in[64 * WHOLE];
	pid_t none = getpid(); /* it is there */
	size_t got = 0;
	int fd = -1, err = place_dial(s->path, &none, &fd);

	if (!err && (write(fd, ask, sizeof(ask) - 1) < 0 ||
		     read(fd, in, sizeof(in)) <= 0))
		err = -EIO;
	elastic_helper_say(out);
	while (!err && s->heard < s->count) {
		ssize_t n = read(fd, in + got, sizeof(in) - got);

		if (n <= 0)
			err = error_set(-EIO, "redis-server is gone");
		else
			got += (size_t)n;
		while (!err && got >= WHOLE) {
			elastic_helper_note(s, in + sizeof(head) - 1);
			memmove(in, in + WHOLE, got - WHOLE);
			got -= WHOLE;
		}
	}
	if (fd >= 0)
		(void)close(fd);
	return err;
}

static int split(struct elastic_shared *s, struct aq_rack *rack, int out)
{
	struct aq_ekv_stat stat = {0};
	static char value[SPLIT_VALUE];
	struct aq_ekv *kv = NULL;
	uint64_t longest = 0;
	int err = aq_ekv_open(rack, s->path, NULL, &kv);

	elastic_helper_say(out);
	for (unsigned i = 0; !err && stat.blocks < 2 && i < SPLIT_PUTS; i++) {
		uint64_t start = bench_now_ns(), end;
		char key[16];
		size_t len = (size_t)snprintf(key, sizeof(key), "s%u", i);

		err = aq_ekv_put(kv, key, len, value, sizeof(value), AQ_EKV_ANY,
				 NULL);
		end = bench_now_ns();
		if (end - start > longest) {
			longest = end - start;
			s->split_start_ns = start;
			s->split_end_ns = end;
			if (!err)
				err = aq_ekv_stat(kv, &stat);
		}
	}
	aq_ekv_close(kv);
	return err;
}

static int work(struct elastic_shared *s, int out)
{
	struct aq_rack *rack = NULL;
	int err;

	s->heard = 0;
	s->lost = 0;
	s->why[0] = '\0';
	if (s->job == ELASTIC_SUBSCRIBE)
		return subscribe(s, out);
	if (s->job == ELASTIC_SUBSCRIBE_MANY)
		return elastic_listen_subscribe(s, out);
	err = place_rack(&rack);
	if (!err)
		err = s->job == ELASTIC_WATCH ? watch(s, rack, out)
		      : s->job == ELASTIC_WATCH_MANY
			      ? elastic_listen_watch(s, rack, out)
			      : split(s, rack, out);
	else
		elastic_helper_say(out);
	if (rack)
		aq_rack_close(rack);
	return err;
}

static void live(struct elastic_shared *s, int in, int out)
{
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)shield_pin(SHIELD_CPU_CLIENT);
	(void)shield_enter_nice();
	while (read(in, &byte, 1) == 1) {
		int err = work(s, out);

		if (err)
			(void)snprintf(s->why, sizeof(s->why), "%s",
				       error_last()[0] ? error_last()
						       : strerror(-err));
		elastic_helper_say(out);
	}
	_exit(0);
}

/* ---- in the benchmark ---------------------------------------------------- */

int elastic_helper_start(struct elastic_helper *h)
{
	int to[2], from[2];

	*h = (struct elastic_helper){.to = -1, .from = -1};
	h->shared = mmap(NULL, sizeof(*h->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (h->shared == MAP_FAILED || pipe(to) < 0 || pipe(from) < 0)
		return error_set(-errno, "no second process: %s",
				 strerror(errno));
	h->pid = fork();
	if (h->pid == 0) {
		(void)close(to[1]);
		(void)close(from[0]);
		live(h->shared, to[0], from[1]);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	h->to = to[1];
	h->from = from[0];
	return h->pid < 0 ? error_set(-errno, "no second process: %s",
				      strerror(errno))
			  : 0;
}

void elastic_helper_end(struct elastic_helper *h)
{
	if (h->to >= 0)
		(void)close(h->to);
	if (h->from >= 0)
		(void)close(h->from);
	if (h->pid > 0 && kill(h->pid, SIGKILL) == 0)
		(void)waitpid(h->pid, NULL, 0);
	if (h->shared && h->shared != MAP_FAILED)
		(void)munmap(h->shared, sizeof(*h->shared));
}

static int await(struct elastic_helper *h)
{
	char byte;

	return read(h->from, &byte, 1) == 1
		       ? 0
		       : error_set(-EIO, "the second process is gone");
}

int elastic_helper_begin(struct elastic_helper *h)
{
	elastic_helper_say(h->to);
	return await(h);
}

bool elastic_helper_is_done(const struct elastic_helper *h)
{
	struct pollfd fd = {.fd = h->from, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

int elastic_helper_wait(struct elastic_helper *h)
{
	int err = await(h);

	return !err && h->shared->why[0] ? error_set(-EIO, "%s", h->shared->why)
					 : err;
}
