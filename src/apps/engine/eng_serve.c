/* SPDX-License-Identifier: Apache-2.0 */
/* The process: places, sockets, signals, and the loop until one comes. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/rundir.h"
#include "control/ctl_server.h"
#include "eng_priv.h"

enum {
	PATH_BYTES = 400,
};

struct place {
	char rundir[RUNDIR_PATH_MAX];
	char socket[PATH_BYTES];
	char lock[PATH_BYTES];
};

static int place_find(const char *rack, const char *name, struct place *out)
{
	int err = rundir_make(rack, out->rundir);

	if (err)
		return err;
	(void)snprintf(out->socket, PATH_BYTES, "%s/%s.engine.sock",
		       out->rundir, name);
	(void)snprintf(out->lock, PATH_BYTES, "%s/%s.engine.lock", out->rundir,
		       name);
	return 0;
}

/* Holds the name until the process ends, however it ends. */
static int place_lock(const struct place *p, const char *name)
{
	int fd = open(p->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return error_set(-errno, "cannot open %s: %s", p->lock,
				 strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	(void)close(fd); /* not ours */
	return error_set(-EBUSY,
			 "an engine %s runs already; choose another --name",
			 name);
}

static void run(struct eng *eng, const sigset_t *signals)
{
	const struct timespec none = {0};
	uint64_t look_ns = 0;
	int sig = 0;

	while (sig <= 0) {
		uint64_t next_ns = eng_run(eng);
		uint64_t now_ns = client_clock_now_ns(eng->clock);

		if (now_ns >= look_ns) {
			look_ns = now_ns + ENG_TICK_MS * 1000000ull;
			sig = sigtimedwait(signals, NULL, &none);
		}
		if (next_ns == 0) {
			client_clock_relax(eng->clock);
		} else if (next_ns > now_ns) {
			eng_sleep(eng,
				  u64_min(next_ns, now_ns + ENG_SLEEP_MAX_NS));
		}
	}
	log_info("engine", "engine %s stops: %s", eng->name, strsignal(sig));
}

static int serve(const struct eng_options *o, const struct place *place,
		 const sigset_t *signals,
		 void (*ready)(void *ctx, const struct eng_ready *what),
		 void *ctx)
{
	struct eng_ready what = {
		.name = o->name, .rack = o->rack, .socket = place->socket};
	struct ctl_server_config http = {
		.unix_path = place->socket,
		.listen = o->listen,
		.tls_cert = o->tls_cert,
		.tls_key = o->tls_key,
		.handle = eng_handle,
	};
	char token[CTL_TOKEN_TEXT];
	struct ctl_server *server;
	struct ctl_audit *log = NULL;
	struct eng *eng;
	int err = ctl_token_file(place->rundir, "engine-token", token);

	if (!err)
		err = ctl_audit_open(o->audit, o->audit_json, &log);
	if (!err)
		err = eng_create(o, token, place->rundir, &eng);
	if (err) {
		ctl_audit_close(log);
		return err;
	}
	eng->audit = log;
	http.ctx = eng;
	err = ctl_server_start(&http, &server);
	if (!err) {
		what.port = ctl_server_port(server);
		ready(ctx, &what);
		run(eng, signals);
		ctl_server_stop(server);
	}
	eng_destroy(eng);
	ctl_audit_close(log);
	return err;
}

int eng_serve(const struct eng_options *o,
	      void (*ready)(void *ctx, const struct eng_ready *what), void *ctx)
{
	struct place place;
	sigset_t signals;
	int err, lock;

	if (!rundir_rack_is_valid(o->name))
		return error_set(-EINVAL,
				 "an engine's name is 1 to %d of a-z, 0-9 and "
				 "'-', not '%.40s'",
				 ENG_NAME_MAX, o->name);
	/* Before any thread exists, so that only run() gets them. A client that
	 * hangs up must not end the engine either. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0 ||
	    signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return error_set(-EINVAL, "cannot set up signals");
	err = place_find(o->rack, o->name, &place);
	if (err)
		return err;
	lock = place_lock(&place, o->name);
	if (lock < 0)
		return lock;
	err = serve(o, &place, &signals, ready, ctx);
	(void)close(lock); /* gives the name back */
	return err;
}
