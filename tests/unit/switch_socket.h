/* SPDX-License-Identifier: Apache-2.0 */
/* A switch without ports behind a control socket, served by a thread: calls to
 * its programs are real, packets go nowhere. Its clock moves by a millisecond
 * with each call. */
#ifndef AQ_TEST_SWITCH_SOCKET_H
#define AQ_TEST_SWITCH_SOCKET_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/env.h"
#include "base/error.h"
#include "base/json_out.h"
#include "base/rng.h"
#include "switch/tor.h"

struct switch_socket {
	char path[108];
	int fd;
	pthread_t thread;
	atomic_bool stops;
	/* The rest is under the lock. */
	pthread_mutex_t lock;
	struct env env;
	uint64_t now_ns;
	struct rng rng;
	struct tor *tor;
	unsigned run;
	bool hangs;
	const char *options; /* of the program */
};

static uint64_t switch_socket_now(struct env *env)
{
	return container_of(env, struct switch_socket, env)->now_ns;
}

static void switch_socket_random(struct env *env, void *buf, size_t len_bytes)
{
	rng_fill(&container_of(env, struct switch_socket, env)->rng, buf,
		 len_bytes);
}

static const struct env_ops switch_socket_ops = {
	.now_ns = switch_socket_now, .random = switch_socket_random};

/* Another one, which knows nothing. */
static inline void switch_socket_renew(struct switch_socket *s)
{
	struct tor_config cfg = {.env = &s->env, .slot_shift = 24};
	int err;

	pthread_mutex_lock(&s->lock);
	if (s->tor)
		tor_destroy(s->tor);
	err = tor_create(&cfg, &s->tor);
	if (!err)
		err = tor_program_add(s->tor, "coherence",
				      s->options ? s->options : "");
	ASSERT(err == 0);
	s->run++;
	pthread_mutex_unlock(&s->lock);
}

/* Lets the switch work. */
static inline void switch_socket_pass(struct switch_socket *s, uint64_t ns)
{
	pthread_mutex_lock(&s->lock);
	for (uint64_t at = 0; at < ns; at += 100000) {
		s->now_ns += 100000;
		tor_tick(s->tor);
	}
	pthread_mutex_unlock(&s->lock);
}

static inline void switch_socket_answer(struct switch_socket *s,
					const char *line, FILE *f)
{
	struct json_out out;
	char run[20];
	int err = 0;

	json_out_init(&out, f);
	json_out_object(&out, NULL);
	snprintf(run, sizeof(run), "run%u", s->run);
	json_out_string(&out, "run", run);
	if (strncmp(line, "tell ", 5) == 0)
		err = tor_control(s->tor, line + 5, &out);
	else
		tor_report_programs(s->tor, &out);
	if (err)
		json_out_string(&out, "error", error_last());
	json_out_close(&out);
	err = json_out_end(&out);
	ASSERT(err == 0);
	/* A millisecond of work between two calls. */
	for (unsigned i = 0; i < 10; i++) {
		s->now_ns += 100000;
		tor_tick(s->tor);
	}
}

static inline void switch_socket_serve(struct switch_socket *s, int fd)
{
	char line[4096] = "", *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	bool hangs;

	ASSERT(f);
	if (recv(fd, line, sizeof(line) - 1, 0) <= 0) {
		fclose(f);
		free(text);
		return;
	}
	pthread_mutex_lock(&s->lock);
	hangs = s->hangs;
	if (!hangs)
		switch_socket_answer(s, line, f);
	pthread_mutex_unlock(&s->lock);
	fclose(f);
	/* One that hangs says nothing until the caller has given up. */
	if (hangs)
		(void)recv(fd, line, sizeof(line), 0);
	else
		(void)send(fd, text, len, MSG_NOSIGNAL);
	free(text);
}

static inline void *switch_socket_run(void *arg)
{
	struct switch_socket *s = arg;
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	while (!atomic_load(&s->stops)) {
		int fd = poll(&p, 1, 10) > 0 ? accept(s->fd, NULL, NULL) : -1;

		if (fd < 0)
			continue;
		switch_socket_serve(s, fd);
		close(fd);
	}
	return NULL;
}

static inline void switch_socket_start(struct switch_socket *s)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/aq-switch-XXXXXX";
	char *made = mkdtemp(dir);
	int err;

	ASSERT(made);
	snprintf(s->path, sizeof(s->path), "%s/ctl", dir);
	memcpy(sa.sun_path, s->path, sizeof(s->path));
	pthread_mutex_init(&s->lock, NULL);
	s->env.ops = &switch_socket_ops;
	s->now_ns = 1000000;
	rng_init(&s->rng, 1);
	switch_socket_renew(s);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ASSERT(s->fd >= 0);
	err = bind(s->fd, (struct sockaddr *)&sa, sizeof(sa));
	if (!err)
		err = listen(s->fd, 8);
	if (!err)
		err = pthread_create(&s->thread, NULL, switch_socket_run, s);
	ASSERT(err == 0);
}

static inline void switch_socket_stop(struct switch_socket *s)
{
	atomic_store(&s->stops, true);
	pthread_join(s->thread, NULL);
	close(s->fd);
	unlink(s->path);
	*strrchr(s->path, '/') = '\0';
	rmdir(s->path);
	tor_destroy(s->tor);
	pthread_mutex_destroy(&s->lock);
}

/* ---- for fuzzers: one for all inputs, without socket and thread ------------
 */

static inline int switch_socket_carry(void *ctx, const char *line, char *reply,
				      size_t reply_bytes)
{
	struct switch_socket *s = ctx;
	FILE *f = fmemopen(reply, reply_bytes, "w");

	ASSERT(f);
	switch_socket_answer(s, line, f);
	return fclose(f) ? -errno : 0;
}

static inline struct switch_socket *switch_socket_one(void)
{
	static struct switch_socket one = {.lock = PTHREAD_MUTEX_INITIALIZER,
					   .env = {.ops = &switch_socket_ops},
					   .now_ns = 1000000,
					   .options = "entries=64"};

	if (!one.tor) {
		rng_init(&one.rng, 1);
		switch_socket_renew(&one);
	}
	return &one;
}

#endif
